// RUN: replay-opt %s --convert-replay-to-nvvm --cse --canonicalize | FileCheck %s

#two = #replay.layout<register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = []>

// A tile that is rounded to f16: the largest magnitude of a thread's values, then
// one vote of the warp. In the rare case each value that is finite and too large
// becomes 65504, and the first lane that has one reports, in the error word.
// CHECK-LABEL: llvm.func @reports(
// CHECK-SAME: %[[KIND:[^:]*]]: i32, %[[ROW:[^:]*]]: i32, %[[LAYER:[^:]*]]: i32, %[[WORD:[^:]*]]: !llvm.ptr<1>
// CHECK-DAG: %[[LIMIT:.*]] = arith.constant 6.552000e+04 : f32
// CHECK-DAG: %[[LARGEST:.*]] = arith.constant 6.550400e+04 : f32
// CHECK-DAG: %[[INF:.*]] = arith.constant 0x7F800000 : f32
// CHECK: %[[X:.*]]:2 = replay.ld
// CHECK: %[[S0:.*]] = math.absf %[[X]]#0
// CHECK: %[[S1:.*]] = math.absf %[[X]]#1
// CHECK: %[[PEAK:.*]] = arith.maxnumf %[[S0]], %[[S1]]
// CHECK: %[[BIG:.*]] = arith.cmpf oge, %[[PEAK]], %[[LIMIT]]
// CHECK: %[[RARE:.*]] = nvvm.vote.sync any %{{.*}}, %[[BIG]] -> i1
// CHECK: %[[Y:.*]]:2 = scf.if %[[RARE]] -> (f32, f32) {
// CHECK: %[[FINITE:.*]] = arith.cmpf olt, %{{.*}}, %[[INF]]
// CHECK: %[[OVER:.*]] = arith.andi %{{.*}}, %[[FINITE]]
// CHECK: %[[BOUND:.*]] = math.copysign %[[LARGEST]], %[[X]]#0
// CHECK: arith.select %[[OVER]], %[[BOUND]], %[[X]]#0
// CHECK: nvvm.vote.sync ballot
// CHECK: scf.if
// CHECK: llvm.atomicrmw add %[[WORD]]
// CHECK: replay.st %[[ROW]] to
// CHECK: replay.st %[[LAYER]] to
// CHECK: llvm.atomicrmw xchg %{{.*}}, %[[KIND]] release
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[X]]#0, %[[X]]#1
// CHECK: arith.truncf %[[Y]]#0 : f32 to f16
// CHECK: arith.truncf %[[Y]]#1 : f32 to f16
replay.kernel @reports(%kind: i32, %row: i32, %layer: i32, %word: !replay.ptr<i32>,
    %in: !replay.ptr<f32>, %out: !replay.ptr<f16>) num_warps(1) blocks_per_row(1) {
  replay.on_overflow %kind row %row layer %layer to %word : !replay.ptr<i32>
  %c0 = arith.constant 0 : i64
  %i = arith.constant 0 : i32
  %from = replay.view %in offset %c0 : !replay.ptr<f32> -> !replay.view<64xf32, strides [1], align 16>
  %to = replay.view %out offset %c0 : !replay.ptr<f16> -> !replay.view<64xf16, strides [1], align 16>
  %x = replay.load %from[%i] : !replay.view<64xf32, strides [1], align 16> -> tensor<64xf32, #two>
  %y = arith.truncf %x : tensor<64xf32, #two> to tensor<64xf16, #two>
  replay.store %y, %to[%i] : tensor<64xf16, #two>, !replay.view<64xf16, strides [1], align 16>
  replay.return
}

// Without a word it saturates and says nothing; a constant needs neither.
// CHECK-LABEL: llvm.func @silent(
// CHECK: nvvm.vote.sync any
// CHECK: math.copysign
// CHECK-NOT: nvvm.vote.sync
// CHECK-NOT: atomicrmw
// CHECK: llvm.return
replay.kernel @silent(%in: !replay.ptr<f32>, %out: !replay.ptr<f16>) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i64
  %i = arith.constant 0 : i32
  %from = replay.view %in offset %c0 : !replay.ptr<f32> -> !replay.view<64xf32, strides [1], align 16>
  %to = replay.view %out offset %c0 : !replay.ptr<f16> -> !replay.view<64xf16, strides [1], align 16>
  %x = replay.load %from[%i] : !replay.view<64xf32, strides [1], align 16> -> tensor<64xf32, #two>
  %y = arith.truncf %x : tensor<64xf32, #two> to tensor<64xf16, #two>
  replay.store %y, %to[%i] : tensor<64xf16, #two>, !replay.view<64xf16, strides [1], align 16>
  %zero = arith.constant dense<0.0> : tensor<64xf32, #two>
  %none = arith.truncf %zero : tensor<64xf32, #two> to tensor<64xf16, #two>
  replay.store %none, %to[%i] : tensor<64xf16, #two>, !replay.view<64xf16, strides [1], align 16>
  replay.return
}

// bf16 has the range of f32: it is rounded as ever.
// CHECK-LABEL: llvm.func @bf16(
// CHECK-NOT: nvvm.vote.sync
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: llvm.return
replay.kernel @bf16(%in: !replay.ptr<f32>, %out: !replay.ptr<bf16>) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i64
  %i = arith.constant 0 : i32
  %from = replay.view %in offset %c0 : !replay.ptr<f32> -> !replay.view<64xf32, strides [1], align 16>
  %to = replay.view %out offset %c0 : !replay.ptr<bf16> -> !replay.view<64xbf16, strides [1], align 16>
  %x = replay.load %from[%i] : !replay.view<64xf32, strides [1], align 16> -> tensor<64xf32, #two>
  %y = arith.truncf %x : tensor<64xf32, #two> to tensor<64xbf16, #two>
  replay.store %y, %to[%i] : tensor<64xbf16, #two>, !replay.view<64xbf16, strides [1], align 16>
  replay.return
}
