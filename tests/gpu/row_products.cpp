//===- row_products.cpp - The staged kernel on a GPU ----------------------===//
//
// row_products FILE THREADS SHARED_BYTES: loads a cubin, or PTX for the driver
// to link, of tests/kernels/row_products.mlir that replay-compile made,
// multiplies tiles with it and compares with fp64. Needs nothing but a driver.
//
//===----------------------------------------------------------------------===//

#include "tests/kernels/RowProducts.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

using namespace replayjit::internal;

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: row_products FILE THREADS SHARED_BYTES\n");
    return 2;
  }
  CompiledKernel kernel;
  kernel.name = "row_products";
  std::ifstream file(argv[1], std::ios::binary);
  std::string code(std::istreambuf_iterator<char>(file), {});
  if (code.starts_with("\x7f"
                       "ELF"))
    kernel.cubin.assign(code.begin(), code.end());
  else
    kernel.ptx = code;
  kernel.launch = {1, (uint32_t)std::atoi(argv[2]),
                   (uint32_t)std::atoi(argv[3])};
  using Kind = KernelParam::Kind;
  kernel.signature = {{{"tiles", Kind::Pointer, 0},
                       {"x", Kind::Pointer, 8},
                       {"y", Kind::Pointer, 16}},
                      24};
  auto device = createCudaDevice(0);
  if (!device) {
    std::fprintf(stderr, "error: %s\n", device.status().message.c_str());
    return 1;
  }
  kernel.target = (*device)->target();
  int failed = 0;
  for (int count : {1, 7, 1000}) {
    std::string problem = checkRowProducts(**device, kernel, count);
    std::printf("staged row products, %4d tiles: %s\n", count,
                problem.empty() ? "PASS" : problem.c_str());
    failed += !problem.empty();
  }
  return failed != 0;
}
