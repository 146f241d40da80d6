// An invalid twin for each numbered constraint of ReplayTypes.td.
//
// RUN: replay-opt %s -split-input-file -verify-diagnostics

replay.kernel @view_of_rank_3() num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{view has 3 sizes and 3 strides; allowed are 1 or 2 of both (V1)}}
  %0 = builtin.unrealized_conversion_cast to !replay.view<2x2x2xf32, strides [4, 2, 1]>
  replay.return
}

// -----

replay.kernel @view_strides() num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{view has 2 sizes and 1 strides; allowed are 1 or 2 of both (V1)}}
  %0 = builtin.unrealized_conversion_cast to !replay.view<2x2xf32, strides [1]>
  replay.return
}

// -----

replay.kernel @view_without_rows() num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{view size 0 must be positive (V2)}}
  %0 = builtin.unrealized_conversion_cast to !replay.view<0x16xf32, strides [16, 1]>
  replay.return
}

// -----

replay.kernel @view_odd_alignment() num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{view alignment 12 must be a power of two of at least 4 (V3)}}
  %0 = builtin.unrealized_conversion_cast to !replay.view<16xf32, strides [1], align 12>
  replay.return
}

// -----

replay.kernel @view_small_alignment() num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{view alignment 2 must be a power of two of at least 4 (V3)}}
  %0 = builtin.unrealized_conversion_cast to !replay.view<16xf32, strides [1], align 2>
  replay.return
}

// -----

replay.kernel @view_of_bytes() num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{view element type 'i8' must be an integer or float of 16, 32 or 64 bits (V4)}}
  %0 = builtin.unrealized_conversion_cast to !replay.view<16xi8, strides [1]>
  replay.return
}

// -----

replay.kernel @view_of_index() num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{view element type 'index' must be an integer or float of 16, 32 or 64 bits (V4)}}
  %0 = builtin.unrealized_conversion_cast to !replay.view<16xindex, strides [1]>
  replay.return
}

// -----

replay.kernel @state_sizes() num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{state sizes 24 and 128 must be powers of two}}
  %0 = builtin.unrealized_conversion_cast to !replay.state<24x128>
  replay.return
}

// -----

replay.kernel @state_tiles() num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{state tiles of 256 columns must divide the 128 there are}}
  %0 = builtin.unrealized_conversion_cast to !replay.state<32x128, tiles 256>
  replay.return
}

// -----

replay.kernel @state_odd_tiles() num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{state tiles of 96 columns must divide the 128 there are}}
  %0 = builtin.unrealized_conversion_cast to !replay.state<32x128, tiles 96>
  replay.return
}

// -----

replay.kernel @state_rank() num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{state needs two sizes: rows x columns}}
  %0 = builtin.unrealized_conversion_cast to !replay.state<128>
  replay.return
}

// -----

replay.kernel @buffer_sizes() num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{buffer must have one or two positive sizes}}
  %0 = builtin.unrealized_conversion_cast to !replay.buffer<4x24x16xf32>
  replay.return
}

// -----

replay.kernel @view_alignment_of_rows() num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{view alignment 16 does not divide the 404 bytes of a stride (V5)}}
  %0 = builtin.unrealized_conversion_cast to !replay.view<4x101xf32, strides [101, 1], align 16>
  replay.return
}
