// RUN: replay-opt %s --replay-tile-pipeline --replay-thread-pipeline | FileCheck %s
// RUN: replay-opt %s --replay-tile-pipeline --replay-thread-pipeline --replay-gpu-pipeline | FileCheck %s --check-prefix=GPU
// RUN: replay-opt %s --replay-tile-pipeline --replay-thread-pipeline --replay-host-pipeline | FileCheck %s --check-prefix=HOST

// A staged-level kernel written by hand: y[i] = S[i] x, block i with the 64x128
// tile S[i], which one bulk copy brings to shared memory.

// 32 KiB and a barrier.
// CHECK-LABEL: llvm.func @row_products(
// CHECK-SAME: replay.shared_bytes = 32776 : i32
// CHECK-SAME: replay.threads = 128 : i32
// CHECK: nvvm.mbarrier.init
// CHECK-NOT: nvvm.mbarrier.init
// CHECK: nvvm.barrier
// One copy, announced before it starts.
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK: nvvm.cp.async.bulk.shared.cluster.global
// CHECK-NOT: nvvm.cp.async.bulk
// x on the way meanwhile, in the layout of the tile's columns.
// CHECK-COUNT-4: replay.ld {{.*}} {readonly} : !llvm.ptr<1> -> f32, f32, f32, f32
// CHECK-NOT: !llvm.ptr<1> ->
// CHECK: nvvm.mbarrier.try_wait.parity
// A tile of 64 x 128 over 128 threads in 16 bytes each.
// CHECK-COUNT-16: replay.ld {{.*}} : !llvm.ptr<3> -> f32, f32, f32, f32
// CHECK-COUNT-60: math.fma
// 16 rows a warp, 4 in lanes: 2 + 1 + 1 shuffles for the 4 in registers.
// CHECK-COUNT-4: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl
// CHECK: replay.st
// CHECK: llvm.return

// GPU-LABEL: llvm.func @row_products(
// GPU: cp.async.bulk.shared
// GPU: mbarrier.try_wait.parity
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
    %y: !replay.ptr<f32> {replay.name = "y"}) num_warps(4) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %none = arith.constant 0 : i64
  %tileSize = arith.constant 8192 : i64
  %rows = arith.constant 64 : i64
  %block = replay.program_id x
  %i = arith.extsi %block : i32 to i64
  %tileAt = arith.muli %i, %tileSize : i64
  %yAt = arith.muli %i, %rows : i64

  %buffer = replay.alloc : !replay.buffer<64x128xf32>
  %tileView = replay.view %tiles offset %tileAt : !replay.ptr<f32>
      -> !replay.view<64x128xf32, strides [128, 1], align 16>
  replay.async_copy %tileView, %buffer
      : !replay.view<64x128xf32, strides [128, 1], align 16>, !replay.buffer<64x128xf32>

  %xView = replay.view %x offset %none : !replay.ptr<f32>
      -> !replay.view<128xf32, strides [1], align 16>
  %vector = replay.load %xView[%c0]
      : !replay.view<128xf32, strides [1], align 16> -> tensor<128xf32>
  %thin = replay.expand %vector axis 0 : tensor<128xf32> -> tensor<1x128xf32>
  %wide = replay.broadcast %thin : tensor<1x128xf32> -> tensor<64x128xf32>

  replay.wait %buffer : !replay.buffer<64x128xf32>
  %stage = replay.stage %buffer : !replay.buffer<64x128xf32>
      -> !replay.view<64x128xf32, strides [128, 1], align 16, shared>
  %tile = replay.load %stage[%c0, %c0]
      : !replay.view<64x128xf32, strides [128, 1], align 16, shared>
      -> tensor<64x128xf32>
  %product = arith.mulf %tile, %wide : tensor<64x128xf32>
  %sums = replay.reduce %product axis 1 : tensor<64x128xf32> -> tensor<64xf32>
  %yView = replay.view %y offset %yAt : !replay.ptr<f32>
      -> !replay.view<64xf32, strides [1], align 16>
  replay.store %sums, %yView[%c0] : tensor<64xf32>,
      !replay.view<64xf32, strides [1], align 16>
  replay.return
}
