// A formed state is a value: its tiles are updated, contracted, stored, and
// carried by loops and branches.
//
// RUN: replay-opt %s --replay-expand-state | FileCheck %s --implicit-check-not=replay.state --implicit-check-not=unrealized_conversion_cast

!checkpoint = !replay.view<32x128xf32, strides [128, 1], align 16>
!d = !replay.view<?x32xf32, strides [-128, 1], align 16>
!k = !replay.view<?x128xf32, strides [-128, 1], align 16>
!gates = !replay.view<?xf32, strides [-1]>
!key = !replay.view<128xf32, strides [1], align 16>
!value = !replay.view<32xf32, strides [1], align 16>
!state = !replay.state<32x128>
!formed = !replay.state<32x128, tiles 64>

// The serial fold: S = S alpha; d = v - S k; S += d k^T, of two tiles.
// CHECK-LABEL: replay.kernel @fold(
// CHECK-SAME: %[[N:.*]]: i32, %[[ALPHA:.*]]: f32
// CHECK: %[[S0:.*]] = load {{.*}} -> tensor<32x64xf32>
// CHECK: %[[S1:.*]] = load {{.*}} -> tensor<32x64xf32>
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[T0:.*]] = %[[S0]], %[[T1:.*]] = %[[S1]]) -> (tensor<32x64xf32>, tensor<32x64xf32>)
// CHECK:   %[[K:.*]] = replay.load {{.*}} -> tensor<128xf32>
// CHECK:   %[[V:.*]] = replay.load {{.*}} -> tensor<32xf32>
// CHECK:   %[[A0:.*]] = arith.mulf %[[T0]],
// CHECK:   %[[A1:.*]] = arith.mulf %[[T1]],
// CHECK:   replay.slice %[[K]][%{{.*}}] : tensor<128xf32> -> tensor<64xf32>
// CHECK:   arith.mulf %[[A0]],
// CHECK:   replay.slice %[[K]][%{{.*}}] : tensor<128xf32> -> tensor<64xf32>
// CHECK:   arith.mulf %[[A1]],
// CHECK:   %[[SK:.*]] = arith.addf
// CHECK:   %[[D:.*]] = arith.subf %[[V]], %[[SK]]
// CHECK:   %[[B0:.*]] = math.fma %{{.*}}, %{{.*}}, %[[A0]]
// CHECK:   %[[B1:.*]] = math.fma %{{.*}}, %{{.*}}, %[[A1]]
// CHECK:   scf.yield %[[B0]], %[[B1]]
// CHECK: store %[[R]]#0
// CHECK: store %[[R]]#1
// CHECK-NOT: store
// CHECK: return
replay.kernel @fold(%n: i32, %alpha: f32, %p: !replay.ptr<f32>, %kp: !replay.ptr<f32>,
    %vp: !replay.ptr<f32>, %at: i64) num_warps(4) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s0 = replay.view %p offset %at : !replay.ptr<f32> -> !checkpoint
  %kv = replay.view %kp offset %at : !replay.ptr<f32> -> !key
  %vv = replay.view %vp offset %at : !replay.ptr<f32> -> !value
  %lazy = replay.reconstruct %s0 {depth = 1 : i32} : !checkpoint -> !state
  %s = replay.form %lazy : !state -> !formed
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%u = %s) -> (!formed) : i32 {
    %k = replay.load %kv[%c0] : !key -> tensor<128xf32>
    %v = replay.load %vv[%c0] : !value -> tensor<32xf32>
    %a = replay.update %u decay %alpha : !formed decay f32
    %sk = replay.contract %a, %k : !formed, tensor<128xf32> -> tensor<32xf32>
    %d = arith.subf %v, %sk : tensor<32xf32>
    %b = replay.update %a add %d, %k : !formed add tensor<32xf32>, tensor<128xf32>
    scf.yield %b : !formed
  }
  replay.flush %r into %s0 : !formed into !checkpoint
  replay.return
}

// Forming adds the ring: in steps of `rows`, or by one dot.
// CHECK-LABEL: replay.kernel @with_ring(
// CHECK-SAME: %[[M:.*]]: i32, %[[ALPHA:.*]]: f32
// CHECK: %[[STEPS:.*]]:2 = scf.for {{.*}} to %[[M]]
// CHECK:   replay.dot {{.*}} precision ieee : tensor<32x4xf32>, tensor<4x128xf32>, tensor<32x128xf32>
// CHECK: %[[ONCE:.*]] = dot {{.*}} precision tf32 : tensor<32x16xf32>, tensor<16x128xf32>, tensor<32x128xf32>
// The state before the update is still a value.
// CHECK: %[[DECAYED:.*]] = arith.mulf %[[STEPS]]#0,
// CHECK: %[[NEW:.*]] = math.fma {{.*}}, %[[DECAYED]]
// CHECK: store %[[STEPS]]#0
// CHECK: store %[[NEW]]
// CHECK: store %[[ONCE]]
replay.kernel @with_ring(%m: i32, %alpha: f32, %p: !replay.ptr<f32>, %dp: !replay.ptr<f32>,
    %kp: !replay.ptr<f32>, %gp: !replay.ptr<f32>, %xp: !replay.ptr<f32>, %at: i64)
    num_warps(4) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %s0 = replay.view %p offset %at : !replay.ptr<f32> -> !checkpoint
  %d = replay.view %dp offset %at sizes %m : !replay.ptr<f32> -> !d
  %k = replay.view %kp offset %at sizes %m : !replay.ptr<f32> -> !k
  %g = replay.view %gp offset %at sizes %m : !replay.ptr<f32> -> !gates
  %xv = replay.view %xp offset %at : !replay.ptr<f32> -> !key
  %yv = replay.view %xp offset %at : !replay.ptr<f32> -> !value
  %x = replay.load %xv[%c0] : !key -> tensor<128xf32>
  %y = replay.load %yv[%c0] : !value -> tensor<32xf32>
  %s = replay.reconstruct %s0 rows %m of %d, %k gates %g {depth = 16 : i32}
      : !checkpoint, !d, !k, !gates -> !state
  %t = replay.form %s {rows = 4 : i32} : !state -> !replay.state<32x128, tiles 128>
  %u = replay.form %s {precision = #replay<precision tf32>}
      : !state -> !replay.state<32x128, tiles 128>
  %new = replay.update %t decay %alpha add %y, %x : !replay.state<32x128, tiles 128>
      decay f32 add tensor<32xf32>, tensor<128xf32>
  replay.flush %t into %s0 : !replay.state<32x128, tiles 128> into !checkpoint
  replay.flush %new into %s0 : !replay.state<32x128, tiles 128> into !checkpoint
  replay.flush %u into %s0 : !replay.state<32x128, tiles 128> into !checkpoint
  replay.return
}

// A branch gives tiles; a decay a column is cut to each.
// CHECK-LABEL: replay.kernel @branch(
// CHECK: %[[R:.*]]:2 = scf.if %{{.*}} -> (tensor<32x64xf32>, tensor<32x64xf32>)
// CHECK:   replay.slice %[[A:.*]][%{{.*}}] : tensor<128xf32> -> tensor<64xf32>
// CHECK:   replay.slice %[[A]][%{{.*}}] : tensor<128xf32> -> tensor<64xf32>
// CHECK: } else {
// CHECK: store %[[R]]#0
// CHECK: store %[[R]]#1
replay.kernel @branch(%c: i1, %p: !replay.ptr<f32>, %ap: !replay.ptr<f32>, %at: i64)
    num_warps(4) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %s0 = replay.view %p offset %at : !replay.ptr<f32> -> !checkpoint
  %av = replay.view %ap offset %at : !replay.ptr<f32> -> !key
  %lazy = replay.reconstruct %s0 {depth = 1 : i32} : !checkpoint -> !state
  %s = replay.form %lazy : !state -> !formed
  %r = scf.if %c -> (!formed) {
    %a = replay.load %av[%c0] : !key -> tensor<128xf32>
    %t = replay.update %s decay %a : !formed decay tensor<128xf32>
    scf.yield %t : !formed
  } else {
    scf.yield %s : !formed
  }
  replay.flush %r into %s0 : !formed into !checkpoint
  replay.return
}

// What is not formed beside what is: each is read in its own way.
// CHECK-LABEL: replay.kernel @both(
// CHECK: %[[T:.*]] = load {{.*}} -> tensor<32x128xf32>
// CHECK: scf.for
// CHECK:   replay.load {{.*}} -> tensor<32x32xf32>
// CHECK: } {replay.tiles}
// CHECK: arith.mulf %[[T]],
// CHECK: return
replay.kernel @both(%p: !replay.ptr<f32>, %xp: !replay.ptr<f32>, %at: i64)
    num_warps(4) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %s0 = replay.view %p offset %at : !replay.ptr<f32> -> !checkpoint
  %xv = replay.view %xp offset %at : !replay.ptr<f32> -> !key
  %yv = replay.view %xp offset %at : !replay.ptr<f32> -> !value
  %x = replay.load %xv[%c0] : !key -> tensor<128xf32>
  %s = replay.reconstruct %s0 {depth = 1 : i32} : !checkpoint -> !state
  %t = replay.form %s : !state -> !replay.state<32x128, tiles 128>
  %y = replay.contract %s, %x {block_k = 32 : i32}
      : !state, tensor<128xf32> -> tensor<32xf32>
  %z = replay.contract %t, %x
      : !replay.state<32x128, tiles 128>, tensor<128xf32> -> tensor<32xf32>
  %sum = arith.addf %y, %z : tensor<32xf32>
  replay.store %sum, %yv[%c0] : tensor<32xf32>, !value
  replay.return
}

// A product may be the next token's d as it is, and a state a kernel's last word:
// after all tokens of a bf16 checkpoint it is rounded once.
// CHECK-LABEL: replay.kernel @product_as_d(
// CHECK: %[[S:.*]] = arith.extf {{.*}} : tensor<32x128xbf16> to tensor<32x128xf32>
// CHECK: %[[SX:.*]] = arith.addf
// CHECK: %[[THIN:.*]] = expand %[[SX]] axis 1
// CHECK: %[[D:.*]] = broadcast %[[THIN]]
// CHECK: %[[T:.*]] = math.fma %[[D]], %{{.*}}, %[[S]]
// CHECK: %[[NEW:.*]] = arith.truncf %[[T]] : tensor<32x128xf32> to tensor<32x128xbf16>
// CHECK: store %[[NEW]]
replay.kernel @product_as_d(%p: !replay.ptr<bf16>, %xp: !replay.ptr<f32>, %at: i64)
    num_warps(4) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %s0 = replay.view %p offset %at : !replay.ptr<bf16>
      -> !replay.view<32x128xbf16, strides [128, 1], align 16>
  %xv = replay.view %xp offset %at : !replay.ptr<f32> -> !key
  %x = replay.load %xv[%c0] : !key -> tensor<128xf32>
  %lazy = replay.reconstruct %s0 {depth = 1 : i32}
      : !replay.view<32x128xbf16, strides [128, 1], align 16> -> !state
  %s = replay.form %lazy : !state -> !replay.state<32x128, tiles 128>
  %sx = replay.contract %s, %x
      : !replay.state<32x128, tiles 128>, tensor<128xf32> -> tensor<32xf32>
  %t = replay.update %s add %sx, %x : !replay.state<32x128, tiles 128>
      add tensor<32xf32>, tensor<128xf32>
  replay.flush %t into %s0 : !replay.state<32x128, tiles 128>
      into !replay.view<32x128xbf16, strides [128, 1], align 16>
  replay.return
}
