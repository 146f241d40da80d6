// Gates of a column each, as Kimi Delta Attention has them.
//
// RUN: replay-opt %s --replay-expand-state | FileCheck %s
// RUN: sed 's/{block_k = 128 : i32}/{block_k = 64 : i32, rebuild = #replay<precision tf32>}/; s/{rows = 4 : i32}/{block_k = 64 : i32, precision = #replay<precision tf32>}/' %s | replay-opt --replay-expand-state | FileCheck %s --check-prefix=REBUILD

!checkpoint = !replay.view<32x128xf32, strides [128, 1], align 16>
!d = !replay.view<?x32xf32, strides [-128, 1], align 16>
!k = !replay.view<?x128xf32, strides [-128, 1], align 16>

// S x = S0 (A x) + sum_j d_j ((W_j k_j) . x)
// CHECK-LABEL: replay.kernel @readout(
// CHECK-SAME: %[[M:.*]]: i32
// CHECK: %[[IN:.*]]:{{.*}} = builtin.unrealized_conversion_cast
// CHECK: %[[GATES:.*]] = load %[[IN]]#3[{{.*}} -> tensor<16x128xf32>
// CHECK: %[[LATER:.*]] = cumsum %[[GATES]] axis 0 {exclusive} : tensor<16x128xf32>
// CHECK: %[[W:.*]] = math.exp %[[LATER]] : tensor<16x128xf32>
// CHECK: %[[SUM:.*]] = reduce %[[GATES]] axis 0 : tensor<16x128xf32> -> tensor<128xf32>
// CHECK: %[[A:.*]] = math.exp %[[SUM]] : tensor<128xf32>
// CHECK: %[[AX:.*]] = arith.mulf %[[IN]]#4, %[[A]]
// CHECK: %[[S0X:.*]] = scf.for
// CHECK:   replay.load %[[IN]]#0[
// CHECK:   replay.expand %[[AX]] axis 0
// CHECK: } {replay.tiles}
// CHECK: %[[K:.*]] = load %[[IN]]#2[
// CHECK: %[[WK:.*]] = arith.mulf %[[K]], %[[W]]
// CHECK: %[[D:.*]] = load %[[IN]]#1[
// CHECK: expand %[[IN]]#4 axis 0
// CHECK: %[[WKX:.*]] = arith.mulf %[[WK]],
// CHECK: %[[SCORES:.*]] = reduce %[[WKX]] axis 1
// CHECK: expand %[[SCORES]] axis 1
// CHECK: %[[RING:.*]] = reduce {{.*}} axis 0 : tensor<16x32xf32> -> tensor<32xf32>
// CHECK: %[[Y:.*]] = arith.addf %[[S0X]], %[[RING]]
// CHECK: store %[[Y]]

// Rebuild: each tile is S0 A + d^T (W k), A and W those of its columns.
// REBUILD-LABEL: replay.kernel @readout(
// REBUILD: %[[IN:.*]]:6 = builtin.unrealized_conversion_cast
// REBUILD: %[[SUM:.*]] = reduce {{.*}} axis 0 : tensor<16x128xf32> -> tensor<128xf32>
// REBUILD: %[[A:.*]] = math.exp %[[SUM]] : tensor<128xf32>
// REBUILD: %[[Y:.*]] = scf.for %[[COLUMN:[^ ]*]] =
// REBUILD:   %[[TILE:.*]] = replay.load %[[IN]]#0[%{{.*}}, %[[COLUMN]]] {{.*}} -> tensor<32x64xf32>
// REBUILD:   %[[D:.*]] = replay.load %[[IN]]#1[{{.*}} -> tensor<16x32xf32>
// REBUILD:   %[[K:.*]] = replay.load %[[IN]]#2[%{{.*}}, %[[COLUMN]]] {{.*}} -> tensor<16x64xf32>
// REBUILD:   %[[GATES:.*]] = replay.load %[[IN]]#3[%{{.*}}, %[[COLUMN]]] {{.*}} -> tensor<16x64xf32>
// REBUILD:   %[[LATER:.*]] = replay.cumsum %[[GATES]] axis 0 {exclusive}
// REBUILD:   %[[W:.*]] = math.exp %[[LATER]]
// REBUILD:   %[[WK:.*]] = arith.mulf %[[K]], %[[W]]
// REBUILD:   %[[PIECE:.*]] = replay.slice %[[A]][%[[COLUMN]]] : tensor<128xf32> -> tensor<64xf32>
// REBUILD:   %[[THIN:.*]] = replay.expand %[[PIECE]] axis 0
// REBUILD:   %[[WIDE:.*]] = replay.broadcast %[[THIN]]
// REBUILD:   %[[DECAYED:.*]] = arith.mulf %[[TILE]], %[[WIDE]]
// REBUILD:   %[[DT:.*]] = replay.transpose %[[D]]
// REBUILD:   %[[S:.*]] = replay.dot %[[DT]], %[[WK]], %[[DECAYED]] precision tf32
// REBUILD:   %[[PRODUCT:.*]] = arith.mulf %[[S]],
// REBUILD:   reduce %[[PRODUCT]] axis 1
// REBUILD: } {replay.tiles}
// REBUILD: store %[[Y]]
replay.kernel @readout(%m: i32) num_warps(4) blocks_per_row(1) {
  %s0, %d, %k, %g, %x, %out = builtin.unrealized_conversion_cast to
      !checkpoint, !d, !k, !k, tensor<128xf32>, !replay.view<32xf32, strides [1]>
  %c0 = arith.constant 0 : i32
  %s = replay.reconstruct %s0 rows %m of %d, %k gates %g {depth = 16 : i32}
      : !checkpoint, !d, !k, !k -> !replay.state<32x128>
  %y = replay.contract %s, %x {block_k = 128 : i32} : !replay.state<32x128>, tensor<128xf32> -> tensor<32xf32>
  replay.store %y, %out[%c0] : tensor<32xf32>, !replay.view<32xf32, strides [1]>
  replay.return
}

// A flush weighs the keys, and decays column by column.
// CHECK-LABEL: replay.kernel @flush(
// CHECK-SAME: %[[M:.*]]: i32
// CHECK: scf.for %[[COLUMN:[^ ]*]] =
// CHECK:   %[[TILE:.*]] = replay.load {{.*}} -> tensor<32x128xf32>
// CHECK:   %[[DECAYED:.*]] = arith.mulf %[[TILE]],
// CHECK:   %[[S:.*]]:2 = scf.for %[[ROW:.*]] = %{{.*}} to %[[M]] {{.*}} iter_args(%[[ACC:.*]] = %[[DECAYED]], %[[NEWER:.*]] = %{{.*}}) -> (tensor<32x128xf32>, tensor<128xf32>)
// CHECK:     %[[GATES:.*]] = replay.load %{{.*}}[%[[ROW]], %[[COLUMN]]] {{.*}} -> tensor<4x128xf32>
// CHECK-DAG: replay.cumsum %[[GATES]] axis 0 {exclusive}
// CHECK-DAG: replay.expand %[[NEWER]] axis 0
// CHECK:     %[[W:.*]] = math.exp
// CHECK:     %[[K:.*]] = replay.load %{{.*}}[%[[ROW]], %[[COLUMN]]] {{.*}} -> tensor<4x128xf32>
// CHECK:     %[[WK:.*]] = arith.mulf %[[K]], %[[W]]
// CHECK:     %[[NEXT:.*]] = replay.dot {{.*}}, %[[WK]], %[[ACC]] precision ieee
// CHECK:     %[[SUM:.*]] = replay.reduce %[[GATES]] axis 0
// CHECK:     %[[TOTAL:.*]] = arith.addf %[[NEWER]], %[[SUM]]
// CHECK:     scf.yield %[[NEXT]], %[[TOTAL]]
// CHECK:   }
// CHECK:   %[[AGED:.*]] = arith.mulf %[[S]]#0,
// CHECK:   %[[NEW:.*]] = math.fma %{{.*}}, %{{.*}}, %[[AGED]]
// CHECK:   replay.store %[[NEW]]

// REBUILD-LABEL: replay.kernel @flush(
// REBUILD: scf.for %[[COLUMN:[^ ]*]] =
// REBUILD:   %[[W:.*]] = math.exp {{.*}} : tensor<16x64xf32>
// REBUILD:   %[[WK:.*]] = arith.mulf %{{.*}}, %[[W]]
// REBUILD:   %[[S:.*]] = replay.dot %{{.*}}, %[[WK]], %{{.*}} precision tf32
// REBUILD:   %[[AGED:.*]] = arith.mulf %[[S]],
// REBUILD:   %[[NEW:.*]] = math.fma %{{.*}}, %{{.*}}, %[[AGED]]
// REBUILD:   replay.store %[[NEW]], %{{.*}}[%{{.*}}, %[[COLUMN]]]
replay.kernel @flush(%m: i32) num_warps(4) blocks_per_row(1) {
  %s0, %d, %k, %g, %alpha, %dt, %kt = builtin.unrealized_conversion_cast to
      !checkpoint, !d, !k, !k, tensor<128xf32>, tensor<32xf32>, tensor<128xf32>
  %s = replay.reconstruct %s0 rows %m of %d, %k gates %g {depth = 16 : i32}
      : !checkpoint, !d, !k, !k -> !replay.state<32x128>
  replay.flush %s decay %alpha update %dt, %kt into %s0 {rows = 4 : i32} : !replay.state<32x128>,
      tensor<128xf32>, tensor<32xf32>, tensor<128xf32> into !checkpoint
  replay.return
}
