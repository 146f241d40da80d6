// The layout attribute as ReplayAttrs.td documents it;
// tests/lint/check_examples compares the two.
//
// RUN: replay-opt %s | replay-opt | FileCheck %s
// RUN: replay-opt %s --mlir-print-op-generic | replay-opt | FileCheck %s

// 8 lanes share a row of 32 floats, 16 bytes each; 4 rows per warp.
#rows = #replay.layout<register = [[0, 1], [0, 2]],
                       lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]],
                       warp = []>

// CHECK-LABEL: replay.kernel @rows(
// CHECK: to tensor<4x32xf32, #replay.layout<register = {{\[\[}}0, 1], [0, 2]], lane = {{\[\[}}0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = []>>
replay.kernel @rows() num_warps(1) blocks_per_row(1) {
  %0 = builtin.unrealized_conversion_cast to tensor<4x32xf32, #rows>
  replay.return
}

// Zero bases replicate: both halves of the warp, and both warps.
// CHECK-LABEL: replay.kernel @replicated(
// CHECK: to tensor<16xi32, #replay.layout<register = [], lane = {{\[\[}}1], [2], [4], [8], [0]], warp = {{\[\[}}0]]>>
replay.kernel @replicated() num_warps(2) blocks_per_row(1) {
  %0 = builtin.unrealized_conversion_cast to
      tensor<16xi32, #replay.layout<register = [], lane = [[1], [2], [4], [8], [0]], warp = [[0]]>>
  replay.return
}
