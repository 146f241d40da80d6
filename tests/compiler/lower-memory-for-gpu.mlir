// RUN: replay-opt %s --replay-lower-memory-for-gpu | FileCheck %s

// Without a predicate: a vector access, as aligned as it is wide.
// CHECK-LABEL: llvm.func @plain(
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<3> -> f16
// CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
// CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 2 : i64} : f16, !llvm.ptr<3>
// CHECK-NOT: inline_asm
llvm.func @plain(%p: !llvm.ptr<1>, %s: !llvm.ptr<3>) {
  %a:4 = replay.ld %p : !llvm.ptr<1> -> f32, f32, f32, f32
  %b = replay.ld %s : !llvm.ptr<3> -> f16
  replay.st %a#3, %a#2, %a#1, %a#0 to %p : !llvm.ptr<1>, f32, f32, f32, f32
  replay.st %b to %s : !llvm.ptr<3>, f16
  llvm.return
}

// What nothing writes is invariant, so that loads may move.
// CHECK-LABEL: llvm.func @readonly(
// CHECK: llvm.load %{{.*}} invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
// CHECK: llvm.inline_asm "
// CHECK-SAME: ld.global.nc.b32
llvm.func @readonly(%p: !llvm.ptr<1>, %c: i1) {
  %a:8 = replay.ld %p {readonly} : !llvm.ptr<1> -> bf16, bf16, bf16, bf16, bf16, bf16, bf16, bf16
  %b = replay.ld %p if %c {readonly} : !llvm.ptr<1> -> f32
  llvm.return
}

// A load fence is the trigger of a performance counter, where it stood.
// CHECK-LABEL: llvm.func @fence(
// CHECK: llvm.load
// CHECK-NEXT: nvvm.pmevent id = 0
// CHECK-NEXT: llvm.store
llvm.func @fence(%p: !llvm.ptr<1>) {
  %a = replay.ld %p : !llvm.ptr<1> -> f32
  replay.load_fence
  replay.st %a to %p : !llvm.ptr<1>, f32
  llvm.return
}

// Two bf16 of one word are widened in it; a third use keeps the element.
// CHECK-LABEL: llvm.func @widened(
// CHECK: %[[PAIR:.*]] = llvm.load %{{.*}} : !llvm.ptr<1> -> vector<2xbf16>
// CHECK: %[[WORD:.*]] = llvm.bitcast %[[PAIR]] : vector<2xbf16> to i32
// CHECK: %[[LOW:.*]] = llvm.shl %[[WORD]], %{{.*}} : i32
// CHECK: %[[A:.*]] = llvm.bitcast %[[LOW]] : i32 to f32
// CHECK: %[[HIGH:.*]] = llvm.and %[[WORD]], %{{.*}} : i32
// CHECK: %[[B:.*]] = llvm.bitcast %[[HIGH]] : i32 to f32
// CHECK: %[[ONE:.*]] = llvm.mlir.constant(1 : i32)
// CHECK: %[[SECOND:.*]] = llvm.extractelement %[[PAIR]][%[[ONE]] : i32]
// CHECK: arith.addf %[[A]], %[[B]]
// CHECK-NOT: arith.extf
// CHECK: llvm.store %[[SECOND]]
llvm.func @widened(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>) {
  %x:2 = replay.ld %p : !llvm.ptr<1> -> bf16, bf16
  %a = arith.extf %x#0 : bf16 to f32
  %b = arith.extf %x#1 : bf16 to f32
  %c = arith.addf %a, %b : f32
  replay.st %c to %q : !llvm.ptr<1>, f32
  replay.st %x#1 to %p : !llvm.ptr<1>, bf16
  llvm.return
}

// With a predicate: one instruction without a branch, zero where it is false.
// Eight 16-bit elements are four words. Memory that is written keeps its order.
// CHECK-LABEL: llvm.func @predicated(
// CHECK-SAME: %[[P:[^:]*]]: !llvm.ptr<1>, %[[C:[^:]*]]: i1
// CHECK: llvm.inline_asm has_side_effects "mov.b32 $0, 0; mov.b32 $1, 0; mov.b32 $2, 0; mov.b32 $3, 0; @$5 ld.global.v4.b32 {$0, $1, $2, $3}, [$4];", "=&r,=&r,=&r,=&r,l,b" %[[P]], %[[C]]
// CHECK: llvm.bitcast %{{.*}} : vector<4xi32> to vector<8xbf16>
// CHECK: llvm.inline_asm has_side_effects "mov.b16 $0, 0; @$2 ld.global.b16 $0, [$1];", "=&h,l,b" %[[P]], %[[C]]
// CHECK: llvm.inline_asm has_side_effects "mov.b32 $0, 0; mov.b32 $1, 0; @$3 ld.global.v2.b32 {$0, $1}, [$2];", "=&r,=&r,l,b" %[[P]], %[[C]]
// CHECK: llvm.bitcast %{{.*}} : vector<2xi32> to i64
// CHECK: llvm.inline_asm has_side_effects "@$1 st.global.v4.b32 [$0], {$2, $3, $4, $5};", "l,b,r,r,r,r" %[[P]], %[[C]],
// CHECK: llvm.inline_asm has_side_effects "@$1 st.global.b16 [$0], $2;", "l,b,h" %[[P]], %[[C]],
// CHECK: llvm.inline_asm has_side_effects "@$1 st.global.v2.b32 [$0], {$2, $3};", "l,b,r,r" %[[P]], %[[C]],
// CHECK-NOT: scf.if
llvm.func @predicated(%p: !llvm.ptr<1>, %c: i1) {
  %a:8 = replay.ld %p if %c : !llvm.ptr<1> -> bf16, bf16, bf16, bf16, bf16, bf16, bf16, bf16
  %b = replay.ld %p if %c : !llvm.ptr<1> -> f16
  %d = replay.ld %p if %c : !llvm.ptr<1> -> i64
  replay.st %a#0, %a#1, %a#2, %a#3, %a#4, %a#5, %a#6, %a#7 to %p if %c
      : !llvm.ptr<1>, bf16, bf16, bf16, bf16, bf16, bf16, bf16, bf16
  replay.st %b to %p if %c : !llvm.ptr<1>, f16
  replay.st %d to %p if %c : !llvm.ptr<1>, i64
  llvm.return
}

// Shared memory has instructions of its own.
// CHECK-LABEL: llvm.func @shared(
// CHECK: ld.shared.b32
// CHECK: st.shared.b32
llvm.func @shared(%p: !llvm.ptr<3>, %c: i1) {
  %a = replay.ld %p if %c : !llvm.ptr<3> -> f32
  replay.st %a to %p if %c : !llvm.ptr<3>, f32
  llvm.return
}

// A streaming load leaves no line in L1, with a predicate or without.
// CHECK-LABEL: llvm.func @streaming(
// CHECK: "ld.global.L1::no_allocate.v4.b32 {$0, $1, $2, $3}, [$4];", "=&r,=&r,=&r,=&r,l"
// CHECK: @$5 ld.global.nc.L1::no_allocate.v4.b32 {$0, $1, $2, $3}, [$4];
llvm.func @streaming(%p: !llvm.ptr<1>, %c: i1) {
  %a:4 = replay.ld %p {cache = #replay<cache streaming>} : !llvm.ptr<1> -> f32, f32, f32, f32
  %b:4 = replay.ld %p if %c {cache = #replay<cache streaming>, readonly} : !llvm.ptr<1> -> f32, f32, f32, f32
  llvm.return
}

// Atomics reach the host and other GPUs.
// CHECK-LABEL: llvm.func @atomics(
// CHECK: llvm.inline_asm has_side_effects "atom.relaxed.sys.global.add.u32 $0, [$1], $2;", "=r,l,r,~{memory}"
// CHECK: llvm.inline_asm has_side_effects "atom.release.sys.global.exch.b32 $0, [$1], $2;"
llvm.func @atomics(%p: !llvm.ptr<1>, %x: i32) {
  %a = llvm.atomicrmw add %p, %x monotonic {alignment = 4 : i64} : !llvm.ptr<1>, i32
  %b = llvm.atomicrmw xchg %p, %a release {alignment = 4 : i64} : !llvm.ptr<1>, i32
  llvm.return
}
