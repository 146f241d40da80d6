// RUN: replay-opt %s --convert-replay-to-nvvm --cse --canonicalize | FileCheck %s

// 32 rows: 4 in lanes, 8 in registers; a row's 32 elements lie in 8 lanes.
#tile = #replay.layout<register = [[0, 1], [0, 2], [4, 0], [8, 0], [16, 0]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = []>
#sums = #replay.layout<register = [], lane = [[4], [8], [16], [1], [2]], warp = []>
// 4 rows, all in lanes.
#rows = #replay.layout<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = []>
#replicated = #replay.layout<register = [], lane = [[0], [0], [0], [1], [2]], warp = []>
#columns = #replay.layout<register = [[1], [2]], lane = [[4], [8], [16], [0], [0]], warp = []>
// Two warps share a row.
#warps = #replay.layout<register = [], lane = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]], warp = [[0, 8]]>
#warpsums = #replay.layout<register = [], lane = [[0], [0], [0], [1], [2]], warp = [[0]]>
#vector = #replay.layout<register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = []>
#regs = #replay.layout<register = [[1], [2]], lane = [[0], [0], [0], [0], [0]], warp = []>
#regs2 = #replay.layout<register = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = []>
!m = !replay.view<32x32xf32, strides [32, 1], align 16>
!v = !replay.view<64xf32, strides [1], align 16>

// Butterfly: each exchange halves the rows a lane still sums, 4 + 2 + 1 shuffles
// for 8 rows over 3 lane bits, and each lane ends with a row of its own.
// CHECK-LABEL: llvm.func @butterfly(
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : i32
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : i32
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : i32
// Two products meet in a fused multiply-add.
// CHECK-COUNT-24: math.fma
// CHECK-NOT: math.fma
// CHECK-COUNT-4: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %[[C1]],
// CHECK-COUNT-2: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %[[C2]],
// CHECK-COUNT-1: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %[[C4]],
// CHECK-NOT: nvvm.shfl
// CHECK-NOT: nvvm.barrier
// CHECK: replay.st %{{[^,]*}} to %{{[^ ]*}} : !llvm.ptr<1>, f32
// CHECK: llvm.return
replay.kernel @butterfly(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !m
  %w = replay.view %p offset %n : !replay.ptr<f32> -> !v
  %t = replay.load %v[%c0, %c0] : !m -> tensor<32x32xf32, #tile>
  %q = arith.mulf %t, %t : tensor<32x32xf32, #tile>
  %r = replay.reduce %q axis 1 : tensor<32x32xf32, #tile> -> tensor<32xf32, #sums>
  replay.store %r, %w[%c0] : tensor<32xf32, #sums>, !v
  replay.return
}

// With one row a lane group, all its lanes end with the sum.
// CHECK-LABEL: llvm.func @all_lanes(
// CHECK-COUNT-3: arith.addf
// CHECK-COUNT-3: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl
// CHECK-NOT: arith.select
// CHECK: llvm.return
replay.kernel @all_lanes(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !m
  %w = replay.view %p offset %n : !replay.ptr<f32> -> !v
  %t = replay.load %v[%c0, %c0] : !m -> tensor<4x32xf32, #rows>
  %r = replay.reduce %t axis 1 : tensor<4x32xf32, #rows> -> tensor<4xf32, #replicated>
  replay.store %r, %w[%c0] : tensor<4xf32, #replicated>, !v
  replay.return
}

// A sum down the rows: registers first, then the lanes that hold rows.
// CHECK-LABEL: llvm.func @down(
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : i32
// CHECK-DAG: %[[C16:.*]] = arith.constant 16 : i32
// CHECK-COUNT-2: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %[[C8]],
// CHECK-COUNT-1: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %[[C16]],
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.return
replay.kernel @down(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !m
  %w = replay.view %p offset %n : !replay.ptr<f32> -> !v
  %t = replay.load %v[%c0, %c0] : !m -> tensor<4x32xf32, #rows>
  %r = replay.reduce %t axis 0 : tensor<4x32xf32, #rows>
      -> tensor<32xf32, #replay.layout<register = [], lane = [[4], [8], [16], [1], [2]], warp = []>>
  replay.store %r, %w[%c0]
      : tensor<32xf32, #replay.layout<register = [], lane = [[4], [8], [16], [1], [2]], warp = []>>, !v
  replay.return
}

// Across warps through shared memory: 4 rows of 2 partial sums, one barrier.
// CHECK-LABEL: llvm.func @across_warps(
// CHECK-SAME: replay.shared_bytes = 32 : i32
// CHECK-COUNT-3: nvvm.shfl.sync bfly
// CHECK: replay.st {{.*}} : !llvm.ptr<3>, f32
// CHECK: nvvm.barrier
// CHECK-NOT: nvvm.barrier
// CHECK-COUNT-2: replay.ld {{.*}} : !llvm.ptr<3> -> f32
// CHECK: arith.addf
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.return
replay.kernel @across_warps(%p: !replay.ptr<f32>, %n: i64) num_warps(2) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !m
  %w = replay.view %p offset %n : !replay.ptr<f32> -> !v
  %t = replay.load %v[%c0, %c0] : !m -> tensor<4x16xf32, #warps>
  %r = replay.reduce %t axis 1 : tensor<4x16xf32, #warps> -> tensor<4xf32, #warpsums>
  replay.store %r, %w[%c0] : tensor<4xf32, #warpsums>, !v
  replay.return
}

// In a loop another barrier keeps the next round's writes behind this one's reads.
// CHECK-LABEL: llvm.func @across_warps_in_loop(
// CHECK: scf.for
// CHECK: nvvm.barrier
// CHECK: replay.st {{.*}} !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK: replay.ld {{.*}} !llvm.ptr<3>
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.return
replay.kernel @across_warps_in_loop(%p: !replay.ptr<f32>, %n: i64, %m: i32) num_warps(2) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !m
  %w = replay.view %p offset %n : !replay.ptr<f32> -> !v
  scf.for %i = %c0 to %m step %c1 : i32 {
    %t = replay.load %v[%i, %c0] : !m -> tensor<4x16xf32, #warps>
    %r = replay.reduce %t axis 1 : tensor<4x16xf32, #warps> -> tensor<4xf32, #warpsums>
    replay.store %r, %w[%i] : tensor<4xf32, #warpsums>, !v
  }
  replay.return
}

// To a scalar: every lane ends with it.
// CHECK-LABEL: llvm.func @scalar(
// CHECK: arith.addf
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.return
replay.kernel @scalar(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %w = replay.view %p offset %n : !replay.ptr<f32> -> !v
  %x = replay.load %w[%c0] : !v -> tensor<64xf32, #vector>
  %r = replay.reduce %x axis 0 : tensor<64xf32, #vector> -> f32
  replay.store %r, %w[%c0] : f32, !v
  replay.return
}

// A scan adds one element after another.
// CHECK-LABEL: llvm.func @scan(
// CHECK: %[[X:.*]]:4 = replay.ld
// CHECK: %[[S1:.*]] = arith.addf %[[X]]#0, %[[X]]#1
// CHECK: %[[S2:.*]] = arith.addf %[[S1]], %[[X]]#2
// CHECK: %[[S3:.*]] = arith.addf %[[S2]], %[[X]]#3
// CHECK: replay.st %[[X]]#0, %[[S1]], %[[S2]], %[[S3]]
replay.kernel @scan(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %w = replay.view %p offset %n : !replay.ptr<f32> -> !v
  %x = replay.load %w[%c0] : !v -> tensor<4xf32, #regs>
  %s = replay.cumsum %x axis 0 : tensor<4xf32, #regs>
  replay.store %s, %w[%c0] : tensor<4xf32, #regs>, !v
  replay.return
}

// From the end, and without the element itself.
// CHECK-LABEL: llvm.func @scan_exclusive_reverse(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[X:.*]]:4 = replay.ld
// CHECK: %[[S1:.*]] = arith.addf %[[X]]#3, %[[X]]#2
// CHECK: %[[S2:.*]] = arith.addf %[[S1]], %[[X]]#1
// CHECK: replay.st %[[S2]], %[[S1]], %[[X]]#3, %[[ZERO]]
replay.kernel @scan_exclusive_reverse(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %w = replay.view %p offset %n : !replay.ptr<f32> -> !v
  %x = replay.load %w[%c0] : !v -> tensor<4xf32, #regs>
  %s = replay.cumsum %x axis 0 {exclusive, reverse} : tensor<4xf32, #regs>
  replay.store %s, %w[%c0] : tensor<4xf32, #regs>, !v
  replay.return
}

// One scan for each column; columns lie in lanes.
// CHECK-LABEL: llvm.func @scan_of_rows(
// CHECK-COUNT-4: replay.ld
// CHECK-COUNT-3: arith.addf
// CHECK-NOT: arith.addf
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.return
replay.kernel @scan_of_rows(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !m
  %x = replay.load %v[%c0, %c0] : !m -> tensor<4x32xf32, #regs2>
  %s = replay.cumsum %x axis 0 : tensor<4x32xf32, #regs2>
  replay.store %s, %v[%c0, %c0] : tensor<4x32xf32, #regs2>, !m
  replay.return
}
