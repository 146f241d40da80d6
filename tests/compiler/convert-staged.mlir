// RUN: replay-opt %s --convert-replay-to-nvvm --cse --canonicalize | FileCheck %s

#tile = #replay.layout<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0]]>
!view = !replay.view<8x32xf32, strides [32, 1], align 16>
!pitched = !replay.view<8x32xf32, strides [64, 1], align 16>
!stage = !replay.view<8x32xf32, strides [32, 1], align 16, shared>
!buffer = !replay.buffer<2 x 8x32xf32>

// Two stages of 1024 bytes, then 2 x 2 barriers of 8. "Full" waits for one
// arrival, "empty" for one a consumer warp. A warp more than num_warps runs.
// CHECK-LABEL: llvm.func @stages(
// CHECK-SAME: replay.shared_bytes = 2080 : i32
// CHECK-SAME: replay.threads = 96 : i32
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-DAG: %[[WARPS:.*]] = arith.constant 2 : i32
// CHECK-DAG: %[[THREADS:.*]] = arith.constant 64 : i32
// CHECK-DAG: %[[BYTES:.*]] = arith.constant 1024 : i32
// CHECK: %[[BASE:.*]] = llvm.mlir.addressof @global_smem
// CHECK: scf.if
// CHECK:   %[[FULL0:.*]] = llvm.getelementptr %[[BASE]][2048]
// CHECK:   nvvm.mbarrier.init %[[FULL0]], %[[ONE]]
// CHECK:   %[[FULL1:.*]] = llvm.getelementptr %[[BASE]][2056]
// CHECK:   nvvm.mbarrier.init %[[FULL1]], %[[ONE]]
// CHECK:   %[[EMPTY0:.*]] = llvm.getelementptr %[[BASE]][2064]
// CHECK:   nvvm.mbarrier.init %[[EMPTY0]], %[[THREADS]]
// CHECK:   %[[EMPTY1:.*]] = llvm.getelementptr %[[BASE]][2072]
// CHECK:   nvvm.mbarrier.init %[[EMPTY1]], %[[THREADS]]
// CHECK: }
// CHECK: nvvm.fence.mbarrier.init
// Both roles meet once.
// CHECK: nvvm.barrier
// CHECK-NOT: nvvm.barrier
// The producer is the warp after the consumers. One lane of it waits for the
// stage to be empty, announces its bytes and starts one copy.
// CHECK: arith.cmpi eq, %{{.*}}, %[[WARPS]]
// CHECK: scf.if
// CHECK:   scf.if
// CHECK:     nvvm.mbarrier.try_wait.parity
// CHECK:     nvvm.mbarrier.arrive.expect_tx %[[FULL:.*]], %[[BYTES]]
// CHECK:     nvvm.cp.async.bulk.shared.cluster.global {{.*}}, %[[FULL]], %[[BYTES]]
// CHECK-NOT: nvvm.cp.async.bulk
// The consumers wait for it to be full, read 16 bytes a thread, and each thread
// says that it has read.
// CHECK: } else {
// CHECK:   nvvm.mbarrier.try_wait.parity
// CHECK:   replay.ld %{{.*}} : !llvm.ptr<3> -> f32, f32, f32, f32
// CHECK-NOT: scf.if
// CHECK:   nvvm.mbarrier.arrive
// CHECK:   replay.st
// CHECK: }
// CHECK: llvm.return
replay.kernel @stages(%p: !replay.ptr<f32>, %q: !replay.ptr<f32>, %n: i64, %item: i32)
    num_warps(2) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !view
  %w = replay.view %q offset %n : !replay.ptr<f32> -> !view
  %buf = replay.alloc : !buffer
  replay.roles producer {
    replay.async_copy %v, %buf[%item] : !view, !buffer
  } consumer {
    replay.wait %buf[%item] : !buffer
    %s = replay.stage %buf[%item] : !buffer -> !stage
    %t = replay.load %s[%c0, %c0] : !stage -> tensor<8x32xf32, #tile>
    replay.release %buf[%item] : !buffer
    replay.store %t, %w[%c0, %c0] : tensor<8x32xf32, #tile>, !view
  }
  replay.return
}

// Rows that are not adjacent are copied one by one and announced together.
// CHECK-LABEL: llvm.func @pitched(
// CHECK-DAG: %[[ROW:.*]] = arith.constant 128 : i32
// CHECK-DAG: %[[BYTES:.*]] = arith.constant 1024 : i32
// CHECK: nvvm.mbarrier.arrive.expect_tx %[[FULL:.*]], %[[BYTES]]
// CHECK-COUNT-8: nvvm.cp.async.bulk.shared.cluster.global {{.*}}, %[[ROW]]
// CHECK-NOT: nvvm.cp.async.bulk
// CHECK: llvm.return
replay.kernel @pitched(%p: !replay.ptr<f32>, %n: i64, %item: i32) num_warps(2) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !pitched
  %buf = replay.alloc : !buffer
  replay.roles producer {
    replay.async_copy %v, %buf[%item] : !pitched, !buffer
  } consumer {
    replay.wait %buf[%item] : !buffer
    replay.release %buf[%item] : !buffer
  }
  replay.return
}

// Consumers that exchange meet at a barrier of their own, without the producer:
// number 1, for 64 threads.
// CHECK-LABEL: llvm.func @consumers_meet(
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-DAG: %[[THREADS:.*]] = arith.constant 64 : i32
// CHECK: nvvm.barrier{{$}}
// CHECK: nvvm.barrier id = %[[ONE]] number_of_threads = %[[THREADS]]
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.return
replay.kernel @consumers_meet(%p: !replay.ptr<f32>, %q: !replay.ptr<f32>, %n: i64, %item: i32)
    num_warps(2) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !view
  %w = replay.view %q offset %n : !replay.ptr<f32> -> !replay.view<32xf32, strides [1]>
  %buf = replay.alloc : !buffer
  replay.roles producer {
    replay.async_copy %v, %buf[%item] : !view, !buffer
  } consumer {
    replay.wait %buf[%item] : !buffer
    %s = replay.stage %buf[%item] : !buffer -> !stage
    %t = replay.load %s[%c0, %c0] : !stage -> tensor<8x32xf32, #tile>
    replay.release %buf[%item] : !buffer
    %r = replay.reduce %t axis 0 : tensor<8x32xf32, #tile>
        -> tensor<32xf32, #replay.layout<register = [], lane = [[4], [8], [16], [1], [2]], warp = [[0]]>>
    replay.store %r, %w[%c0] : tensor<32xf32, #replay.layout<register = [], lane = [[4], [8], [16], [1], [2]], warp = [[0]]>>,
        !replay.view<32xf32, strides [1]>
  }
  replay.return
}

!rows = !replay.view<?x32xf32, strides [-32, 1], align 16>
!stagedRows = !replay.view<?x32xf32, strides [-32, 1], align 16, shared>
!few = !replay.buffer<1 x 6x32xf32>

// Without roles the block's threads copy and wait: no thread more, no barrier
// that says "empty", and threads meet once for both buffers (768 + 16 and 2 x
// 1024 + 32 bytes). Each copy has a warp of its own.
// CHECK-LABEL: llvm.func @without_roles(
// CHECK-SAME: %[[P:.*]]: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>, %{{.*}}: i64, %[[M:.*]]: i32)
// CHECK-SAME: replay.shared_bytes = 2976 : i32
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
// CHECK: nvvm.mbarrier.init
// CHECK-NOT: nvvm.mbarrier.init
// CHECK: nvvm.barrier
// CHECK-NOT: nvvm.barrier
// Rows that descend: what is copied ends where row 0 lies in memory and in the
// stage, 640 bytes into it. No rows, no copy.
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
replay.kernel @without_roles(%p: !replay.ptr<f32>, %q: !replay.ptr<f32>, %n: i64, %m: i32)
    num_warps(2) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %few = replay.alloc : !few
  %buf = replay.alloc : !buffer
  %r = replay.view %p offset %n sizes %m at_most 6 : !replay.ptr<f32> -> !rows
  replay.async_copy %r, %few[%c0] : !rows, !few
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !view
  replay.async_copy %v, %buf[%c0] : !view, !buffer
  replay.wait %few[%c0] : !few
  replay.wait %buf[%c0] : !buffer
  %rs = replay.stage %few[%c0] size %m : !few -> !stagedRows
  %s = replay.stage %buf[%c0] : !buffer -> !stage
  %a = replay.load %rs[%c0, %c0] : !stagedRows -> tensor<8x32xf32, #tile>
  %b = replay.load %s[%c0, %c0] : !stage -> tensor<8x32xf32, #tile>
  %sum = arith.addf %a, %b : tensor<8x32xf32, #tile>
  %w = replay.view %q offset %n : !replay.ptr<f32> -> !view
  replay.store %sum, %w[%c0, %c0] : tensor<8x32xf32, #tile>, !view
  replay.return
}
