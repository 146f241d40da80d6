// RUN: replay-opt %s --convert-replay-to-nvvm --cse --canonicalize | FileCheck %s

#tile = #replay.layout<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0]]>
!view = !replay.view<8x32xf32, strides [32, 1], align 16>
!stage = !replay.view<8x32xf32, strides [32, 1], align 16, shared>
!buffer = !replay.buffer<8x32xf32>

!rows = !replay.view<?x32xf32, strides [-32, 1], align 16>
!stagedRows = !replay.view<?x32xf32, strides [-32, 1], align 16, shared>
!few = !replay.buffer<6x32xf32>

// Threads meet once for both buffers, of 768 and 1024 bytes and a barrier of 8
// each. Each copy has a warp of its own.
// CHECK-LABEL: llvm.func @buffers(
// CHECK-SAME: %[[P:.*]]: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>, %{{.*}}: i64, %[[M:.*]]: i32)
// CHECK-SAME: replay.shared_bytes = 1928 : i32
// CHECK-SAME: replay.threads = 64 : i32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[WARP:.*]] = arith.constant 32 : i32
// CHECK-DAG: %[[ROW:.*]] = arith.constant 128 : i32
// CHECK-DAG: %[[BACK:.*]] = arith.constant -128 : i32
// CHECK-DAG: %[[MINUS:.*]] = arith.constant -1 : i64
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[TID:.*]], %[[ZERO]]
// CHECK: scf.if %[[FIRST]]
// CHECK: nvvm.mbarrier.init
// CHECK-NOT: nvvm.mbarrier.init
// CHECK: }
// CHECK: nvvm.mbarrier.init
// CHECK-NOT: nvvm.mbarrier.init
// CHECK: nvvm.barrier
// CHECK-NOT: nvvm.barrier
// Rows that descend: what is copied ends where row 0 lies in memory and in the
// buffer, 640 bytes into it. No rows, no copy.
// CHECK: scf.if %[[FIRST]]
// CHECK-NOT: try_wait
// CHECK:   %[[BYTES:.*]] = arith.muli %[[M]], %[[ROW]]
// CHECK:   nvvm.mbarrier.arrive.expect_tx %{{.*}}, %[[BYTES]]
// CHECK:   arith.cmpi sgt, %[[M]], %[[ZERO]]
// CHECK:   scf.if
// CHECK:     %[[PAST:.*]] = arith.addi %[[BYTES]], %[[BACK]]
// CHECK:     arith.muli %{{.*}}, %[[MINUS]]
// CHECK:     llvm.getelementptr %{{.*}}[640]
// CHECK:     nvvm.cp.async.bulk.shared.cluster.global {{.*}}, %[[BYTES]]
// CHECK: %[[SECOND:.*]] = arith.cmpi eq, %[[TID]], %[[WARP]]
// CHECK: scf.if %[[SECOND]]
// CHECK:   nvvm.cp.async.bulk.shared.cluster.global
// CHECK: }
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK: nvvm.mbarrier.try_wait.parity
// Rows past the size read as zero, without access.
// CHECK: arith.cmpi ult, %{{.*}}, %[[M]]
// CHECK: replay.ld %{{.*}} if %{{.*}} : !llvm.ptr<3> -> f32, f32, f32, f32
// CHECK: replay.ld %{{.*}} : !llvm.ptr<3> -> f32, f32, f32, f32
// CHECK: llvm.return
replay.kernel @buffers(%p: !replay.ptr<f32>, %q: !replay.ptr<f32>, %n: i64, %m: i32)
    num_warps(2) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %few = replay.alloc : !few
  %buf = replay.alloc : !buffer
  %r = replay.view %p offset %n sizes %m at_most 6 : !replay.ptr<f32> -> !rows
  replay.async_copy %r, %few : !rows, !few
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !view
  replay.async_copy %v, %buf : !view, !buffer
  replay.wait %few : !few
  replay.wait %buf : !buffer
  %rs = replay.stage %few size %m : !few -> !stagedRows
  %s = replay.stage %buf : !buffer -> !stage
  %a = replay.load %rs[%c0, %c0] : !stagedRows -> tensor<8x32xf32, #tile>
  %b = replay.load %s[%c0, %c0] : !stage -> tensor<8x32xf32, #tile>
  %sum = arith.addf %a, %b : tensor<8x32xf32, #tile>
  %w = replay.view %q offset %n : !replay.ptr<f32> -> !view
  replay.store %sum, %w[%c0, %c0] : tensor<8x32xf32, #tile>, !view
  replay.return
}
