//===- HostSymbols.cpp - The table of callable functions ------------------===//

#include "compiler/Host/HostSymbols.h"

#include "compiler/Host/EmulatorCalls.h"
#include "compiler/Host/Float16.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace replayjit::internal::host {

// The conversions of the 16-bit types, which libgcc 12 has only in part. LLVM
// passes such a value in the low half of a vector register. _Float16, used here
// for its bits alone, is passed there as well.
static _Float16 inRegister(uint16_t bits) {
  return std::bit_cast<_Float16>(bits);
}
static _Float16 truncsfbf2(float value) {
  return inRegister(floatToBf16(value));
}
static _Float16 truncsfhf2(float value) {
  return inRegister(floatToHalf(value));
}
static float extendhfsf2(_Float16 value) {
  return halfToFloat(std::bit_cast<uint16_t>(value));
}
static float extendbfsf2(_Float16 value) {
  return bf16ToFloat(std::bit_cast<uint16_t>(value));
}

// A double is first rounded to a float whose last bit says whether anything
// was lost ("to odd"), so that the second rounding is the only one.
static float roundToOdd(double value) {
  float rounded = float(value);
  if (std::isnan(value) || double(rounded) == value)
    return rounded;
  if (std::fabs(double(rounded)) > std::fabs(value))
    rounded = std::nextafterf(rounded, 0.0f);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(rounded) | 1);
}
static _Float16 truncdfbf2(double value) {
  return truncsfbf2(roundToOdd(value));
}
static _Float16 truncdfhf2(double value) {
  return truncsfhf2(roundToOdd(value));
}
// The names that older code generators use, with integer registers.
static float gnuH2f(uint16_t bits) { return halfToFloat(bits); }
static uint16_t gnuF2h(float value) { return floatToHalf(value); }

template <typename Function> static void *addressOf(Function *function) {
  return reinterpret_cast<void *>(function);
}

using Unary = double(double);
using UnaryFloat = float(float);
using Binary = double(double, double);
using BinaryFloat = float(float, float);

// clang-format off
#define SYMBOL(name) {#name, addressOf(&name)}
#define UNARY(name)                                                            \
  {#name, addressOf<Unary>(&::name)},                                          \
  {#name "f", addressOf<UnaryFloat>(&::name##f)}
#define BINARY(name)                                                           \
  {#name, addressOf<Binary>(&::name)},                                         \
  {#name "f", addressOf<BinaryFloat>(&::name##f)}
// clang-format on

static const HostSymbol table[] = {
    SYMBOL(replayjit_emu_sreg),
    SYMBOL(replayjit_emu_load),
    SYMBOL(replayjit_emu_store),
    SYMBOL(replayjit_emu_shuffle),
    SYMBOL(replayjit_emu_ballot),
    SYMBOL(replayjit_emu_mma),
    SYMBOL(replayjit_emu_barrier),
    SYMBOL(replayjit_emu_warp_barrier),
    SYMBOL(replayjit_emu_async_copy),
    SYMBOL(replayjit_emu_async_commit),
    SYMBOL(replayjit_emu_async_wait),
    SYMBOL(replayjit_emu_mbarrier_init),
    SYMBOL(replayjit_emu_mbarrier_arrive),
    SYMBOL(replayjit_emu_mbarrier_expect),
    SYMBOL(replayjit_emu_mbarrier_wait),
    SYMBOL(replayjit_emu_bulk_copy),
    SYMBOL(replayjit_emu_start_early),
    SYMBOL(replayjit_emu_await_predecessor),
    SYMBOL(replayjit_emu_trap),
    {"replayjit_emu_shared", replayjit_emu_shared},
    {"global_smem", replayjit_emu_shared},
    {"__truncsfbf2", addressOf(&truncsfbf2)},
    {"__truncdfbf2", addressOf(&truncdfbf2)},
    {"__extendbfsf2", addressOf(&extendbfsf2)},
    {"__truncsfhf2", addressOf(&truncsfhf2)},
    {"__truncdfhf2", addressOf(&truncdfhf2)},
    {"__extendhfsf2", addressOf(&extendhfsf2)},
    {"__gnu_h2f_ieee", addressOf(&gnuH2f)},
    {"__gnu_f2h_ieee", addressOf(&gnuF2h)},
    {"memcpy", addressOf<void *(void *, const void *, size_t)>(&::memcpy)},
    {"memmove", addressOf<void *(void *, const void *, size_t)>(&::memmove)},
    {"memset", addressOf<void *(void *, int, size_t)>(&::memset)},
    UNARY(exp),
    UNARY(exp2),
    UNARY(expm1),
    UNARY(log),
    UNARY(log2),
    UNARY(log10),
    UNARY(log1p),
    UNARY(sqrt),
    UNARY(sin),
    UNARY(cos),
    UNARY(tanh),
    UNARY(erf),
    UNARY(floor),
    UNARY(ceil),
    UNARY(trunc),
    UNARY(round),
    UNARY(roundeven),
    UNARY(rint),
    UNARY(nearbyint),
    UNARY(fabs),
    BINARY(pow),
    BINARY(fmod),
    BINARY(fmin),
    BINARY(fmax),
    BINARY(copysign),
    {"fma", addressOf<double(double, double, double)>(&::fma)},
    {"fmaf", addressOf<float(float, float, float)>(&::fmaf)},
};

std::span<const HostSymbol> hostSymbols() { return table; }

} // namespace replayjit::internal::host
