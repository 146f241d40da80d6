//===- ExpandMathTest.cpp - exp and log1p, as kernels compute them --------===//
//
// A kernel that applies one function to a vector runs on the test device on
// every kind of f32, and is compared with the C library in double precision.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/TestDevice.h"

#include "mlir/Parser/Parser.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace replayjit::internal;
using namespace replayjit::internal::test;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr int kBlock = 128;

std::string kernelText(const std::vector<std::string> &functions) {
  std::string applied;
  for (size_t i = 0; i < functions.size(); ++i)
    applied += "  %a" + std::to_string(i + 1) + " = " + functions[i] + " %a" +
               std::to_string(i) + " : tensor<128xf32>\n";
  return R"(
replay.kernel @apply(%x: !replay.ptr<f32> {replay.name = "x", replay.readonly},
    %y: !replay.ptr<f32> {replay.name = "y"},
    %count: i32 {replay.name = "count"}) num_warps(1) blocks_per_row(1) {
  %none = arith.constant 0 : i64
  %size = arith.constant 128 : i32
  %pid = replay.program_id x
  %at = arith.muli %pid, %size : i32
  %in = replay.view %x offset %none sizes %count
      : !replay.ptr<f32> -> !replay.view<?xf32, strides [1], align 16>
  %out = replay.view %y offset %none sizes %count
      : !replay.ptr<f32> -> !replay.view<?xf32, strides [1], align 16>
  %a0 = replay.load %in[%at]
      : !replay.view<?xf32, strides [1], align 16> -> tensor<128xf32>
)" + applied +
         "  replay.store %a" + std::to_string(functions.size()) +
         R"(, %out[%at]
      : tensor<128xf32>, !replay.view<?xf32, strides [1], align 16>
  replay.return
})";
}

/// One function after the other of each input, by a kernel.
std::vector<float> runKernel(const std::vector<std::string> &functions,
                             const std::vector<float> &inputs) {
  TestKernel kernel([&](mlir::MLIRContext &context) {
    return mlir::parseSourceString<mlir::ModuleOp>(kernelText(functions),
                                                   &context);
  });
  Device &device = testDevice();
  size_t bytes = inputs.size() * sizeof(float);
  struct Params {
    uint64_t x, y;
    int32_t count;
  } params = {*device.allocate(bytes, "x"), *device.allocate(bytes, "y"),
              (int32_t)inputs.size()};
  REQUIRE(device.copyToDevice(params.x, inputs.data(), bytes).isOk());
  uint32_t blocks = (inputs.size() + kBlock - 1) / kBlock;
  REQUIRE(kernel.launch(blocks, &params, sizeof params).message == "");
  std::vector<float> outputs(inputs.size());
  REQUIRE(device.copyFromDevice(outputs.data(), params.y, bytes).isOk());
  for (uint64_t memory : {params.x, params.y})
    REQUIRE(device.free(memory).isOk());
  return outputs;
}

/// |value - exact| in units in the last place of `exact` as an f32. Infinity
/// counts as what comes after the largest number.
double ulps(float value, double exact) {
  if (std::isnan(exact) || std::isnan(value))
    return std::isnan(exact) && std::isnan(value) ? 0 : kInf;
  if (std::isinf(exact))
    return value == exact ? 0 : kInf;
  double nearest = std::max(std::fabs(exact), 0x1p-126);
  double unit = std::ldexp(1.0, std::ilogb(nearest) - 23);
  double found = std::isinf(value) ? std::copysign(0x1p128, value) : value;
  return std::fabs(found - exact) / unit;
}

/// Every exponent with several mantissas and both signs, denormals, random bit
/// patterns, and `more`.
std::vector<float> inputs(const std::vector<float> &more) {
  std::vector<float> values = {0.0f, -0.0f, kInf, -kInf, kNaN, -kNaN};
  values.insert(values.end(), more.begin(), more.end());
  auto addBits = [&](uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    values.push_back(value);
  };
  std::mt19937 random(7);
  for (uint32_t exponent = 0; exponent < 256; ++exponent)
    for (uint32_t sign : {0u, 0x80000000u}) {
      for (uint32_t mantissa : {0u, 1u, 0x400000u, 0x7fffffu, 0x2aaaaau})
        addBits(sign | exponent << 23 | mantissa);
      for (int i = 0; i < 3; ++i)
        addBits(sign | exponent << 23 | (random() & 0x7fffff));
    }
  for (int i = 0; i < 4000; ++i)
    addBits(random());
  auto addUniform = [&](float low, float high, int count) {
    std::uniform_real_distribution<float> uniform(low, high);
    for (int i = 0; i < count; ++i)
      values.push_back(uniform(random));
  };
  addUniform(-104, 89, 6000);
  addUniform(-1, 1, 4000);
  addUniform(-1e-8f, 1e-8f, 500);
  addUniform(-0.3f, 0.6f, 1500);
  return values;
}

struct Worst {
  double error = 0;
  float input = 0, output = 0;
};

template <typename Exact>
Worst worstOf(const std::vector<float> &in, const std::vector<float> &out,
              Exact exact) {
  Worst worst;
  for (size_t i = 0; i < in.size(); ++i)
    if (double error = ulps(out[i], exact((double)in[i])); error > worst.error)
      worst = {error, in[i], out[i]};
  return worst;
}

} // namespace

TEST_CASE("exp is within 2 ulp of a normal result", "[math][device]") {
  // Around the largest argument with a finite result and the smallest with one
  // that is not zero, and where the expansion changes to another power of two.
  std::vector<float> more = {1,
                             -1,
                             88.72283f,
                             std::nextafter(88.72283f, kInf),
                             std::nextafter(88.72283f, -kInf),
                             88.8f,
                             89,
                             std::nextafter(89.0f, kInf),
                             1e30f,
                             -87.33654f,
                             -103.97207f,
                             -103.97208f,
                             -103.97209f,
                             -104,
                             std::nextafter(-104.0f, -kInf),
                             -1e30f};
  for (int n = -150; n <= 128; ++n)
    for (float half : {-0.5f, 0.0f, 0.5f}) {
      float x = (n + half) * 0.6931472f;
      for (float y : {x, std::nextafter(x, kInf), std::nextafter(x, -kInf)})
        more.push_back(y);
    }
  std::vector<float> in = inputs(more);
  // What is near the ends is the next test's.
  const double least = -126.5 * 0.69314718, most = 127.5 * 0.69314718;
  std::erase_if(in, [=](float x) { return x < least || x > most; });
  std::vector<float> out = runKernel({"math.exp"}, in);
  Worst worst = worstOf(in, out, [](double x) { return std::exp(x); });
  CAPTURE(worst.input, worst.output, std::exp((double)worst.input));
  CHECK(worst.error <= 2);
}

TEST_CASE("exp beyond the normal numbers is 0 or infinite", "[math][device]") {
  std::vector<float> in;
  for (float x = 87.0f; x < 110; x += 0.01f)
    in.insert(in.end(), {x, -x});
  in.insert(in.end(), {1e4f, -1e4f, 3e38f, -3e38f});
  std::vector<float> out = runKernel({"math.exp"}, in);
  for (size_t i = 0; i < in.size(); ++i) {
    CAPTURE(in[i], out[i]);
    const double exact = std::exp((double)in[i]);
    // Within a factor of sqrt(2) of the ends it may be either.
    const bool isNear = std::fabs(out[i] - exact) <= 1e-6 * exact + 0x1p-149;
    CHECK((isNear || (out[i] == 0 && exact < 0x1p-126) ||
           (out[i] == kInf && exact > 0x1p127)));
  }
}

TEST_CASE("exp is exact where it can be", "[math][device]") {
  std::vector<float> in = {0.0f, -0.0f, kInf, -kInf, kNaN, -200, 200, 1e-30f},
                     out = runKernel({"math.exp"}, in);
  CHECK(out[0] == 1);
  CHECK(out[1] == 1);
  CHECK(out[2] == kInf);
  CHECK(out[3] == 0);
  CHECK(std::isnan(out[4]));
  CHECK(out[5] == 0);
  CHECK(out[6] == kInf);
  CHECK(out[7] == 1);
}

TEST_CASE("log1p is within 2 ulp from -1 to 2^126", "[math][device]") {
  std::vector<float> more = {std::nextafter(-1.0f, 0.0f), -0.25f, 0.5f,
                             0x1p126f, std::nextafter(0x1p126f, 0.0f)};
  // Where 1 + u changes to another power of two times 3/4.
  for (int n = -24; n <= 126; ++n) {
    float x = std::ldexp(1.5f, n) - 1;
    for (float y : {x, std::nextafter(x, kInf), std::nextafter(x, -kInf)})
      more.push_back(y);
  }
  std::vector<float> in = inputs(more);
  std::erase_if(in, [](float x) {
    return x <= -1 || (x > 0x1p126f && x != kInf); // Not promised.
  });
  std::vector<float> out = runKernel({"math.log1p"}, in);
  Worst worst = worstOf(in, out, [](double x) { return std::log1p(x); });
  CAPTURE(worst.input, worst.output, std::log1p((double)worst.input));
  CHECK(worst.error <= 2);
}

TEST_CASE("log1p is exact where it can be", "[math][device]") {
  std::vector<float> in = {0.0f,   -0.0f,   kInf,   kNaN,
                           1e-30f, -1e-30f, 1e-42f, -1e-42f},
                     out = runKernel({"math.log1p"}, in);
  CHECK(out[0] == 0);
  CHECK(out[1] == 0);
  CHECK(out[2] == kInf);
  CHECK(std::isnan(out[3]));
  for (int i = 4; i < 8; ++i)
    CHECK(out[i] == in[i]);
}

// The logarithm knows that its argument is at most 1, the exponential that its
// own is never positive.
TEST_CASE("log1p(exp(-|x|)) is within 2 ulp, and exp(-|x|) as well",
          "[math][device]") {
  std::vector<float> in =
      inputs({1e-3f, 0.34657359f, 0.6931472f, 87, 88, 1e9f});
  std::erase_if(in, [](float x) { return std::fabs(x) > 87.33f && x == x; });
  const std::vector<std::string> power = {"math.absf", "arith.negf",
                                          "math.exp"};
  std::vector<std::string> softplus = power;
  softplus.push_back("math.log1p");
  auto exact = [](double x) { return std::exp(-std::fabs(x)); };
  std::vector<float> out = runKernel(power, in);
  Worst worst = worstOf(in, out, exact);
  CAPTURE(worst.input, worst.output);
  CHECK(worst.error <= 2);
  out = runKernel(softplus, in);
  worst = worstOf(in, out, [&](double x) { return std::log1p(exact(x)); });
  CAPTURE(worst.input, worst.output);
  CHECK(worst.error <= 2);
  // Infinite arguments.
  CHECK(runKernel(softplus, {kInf, -kInf}) == std::vector<float>{0, 0});
}
