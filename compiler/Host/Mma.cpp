//===- Mma.cpp - Fragment layouts of the PTX ISA --------------------------===//

#include "compiler/Host/Mma.h"

#include "compiler/Host/Float16.h"

#include <bit>
#include <cstring>

namespace replayjit::internal::host {

namespace {
/// The operands as plain matrices: A is 16 x k, B is k x 8.
struct Operands {
  double a[16][16];
  double b[16][8];
  int k = 0;
};
} // namespace

static float tf32ToFloat(uint32_t bits) {
  return std::bit_cast<float>(bits & 0xffffe000u);
}

// m16n8k8: a word is one element.
static void gatherTf32(const MmaFragments (&lanes)[32], Operands &operands) {
  operands.k = 8;
  for (int lane = 0; lane < 32; ++lane) {
    int group = lane >> 2, thread = lane & 3;
    uint32_t a[4], b[2];
    std::memcpy(a, lanes[lane].a, sizeof a);
    std::memcpy(b, lanes[lane].b, sizeof b);
    for (int i = 0; i < 4; ++i)
      operands.a[group + 8 * (i & 1)][thread + 4 * (i >> 1)] =
          tf32ToFloat(a[i]);
    for (int i = 0; i < 2; ++i)
      operands.b[thread + 4 * i][group] = tf32ToFloat(b[i]);
  }
}

// m16n8k16: a word is two neighbours in k, the smaller k in the low half.
static void gather16(const MmaFragments (&lanes)[32],
                     float (*toFloat)(uint16_t), Operands &operands) {
  operands.k = 16;
  for (int lane = 0; lane < 32; ++lane) {
    int group = lane >> 2, thread = lane & 3;
    uint16_t a[8], b[4];
    std::memcpy(a, lanes[lane].a, sizeof a);
    std::memcpy(b, lanes[lane].b, sizeof b);
    for (int i = 0; i < 8; ++i) {
      int word = i >> 1, half = i & 1;
      int row = group + 8 * (word & 1);
      operands.a[row][2 * thread + half + 8 * (word >> 1)] = toFloat(a[i]);
    }
    for (int i = 0; i < 4; ++i)
      operands.b[2 * thread + (i & 1) + 8 * (i >> 1)][group] = toFloat(b[i]);
  }
}

void multiplyFragments(MmaKind kind, const MmaFragments (&lanes)[32]) {
  Operands operands;
  if (kind == MmaTf32)
    gatherTf32(lanes, operands);
  else
    gather16(lanes, kind == MmaBf16 ? bf16ToFloat : halfToFloat, operands);

  double sum[16][8] = {};
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < operands.k; ++k)
      for (int column = 0; column < 8; ++column)
        sum[row][column] += operands.a[row][k] * operands.b[k][column];

  for (int lane = 0; lane < 32; ++lane) {
    int group = lane >> 2, thread = lane & 3;
    float c[4], d[4];
    std::memcpy(c, lanes[lane].c, sizeof c);
    for (int i = 0; i < 4; ++i)
      d[i] = float(sum[group + 8 * (i >> 1)][2 * thread + (i & 1)] + c[i]);
    std::memcpy(lanes[lane].d, d, sizeof d);
  }
}

} // namespace replayjit::internal::host
