// RUN: replay-opt %s --convert-replay-to-nvvm --cse --canonicalize | FileCheck %s

#regs = #replay.layout<register = [[1], [2]], lane = [[0], [0], [0], [0], [0]], warp = []>
#reversed = #replay.layout<register = [[2], [1]], lane = [[0], [0], [0], [0], [0]], warp = []>
#lanes = #replay.layout<register = [], lane = [[1], [2], [0], [0], [0]], warp = []>
#regs2 = #replay.layout<register = [[1], [2]], lane = [[0], [0], [0], [0], [0]], warp = [[0]]>
#lanes2 = #replay.layout<register = [], lane = [[1], [0], [0], [0], [0]], warp = [[2]]>
#rows = #replay.layout<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0]]>
#columns = #replay.layout<register = [[1, 0], [2, 0]], lane = [[4, 0], [0, 1], [0, 2], [0, 4], [0, 8]], warp = [[0, 16]]>
!v = !replay.view<4xf32, strides [1], align 16>
!m = !replay.view<8x32xf32, strides [32, 1], align 16>

// Registers in another order: nothing moves.
// CHECK-LABEL: llvm.func @reorder(
// CHECK-SAME: replay.shared_bytes = 0 : i32
// CHECK: %[[X:.*]]:4 = replay.ld
// CHECK-NOT: arith.select
// CHECK: replay.st %[[X]]#0 to
// CHECK: replay.st %[[X]]#2 to
// CHECK: replay.st %[[X]]#1 to
// CHECK: replay.st %[[X]]#3 to
replay.kernel @reorder(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !v
  %x = replay.load %v[%c0] : !v -> tensor<4xf32, #regs>
  %y = replay.convert_layout %x : tensor<4xf32, #regs> -> tensor<4xf32, #reversed>
  replay.store %y, %v[%c0] : tensor<4xf32, #reversed>, !v
  replay.return
}

// What every thread holds, a thread picks from by selects: 2 + 1 for 4 registers.
// CHECK-LABEL: llvm.func @selects(
// CHECK-SAME: replay.shared_bytes = 0 : i32
// CHECK: %[[X:.*]]:4 = replay.ld
// CHECK-DAG: %[[LOW:.*]] = arith.select %[[ODD:.*]], %[[X]]#1, %[[X]]#0
// CHECK-DAG: %[[HIGH:.*]] = arith.select %[[ODD]], %[[X]]#3, %[[X]]#2
// CHECK: %[[MINE:.*]] = arith.select %{{.*}}, %[[HIGH]], %[[LOW]]
// CHECK-NOT: arith.select
// CHECK-NOT: nvvm.barrier
// CHECK: replay.st %[[MINE]] to
replay.kernel @selects(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !v
  %x = replay.load %v[%c0] : !v -> tensor<4xf32, #regs>
  %y = replay.convert_layout %x : tensor<4xf32, #regs> -> tensor<4xf32, #lanes>
  replay.store %y, %v[%c0] : tensor<4xf32, #lanes>, !v
  replay.return
}

// Bits of the warp's number serve as well.
// CHECK-LABEL: llvm.func @selects_by_warp(
// CHECK-SAME: replay.shared_bytes = 0 : i32
// CHECK-COUNT-3: arith.select
// CHECK-NOT: arith.select
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.return
replay.kernel @selects_by_warp(%p: !replay.ptr<f32>, %n: i64) num_warps(2) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !v
  %x = replay.load %v[%c0] : !v -> tensor<4xf32, #regs2>
  %y = replay.convert_layout %x : tensor<4xf32, #regs2> -> tensor<4xf32, #lanes2>
  replay.store %y, %v[%c0] : tensor<4xf32, #lanes2>, !v
  replay.return
}

// Everything else goes through shared memory: 8 x 32 x 4 bytes, one barrier.
// CHECK-LABEL: llvm.func @shared(
// CHECK-SAME: replay.shared_bytes = 1024 : i32
// CHECK: llvm.mlir.addressof @global_smem
// CHECK: replay.st {{.*}} : !llvm.ptr<3>, f32, f32, f32, f32
// CHECK: nvvm.barrier
// CHECK-COUNT-4: replay.ld {{.*}} : !llvm.ptr<3> -> f32
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.return
replay.kernel @shared(%p: !replay.ptr<f32>, %n: i64) num_warps(2) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !m
  %x = replay.load %v[%c0, %c0] : !m -> tensor<8x32xf32, #rows>
  %y = replay.convert_layout %x : tensor<8x32xf32, #rows> -> tensor<8x32xf32, #columns>
  replay.store %y, %v[%c0, %c0] : tensor<8x32xf32, #columns>, !m
  replay.return
}

// One warp needs no barrier of the block.
// CHECK-LABEL: llvm.func @one_warp(
// CHECK: replay.st {{.*}} !llvm.ptr<3>
// CHECK-NOT: nvvm.barrier
// CHECK: nvvm.bar.warp.sync
// CHECK: replay.ld {{.*}} !llvm.ptr<3>
// CHECK: llvm.return
replay.kernel @one_warp(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !v
  %x = replay.load %v[%c0] : !v -> tensor<4xf32, #lanes>
  %y = replay.convert_layout %x : tensor<4xf32, #lanes> -> tensor<4xf32, #regs>
  replay.store %y, %v[%c0] : tensor<4xf32, #regs>, !v
  replay.return
}

// Two exchanges use two pieces of shared memory, so that none waits for the other.
// CHECK-LABEL: llvm.func @two(
// CHECK-SAME: replay.shared_bytes = 2048 : i32
// CHECK-COUNT-2: nvvm.barrier
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.return
replay.kernel @two(%p: !replay.ptr<f32>, %n: i64) num_warps(2) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !m
  %x = replay.load %v[%c0, %c0] : !m -> tensor<8x32xf32, #rows>
  %y = replay.convert_layout %x : tensor<8x32xf32, #rows> -> tensor<8x32xf32, #columns>
  %e = arith.addf %y, %y : tensor<8x32xf32, #columns>
  %z = replay.convert_layout %e : tensor<8x32xf32, #columns> -> tensor<8x32xf32, #rows>
  replay.store %z, %v[%c0, %c0] : tensor<8x32xf32, #rows>, !m
  replay.return
}
