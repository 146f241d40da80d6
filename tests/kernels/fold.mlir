// RUN: replay-opt %s --replay-tile-pipeline | FileCheck %s
// RUN: replay-compile --mlir %s --target sm_90a | FileCheck %s --check-prefix=PTX

// A serial fold over tokens, a state-level kernel written by hand: a block's 32
// rows of a state stay in registers while t runs over the tokens,
//     S = S alpha_t;  d = beta_t (v_t - S k_t);  S = S + d k_t^T
// and are stored once. Block i has item i: a state, and tokens of its own.

// The loop carries one tile, in the layout of the load: nothing is exchanged but
// the sums and d.
// CHECK-LABEL: replay.kernel @fold(
// CHECK-NOT: replay.state
// CHECK: %[[S0:.*]] = load {{.*}} -> tensor<32x128xf32, #[[ROWS:.*]]>
// CHECK: %[[S:.*]] = scf.for {{.*}} iter_args(%[[OLD:.*]] = %[[S0]]) -> (tensor<32x128xf32, #[[ROWS]]>)
// CHECK-NOT: load {{.*}} -> tensor<32x128xf32
// CHECK:   %[[DECAYED:.*]] = arith.mulf %[[OLD]],
// CHECK:   replay.reduce {{.*}} axis 1
// CHECK:   %[[NEW:.*]] = math.fma {{.*}}, %[[DECAYED]]
// CHECK:   scf.yield %[[NEW]] : tensor<32x128xf32, #[[ROWS]]>
// CHECK: store %[[S]]

// 32 elements a thread: eight loads and eight stores of 16 bytes, none in the loop.
// PTX: .visible .entry fold(
// PTX-COUNT-8: ld.global.v4.b32
// PTX: shfl.sync
// PTX-NOT: st.global
// PTX: bra
// PTX-COUNT-8: st.global.v4.b32
// PTX-NOT: st.global
// PTX: ret;

!item = !replay.view<32x128xf32, strides [128, 1], align 16>
!key = !replay.view<128xf32, strides [1], align 16>
!value = !replay.view<32xf32, strides [1], align 16>
!number = !replay.view<1xf32, strides [1]>
!formed = !replay.state<32x128, tiles 128>

replay.kernel @fold(
    %states: !replay.ptr<f32> {replay.name = "states", replay.noalias},
    %keys: !replay.ptr<f32> {replay.name = "keys", replay.readonly},
    %values: !replay.ptr<f32> {replay.name = "values", replay.readonly},
    %decays: !replay.ptr<f32> {replay.name = "decays", replay.readonly},
    %betas: !replay.ptr<f32> {replay.name = "betas", replay.readonly},
    %tokens: i32 {replay.name = "tokens"}) num_warps(4) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %rowSize = arith.constant 32 : i64
  %keySize = arith.constant 128 : i64
  %stateSize = arith.constant 4096 : i64
  %pid = replay.program_id x
  %item = arith.extsi %pid : i32 to i64
  %tokens64 = arith.extsi %tokens : i32 to i64
  %first = arith.muli %item, %tokens64 : i64
  %at = arith.muli %item, %stateSize : i64
  %checkpoint = replay.view %states offset %at : !replay.ptr<f32> -> !item

  %start = replay.reconstruct %checkpoint {depth = 1 : i32}
      : !item -> !replay.state<32x128>
  %s0 = replay.form %start : !replay.state<32x128> -> !formed
  %end = scf.for %t = %c0 to %tokens step %c1 iter_args(%s = %s0) -> (!formed) : i32 {
    %t64 = arith.extsi %t : i32 to i64
    %token = arith.addi %first, %t64 : i64
    %kAt = arith.muli %token, %keySize : i64
    %kView = replay.view %keys offset %kAt : !replay.ptr<f32> -> !key
    %k = replay.load %kView[%c0] : !key -> tensor<128xf32>
    %vAt = arith.muli %token, %rowSize : i64
    %vView = replay.view %values offset %vAt : !replay.ptr<f32> -> !value
    %v = replay.load %vView[%c0] : !value -> tensor<32xf32>
    %alphaView = replay.view %decays offset %token : !replay.ptr<f32> -> !number
    %alpha = replay.load %alphaView[%c0] : !number -> f32
    %betaView = replay.view %betas offset %token : !replay.ptr<f32> -> !number
    %beta = replay.load %betaView[%c0] : !number -> f32

    %aged = replay.update %s decay %alpha : !formed decay f32
    %sk = replay.contract %aged, %k : !formed, tensor<128xf32> -> tensor<32xf32>
    %error = arith.subf %v, %sk : tensor<32xf32>
    %betas32 = replay.splat %beta : f32 -> tensor<32xf32>
    %d = arith.mulf %betas32, %error : tensor<32xf32>
    %next = replay.update %aged add %d, %k : !formed
        add tensor<32xf32>, tensor<128xf32>
    scf.yield %next : !formed
  }
  replay.flush %end into %checkpoint : !formed into !item
  replay.return
}
