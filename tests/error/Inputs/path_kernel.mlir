replay.kernel @"../x"() num_warps(4) blocks_per_row(1) {
  replay.return
}
