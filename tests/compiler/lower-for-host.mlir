// RUN: replay-opt %s --replay-lower-for-host | FileCheck %s

// What each call's last argument stands for: the operation, and the name or
// place of its location. Equal ones share a number.
// CHECK: replay.sites = ["load of q", "store of state", "shuffle at kernel.py:7", "warp barrier at
// CHECK-SAME: "barrier at
// CHECK-SAME: "mma at
// CHECK-SAME: "mbarrier init at
// CHECK-SAME: "atomic of report"

// CHECK-DAG: llvm.func @replayjit_emu_load(!llvm.ptr, !llvm.ptr, i32, i32, i32)
// CHECK-DAG: llvm.func @replayjit_emu_store(!llvm.ptr, !llvm.ptr, i32, i32, i32)
// CHECK-DAG: llvm.func @replayjit_emu_sreg(i32) -> i32

// The kernel is no GPU kernel any more.
// CHECK-LABEL: llvm.func @memory(
// CHECK-SAME: %[[P:[^:]*]]: !llvm.ptr<1>, %[[C:[^:]*]]: i1
// CHECK-NOT: nvvm.kernel
// CHECK-SAME: {
// CHECK: %[[SCRATCH:.*]] = llvm.alloca
// 8 bytes of global memory, site 0.
// CHECK: %[[AT:.*]] = llvm.addrspacecast %[[P]] : !llvm.ptr<1> to !llvm.ptr
// CHECK-DAG: %[[EIGHT:.*]] = llvm.mlir.constant(8 : i32)
// CHECK: llvm.call @replayjit_emu_load(%[[SCRATCH]], %[[AT]], %[[EIGHT]],
// CHECK: %[[X:.*]] = llvm.load {{.*}} -> f32
// CHECK: %[[Y:.*]] = llvm.load {{.*}} -> f32
// Reads zero where the predicate is false.
// CHECK: %[[ZERO:.*]] = llvm.mlir.constant(0 : i32) : i32
// CHECK: llvm.store %[[ZERO]], %[[SCRATCH]]
// CHECK: scf.if %[[C]] {
// CHECK:   llvm.call @replayjit_emu_load(
// CHECK: }
// CHECK: scf.if %[[C]] {
// CHECK:   llvm.call @replayjit_emu_store(
// CHECK: }
// CHECK: llvm.return

// Its entry takes the parameter buffer, each parameter at its natural alignment.
// CHECK-LABEL: llvm.func @memory_host(
// CHECK-SAME: %[[PARAMS:.*]]: !llvm.ptr)
// CHECK: llvm.getelementptr %[[PARAMS]][0]
// CHECK: llvm.load {{.*}} -> !llvm.ptr<1>
// CHECK: llvm.getelementptr %[[PARAMS]][8]
// CHECK: llvm.load {{.*}} -> i1
// CHECK: llvm.getelementptr %[[PARAMS]][12]
// CHECK: llvm.load {{.*}} -> i32
// CHECK: llvm.getelementptr %[[PARAMS]][16]
// CHECK: llvm.load {{.*}} -> i64
// CHECK: llvm.call @memory(
llvm.func @memory(%p: !llvm.ptr<1>, %c: i1, %i: i32, %n: i64) attributes {nvvm.kernel} {
  %a:2 = replay.ld %p : !llvm.ptr<1> -> f32, f32 loc("q")
  %b = replay.ld %p if %c : !llvm.ptr<1> -> f32 loc("q")
  replay.st %a#0, %b to %p if %c : !llvm.ptr<1>, f32, f32 loc("state")
  llvm.return
}

// CHECK-LABEL: llvm.func @registers(
// CHECK: llvm.mlir.constant(0 : i32)
// CHECK: llvm.call @replayjit_emu_sreg(
// CHECK-COUNT-4: llvm.call @replayjit_emu_sreg(
// CHECK-NOT: nvvm.read
// CHECK: llvm.return
llvm.func @registers(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %x = nvvm.read.ptx.sreg.ctaid.x : i32
  %y = nvvm.read.ptx.sreg.ctaid.y : i32
  %z = nvvm.read.ptx.sreg.ctaid.z : i32
  %n = nvvm.read.ptx.sreg.nctaid.x : i32
  llvm.return
}

// Lanes that meet: shuffles pass 32 bits, an mma its fragments by address.
// CHECK-LABEL: llvm.func @exchange(
// CHECK-SAME: %[[X:[^:]*]]: f32
// CHECK: %[[BITS:.*]] = llvm.bitcast %[[X]] : f32 to i32
// CHECK: %[[THEIRS:.*]] = llvm.call @replayjit_emu_shuffle(%{{.*}}, %[[BITS]],
// CHECK: llvm.bitcast %[[THEIRS]] : i32 to f32
// CHECK: llvm.call @replayjit_emu_warp_barrier(
// CHECK: llvm.call @replayjit_emu_barrier(
// CHECK: llvm.call @replayjit_emu_mma(
// CHECK-NOT: nvvm.
// CHECK: llvm.return
llvm.func @exchange(%x: f32, %w: i32) attributes {nvvm.kernel} {
  %all = llvm.mlir.constant(-1 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %end = llvm.mlir.constant(31 : i32) : i32
  %s = nvvm.shfl.sync bfly %all, %x, %one, %end : f32 -> f32 loc("kernel.py":7:1)
  nvvm.bar.warp.sync %all : i32
  nvvm.barrier
  %d = nvvm.mma.sync A[%w, %w, %w, %w] B[%w, %w] C[%x, %x, %x, %x]
      {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>,
       multiplicandAPtxType = #nvvm.mma_type<tf32>, multiplicandBPtxType = #nvvm.mma_type<tf32>,
       shape = #nvvm.shape<m = 16, n = 8, k = 8>} : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  llvm.return
}

// Votes: any is a ballot that is not empty.
// CHECK-LABEL: llvm.func @vote(
// CHECK-SAME: %[[P:[^:]*]]: i1
// CHECK: %[[MINE:.*]] = llvm.zext %[[P]] : i1 to i32
// CHECK: %[[VOTES:.*]] = llvm.call @replayjit_emu_ballot(%{{.*}}, %[[MINE]],
// CHECK: llvm.icmp "ne" %[[VOTES]], %{{.*}} : i32
// CHECK: llvm.call @replayjit_emu_ballot(
// CHECK-NOT: icmp
// CHECK: llvm.return
llvm.func @vote(%p: i1) attributes {nvvm.kernel} {
  %all = llvm.mlir.constant(-1 : i32) : i32
  %any = nvvm.vote.sync any %all, %p -> i1
  %lanes = nvvm.vote.sync ballot %all, %p -> i32
  llvm.return
}

// CHECK-LABEL: llvm.func @staged(
// CHECK: llvm.call @replayjit_emu_start_early(
// CHECK: llvm.call @replayjit_emu_await_predecessor(
// CHECK: llvm.call @replayjit_emu_mbarrier_init(
// CHECK: llvm.call @replayjit_emu_mbarrier_arrive(
// CHECK: llvm.call @replayjit_emu_mbarrier_expect(
// CHECK: llvm.call @replayjit_emu_bulk_copy(
// CHECK: llvm.call @replayjit_emu_mbarrier_wait(
// CHECK-NOT: nvvm.
// CHECK-NOT: load_fence
// CHECK: llvm.return
llvm.func @staged(%p: !llvm.ptr<1>, %s: !llvm.ptr<3>, %b: !llvm.ptr<3>, %n: i32) attributes {nvvm.kernel} {
  nvvm.griddepcontrol wait
  nvvm.griddepcontrol launch_dependents
  replay.load_fence
  nvvm.mbarrier.init %b, %n : !llvm.ptr<3>, i32
  nvvm.fence.mbarrier.init
  %token = nvvm.mbarrier.arrive %b : !llvm.ptr<3> -> i64
  nvvm.mbarrier.arrive.expect_tx %b, %n : !llvm.ptr<3>, i32
  %cluster = llvm.addrspacecast %s : !llvm.ptr<3> to !llvm.ptr<7>
  nvvm.cp.async.bulk.shared.cluster.global %cluster, %p, %b, %n : !llvm.ptr<7>, !llvm.ptr<1>
  nvvm.mbarrier.try_wait.parity %b, %n, %n : !llvm.ptr<3>, i32, i32
  llvm.return
}

// One lane runs at a time: an atomic is a checked load, a sum, a checked store.
// CHECK-LABEL: llvm.func @atomic(
// CHECK-SAME: %[[P:[^:]*]]: !llvm.ptr<1>, %[[X:[^:]*]]: i32
// CHECK: %[[SCRATCH:.*]] = llvm.alloca
// CHECK: %[[AT:.*]] = llvm.addrspacecast %[[P]] : !llvm.ptr<1> to !llvm.ptr
// CHECK: %[[FOUR:.*]] = llvm.mlir.constant(4 : i32)
// CHECK: %[[ATOMIC:.*]] = llvm.mlir.constant(2 : i32)
// CHECK: llvm.call @replayjit_emu_load(%[[SCRATCH]], %[[AT]], %[[FOUR]], %[[ATOMIC]],
// CHECK: %[[BEFORE:.*]] = llvm.load %[[SCRATCH]] : !llvm.ptr -> i32
// CHECK: %[[AFTER:.*]] = llvm.add %[[BEFORE]], %[[X]]
// CHECK: llvm.store %[[AFTER]], %[[SCRATCH]]
// CHECK: llvm.call @replayjit_emu_store(%[[AT]], %[[SCRATCH]], %[[FOUR]], %[[ATOMIC]],
// CHECK-NOT: llvm.atomicrmw
// The value from before is what others use.
// CHECK: llvm.icmp "eq" %[[BEFORE]], %[[X]]
// CHECK: llvm.return
llvm.func @atomic(%p: !llvm.ptr<1>, %x: i32) attributes {nvvm.kernel} {
  %before = llvm.atomicrmw add %p, %x monotonic : !llvm.ptr<1>, i32 loc("report")
  %first = llvm.icmp "eq" %before, %x : i32
  llvm.return
}

// A function that is no kernel stays as it is.
// CHECK-LABEL: llvm.func @helper(
// CHECK: nvvm.read.ptx.sreg.tid.x
// CHECK-NOT: @helper_host
llvm.func @helper() {
  %t = nvvm.read.ptx.sreg.tid.x : i32
  llvm.return
}
