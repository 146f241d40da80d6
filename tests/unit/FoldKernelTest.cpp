//===- FoldKernelTest.cpp - A state carried by a loop, emulated -----------===//
//
// tests/kernels/fold.mlir against the recurrence in fp64.
//
//===----------------------------------------------------------------------===//

#include "compiler/Compiler.h"
#include "runtime/Device.h"

#include "mlir/Parser/Parser.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

using namespace replayjit::internal;

namespace {

constexpr int rows = 32, columns = 128;

std::string readKernel() {
  std::ifstream file(REPLAYJIT_SOURCE_DIR "/tests/kernels/fold.mlir");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

CompiledKernel compileKernel(const std::string &text) {
  Compiler compiler;
  auto kernel = compiler.compileForHost(
      [&](mlir::MLIRContext &context) {
        return mlir::parseSourceString<mlir::ModuleOp>(text, &context);
      },
      *Target::parse("sm_90a"), CompileOptions());
  INFO(kernel.status().message);
  REQUIRE(kernel);
  return std::move(*kernel);
}

struct Problem {
  int items, tokens;
  std::vector<float> states, keys, values, decays, betas;

  Problem(int items, int tokens) : items(items), tokens(tokens) {
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    auto fill = [&](std::vector<float> &list, size_t size, auto make) {
      list.resize(size);
      for (float &value : list)
        value = make(normal(random));
    };
    const size_t all = size_t(items) * tokens;
    fill(states, size_t(items) * rows * columns, [](float x) { return x; });
    // Keys of length 1, nearly; gates of any size.
    fill(keys, all * columns, [](float x) { return x / std::sqrt(128.f); });
    fill(values, all * rows, [](float x) { return x; });
    fill(decays, all, [](float x) { return std::exp(-std::exp(x)); });
    fill(betas, all, [](float x) { return 1 / (1 + std::exp(-x)); });
  }

  /// The states after all tokens, token by token.
  std::vector<double> expected() const {
    std::vector<double> result(states.begin(), states.end());
    for (int item = 0; item < items; ++item)
      for (int t = 0; t < tokens; ++t) {
        const size_t token = size_t(item) * tokens + t;
        const float *k = &keys[token * columns];
        for (int i = 0; i < rows; ++i) {
          double *s = &result[(size_t(item) * rows + i) * columns], sk = 0;
          for (int j = 0; j < columns; ++j)
            sk += (s[j] *= decays[token]) * k[j];
          const double d = betas[token] * (values[token * rows + i] - sk);
          for (int j = 0; j < columns; ++j)
            s[j] += d * k[j];
        }
      }
    return result;
  }

  /// The states that the kernel leaves, a block an item.
  std::vector<float> run(const CompiledKernel &kernel) const {
    auto device = createEmulationDevice(*Target::parse("sm_90a"));
    auto loaded = device->load(kernel);
    REQUIRE(loaded);
    struct {
      uint64_t states, keys, values, decays, betas;
      int32_t tokens;
    } args = {};
    args.tokens = tokens;
    auto upload = [&](uint64_t &address, const std::vector<float> &list,
                      const char *name) {
      // Without tokens there is nothing to read, but there is an address.
      auto memory = device->allocate(list.size() * 4 + 16, name);
      REQUIRE(memory);
      address = *memory;
      REQUIRE(device->copyToDevice(address, list.data(), list.size() * 4));
    };
    upload(args.states, states, "states");
    upload(args.keys, keys, "keys");
    upload(args.values, values, "values");
    upload(args.decays, decays, "decays");
    upload(args.betas, betas, "betas");
    Status status = device->launch(**loaded, items, &args, sizeof args);
    if (status)
      status = device->synchronize();
    INFO(status.message);
    REQUIRE(status);
    std::vector<float> result(states.size());
    REQUIRE(
        device->copyFromDevice(result.data(), args.states, result.size() * 4));
    for (uint64_t address :
         {args.states, args.keys, args.values, args.decays, args.betas})
      CHECK(device->free(address));
    return result;
  }
};

/// ||x - y|| / ||y||
double distance(const std::vector<float> &x, const std::vector<double> &y) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    difference += (x[i] - y[i]) * (x[i] - y[i]);
    norm += y[i] * y[i];
  }
  return std::sqrt(difference / norm);
}

} // namespace

TEST_CASE("a fold keeps its state in registers over the tokens") {
  const std::string text = readKernel();
  // Held as one tile, and as four.
  for (const char *held : {"tiles 128>", "tiles 32>"}) {
    std::string variant = text;
    const std::string written = "!formed = !replay.state<32x128, tiles 128>";
    size_t at = variant.find(written);
    REQUIRE(at != std::string::npos);
    variant.replace(at, written.size(),
                    std::string("!formed = !replay.state<32x128, ") + held);
    const CompiledKernel kernel = compileKernel(variant);
    for (auto [items, tokens] : {std::pair(1, 1), {3, 2}, {2, 9}}) {
      CAPTURE(held, items, tokens);
      const Problem problem(items, tokens);
      const std::vector<double> expected = problem.expected();
      // The tokens change the states by far more than the bound.
      CHECK(distance(problem.states, expected) > 0.1);
      // A token rounds each element a few times, of 2^-24 each.
      CHECK(distance(problem.run(kernel), expected) < 1e-6);
    }
    const Problem none(2, 0);
    CHECK(none.run(kernel) == none.states);
  }
}
