// One kernel per operation, around the example that ReplayOps.td documents it
// with; tests/lint/check_examples compares the two.
//
// RUN: replay-opt %s | replay-opt | FileCheck %s
// RUN: replay-opt %s --mlir-print-op-generic | replay-opt | FileCheck %s

#a = #replay.layout<register = [[1], [2], [4], [8]], lane = [[0], [0], [0], [0], [0]], warp = []>
#b = #replay.layout<register = [], lane = [[1], [2], [4], [8], [0]], warp = []>

// CHECK-LABEL: replay.kernel @copy(%{{.*}}: !replay.ptr<f32>) num_warps(4) blocks_per_row(1) {
// CHECK-NEXT: return
// CHECK-NEXT: }
replay.kernel @copy(%src: !replay.ptr<f32>) num_warps(4) blocks_per_row(1) {
  replay.return
}

// Everything that a kernel's header may hold.
// CHECK-LABEL: replay.kernel @header(%{{.*}}: !replay.ptr<bf16> {replay.name = "in", replay.readonly}, %{{.*}}: !replay.ptr<f32> {replay.noalias}, %{{.*}}: f32, %{{.*}}: i64)
// CHECK-SAME: num_warps(32) blocks_per_row(16) attributes {note = "kept", replay.lanes_per_row = 16 : i32} {
replay.kernel @header(%in: !replay.ptr<bf16> {replay.name = "in", replay.readonly},
    %out: !replay.ptr<f32> {replay.noalias}, %scale: f32, %n: i64)
    num_warps(32) blocks_per_row(16)
    attributes {note = "kept", replay.lanes_per_row = 16 : i32} {
  replay.return
}

// CHECK-LABEL: replay.kernel @return(
// CHECK: return
replay.kernel @return() num_warps(1) blocks_per_row(1) {
  replay.return
}

// CHECK-LABEL: replay.kernel @program_id(
// CHECK: program_id x
// CHECK: program_id y
// CHECK: program_id z
replay.kernel @program_id() num_warps(1) blocks_per_row(1) {
  %pid = replay.program_id x
  %y = replay.program_id y
  %z = replay.program_id z
  replay.return
}

// CHECK-LABEL: replay.kernel @num_programs(
// CHECK: num_programs x
replay.kernel @num_programs() num_warps(1) blocks_per_row(1) {
  %n = replay.num_programs x
  replay.return
}

//===----------------------------------------------------------------------===//
// Replay level
//===----------------------------------------------------------------------===//

// CHECK-LABEL: replay.kernel @reconstruct(
// CHECK-SAME: %[[M:.*]]: i32
// CHECK: reconstruct %[[G:.*]]#0 rows %[[M]] of %[[G]]#1, %[[G]]#2 gates %[[G]]#3 {depth = 16 : i32}
// CHECK-SAME: : <32x128xf32, strides [128, 1], align 16>,
// CHECK-SAME: !replay.view<?x32xf32, strides [-128, 1], align 16>,
// CHECK-SAME: !replay.view<?x128xf32, strides [-128, 1], align 16>,
// CHECK-SAME: !replay.view<?xf32, strides [-1]> -> <32x128>
// CHECK: reconstruct {{.*}} : <32x128xf32, strides [128, 1], align 16>, !replay.view<?x32xf32, strides [-128, 1], align 16>, !replay.view<?x128xf32, strides [-128, 1], align 16>, !replay.view<?x128xf32, strides [-128, 1], align 16> -> <32x128>
// CHECK: reconstruct %[[G]]#0 {depth = 1 : i32} : <32x128xf32, strides [128, 1], align 16> -> <32x128>
replay.kernel @reconstruct(%m: i32) num_warps(4) blocks_per_row(1) {
  %s0, %d, %k, %g = builtin.unrealized_conversion_cast to
      !replay.view<32x128xf32, strides [128, 1], align 16>,
      !replay.view<?x32xf32, strides [-128, 1], align 16>,
      !replay.view<?x128xf32, strides [-128, 1], align 16>,
      !replay.view<?xf32, strides [-1]>
  %s = replay.reconstruct %s0 rows %m of %d, %k gates %g {depth = 16 : i32}
      : !replay.view<32x128xf32, strides [128, 1], align 16>,
        !replay.view<?x32xf32, strides [-128, 1], align 16>,
        !replay.view<?x128xf32, strides [-128, 1], align 16>,
        !replay.view<?xf32, strides [-1]> -> !replay.state<32x128>
  // A gate a column.
  %r = replay.reconstruct %s0 rows %m of %d, %k gates %k {depth = 16 : i32}
      : !replay.view<32x128xf32, strides [128, 1], align 16>,
        !replay.view<?x32xf32, strides [-128, 1], align 16>,
        !replay.view<?x128xf32, strides [-128, 1], align 16>,
        !replay.view<?x128xf32, strides [-128, 1], align 16> -> !replay.state<32x128>
  // Without a ring.
  %t = replay.reconstruct %s0 {depth = 1 : i32}
      : !replay.view<32x128xf32, strides [128, 1], align 16> -> !replay.state<32x128>
  replay.return
}

// The decays from sums since the checkpoint, from a total alone, and of a ring
// that wraps.
// CHECK-LABEL: replay.kernel @reconstruct_total(
// CHECK-SAME: %[[M:.*]]: i32, %[[BASE:.*]]: i32
// CHECK: %[[G:.*]]:5 = builtin.unrealized_conversion_cast
// CHECK: reconstruct %[[G]]#0 rows %[[M]] of %[[G]]#1, %[[G]]#2 gates %[[G]]#3 total %[[G]]#4 {depth = 16 : i32}
// CHECK-SAME: : <32x128xf32, strides [128, 1], align 16>,
// CHECK-SAME: !replay.view<12x32xf32, strides [32, 1], align 16>,
// CHECK-SAME: !replay.view<12x128xf32, strides [128, 1], align 16>,
// CHECK-SAME: !replay.view<12x128xf32, strides [128, 1], align 16>
// CHECK-SAME: total tensor<128xf32> -> <32x128>
// CHECK: reconstruct %[[G]]#0 rows %[[M]] of %[[G]]#1, %[[G]]#2 total %[[G]]#4 {depth = 16 : i32}
// CHECK-SAME: !replay.view<12x128xf32, strides [128, 1], align 16> total tensor<128xf32> -> <32x128>
// CHECK: reconstruct %[[G]]#0 rows %[[M]] of %[[G]]#1, %[[G]]#2 gates %[[G]]#3 total %[[G]]#4 from %[[BASE]] {depth = 16 : i32}
// CHECK: reconstruct %[[G]]#0 rows %[[M]] of %[[G]]#1, %[[G]]#2 total %[[G]]#4 from %[[BASE]] {depth = 16 : i32}
// CHECK: reconstruct %[[G]]#0 rows %[[M]] of %[[G]]#1, %[[G]]#2 gates %[[G]]#3 from %[[BASE]] {depth = 16 : i32}
replay.kernel @reconstruct_total(%m: i32, %base: i32) num_warps(4) blocks_per_row(1) {
  %s0, %d, %k, %p, %total = builtin.unrealized_conversion_cast to
      !replay.view<32x128xf32, strides [128, 1], align 16>,
      !replay.view<12x32xf32, strides [32, 1], align 16>,
      !replay.view<12x128xf32, strides [128, 1], align 16>,
      !replay.view<12x128xf32, strides [128, 1], align 16>, tensor<128xf32>
  %s = replay.reconstruct %s0 rows %m of %d, %k gates %p total %total {depth = 16 : i32}
      : !replay.view<32x128xf32, strides [128, 1], align 16>,
        !replay.view<12x32xf32, strides [32, 1], align 16>,
        !replay.view<12x128xf32, strides [128, 1], align 16>,
        !replay.view<12x128xf32, strides [128, 1], align 16>
        total tensor<128xf32> -> !replay.state<32x128>
  %t = replay.reconstruct %s0 rows %m of %d, %k total %total {depth = 16 : i32}
      : !replay.view<32x128xf32, strides [128, 1], align 16>,
        !replay.view<12x32xf32, strides [32, 1], align 16>,
        !replay.view<12x128xf32, strides [128, 1], align 16>
        total tensor<128xf32> -> !replay.state<32x128>
  %u = replay.reconstruct %s0 rows %m of %d, %k gates %p total %total from %base {depth = 16 : i32}
      : !replay.view<32x128xf32, strides [128, 1], align 16>,
        !replay.view<12x32xf32, strides [32, 1], align 16>,
        !replay.view<12x128xf32, strides [128, 1], align 16>,
        !replay.view<12x128xf32, strides [128, 1], align 16>
        total tensor<128xf32> -> !replay.state<32x128>
  %v = replay.reconstruct %s0 rows %m of %d, %k total %total from %base {depth = 16 : i32}
      : !replay.view<32x128xf32, strides [128, 1], align 16>,
        !replay.view<12x32xf32, strides [32, 1], align 16>,
        !replay.view<12x128xf32, strides [128, 1], align 16>
        total tensor<128xf32> -> !replay.state<32x128>
  %w = replay.reconstruct %s0 rows %m of %d, %k gates %p from %base {depth = 16 : i32}
      : !replay.view<32x128xf32, strides [128, 1], align 16>,
        !replay.view<12x32xf32, strides [32, 1], align 16>,
        !replay.view<12x128xf32, strides [128, 1], align 16>,
        !replay.view<12x128xf32, strides [128, 1], align 16> -> !replay.state<32x128>
  replay.return
}

// CHECK-LABEL: replay.kernel @form(
// CHECK: form %[[S:.*]] {rows = 4 : i32} : <32x128> -> <32x128, tiles 128>
// CHECK: form %[[S]] {precision = #replay<precision tf32>, rows = 16 : i32} : <32x128> -> <32x128, tiles 32>
// CHECK: form %[[S]] : <32x128> -> <32x128, tiles 128>
replay.kernel @form() num_warps(4) blocks_per_row(1) {
  %s = builtin.unrealized_conversion_cast to !replay.state<32x128>
  %t = replay.form %s {rows = 4 : i32} : !replay.state<32x128>
      -> !replay.state<32x128, tiles 128>
  %u = replay.form %s {rows = 16 : i32, precision = #replay<precision tf32>}
      : !replay.state<32x128> -> !replay.state<32x128, tiles 32>
  // All rows at once.
  %v = replay.form %s : !replay.state<32x128> -> !replay.state<32x128, tiles 128>
  replay.return
}

// CHECK-LABEL: replay.kernel @update(
// CHECK-SAME: %[[ALPHA:.*]]: f32
// CHECK: update %[[G:.*]]#0 decay %[[ALPHA]] add %[[G]]#1, %[[G]]#2 : <32x128, tiles 64> decay f32 add tensor<32xf32>, tensor<128xf32>
// CHECK: update %[[G]]#0 decay %[[G]]#2 : <32x128, tiles 64> decay tensor<128xf32>
// CHECK: update %[[G]]#0 add %[[G]]#1, %[[G]]#2 : <32x128, tiles 64> add tensor<32xf32>, tensor<128xf32>
replay.kernel @update(%alpha: f32) num_warps(4) blocks_per_row(1) {
  %s, %d, %k = builtin.unrealized_conversion_cast to
      !replay.state<32x128, tiles 64>, tensor<32xf32>, tensor<128xf32>
  %u = replay.update %s decay %alpha add %d, %k : !replay.state<32x128, tiles 64>
      decay f32 add tensor<32xf32>, tensor<128xf32>
  // A decay a column, and a token without one.
  %v = replay.update %s decay %k : !replay.state<32x128, tiles 64> decay tensor<128xf32>
  %w = replay.update %s add %d, %k : !replay.state<32x128, tiles 64>
      add tensor<32xf32>, tensor<128xf32>
  replay.return
}

// CHECK-LABEL: replay.kernel @contract(
// CHECK: contract %{{.*}}, %{{.*}}, %{{.*}} {block_k = 64 : i32} : <32x128>, tensor<128xf32>, tensor<128xf32> -> tensor<32xf32>, tensor<32xf32>
// CHECK: contract %{{.*}}, %{{.*}} {split = #replay<precision bf16>} : <32x128>, tensor<128xf32> -> tensor<32xf32>
// CHECK: contract %{{.*}}, %{{.*}} {rebuild = #replay<precision bf16>} : <32x128>, tensor<128xf32> -> tensor<32xf32>
// CHECK: contract %{{.*}}, %{{.*}} : <32x128, tiles 64>, tensor<128xf32> -> tensor<32xf32>
replay.kernel @contract() num_warps(4) blocks_per_row(1) {
  %s, %formed, %xq, %xk = builtin.unrealized_conversion_cast to !replay.state<32x128>,
      !replay.state<32x128, tiles 64>, tensor<128xf32>, tensor<128xf32>
  %o, %u = replay.contract %s, %xq, %xk {block_k = 64 : i32} : !replay.state<32x128>,
      tensor<128xf32>, tensor<128xf32> -> tensor<32xf32>, tensor<32xf32>
  %e = replay.contract %s, %xq {split = #replay<precision bf16>}
      : !replay.state<32x128>, tensor<128xf32> -> tensor<32xf32>
  %r = replay.contract %s, %xq {rebuild = #replay<precision bf16>}
      : !replay.state<32x128>, tensor<128xf32> -> tensor<32xf32>
  %f = replay.contract %formed, %xq
      : !replay.state<32x128, tiles 64>, tensor<128xf32> -> tensor<32xf32>
  replay.return
}

// CHECK-LABEL: replay.kernel @flush(
// CHECK-SAME: %[[ALPHA:.*]]: f32
// CHECK: flush %[[G:.*]]#0 decay %[[ALPHA]] update %[[G]]#1, %[[G]]#2 into %[[G]]#3 {rows = 4 : i32} : <32x128>,
// CHECK-SAME: f32, tensor<32xf32>, tensor<128xf32> into !replay.view<32x128xf32, strides [128, 1], align 16>
// CHECK: flush %[[G]]#0 decay %[[G]]#2 update %[[G]]#1, %[[G]]#2 into %[[G]]#3 : <32x128>,
// CHECK-SAME: tensor<128xf32>, tensor<32xf32>, tensor<128xf32> into !replay.view<32x128xf32, strides [128, 1], align 16>
// CHECK: flush %[[G]]#0 into %[[G]]#3 : <32x128> into !replay.view<32x128xf32, strides [128, 1], align 16>
// CHECK: flush %[[G]]#0 decay %[[ALPHA]] update %[[G]]#1, %[[G]]#2 into %[[G]]#3, %[[G]]#4 : <32x128>,
// CHECK-SAME: f32, tensor<32xf32>, tensor<128xf32> into !replay.view<32x128xf32, strides [128, 1], align 16>, !replay.view<32x128xbf16, strides [128, 1]>
// CHECK: flush %[[G]]#0 into %[[G]]#3, %[[G]]#4 : <32x128> into !replay.view<32x128xf32, strides [128, 1], align 16>, !replay.view<32x128xbf16, strides [128, 1]>
// CHECK: flush %{{.*}} into %[[G]]#3 : <32x128, tiles 64> into
// CHECK: flush %[[G]]#0 into %[[G]]#3 {block_k = 64 : i32, precision = #replay<precision tf32>} : <32x128> into
replay.kernel @flush(%alpha: f32) num_warps(4) blocks_per_row(1) {
  %s, %dt, %kt, %s0, %copy = builtin.unrealized_conversion_cast to
      !replay.state<32x128>, tensor<32xf32>, tensor<128xf32>,
      !replay.view<32x128xf32, strides [128, 1], align 16>,
      !replay.view<32x128xbf16, strides [128, 1]>
  replay.flush %s decay %alpha update %dt, %kt into %s0 {rows = 4 : i32}
      : !replay.state<32x128>, f32, tensor<32xf32>, tensor<128xf32> into
      !replay.view<32x128xf32, strides [128, 1], align 16>
  // A decay a column.
  replay.flush %s decay %kt update %dt, %kt into %s0 : !replay.state<32x128>,
      tensor<128xf32>, tensor<32xf32>, tensor<128xf32> into
      !replay.view<32x128xf32, strides [128, 1], align 16>
  // As it is.
  replay.flush %s into %s0 : !replay.state<32x128> into
      !replay.view<32x128xf32, strides [128, 1], align 16>
  // To two places.
  replay.flush %s decay %alpha update %dt, %kt into %s0, %copy : !replay.state<32x128>,
      f32, tensor<32xf32>, tensor<128xf32> into
      !replay.view<32x128xf32, strides [128, 1], align 16>,
      !replay.view<32x128xbf16, strides [128, 1]>
  replay.flush %s into %s0, %copy : !replay.state<32x128> into
      !replay.view<32x128xf32, strides [128, 1], align 16>,
      !replay.view<32x128xbf16, strides [128, 1]>
  // A formed state, and one formed 64 columns at a time by the matrix unit.
  %t = builtin.unrealized_conversion_cast to !replay.state<32x128, tiles 64>
  replay.flush %t into %s0 : !replay.state<32x128, tiles 64> into
      !replay.view<32x128xf32, strides [128, 1], align 16>
  replay.flush %s into %s0 {block_k = 64 : i32, precision = #replay<precision tf32>}
      : !replay.state<32x128> into !replay.view<32x128xf32, strides [128, 1], align 16>
  replay.return
}

//===----------------------------------------------------------------------===//
// Tile level: memory
//===----------------------------------------------------------------------===//

// CHECK-LABEL: replay.kernel @view(
// CHECK-SAME: %[[P:.*]]: !replay.ptr<f32>, %[[OFF:.*]]: i64, %[[M:.*]]: i32
// CHECK: view %[[P]] offset %[[OFF]] sizes %[[M]] at_most 16 : <f32> -> <?x128xf32, strides [128, 1], align 16>
// CHECK: view %[[P]] offset %[[OFF]] sizes %[[M]], %[[M]] strides %[[OFF]] : <f32> -> <?x?xf32, strides [?, 1]>
// CHECK: view %[[P]] offset %[[OFF]] : <f32> -> <8xf32, strides [-1]>
replay.kernel @view(%p: !replay.ptr<f32>, %off: i64, %m: i32) num_warps(4) blocks_per_row(1) {
  %v = replay.view %p offset %off sizes %m at_most 16 : !replay.ptr<f32>
      -> !replay.view<?x128xf32, strides [128, 1], align 16>
  %w = replay.view %p offset %off sizes %m, %m strides %off : !replay.ptr<f32>
      -> !replay.view<?x?xf32, strides [?, 1]>
  %x = replay.view %p offset %off : !replay.ptr<f32> -> !replay.view<8xf32, strides [-1]>
  replay.return
}

// CHECK-LABEL: replay.kernel @pointer(
// CHECK-SAME: %[[ADDRESS:.*]]: i64
// CHECK: pointer %[[ADDRESS]] {noalias} -> <f32>
// CHECK: pointer %[[ADDRESS]] -> <f32>
replay.kernel @pointer(%address: i64) num_warps(4) blocks_per_row(1) {
  %p = replay.pointer %address {noalias} -> !replay.ptr<f32>
  %q = replay.pointer %address -> !replay.ptr<f32>
  replay.return
}

// CHECK-LABEL: replay.kernel @load(
// CHECK-SAME: %[[I:.*]]: i32, %[[J:.*]]: i32
// CHECK: load %[[G:.*]]#0[%[[I]], %[[J]]] : <?x128xf32, strides [128, 1], align 16> -> tensor<16x128xf32>
// CHECK: load %[[G]]#0[%[[I]], %[[J]]] : <?x128xf32, strides [128, 1], align 16> -> f32
// CHECK: load %[[G]]#0[%[[I]], %[[J]]] mask %[[G]]#1 : tensor<16x128xi1> {cache = #replay<cache streaming>} : <?x128xf32, strides [128, 1], align 16> -> tensor<16x128xf32>
replay.kernel @load(%i: i32, %j: i32) num_warps(4) blocks_per_row(1) {
  %v, %mask = builtin.unrealized_conversion_cast to
      !replay.view<?x128xf32, strides [128, 1], align 16>, tensor<16x128xi1>
  %t = replay.load %v[%i, %j] : !replay.view<?x128xf32, strides [128, 1],
      align 16> -> tensor<16x128xf32>
  %element = replay.load %v[%i, %j] : !replay.view<?x128xf32, strides [128, 1], align 16> -> f32
  %masked = replay.load %v[%i, %j] mask %mask : tensor<16x128xi1> {cache = #replay<cache streaming>}
      : !replay.view<?x128xf32, strides [128, 1], align 16> -> tensor<16x128xf32>
  replay.return
}

// CHECK-LABEL: replay.kernel @store(
// CHECK: store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : tensor<16x128xf32>, <?x128xf32, strides [128, 1], align 16>
// CHECK: store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : f32, <?x128xf32, strides [128, 1], align 16>
replay.kernel @store(%i: i32, %j: i32, %x: f32) num_warps(4) blocks_per_row(1) {
  %t, %v = builtin.unrealized_conversion_cast to
      tensor<16x128xf32>, !replay.view<?x128xf32, strides [128, 1], align 16>
  replay.store %t, %v[%i, %j] : tensor<16x128xf32>,
      !replay.view<?x128xf32, strides [128, 1], align 16>
  replay.store %x, %v[%i, %j] : f32, !replay.view<?x128xf32, strides [128, 1], align 16>
  replay.return
}

// CHECK-LABEL: replay.kernel @await_predecessor(
// CHECK: launch_dependents
// CHECK: await_predecessor
// CHECK: await_predecessor {then_launch}
replay.kernel @await_predecessor(%p: !replay.ptr<f32> {replay.dependent}) num_warps(4) blocks_per_row(1) {
  replay.launch_dependents
  replay.await_predecessor
  replay.await_predecessor {then_launch}
  replay.return
}

// CHECK-LABEL: replay.kernel @load_fence(
// CHECK: load_fence
replay.kernel @load_fence() num_warps(4) blocks_per_row(1) {
  replay.load_fence
  replay.return
}

// CHECK-LABEL: replay.kernel @report(
// CHECK-SAME: %[[KIND:.*]]: i32, %[[ROW:.*]]: i32, %[[LAYER:.*]]: i32, %[[VALUE:.*]]: i64, %[[WORD:.*]]: !replay.ptr<i32>
// CHECK: report %[[KIND]] row %[[ROW]] layer %[[LAYER]] value %[[VALUE]] to %[[WORD]] : <i32>
// CHECK: report %[[KIND]] row %[[ROW]] layer %[[LAYER]] value %[[VALUE]] to %[[WORD]] {trap} : <i32>
replay.kernel @report(%kind: i32, %row: i32, %layer: i32, %value: i64, %word: !replay.ptr<i32>)
    num_warps(4) blocks_per_row(1) {
  replay.report %kind row %row layer %layer value %value to %word : !replay.ptr<i32>
  replay.report %kind row %row layer %layer value %value to %word {trap} : !replay.ptr<i32>
  replay.return
}

// CHECK-LABEL: replay.kernel @on_overflow(
// CHECK-SAME: %[[KIND:.*]]: i32, %[[ROW:.*]]: i32, %[[LAYER:.*]]: i32, %[[WORD:.*]]: !replay.ptr<i32>
// CHECK: on_overflow %[[KIND]] row %[[ROW]] layer %[[LAYER]] to %[[WORD]] : <i32>
replay.kernel @on_overflow(%kind: i32, %row: i32, %layer: i32, %word: !replay.ptr<i32>)
    num_warps(4) blocks_per_row(1) {
  replay.on_overflow %kind row %row layer %layer to %word : !replay.ptr<i32>
  replay.return
}

// CHECK-LABEL: replay.kernel @on_overflow_trap(
// CHECK: on_overflow %{{.*}} row %{{.*}} layer %{{.*}} to %{{.*}} {trap} : <i32>
replay.kernel @on_overflow_trap(%kind: i32, %row: i32, %layer: i32, %word: !replay.ptr<i32>)
    num_warps(4) blocks_per_row(1) {
  replay.on_overflow %kind row %row layer %layer to %word {trap} : !replay.ptr<i32>
  replay.return
}

//===----------------------------------------------------------------------===//
// Tile level: shape and layout
//===----------------------------------------------------------------------===//

// CHECK-LABEL: replay.kernel @iota(
// CHECK: iota : tensor<16xi32>
replay.kernel @iota() num_warps(4) blocks_per_row(1) {
  %i = replay.iota : tensor<16xi32>
  replay.return
}

// CHECK-LABEL: replay.kernel @splat(
// CHECK: splat %{{.*}} : f32 -> tensor<16xf32>
replay.kernel @splat(%x: f32) num_warps(4) blocks_per_row(1) {
  %t = replay.splat %x : f32 -> tensor<16xf32>
  replay.return
}

// CHECK-LABEL: replay.kernel @expand(
// CHECK: expand %{{.*}} axis 1 : tensor<16xf32> -> tensor<16x1xf32>
replay.kernel @expand() num_warps(4) blocks_per_row(1) {
  %x = builtin.unrealized_conversion_cast to tensor<16xf32>
  %c = replay.expand %x axis 1 : tensor<16xf32> -> tensor<16x1xf32>
  replay.return
}

// CHECK-LABEL: replay.kernel @broadcast(
// CHECK: broadcast %{{.*}} : tensor<16x1xf32> -> tensor<16x128xf32>
replay.kernel @broadcast() num_warps(4) blocks_per_row(1) {
  %c = builtin.unrealized_conversion_cast to tensor<16x1xf32>
  %b = replay.broadcast %c : tensor<16x1xf32> -> tensor<16x128xf32>
  replay.return
}

// CHECK-LABEL: replay.kernel @transpose(
// CHECK: transpose %{{.*}} : tensor<4x32xf32> -> tensor<32x4xf32>
replay.kernel @transpose() num_warps(4) blocks_per_row(1) {
  %x = builtin.unrealized_conversion_cast to tensor<4x32xf32>
  %t = replay.transpose %x : tensor<4x32xf32> -> tensor<32x4xf32>
  replay.return
}

// CHECK-LABEL: replay.kernel @stack(
// CHECK: stack %{{.*}}, %{{.*}}, %{{.*}} : tensor<16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<4x16xf32>
replay.kernel @stack() num_warps(4) blocks_per_row(1) {
  %x, %y, %z = builtin.unrealized_conversion_cast to
      tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  %m = replay.stack %x, %y, %z : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
      -> tensor<4x16xf32>
  replay.return
}

// CHECK-LABEL: replay.kernel @slice(
// CHECK: slice %{{.*}}[%{{.*}}] : tensor<128xf32> -> tensor<64xf32>
replay.kernel @slice(%kt: i32) num_warps(4) blocks_per_row(1) {
  %x = builtin.unrealized_conversion_cast to tensor<128xf32>
  %p = replay.slice %x[%kt] : tensor<128xf32> -> tensor<64xf32>
  replay.return
}

// CHECK-LABEL: replay.kernel @convert_layout(
// CHECK: convert_layout %{{.*}} : tensor<16xf32, #{{.*}}> -> tensor<16xf32, #{{.*}}>
replay.kernel @convert_layout() num_warps(1) blocks_per_row(1) {
  %a = builtin.unrealized_conversion_cast to tensor<16xf32, #a>
  %b = replay.convert_layout %a : tensor<16xf32, #a> -> tensor<16xf32, #b>
  replay.return
}

//===----------------------------------------------------------------------===//
// Tile level: arithmetic
//===----------------------------------------------------------------------===//

// CHECK-LABEL: replay.kernel @reduce(
// CHECK: reduce %{{.*}} axis 1 : tensor<32x128xf32> -> tensor<32xf32>
// CHECK: reduce %{{.*}} axis 0 : tensor<32xf32> -> f32
replay.kernel @reduce() num_warps(4) blocks_per_row(1) {
  %t = builtin.unrealized_conversion_cast to tensor<32x128xf32>
  %r = replay.reduce %t axis 1 : tensor<32x128xf32> -> tensor<32xf32>
  %scalar = replay.reduce %r axis 0 : tensor<32xf32> -> f32
  replay.return
}

// CHECK-LABEL: replay.kernel @cumsum(
// CHECK: cumsum %{{.*}} axis 0 {exclusive, reverse} : tensor<16xf32>
// CHECK: cumsum %{{.*}} axis 0 : tensor<16xf32>
replay.kernel @cumsum() num_warps(4) blocks_per_row(1) {
  %g = builtin.unrealized_conversion_cast to tensor<16xf32>
  %w = replay.cumsum %g axis 0 {exclusive, reverse} : tensor<16xf32>
  %plain = replay.cumsum %g axis 0 : tensor<16xf32>
  replay.return
}

// CHECK-LABEL: replay.kernel @dot(
// CHECK: dot %{{.*}}, %{{.*}}, %{{.*}} precision tf32 : tensor<64x16xf32>, tensor<16x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
// CHECK: dot {{.*}} precision ieee
// CHECK: dot {{.*}} precision bf16
// CHECK: dot {{.*}} precision f16
// CHECK: dot {{.*}} precision bf16 {wide}
replay.kernel @dot() num_warps(4) blocks_per_row(1) {
  %a, %b, %c = builtin.unrealized_conversion_cast to
      tensor<64x16xf32>, tensor<16x64xf32>, tensor<64x64xf32>
  %s = replay.dot %a, %b, %c precision tf32
      : tensor<64x16xf32>, tensor<16x64xf32>, tensor<64x64xf32>
      -> tensor<64x64xf32>
  %0 = replay.dot %a, %b, %c precision ieee
      : tensor<64x16xf32>, tensor<16x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %1 = replay.dot %a, %b, %c precision bf16
      : tensor<64x16xf32>, tensor<16x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %2 = replay.dot %a, %b, %c precision f16
      : tensor<64x16xf32>, tensor<16x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %3 = replay.dot %a, %b, %c precision bf16 {wide}
      : tensor<64x16xf32>, tensor<16x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  replay.return
}

//===----------------------------------------------------------------------===//
// Staged level
//===----------------------------------------------------------------------===//

// CHECK-LABEL: replay.kernel @alloc(
// CHECK: %[[BUF:.*]] = alloc : <64x128xf32>
// CHECK-NEXT: async_copy %{{.*}}, %[[BUF]] : <64x128xf32, strides [128, 1], align 16>, <64x128xf32>
// CHECK-NEXT: wait %[[BUF]] : <64x128xf32>
// CHECK-NEXT: %[[S:.*]] = stage %[[BUF]] : <64x128xf32> -> <64x128xf32, strides [128, 1], align 16, shared>
// CHECK-NEXT: load %[[S]][%{{.*}}, %{{.*}}] : <64x128xf32, strides [128, 1], align 16, shared> -> tensor<64x128xf32>
// CHECK: stage %[[BUF]] size %{{.*}} : <64x128xf32> -> <?x128xf32, strides [-128, 1], align 16, shared>
replay.kernel @alloc(%c0: i32, %m: i32) num_warps(4) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to
      !replay.view<64x128xf32, strides [128, 1], align 16>
  %buf = replay.alloc : !replay.buffer<64x128xf32>
  replay.async_copy %v, %buf : !replay.view<64x128xf32, strides [128, 1],
    align 16>, !replay.buffer<64x128xf32>
  replay.wait %buf : !replay.buffer<64x128xf32>
  %s = replay.stage %buf : !replay.buffer<64x128xf32>
    -> !replay.view<64x128xf32, strides [128, 1], align 16, shared>
  %t = replay.load %s[%c0, %c0] : !replay.view<64x128xf32, strides [128, 1],
    align 16, shared> -> tensor<64x128xf32>
  %r = replay.stage %buf size %m : !replay.buffer<64x128xf32>
    -> !replay.view<?x128xf32, strides [-128, 1], align 16, shared>
  replay.return
}

//===----------------------------------------------------------------------===//
// Thread level
//===----------------------------------------------------------------------===//

// CHECK-LABEL: replay.kernel @ld(
// CHECK-SAME: %[[C:.*]]: i1
// CHECK: %[[P:.*]] = builtin
// CHECK: ld %[[P]] if %[[C]] : !llvm.ptr<1> -> f32, f32
// CHECK: ld %[[P]] {cache = #replay<cache streaming>, readonly} : !llvm.ptr<1> -> bf16
replay.kernel @ld(%c: i1) num_warps(1) blocks_per_row(1) {
  %p = builtin.unrealized_conversion_cast to !llvm.ptr<1>
  %a, %b = replay.ld %p if %c : !llvm.ptr<1> -> f32, f32
  %d = replay.ld %p {cache = #replay<cache streaming>, readonly} : !llvm.ptr<1> -> bf16
  replay.return
}

// CHECK-LABEL: replay.kernel @st(
// CHECK-SAME: %[[C:.*]]: i1, %[[A:.*]]: f32, %[[B:.*]]: f32
// CHECK: st %[[A]], %[[B]] to %[[G:.*]]#0 if %[[C]] : !llvm.ptr<1>, f32, f32
// CHECK: st %[[A]] to %[[G]]#1 : !llvm.ptr<3>, f32
replay.kernel @st(%c: i1, %a: f32, %b: f32) num_warps(1) blocks_per_row(1) {
  %p, %shared = builtin.unrealized_conversion_cast to !llvm.ptr<1>, !llvm.ptr<3>
  replay.st %a, %b to %p if %c : !llvm.ptr<1>, f32, f32
  replay.st %a to %shared : !llvm.ptr<3>, f32
  replay.return
}
