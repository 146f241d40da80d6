//===- RowProducts.h - Runs row_products.mlir on a device -------*- C++ -*-===//
#ifndef REPLAYJIT_TESTS_KERNELS_ROWPRODUCTS_H
#define REPLAYJIT_TESTS_KERNELS_ROWPRODUCTS_H

#include "runtime/Device.h"

#include <fmt/format.h>

#include <cmath>
#include <random>
#include <vector>

namespace replayjit::internal {

/// Multiplies as many tiles, one a block, and compares with fp64. Returns what
/// is wrong, or nothing.
inline std::string
checkRowProducts(Device &device, const CompiledKernel &kernel, uint32_t count) {
  constexpr int rows = 64, columns = 128;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> tiles(size_t(count) * rows * columns), x(columns);
  for (float &value : tiles)
    value = normal(random);
  for (float &value : x)
    value = normal(random);
  std::vector<float> y(size_t(count) * rows, NAN);

  auto loaded = device.load(kernel);
  if (!loaded)
    return loaded.status().message;
  struct {
    uint64_t tiles, x, y;
  } args = {};
  Status status = Status::ok();
  auto upload = [&](uint64_t &address, std::vector<float> &host,
                    const char *name) {
    auto memory = device.allocate(host.size() * 4, name);
    if (!memory) {
      status = memory.status();
      return;
    }
    address = *memory;
    if (status)
      status = device.copyToDevice(address, host.data(), host.size() * 4);
  };
  upload(args.tiles, tiles, "tiles");
  upload(args.x, x, "x");
  upload(args.y, y, "y");
  if (status)
    status = device.launch(**loaded, count, &args, sizeof args);
  if (status)
    status = device.synchronize();
  if (status)
    status = device.copyFromDevice(y.data(), args.y, y.size() * 4);
  for (uint64_t address : {args.tiles, args.x, args.y})
    if (Status freed = device.free(address); !freed && status)
      status = freed;
  if (!status)
    return status.message;
  for (size_t row = 0; row < y.size(); ++row) {
    double expected = 0, scale = 0;
    for (int k = 0; k < columns; ++k) {
      double term = double(tiles[row * columns + k]) * x[k];
      expected += term;
      scale += std::abs(term);
    }
    // Fused multiply-adds over 128 terms: at most 128 roundings of 2^-24.
    if (!(std::abs(y[row] - expected) <= 128 * 0x1p-24 * scale))
      return fmt::format("y[{}] is {}, expected {}", row, y[row], expected);
  }
  return "";
}

} // namespace replayjit::internal

#endif
