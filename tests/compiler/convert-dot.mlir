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
