// An invalid twin for each numbered constraint of ReplayAttrs.td.
//
// RUN: replay-opt %s -split-input-file -verify-diagnostics

replay.kernel @rank() num_warps(1) blocks_per_row(1) {
  // expected-error @+2 {{layout basis has 1 entries for a tile of rank 2 (L1)}}
  %0 = builtin.unrealized_conversion_cast to tensor<4x8xf32,
      #replay.layout<register = [], lane = [[1], [2], [4], [8], [16]], warp = []>>
  replay.return
}

// -----

replay.kernel @mixed_ranks() num_warps(1) blocks_per_row(1) {
  %0 = builtin.unrealized_conversion_cast to tensor<4x8xf32,
      // expected-error @+1 {{layout bases must all have one rank (L1)}}
      #replay.layout<register = [[0, 1], [2]], lane = [], warp = []>>
  replay.return
}

// -----

replay.kernel @two_moves() num_warps(1) blocks_per_row(1) {
  // expected-error @+2 {{layout basis must be zero or one power of two below its dimension (L1)}}
  %0 = builtin.unrealized_conversion_cast to tensor<4x8xf32,
      #replay.layout<register = [], lane = [[1, 1], [0, 2], [0, 4], [1, 0], [2, 0]], warp = []>>
  replay.return
}

// -----

replay.kernel @odd_move() num_warps(1) blocks_per_row(1) {
  // expected-error @+2 {{layout basis must be zero or one power of two below its dimension (L1)}}
  %0 = builtin.unrealized_conversion_cast to tensor<32xf32,
      #replay.layout<register = [], lane = [[1], [2], [3], [8], [16]], warp = []>>
  replay.return
}

// -----

replay.kernel @move_outside() num_warps(1) blocks_per_row(1) {
  // expected-error @+2 {{layout basis must be zero or one power of two below its dimension (L1)}}
  %0 = builtin.unrealized_conversion_cast to tensor<16xf32,
      #replay.layout<register = [], lane = [[1], [2], [4], [8], [16]], warp = []>>
  replay.return
}

// -----

replay.kernel @move_twice() num_warps(2) blocks_per_row(1) {
  // expected-error @+2 {{layout moves dimension 0 by 16 twice (L2)}}
  %0 = builtin.unrealized_conversion_cast to tensor<32xf32,
      #replay.layout<register = [], lane = [[1], [2], [4], [8], [16]], warp = [[16]]>>
  replay.return
}

// -----

replay.kernel @move_missing() num_warps(1) blocks_per_row(1) {
  // expected-error @+2 {{layout never moves dimension 0 by 16 (L3)}}
  %0 = builtin.unrealized_conversion_cast to tensor<32xf32,
      #replay.layout<register = [], lane = [[1], [2], [4], [8], [0]], warp = []>>
  replay.return
}

// -----

replay.kernel @four_lane_bits() num_warps(1) blocks_per_row(1) {
  // expected-error @+2 {{layout has 4 lane bases; a warp has 5 (L4)}}
  %0 = builtin.unrealized_conversion_cast to tensor<16xf32,
      #replay.layout<register = [], lane = [[1], [2], [4], [8]], warp = []>>
  replay.return
}
