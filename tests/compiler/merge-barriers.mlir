// RUN: replay-opt %s --replay-merge-barriers | FileCheck %s

// Two exchanges that need nothing of each other meet once.
// CHECK-LABEL: llvm.func @independent(
// CHECK: replay.st %{{.*}} to %{{.*}} : !llvm.ptr<3>, f32
// CHECK: arith.mulf
// CHECK: replay.st %{{.*}} to %{{.*}} : !llvm.ptr<3>, f32
// CHECK: nvvm.barrier
// CHECK: replay.ld
// CHECK-NOT: nvvm.barrier
// CHECK: replay.ld
// CHECK: llvm.return
llvm.func @independent(%a: !llvm.ptr<3>, %b: !llvm.ptr<3>, %out: !llvm.ptr<1>, %x: f32, %y: f32) {
  replay.st %x to %a : !llvm.ptr<3>, f32
  nvvm.barrier
  %c = replay.ld %a : !llvm.ptr<3> -> f32
  %d = arith.mulf %x, %y : f32
  replay.st %d to %b : !llvm.ptr<3>, f32
  nvvm.barrier
  %e = replay.ld %b : !llvm.ptr<3> -> f32
  replay.st %c, %e to %out : !llvm.ptr<1>, f32, f32
  llvm.return
}

// The second stores what the first has exchanged.
// CHECK-LABEL: llvm.func @dependent(
// CHECK-COUNT-2: nvvm.barrier
llvm.func @dependent(%a: !llvm.ptr<3>, %b: !llvm.ptr<3>, %out: !llvm.ptr<1>, %x: f32) {
  replay.st %x to %a : !llvm.ptr<3>, f32
  nvvm.barrier
  %c = replay.ld %a : !llvm.ptr<3> -> f32
  replay.st %c to %b : !llvm.ptr<3>, f32
  nvvm.barrier
  %e = replay.ld %b : !llvm.ptr<3> -> f32
  replay.st %e to %out : !llvm.ptr<1>, f32
  llvm.return
}

// What is read from global memory behind a store to it stays behind.
// CHECK-LABEL: llvm.func @global(
// CHECK-COUNT-2: nvvm.barrier
llvm.func @global(%a: !llvm.ptr<3>, %b: !llvm.ptr<3>, %p: !llvm.ptr<1>, %x: f32) {
  replay.st %x to %a : !llvm.ptr<3>, f32
  nvvm.barrier
  replay.st %x to %p : !llvm.ptr<1>, f32
  %c = replay.ld %p : !llvm.ptr<1> -> f32
  replay.st %c to %b : !llvm.ptr<3>, f32
  nvvm.barrier
  llvm.return
}

// A branch in between may hold exchanges of its own, and in a loop a barrier
// keeps a buffer until all have read it.
// CHECK-LABEL: llvm.func @regions(
// CHECK-COUNT-4: nvvm.barrier
llvm.func @regions(%a: !llvm.ptr<3>, %b: !llvm.ptr<3>, %x: f32, %if: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  nvvm.barrier
  scf.if %if {
    replay.st %x to %a : !llvm.ptr<3>, f32
  }
  nvvm.barrier
  scf.for %i = %c0 to %c8 step %c1 : i32 {
    replay.st %x to %a : !llvm.ptr<3>, f32
    nvvm.barrier
    replay.st %x to %b : !llvm.ptr<3>, f32
    nvvm.barrier
  }
  llvm.return
}

// A wait for a copy between them is no obstacle: the stage is not stored to.
// CHECK-LABEL: llvm.func @beside_copies(
// CHECK-COUNT-2: replay.st
// CHECK: nvvm.barrier
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.return
llvm.func @beside_copies(%a: !llvm.ptr<3>, %b: !llvm.ptr<3>, %full: !llvm.ptr<3>, %out: !llvm.ptr<1>, %x: f32, %n: i32) {
  replay.st %x to %a : !llvm.ptr<3>, f32
  nvvm.barrier
  %c = replay.ld %a : !llvm.ptr<3> -> f32
  nvvm.mbarrier.try_wait.parity %full, %n, %n : !llvm.ptr<3>, i32, i32
  replay.st %x to %b : !llvm.ptr<3>, f32
  nvvm.barrier
  %e = replay.ld %b : !llvm.ptr<3> -> f32
  replay.st %c, %e to %out : !llvm.ptr<1>, f32, f32
  llvm.return
}
