// RUN: replay-opt %s --replay-assign-layouts | FileCheck %s

!tile = !replay.view<32x128xf32, strides [128, 1], align 16>
!row = !replay.view<128xf32, strides [1], align 16>
!out = !replay.view<32xf32, strides [1], align 16>
!ring = !replay.view<?xf32, strides [-1]>

// The load is the anchor: 8 lanes a row, 16 bytes each, warps on the high rows.
// The vector follows it, so that nothing is converted; the sum is distributed:
// the lane bit that summed takes over the row bit that registers held.
// CHECK-LABEL: replay.kernel @matvec(
// CHECK: load {{.*}} -> tensor<32x128xf32, #replay.layout<register = {{.}}[0, 1], [0, 2], [0, 32], [0, 64], [4, 0]], lane = {{.}}[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = {{.}}[8, 0], [16, 0]]>>
// CHECK: load {{.*}} -> tensor<128xf32, #replay.layout<register = {{.}}[1], [2], [32], [64]], lane = {{.}}[4], [8], [16], [0], [0]], warp = {{.}}[0], [0]]>>
// CHECK-NOT: convert_layout
// CHECK: reduce {{.*}} -> tensor<32xf32, #replay.layout<register = [], lane = {{.}}[4], [0], [0], [1], [2]], warp = {{.}}[8], [16]]>>
// CHECK-NOT: convert_layout
// CHECK: return
replay.kernel @matvec(%i: i32) num_warps(4) blocks_per_row(1) {
  %s, %v, %o = builtin.unrealized_conversion_cast to !tile, !row, !out
  %t = replay.load %s[%i, %i] : !tile -> tensor<32x128xf32>
  %x = replay.load %v[%i] : !row -> tensor<128xf32>
  %thin = replay.expand %x axis 0 : tensor<128xf32> -> tensor<1x128xf32>
  %wide = replay.broadcast %thin : tensor<1x128xf32> -> tensor<32x128xf32>
  %p = arith.mulf %t, %wide : tensor<32x128xf32>
  %y = replay.reduce %p axis 1 : tensor<32x128xf32> -> tensor<32xf32>
  replay.store %y, %o[%i] : tensor<32xf32>, !out
  replay.return
}

// 16 bytes are 8 elements of 16 bits.
// CHECK-LABEL: replay.kernel @halves(
// CHECK: load {{.*}} #replay.layout<register = {{.}}[0, 1], [0, 2], [0, 4], [0, 64]], lane = {{.}}[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = {{.}}[4, 0], [8, 0]]>>
replay.kernel @halves(%i: i32) num_warps(4) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !replay.view<16x128xbf16, strides [128, 1], align 16>
  %t = replay.load %v[%i, %i] : !replay.view<16x128xbf16, strides [128, 1], align 16> -> tensor<16x128xbf16>
  replay.store %t, %v[%i, %i] : tensor<16x128xbf16>, !replay.view<16x128xbf16, strides [128, 1], align 16>
  replay.return
}

// What is stored in place lies in one thread each, so that no other may still
// have to read it: vectors shrink where there are too few of 16 bytes,
// CHECK-LABEL: replay.kernel @narrow_in_place(
// CHECK: load {{.*}} #replay.layout<register = [], lane = {{.}}[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], warp = []>>
replay.kernel @narrow_in_place(%i: i32) num_warps(1) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !replay.view<8x4xf32, strides [4, 1], align 16>
  %t = replay.load %v[%i, %i] : !replay.view<8x4xf32, strides [4, 1], align 16> -> tensor<8x4xf32>
  replay.store %t, %v[%i, %i] : tensor<8x4xf32>, !replay.view<8x4xf32, strides [4, 1], align 16>
  replay.return
}

// CHECK-LABEL: replay.kernel @narrow_halves_in_place(
// CHECK: load {{.*}} #replay.layout<register = {{.}}[0, 1]], lane = {{.}}[0, 2], [0, 4], [0, 8], [1, 0], [2, 0]], warp = {{.}}[4, 0], [8, 0]]>>
replay.kernel @narrow_halves_in_place(%i: i32) num_warps(4) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !replay.view<16x16xbf16, strides [16, 1], align 16>
  %t = replay.load %v[%i, %i] : !replay.view<16x16xbf16, strides [16, 1], align 16> -> tensor<16x16xbf16>
  replay.store %t, %v[%i, %i] : tensor<16x16xbf16>, !replay.view<16x16xbf16, strides [16, 1], align 16>
  replay.return
}

// and warps share rows where these are too few.
// CHECK-LABEL: replay.kernel @few_rows_in_place(
// CHECK: load {{.*}} #replay.layout<register = {{.}}[0, 1], [0, 2], [0, 32]], lane = {{.}}[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = {{.}}[4, 0], [8, 0], [0, 64]]>>
replay.kernel @few_rows_in_place(%i: i32) num_warps(8) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !replay.view<16x128xf32, strides [128, 1], align 16>
  %t = replay.load %v[%i, %i] : !replay.view<16x128xf32, strides [128, 1], align 16> -> tensor<16x128xf32>
  replay.store %t, %v[%i, %i] : tensor<16x128xf32>, !replay.view<16x128xf32, strides [128, 1], align 16>
  replay.return
}

// A kernel may ask for other lanes: 16 hold a row here, and 4 columns less each.
// CHECK-LABEL: replay.kernel @lanes_per_row(
// CHECK: load {{.*}} #replay.layout<register = {{.}}[0, 1], [0, 2], [0, 64], [2, 0], [4, 0]], lane = {{.}}[0, 4], [0, 8], [0, 16], [0, 32], [1, 0]], warp = []>>
replay.kernel @lanes_per_row(%i: i32) num_warps(1) blocks_per_row(1)
    attributes {replay.lanes_per_row = 16 : i32} {
  %v = builtin.unrealized_conversion_cast to !tile
  %t = replay.load %v[%i, %i] : !tile -> tensor<8x128xf32>
  replay.store %t, %v[%i, %i] : tensor<8x128xf32>, !tile
  replay.return
}

// Neighbours in memory stand in one column.
// CHECK-LABEL: replay.kernel @column_major(
// CHECK: load {{.*}} #replay.layout<register = {{.}}[1, 0], [2, 0]{{.*}}, lane = {{.}}[4, 0], [8, 0], [16, 0], [0, 1], [0, 2]], warp = {{.*}}>>
replay.kernel @column_major(%i: i32) num_warps(4) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !replay.view<32x128xf32, strides [1, 32], align 16>
  %t = replay.load %v[%i, %i] : !replay.view<32x128xf32, strides [1, 32], align 16> -> tensor<32x128xf32>
  replay.store %t, %v[%i, %i] : tensor<32x128xf32>, !replay.view<32x128xf32, strides [1, 32], align 16>
  replay.return
}

// The larger load decides; the small one takes what flows to it.
// CHECK-LABEL: replay.kernel @largest_first(
// CHECK: load {{.*}} -> tensor<32x1xf32, #replay.layout<register = {{.}}[4, 0]], lane = {{.}}[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = {{.}}[8, 0], [16, 0]]>>
// CHECK: load {{.*}} -> tensor<32x128xf32,
// CHECK-NOT: convert_layout
// CHECK: return
replay.kernel @largest_first(%i: i32) num_warps(4) blocks_per_row(1) {
  %s = builtin.unrealized_conversion_cast to !tile
  %c = replay.load %s[%i, %i] : !tile -> tensor<32x1xf32>
  %t = replay.load %s[%i, %i] : !tile -> tensor<32x128xf32>
  %wide = replay.broadcast %c : tensor<32x1xf32> -> tensor<32x128xf32>
  %sum = arith.addf %t, %wide : tensor<32x128xf32>
  replay.store %sum, %s[%i, %i] : tensor<32x128xf32>, !tile
  replay.return
}

// A scan's axis lies in registers, and what is loaded for it alone as well.
// CHECK-LABEL: replay.kernel @scan(
// CHECK: load {{.*}} #replay.layout<register = {{.}}[1], [2], [4], [8]], lane = {{.}}[0], [0], [0], [0], [0]], warp = {{.}}[0], [0]]>>
// CHECK-NOT: convert_layout
// CHECK: cumsum {{.*}} #replay.layout<register = {{.}}[1], [2], [4], [8]],
// CHECK: return
replay.kernel @scan(%i: i32) num_warps(4) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !ring
  %g = replay.load %v[%i] : !ring -> tensor<16xf32>
  %w = replay.cumsum %g axis 0 : tensor<16xf32>
  replay.store %w, %v[%i] : tensor<16xf32>, !ring
  replay.return
}

// Neighbours of a scan follow the load; where the two meet stands a conversion.
// CHECK-LABEL: replay.kernel @scan_meets_load(
// CHECK: %[[W:.*]] = cumsum {{.*}} #replay.layout<register = {{.}}[1], [2], [4], [8]],
// CHECK: %[[C:.*]] = convert_layout %[[W]]
// CHECK: math.exp %[[C]] {{.*}} lane = {{.}}[0], [0], [0], [1], [2]],
// CHECK-NOT: convert_layout
// CHECK: return
replay.kernel @scan_meets_load(%i: i32) num_warps(4) blocks_per_row(1) {
  %v, %s = builtin.unrealized_conversion_cast to !ring, !tile
  %g = replay.load %v[%i] : !ring -> tensor<16xf32>
  %w = replay.cumsum %g axis 0 : tensor<16xf32>
  %e = math.exp %w : tensor<16xf32>
  %thin = replay.expand %e axis 1 : tensor<16xf32> -> tensor<16x1xf32>
  %wide = replay.broadcast %thin : tensor<16x1xf32> -> tensor<16x128xf32>
  %t = replay.load %s[%i, %i] : !tile -> tensor<16x128xf32>
  %p = arith.mulf %t, %wide : tensor<16x128xf32>
  replay.store %p, %s[%i, %i] : tensor<16x128xf32>, !tile
  replay.return
}

// A scan of a matrix spreads the other dimension over lanes.
// CHECK-LABEL: replay.kernel @scan_of_rows(
// CHECK: cumsum {{.*}} axis 0 {{.*}} #replay.layout<register = {{.*}}[1, 0], [2, 0], [4, 0]], lane = {{.}}[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]],
replay.kernel @scan_of_rows(%i: i32) num_warps(1) blocks_per_row(1) {
  %s = builtin.unrealized_conversion_cast to !tile
  %t = replay.load %s[%i, %i] : !tile -> tensor<8x32xf32>
  %w = replay.cumsum %t axis 0 : tensor<8x32xf32>
  replay.store %w, %s[%i, %i] : tensor<8x32xf32>, !tile
  replay.return
}

// Exponentials and logarithms cost more than a change of layout: each is computed
// once, whatever their neighbours repeat.
// CHECK-LABEL: replay.kernel @exponentials(
// CHECK: math.exp {{.*}} : tensor<128xf32, #replay.layout<register = [], lane = {{.}}[1], [2], [4], [8], [16]], warp = {{.}}[32], [64]]>>
// CHECK: convert_layout {{.*}} -> tensor<128xf32, #replay.layout<register = {{.}}[1], [2], [32], [64]], lane = {{.}}[4], [8], [16], [0], [0]], warp = {{.}}[0], [0]]>>
replay.kernel @exponentials(%i: i32) num_warps(4) blocks_per_row(1) {
  %s, %v = builtin.unrealized_conversion_cast to !tile, !row
  %t = replay.load %s[%i, %i] : !tile -> tensor<32x128xf32>
  %x = replay.load %v[%i] : !row -> tensor<128xf32>
  %e = math.exp %x : tensor<128xf32>
  %thin = replay.expand %e axis 0 : tensor<128xf32> -> tensor<1x128xf32>
  %wide = replay.broadcast %thin : tensor<1x128xf32> -> tensor<32x128xf32>
  %p = arith.mulf %t, %wide : tensor<32x128xf32>
  replay.store %p, %s[%i, %i] : tensor<32x128xf32>, !tile
  replay.return
}

// More than one for each thread: neighbours, so that their accesses are wide.
// CHECK-LABEL: replay.kernel @exponentials_of_a_warp(
// CHECK: load {{.*}} -> tensor<128xf32, #replay.layout<register = {{.}}[1], [2]], lane = {{.}}[4], [8], [16], [32], [64]], warp = []>>
// CHECK-NEXT: math.exp
replay.kernel @exponentials_of_a_warp(%i: i32) num_warps(1) blocks_per_row(1) {
  %s, %v = builtin.unrealized_conversion_cast to !tile, !row
  %t = replay.load %s[%i, %i] : !tile -> tensor<8x128xf32>
  %x = replay.load %v[%i] : !row -> tensor<128xf32>
  %e = math.exp %x : tensor<128xf32>
  %thin = replay.expand %e axis 0 : tensor<128xf32> -> tensor<1x128xf32>
  %wide = replay.broadcast %thin : tensor<1x128xf32> -> tensor<8x128xf32>
  %p = arith.mulf %t, %wide : tensor<8x128xf32>
  replay.store %p, %s[%i, %i] : tensor<8x128xf32>, !tile
  replay.return
}

// A dot on the matrix unit is the strongest anchor: result, accumulator and
// operands are fragments, loads and all.
// CHECK-LABEL: replay.kernel @dot_tf32(
// CHECK-NOT: convert_layout
// CHECK: dot {{.*}} : tensor<64x16xf32, #replay.layout<register = {{.}}[8, 0], [0, 4], [0, 8]], lane = {{.}}[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], warp = {{.}}[16, 0], [32, 0]]>>,
// CHECK-SAME: tensor<16x64xf32, #replay.layout<register = {{.}}[4, 0], [8, 0], [0, 8], [0, 16], [0, 32]], lane = {{.}}[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]], warp = {{.}}[0, 0], [0, 0]]>>,
// CHECK-SAME: -> tensor<64x64xf32, #replay.layout<register = {{.}}[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = {{.}}[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = {{.}}[16, 0], [32, 0]]>>
// CHECK-NOT: convert_layout
// CHECK: return
replay.kernel @dot_tf32(%i: i32) num_warps(4) blocks_per_row(1) {
  %s = builtin.unrealized_conversion_cast to !tile
  %a = replay.load %s[%i, %i] : !tile -> tensor<64x16xf32>
  %b = replay.load %s[%i, %i] : !tile -> tensor<16x64xf32>
  %c = replay.load %s[%i, %i] : !tile -> tensor<64x64xf32>
  %d = replay.dot %a, %b, %c precision tf32
      : tensor<64x16xf32>, tensor<16x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  replay.store %d, %s[%i, %i] : tensor<64x64xf32>, !tile
  replay.return
}

// 16-bit fragments hold pairs along K.
// CHECK-LABEL: replay.kernel @dot_bf16(
// CHECK: dot {{.*}} : tensor<16x16xf32, #replay.layout<register = {{.}}[0, 1], [8, 0], [0, 8]], lane = {{.}}[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>>,
// CHECK-SAME: tensor<16x8xf32, #replay.layout<register = {{.}}[1, 0], [8, 0]], lane = {{.}}[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = []>>
replay.kernel @dot_bf16(%i: i32) num_warps(1) blocks_per_row(1) {
  %s = builtin.unrealized_conversion_cast to !tile
  %a = replay.load %s[%i, %i] : !tile -> tensor<16x16xf32>
  %b = replay.load %s[%i, %i] : !tile -> tensor<16x8xf32>
  %c = arith.constant dense<0.0> : tensor<16x8xf32>
  %d = replay.dot %a, %b, %c precision bf16
      : tensor<16x16xf32>, tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
  replay.store %d, %s[%i, %i] : tensor<16x8xf32>, !tile
  replay.return
}

// Each dot is an anchor, also where a vector that another dot's result laid out
// would give its result the same columns in other registers: the matrix unit
// takes no other order.
// CHECK-LABEL: replay.kernel @dots_share_vector(
// CHECK-COUNT-2: dot {{.*}} -> tensor<16x16xf32, #replay.layout<register = {{.}}[0, 1], [8, 0], [0, 8]], lane = {{.}}[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>>
// CHECK: return
replay.kernel @dots_share_vector(%i: i32, %flush: i1) num_warps(1) blocks_per_row(1) {
  %s, %v = builtin.unrealized_conversion_cast to !tile, !row
  %x = replay.load %v[%i] : !row -> tensor<16xf32>
  %a = replay.load %s[%i, %i] : !tile -> tensor<16x16xf32>
  %b = replay.load %s[%i, %i] : !tile -> tensor<16x16xf32>
  %c = replay.load %s[%i, %i] : !tile -> tensor<16x16xf32>
  %read = replay.dot %a, %b, %c precision tf32
      : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  %thin = replay.expand %x axis 0 : tensor<16xf32> -> tensor<1x16xf32>
  %wide = replay.broadcast %thin : tensor<1x16xf32> -> tensor<16x16xf32>
  %p = arith.mulf %read, %wide : tensor<16x16xf32>
  %y = replay.reduce %p axis 1 : tensor<16x16xf32> -> tensor<16xf32>
  replay.store %y, %v[%i] : tensor<16xf32>, !row
  scf.if %flush {
    %d = replay.load %s[%i, %i] : !tile -> tensor<16x16xf32>
    %e = replay.load %s[%i, %i] : !tile -> tensor<16x16xf32>
    %f = replay.load %s[%i, %i] : !tile -> tensor<16x16xf32>
    %formed = replay.dot %d, %e, %f precision tf32
        : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %thin2 = replay.expand %x axis 0 : tensor<16xf32> -> tensor<1x16xf32>
    %wide2 = replay.broadcast %thin2 : tensor<1x16xf32> -> tensor<16x16xf32>
    %q = arith.mulf %formed, %wide2 : tensor<16x16xf32>
    replay.store %q, %s[%i, %i] : tensor<16x16xf32>, !tile
  }
  replay.return
}

// A tile that a dot wants in two ways is converted for one of them.
// CHECK-LABEL: replay.kernel @gram(
// CHECK: %[[T:.*]] = load
// CHECK: %[[C:.*]] = convert_layout
// CHECK: dot
// CHECK-NOT: convert_layout
// CHECK: return
replay.kernel @gram(%i: i32) num_warps(1) blocks_per_row(1) {
  %s = builtin.unrealized_conversion_cast to !tile
  %t = replay.load %s[%i, %i] : !tile -> tensor<16x16xf32>
  %c = arith.constant dense<0.0> : tensor<16x16xf32>
  %d = replay.dot %t, %t, %c precision tf32
      : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  replay.store %d, %s[%i, %i] : tensor<16x16xf32>, !tile
  replay.return
}

// An ieee dot keeps the accumulator's layout; its operands have K in registers.
// CHECK-LABEL: replay.kernel @dot_ieee(
// CHECK: dot {{.*}} : tensor<32x4xf32, #replay.layout<register = {{.}}[4, 0], [0, 1], [0, 2]], lane = {{.}}[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = {{.}}[8, 0], [16, 0]]>>,
// CHECK-SAME: tensor<4x128xf32, #replay.layout<register = {{.}}[0, 1], [0, 2], [0, 32], [0, 64], [1, 0], [2, 0]], lane = {{.}}[0, 4], [0, 8], [0, 16], [0, 0], [0, 0]], warp = {{.}}[0, 0], [0, 0]]>>
replay.kernel @dot_ieee(%i: i32) num_warps(4) blocks_per_row(1) {
  %s = builtin.unrealized_conversion_cast to !tile
  %a = replay.load %s[%i, %i] : !tile -> tensor<32x4xf32>
  %b = replay.load %s[%i, %i] : !tile -> tensor<4x128xf32>
  %c = replay.load %s[%i, %i] : !tile -> tensor<32x128xf32>
  %d = replay.dot %a, %b, %c precision ieee
      : tensor<32x4xf32>, tensor<4x128xf32>, tensor<32x128xf32> -> tensor<32x128xf32>
  replay.store %d, %s[%i, %i] : tensor<32x128xf32>, !tile
  replay.return
}

// One constant for two layouts becomes two constants, not a conversion.
// CHECK-LABEL: replay.kernel @constants(
// CHECK-DAG: arith.constant dense<1.000000e+00> : tensor<16x128xf32, #replay.layout<register = {{.}}[0, 1], [0, 2],
// CHECK-DAG: arith.constant dense<1.000000e+00> : tensor<16x128xf32, #replay.layout<register = {{.}}[1, 0], [2, 0],
// CHECK-NOT: convert_layout
// CHECK: return
replay.kernel @constants(%i: i32) num_warps(4) blocks_per_row(1) {
  %s, %v = builtin.unrealized_conversion_cast to !tile, !replay.view<16x128xf32, strides [1, 32], align 16>
  %one = arith.constant dense<1.0> : tensor<16x128xf32>
  %t = replay.load %s[%i, %i] : !tile -> tensor<16x128xf32>
  %u = replay.load %v[%i, %i] : !replay.view<16x128xf32, strides [1, 32], align 16> -> tensor<16x128xf32>
  %x = arith.addf %t, %one : tensor<16x128xf32>
  %y = arith.addf %u, %one : tensor<16x128xf32>
  replay.store %x, %s[%i, %i] : tensor<16x128xf32>, !tile
  replay.store %y, %v[%i, %i] : tensor<16x128xf32>, !replay.view<16x128xf32, strides [1, 32], align 16>
  replay.return
}

// What a loop carries has one layout throughout.
// CHECK-LABEL: replay.kernel @loop(
// CHECK: %[[INIT:.*]] = arith.constant dense<{{.*}}> : tensor<32x128xf32, #[[L:.*]]>
// CHECK: scf.for {{.*}} -> (tensor<32x128xf32, #[[L]]>)
// CHECK-NOT: convert_layout
// CHECK: scf.yield {{.*}} : tensor<32x128xf32, #[[L]]>
// CHECK: return
replay.kernel @loop(%i: i32) num_warps(4) blocks_per_row(1) {
  %s = builtin.unrealized_conversion_cast to !tile
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %init = arith.constant dense<0.0> : tensor<32x128xf32>
  %sum = scf.for %n = %c0 to %i step %c1 iter_args(%acc = %init) -> (tensor<32x128xf32>) : i32 {
    %t = replay.load %s[%n, %c0] : !tile -> tensor<32x128xf32>
    %next = arith.addf %acc, %t : tensor<32x128xf32>
    scf.yield %next : tensor<32x128xf32>
  }
  replay.store %sum, %s[%i, %i] : tensor<32x128xf32>, !tile
  replay.return
}

// So have the results of a branch.
// CHECK-LABEL: replay.kernel @branch(
// CHECK: scf.if {{.*}} -> (tensor<32x128xf32, #[[L:.*]]>)
// CHECK: scf.yield {{.*}} : tensor<32x128xf32, #[[L]]>
// CHECK: scf.yield {{.*}} : tensor<32x128xf32, #[[L]]>
replay.kernel @branch(%i: i32, %c: i1, %a: f32) num_warps(4) blocks_per_row(1) {
  %s = builtin.unrealized_conversion_cast to !tile
  %x = scf.if %c -> (tensor<32x128xf32>) {
    %t = replay.load %s[%i, %i] : !tile -> tensor<32x128xf32>
    scf.yield %t : tensor<32x128xf32>
  } else {
    %t = replay.splat %a : f32 -> tensor<32x128xf32>
    scf.yield %t : tensor<32x128xf32>
  }
  replay.store %x, %s[%i, %i] : tensor<32x128xf32>, !tile
  replay.return
}

// A vector contracted with every column spreads its rows over the idle lanes.
// CHECK-LABEL: replay.kernel @scores(
// CHECK: load {{.*}} -> tensor<16x128xf32, #[[L:.*]]>
// CHECK: broadcast {{.*}} -> tensor<16x128xf32, #[[L]]>
// CHECK: reduce {{.*}} axis 1 {{.*}} -> tensor<16xf32,
// CHECK-NOT: convert_layout
// CHECK: return
replay.kernel @scores(%i: i32) num_warps(4) blocks_per_row(1) {
  %s, %v, %o = builtin.unrealized_conversion_cast to !tile, !row, !out
  %k = replay.load %s[%i, %i] : !tile -> tensor<16x128xf32>
  %x = replay.load %v[%i] : !row -> tensor<128xf32>
  %thin = replay.expand %x axis 0 : tensor<128xf32> -> tensor<1x128xf32>
  %wide = replay.broadcast %thin : tensor<1x128xf32> -> tensor<16x128xf32>
  %p = arith.mulf %k, %wide : tensor<16x128xf32>
  %y = replay.reduce %p axis 1 : tensor<16x128xf32> -> tensor<16xf32>
  replay.store %y, %o[%i] : tensor<16xf32>, !out
  replay.return
}

// Slices of a vector take its registers: the high bits are registers'.
// CHECK-LABEL: replay.kernel @slices(
// CHECK: load {{.*}} -> tensor<128xf32, #replay.layout<register = {{.}}[1], [2], [32], [64]],
// CHECK-COUNT-2: slice {{.*}} -> tensor<64xf32, #replay.layout<register = {{.}}[1], [2], [32]],
// CHECK-NOT: convert_layout
// CHECK: return
replay.kernel @slices(%i: i32) num_warps(4) blocks_per_row(1) {
  %s, %v = builtin.unrealized_conversion_cast to !tile, !row
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %t = replay.load %s[%i, %i] : !tile -> tensor<32x64xf32>
  %x = replay.load %v[%i] : !row -> tensor<128xf32>
  %p0 = replay.slice %x[%c0] : tensor<128xf32> -> tensor<64xf32>
  %p1 = replay.slice %x[%c64] : tensor<128xf32> -> tensor<64xf32>
  %sum = arith.addf %p0, %p1 : tensor<64xf32>
  %thin = replay.expand %sum axis 0 : tensor<64xf32> -> tensor<1x64xf32>
  %wide = replay.broadcast %thin : tensor<1x64xf32> -> tensor<32x64xf32>
  %y = arith.mulf %t, %wide : tensor<32x64xf32>
  replay.store %y, %s[%i, %i] : tensor<32x64xf32>, !tile
  replay.return
}

// Without any anchor a vector lies across the lanes.
// CHECK-LABEL: replay.kernel @vector(
// CHECK: load {{.*}} -> tensor<128xf32, #replay.layout<register = [], lane = {{.}}[1], [2], [4], [8], [16]], warp = {{.}}[32], [64]]>>
replay.kernel @vector(%i: i32) num_warps(4) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !row
  %x = replay.load %v[%i] : !row -> tensor<128xf32>
  replay.store %x, %v[%i] : tensor<128xf32>, !row
  replay.return
}

// The rows of a stack lie in registers of the threads that have their columns, and
// so does the work that makes them; the product's fragment comes by an exchange.
// CHECK-LABEL: replay.kernel @stacked(
// CHECK: load {{.*}} -> tensor<64x64xbf16, #[[A:.*]]>
// CHECK: load {{.*}} -> tensor<64xf32, #[[OWN:.*]]>
// CHECK: arith.truncf {{.*}} : tensor<64xf32, #[[OWN]]> to tensor<64xbf16, #[[OWN]]>
// CHECK: stack {{.*}} -> tensor<8x64xbf16, #[[ROWS:.*]]>
// CHECK: convert_layout {{.*}} : tensor<8x64xbf16, #[[ROWS]]> -> tensor<8x64xbf16, #[[BT:.*]]>
// CHECK: transpose {{.*}} : tensor<8x64xf32, #[[BT]]> -> tensor<64x8xf32, #[[B:.*]]>
// CHECK: dot {{.*}} {wide} : tensor<64x64xf32, #[[A]]>, tensor<64x8xf32, #[[B]]>,
replay.kernel @stacked(%p: !replay.ptr<bf16>, %q: !replay.ptr<f32>, %n: i64) num_warps(2) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %va = replay.view %p offset %n : !replay.ptr<bf16> -> !replay.view<64x64xbf16, strides [64, 1], align 16>
  %vx = replay.view %q offset %n : !replay.ptr<f32> -> !replay.view<64xf32, strides [1], align 16>
  %vc = replay.view %q offset %n : !replay.ptr<f32> -> !replay.view<64x8xf32, strides [8, 1], align 16>
  %a = replay.load %va[%c0, %c0] : !replay.view<64x64xbf16, strides [64, 1], align 16> -> tensor<64x64xbf16>
  %af = arith.extf %a : tensor<64x64xbf16> to tensor<64x64xf32>
  %x = replay.load %vx[%c0] : !replay.view<64xf32, strides [1], align 16> -> tensor<64xf32>
  %h = arith.truncf %x : tensor<64xf32> to tensor<64xbf16>
  %s = replay.stack %h, %h : tensor<64xbf16>, tensor<64xbf16> -> tensor<8x64xbf16>
  %sf = arith.extf %s : tensor<8x64xbf16> to tensor<8x64xf32>
  %b = replay.transpose %sf : tensor<8x64xf32> -> tensor<64x8xf32>
  %c = arith.constant dense<0.0> : tensor<64x8xf32>
  %d = replay.dot %af, %b, %c precision bf16 {wide}
      : tensor<64x64xf32>, tensor<64x8xf32>, tensor<64x8xf32> -> tensor<64x8xf32>
  replay.store %d, %vc[%c0, %c0] : tensor<64x8xf32>, !replay.view<64x8xf32, strides [8, 1], align 16>
  replay.return
}
