// RUN: replay-opt %s --canonicalize | FileCheck %s

#a = #replay.layout<register = [[1], [2], [4], [8]], lane = [[0], [0], [0], [0], [0]], warp = []>
#b = #replay.layout<register = [], lane = [[1], [2], [4], [8], [0]], warp = []>
!vector = !replay.view<16xf32, strides [1], align 16>
!matrix = !replay.view<16x128xf32, strides [128, 1], align 16>

// A splat of a constant is a constant tile.
// CHECK-LABEL: replay.kernel @splat_of_constant(
// CHECK: %[[T:.*]] = arith.constant dense<2.000000e+00> : tensor<16xf32>
// CHECK-NOT: splat
// CHECK: store %[[T]]
replay.kernel @splat_of_constant(%i: i32) num_warps(1) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !vector
  %x = arith.constant 2.0 : f32
  %t = replay.splat %x : f32 -> tensor<16xf32>
  replay.store %t, %v[%i] : tensor<16xf32>, !vector
  replay.return
}

// CHECK-LABEL: replay.kernel @splat_of_unknown(
// CHECK: splat
replay.kernel @splat_of_unknown(%i: i32, %x: f32) num_warps(1) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !vector
  %t = replay.splat %x : f32 -> tensor<16xf32>
  replay.store %t, %v[%i] : tensor<16xf32>, !vector
  replay.return
}

// CHECK-LABEL: replay.kernel @broadcast_of_constant(
// CHECK: %[[T:.*]] = arith.constant dense<2.000000e+00> : tensor<16x128xf32>
// CHECK-NOT: broadcast
// CHECK: store %[[T]]
replay.kernel @broadcast_of_constant(%i: i32) num_warps(1) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !matrix
  %x = arith.constant dense<2.0> : tensor<16x1xf32>
  %t = replay.broadcast %x : tensor<16x1xf32> -> tensor<16x128xf32>
  replay.store %t, %v[%i, %i] : tensor<16x128xf32>, !matrix
  replay.return
}

// CHECK-LABEL: replay.kernel @broadcast_to_itself(
// CHECK: %[[V:.*]]:2 = builtin
// CHECK-NOT: broadcast
// CHECK: store %[[V]]#0
replay.kernel @broadcast_to_itself(%i: i32) num_warps(1) blocks_per_row(1) {
  %t, %v = builtin.unrealized_conversion_cast to tensor<16x128xf32>, !matrix
  %b = replay.broadcast %t : tensor<16x128xf32> -> tensor<16x128xf32>
  replay.store %b, %v[%i, %i] : tensor<16x128xf32>, !matrix
  replay.return
}

// CHECK-LABEL: replay.kernel @broadcast_of_unknown(
// CHECK: broadcast
replay.kernel @broadcast_of_unknown(%i: i32) num_warps(1) blocks_per_row(1) {
  %t, %v = builtin.unrealized_conversion_cast to tensor<16x1xf32>, !matrix
  %b = replay.broadcast %t : tensor<16x1xf32> -> tensor<16x128xf32>
  replay.store %b, %v[%i, %i] : tensor<16x128xf32>, !matrix
  replay.return
}

// CHECK-LABEL: replay.kernel @slice_of_all(
// CHECK: %[[V:.*]]:2 = builtin
// CHECK-NOT: slice
// CHECK: store %[[V]]#0
replay.kernel @slice_of_all(%i: i32) num_warps(1) blocks_per_row(1) {
  %t, %v = builtin.unrealized_conversion_cast to tensor<16xf32>, !vector
  %s = replay.slice %t[%i] : tensor<16xf32> -> tensor<16xf32>
  replay.store %s, %v[%i] : tensor<16xf32>, !vector
  replay.return
}

// CHECK-LABEL: replay.kernel @slice_of_some(
// CHECK: slice
replay.kernel @slice_of_some(%i: i32) num_warps(1) blocks_per_row(1) {
  %t, %v = builtin.unrealized_conversion_cast to tensor<32xf32>, !vector
  %s = replay.slice %t[%i] : tensor<32xf32> -> tensor<16xf32>
  replay.store %s, %v[%i] : tensor<16xf32>, !vector
  replay.return
}

// CHECK-LABEL: replay.kernel @convert_to_itself(
// CHECK: %[[V:.*]]:2 = builtin
// CHECK-NOT: convert_layout
// CHECK: store %[[V]]#0
replay.kernel @convert_to_itself(%i: i32) num_warps(1) blocks_per_row(1) {
  %t, %v = builtin.unrealized_conversion_cast to tensor<16xf32, #a>, !vector
  %c = replay.convert_layout %t : tensor<16xf32, #a> -> tensor<16xf32, #a>
  replay.store %c, %v[%i] : tensor<16xf32, #a>, !vector
  replay.return
}

// The constant takes the layout that it is wanted in.
// CHECK-LABEL: replay.kernel @convert_of_constant(
// CHECK: %[[T:.*]] = arith.constant dense<2.000000e+00> : tensor<16xf32, #replay.layout<register = [], lane =
// CHECK-NOT: convert_layout
// CHECK: store %[[T]]
replay.kernel @convert_of_constant(%i: i32) num_warps(1) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !vector
  %t = arith.constant dense<2.0> : tensor<16xf32, #a>
  %c = replay.convert_layout %t : tensor<16xf32, #a> -> tensor<16xf32, #b>
  replay.store %c, %v[%i] : tensor<16xf32, #b>, !vector
  replay.return
}

// CHECK-LABEL: replay.kernel @convert_of_unknown(
// CHECK: convert_layout
replay.kernel @convert_of_unknown(%i: i32) num_warps(1) blocks_per_row(1) {
  %t, %v = builtin.unrealized_conversion_cast to tensor<16xf32, #a>, !vector
  %c = replay.convert_layout %t : tensor<16xf32, #a> -> tensor<16xf32, #b>
  replay.store %c, %v[%i] : tensor<16xf32, #b>, !vector
  replay.return
}

// An unused load of a tile may go; a store stays.
// CHECK-LABEL: replay.kernel @unused(
// CHECK-NOT: load
// CHECK: store
replay.kernel @unused(%i: i32, %x: f32) num_warps(1) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !vector
  %t = replay.load %v[%i] : !vector -> tensor<16xf32>
  replay.store %x, %v[%i] : f32, !vector
  replay.return
}
