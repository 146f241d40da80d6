// What the decays are made from besides gates alone, rings that wrap, and where a
// flush may store.
//
// RUN: replay-opt %s --replay-expand-state --cse | FileCheck %s --check-prefixes=CHECK,OUT --implicit-check-not=cumsum
// RUN: sed 's/{block_k = 128 : i32}/{rebuild = #replay<precision tf32>}/; s/{rows = 4 : i32}/{precision = #replay<precision tf32>}/' %s | replay-opt --replay-expand-state --cse | FileCheck %s --check-prefixes=CHECK,REBUILD --implicit-check-not=cumsum

!checkpoint = !replay.view<32x128xf32, strides [128, 1], align 16>
!d = !replay.view<?x32xf32, strides [32, 1], align 16>
!k = !replay.view<?x128xf32, strides [128, 1], align 16>
!wrapped_d = !replay.view<12x32xf32, strides [32, 1], align 16>
!wrapped_k = !replay.view<12x128xf32, strides [128, 1], align 16>
!out = !replay.view<32xf32, strides [1]>

// Sums since the checkpoint: W = exp(total - P), A = exp(total), and no scan.
// CHECK-LABEL: replay.kernel @prefix(
// CHECK: %[[IN:.*]]:7 = builtin.unrealized_conversion_cast
// CHECK: %[[P:.*]] = load %[[IN]]#3[{{.*}} -> tensor<16x128xf32>
// CHECK: %[[THIN:.*]] = expand %[[IN]]#4 axis 0
// CHECK: %[[TOTALS:.*]] = broadcast %[[THIN]] : tensor<1x128xf32> -> tensor<16x128xf32>
// OUT: %[[LOG:.*]] = arith.subf %[[TOTALS]], %[[P]]
// OUT: %[[W:.*]] = math.exp %[[LOG]] : tensor<16x128xf32>
// CHECK: %[[A:.*]] = math.exp %[[IN]]#4 : tensor<128xf32>
// OUT: arith.mulf %[[IN]]#5, %[[A]]
// OUT: scf.for
// OUT: %[[K:.*]] = load %[[IN]]#2[
// OUT: arith.mulf %[[K]], %[[W]]
// Each tile's own columns of P and of the total.
// REBUILD: scf.for %[[COLUMN:[^ ]*]] =
// REBUILD:   %[[S0:.*]] = replay.load %[[IN]]#0[
// REBUILD:   %[[D:.*]] = replay.load %[[IN]]#1[
// REBUILD:   %[[K:.*]] = replay.load %[[IN]]#2[%{{.*}}, %[[COLUMN]]]
// REBUILD:   %[[P:.*]] = replay.load %[[IN]]#3[%{{.*}}, %[[COLUMN]]]
// REBUILD:   %[[LOG:.*]] = arith.subf %[[TOTALS]], %[[P]]
// REBUILD:   %[[W:.*]] = math.exp %[[LOG]]
// REBUILD:   %[[WK:.*]] = arith.mulf %[[K]], %[[W]]
// REBUILD:   %[[DECAYED:.*]] = arith.mulf %[[S0]],
// REBUILD:   %[[DT:.*]] = replay.transpose %[[D]]
// REBUILD:   replay.dot %[[DT]], %[[WK]], %[[DECAYED]] precision tf32
// CHECK: return
replay.kernel @prefix(%m: i32) num_warps(4) blocks_per_row(1) {
  %s0, %d, %k, %p, %total, %x, %out = builtin.unrealized_conversion_cast to
      !checkpoint, !d, !k, !k, tensor<128xf32>, tensor<128xf32>, !out
  %c0 = arith.constant 0 : i32
  %s = replay.reconstruct %s0 rows %m of %d, %k gates %p total %total {depth = 16 : i32}
      : !checkpoint, !d, !k, !k total tensor<128xf32> -> !replay.state<32x128>
  %y = replay.contract %s, %x {block_k = 128 : i32} : !replay.state<32x128>, tensor<128xf32> -> tensor<32xf32>
  replay.store %y, %out[%c0] : tensor<32xf32>, !out
  replay.return
}

// The loop over rows carries the tile alone: a row's weight needs no other row.
// CHECK-LABEL: replay.kernel @prefix_flush(
// CHECK-SAME: %[[M:.*]]: i32
// OUT: scf.for %[[ROW:.*]] = %{{.*}} to %[[M]] step %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (tensor<32x128xf32>)
// OUT:   %[[P:.*]] = replay.load {{.*}}[%[[ROW]], {{.*}} -> tensor<4x128xf32>
// OUT:   %[[LOG:.*]] = arith.subf %{{.*}}, %[[P]]
// OUT:   %[[W:.*]] = math.exp %[[LOG]]
// OUT:   %[[WK:.*]] = arith.mulf %{{.*}}, %[[W]]
// OUT:   %[[NEXT:.*]] = replay.dot %{{.*}}, %[[WK]], %[[ACC]] precision ieee
// OUT:   scf.yield %[[NEXT]] : tensor<32x128xf32>
// REBUILD: %[[W:.*]] = math.exp {{.*}} : tensor<16x128xf32>
// REBUILD: %[[WK:.*]] = arith.mulf %{{.*}}, %[[W]]
// REBUILD: replay.dot %{{.*}}, %[[WK]],
// CHECK: math.fma
// CHECK: replay.store
// CHECK: return
replay.kernel @prefix_flush(%m: i32) num_warps(4) blocks_per_row(1) {
  %s0, %d, %k, %p, %total, %alpha, %dt, %kt = builtin.unrealized_conversion_cast to
      !checkpoint, !d, !k, !k, tensor<128xf32>, tensor<128xf32>, tensor<32xf32>, tensor<128xf32>
  %s = replay.reconstruct %s0 rows %m of %d, %k gates %p total %total {depth = 16 : i32}
      : !checkpoint, !d, !k, !k total tensor<128xf32> -> !replay.state<32x128>
  replay.flush %s decay %alpha update %dt, %kt into %s0 {rows = 4 : i32} : !replay.state<32x128>,
      tensor<128xf32>, tensor<32xf32>, tensor<128xf32> into !checkpoint
  replay.return
}

// Keys that come decayed: W is A, one weight a column, and no gates are read.
// CHECK-LABEL: replay.kernel @predecayed(
// CHECK: %[[IN:.*]]:6 = builtin.unrealized_conversion_cast
// CHECK: %[[A:.*]] = math.exp %[[IN]]#3 : tensor<128xf32>
// CHECK-NOT: math.exp
// OUT: arith.mulf %[[IN]]#4, %[[A]]
// OUT: scf.for
// CHECK: %[[K:.*]] = {{.*}}load %[[IN]]#2[{{.*}} -> tensor<16x128xf32>
// CHECK: %[[THIN:.*]] = {{.*}}expand %[[A]] axis 0
// CHECK: %[[W:.*]] = {{.*}}broadcast %[[THIN]] : tensor<1x128xf32> -> tensor<16x128xf32>
// CHECK: %[[WK:.*]] = arith.mulf %[[K]], %[[W]]
// REBUILD: replay.dot %{{.*}}, %[[WK]],
// CHECK-NOT: math.exp
// CHECK: return
replay.kernel @predecayed(%m: i32) num_warps(4) blocks_per_row(1) {
  %s0, %d, %k, %total, %x, %out = builtin.unrealized_conversion_cast to
      !checkpoint, !d, !k, tensor<128xf32>, tensor<128xf32>, !out
  %c0 = arith.constant 0 : i32
  %s = replay.reconstruct %s0 rows %m of %d, %k total %total {depth = 16 : i32}
      : !checkpoint, !d, !k total tensor<128xf32> -> !replay.state<32x128>
  %y = replay.contract %s, %x {block_k = 128 : i32} : !replay.state<32x128>, tensor<128xf32> -> tensor<32xf32>
  replay.store %y, %out[%c0] : tensor<32xf32>, !out
  replay.return
}

// Without an update S itself is stored.
// CHECK-LABEL: replay.kernel @predecayed_flush(
// CHECK: %[[IN:.*]]:4 = builtin.unrealized_conversion_cast
// CHECK: %[[A:.*]] = math.exp %[[IN]]#3 : tensor<128xf32>
// CHECK-NOT: math.exp
// OUT: %[[S:.*]] = scf.for {{.*}} -> (tensor<32x128xf32>)
// OUT:   %[[K:.*]] = replay.load %[[IN]]#2[{{.*}} -> tensor<4x128xf32>
// OUT:   %[[WK:.*]] = arith.mulf %[[K]],
// OUT:   replay.dot %{{.*}}, %[[WK]], %{{.*}} precision ieee
// OUT: }
// REBUILD: %[[S:.*]] = replay.dot {{.*}} precision tf32
// CHECK-NOT: math.fma
// CHECK: replay.store %[[S]], %[[IN]]#0[
// CHECK-NOT: replay.store
// CHECK: return
replay.kernel @predecayed_flush(%m: i32) num_warps(4) blocks_per_row(1) {
  %s0, %d, %k, %total = builtin.unrealized_conversion_cast to
      !checkpoint, !d, !k, tensor<128xf32>
  %s = replay.reconstruct %s0 rows %m of %d, %k total %total {depth = 16 : i32}
      : !checkpoint, !d, !k total tensor<128xf32> -> !replay.state<32x128>
  replay.flush %s into %s0 {rows = 4 : i32} : !replay.state<32x128> into !checkpoint
  replay.return
}

// A ring that wraps is read whole: row p is there if (p - base) mod 12 < count.
// All three loads have the row's mask.
// CHECK-LABEL: replay.kernel @wrapped(
// CHECK-SAME: %[[M:.*]]: i32, %[[BASE:.*]]: i32
// CHECK: %[[IN:.*]]:7 = builtin.unrealized_conversion_cast
// CHECK-DAG: %[[L:.*]] = arith.constant 12 : i32
// CHECK: %[[BACK:.*]] = arith.subi %[[L]], %[[BASE]]
// CHECK-DAG: %[[LS:.*]] = splat %[[L]]
// CHECK-DAG: %[[SHIFTS:.*]] = splat %[[BACK]]
// CHECK-DAG: %[[ROWS:.*]] = iota : tensor<16xi32>
// CHECK: %[[SHIFTED:.*]] = arith.addi %[[ROWS]], %[[SHIFTS]]
// CHECK: %[[PLACE:.*]] = arith.remui %[[SHIFTED]], %[[LS]]
// CHECK: %[[COUNT:.*]] = splat %[[M]]
// CHECK: %[[THERE:.*]] = arith.cmpi ult, %[[PLACE]], %[[COUNT]] : tensor<16xi32>
// CHECK: %[[COLUMN:.*]] = expand %[[THERE]] axis 1
// CHECK: %[[MASK:.*]] = broadcast %[[COLUMN]] : tensor<16x1xi1> -> tensor<16x128xi1>
// CHECK: load %[[IN]]#3[{{.*}} mask %[[MASK]]
// OUT: scf.for
// OUT-NOT: mask
// OUT: } {replay.tiles}
// OUT: load %[[IN]]#2[{{.*}} mask %[[MASK]]
// OUT: %[[MASKD:.*]] = broadcast %[[COLUMN]] : tensor<16x1xi1> -> tensor<16x32xi1>
// OUT: load %[[IN]]#1[{{.*}} mask %[[MASKD]]
// REBUILD: scf.for
// REBUILD:   %[[MASKD:.*]] = replay.broadcast %[[COLUMN]] : tensor<16x1xi1> -> tensor<16x32xi1>
// REBUILD:   replay.load %[[IN]]#1[{{.*}} mask %[[MASKD]]
// REBUILD:   replay.load %[[IN]]#2[{{.*}} mask %[[MASK]]
// REBUILD:   replay.load %[[IN]]#3[{{.*}} mask %[[MASK]]
// CHECK: return
replay.kernel @wrapped(%m: i32, %base: i32) num_warps(4) blocks_per_row(1) {
  %s0, %d, %k, %p, %total, %x, %out = builtin.unrealized_conversion_cast to
      !checkpoint, !wrapped_d, !wrapped_k, !wrapped_k, tensor<128xf32>, tensor<128xf32>, !out
  %c0 = arith.constant 0 : i32
  %s = replay.reconstruct %s0 rows %m of %d, %k gates %p total %total from %base {depth = 16 : i32}
      : !checkpoint, !wrapped_d, !wrapped_k, !wrapped_k total tensor<128xf32>
        -> !replay.state<32x128>
  %y = replay.contract %s, %x {block_k = 128 : i32} : !replay.state<32x128>, tensor<128xf32> -> tensor<32xf32>
  replay.store %y, %out[%c0] : tensor<32xf32>, !out
  replay.return
}

// A flush's loop runs over all 12 physical rows; the mask moves with it.
// CHECK-LABEL: replay.kernel @wrapped_flush(
// CHECK-SAME: %[[M:.*]]: i32, %[[BASE:.*]]: i32
// CHECK: %[[IN:.*]]:5 = builtin.unrealized_conversion_cast
// CHECK-DAG: %[[L:.*]] = arith.constant 12 : i32
// OUT-DAG: %[[BACK:.*]] = arith.subi %[[L]], %[[BASE]]
// OUT: scf.for %[[ROW:.*]] = %{{.*}} to %[[L]] step %{{.*}} iter_args(
// OUT:   %[[SHIFT:.*]] = arith.addi %[[ROW]], %[[BACK]]
// OUT:   replay.splat %[[SHIFT]] : i32 -> tensor<4xi32>
// OUT:   %[[PLACE:.*]] = arith.remui
// OUT:   %[[COUNT:.*]] = replay.splat %[[M]] : i32 -> tensor<4xi32>
// OUT:   %[[THERE:.*]] = arith.cmpi ult, %[[PLACE]], %[[COUNT]]
// OUT:   expand %[[THERE]] axis 1
// OUT:   replay.load %[[IN]]#3[%[[ROW]], {{.*}} mask
// OUT:   replay.load %[[IN]]#1[%[[ROW]], {{.*}} mask
// OUT:   replay.load %[[IN]]#2[%[[ROW]], {{.*}} mask
// OUT:   replay.dot
// REBUILD-COUNT-4: mask
// REBUILD: replay.dot
// CHECK: replay.store
// CHECK: return
replay.kernel @wrapped_flush(%m: i32, %base: i32) num_warps(4) blocks_per_row(1) {
  %s0, %d, %k, %p, %total = builtin.unrealized_conversion_cast to
      !checkpoint, !wrapped_d, !wrapped_k, !wrapped_k, tensor<128xf32>
  %s = replay.reconstruct %s0 rows %m of %d, %k gates %p total %total from %base {depth = 16 : i32}
      : !checkpoint, !wrapped_d, !wrapped_k, !wrapped_k total tensor<128xf32>
        -> !replay.state<32x128>
  replay.flush %s into %s0 {rows = 4 : i32} : !replay.state<32x128> into !checkpoint
  replay.return
}

// What is stored twice is formed once, each time in the view's type.
// CHECK-LABEL: replay.kernel @two_destinations(
// CHECK: %[[IN:.*]]:4 = builtin.unrealized_conversion_cast
// CHECK: scf.for %[[COLUMN:[^ ]*]] =
// CHECK: %[[NEW:.*]] = math.fma
// CHECK: replay.store %[[NEW]], %[[IN]]#0[%{{.*}}, %[[COLUMN]]]
// CHECK: %[[HALF:.*]] = arith.truncf %[[NEW]] : tensor<32x128xf32> to tensor<32x128xbf16>
// CHECK: replay.store %[[HALF]], %[[IN]]#1[%{{.*}}, %[[COLUMN]]]
// CHECK-NOT: replay.store
// CHECK: return
replay.kernel @two_destinations(%alpha: f32) num_warps(4) blocks_per_row(1) {
  %s0, %copy, %dt, %kt = builtin.unrealized_conversion_cast to !checkpoint,
      !replay.view<32x128xbf16, strides [128, 1], align 16>, tensor<32xf32>, tensor<128xf32>
  %s = replay.reconstruct %s0 {depth = 1 : i32} : !checkpoint -> !replay.state<32x128>
  replay.flush %s decay %alpha update %dt, %kt into %s0, %copy {rows = 4 : i32} : !replay.state<32x128>, f32,
      tensor<32xf32>, tensor<128xf32> into !checkpoint,
      !replay.view<32x128xbf16, strides [128, 1], align 16>
  replay.return
}
