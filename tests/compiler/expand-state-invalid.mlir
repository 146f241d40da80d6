// What carries a state that it cannot carry.
//
// RUN: replay-opt %s --replay-expand-state -split-input-file -verify-diagnostics

!checkpoint = !replay.view<32x128xf32, strides [128, 1], align 16>

replay.kernel @carried_before_formed(%n: i32) num_warps(4) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s0 = builtin.unrealized_conversion_cast to !checkpoint
  %s = replay.reconstruct %s0 {depth = 1 : i32} : !checkpoint -> !replay.state<32x128>
  // expected-error @+1 {{'scf.for' op carries a '!replay.state<32x128>', which is not formed; replay.form forms it}}
  %t = scf.for %i = %c0 to %n step %c1 iter_args(%u = %s) -> (!replay.state<32x128>) : i32 {
    scf.yield %u : !replay.state<32x128>
  }
  replay.flush %t into %s0 : !replay.state<32x128> into !checkpoint
  replay.return
}

// -----

!checkpoint = !replay.view<32x128xf32, strides [128, 1], align 16>

replay.kernel @chosen_before_formed(%c: i1) num_warps(4) blocks_per_row(1) {
  %s0 = builtin.unrealized_conversion_cast to !checkpoint
  %s = replay.reconstruct %s0 {depth = 1 : i32} : !checkpoint -> !replay.state<32x128>
  %t = scf.if %c -> (!replay.state<32x128>) {
    // expected-error @+1 {{'scf.yield' op carries a '!replay.state<32x128>', which is not formed; replay.form forms it}}
    scf.yield %s : !replay.state<32x128>
  } else {
    scf.yield %s : !replay.state<32x128>
  }
  replay.flush %t into %s0 : !replay.state<32x128> into !checkpoint
  replay.return
}

// -----

!checkpoint = !replay.view<32x128xf32, strides [128, 1], align 16>

replay.kernel @selected(%c: i1) num_warps(4) blocks_per_row(1) {
  %s0 = builtin.unrealized_conversion_cast to !checkpoint
  %s = replay.reconstruct %s0 {depth = 1 : i32} : !checkpoint -> !replay.state<32x128>
  %t = replay.form %s : !replay.state<32x128> -> !replay.state<32x128, tiles 128>
  // expected-error @+1 {{'arith.select' op cannot use a state; operations of the replay dialect, scf.for, scf.if and scf.yield can}}
  %u = arith.select %c, %t, %t : !replay.state<32x128, tiles 128>
  replay.flush %u into %s0 : !replay.state<32x128, tiles 128> into !checkpoint
  replay.return
}
