// RUN: replay-opt %s --convert-replay-to-nvvm --cse --canonicalize | FileCheck %s

#c = #replay.layout<register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>
#a32 = #replay.layout<register = [[8, 0], [0, 4], [0, 8]], lane = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], warp = []>
#b32 = #replay.layout<register = [[4, 0], [8, 0]], lane = [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]], warp = []>
#a16 = #replay.layout<register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>
#b16 = #replay.layout<register = [[1, 0], [8, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = []>
#c4 = #replay.layout<register = [[0, 1], [8, 0], [16, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>
#a4 = #replay.layout<register = [[8, 0], [0, 4], [0, 8], [16, 0]], lane = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], warp = []>
#b4 = #replay.layout<register = [[4, 0], [8, 0], [0, 8]], lane = [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]], warp = []>
#ci = #replay.layout<register = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>
#ai = #replay.layout<register = [[0, 1]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]], warp = []>
#bi = #replay.layout<register = [[0, 1], [1, 0]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]], warp = []>
#cw = #replay.layout<register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>
#aw = #replay.layout<register = [[0, 1], [0, 2], [0, 4], [8, 0]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = []>
#bw = #replay.layout<register = [[1, 0], [2, 0], [4, 0]], lane = [[8, 0], [16, 0], [0, 1], [0, 2], [0, 4]], warp = []>
!m = !replay.view<32x16xf32, strides [16, 1], align 16>

// Two steps of K = 8; every operand is cut off to tf32.
// CHECK-LABEL: llvm.func @tf32(
// CHECK-DAG: %[[MASK:.*]] = arith.constant -8192 : i32
// CHECK-NOT: nvvm.convert.float.to.tf32
// CHECK-COUNT-6: arith.andi %{{.*}}, %{{.*}} : i32
// CHECK: %[[D:.*]] = nvvm.mma.sync A[{{.*}}] B[{{.*}}] C[{{.*}}] {{.*}}#nvvm.shape<m = 16, n = 8, k = 8>
// CHECK: %[[D0:.*]] = llvm.extractvalue %[[D]][0]
// CHECK: nvvm.mma.sync A[{{.*}}] B[{{.*}}] C[%[[D0]],
// CHECK-NOT: nvvm.mma.sync
// CHECK: llvm.return
replay.kernel @tf32(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !m
  %a = replay.load %v[%c0, %c0] : !m -> tensor<16x16xf32, #a32>
  %b = replay.load %v[%c0, %c0] : !m -> tensor<16x8xf32, #b32>
  %c = replay.load %v[%c0, %c0] : !m -> tensor<16x8xf32, #c>
  %d = replay.dot %a, %b, %c precision tf32
      : tensor<16x16xf32, #a32>, tensor<16x8xf32, #b32>, tensor<16x8xf32, #c> -> tensor<16x8xf32, #c>
  replay.store %d, %v[%c0, %c0] : tensor<16x8xf32, #c>, !m
  replay.return
}

// One step of K = 16, pairs packed into 32 bits: 4 of A, 2 of B.
// CHECK-LABEL: llvm.func @bf16(
// CHECK-COUNT-12: arith.truncf %{{.*}} : f32 to bf16
// CHECK: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>
// CHECK-SAME: (i32, i32, f32)
// CHECK-NOT: nvvm.mma.sync
// CHECK: llvm.return
replay.kernel @bf16(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !m
  %a = replay.load %v[%c0, %c0] : !m -> tensor<16x16xf32, #a16>
  %b = replay.load %v[%c0, %c0] : !m -> tensor<16x8xf32, #b16>
  %c = replay.load %v[%c0, %c0] : !m -> tensor<16x8xf32, #c>
  %d = replay.dot %a, %b, %c precision bf16
      : tensor<16x16xf32, #a16>, tensor<16x8xf32, #b16>, tensor<16x8xf32, #c> -> tensor<16x8xf32, #c>
  replay.store %d, %v[%c0, %c0] : tensor<16x8xf32, #c>, !m
  replay.return
}

// CHECK-LABEL: llvm.func @f16(
// CHECK-COUNT-12: arith.truncf %{{.*}} : f32 to f16
// CHECK: nvvm.mma.sync {{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 16>
// CHECK-SAME: (vector<2xf16>, vector<2xf16>, f32)
// CHECK-NOT: nvvm.mma.sync
// CHECK: llvm.return
replay.kernel @f16(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !m
  %a = replay.load %v[%c0, %c0] : !m -> tensor<16x16xf32, #a16>
  %b = replay.load %v[%c0, %c0] : !m -> tensor<16x8xf32, #b16>
  %c = replay.load %v[%c0, %c0] : !m -> tensor<16x8xf32, #c>
  %d = replay.dot %a, %b, %c precision f16
      : tensor<16x16xf32, #a16>, tensor<16x8xf32, #b16>, tensor<16x8xf32, #c> -> tensor<16x8xf32, #c>
  replay.store %d, %v[%c0, %c0] : tensor<16x8xf32, #c>, !m
  replay.return
}

// 2 x 2 fragments of the result, two steps each.
// CHECK-LABEL: llvm.func @fragments(
// CHECK-COUNT-8: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: llvm.return
replay.kernel @fragments(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !m
  %a = replay.load %v[%c0, %c0] : !m -> tensor<32x16xf32, #a4>
  %b = replay.load %v[%c0, %c0] : !m -> tensor<16x16xf32, #b4>
  %c = replay.load %v[%c0, %c0] : !m -> tensor<32x16xf32, #c4>
  %d = replay.dot %a, %b, %c precision tf32
      : tensor<32x16xf32, #a4>, tensor<16x16xf32, #b4>, tensor<32x16xf32, #c4> -> tensor<32x16xf32, #c4>
  replay.store %d, %v[%c0, %c0] : tensor<32x16xf32, #c4>, !m
  replay.return
}

// No rounding: a fused multiply-add for each element and step, in order of K.
// CHECK-LABEL: llvm.func @ieee(
// CHECK: %[[S0:.*]] = math.fma %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK: %[[S1:.*]] = math.fma %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK: %[[D0:.*]] = math.fma %{{.*}}, %{{.*}}, %[[S0]] : f32
// CHECK: %[[D1:.*]] = math.fma %{{.*}}, %{{.*}}, %[[S1]] : f32
// CHECK-NOT: math.fma
// CHECK-NOT: nvvm.mma.sync
// CHECK: replay.st %[[D0]], %[[D1]]
replay.kernel @ieee(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !m
  %a = replay.load %v[%c0, %c0] : !m -> tensor<8x2xf32, #ai>
  %b = replay.load %v[%c0, %c0] : !m -> tensor<2x8xf32, #bi>
  %c = replay.load %v[%c0, %c0] : !m -> tensor<8x8xf32, #ci>
  %d = replay.dot %a, %b, %c precision ieee
      : tensor<8x2xf32, #ai>, tensor<2x8xf32, #bi>, tensor<8x8xf32, #ci> -> tensor<8x8xf32, #ci>
  replay.store %d, %v[%c0, %c0] : tensor<8x8xf32, #ci>, !m
  replay.return
}

// Wide: a lane's eight neighbours of K are its parts of two instructions, in the
// order of memory; what comes in 16 bits is not rounded again.
// CHECK-LABEL: llvm.func @wide(
// CHECK: %[[LOW:.*]]:8 = replay.ld
// CHECK: %[[HIGH:.*]]:8 = replay.ld
// CHECK-NOT: arith.truncf
// CHECK-DAG: llvm.insertelement %[[LOW]]#0,
// CHECK-DAG: llvm.insertelement %[[LOW]]#1,
// CHECK-DAG: llvm.insertelement %[[HIGH]]#0,
// CHECK-DAG: llvm.insertelement %[[HIGH]]#1,
// CHECK-DAG: llvm.insertelement %[[LOW]]#2,
// CHECK-DAG: llvm.insertelement %[[LOW]]#3,
// CHECK-DAG: llvm.insertelement %[[HIGH]]#2,
// CHECK-DAG: llvm.insertelement %[[HIGH]]#3,
// CHECK: nvvm.mma.sync
// CHECK-DAG: llvm.insertelement %[[LOW]]#4,
// CHECK: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: llvm.return
replay.kernel @wide(%p: !replay.ptr<bf16>, %q: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %va = replay.view %p offset %n : !replay.ptr<bf16> -> !replay.view<16x32xbf16, strides [32, 1], align 16>
  %vb = replay.view %p offset %n : !replay.ptr<bf16> -> !replay.view<32x8xbf16, strides [1, 32], align 16>
  %vc = replay.view %q offset %n : !replay.ptr<f32> -> !replay.view<16x8xf32, strides [8, 1], align 16>
  %a = replay.load %va[%c0, %c0] : !replay.view<16x32xbf16, strides [32, 1], align 16> -> tensor<16x32xbf16, #aw>
  %b = replay.load %vb[%c0, %c0] : !replay.view<32x8xbf16, strides [1, 32], align 16> -> tensor<32x8xbf16, #bw>
  %c = replay.load %vc[%c0, %c0] : !replay.view<16x8xf32, strides [8, 1], align 16> -> tensor<16x8xf32, #cw>
  %af = arith.extf %a : tensor<16x32xbf16, #aw> to tensor<16x32xf32, #aw>
  %bf = arith.extf %b : tensor<32x8xbf16, #bw> to tensor<32x8xf32, #bw>
  %d = replay.dot %af, %bf, %c precision bf16 {wide}
      : tensor<16x32xf32, #aw>, tensor<32x8xf32, #bw>, tensor<16x8xf32, #cw> -> tensor<16x8xf32, #cw>
  replay.store %d, %vc[%c0, %c0] : tensor<16x8xf32, #cw>, !replay.view<16x8xf32, strides [8, 1], align 16>
  replay.return
}
