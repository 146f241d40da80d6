// RUN: replay-opt %s --replay-assign-layouts | replay-opt | FileCheck %s

// One element repeated along both dimensions is held by every thread, once.
// CHECK-LABEL: replay.kernel @both_dimensions(
// CHECK: load {{.*}} -> tensor<1x1xf32, #replay.layout<register = [], lane = {{.}}[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], warp = {{.}}[0, 0], [0, 0]]>>
replay.kernel @both_dimensions(%i: i32) num_warps(4) blocks_per_row(1) {
  %s = builtin.unrealized_conversion_cast to !replay.view<32x128xf32, strides [128, 1], align 16>
  %c = replay.load %s[%i, %i] : !replay.view<32x128xf32, strides [128, 1], align 16> -> tensor<1x1xf32>
  %t = replay.load %s[%i, %i] : !replay.view<32x128xf32, strides [128, 1], align 16> -> tensor<32x128xf32>
  %b = replay.broadcast %c : tensor<1x1xf32> -> tensor<32x128xf32>
  %u = arith.addf %b, %t : tensor<32x128xf32>
  replay.store %u, %s[%i, %i] : tensor<32x128xf32>, !replay.view<32x128xf32, strides [128, 1], align 16>
  replay.return
}
