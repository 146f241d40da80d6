// A staged-level kernel written by hand: y[i] = S[i] x for a stream of 64x128
// tiles. A producer warp copies tile after tile into a ring of two stages; four
// consumer warps multiply. Every block takes items pid, pid + grid, ..

replay.kernel @row_products(
    %tiles: !replay.ptr<f32> {replay.name = "tiles", replay.readonly},
    %x: !replay.ptr<f32> {replay.name = "x", replay.readonly},
    %y: !replay.ptr<f32> {replay.name = "y"},
    %items: i32 {replay.name = "items"}) num_warps(4) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant 0 : i64
  %tileSize = arith.constant 8192 : i64
  %rows = arith.constant 64 : i64
  %first = replay.program_id x
  %step = replay.num_programs x
  %buffer = replay.alloc : !replay.buffer<2 x 64x128xf32>
  replay.roles producer {
    scf.for %i = %first to %items step %step iter_args(%n = %c0) -> (i32) : i32 {
      %i64 = arith.extsi %i : i32 to i64
      %at = arith.muli %i64, %tileSize : i64
      %tile = replay.view %tiles offset %at : !replay.ptr<f32>
          -> !replay.view<64x128xf32, strides [128, 1], align 16>
      replay.async_copy %tile[%c0, %c0], %buffer[%n]
          : !replay.view<64x128xf32, strides [128, 1], align 16>,
            !replay.buffer<2 x 64x128xf32>
      %next = arith.addi %n, %c1 : i32
      scf.yield %next : i32
    }
  } consumer {
    %xView = replay.view %x offset %none : !replay.ptr<f32>
        -> !replay.view<128xf32, strides [1], align 16>
    %vector = replay.load %xView[%c0]
        : !replay.view<128xf32, strides [1], align 16> -> tensor<128xf32>
    %thin = replay.expand %vector axis 0 : tensor<128xf32> -> tensor<1x128xf32>
    %wide = replay.broadcast %thin : tensor<1x128xf32> -> tensor<64x128xf32>
    scf.for %i = %first to %items step %step iter_args(%n = %c0) -> (i32) : i32 {
      replay.wait %buffer[%n] : !replay.buffer<2 x 64x128xf32>
      %tile = replay.read %buffer[%n] : !replay.buffer<2 x 64x128xf32>
          -> tensor<64x128xf32>
      replay.release %buffer[%n] : !replay.buffer<2 x 64x128xf32>
      %product = arith.mulf %tile, %wide : tensor<64x128xf32>
      %sums = replay.reduce %product axis 1
          : tensor<64x128xf32> -> tensor<64xf32>
      %i64 = arith.extsi %i : i32 to i64
      %at = arith.muli %i64, %rows : i64
      %yView = replay.view %y offset %at : !replay.ptr<f32>
          -> !replay.view<64xf32, strides [1], align 16>
      replay.store %sums, %yView[%c0] : tensor<64xf32>,
          !replay.view<64xf32, strides [1], align 16>
      %next = arith.addi %n, %c1 : i32
      scf.yield %next : i32
    }
  }
  replay.return
}
