// RUN: replay-opt %s --replay-expand-state="block-k=96" -verify-diagnostics
// RUN: not replay-opt %s --replay-expand-state="block-k=0" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not replay-opt %s --replay-expand-state="precision=tf16" 2>&1 | FileCheck %s --check-prefix=PRECISION

// ZERO: error: block-k 0 does not divide the 128 columns of the state
// PRECISION: error: precision must be ieee, tf32, bf16 or f16

replay.kernel @odd_tiles() num_warps(4) blocks_per_row(1) {
  %s0, %x = builtin.unrealized_conversion_cast to
      !replay.view<32x128xf32, strides [128, 1], align 16>, tensor<128xf32>
  // expected-error @+1 {{block-k 96 does not divide the 128 columns of the state}}
  %s = replay.reconstruct %s0 {depth = 1 : i32}
      : !replay.view<32x128xf32, strides [128, 1], align 16> -> !replay.state<32x128>
  %y = replay.contract %s, %x : !replay.state<32x128>, tensor<128xf32> -> tensor<32xf32>
  replay.return
}
