// RUN: replay-opt %s --replay-unroll-tiles --canonicalize | FileCheck %s

!vector = !replay.view<128xf32, strides [1], align 16>

// CHECK-LABEL: replay.kernel @two_tiles(
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[C64:.*]] = arith.constant 64 : i32
// CHECK-NOT: scf.for
// CHECK: slice %{{.*}}[%[[C0]]]
// CHECK: slice %{{.*}}[%[[C64]]]
// CHECK-NOT: slice
// CHECK: return
replay.kernel @two_tiles() num_warps(1) blocks_per_row(1) {
  %x, %v = builtin.unrealized_conversion_cast to tensor<128xf32>, !vector
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  scf.for %kt = %c0 to %c128 step %c64 : i32 {
    %p = replay.slice %x[%kt] : tensor<128xf32> -> tensor<64xf32>
    replay.store %p, %v[%kt] : tensor<64xf32>, !vector
  } {replay.tiles}
  replay.return
}

// One tile: the loop goes, its carried values stay right.
// CHECK-LABEL: replay.kernel @one_tile(
// CHECK: %[[X:.*]]:3 = builtin
// CHECK-NOT: scf.for
// CHECK: %[[SUM:.*]] = arith.addf %[[X]]#1, %[[X]]#0
// CHECK: store %[[SUM]]
replay.kernel @one_tile() num_warps(1) blocks_per_row(1) {
  %x, %init, %v = builtin.unrealized_conversion_cast to tensor<128xf32>, tensor<128xf32>, !vector
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %sum = scf.for %kt = %c0 to %c128 step %c128 iter_args(%acc = %init) -> (tensor<128xf32>) : i32 {
    %next = arith.addf %acc, %x : tensor<128xf32>
    scf.yield %next : tensor<128xf32>
  } {replay.tiles}
  replay.store %sum, %v[%c0] : tensor<128xf32>, !vector
  replay.return
}

// A loop over something else stays.
// CHECK-LABEL: replay.kernel @unmarked(
// CHECK: scf.for
replay.kernel @unmarked() num_warps(1) blocks_per_row(1) {
  %x, %v = builtin.unrealized_conversion_cast to tensor<64xf32>, !vector
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  scf.for %kt = %c0 to %c128 step %c64 : i32 {
    replay.store %x, %v[%kt] : tensor<64xf32>, !vector
  }
  replay.return
}
