// Once with 176 registers for loads in flight, once with 31.
//
// RUN: replay-opt %s --replay-hoist-loads | FileCheck %s
// RUN: sed 's/replay.hoist_registers = 176/replay.hoist_registers = 31/' %s | replay-opt --replay-hoist-loads | FileCheck %s --check-prefix=FEW

!row = !replay.view<128xf32, strides [1], align 16>
!tile = !replay.view<32x128xf32, strides [128, 1], align 16>

// Loads come first, the smallest before the others, with what gives their
// addresses; arithmetic follows.
// CHECK-LABEL: replay.kernel @order(
// CHECK: load {{.*}} -> f32
// CHECK: load {{.*}} -> tensor<128xf32>
// CHECK: load {{.*}} -> tensor<32x128xf32>
// They take more than 16 registers, so that a fence ends them.
// CHECK-NEXT: load_fence
// CHECK: arith.addf
// CHECK: math.exp
// CHECK: store
replay.kernel @order(%p: !replay.ptr<f32> {replay.noalias}, %q: !replay.ptr<f32> {replay.noalias}, %r: !replay.ptr<f32> {replay.noalias},
    %n: i64, %i: i32) num_warps(4) blocks_per_row(1)
    attributes {replay.hoist_registers = 176 : i32, replay.fence_registers = 16 : i32} {
  %pid = replay.program_id x
  %pid64 = arith.extsi %pid : i32 to i64
  %v = replay.view %p offset %pid64 : !replay.ptr<f32> -> !tile
  %t = replay.load %v[%i, %i] : !tile -> tensor<32x128xf32>
  %sum = arith.addf %t, %t : tensor<32x128xf32>
  %w = replay.view %q offset %pid64 : !replay.ptr<f32> -> !row
  %x = replay.load %w[%i] : !row -> tensor<128xf32>
  %y = math.exp %x : tensor<128xf32>
  %z = replay.load %w[%pid] : !row -> f32
  %o = replay.view %r offset %n : !replay.ptr<f32> -> !tile
  replay.store %sum, %o[%i, %i] : tensor<32x128xf32>, !tile
  replay.return
}

// The large tile takes 32 registers a thread; with fewer it stays where it is.
// CHECK-LABEL: replay.kernel @large(
// CHECK: load
// CHECK: load
// CHECK: math.exp
// FEW-LABEL: replay.kernel @large(
// FEW: load {{.*}} -> tensor<128xf32>
// FEW: math.exp
// FEW: load {{.*}} -> tensor<32x128xf32>
replay.kernel @large(%p: !replay.ptr<f32> {replay.noalias}, %q: !replay.ptr<f32> {replay.noalias}, %n: i64, %i: i32, %a: f32)
    num_warps(4) blocks_per_row(1)
    attributes {replay.hoist_registers = 176 : i32, replay.fence_registers = 16 : i32} {
  %e = math.exp %a : f32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !tile
  %t = replay.load %v[%i, %i] : !tile -> tensor<32x128xf32>
  %w = replay.view %q offset %n : !replay.ptr<f32> -> !row
  %x = replay.load %w[%i] : !row -> tensor<128xf32>
  replay.store %e, %w[%i] : f32, !row
  replay.store %x, %w[%i] : tensor<128xf32>, !row
  replay.store %t, %v[%i, %i] : tensor<32x128xf32>, !tile
  replay.return
}

// A load stays behind a store through its own pointer and passes others.
// CHECK-LABEL: replay.kernel @stores(
// CHECK-SAME: %[[P:[^ ]*]]: !replay.ptr<f32> {{.*}}, %[[Q:[^ ]*]]: !replay.ptr<f32> {{.*}}, %{{.*}}: i64
// CHECK-DAG: %[[V:.*]] = view %[[P]]
// CHECK-DAG: %[[W:.*]] = view %[[Q]]
// CHECK-DAG: load %[[W]]
// CHECK: store %{{.*}}, %[[V]]
// CHECK: load %[[V]]
// CHECK: math.exp
replay.kernel @stores(%p: !replay.ptr<f32> {replay.noalias}, %q: !replay.ptr<f32> {replay.noalias}, %n: i64, %i: i32, %a: f32)
    num_warps(4) blocks_per_row(1)
    attributes {replay.hoist_registers = 176 : i32, replay.fence_registers = 16 : i32} {
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !row
  %w = replay.view %q offset %n : !replay.ptr<f32> -> !row
  replay.store %a, %v[%i] : f32, !row
  %mine = replay.load %v[%i] : !row -> f32
  %e = math.exp %mine : f32
  %other = replay.load %w[%i] : !row -> f32
  %sum = arith.addf %e, %other : f32
  replay.store %sum, %v[%i] : f32, !row
  replay.return
}

// The store may stand in a branch.
// CHECK-LABEL: replay.kernel @store_in_branch(
// CHECK: scf.if
// CHECK: store
// CHECK: load
replay.kernel @store_in_branch(%p: !replay.ptr<f32> {replay.noalias}, %n: i64, %i: i32, %a: f32, %c: i1)
    num_warps(4) blocks_per_row(1)
    attributes {replay.hoist_registers = 176 : i32, replay.fence_registers = 16 : i32} {
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !row
  scf.if %c {
    replay.store %a, %v[%i] : f32, !row
  }
  %x = replay.load %v[%i] : !row -> f32
  %o = arith.addf %x, %a : f32
  replay.store %o, %v[%i] : f32, !row
  replay.return
}

// An address that a branch computes keeps the load behind it.
// CHECK-LABEL: replay.kernel @address_of_branch(
// CHECK: scf.if
// CHECK: load
replay.kernel @address_of_branch(%p: !replay.ptr<f32> {replay.noalias}, %q: !replay.ptr<f32> {replay.noalias}, %n: i64, %i: i32, %c: i1)
    num_warps(4) blocks_per_row(1)
    attributes {replay.hoist_registers = 176 : i32, replay.fence_registers = 16 : i32} {
  %at = scf.if %c -> (i32) {
    scf.yield %i : i32
  } else {
    %pid = replay.program_id x
    scf.yield %pid : i32
  }
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !row
  %x = replay.load %v[%at] : !row -> f32
  %o = replay.view %q offset %n : !replay.ptr<f32> -> !row
  replay.store %x, %o[%i] : f32, !row
  replay.return
}

// A load whose address is loaded moves with that load.
// CHECK-LABEL: replay.kernel @indirect(
// CHECK: %[[AT:.*]] = load {{.*}} -> i32
// CHECK: load %{{.*}}[%[[AT]]]
// CHECK: math.exp
replay.kernel @indirect(%p: !replay.ptr<i32> {replay.noalias}, %q: !replay.ptr<f32> {replay.noalias}, %n: i64, %i: i32, %a: f32)
    num_warps(4) blocks_per_row(1)
    attributes {replay.hoist_registers = 176 : i32, replay.fence_registers = 16 : i32} {
  %e = math.exp %a : f32
  %v = replay.view %p offset %n : !replay.ptr<i32> -> !replay.view<16xi32, strides [1]>
  %at = replay.load %v[%i] : !replay.view<16xi32, strides [1]> -> i32
  %w = replay.view %q offset %n : !replay.ptr<f32> -> !row
  %x = replay.load %w[%at] : !row -> f32
  %sum = arith.addf %x, %e : f32
  replay.store %sum, %w[%i] : f32, !row
  replay.return
}

// So it stays behind a store that the other load has to stay behind.
// CHECK-LABEL: replay.kernel @indirect_behind_store(
// CHECK: store
// CHECK: %[[AT:.*]] = load {{.*}} -> i32
// CHECK: load %{{.*}}[%[[AT]]]
replay.kernel @indirect_behind_store(%p: !replay.ptr<i32> {replay.noalias}, %q: !replay.ptr<f32> {replay.noalias}, %n: i64, %i: i32)
    num_warps(4) blocks_per_row(1)
    attributes {replay.hoist_registers = 176 : i32, replay.fence_registers = 16 : i32} {
  %v = replay.view %p offset %n : !replay.ptr<i32> -> !replay.view<16xi32, strides [1]>
  replay.store %i, %v[%i] : i32, !replay.view<16xi32, strides [1]>
  %at = replay.load %v[%i] : !replay.view<16xi32, strides [1]> -> i32
  %w = replay.view %q offset %n : !replay.ptr<f32> -> !row
  %x = replay.load %w[%at] : !row -> f32
  replay.store %x, %w[%i] : f32, !row
  replay.return
}

// Within a branch loads move to its start, not out of it.
// CHECK-LABEL: replay.kernel @in_branch(
// CHECK: scf.if
// CHECK: replay.load
// CHECK: math.exp
replay.kernel @in_branch(%p: !replay.ptr<f32> {replay.noalias}, %n: i64, %i: i32, %a: f32, %c: i1)
    num_warps(4) blocks_per_row(1)
    attributes {replay.hoist_registers = 176 : i32, replay.fence_registers = 16 : i32} {
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !row
  scf.if %c {
    %e = math.exp %a : f32
    %x = replay.load %v[%i] : !row -> f32
    %sum = arith.addf %x, %e : f32
    replay.store %sum, %v[%i] : f32, !row
  }
  replay.return
}

// Loads of few registers, or where no limit is given, end in no fence.
// CHECK-LABEL: replay.kernel @few(
// CHECK-NOT: load_fence
// CHECK-LABEL: replay.kernel @no_limit(
// CHECK: load {{.*}} -> tensor<32x128xf32>
// CHECK: math.exp
// CHECK-NOT: load_fence
// CHECK: return
replay.kernel @few(%p: !replay.ptr<f32>, %n: i64, %i: i32, %a: f32)
    num_warps(4) blocks_per_row(1) attributes {replay.fence_registers = 16 : i32} {
  %e = math.exp %a : f32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !tile
  %t = replay.load %v[%i, %i] : !tile -> tensor<8x128xf32>
  replay.store %e, %v[%i, %i] : f32, !tile
  replay.store %t, %v[%i, %i] : tensor<8x128xf32>, !tile
  replay.return
}
replay.kernel @no_limit(%p: !replay.ptr<f32>, %n: i64, %i: i32, %a: f32)
    num_warps(1) blocks_per_row(1) {
  %e = math.exp %a : f32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !tile
  %t = replay.load %v[%i, %i] : !tile -> tensor<32x128xf32>
  %u = replay.load %v[%i, %i] : !tile -> tensor<32x128xf32>
  replay.store %e, %v[%i, %i] : f32, !tile
  replay.store %t, %v[%i, %i] : tensor<32x128xf32>, !tile
  replay.store %u, %v[%i, %i] : tensor<32x128xf32>, !tile
  replay.return
}

// Nor does a load pass a fence that is there.
// CHECK-LABEL: replay.kernel @behind_fence(
// CHECK: load {{.*}} -> tensor<128xf32>
// CHECK: math.exp
// CHECK: load_fence
// CHECK: load {{.*}} -> f32
replay.kernel @behind_fence(%p: !replay.ptr<f32>, %n: i64, %i: i32, %a: f32)
    num_warps(4) blocks_per_row(1) {
  %e = math.exp %a : f32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !row
  %x = replay.load %v[%i] : !row -> tensor<128xf32>
  replay.load_fence
  %y = replay.load %v[%i] : !row -> f32
  %sum = arith.addf %e, %y : f32
  replay.store %sum, %v[%i] : f32, !row
  replay.store %x, %v[%i] : tensor<128xf32>, !row
  replay.return
}

// What is written through another pointer may be what is read, if nothing says
// that it is not; nobody writes what is read-only.
// CHECK-LABEL: replay.kernel @aliases(
// CHECK-SAME: %[[P:.*]]: !replay.ptr<f32>, %[[Q:.*]]: !replay.ptr<f32>, %[[R:.*]]: !replay.ptr<f32> {replay.readonly}
// CHECK: %[[X:.*]] = view %[[R]]
// CHECK: load %[[X]]
// CHECK: %[[V:.*]] = view %[[P]]
// CHECK: %[[W:.*]] = view %[[Q]]
// CHECK: store %{{.*}}, %[[V]]
// CHECK: load %[[W]]
replay.kernel @aliases(%p: !replay.ptr<f32>, %q: !replay.ptr<f32>,
    %r: !replay.ptr<f32> {replay.readonly}, %n: i64, %i: i32, %a: f32)
    num_warps(4) blocks_per_row(1) {
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !row
  %w = replay.view %q offset %n : !replay.ptr<f32> -> !row
  %x = replay.view %r offset %n : !replay.ptr<f32> -> !row
  replay.store %a, %v[%i] : f32, !row
  %y = replay.load %w[%i] : !row -> f32
  %z = replay.load %x[%i] : !row -> f32
  %sum = arith.addf %y, %z : f32
  replay.store %sum, %v[%i] : f32, !row
  replay.return
}

// Loads move behind the copies that the block starts, which come first.
// CHECK-LABEL: replay.kernel @behind_copies(
// CHECK: async_copy
// CHECK-NEXT: view
// CHECK-NEXT: load
// CHECK: arith.addi
replay.kernel @behind_copies(%p: !replay.ptr<f32>, %q: !replay.ptr<f32>, %n: i64, %i: i32)
    num_warps(4) blocks_per_row(1) {
  %buf = replay.alloc : !replay.buffer<1 x 16x32xf32>
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !replay.view<16x32xf32, strides [32, 1], align 16>
  replay.async_copy %v, %buf[%i] : !replay.view<16x32xf32, strides [32, 1], align 16>, !replay.buffer<1 x 16x32xf32>
  %j = arith.addi %i, %i : i32
  %w = replay.view %q offset %n : !replay.ptr<f32> -> !replay.view<16xf32, strides [1]>
  %x = replay.load %w[%i] : !replay.view<16xf32, strides [1]> -> tensor<16xf32>
  replay.wait %buf[%j] : !replay.buffer<1 x 16x32xf32>
  replay.return
}

// A wait parts the block: what the predecessor cannot write is on its way before,
// the rest gathers behind, and nothing passes a store.
// CHECK-LABEL: replay.kernel @wait(
// CHECK-SAME: %[[STATE:[^ ]*]]: !replay.ptr<f32> {{{[^}]*}}}, %[[TOKEN:[^ ]*]]: !replay.ptr<f32>
// CHECK-DAG: %[[V:.*]] = view %[[STATE]]
// CHECK-DAG: load %[[V]][{{.*}} -> tensor<32x128xf32>
// CHECK: load_fence
// CHECK-NOT: load %
// CHECK: await_predecessor
// CHECK-NOT: math.exp
// CHECK: load {{.*}} -> f32
// CHECK-NOT: math.exp
// CHECK: load {{.*}} -> tensor<128xf32>
// CHECK: load_fence
// CHECK: math.exp
// CHECK: store
// CHECK: load {{.*}} -> f32
// CHECK: store
replay.kernel @wait(%state: !replay.ptr<f32> {replay.noalias}, %token: !replay.ptr<f32> {replay.noalias, replay.dependent},
    %n: i64, %i: i32) num_warps(4) blocks_per_row(1)
    attributes {replay.hoist_registers = 176 : i32, replay.fence_registers = 16 : i32} {
  replay.await_predecessor
  %w = replay.view %token offset %n : !replay.ptr<f32> -> !row
  %x = replay.load %w[%i] : !row -> tensor<128xf32>
  %y = math.exp %x : tensor<128xf32>
  %z = replay.load %w[%i] : !row -> f32
  %v = replay.view %state offset %n : !replay.ptr<f32> -> !tile
  %t = replay.load %v[%i, %i] : !tile -> tensor<32x128xf32>
  replay.store %y, %w[%i] : tensor<128xf32>, !row
  %late = replay.load %w[%i] : !row -> f32
  %sum = arith.addf %late, %z : f32
  replay.store %sum, %w[%i] : f32, !row
  replay.store %t, %v[%i, %i] : tensor<32x128xf32>, !tile
  replay.return
}
