// What the lowering relies on, each broken once.
//
// RUN: replay-opt %s --convert-replay-to-nvvm -split-input-file -verify-diagnostics

replay.kernel @no_layout() num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{has a tile without a layout; run replay-assign-layouts first}}
  %i = replay.iota : tensor<16xi32>
  replay.return
}

// -----

#v = #replay.layout<register = [[1], [2]], lane = [[4], [8], [16], [0], [0]], warp = []>
#half = #replay.layout<register = [[1], [2]], lane = [[4], [8], [0], [0], [0]], warp = []>
replay.kernel @slice_somewhere(%a: f32, %i: i32) num_warps(1) blocks_per_row(1) {
  %x = replay.splat %a : f32 -> tensor<32xf32, #v>
  // expected-error @+1 {{needs a constant offset to be lowered; unroll its loop with replay-unroll-tiles first}}
  %s = replay.slice %x[%i] : tensor<32xf32, #v> -> tensor<16xf32, #half>
  replay.return
}

// -----

#v = #replay.layout<register = [[1]], lane = [[0], [0], [0], [0], [0]], warp = []>
replay.kernel @table() num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{must be a splat to be lowered}}
  %x = arith.constant dense<[1.0, 2.0]> : tensor<2xf32, #v>
  replay.return
}

// -----

#m = #replay.layout<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = []>
#r = #replay.layout<register = [], lane = [[1], [2], [0], [0], [0]], warp = []>
replay.kernel @reduce_elsewhere(%a: f32) num_warps(1) blocks_per_row(1) {
  %x = replay.splat %a : f32 -> tensor<4x32xf32, #m>
  // expected-error @+1 {{has a result layout other than its reduction's}}
  %y = replay.reduce %x axis 1 : tensor<4x32xf32, #m> -> tensor<4xf32, #r>
  replay.return
}

// -----

#v = #replay.layout<register = [], lane = [[1], [2], [4], [8], [0]], warp = []>
replay.kernel @scan_over_lanes(%a: f32) num_warps(1) blocks_per_row(1) {
  %x = replay.splat %a : f32 -> tensor<16xf32, #v>
  // expected-error @+1 {{needs its axis in registers to be lowered}}
  %y = replay.cumsum %x axis 0 : tensor<16xf32, #v>
  replay.return
}

// -----

// The same lanes, but registers in another order.
#a = #replay.layout<register = [[8, 0], [0, 4], [0, 8]], lane = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], warp = []>
#b = #replay.layout<register = [[4, 0], [8, 0], [0, 8]], lane = [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]], warp = []>
#o = #replay.layout<register = [[0, 1], [0, 8], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>
replay.kernel @dot_of_other_registers(%x: f32) num_warps(1) blocks_per_row(1) {
  %a = replay.splat %x : f32 -> tensor<16x16xf32, #a>
  %b = replay.splat %x : f32 -> tensor<16x16xf32, #b>
  %c = replay.splat %x : f32 -> tensor<16x16xf32, #o>
  // expected-error @+1 {{has tiles in other layouts than the matrix unit's fragments}}
  %d = replay.dot %a, %b, %c precision tf32
      : tensor<16x16xf32, #a>, tensor<16x16xf32, #b>, tensor<16x16xf32, #o> -> tensor<16x16xf32, #o>
  replay.return
}

// -----

// An operand laid out as a result.
#b = #replay.layout<register = [[4, 0], [8, 0], [0, 8]], lane = [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]], warp = []>
#c = #replay.layout<register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>
replay.kernel @dot_of_results(%x: f32) num_warps(1) blocks_per_row(1) {
  %a = replay.splat %x : f32 -> tensor<16x16xf32, #c>
  %b = replay.splat %x : f32 -> tensor<16x16xf32, #b>
  %c = replay.splat %x : f32 -> tensor<16x16xf32, #c>
  // expected-error @+1 {{has tiles in other layouts than the matrix unit's fragments}}
  %d = replay.dot %a, %b, %c precision tf32
      : tensor<16x16xf32, #c>, tensor<16x16xf32, #b>, tensor<16x16xf32, #c> -> tensor<16x16xf32, #c>
  replay.return
}

// -----

#a = #replay.layout<register = [[8, 0], [0, 4], [0, 8]], lane = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], warp = []>
#c = #replay.layout<register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>
#o = #replay.layout<register = [[0, 4], [0, 8], [8, 0]], lane = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], warp = []>
replay.kernel @dot_of_transposed(%x: f32) num_warps(1) blocks_per_row(1) {
  %a = replay.splat %x : f32 -> tensor<16x16xf32, #a>
  %b = replay.splat %x : f32 -> tensor<16x16xf32, #o>
  %c = replay.splat %x : f32 -> tensor<16x16xf32, #c>
  // expected-error @+1 {{has tiles in other layouts than the matrix unit's fragments}}
  %d = replay.dot %a, %b, %c precision tf32
      : tensor<16x16xf32, #a>, tensor<16x16xf32, #o>, tensor<16x16xf32, #c> -> tensor<16x16xf32, #c>
  replay.return
}

// -----

// 32-bit fragments in a 16-bit product.
#a = #replay.layout<register = [[8, 0], [0, 4], [0, 8]], lane = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], warp = []>
#b = #replay.layout<register = [[4, 0], [8, 0], [0, 8]], lane = [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]], warp = []>
#c = #replay.layout<register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>
replay.kernel @dot_of_other_width(%x: f32) num_warps(1) blocks_per_row(1) {
  %a = replay.splat %x : f32 -> tensor<16x16xf32, #a>
  %b = replay.splat %x : f32 -> tensor<16x16xf32, #b>
  %c = replay.splat %x : f32 -> tensor<16x16xf32, #c>
  // expected-error @+1 {{has tiles in other layouts than the matrix unit's fragments}}
  %d = replay.dot %a, %b, %c precision bf16
      : tensor<16x16xf32, #a>, tensor<16x16xf32, #b>, tensor<16x16xf32, #c> -> tensor<16x16xf32, #c>
  replay.return
}
