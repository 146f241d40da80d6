// How a use reads the state is its attribute: output-only and 4 rows a step here,
// by dots, or 32 columns at a time and 8 rows a step, where sed writes that.
//
// RUN: replay-opt %s --replay-expand-state | FileCheck %s --check-prefixes=CHECK,OUT
// RUN: sed 's/{block_k = 128 : i32}/{rebuild = #replay<precision bf16>}/; s/{rows = 4 : i32}/{precision = #replay<precision bf16>}/' %s | replay-opt --replay-expand-state | FileCheck %s --check-prefixes=CHECK,REBUILD
// RUN: sed 's/{block_k = 128 : i32}/{block_k = 32 : i32}/; s/{rows = 4 : i32}/{block_k = 32 : i32, rows = 8 : i32}/' %s | replay-opt --replay-expand-state | FileCheck %s --check-prefix=TILES

!checkpoint = !replay.view<32x128xf32, strides [128, 1], align 16>
!d = !replay.view<?x32xf32, strides [-128, 1], align 16>
!k = !replay.view<?x128xbf16, strides [-128, 1], align 16>
!gates = !replay.view<?xf32, strides [-1]>

// Output-only: S x = A (S0 x) + sum_j d_j W_j (k_j . x), and no state is formed.
// CHECK-LABEL: replay.kernel @readout(
// CHECK-NOT: reconstruct
// The decays, once: W is exp of the running sum of newer gates, A of all.
// CHECK: %[[GATES:.*]] = load {{.*}} : <?xf32, strides [-1]> -> tensor<16xf32>
// CHECK: %[[LATER:.*]] = cumsum %[[GATES]] axis 0 {exclusive}
// CHECK: %[[W:.*]] = math.exp %[[LATER]]
// CHECK: %[[SUM:.*]] = reduce %[[GATES]] axis 0 : tensor<16xf32> -> f32
// CHECK: %[[A:.*]] = math.exp %[[SUM]] : f32
// OUT: %[[S0X:.*]] = scf.for
// OUT:   %[[TILE:.*]] = replay.load {{.*}} -> tensor<32x128xf32>
// OUT:   %[[PRODUCT:.*]] = arith.mulf %[[TILE]],
// OUT:   reduce %[[PRODUCT]] axis 1
// OUT: } {replay.tiles}
// OUT-DAG: %[[KROWS:.*]] = load {{.*}} -> tensor<16x128xbf16>
// OUT-DAG: %[[KWIDE:.*]] = arith.extf %[[KROWS]]
// OUT-DAG: %[[DROWS:.*]] = load {{.*}} -> tensor<16x32xf32>
// OUT: %[[KX:.*]] = arith.mulf %[[KWIDE]],
// OUT: %[[SCORES:.*]] = reduce %[[KX]] axis 1 : tensor<16x128xf32> -> tensor<16xf32>
// OUT: %[[WEIGHTED:.*]] = arith.mulf %[[SCORES]], %[[W]]
// OUT: %[[SPREAD:.*]] = expand %[[WEIGHTED]] axis 1
// OUT: arith.mulf %[[DROWS]],
// OUT: %[[RING:.*]] = reduce {{.*}} axis 0 : tensor<16x32xf32> -> tensor<32xf32>
// OUT: %[[DECAY:.*]] = splat %[[A]]
// OUT: %[[Y:.*]] = math.fma %[[S0X]], %[[DECAY]], %[[RING]]
// OUT: store %[[Y]]
// OUT-NOT: dot

// Rebuild: each tile is S0 A + (W d)^T k, formed once for all vectors.
// REBUILD: %[[Y:.*]] = scf.for
// REBUILD:   %[[TILE:.*]] = replay.load {{.*}} -> tensor<32x128xf32>
// REBUILD:   %[[DROWS:.*]] = replay.load {{.*}} -> tensor<16x32xf32>
// REBUILD:   %[[KROWS:.*]] = replay.load {{.*}} -> tensor<16x128xbf16>
// REBUILD:   %[[KWIDE:.*]] = arith.extf %[[KROWS]]
// REBUILD:   replay.expand %[[W]] axis 1
// REBUILD:   %[[WD:.*]] = arith.mulf %[[DROWS]],
// REBUILD:   %[[DECAYED:.*]] = arith.mulf %[[TILE]],
// REBUILD:   %[[WDT:.*]] = replay.transpose %[[WD]]
// REBUILD:   %[[S:.*]] = replay.dot %[[WDT]], %[[KWIDE]], %[[DECAYED]] precision bf16
// REBUILD:   %[[PRODUCT:.*]] = arith.mulf %[[S]],
// REBUILD:   reduce %[[PRODUCT]] axis 1
// REBUILD: } {replay.tiles}
// REBUILD: store %[[Y]]

// Four tiles of 32 columns; the vector is cut where the tile starts.
// TILES-LABEL: replay.kernel @readout(
// TILES-DAG: %[[C0:.*]] = arith.constant 0 : i32
// TILES-DAG: %[[C32:.*]] = arith.constant 32 : i32
// TILES-DAG: %[[C128:.*]] = arith.constant 128 : i32
// TILES: scf.for %[[COLUMN:.*]] = %{{.*}} to %[[C128]] step %[[C32]]
// TILES:   replay.load %{{.*}}[%{{.*}}, %[[COLUMN]]] {{.*}} -> tensor<32x32xf32>
// TILES:   replay.slice %{{.*}}[%[[COLUMN]]] : tensor<128xf32> -> tensor<32xf32>
// TILES: } {replay.tiles}
replay.kernel @readout(%m: i32) num_warps(4) blocks_per_row(1) {
  %s0, %d, %k, %g, %x, %out = builtin.unrealized_conversion_cast to
      !checkpoint, !d, !k, !gates, tensor<128xf32>, !replay.view<32xf32, strides [1]>
  %c0 = arith.constant 0 : i32
  %s = replay.reconstruct %s0 rows %m of %d, %k gates %g {depth = 16 : i32}
      : !checkpoint, !d, !k, !gates -> !replay.state<32x128>
  %y = replay.contract %s, %x {block_k = 128 : i32} : !replay.state<32x128>, tensor<128xf32> -> tensor<32xf32>
  replay.store %y, %out[%c0] : tensor<32xf32>, !replay.view<32xf32, strides [1]>
  replay.return
}

// Two vectors share one walk over the state.
// CHECK-LABEL: replay.kernel @two_vectors(
// CHECK: scf.for {{.*}} -> (tensor<32xf32>, tensor<32xf32>)
// CHECK-COUNT-1: -> tensor<32x128xf32>
// CHECK: reduce
// CHECK: reduce
// CHECK-NOT: scf.for
// CHECK: return
replay.kernel @two_vectors() num_warps(4) blocks_per_row(1) {
  %s0, %xq, %xk, %out = builtin.unrealized_conversion_cast to !checkpoint,
      tensor<128xf32>, tensor<128xf32>, !replay.view<32xf32, strides [1]>
  %c0 = arith.constant 0 : i32
  %s = replay.reconstruct %s0 {depth = 1 : i32} : !checkpoint -> !replay.state<32x128>
  %o, %u = replay.contract %s, %xq, %xk {block_k = 128 : i32} : !replay.state<32x128>,
      tensor<128xf32>, tensor<128xf32> -> tensor<32xf32>, tensor<32xf32>
  %sum = arith.addf %o, %u : tensor<32xf32>
  replay.store %sum, %out[%c0] : tensor<32xf32>, !replay.view<32xf32, strides [1]>
  replay.return
}

// A flush stores S decay + d k^T, once for each tile.
// CHECK-LABEL: replay.kernel @flush(
// CHECK-SAME: %[[M:.*]]: i32, %[[ALPHA:.*]]: f32
// CHECK: scf.for %[[COLUMN:.*]] =
// CHECK: %[[TILE:.*]] = replay.load {{.*}}, %[[COLUMN]]] {{.*}} -> tensor<32x128xf32>
// OUT:   %[[DECAYED:.*]] = arith.mulf %[[TILE]],
// Rows in chunks of 4; the loop carries the sum of the gates so far.
// OUT:   %[[FOUR:.*]] = arith.constant 4 : i32
// OUT:   %[[S:.*]]:2 = scf.for %[[ROW:.*]] = %{{.*}} to %[[M]] step %[[FOUR]] iter_args(%[[ACC:.*]] = %[[DECAYED]], %[[NEWER:.*]] = %{{.*}})
// OUT:     %[[GATES:.*]] = replay.load %{{.*}}[%[[ROW]]] {{.*}} -> tensor<4xf32>
// OUT-DAG: %[[LATER:.*]] = replay.cumsum %[[GATES]] axis 0 {exclusive}
// OUT-DAG: %[[BASE:.*]] = replay.splat %[[NEWER]]
// OUT:     %[[LOG:.*]] = arith.addf %[[LATER]], %[[BASE]]
// OUT:     math.exp %[[LOG]]
// OUT:     %[[NEXT:.*]] = replay.dot {{.*}}, %[[ACC]] precision ieee
// OUT:     %[[SUM:.*]] = replay.reduce %[[GATES]] axis 0
// OUT:     %[[TOTAL:.*]] = arith.addf %[[NEWER]], %[[SUM]]
// OUT:     scf.yield %[[NEXT]], %[[TOTAL]]
// OUT:   %[[AGED:.*]] = arith.mulf %[[S]]#0,
// REBUILD: %[[S:.*]] = replay.dot {{.*}} precision bf16
// REBUILD: %[[AGED:.*]] = arith.mulf %[[S]],
// CHECK: %[[NEW:.*]] = math.fma %{{.*}}, %{{.*}}, %[[AGED]]
// CHECK: replay.store %[[NEW]], %{{.*}}[%{{.*}}, %[[COLUMN]]]
// CHECK-NOT: store
// CHECK: } {replay.tiles}

// TILES-LABEL: replay.kernel @flush(
// TILES: %[[EIGHT:.*]] = arith.constant 8 : i32
// TILES: scf.for {{.*}} step %[[EIGHT]]
// TILES: replay.dot {{.*}} : tensor<32x8xf32>, tensor<8x32xf32>, tensor<32x32xf32>

replay.kernel @flush(%m: i32, %alpha: f32) num_warps(4) blocks_per_row(1) {
  %s0, %d, %k, %g, %dt, %kt = builtin.unrealized_conversion_cast to
      !checkpoint, !d, !k, !gates, tensor<32xf32>, tensor<128xf32>
  %s = replay.reconstruct %s0 rows %m of %d, %k gates %g {depth = 16 : i32}
      : !checkpoint, !d, !k, !gates -> !replay.state<32x128>
  replay.flush %s decay %alpha update %dt, %kt into %s0 {rows = 4 : i32}
      : !replay.state<32x128>, f32, tensor<32xf32>, tensor<128xf32> into !checkpoint
  replay.return
}

// Without a ring the state is the checkpoint.
// CHECK-LABEL: replay.kernel @no_ring(
// CHECK-NOT: math.exp
// CHECK-NOT: cumsum
// CHECK-NOT: dot
// CHECK: return
replay.kernel @no_ring(%alpha: f32) num_warps(4) blocks_per_row(1) {
  %s0, %x = builtin.unrealized_conversion_cast to !checkpoint, tensor<128xf32>
  %s = replay.reconstruct %s0 {depth = 1 : i32} : !checkpoint -> !replay.state<32x128>
  %y = replay.contract %s, %x {block_k = 128 : i32} : !replay.state<32x128>, tensor<128xf32> -> tensor<32xf32>
  replay.flush %s decay %alpha update %y, %x into %s0 {rows = 4 : i32}
      : !replay.state<32x128>, f32, tensor<32xf32>, tensor<128xf32> into !checkpoint
  replay.return
}

// A ring shallower than the matrix unit's 16 rows is read 16 rows deep; its
// bounds make the rest zero. Only the rebuild readout needs that.
// CHECK-LABEL: replay.kernel @shallow_ring(
// OUT-NOT: tensor<16
// REBUILD: cumsum {{.*}} : tensor<4xf32>
// REBUILD: replay.cumsum {{.*}} : tensor<16xf32>
// REBUILD: replay.dot {{.*}} : tensor<32x16xf32>, tensor<16x128xf32>
// CHECK: return
replay.kernel @shallow_ring(%m: i32) num_warps(4) blocks_per_row(1) {
  %s0, %d, %k, %g, %x, %out = builtin.unrealized_conversion_cast to
      !checkpoint, !d, !k, !gates, tensor<128xf32>, !replay.view<32xf32, strides [1]>
  %c0 = arith.constant 0 : i32
  %s = replay.reconstruct %s0 rows %m of %d, %k gates %g {depth = 4 : i32}
      : !checkpoint, !d, !k, !gates -> !replay.state<32x128>
  %y = replay.contract %s, %x {block_k = 128 : i32} : !replay.state<32x128>, tensor<128xf32> -> tensor<32xf32>
  replay.store %y, %out[%c0] : tensor<32xf32>, !replay.view<32xf32, strides [1]>
  replay.return
}

// Checkpoints of other types are widened on the way in and rounded on the way out.
// CHECK-LABEL: replay.kernel @bf16_state(
// CHECK: replay.load {{.*}} -> tensor<32x128xbf16>
// CHECK: arith.extf
// CHECK: %[[NEW:.*]] = arith.truncf {{.*}} to tensor<32x128xbf16>
// CHECK: replay.store %[[NEW]]
replay.kernel @bf16_state(%alpha: f32) num_warps(4) blocks_per_row(1) {
  %s0, %dt, %kt = builtin.unrealized_conversion_cast to
      !replay.view<32x128xbf16, strides [128, 1], align 16>, tensor<32xf32>, tensor<128xf32>
  %s = replay.reconstruct %s0 {depth = 1 : i32}
      : !replay.view<32x128xbf16, strides [128, 1], align 16> -> !replay.state<32x128>
  replay.flush %s decay %alpha update %dt, %kt into %s0 {rows = 4 : i32} : !replay.state<32x128>, f32,
      tensor<32xf32>, tensor<128xf32> into !replay.view<32x128xbf16, strides [128, 1], align 16>
  replay.return
}
