// RUN: replay-opt %s --convert-replay-to-nvvm --cse --canonicalize | FileCheck %s

#rows = #replay.layout<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = []>
#row = #replay.layout<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [0, 0], [0, 0]], warp = []>
#columns = #replay.layout<register = [[1, 0], [2, 0]], lane = [[4, 0], [8, 0], [16, 0], [0, 1], [0, 2]], warp = []>
#vector = #replay.layout<register = [[1], [2]], lane = [[4], [8], [16], [0], [0]], warp = []>
#long = #replay.layout<register = [[1], [2], [32]], lane = [[4], [8], [16], [0], [0]], warp = []>
#lanes = #replay.layout<register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32]]>
!m = !replay.view<4x32xf32, strides [32, 1], align 16>
!v = !replay.view<32xf32, strides [1], align 16>

// The kernel: a function of the same name that says how it is launched.
// CHECK: llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 128 : i64}
// CHECK: llvm.func @header(%{{.*}}: !llvm.ptr<1> {llvm.noalias, llvm.readonly}, %{{.*}}: !llvm.ptr<1>, %{{.*}}: i32)
// CHECK-SAME: nvvm.kernel
// CHECK-SAME: nvvm.reqntid = array<i32: 128>
// CHECK-SAME: replay.arg_names = ["in", "arg1", "n"]
// CHECK-SAME: replay.blocks_per_row = 3 : i32
// CHECK-SAME: replay.shared_bytes = 0 : i32
// CHECK-SAME: replay.threads = 128 : i32
// CHECK-NEXT: llvm.return
replay.kernel @header(%in: !replay.ptr<f32> {replay.name = "in", replay.readonly},
    %out: !replay.ptr<bf16>, %n: i32 {replay.name = "n"}) num_warps(4) blocks_per_row(3) {
  replay.return
}

// The wait is where it stood; what is read is marked by what the wait stands for:
// dependent arguments, and pointers that the kernel makes.
// CHECK-LABEL: llvm.func @programmatic(
// CHECK-SAME: !llvm.ptr<1> {llvm.noalias, llvm.readonly}
// CHECK: nvvm.griddepcontrol launch_dependents
// CHECK: replay.ld %{{[^ ]*}} {readonly} : !llvm.ptr<1> -> i32
// CHECK: nvvm.griddepcontrol wait
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK: replay.ld %{{[^ ]*}} {dependent} : !llvm.ptr<1> -> i32
// CHECK: replay.ld %{{[^ ]*}} {dependent} : !llvm.ptr<1> -> i32
replay.kernel @programmatic(%p: !replay.ptr<i32> {replay.readonly}, %q: !replay.ptr<i32> {replay.dependent}, %address: i64)
    num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %n = arith.constant 0 : i64
  replay.launch_dependents
  %v = replay.view %p offset %n : !replay.ptr<i32> -> !replay.view<8xi32, strides [1]>
  %x = replay.load %v[%c0] : !replay.view<8xi32, strides [1]> -> i32
  replay.await_predecessor {then_launch}
  %w = replay.view %q offset %n : !replay.ptr<i32> -> !replay.view<8xi32, strides [1]>
  %y = replay.load %w[%c0] : !replay.view<8xi32, strides [1]> -> i32
  %r = replay.pointer %address {noalias} -> !replay.ptr<i32>
  %u = replay.view %r offset %n : !replay.ptr<i32> -> !replay.view<8xi32, strides [1]>
  %z = replay.load %u[%c0] : !replay.view<8xi32, strides [1]> -> i32
  %s = arith.addi %x, %y : i32
  %t = arith.addi %s, %z : i32
  replay.store %t, %w[%c0] : i32, !replay.view<8xi32, strides [1]>
  replay.return
}

// CHECK-LABEL: llvm.func @grid(
// CHECK-DAG: nvvm.read.ptx.sreg.ctaid.x
// CHECK-DAG: nvvm.read.ptx.sreg.ctaid.y
// CHECK-DAG: nvvm.read.ptx.sreg.ctaid.z
// CHECK-DAG: nvvm.read.ptx.sreg.nctaid.x
replay.kernel @grid(%p: !replay.ptr<i32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %v = replay.view %p offset %n : !replay.ptr<i32> -> !replay.view<8xi32, strides [1]>
  %c0 = arith.constant 0 : i32
  %x = replay.program_id x
  %y = replay.program_id y
  %z = replay.program_id z
  %w = replay.num_programs x
  %0 = arith.addi %x, %y : i32
  %1 = arith.addi %z, %w : i32
  %2 = arith.addi %0, %1 : i32
  replay.store %2, %v[%c0] : i32, !replay.view<8xi32, strides [1]>
  replay.return
}

// One operation for each register; attributes stay; a scalar operand is shared.
// CHECK-LABEL: llvm.func @registers(
// CHECK-SAME: %[[C:[^:]*]]: i1
// CHECK: %[[T:.*]]:4 = replay.ld
// CHECK-COUNT-4: arith.mulf {{.*}} fastmath<contract> : f32
// CHECK-COUNT-4: arith.select %[[C]], %{{.*}}, %[[T]]
// CHECK-NOT: arith.select
// CHECK: llvm.return
replay.kernel @registers(%c: i1, %p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %w = replay.view %p offset %n : !replay.ptr<f32> -> !m
  %c0 = arith.constant 0 : i32
  %t = replay.load %w[%c0, %c0] : !m -> tensor<4x32xf32, #rows>
  %x = arith.mulf %t, %t fastmath<contract> : tensor<4x32xf32, #rows>
  %y = arith.select %c, %x, %t : tensor<4x32xf32, #rows>
  replay.store %y, %w[%c0, %c0] : tensor<4x32xf32, #rows>, !m
  replay.return
}

// Constants and splats are one scalar for all registers.
// CHECK-LABEL: llvm.func @constants(
// CHECK-SAME: %[[A:[^:]*]]: f32
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
// CHECK: %[[X:.*]] = arith.mulf %[[A]], %[[TWO]] : f32
// CHECK: replay.st %[[X]], %[[X]], %[[X]], %[[X]]
replay.kernel @constants(%a: f32, %p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %w = replay.view %p offset %n : !replay.ptr<f32> -> !m
  %c0 = arith.constant 0 : i32
  %two = arith.constant dense<2.0> : tensor<4x32xf32, #rows>
  %s = replay.splat %a : f32 -> tensor<4x32xf32, #rows>
  %x = arith.mulf %s, %two : tensor<4x32xf32, #rows>
  replay.store %x, %w[%c0, %c0] : tensor<4x32xf32, #rows>, !m
  replay.return
}

// Lane and warp bits give the coordinate: here lane + 32 * warp.
// CHECK-LABEL: llvm.func @iota(
// CHECK-DAG: %[[C31:.*]] = arith.constant 31 : i32
// CHECK-DAG: %[[C32:.*]] = arith.constant 32 : i32
// CHECK-DAG: %[[C5:.*]] = arith.constant 5 : i32
// CHECK: %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK-DAG: %[[LANE:.*]] = arith.andi %[[TID]], %[[C31]]
// CHECK-DAG: %[[WARP:.*]] = arith.shrui %[[TID]], %[[C5]]
// CHECK: %[[HIGH:.*]] = arith.shli %[[WARP]], %[[C5]]
// CHECK: %[[BIT:.*]] = arith.andi %[[HIGH]], %[[C32]]
// CHECK: %[[I:.*]] = arith.ori %[[LANE]], %[[BIT]]
// CHECK: replay.st %[[I]] to
replay.kernel @iota(%p: !replay.ptr<i32>, %n: i64) num_warps(2) blocks_per_row(1) {
  %v = replay.view %p offset %n : !replay.ptr<i32> -> !replay.view<64xi32, strides [1]>
  %c0 = arith.constant 0 : i32
  %i = replay.iota : tensor<64xi32, #lanes>
  replay.store %i, %v[%c0] : tensor<64xi32, #lanes>, !replay.view<64xi32, strides [1]>
  replay.return
}

// Shape changes pick registers and cost nothing.
// CHECK-LABEL: llvm.func @shapes(
// CHECK: %[[X:.*]]:4 = replay.ld
// CHECK-NOT: nvvm.shfl
// CHECK-NOT: nvvm.barrier
// CHECK: replay.st %[[X]]#0, %[[X]]#1, %[[X]]#2, %[[X]]#3
// CHECK: llvm.return
replay.kernel @shapes(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !v
  %w = replay.view %p offset %n : !replay.ptr<f32> -> !replay.view<32x4xf32, strides [1, 32], align 16>
  %c0 = arith.constant 0 : i32
  %x = replay.load %v[%c0] : !v -> tensor<32xf32, #vector>
  %e = replay.expand %x axis 0 : tensor<32xf32, #vector> -> tensor<1x32xf32, #row>
  %b = replay.broadcast %e : tensor<1x32xf32, #row> -> tensor<4x32xf32, #rows>
  %t = replay.transpose %b : tensor<4x32xf32, #rows> -> tensor<32x4xf32, #columns>
  replay.store %t, %w[%c0, %c0] : tensor<32x4xf32, #columns>, !replay.view<32x4xf32, strides [1, 32], align 16>
  replay.return
}

// The upper half of a vector is its upper registers.
// CHECK-LABEL: llvm.func @slice(
// CHECK: %[[AT:.*]] = llvm.getelementptr %{{.*}}[32]
// CHECK: %[[HIGH:.*]]:4 = replay.ld %[[AT]]
// CHECK: replay.st %[[HIGH]]#0, %[[HIGH]]#1, %[[HIGH]]#2, %[[HIGH]]#3
replay.kernel @slice(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !replay.view<64xf32, strides [1], align 16>
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %x = replay.load %v[%c0] : !replay.view<64xf32, strides [1], align 16> -> tensor<64xf32, #long>
  %s = replay.slice %x[%c32] : tensor<64xf32, #long> -> tensor<32xf32, #vector>
  replay.store %s, %v[%c0] : tensor<32xf32, #vector>, !replay.view<64xf32, strides [1], align 16>
  replay.return
}

// Control flow stays and carries registers.
// CHECK-LABEL: llvm.func @loop(
// CHECK: scf.for {{.*}} -> (f32, f32, f32, f32)
// CHECK-COUNT-4: arith.addf
// CHECK: scf.yield {{.*}} : f32, f32, f32, f32
// CHECK: scf.if %{{.*}} {
// CHECK: replay.st
replay.kernel @loop(%c: i1, %m: i32, %p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %w = replay.view %p offset %n : !replay.ptr<f32> -> !m
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = replay.load %w[%c0, %c0] : !m -> tensor<4x32xf32, #rows>
  %sum = scf.for %i = %c0 to %m step %c1 iter_args(%acc = %t) -> (tensor<4x32xf32, #rows>) : i32 {
    %next = arith.addf %acc, %t : tensor<4x32xf32, #rows>
    scf.yield %next : tensor<4x32xf32, #rows>
  }
  scf.if %c {
    replay.store %sum, %w[%c0, %c0] : tensor<4x32xf32, #rows>, !m
  }
  replay.return
}
