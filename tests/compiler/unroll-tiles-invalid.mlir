// RUN: replay-opt %s --replay-unroll-tiles -verify-diagnostics

replay.kernel @unknown_end(%end: i32) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  // expected-error @+1 {{a loop over tiles needs constant bounds}}
  scf.for %kt = %c0 to %end step %c64 : i32 {
    %n = replay.program_id x
  } {replay.tiles}
  replay.return
}
