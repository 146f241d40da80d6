// RUN: replay-opt %s --split-input-file --verify-diagnostics --replay-stage-loads | FileCheck %s

!tile = !replay.view<32x128xbf16, strides [128, 1], align 16>
!ring = !replay.view<?x128xbf16, strides [-128, 1], align 16>

// The copy starts where the address is known, before what stands in front of
// the view; threads wait before the first load, and the branch reads the stage
// again. The store is of what was loaded before.
// CHECK-LABEL: replay.kernel @flush(
// CHECK-SAME: %[[P:.*]]: !replay.ptr<bf16>, %[[Q:.*]]: !replay.ptr<f32>, %[[N:.*]]: i64
// CHECK: %[[BUF:.*]] = alloc : <32x128xbf16>
// CHECK: %[[AT:.*]] = arith.addi %[[N]], %[[N]]
// CHECK: %[[V:.*]] = view %[[P]] offset %[[AT]]
// CHECK: async_copy %[[V]], %[[BUF]] :
// CHECK: %[[X:.*]] = load
// CHECK: wait %[[BUF]]
// CHECK: %[[S:.*]] = stage %[[BUF]] : {{.*}} -> <32x128xbf16, strides [128, 1], align 16, shared>
// CHECK: load %[[S]][
// CHECK: scf.if
// CHECK:   %[[U:.*]] = replay.load %[[S]][
// CHECK:   replay.store %[[U]], %[[V]][
replay.kernel @flush(%p: !replay.ptr<bf16>, %q: !replay.ptr<f32>, %n: i64, %i: i32, %flush: i1)
    num_warps(4) blocks_per_row(1) attributes {replay.stage_bytes = 2048 : i32} {
  %w = replay.view %q offset %n : !replay.ptr<f32> -> !replay.view<16xf32, strides [1]>
  %x = replay.load %w[%i] : !replay.view<16xf32, strides [1]> -> tensor<16xf32>
  %at = arith.addi %n, %n : i64
  %v = replay.view %p offset %at : !replay.ptr<bf16> -> !tile
  %t = replay.load %v[%i, %i] : !tile -> tensor<32x64xbf16>
  scf.if %flush {
    %u = replay.load %v[%i, %i] : !tile -> tensor<32x128xbf16>
    replay.store %u, %v[%i, %i] : tensor<32x128xbf16>, !tile
  }
  replay.return
}

// -----

!ring = !replay.view<?x128xbf16, strides [-128, 1], align 16>

// Rows of which there are at most 10: the buffer has as many, and the stage as
// many as there are. A loop reads it too.
// CHECK-LABEL: replay.kernel @ring(
// CHECK-SAME: i64, %{{.*}}: i32, %[[M:.*]]: i32)
// CHECK: %[[BUF:.*]] = alloc : <10x128xbf16>
// CHECK: async_copy
// CHECK: wait
// CHECK: %[[S:.*]] = stage %[[BUF]] size %[[M]] : {{.*}} -> <?x128xbf16, strides [-128, 1], align 16, shared>
// CHECK: load %[[S]][
// CHECK: scf.for
// CHECK:   replay.load %[[S]][
replay.kernel @ring(%p: !replay.ptr<bf16>, %n: i64, %i: i32, %m: i32)
    num_warps(4) blocks_per_row(1) attributes {replay.stage_bytes = 2048 : i32} {
  %v = replay.view %p offset %n sizes %m at_most 10 : !replay.ptr<bf16> -> !ring
  %t = replay.load %v[%i, %i] : !ring -> tensor<16x128xbf16>
  scf.for %j = %i to %m step %m : i32 {
    %u = replay.load %v[%j, %i] : !ring -> tensor<2x128xbf16>
  }
  replay.return
}

// -----

// Stores that do not touch what is loaded: other arguments, other columns, the
// other branch, and a store after all loads.
// CHECK-LABEL: replay.kernel @harmless_stores(
// CHECK: async_copy
!tile = !replay.view<32x128xbf16, strides [128, 1], align 16>
replay.kernel @harmless_stores(%p: !replay.ptr<bf16> {replay.noalias}, %q: !replay.ptr<bf16>, %n: i64, %m: i64, %c: i1)
    num_warps(4) blocks_per_row(1) attributes {replay.stage_bytes = 2048 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %v = replay.view %p offset %n : !replay.ptr<bf16> -> !tile
  %o = replay.view %q offset %n : !replay.ptr<bf16> -> !tile
  %w = replay.view %p offset %m : !replay.ptr<bf16> -> !tile
  %t = replay.load %v[%c0, %c0] : !tile -> tensor<32x64xbf16>
  replay.store %t, %o[%c0, %c0] : tensor<32x64xbf16>, !tile
  scf.if %c {
    replay.store %t, %v[%c0, %c0] : tensor<32x64xbf16>, !tile
    %u = replay.load %v[%c0, %c64] : !tile -> tensor<32x64xbf16>
    replay.store %u, %v[%c0, %c64] : tensor<32x64xbf16>, !tile
  } else {
    replay.store %t, %w[%c0, %c0] : tensor<32x64xbf16>, !tile
  }
  replay.return
}

// -----

// Too small to be worth a copy: no word about it.
// CHECK-LABEL: replay.kernel @small(
// CHECK-NOT: alloc
// CHECK: return
!few = !replay.view<4x128xbf16, strides [128, 1], align 16>
replay.kernel @small(%p: !replay.ptr<bf16>, %n: i64, %i: i32) num_warps(1) blocks_per_row(1) attributes {replay.stage_bytes = 2048 : i32} {
  %v = replay.view %p offset %n : !replay.ptr<bf16> -> !few
  %t = replay.load %v[%i, %i] : !few -> tensor<4x128xbf16>
  replay.return
}

// -----

// CHECK-LABEL: replay.kernel @unbounded(
// CHECK-NOT: alloc
// CHECK: return
!rows = !replay.view<?x128xbf16, strides [128, 1], align 16>
replay.kernel @unbounded(%p: !replay.ptr<bf16>, %n: i64, %m: i32) num_warps(4) blocks_per_row(1) attributes {replay.stage_bytes = 2048 : i32} {
  // expected-remark @+1 {{is not staged: its sizes are not bounded}}
  %v = replay.view %p offset %n sizes %m : !replay.ptr<bf16> -> !rows
  %t = replay.load %v[%m, %m] : !rows -> tensor<32x128xbf16>
  replay.return
}

// -----

// CHECK-LABEL: replay.kernel @apart(
// CHECK-NOT: alloc
// CHECK: return
!apart = !replay.view<32x128xbf16, strides [256, 1], align 16>
replay.kernel @apart(%p: !replay.ptr<bf16>, %n: i64, %i: i32) num_warps(4) blocks_per_row(1) attributes {replay.stage_bytes = 2048 : i32} {
  // expected-remark @+1 {{is not staged: its rows are not adjacent}}
  %v = replay.view %p offset %n : !replay.ptr<bf16> -> !apart
  %t = replay.load %v[%i, %i] : !apart -> tensor<32x128xbf16>
  replay.return
}

// -----

// CHECK-LABEL: replay.kernel @unaligned(
// CHECK-NOT: alloc
// CHECK: return
!odd = !replay.view<32x128xbf16, strides [128, 1], align 8>
replay.kernel @unaligned(%p: !replay.ptr<bf16>, %n: i64, %i: i32) num_warps(4) blocks_per_row(1) attributes {replay.stage_bytes = 2048 : i32} {
  // expected-remark @+1 {{is not staged: its rows or its address are not multiples of 16 bytes}}
  %v = replay.view %p offset %n : !replay.ptr<bf16> -> !odd
  %t = replay.load %v[%i, %i] : !odd -> tensor<32x128xbf16>
  replay.return
}

// -----

// CHECK-LABEL: replay.kernel @only_in_a_branch(
// CHECK-NOT: alloc
// CHECK: return
!tile = !replay.view<32x128xbf16, strides [128, 1], align 16>
replay.kernel @only_in_a_branch(%p: !replay.ptr<bf16>, %n: i64, %i: i32, %c: i1)
    num_warps(4) blocks_per_row(1) attributes {replay.stage_bytes = 2048 : i32} {
  // expected-remark @+1 {{is not staged: its first load stands in a branch or a loop}}
  %v = replay.view %p offset %n : !replay.ptr<bf16> -> !tile
  scf.if %c {
    %t = replay.load %v[%i, %i] : !tile -> tensor<32x128xbf16>
  }
  replay.return
}

// -----

// CHECK-LABEL: replay.kernel @in_a_loop(
// CHECK-NOT: alloc
// CHECK: return
!tile = !replay.view<32x128xbf16, strides [128, 1], align 16>
replay.kernel @in_a_loop(%p: !replay.ptr<bf16>, %i: i32, %m: i32)
    num_warps(4) blocks_per_row(1) attributes {replay.stage_bytes = 2048 : i32} {
  scf.for %j = %i to %m step %m : i32 {
    %n = arith.extsi %j : i32 to i64
    // expected-remark @+1 {{is not staged: it stands in a loop}}
    %v = replay.view %p offset %n : !replay.ptr<bf16> -> !tile
    %t = replay.load %v[%i, %i] : !tile -> tensor<32x128xbf16>
  }
  replay.return
}

// -----

// CHECK-LABEL: replay.kernel @stored_before(
// CHECK-NOT: alloc
// CHECK: return
!tile = !replay.view<32x128xbf16, strides [128, 1], align 16>
replay.kernel @stored_before(%p: !replay.ptr<bf16>, %n: i64, %m: i64, %i: i32)
    num_warps(4) blocks_per_row(1) attributes {replay.stage_bytes = 2048 : i32} {
  // expected-remark @+1 {{is not staged: what is loaded may be written before}}
  %v = replay.view %p offset %n : !replay.ptr<bf16> -> !tile
  %w = replay.view %p offset %m : !replay.ptr<bf16> -> !tile
  %t = replay.load %v[%i, %i] : !tile -> tensor<32x128xbf16>
  replay.store %t, %w[%i, %i] : tensor<32x128xbf16>, !tile
  %u = replay.load %v[%i, %i] : !tile -> tensor<32x128xbf16>
  replay.return
}

// -----

// What a loop stores, its next iteration would load.
// CHECK-LABEL: replay.kernel @stored_in_a_loop(
// CHECK-NOT: alloc
// CHECK: return
!tile = !replay.view<32x128xbf16, strides [128, 1], align 16>
replay.kernel @stored_in_a_loop(%p: !replay.ptr<bf16>, %n: i64, %i: i32, %m: i32)
    num_warps(4) blocks_per_row(1) attributes {replay.stage_bytes = 2048 : i32} {
  // expected-remark @+1 {{is not staged: what is loaded may be written before}}
  %v = replay.view %p offset %n : !replay.ptr<bf16> -> !tile
  %t = replay.load %v[%i, %i] : !tile -> tensor<32x128xbf16>
  scf.for %j = %i to %m step %m : i32 {
    %u = replay.load %v[%j, %i] : !tile -> tensor<32x128xbf16>
    replay.store %u, %v[%j, %i] : tensor<32x128xbf16>, !tile
  }
  replay.return
}

// -----

// The kernel does not ask for it.
// CHECK-LABEL: replay.kernel @not_asked(
// CHECK-NOT: alloc
// CHECK: return
!tile = !replay.view<32x128xbf16, strides [128, 1], align 16>
replay.kernel @not_asked(%p: !replay.ptr<bf16>, %n: i64, %i: i32) num_warps(4) blocks_per_row(1) {
  %v = replay.view %p offset %n : !replay.ptr<bf16> -> !tile
  %t = replay.load %v[%i, %i] : !tile -> tensor<32x128xbf16>
  replay.return
}
