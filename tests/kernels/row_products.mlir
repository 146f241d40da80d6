// RUN: replay-opt %s --replay-tile-pipeline --replay-thread-pipeline | FileCheck %s
// RUN: replay-opt %s --replay-tile-pipeline --replay-thread-pipeline --replay-gpu-pipeline | FileCheck %s --check-prefix=GPU
// RUN: replay-opt %s --replay-tile-pipeline --replay-thread-pipeline --replay-host-pipeline | FileCheck %s --check-prefix=HOST

// A staged-level kernel written by hand: y[i] = S[i] x for a stream of 64x128
// tiles. A producer warp copies tile after tile into a ring of two stages; four
// consumer warps multiply. Every block takes items pid, pid + grid, ..

// Five warps; two stages of 32 KiB and four barriers.
// CHECK-LABEL: llvm.func @row_products(
// CHECK-SAME: replay.shared_bytes = 65568 : i32
// CHECK-SAME: replay.threads = 160 : i32
// CHECK-COUNT-4: nvvm.mbarrier.init
// CHECK: nvvm.barrier
// The producer: one copy an item, rows adjacent.
// CHECK: scf.for
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK: nvvm.cp.async.bulk.shared.cluster.global
// CHECK-NOT: nvvm.cp.async.bulk
// CHECK: } else {
// The consumers: x once, in the layout of the tile's columns.
// CHECK-COUNT-4: replay.ld {{.*}} {readonly} : !llvm.ptr<1> -> f32, f32, f32, f32
// CHECK-NOT: !llvm.ptr<1> ->
// CHECK: scf.for
// CHECK: nvvm.mbarrier.try_wait.parity
// A tile of 64 x 128 over 128 threads in 16 bytes each.
// CHECK-COUNT-16: replay.ld {{.*}} : !llvm.ptr<3> -> f32, f32, f32, f32
// CHECK: nvvm.mbarrier.arrive
// CHECK-COUNT-60: math.fma
// 16 rows a warp, 4 in lanes: 2 + 1 + 1 shuffles for the 4 in registers.
// CHECK-COUNT-4: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl
// CHECK: replay.st
// CHECK: llvm.return

// GPU-LABEL: llvm.func @row_products(
// GPU: mbarrier.try_wait.parity
// GPU: cp.async.bulk.shared
// GPU: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// GPU-NOT: unrealized_conversion_cast
// GPU-NOT: replay.ld

// HOST: replay.sites = [
// HOST-LABEL: llvm.func @row_products(
// HOST: llvm.call @replayjit_emu_mbarrier_init(
// HOST: llvm.call @replayjit_emu_bulk_copy(
// HOST: llvm.call @replayjit_emu_mbarrier_wait(
// HOST: llvm.call @replayjit_emu_shuffle(
// HOST-LABEL: llvm.func @row_products_host(

replay.kernel @row_products(
    %tiles: !replay.ptr<f32> {replay.name = "tiles", replay.readonly},
    %x: !replay.ptr<f32> {replay.name = "x", replay.readonly},
    %y: !replay.ptr<f32> {replay.name = "y"},
    %items: i32 {replay.name = "items"}) num_warps(4) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant 0 : i64
  %tileSize = arith.constant 8192 : i64
  %rows = arith.constant 64 : i64
  %first = replay.program_id x
  %step = replay.num_programs x
  %buffer = replay.alloc : !replay.buffer<2 x 64x128xf32>
  replay.roles producer {
    scf.for %i = %first to %items step %step iter_args(%n = %c0) -> (i32) : i32 {
      %i64 = arith.extsi %i : i32 to i64
      %at = arith.muli %i64, %tileSize : i64
      %tile = replay.view %tiles offset %at : !replay.ptr<f32>
          -> !replay.view<64x128xf32, strides [128, 1], align 16>
      replay.async_copy %tile, %buffer[%n]
          : !replay.view<64x128xf32, strides [128, 1], align 16>,
            !replay.buffer<2 x 64x128xf32>
      %next = arith.addi %n, %c1 : i32
      scf.yield %next : i32
    }
  } consumer {
    %xView = replay.view %x offset %none : !replay.ptr<f32>
        -> !replay.view<128xf32, strides [1], align 16>
    %vector = replay.load %xView[%c0]
        : !replay.view<128xf32, strides [1], align 16> -> tensor<128xf32>
    %thin = replay.expand %vector axis 0 : tensor<128xf32> -> tensor<1x128xf32>
    %wide = replay.broadcast %thin : tensor<1x128xf32> -> tensor<64x128xf32>
    scf.for %i = %first to %items step %step iter_args(%n = %c0) -> (i32) : i32 {
      replay.wait %buffer[%n] : !replay.buffer<2 x 64x128xf32>
      %stage = replay.stage %buffer[%n] : !replay.buffer<2 x 64x128xf32>
          -> !replay.view<64x128xf32, strides [128, 1], align 16, shared>
      %tile = replay.load %stage[%c0, %c0]
          : !replay.view<64x128xf32, strides [128, 1], align 16, shared>
          -> tensor<64x128xf32>
      replay.release %buffer[%n] : !replay.buffer<2 x 64x128xf32>
      %product = arith.mulf %tile, %wide : tensor<64x128xf32>
      %sums = replay.reduce %product axis 1
          : tensor<64x128xf32> -> tensor<64xf32>
      %i64 = arith.extsi %i : i32 to i64
      %at = arith.muli %i64, %rows : i64
      %yView = replay.view %y offset %at : !replay.ptr<f32>
          -> !replay.view<64xf32, strides [1], align 16>
      replay.store %sums, %yView[%c0] : tensor<64xf32>,
          !replay.view<64xf32, strides [1], align 16>
      %next = arith.addi %n, %c1 : i32
      scf.yield %next : i32
    }
  }
  replay.return
}
