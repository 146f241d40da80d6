// An invalid twin for each numbered constraint of ReplayOps.td, and one for each
// way to break it that the verifier tells apart.
//
// RUN: replay-opt %s -split-input-file -verify-diagnostics

//===----------------------------------------------------------------------===//
// Kernel
//===----------------------------------------------------------------------===//

// expected-error @+1 {{num_warps is 3; allowed are powers of two from 1 to 32 (K1)}}
replay.kernel @odd_warps() num_warps(3) blocks_per_row(1) {
  replay.return
}

// -----

// expected-error @+1 {{num_warps is 0; allowed are powers of two from 1 to 32 (K1)}}
replay.kernel @no_warps() num_warps(0) blocks_per_row(1) {
  replay.return
}

// -----

// expected-error @+1 {{num_warps is 64; allowed are powers of two from 1 to 32 (K1)}}
replay.kernel @many_warps() num_warps(64) blocks_per_row(1) {
  replay.return
}

// -----

// expected-error @+1 {{body must be one block that ends in replay.return (K2)}}
replay.kernel @no_body() num_warps(1) blocks_per_row(1) {
}

// -----

// expected-error @+1 {{body must be one block that ends in replay.return (K2)}}
replay.kernel @other_end() num_warps(1) blocks_per_row(1) {
  llvm.unreachable
}

// -----

// expected-error @+1 {{body must be one block that ends in replay.return (K2)}}
replay.kernel @two_blocks() num_warps(1) blocks_per_row(1) {
  replay.return
^next:
  replay.return
}

// -----

// expected-error @+1 {{argument type 'tensor<16xf32>' must be a pointer or a scalar (K3)}}
replay.kernel @tile_argument(%t: tensor<16xf32>) num_warps(1) blocks_per_row(1) {
  replay.return
}

//===----------------------------------------------------------------------===//
// Replay level
//===----------------------------------------------------------------------===//

// -----

// expected-error @+1 {{argument 1 of type 'f32' cannot be replay.noalias; only pointers are (K4)}}
replay.kernel @scalar_without_alias(%p: !replay.ptr<f32>, %x: f32 {replay.noalias})
    num_warps(1) blocks_per_row(1) {
  replay.return
}

// -----

// expected-error @+1 {{argument 1 of type 'f32' cannot be replay.dependent; only pointers are (K4)}}
replay.kernel @dependent_scalar(%p: !replay.ptr<f32>, %x: f32 {replay.dependent})
    num_warps(1) blocks_per_row(1) {
  replay.return
}

// -----

// expected-error @+1 {{argument 0 cannot be replay.readonly and replay.dependent (K6)}}
replay.kernel @dependent_but_read_only(%p: !replay.ptr<f32> {replay.readonly, replay.dependent})
    num_warps(1) blocks_per_row(1) {
  replay.return
}

// -----

// expected-error @+1 {{replay.lanes_per_row is 12; allowed are powers of two from 1 to 32 (K5)}}
replay.kernel @lanes() num_warps(1) blocks_per_row(1)
    attributes {replay.lanes_per_row = 12 : i32} {
  replay.return
}

// -----

replay.kernel @flat_checkpoint() num_warps(1) blocks_per_row(1) {
  %s0 = builtin.unrealized_conversion_cast to !replay.view<128xf32, strides [1]>
  // expected-error @+1 {{views must have float elements and rank 2, gates rank 1 or 2 (R1)}}
  %s = replay.reconstruct %s0 {depth = 1 : i32}
      : !replay.view<128xf32, strides [1]> -> !replay.state<1x128>
  replay.return
}

// -----

replay.kernel @integer_checkpoint() num_warps(1) blocks_per_row(1) {
  %s0 = builtin.unrealized_conversion_cast to !replay.view<1x128xi32, strides [128, 1]>
  // expected-error @+1 {{views must have float elements and rank 2, gates rank 1 or 2 (R1)}}
  %s = replay.reconstruct %s0 {depth = 1 : i32}
      : !replay.view<1x128xi32, strides [128, 1]> -> !replay.state<1x128>
  replay.return
}

// -----

replay.kernel @integer_gates(%m: i32) num_warps(1) blocks_per_row(1) {
  %v, %g = builtin.unrealized_conversion_cast to
      !replay.view<?x128xf32, strides [128, 1]>, !replay.view<?xi32, strides [1]>
  // expected-error @+1 {{views must have float elements and rank 2, gates rank 1 or 2 (R1)}}
  %s = replay.reconstruct %v rows %m of %v, %v gates %g {depth = 16 : i32}
      : !replay.view<?x128xf32, strides [128, 1]>, !replay.view<?x128xf32, strides [128, 1]>,
        !replay.view<?x128xf32, strides [128, 1]>, !replay.view<?xi32, strides [1]>
        -> !replay.state<128x128>
  replay.return
}

// -----

replay.kernel @odd_depth() num_warps(1) blocks_per_row(1) {
  %s0 = builtin.unrealized_conversion_cast to !replay.view<32x128xf32, strides [128, 1]>
  // expected-error @+1 {{depth is 12; it must be a power of two (R2)}}
  %s = replay.reconstruct %s0 {depth = 12 : i32}
      : !replay.view<32x128xf32, strides [128, 1]> -> !replay.state<32x128>
  replay.return
}

// -----

replay.kernel @half_a_ring(%m: i32) num_warps(1) blocks_per_row(1) {
  %s0 = builtin.unrealized_conversion_cast to !replay.view<32x128xf32, strides [128, 1]>
  // expected-error @+1 {{ring operands must be all there or all absent (R3)}}
  %s = "replay.reconstruct"(%s0, %m) {depth = 16 : i32,
        operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0>}
      : (!replay.view<32x128xf32, strides [128, 1]>, i32) -> !replay.state<32x128>
  replay.return
}

// -----

replay.kernel @ring_without_decays(%m: i32, %base: i32) num_warps(1) blocks_per_row(1) {
  %s0, %d, %k, %g, %total = builtin.unrealized_conversion_cast to
      !replay.view<32x128xf32, strides [128, 1]>, !replay.view<12x32xf32, strides [32, 1]>,
      !replay.view<12x128xf32, strides [128, 1]>, !replay.view<12x128xf32, strides [128, 1]>,
      tensor<128xf32>
  // expected-error @+1 {{ring operands must be all there or all absent (R3)}}
  %s = replay.reconstruct %s0 rows %m of %d, %k {depth = 16 : i32}
      : !replay.view<32x128xf32, strides [128, 1]>, !replay.view<12x32xf32, strides [32, 1]>,
        !replay.view<12x128xf32, strides [128, 1]> -> !replay.state<32x128>
  replay.return
}

// -----

replay.kernel @gates_without_ring() num_warps(1) blocks_per_row(1) {
  %s0, %g = builtin.unrealized_conversion_cast to
      !replay.view<32x128xf32, strides [128, 1]>, !replay.view<?xf32, strides [1]>
  // expected-error @+1 {{ring operands must be all there or all absent (R3)}}
  %s = "replay.reconstruct"(%s0, %g) {depth = 16 : i32,
        operandSegmentSizes = array<i32: 1, 0, 0, 0, 1, 0, 0>}
      : (!replay.view<32x128xf32, strides [128, 1]>, !replay.view<?xf32, strides [1]>)
        -> !replay.state<32x128>
  replay.return
}

// -----

replay.kernel @total_without_ring() num_warps(1) blocks_per_row(1) {
  %s0, %total = builtin.unrealized_conversion_cast to
      !replay.view<32x128xf32, strides [128, 1]>, tensor<128xf32>
  // expected-error @+1 {{ring operands must be all there or all absent (R3)}}
  %s = replay.reconstruct %s0 total %total {depth = 16 : i32}
      : !replay.view<32x128xf32, strides [128, 1]>
        total tensor<128xf32> -> !replay.state<32x128>
  replay.return
}

// -----

replay.kernel @base_without_ring(%base: i32) num_warps(1) blocks_per_row(1) {
  %s0 = builtin.unrealized_conversion_cast to
      !replay.view<32x128xf32, strides [128, 1]>
  // expected-error @+1 {{ring operands must be all there or all absent (R3)}}
  %s = replay.reconstruct %s0 from %base {depth = 16 : i32}
      : !replay.view<32x128xf32, strides [128, 1]> -> !replay.state<32x128>
  replay.return
}

// -----

replay.kernel @ring_without_keys(%m: i32) num_warps(1) blocks_per_row(1) {
  %s0, %d, %total = builtin.unrealized_conversion_cast to !replay.view<32x128xf32, strides [128, 1]>,
      !replay.view<12x32xf32, strides [32, 1]>, tensor<128xf32>
  // expected-error @+1 {{ring operands must be all there or all absent (R3)}}
  %s = "replay.reconstruct"(%s0, %m, %d, %total) {depth = 16 : i32,
        operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 1, 0>}
      : (!replay.view<32x128xf32, strides [128, 1]>, i32, !replay.view<12x32xf32, strides [32, 1]>,
         tensor<128xf32>) -> !replay.state<32x128>
  replay.return
}

// -----

replay.kernel @short_total(%m: i32, %base: i32) num_warps(1) blocks_per_row(1) {
  %s0, %d, %k, %g, %total = builtin.unrealized_conversion_cast to
      !replay.view<32x128xf32, strides [128, 1]>, !replay.view<12x32xf32, strides [32, 1]>,
      !replay.view<12x128xf32, strides [128, 1]>, !replay.view<12x128xf32, strides [128, 1]>,
      tensor<32xf32>
  // expected-error @+1 {{needs a total of tensor<128xf32> and gates of rank 2 (R4)}}
  %s = replay.reconstruct %s0 rows %m of %d, %k total %total {depth = 16 : i32}
      : !replay.view<32x128xf32, strides [128, 1]>, !replay.view<12x32xf32, strides [32, 1]>,
        !replay.view<12x128xf32, strides [128, 1]>
        total tensor<32xf32> -> !replay.state<32x128>
  replay.return
}

// -----

replay.kernel @half_total(%m: i32, %base: i32) num_warps(1) blocks_per_row(1) {
  %s0, %d, %k, %g, %total = builtin.unrealized_conversion_cast to
      !replay.view<32x128xf32, strides [128, 1]>, !replay.view<12x32xf32, strides [32, 1]>,
      !replay.view<12x128xf32, strides [128, 1]>, !replay.view<12x128xf32, strides [128, 1]>,
      tensor<128xbf16>
  // expected-error @+1 {{needs a total of tensor<128xf32> and gates of rank 2 (R4)}}
  %s = replay.reconstruct %s0 rows %m of %d, %k total %total {depth = 16 : i32}
      : !replay.view<32x128xf32, strides [128, 1]>, !replay.view<12x32xf32, strides [32, 1]>,
        !replay.view<12x128xf32, strides [128, 1]>
        total tensor<128xbf16> -> !replay.state<32x128>
  replay.return
}

// -----

replay.kernel @total_and_a_gate_a_row(%m: i32, %base: i32) num_warps(1) blocks_per_row(1) {
  %s0, %d, %k, %g, %total = builtin.unrealized_conversion_cast to
      !replay.view<32x128xf32, strides [128, 1]>, !replay.view<12x32xf32, strides [32, 1]>,
      !replay.view<12x128xf32, strides [128, 1]>, !replay.view<12xf32, strides [1]>, tensor<128xf32>
  // expected-error @+1 {{needs a total of tensor<128xf32> and gates of rank 2 (R4)}}
  %s = replay.reconstruct %s0 rows %m of %d, %k gates %g total %total {depth = 16 : i32}
      : !replay.view<32x128xf32, strides [128, 1]>, !replay.view<12x32xf32, strides [32, 1]>,
        !replay.view<12x128xf32, strides [128, 1]>,
        !replay.view<12xf32, strides [1]>
        total tensor<128xf32> -> !replay.state<32x128>
  replay.return
}

// -----

replay.kernel @wrapped_unknown_rows(%m: i32, %base: i32) num_warps(1) blocks_per_row(1) {
  %s0, %d, %k, %g, %total = builtin.unrealized_conversion_cast to
      !replay.view<32x128xf32, strides [128, 1]>, !replay.view<?x32xf32, strides [32, 1]>,
      !replay.view<?x128xf32, strides [128, 1]>, !replay.view<12x128xf32, strides [128, 1]>,
      tensor<128xf32>
  // expected-error @+1 {{a wrapped ring needs one static number of rows, at most its depth (R5)}}
  %s = replay.reconstruct %s0 rows %m of %d, %k total %total from %base {depth = 16 : i32}
      : !replay.view<32x128xf32, strides [128, 1]>, !replay.view<?x32xf32, strides [32, 1]>,
        !replay.view<?x128xf32, strides [128, 1]>
        total tensor<128xf32> -> !replay.state<32x128>
  replay.return
}

// -----

replay.kernel @wrapped_past_depth(%m: i32, %base: i32) num_warps(1) blocks_per_row(1) {
  %s0, %d, %k, %total = builtin.unrealized_conversion_cast to
      !replay.view<32x128xf32, strides [128, 1]>, !replay.view<12x32xf32, strides [32, 1]>,
      !replay.view<12x128xf32, strides [128, 1]>, tensor<128xf32>
  // expected-error @+1 {{a wrapped ring needs one static number of rows, at most its depth (R5)}}
  %s = replay.reconstruct %s0 rows %m of %d, %k total %total from %base {depth = 8 : i32}
      : !replay.view<32x128xf32, strides [128, 1]>, !replay.view<12x32xf32, strides [32, 1]>,
        !replay.view<12x128xf32, strides [128, 1]>
        total tensor<128xf32> -> !replay.state<32x128>
  replay.return
}

// -----

replay.kernel @wrapped_other_keys(%m: i32, %base: i32) num_warps(1) blocks_per_row(1) {
  %s0, %d, %k, %g, %total = builtin.unrealized_conversion_cast to
      !replay.view<32x128xf32, strides [128, 1]>, !replay.view<12x32xf32, strides [32, 1]>,
      !replay.view<16x128xf32, strides [128, 1]>, !replay.view<12x128xf32, strides [128, 1]>,
      tensor<128xf32>
  // expected-error @+1 {{a wrapped ring needs one static number of rows, at most its depth (R5)}}
  %s = replay.reconstruct %s0 rows %m of %d, %k total %total from %base {depth = 16 : i32}
      : !replay.view<32x128xf32, strides [128, 1]>, !replay.view<12x32xf32, strides [32, 1]>,
        !replay.view<16x128xf32, strides [128, 1]>
        total tensor<128xf32> -> !replay.state<32x128>
  replay.return
}

// -----

replay.kernel @wrapped_other_gates(%m: i32, %base: i32) num_warps(1) blocks_per_row(1) {
  %s0, %d, %k, %g, %total = builtin.unrealized_conversion_cast to
      !replay.view<32x128xf32, strides [128, 1]>, !replay.view<12x32xf32, strides [32, 1]>,
      !replay.view<12x128xf32, strides [128, 1]>, !replay.view<?x128xf32, strides [128, 1]>, tensor<128xf32>
  // expected-error @+1 {{a wrapped ring needs one static number of rows, at most its depth (R5)}}
  %s = replay.reconstruct %s0 rows %m of %d, %k gates %g total %total from %base {depth = 16 : i32}
      : !replay.view<32x128xf32, strides [128, 1]>, !replay.view<12x32xf32, strides [32, 1]>,
        !replay.view<12x128xf32, strides [128, 1]>,
        !replay.view<?x128xf32, strides [128, 1]>
        total tensor<128xf32> -> !replay.state<32x128>
  replay.return
}

// -----

replay.kernel @reconstruct_formed() num_warps(4) blocks_per_row(1) {
  %s0 = builtin.unrealized_conversion_cast to !replay.view<32x128xf32, strides [128, 1]>
  // expected-error @+1 {{gives a '!replay.state<32x128, tiles 64>', which is formed; replay.form gives that (R6)}}
  %s = replay.reconstruct %s0 {depth = 1 : i32}
      : !replay.view<32x128xf32, strides [128, 1]> -> !replay.state<32x128, tiles 64>
  replay.return
}

// -----

replay.kernel @form_twice() num_warps(4) blocks_per_row(1) {
  %s = builtin.unrealized_conversion_cast to !replay.state<32x128, tiles 64>
  // expected-error @+1 {{needs a state that is not formed, and gives the same with tiles (J1)}}
  %t = replay.form %s : !replay.state<32x128, tiles 64> -> !replay.state<32x128, tiles 128>
  replay.return
}

// -----

replay.kernel @form_another() num_warps(4) blocks_per_row(1) {
  %s = builtin.unrealized_conversion_cast to !replay.state<32x128>
  // expected-error @+1 {{cannot make a '!replay.state<32x64, tiles 64>' of a '!replay.state<32x128>'}}
  %t = replay.form %s : !replay.state<32x128> -> !replay.state<32x64, tiles 64>
  replay.return
}

// -----

replay.kernel @form_three_rows() num_warps(4) blocks_per_row(1) {
  %s = builtin.unrealized_conversion_cast to !replay.state<32x128>
  // expected-error @+1 {{rows is 3; precision ieee allows powers of two from 1 (J2)}}
  %t = replay.form %s {rows = 3 : i32} : !replay.state<32x128> -> !replay.state<32x128, tiles 64>
  replay.return
}

// -----

replay.kernel @form_few_rows() num_warps(4) blocks_per_row(1) {
  %s = builtin.unrealized_conversion_cast to !replay.state<32x128>
  // expected-error @+1 {{rows is 4; precision tf32 allows powers of two from 16 (J2)}}
  %t = replay.form %s {rows = 4 : i32, precision = #replay<precision tf32>}
      : !replay.state<32x128> -> !replay.state<32x128, tiles 64>
  replay.return
}

// -----

replay.kernel @update_before_form(%a: f32) num_warps(4) blocks_per_row(1) {
  %s = builtin.unrealized_conversion_cast to !replay.state<32x128>
  // expected-error @+1 {{updates a '!replay.state<32x128>', which is not formed; replay.form forms it (U1)}}
  %t = replay.update %s decay %a : !replay.state<32x128> decay f32
  replay.return
}

// -----

replay.kernel @update_nothing() num_warps(4) blocks_per_row(1) {
  %s = builtin.unrealized_conversion_cast to !replay.state<32x128, tiles 64>
  // expected-error @+1 {{needs a decay of f32 or k's type, or d of tensor<32xf32> and k of tensor<128xf32>, or all three (U2)}}
  %t = replay.update %s : !replay.state<32x128, tiles 64>
  replay.return
}

// -----

replay.kernel @update_transposed() num_warps(4) blocks_per_row(1) {
  %s, %d, %k = builtin.unrealized_conversion_cast to !replay.state<32x128, tiles 64>,
      tensor<32xf32>, tensor<128xf32>
  // expected-error @+1 {{needs a decay of f32 or k's type, or d of tensor<32xf32> and k of tensor<128xf32>, or all three (U2)}}
  %t = replay.update %s add %k, %d : !replay.state<32x128, tiles 64>
      add tensor<128xf32>, tensor<32xf32>
  replay.return
}

// -----

replay.kernel @update_decay_a_row() num_warps(4) blocks_per_row(1) {
  %s, %d = builtin.unrealized_conversion_cast to !replay.state<32x128, tiles 64>, tensor<32xf32>
  // expected-error @+1 {{needs a decay of f32 or k's type}}
  %t = replay.update %s decay %d : !replay.state<32x128, tiles 64> decay tensor<32xf32>
  replay.return
}

// -----

replay.kernel @contract_odd_blocks() num_warps(4) blocks_per_row(1) {
  %s, %x = builtin.unrealized_conversion_cast to !replay.state<32x128>, tensor<128xf32>
  // expected-error @+1 {{block_k 96 does not divide the 128 columns of the state (C3)}}
  %y = replay.contract %s, %x {block_k = 96 : i32}
      : !replay.state<32x128>, tensor<128xf32> -> tensor<32xf32>
  replay.return
}

// -----

replay.kernel @contract_no_blocks() num_warps(4) blocks_per_row(1) {
  %s, %x = builtin.unrealized_conversion_cast to !replay.state<32x128>, tensor<128xf32>
  // expected-error @+1 {{block_k 0 does not divide the 128 columns of the state (C3)}}
  %y = replay.contract %s, %x {block_k = 0 : i32}
      : !replay.state<32x128>, tensor<128xf32> -> tensor<32xf32>
  replay.return
}

// -----

replay.kernel @contract_rebuilds_formed() num_warps(4) blocks_per_row(1) {
  %s, %x = builtin.unrealized_conversion_cast to !replay.state<32x128, tiles 64>, tensor<128xf32>
  // expected-error @+1 {{reads a formed state as it is; block_k, rebuild and split are for others (C4)}}
  %y = replay.contract %s, %x {rebuild = #replay<precision tf32>}
      : !replay.state<32x128, tiles 64>, tensor<128xf32> -> tensor<32xf32>
  replay.return
}

// -----

replay.kernel @contract_splits_f16() num_warps(4) blocks_per_row(1) {
  %s, %x = builtin.unrealized_conversion_cast to !replay.state<32x128>, tensor<128xf32>
  // expected-error @+1 {{split is bf16 or tf32, with neither block_k nor rebuild beside it (C5)}}
  %y = replay.contract %s, %x {split = #replay<precision f16>}
      : !replay.state<32x128>, tensor<128xf32> -> tensor<32xf32>
  replay.return
}

// -----

replay.kernel @contract_splits_rebuilt() num_warps(4) blocks_per_row(1) {
  %s, %x = builtin.unrealized_conversion_cast to !replay.state<32x128>, tensor<128xf32>
  // expected-error @+1 {{split is bf16 or tf32, with neither block_k nor rebuild beside it (C5)}}
  %y = replay.contract %s, %x {rebuild = #replay<precision bf16>, split = #replay<precision bf16>}
      : !replay.state<32x128>, tensor<128xf32> -> tensor<32xf32>
  replay.return
}

// -----

replay.kernel @form_splits_steps() num_warps(4) blocks_per_row(1) {
  %s = builtin.unrealized_conversion_cast to !replay.state<32x128>
  // expected-error @+1 {{split is bf16 or tf32, with neither rows nor a precision beside it (J3)}}
  %t = replay.form %s {rows = 4 : i32, split = #replay<precision bf16>}
      : !replay.state<32x128> -> !replay.state<32x128, tiles 64>
  replay.return
}

// -----

replay.kernel @stack_too_few_rows() num_warps(4) blocks_per_row(1) {
  %x = builtin.unrealized_conversion_cast to tensor<16xf32>
  // expected-error @+1 {{cannot make 'tensor<2x16xf32>' of 3 vectors: they are rows of it, of its element type (ST1)}}
  %m = replay.stack %x, %x, %x : tensor<16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<2x16xf32>
  replay.return
}

// -----

replay.kernel @dot_wide_ieee() num_warps(4) blocks_per_row(1) {
  %a, %b, %c = builtin.unrealized_conversion_cast to
      tensor<64x16xf32>, tensor<16x64xf32>, tensor<64x64xf32>
  // expected-error @+1 {{has no fragments that could be wide at precision ieee (O3)}}
  %s = replay.dot %a, %b, %c precision ieee {wide}
      : tensor<64x16xf32>, tensor<16x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  replay.return
}

// -----

replay.kernel @flush_odd_blocks() num_warps(4) blocks_per_row(1) {
  %s, %s0 = builtin.unrealized_conversion_cast to !replay.state<32x128>,
      !replay.view<32x128xf32, strides [128, 1]>
  // expected-error @+1 {{block_k 48 does not divide the 128 columns of the state (F3)}}
  replay.flush %s into %s0 {block_k = 48 : i32} : !replay.state<32x128>
      into !replay.view<32x128xf32, strides [128, 1]>
  replay.return
}

// -----

replay.kernel @flush_no_rows() num_warps(4) blocks_per_row(1) {
  %s, %s0 = builtin.unrealized_conversion_cast to !replay.state<32x128>,
      !replay.view<32x128xf32, strides [128, 1]>
  // expected-error @+1 {{rows is 0; precision ieee allows powers of two from 1 (F3)}}
  replay.flush %s into %s0 {rows = 0 : i32} : !replay.state<32x128>
      into !replay.view<32x128xf32, strides [128, 1]>
  replay.return
}

// -----

replay.kernel @flush_forms_formed() num_warps(4) blocks_per_row(1) {
  %s, %s0 = builtin.unrealized_conversion_cast to !replay.state<32x128, tiles 64>,
      !replay.view<32x128xf32, strides [128, 1]>
  // expected-error @+1 {{stores a formed state as it is; block_k, rows, precision and split are for others (F4)}}
  replay.flush %s into %s0 {rows = 4 : i32} : !replay.state<32x128, tiles 64>
      into !replay.view<32x128xf32, strides [128, 1]>
  replay.return
}

// -----

replay.kernel @short_vector() num_warps(1) blocks_per_row(1) {
  %s, %x = builtin.unrealized_conversion_cast to !replay.state<32x128>, tensor<64xf32>
  // expected-error @+1 {{vector must be tensor<128xf32> (C1)}}
  %y = replay.contract %s, %x : !replay.state<32x128>, tensor<64xf32> -> tensor<32xf32>
  replay.return
}

// -----

replay.kernel @long_result() num_warps(1) blocks_per_row(1) {
  %s, %x = builtin.unrealized_conversion_cast to !replay.state<32x128>, tensor<128xf32>
  // expected-error @+1 {{result must be tensor<32xf32> (C1)}}
  %y = replay.contract %s, %x : !replay.state<32x128>, tensor<128xf32> -> tensor<128xf32>
  replay.return
}

// -----

replay.kernel @two_vectors_one_result() num_warps(1) blocks_per_row(1) {
  %s, %x = builtin.unrealized_conversion_cast to !replay.state<32x128>, tensor<128xf32>
  // expected-error @+1 {{has 2 vectors and 1 results; as many are needed (C2)}}
  %y = replay.contract %s, %x, %x
      : !replay.state<32x128>, tensor<128xf32>, tensor<128xf32> -> tensor<32xf32>
  replay.return
}

// -----

replay.kernel @no_vector() num_warps(1) blocks_per_row(1) {
  %s = builtin.unrealized_conversion_cast to !replay.state<32x128>
  // expected-error @+1 {{has 0 vectors and 0 results; as many are needed (C2)}}
  "replay.contract"(%s) : (!replay.state<32x128>) -> ()
  replay.return
}

// -----

replay.kernel @swapped_update(%a: f32) num_warps(1) blocks_per_row(1) {
  %s, %d, %k, %s0 = builtin.unrealized_conversion_cast to !replay.state<32x128>,
      tensor<32xf32>, tensor<128xf32>, !replay.view<32x128xf32, strides [128, 1]>
  // expected-error @+1 {{needs d of tensor<32xf32>, k of tensor<128xf32> and a decay of f32 or k's type (F1)}}
  replay.flush %s decay %a update %k, %d into %s0 : !replay.state<32x128>, f32,
      tensor<128xf32>, tensor<32xf32> into !replay.view<32x128xf32, strides [128, 1]>
  replay.return
}

// -----

replay.kernel @decay_of_rows() num_warps(1) blocks_per_row(1) {
  %s, %d, %k, %s0 = builtin.unrealized_conversion_cast to !replay.state<32x128>,
      tensor<32xf32>, tensor<128xf32>, !replay.view<32x128xf32, strides [128, 1]>
  // expected-error @+1 {{needs d of tensor<32xf32>, k of tensor<128xf32> and a decay of f32 or k's type (F1)}}
  replay.flush %s decay %d update %d, %k into %s0 : !replay.state<32x128>,
      tensor<32xf32>, tensor<32xf32>, tensor<128xf32> into !replay.view<32x128xf32, strides [128, 1]>
  replay.return
}

// -----

replay.kernel @half_an_update() num_warps(1) blocks_per_row(1) {
  %s, %d, %k, %s0 = builtin.unrealized_conversion_cast to !replay.state<32x128>,
      tensor<32xf32>, tensor<128xf32>, !replay.view<32x128xf32, strides [128, 1]>
  // expected-error @+1 {{needs d of tensor<32xf32>, k of tensor<128xf32> and a decay of f32 or k's type (F1)}}
  "replay.flush"(%s, %d, %k, %s0) {operandSegmentSizes = array<i32: 1, 0, 1, 1, 1>}
      : (!replay.state<32x128>, tensor<32xf32>, tensor<128xf32>, !replay.view<32x128xf32, strides [128, 1]>) -> ()
  replay.return
}

// -----

replay.kernel @decay_alone(%a: f32) num_warps(1) blocks_per_row(1) {
  %s, %s0 = builtin.unrealized_conversion_cast to !replay.state<32x128>, !replay.view<32x128xf32, strides [128, 1]>
  // expected-error @+1 {{needs d of tensor<32xf32>, k of tensor<128xf32> and a decay of f32 or k's type (F1)}}
  "replay.flush"(%s, %a, %s0) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>}
      : (!replay.state<32x128>, f32, !replay.view<32x128xf32, strides [128, 1]>) -> ()
  replay.return
}

// -----

replay.kernel @flat_destination(%a: f32) num_warps(1) blocks_per_row(1) {
  %s, %d, %k, %s0 = builtin.unrealized_conversion_cast to !replay.state<32x128>,
      tensor<32xf32>, tensor<128xf32>, !replay.view<4096xf32, strides [1]>
  // expected-error @+1 {{destinations must be there and have rank 2 (F2)}}
  replay.flush %s decay %a update %d, %k into %s0 : !replay.state<32x128>, f32,
      tensor<32xf32>, tensor<128xf32> into !replay.view<4096xf32, strides [1]>
  replay.return
}

// -----

replay.kernel @flat_second_destination() num_warps(1) blocks_per_row(1) {
  %s, %s0, %flat = builtin.unrealized_conversion_cast to !replay.state<32x128>,
      !replay.view<32x128xf32, strides [128, 1]>, !replay.view<4096xf32, strides [1]>
  // expected-error @+1 {{destinations must be there and have rank 2 (F2)}}
  replay.flush %s into %s0, %flat : !replay.state<32x128> into
      !replay.view<32x128xf32, strides [128, 1]>, !replay.view<4096xf32, strides [1]>
  replay.return
}

// -----

replay.kernel @no_destination() num_warps(1) blocks_per_row(1) {
  %s = builtin.unrealized_conversion_cast to !replay.state<32x128>
  // expected-error @+1 {{destinations must be there and have rank 2 (F2)}}
  "replay.flush"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
      : (!replay.state<32x128>) -> ()
  replay.return
}

//===----------------------------------------------------------------------===//
// Tile level: memory
//===----------------------------------------------------------------------===//

// -----

replay.kernel @other_element(%p: !replay.ptr<bf16>, %n: i64) num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{of a '!replay.ptr<bf16>': needs its element type and global memory (W1)}}
  %v = replay.view %p offset %n : !replay.ptr<bf16> -> !replay.view<16xf32, strides [1]>
  replay.return
}

// -----

replay.kernel @view_of_shared_memory(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{needs its element type and global memory (W1)}}
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !replay.view<16xf32, strides [1], shared>
  replay.return
}

// -----

replay.kernel @bound_of_a_static_size(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{needs a positive at_most, and a first size known only at run time beside it (W3)}}
  %v = replay.view %p offset %n at_most 16 : !replay.ptr<f32> -> !replay.view<16xf32, strides [1]>
  replay.return
}

// -----

replay.kernel @bound_of_zero(%p: !replay.ptr<f32>, %n: i64, %m: i32) num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{needs a positive at_most, and a first size known only at run time beside it (W3)}}
  %v = replay.view %p offset %n sizes %m at_most 0 : !replay.ptr<f32> -> !replay.view<?xf32, strides [1]>
  replay.return
}

// -----

replay.kernel @size_missing(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{needs 1 sizes and 0 strides, has 0 and 0 (W2)}}
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !replay.view<?xf32, strides [1]>
  replay.return
}

// -----

replay.kernel @stride_too_many(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{needs 0 sizes and 0 strides, has 0 and 1 (W2)}}
  %v = replay.view %p offset %n strides %n : !replay.ptr<f32> -> !replay.view<16xf32, strides [1]>
  replay.return
}

// -----

replay.kernel @load_offsets(%i: i32) num_warps(1) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !replay.view<16x16xf32, strides [16, 1]>
  // expected-error @+1 {{has 1 offsets for a view of rank 2 (D1)}}
  %t = replay.load %v[%i] : !replay.view<16x16xf32, strides [16, 1]> -> tensor<16x16xf32>
  replay.return
}

// -----

replay.kernel @load_rank(%i: i32) num_warps(1) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !replay.view<16x16xf32, strides [16, 1]>
  // expected-error @+1 {{rank and element type must agree (D2)}}
  %t = replay.load %v[%i, %i] : !replay.view<16x16xf32, strides [16, 1]> -> tensor<16xf32>
  replay.return
}

// -----

replay.kernel @load_element(%i: i32) num_warps(1) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !replay.view<16xbf16, strides [1]>
  // expected-error @+1 {{moves 'f32' through '!replay.view<16xbf16, strides [1]>': rank and element type must agree (D2)}}
  %t = replay.load %v[%i] : !replay.view<16xbf16, strides [1]> -> f32
  replay.return
}

// -----

replay.kernel @mask_shape(%i: i32) num_warps(1) blocks_per_row(1) {
  %v, %mask = builtin.unrealized_conversion_cast to !replay.view<16xf32, strides [1]>, tensor<8xi1>
  // expected-error @+1 {{mask must be a tile of i1 with the result's shape (D3)}}
  %t = replay.load %v[%i] mask %mask : tensor<8xi1>
      : !replay.view<16xf32, strides [1]> -> tensor<16xf32>
  replay.return
}

// -----

replay.kernel @mask_element(%i: i32) num_warps(1) blocks_per_row(1) {
  %v, %mask = builtin.unrealized_conversion_cast to !replay.view<16xf32, strides [1]>, tensor<16xi32>
  // expected-error @+1 {{mask must be a tile of i1 with the result's shape (D3)}}
  %t = replay.load %v[%i] mask %mask : tensor<16xi32>
      : !replay.view<16xf32, strides [1]> -> tensor<16xf32>
  replay.return
}

// -----

replay.kernel @masked_element(%i: i32) num_warps(1) blocks_per_row(1) {
  %v, %mask = builtin.unrealized_conversion_cast to !replay.view<16xf32, strides [1]>, tensor<1xi1>
  // expected-error @+1 {{mask must be a tile of i1 with the result's shape (D3)}}
  %t = replay.load %v[%i] mask %mask : tensor<1xi1>
      : !replay.view<16xf32, strides [1]> -> f32
  replay.return
}

// -----

replay.kernel @store_offsets(%i: i32, %x: f32) num_warps(1) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !replay.view<16xf32, strides [1]>
  // expected-error @+1 {{has 2 offsets for a view of rank 1 (S1)}}
  replay.store %x, %v[%i, %i] : f32, !replay.view<16xf32, strides [1]>
  replay.return
}

// -----

replay.kernel @store_element(%i: i32) num_warps(1) blocks_per_row(1) {
  %v, %t = builtin.unrealized_conversion_cast to !replay.view<16xf32, strides [1]>, tensor<16xf16>
  // expected-error @+1 {{rank and element type must agree (S2)}}
  replay.store %t, %v[%i] : tensor<16xf16>, !replay.view<16xf32, strides [1]>
  replay.return
}

// -----

replay.kernel @store_to_stage(%i: i32, %x: f32) num_warps(1) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !replay.view<16xf32, strides [1], shared>
  // expected-error @+1 {{must store to global memory (S3)}}
  replay.store %x, %v[%i] : f32, !replay.view<16xf32, strides [1], shared>
  replay.return
}

// -----

replay.kernel @two_reports(%kind: i32, %word: !replay.ptr<i32>) num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{must be the only one of its kernel (V1)}}
  replay.on_overflow %kind row %kind layer %kind to %word : !replay.ptr<i32>
  replay.on_overflow %kind row %kind layer %kind to %word : !replay.ptr<i32>
  replay.return
}

//===----------------------------------------------------------------------===//
// Tile level: shape and layout
//===----------------------------------------------------------------------===//

// -----

replay.kernel @tile_of_rank_3(%x: f32) num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{a tile: a ranked tensor of rank 1 or 2 whose dimensions are powers of two}}
  %t = replay.splat %x : f32 -> tensor<2x2x2xf32>
  replay.return
}

// -----

replay.kernel @tile_of_size_3(%x: f32) num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{a tile: a ranked tensor of rank 1 or 2 whose dimensions are powers of two}}
  %t = replay.splat %x : f32 -> tensor<3xf32>
  replay.return
}

// -----

replay.kernel @iota_of_rank_2() num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{result must be a rank-1 tile of i32 (I1)}}
  %i = replay.iota : tensor<4x4xi32>
  replay.return
}

// -----

replay.kernel @iota_of_floats() num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{result must be a rank-1 tile of i32 (I1)}}
  %i = replay.iota : tensor<16xf32>
  replay.return
}

// -----

replay.kernel @splat_of_another(%x: f32) num_warps(1) blocks_per_row(1) {
  // expected-error @+1 {{spreads 'f32' over 'tensor<16xf16>': element types must agree (P1)}}
  %t = replay.splat %x : f32 -> tensor<16xf16>
  replay.return
}

// -----

replay.kernel @expand_at_2() num_warps(1) blocks_per_row(1) {
  %x = builtin.unrealized_conversion_cast to tensor<16xf32>
  // expected-error @+1 {{needs rank 1, axis 0 or 1 and a 1 there (E1)}}
  %c = replay.expand %x axis 2 : tensor<16xf32> -> tensor<16x1xf32>
  replay.return
}

// -----

replay.kernel @expand_elsewhere() num_warps(1) blocks_per_row(1) {
  %x = builtin.unrealized_conversion_cast to tensor<16xf32>
  // expected-error @+1 {{expands 'tensor<16xf32>' at axis 0 to 'tensor<16x1xf32>': needs rank 1, axis 0 or 1 and a 1 there (E1)}}
  %c = replay.expand %x axis 0 : tensor<16xf32> -> tensor<16x1xf32>
  replay.return
}

// -----

replay.kernel @broadcast_of_2() num_warps(1) blocks_per_row(1) {
  %x = builtin.unrealized_conversion_cast to tensor<16x2xf32>
  // expected-error @+1 {{cannot repeat 'tensor<16x2xf32>' to 'tensor<16x4xf32>': only dimensions of size 1 repeat (B1)}}
  %b = replay.broadcast %x : tensor<16x2xf32> -> tensor<16x4xf32>
  replay.return
}

// -----

replay.kernel @broadcast_to_rank_2() num_warps(1) blocks_per_row(1) {
  %x = builtin.unrealized_conversion_cast to tensor<16xf32>
  // expected-error @+1 {{only dimensions of size 1 repeat (B1)}}
  %b = replay.broadcast %x : tensor<16xf32> -> tensor<16x4xf32>
  replay.return
}

// -----

replay.kernel @transpose_nothing() num_warps(1) blocks_per_row(1) {
  %x = builtin.unrealized_conversion_cast to tensor<4x32xf32>
  // expected-error @+1 {{cannot transpose 'tensor<4x32xf32>' to 'tensor<4x32xf32>' (Q1)}}
  %t = replay.transpose %x : tensor<4x32xf32> -> tensor<4x32xf32>
  replay.return
}

// -----

replay.kernel @slice_larger(%i: i32) num_warps(1) blocks_per_row(1) {
  %x = builtin.unrealized_conversion_cast to tensor<64xf32>
  // expected-error @+1 {{cannot cut 'tensor<128xf32>' out of 'tensor<64xf32>' (Z1)}}
  %p = replay.slice %x[%i] : tensor<64xf32> -> tensor<128xf32>
  replay.return
}

// -----

replay.kernel @convert_shape() num_warps(1) blocks_per_row(1) {
  %x = builtin.unrealized_conversion_cast to tensor<16xf32>
  // expected-error @+1 {{may change nothing but the layout (T1)}}
  %y = replay.convert_layout %x : tensor<16xf32> -> tensor<32xf32>
  replay.return
}

// -----

replay.kernel @convert_element() num_warps(1) blocks_per_row(1) {
  %x = builtin.unrealized_conversion_cast to tensor<16xf32>
  // expected-error @+1 {{may change nothing but the layout (T1)}}
  %y = replay.convert_layout %x : tensor<16xf32> -> tensor<16xbf16>
  replay.return
}

//===----------------------------------------------------------------------===//
// Tile level: arithmetic
//===----------------------------------------------------------------------===//

// -----

replay.kernel @reduce_axis() num_warps(1) blocks_per_row(1) {
  %x = builtin.unrealized_conversion_cast to tensor<16xf32>
  // expected-error @+1 {{cannot reduce 'tensor<16xf32>' along axis 1 to 'f32' (N1)}}
  %r = replay.reduce %x axis 1 : tensor<16xf32> -> f32
  replay.return
}

// -----

replay.kernel @reduce_integers() num_warps(1) blocks_per_row(1) {
  %x = builtin.unrealized_conversion_cast to tensor<16xi32>
  // expected-error @+1 {{cannot reduce 'tensor<16xi32>' along axis 0 to 'i32' (N1)}}
  %r = replay.reduce %x axis 0 : tensor<16xi32> -> i32
  replay.return
}

// -----

replay.kernel @reduce_other_shape() num_warps(1) blocks_per_row(1) {
  %x = builtin.unrealized_conversion_cast to tensor<32x128xf32>
  // expected-error @+1 {{cannot reduce 'tensor<32x128xf32>' along axis 1 to 'tensor<128xf32>' (N1)}}
  %r = replay.reduce %x axis 1 : tensor<32x128xf32> -> tensor<128xf32>
  replay.return
}

// -----

replay.kernel @scan_axis() num_warps(1) blocks_per_row(1) {
  %g = builtin.unrealized_conversion_cast to tensor<16xf32>
  // expected-error @+1 {{needs f32 elements and an axis below the rank, not axis 1 of 'tensor<16xf32>' (M1)}}
  %w = replay.cumsum %g axis 1 : tensor<16xf32>
  replay.return
}

// -----

replay.kernel @scan_halves() num_warps(1) blocks_per_row(1) {
  %g = builtin.unrealized_conversion_cast to tensor<16xf16>
  // expected-error @+1 {{needs f32 elements and an axis below the rank, not axis 0 of 'tensor<16xf16>' (M1)}}
  %w = replay.cumsum %g axis 0 : tensor<16xf16>
  replay.return
}

// -----

replay.kernel @dot_of_vectors() num_warps(1) blocks_per_row(1) {
  %a, %c = builtin.unrealized_conversion_cast to tensor<16xf32>, tensor<16x16xf32>
  // expected-error @+1 {{operands must have rank 2 (O1)}}
  %s = replay.dot %a, %a, %c precision ieee
      : tensor<16xf32>, tensor<16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  replay.return
}

// -----

replay.kernel @dot_breaks() num_warps(1) blocks_per_row(1) {
  %a, %b, %c = builtin.unrealized_conversion_cast to
      tensor<16x32xf32>, tensor<16x8xf32>, tensor<16x8xf32>
  // expected-error @+1 {{shapes must chain and elements be f32 (O1)}}
  %s = replay.dot %a, %b, %c precision ieee
      : tensor<16x32xf32>, tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
  replay.return
}

// -----

replay.kernel @dot_of_halves() num_warps(1) blocks_per_row(1) {
  %a, %c = builtin.unrealized_conversion_cast to tensor<16x16xbf16>, tensor<16x16xf32>
  // expected-error @+1 {{shapes must chain and elements be f32 (O1)}}
  %s = replay.dot %a, %a, %c precision bf16
      : tensor<16x16xbf16>, tensor<16x16xbf16>, tensor<16x16xf32> -> tensor<16x16xf32>
  replay.return
}

// -----

replay.kernel @dot_too_thin() num_warps(1) blocks_per_row(1) {
  %a, %b, %c = builtin.unrealized_conversion_cast to
      tensor<16x8xf32>, tensor<8x8xf32>, tensor<16x8xf32>
  // expected-error @+1 {{precision tf32 needs M >= 16, K >= 16 and N >= 8, not 16, 8 and 8 (O2)}}
  %s = replay.dot %a, %b, %c precision tf32
      : tensor<16x8xf32>, tensor<8x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
  replay.return
}

//===----------------------------------------------------------------------===//
// Staged level
//===----------------------------------------------------------------------===//

// -----

replay.kernel @alloc_in_branch(%c: i1) num_warps(1) blocks_per_row(1) {
  scf.if %c {
    // expected-error @+1 {{must stand directly in a kernel's body (A1)}}
    %buf = replay.alloc : !replay.buffer<64x128xf32>
  }
  replay.return
}

// -----

replay.kernel @copy_other_size() num_warps(1) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !replay.view<2x128xf32, strides [128, 1], align 16>
  %buf = replay.alloc : !replay.buffer<4x128xf32>
  // expected-error @+1 {{sizes and element type must agree, and the view's memory be global (Y1)}}
  replay.async_copy %v, %buf
      : !replay.view<2x128xf32, strides [128, 1], align 16>, !replay.buffer<4x128xf32>
  replay.return
}

// -----

replay.kernel @copy_other_element() num_warps(1) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !replay.view<4x128xi32, strides [128, 1], align 16>
  %buf = replay.alloc : !replay.buffer<4x128xf32>
  // expected-error @+1 {{sizes and element type must agree, and the view's memory be global (Y1)}}
  replay.async_copy %v, %buf
      : !replay.view<4x128xi32, strides [128, 1], align 16>, !replay.buffer<4x128xf32>
  replay.return
}

// -----

replay.kernel @copy_strided() num_warps(1) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !replay.view<4x128xf32, strides [1, 4], align 16>
  %buf = replay.alloc : !replay.buffer<4x128xf32>
  // expected-error @+1 {{needs adjacent rows whose bytes and alignment are multiples of 16 (Y2)}}
  replay.async_copy %v, %buf
      : !replay.view<4x128xf32, strides [1, 4], align 16>, !replay.buffer<4x128xf32>
  replay.return
}

// -----

replay.kernel @copy_unaligned() num_warps(1) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !replay.view<4x128xf32, strides [128, 1], align 8>
  %buf = replay.alloc : !replay.buffer<4x128xf32>
  // expected-error @+1 {{needs adjacent rows whose bytes and alignment are multiples of 16 (Y2)}}
  replay.async_copy %v, %buf
      : !replay.view<4x128xf32, strides [128, 1], align 8>, !replay.buffer<4x128xf32>
  replay.return
}

// -----

replay.kernel @copy_short_rows() num_warps(1) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !replay.view<2xf32, strides [1], align 16>
  %buf = replay.alloc : !replay.buffer<2xf32>
  // expected-error @+1 {{needs adjacent rows whose bytes and alignment are multiples of 16 (Y2)}}
  replay.async_copy %v, %buf
      : !replay.view<2xf32, strides [1], align 16>, !replay.buffer<2xf32>
  replay.return
}

// -----

replay.kernel @copy_shared() num_warps(1) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !replay.view<4x128xf32, strides [128, 1], align 16, shared>
  %buf = replay.alloc : !replay.buffer<4x128xf32>
  // expected-error @+1 {{sizes and element type must agree, and the view's memory be global (Y1)}}
  replay.async_copy %v, %buf
      : !replay.view<4x128xf32, strides [128, 1], align 16, shared>, !replay.buffer<4x128xf32>
  replay.return
}

// -----

replay.kernel @copy_some_rows_apart() num_warps(1) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !replay.view<?x128xf32, strides [256, 1], align 16>
  %buf = replay.alloc : !replay.buffer<4x128xf32>
  // expected-error @+1 {{needs adjacent rows whose bytes and alignment are multiples of 16 (Y2)}}
  replay.async_copy %v, %buf
      : !replay.view<?x128xf32, strides [256, 1], align 16>, !replay.buffer<4x128xf32>
  replay.return
}

// -----

replay.kernel @copy_descending_apart() num_warps(1) blocks_per_row(1) {
  %v = builtin.unrealized_conversion_cast to !replay.view<4x128xf32, strides [-256, 1], align 16>
  %buf = replay.alloc : !replay.buffer<4x128xf32>
  // expected-error @+1 {{needs adjacent rows whose bytes and alignment are multiples of 16 (Y2)}}
  replay.async_copy %v, %buf
      : !replay.view<4x128xf32, strides [-256, 1], align 16>, !replay.buffer<4x128xf32>
  replay.return
}

// -----

replay.kernel @stage_other_size() num_warps(1) blocks_per_row(1) {
  %buf = replay.alloc : !replay.buffer<4x128xf32>
  // expected-error @+1 {{element type and sizes must agree, and the memory be shared (X1)}}
  %s = replay.stage %buf : !replay.buffer<4x128xf32>
      -> !replay.view<8x128xf32, strides [128, 1], align 16, shared>
  replay.return
}

// -----

replay.kernel @stage_of_global_memory() num_warps(1) blocks_per_row(1) {
  %buf = replay.alloc : !replay.buffer<4x128xf32>
  // expected-error @+1 {{element type and sizes must agree, and the memory be shared (X1)}}
  %s = replay.stage %buf : !replay.buffer<4x128xf32>
      -> !replay.view<4x128xf32, strides [128, 1], align 16>
  replay.return
}

// -----

replay.kernel @stage_without_size() num_warps(1) blocks_per_row(1) {
  %buf = replay.alloc : !replay.buffer<4x128xf32>
  // expected-error @+1 {{element type and sizes must agree, and the memory be shared (X1)}}
  %s = replay.stage %buf : !replay.buffer<4x128xf32>
      -> !replay.view<?x128xf32, strides [128, 1], align 16, shared>
  replay.return
}

// -----

replay.kernel @stage_apart() num_warps(1) blocks_per_row(1) {
  %buf = replay.alloc : !replay.buffer<4x128xf32>
  // expected-error @+1 {{needs adjacent rows (X2)}}
  %s = replay.stage %buf : !replay.buffer<4x128xf32>
      -> !replay.view<4x128xf32, strides [256, 1], align 16, shared>
  replay.return
}

//===----------------------------------------------------------------------===//
// Thread level
//===----------------------------------------------------------------------===//

// -----

replay.kernel @ld_three() num_warps(1) blocks_per_row(1) {
  %p = builtin.unrealized_conversion_cast to !llvm.ptr<1>
  // expected-error @+1 {{moves 3 values of 12 bytes; allowed are values of one type with 2, 4, 8 or 16 bytes (H1)}}
  %a, %b, %c = replay.ld %p : !llvm.ptr<1> -> f32, f32, f32
  replay.return
}

// -----

replay.kernel @ld_mixed() num_warps(1) blocks_per_row(1) {
  %p = builtin.unrealized_conversion_cast to !llvm.ptr<1>
  // expected-error @+1 {{allowed are values of one type with 2, 4, 8 or 16 bytes (H1)}}
  %a, %b = replay.ld %p : !llvm.ptr<1> -> f32, i32
  replay.return
}

// -----

replay.kernel @ld_nothing() num_warps(1) blocks_per_row(1) {
  %p = builtin.unrealized_conversion_cast to !llvm.ptr<1>
  // expected-error @+1 {{moves 0 values of 0 bytes; allowed are values of one type with 2, 4, 8 or 16 bytes (H1)}}
  "replay.ld"(%p) : (!llvm.ptr<1>) -> ()
  replay.return
}

// -----

replay.kernel @st_too_wide(%x: f32) num_warps(1) blocks_per_row(1) {
  %p = builtin.unrealized_conversion_cast to !llvm.ptr<1>
  // expected-error @+1 {{moves 8 values of 32 bytes; allowed are values of one type with 2, 4, 8 or 16 bytes (H2)}}
  replay.st %x, %x, %x, %x, %x, %x, %x, %x to %p
      : !llvm.ptr<1>, f32, f32, f32, f32, f32, f32, f32, f32
  replay.return
}

// -----

replay.kernel @slice_between_pieces() num_warps(1) blocks_per_row(1) {
  %c3 = arith.constant 3 : i32
  %x = builtin.unrealized_conversion_cast to tensor<64xf32>
  // expected-error @+1 {{cannot cut 'tensor<32xf32>' out of 'tensor<64xf32>' at offset 3 (Z2)}}
  %p = replay.slice %x[%c3] : tensor<64xf32> -> tensor<32xf32>
  replay.return
}
