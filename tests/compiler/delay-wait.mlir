// RUN: replay-opt %s --replay-delay-wait | FileCheck %s

!row = !replay.view<128xf32, strides [1], align 16>

// Down to the branch that reads what the wait stands for, and into it: each path
// waits once, also the one that reads nothing.
// CHECK-LABEL: replay.kernel @into_branches(
// CHECK-SAME: %[[SLOTS:[^ ]*]]: !replay.ptr<f32> {{{[^}]*}}}, %[[TOKEN:[^ ]*]]: !replay.ptr<f32>
// CHECK-NOT: await_predecessor
// CHECK: %[[V:.*]] = {{(replay.)?}}view %[[SLOTS]]
// CHECK-NEXT: {{.*}}load %[[V]]
// CHECK-NOT: await_predecessor
// CHECK: scf.if
// CHECK-NOT: await_predecessor
// CHECK: {{.*}}load %[[V]]
// CHECK: %[[W:.*]] = {{(replay.)?}}view %[[TOKEN]]
// CHECK-NEXT: await_predecessor {then_launch}
// CHECK-NEXT: {{.*}}load %[[W]]
// CHECK: {{.*}}store
// CHECK-NOT: await_predecessor
// CHECK: else
// CHECK-NEXT: await_predecessor {then_launch}
// CHECK-NEXT: }
// CHECK-NEXT: {{(replay.)?}}return
replay.kernel @into_branches(%slots: !replay.ptr<f32> {replay.noalias}, %token: !replay.ptr<f32> {replay.noalias, replay.dependent},
    %n: i64, %i: i32, %c: i1) num_warps(1) blocks_per_row(1) {
  replay.await_predecessor {then_launch}
  %v = replay.view %slots offset %n : !replay.ptr<f32> -> !row
  %x = replay.load %v[%i] : !row -> f32
  scf.if %c {
    %y = replay.load %v[%i] : !row -> f32
    %w = replay.view %token offset %n : !replay.ptr<f32> -> !row
    %z = replay.load %w[%i] : !row -> f32
    replay.store %z, %v[%i] : f32, !row
  }
  replay.return
}

// A store waits, whatever it writes, and so does what may read the same memory:
// arguments that nothing tells apart.
// CHECK-LABEL: replay.kernel @stores(
// CHECK: await_predecessor
// CHECK-NEXT: {{(replay.)?}}store
replay.kernel @stores(%p: !replay.ptr<f32> {replay.noalias}, %n: i64, %i: i32, %a: f32) num_warps(1) blocks_per_row(1) {
  replay.await_predecessor
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !row
  replay.store %a, %v[%i] : f32, !row
  replay.return
}

// CHECK-LABEL: replay.kernel @may_alias(
// CHECK: await_predecessor
// CHECK-NEXT: {{.*}}load
replay.kernel @may_alias(%p: !replay.ptr<f32>, %q: !replay.ptr<f32> {replay.dependent}, %n: i64, %i: i32) num_warps(1) blocks_per_row(1) {
  replay.await_predecessor
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !row
  %x = replay.load %v[%i] : !row -> f32
  replay.store %x, %v[%i] : f32, !row
  replay.return
}

// A pointer that the kernel makes may lead anywhere.
// CHECK-LABEL: replay.kernel @made_pointer(
// CHECK: await_predecessor
// CHECK-NEXT: {{.*}}load
replay.kernel @made_pointer(%address: i64, %out: !replay.ptr<f32> {replay.noalias}, %n: i64, %i: i32) num_warps(1) blocks_per_row(1) {
  replay.await_predecessor
  %p = replay.pointer %address {noalias} -> !replay.ptr<f32>
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !row
  %x = replay.load %v[%i] : !row -> f32
  %w = replay.view %out offset %n : !replay.ptr<f32> -> !row
  replay.store %x, %w[%i] : f32, !row
  replay.return
}

// Not into a loop, whose iterations would each wait.
// CHECK-LABEL: replay.kernel @loop(
// CHECK: await_predecessor
// CHECK-NEXT: scf.for
// CHECK-NOT: await_predecessor
replay.kernel @loop(%token: !replay.ptr<f32> {replay.dependent}, %n: i64, %i: i32) num_warps(1) blocks_per_row(1) {
  %c1 = arith.constant 1 : i32
  replay.await_predecessor
  %v = replay.view %token offset %n : !replay.ptr<f32> -> !row
  scf.for %j = %c1 to %i step %c1 : i32 {
    %x = replay.load %v[%j] : !row -> f32
    replay.store %x, %v[%i] : f32, !row
  }
  replay.return
}

// What needs no wait still waits before its end.
// CHECK-LABEL: replay.kernel @nothing(
// CHECK: await_predecessor
// CHECK-NEXT: {{(replay.)?}}return
replay.kernel @nothing(%i: i32) num_warps(1) blocks_per_row(1) {
  replay.await_predecessor
  %x = arith.addi %i, %i : i32
  replay.return
}

// A number that does not fit is reported where it is narrowed, not where that is
// asked for.
// CHECK-LABEL: replay.kernel @overflow(
// CHECK-NEXT: on_overflow
// CHECK: load
// CHECK-NEXT: {{(replay.)?}}await_predecessor
// CHECK-NEXT: arith.truncf
replay.kernel @overflow(%word: !replay.ptr<i32> {replay.noalias}, %p: !replay.ptr<f32> {replay.noalias}, %out: !replay.ptr<f16> {replay.noalias},
    %n: i64, %i: i32) num_warps(1) blocks_per_row(1) {
  replay.await_predecessor
  replay.on_overflow %i row %i layer %i to %word : !replay.ptr<i32>
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !row
  %w = replay.view %out offset %n : !replay.ptr<f16> -> !replay.view<128xf16, strides [1], align 16>
  %x = replay.load %v[%i] : !row -> tensor<128xf32>
  %y = arith.truncf %x : tensor<128xf32> to tensor<128xf16>
  replay.store %y, %w[%i] : tensor<128xf16>, !replay.view<128xf16, strides [1], align 16>
  replay.return
}
