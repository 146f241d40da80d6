// Once with 128 registers for tiles that are used again, once with 31.
//
// RUN: replay-opt %s --replay-reuse-loads | FileCheck %s
// RUN: sed 's/replay.reuse_registers = 128/replay.reuse_registers = 31/' %s | replay-opt --replay-reuse-loads | FileCheck %s --check-prefix=FEW

!state = !replay.view<32x128xf32, strides [128, 1], align 16>
!out = !replay.view<32x128xf32, strides [128, 1], align 16>

// The flush uses the tile that the readout loaded. It costs 32 registers a
// thread: 32 x 128 elements over 4 x 32 threads.
// CHECK-LABEL: replay.kernel @flush(
// CHECK: %[[T:.*]] = load
// CHECK: scf.if
// CHECK-NOT: load
// CHECK: arith.addf %[[T]], %[[T]]
// CHECK: return

// With fewer registers to keep it in, it is loaded again.
// FEW-LABEL: replay.kernel @flush(
// FEW: load
// FEW: scf.if
// FEW: %[[U:.*]] = replay.load
// FEW: arith.addf %[[U]], %[[U]]
replay.kernel @flush(%p: !replay.ptr<f32> {replay.noalias}, %q: !replay.ptr<f32> {replay.noalias}, %n: i64, %i: i32, %flush: i1)
    num_warps(4) blocks_per_row(1)
    attributes {replay.reuse_registers = 128 : i32} {
  %s = replay.view %p offset %n : !replay.ptr<f32> -> !state
  %o = replay.view %q offset %n : !replay.ptr<f32> -> !out
  %t = replay.load %s[%i, %i] : !state -> tensor<32x128xf32>
  // A store through another pointer is no obstacle.
  replay.store %t, %o[%i, %i] : tensor<32x128xf32>, !out
  scf.if %flush {
    %u = replay.load %s[%i, %i] : !state -> tensor<32x128xf32>
    %new = arith.addf %u, %u : tensor<32x128xf32>
    replay.store %new, %s[%i, %i] : tensor<32x128xf32>, !state
  }
  replay.return
}

// 16-bit tiles take half the registers.
// A store in the other branch is not in between; two uses cost one tile.
// CHECK-LABEL: replay.kernel @branches(
// CHECK: %[[T:.*]] = load
// CHECK-NOT: load
// CHECK: arith.addf %[[T]], %[[T]]
// CHECK: else
// CHECK-NOT: load
// CHECK: arith.mulf %[[T]], %[[T]]
// CHECK: return
replay.kernel @branches(%p: !replay.ptr<f32> {replay.noalias}, %n: i64, %i: i32, %flush: i1)
    num_warps(1) blocks_per_row(1)
    attributes {replay.reuse_registers = 128 : i32} {
  %s = replay.view %p offset %n : !replay.ptr<f32> -> !state
  %t = replay.load %s[%i, %i] : !state -> tensor<32x128xf32>
  scf.if %flush {
    %u = replay.load %s[%i, %i] : !state -> tensor<32x128xf32>
    %new = arith.addf %u, %u : tensor<32x128xf32>
    replay.store %new, %s[%i, %i] : tensor<32x128xf32>, !state
  } else {
    %u = replay.load %s[%i, %i] : !state -> tensor<32x128xf32>
    %new = arith.mulf %u, %u : tensor<32x128xf32>
    replay.store %new, %s[%i, %i] : tensor<32x128xf32>, !state
  }
  replay.return
}

// FEW-LABEL: replay.kernel @flush_bf16(
// FEW: load
// FEW: scf.if
// FEW-NOT: replay.load
// FEW: return
replay.kernel @flush_bf16(%p: !replay.ptr<bf16> {replay.noalias}, %n: i64, %i: i32, %flush: i1)
    num_warps(4) blocks_per_row(1)
    attributes {replay.reuse_registers = 128 : i32} {
  %s = replay.view %p offset %n : !replay.ptr<bf16> -> !replay.view<32x128xbf16, strides [128, 1], align 16>
  %t = replay.load %s[%i, %i] : !replay.view<32x128xbf16, strides [128, 1], align 16> -> tensor<32x128xbf16>
  scf.if %flush {
    %u = replay.load %s[%i, %i] : !replay.view<32x128xbf16, strides [128, 1], align 16> -> tensor<32x128xbf16>
    replay.store %u, %s[%i, %i] : tensor<32x128xbf16>, !replay.view<32x128xbf16, strides [128, 1], align 16>
  }
  replay.return
}

// Two tiles of a row do not fit in 31 registers together, though each alone
// takes 16: all are kept or none.
// CHECK-LABEL: replay.kernel @two_tiles(
// CHECK-COUNT-2: load
// CHECK: scf.if
// CHECK-NOT: load
// CHECK: return
// FEW-LABEL: replay.kernel @two_tiles(
// FEW: scf.if
// FEW: replay.load
// FEW: replay.load
replay.kernel @two_tiles(%p: !replay.ptr<f32> {replay.noalias}, %n: i64, %i: i32, %j: i32, %flush: i1)
    num_warps(4) blocks_per_row(1)
    attributes {replay.reuse_registers = 128 : i32} {
  %s = replay.view %p offset %n : !replay.ptr<f32> -> !state
  %t0 = replay.load %s[%i, %i] : !state -> tensor<32x64xf32>
  %t1 = replay.load %s[%i, %j] : !state -> tensor<32x64xf32>
  scf.if %flush {
    %u0 = replay.load %s[%i, %i] : !state -> tensor<32x64xf32>
    %u1 = replay.load %s[%i, %j] : !state -> tensor<32x64xf32>
    replay.store %u0, %s[%i, %i] : tensor<32x64xf32>, !state
    replay.store %u1, %s[%i, %j] : tensor<32x64xf32>, !state
  }
  replay.return
}

// Not across a store through the same pointer, whatever it writes.
// CHECK-LABEL: replay.kernel @store_between(
// CHECK: load
// CHECK: store
// CHECK: %[[U:.*]] = load
// CHECK: store %[[U]]
replay.kernel @store_between(%p: !replay.ptr<f32> {replay.noalias}, %n: i64, %i: i32, %j: i32)
    num_warps(4) blocks_per_row(1)
    attributes {replay.reuse_registers = 128 : i32} {
  %s = replay.view %p offset %n : !replay.ptr<f32> -> !state
  %t = replay.load %s[%i, %i] : !state -> tensor<32x128xf32>
  replay.store %t, %s[%i, %j] : tensor<32x128xf32>, !state
  %u = replay.load %s[%i, %i] : !state -> tensor<32x128xf32>
  replay.store %u, %s[%j, %j] : tensor<32x128xf32>, !state
  replay.return
}

// CHECK-LABEL: replay.kernel @another_tile(
// CHECK-COUNT-2: load
replay.kernel @another_tile(%p: !replay.ptr<f32> {replay.noalias}, %n: i64, %i: i32, %j: i32)
    num_warps(4) blocks_per_row(1)
    attributes {replay.reuse_registers = 128 : i32} {
  %s = replay.view %p offset %n : !replay.ptr<f32> -> !state
  %t = replay.load %s[%i, %i] : !state -> tensor<32x128xf32>
  %u = replay.load %s[%i, %j] : !state -> tensor<32x128xf32>
  %sum = arith.addf %t, %u : tensor<32x128xf32>
  replay.store %sum, %s[%i, %i] : tensor<32x128xf32>, !state
  replay.return
}

// The first load does not dominate the second.
// CHECK-LABEL: replay.kernel @other_branch(
// CHECK-COUNT-2: load
replay.kernel @other_branch(%p: !replay.ptr<f32> {replay.noalias}, %q: !replay.ptr<f32> {replay.noalias}, %n: i64, %i: i32, %c: i1)
    num_warps(4) blocks_per_row(1)
    attributes {replay.reuse_registers = 128 : i32} {
  %s = replay.view %p offset %n : !replay.ptr<f32> -> !state
  %o = replay.view %q offset %n : !replay.ptr<f32> -> !out
  scf.if %c {
    %t = replay.load %s[%i, %i] : !state -> tensor<32x128xf32>
    replay.store %t, %o[%i, %i] : tensor<32x128xf32>, !out
  } else {
    %u = replay.load %s[%i, %i] : !state -> tensor<32x128xf32>
    replay.store %u, %o[%i, %i] : tensor<32x128xf32>, !out
  }
  replay.return
}

// What is written through another pointer may be what is read, if nothing says
// that it is not.
// CHECK-LABEL: replay.kernel @aliases(
// CHECK-COUNT-2: load
// CHECK: return
replay.kernel @aliases(%p: !replay.ptr<f32>, %q: !replay.ptr<f32> {replay.noalias}, %n: i64,
    %i: i32) num_warps(4) blocks_per_row(1) {
  %s = replay.view %p offset %n : !replay.ptr<f32> -> !state
  %o = replay.view %q offset %n : !replay.ptr<f32> -> !out
  %t = replay.load %s[%i, %i] : !state -> tensor<32x128xf32>
  replay.store %t, %o[%i, %i] : tensor<32x128xf32>, !out
  %u = replay.load %s[%i, %i] : !state -> tensor<32x128xf32>
  replay.store %u, %o[%i, %i] : tensor<32x128xf32>, !out
  replay.return
}

// Of pointers that the kernel read, their own attribute says it.
// CHECK-LABEL: replay.kernel @pointers(
// CHECK: %[[T:.*]] = load
// CHECK: store
// CHECK: %[[U:.*]] = load
// CHECK: store %[[T]]
// CHECK: store %[[U]]
// CHECK: return
replay.kernel @pointers(%x: i64, %y: i64, %z: i64, %n: i64, %i: i32)
    num_warps(4) blocks_per_row(1) {
  %p = replay.pointer %x {noalias} -> !replay.ptr<f32>
  %q = replay.pointer %y -> !replay.ptr<f32>
  %r = replay.pointer %z -> !replay.ptr<f32>
  %s = replay.view %p offset %n : !replay.ptr<f32> -> !state
  %w = replay.view %q offset %n : !replay.ptr<f32> -> !state
  %o = replay.view %r offset %n : !replay.ptr<f32> -> !out
  %a = replay.load %s[%i, %i] : !state -> tensor<32x128xf32>
  %b = replay.load %w[%i, %i] : !state -> tensor<32x128xf32>
  %ab = arith.addf %a, %b : tensor<32x128xf32>
  replay.store %ab, %o[%i, %i] : tensor<32x128xf32>, !out
  %t = replay.load %s[%i, %i] : !state -> tensor<32x128xf32>
  %u = replay.load %w[%i, %i] : !state -> tensor<32x128xf32>
  replay.store %t, %o[%i, %i] : tensor<32x128xf32>, !out
  replay.store %u, %o[%i, %i] : tensor<32x128xf32>, !out
  replay.return
}

// A report writes its word, whatever else it does; a load fence writes nothing.
// CHECK-LABEL: replay.kernel @other_writes(
// CHECK-COUNT-1: -> tensor<16xi32>
// CHECK: report
// CHECK: load {{.*}} -> tensor<16xi32>
// CHECK: load_fence
// CHECK-NOT: tensor<16xi32>
// CHECK: return
replay.kernel @other_writes(%word: !replay.ptr<i32>, %q: !replay.ptr<i32>, %n: i64, %i: i32)
    num_warps(4) blocks_per_row(1) {
  %v = replay.view %word offset %n : !replay.ptr<i32> -> !replay.view<16xi32, strides [1]>
  %w = replay.view %q offset %n : !replay.ptr<i32> -> !replay.view<16xi32, strides [1]>
  %t = replay.load %v[%i] : !replay.view<16xi32, strides [1]> -> tensor<16xi32>
  replay.report %i row %i layer %i value %n to %word : !replay.ptr<i32>
  %u = replay.load %v[%i] : !replay.view<16xi32, strides [1]> -> tensor<16xi32>
  replay.load_fence
  %x = replay.load %v[%i] : !replay.view<16xi32, strides [1]> -> tensor<16xi32>
  replay.return
}

// A store later in a loop stands between its next iteration's load and ours.
// CHECK-LABEL: replay.kernel @store_later_in_loop(
// CHECK: load
// CHECK: scf.for
// CHECK: %[[U:.*]] = replay.load
// CHECK: arith.addf %[[U]], %[[U]]
replay.kernel @store_later_in_loop(%p: !replay.ptr<f32> {replay.noalias}, %q: !replay.ptr<f32> {replay.noalias}, %n: i64, %i: i32)
    num_warps(4) blocks_per_row(1)
    attributes {replay.reuse_registers = 128 : i32} {
  %c1 = arith.constant 1 : i32
  %s = replay.view %p offset %n : !replay.ptr<f32> -> !state
  %o = replay.view %q offset %n : !replay.ptr<f32> -> !out
  %t = replay.load %s[%i, %i] : !state -> tensor<32x128xf32>
  replay.store %t, %o[%i, %i] : tensor<32x128xf32>, !out
  scf.for %k = %c1 to %i step %c1 : i32 {
    %u = replay.load %s[%i, %i] : !state -> tensor<32x128xf32>
    %new = arith.addf %u, %u : tensor<32x128xf32>
    replay.store %new, %s[%i, %i] : tensor<32x128xf32>, !state
  }
  replay.return
}

// A stage is read again: it costs no memory traffic, and no registers to keep.
// CHECK-LABEL: replay.kernel @staged(
// CHECK: load
// CHECK: scf.if
// CHECK: replay.load
!staged = !replay.view<32x128xf32, strides [128, 1], align 16, shared>
replay.kernel @staged(%i: i32, %flush: i1) num_warps(4) blocks_per_row(1) {
  %s = builtin.unrealized_conversion_cast to !staged
  %t = replay.load %s[%i, %i] : !staged -> tensor<32x128xf32>
  scf.if %flush {
    %u = replay.load %s[%i, %i] : !staged -> tensor<32x128xf32>
  }
  replay.return
}
