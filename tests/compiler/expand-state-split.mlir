// Exact products on the matrix unit: the vectors, or what has a weight, as three
// parts, and all that is stored as it is.
//
// RUN: replay-opt %s --replay-expand-state -split-input-file -verify-diagnostics | FileCheck %s

!checkpoint = !replay.view<32x128xbf16, strides [128, 1], align 16>
!d = !replay.view<?x32xbf16, strides [-128, 1], align 16>
!k = !replay.view<?x128xbf16, strides [-128, 1], align 16>
!gates = !replay.view<?xf32, strides [-1]>

// Column p * 2 + i is part p of vector i.
// CHECK-LABEL: replay.kernel @readout(
// CHECK: %[[X0:.*]] = arith.truncf %[[X:.*]] : tensor<128xf32> to tensor<128xbf16>
// CHECK: %[[WIDE:.*]] = arith.extf %[[X0]]
// CHECK: %[[REST:.*]] = arith.subf %[[X]], %[[WIDE]]
// CHECK: %[[X1:.*]] = arith.truncf %[[REST]]
// CHECK: arith.subf %[[REST]],
// CHECK: %[[X2:.*]] = arith.truncf
// CHECK: %[[Y0:.*]] = arith.truncf
// CHECK: %[[Y1:.*]] = arith.truncf
// CHECK: %[[Y2:.*]] = arith.truncf
// CHECK: %[[STACK:.*]] = stack %[[X0]], %[[Y0]], %[[X1]], %[[Y1]], %[[X2]], %[[Y2]] : {{.*}} -> tensor<8x128xbf16>
// CHECK: %[[B:.*]] = transpose %{{.*}} : tensor<8x128xf32> -> tensor<128x8xf32>
// CHECK: load {{.*}} -> tensor<32x128xbf16>
// CHECK: %[[C:.*]] = dot %{{.*}}, %[[B]], %{{.*}} precision bf16 {wide} : tensor<32x128xf32>,
// CHECK: %[[OWN:.*]] = arith.select %{{.*}}, %[[C]],
// CHECK: reduce %[[OWN]] axis 1 : tensor<32x8xf32> -> tensor<32xf32>
// CHECK: arith.select %{{.*}}, %[[C]],
// The ring's rows of k meet the same parts.
// CHECK: load {{.*}} -> tensor<16x128xbf16>
// CHECK: dot %{{.*}}, %[[B]], %{{.*}} precision bf16 {wide} : tensor<16x128xf32>,
// CHECK-NOT: dot
replay.kernel @readout(%m: i32) num_warps(2) blocks_per_row(1) {
  %s0, %d, %k, %g, %x, %y, %out = builtin.unrealized_conversion_cast to !checkpoint, !d, !k,
      !gates, tensor<128xf32>, tensor<128xf32>, !replay.view<32xf32, strides [1]>
  %c0 = arith.constant 0 : i32
  %s = replay.reconstruct %s0 rows %m of %d, %k gates %g {depth = 16 : i32}
      : !checkpoint, !d, !k, !gates -> !replay.state<32x128>
  %u, %v = replay.contract %s, %x, %y {split = #replay<precision bf16>} : !replay.state<32x128>,
      tensor<128xf32>, tensor<128xf32> -> tensor<32xf32>, tensor<32xf32>
  replay.store %u, %out[%c0] : tensor<32xf32>, !replay.view<32xf32, strides [1]>
  replay.store %v, %out[%c0] : tensor<32xf32>, !replay.view<32xf32, strides [1]>
  replay.return
}

// Each of three vectors has a place among four, and so two tiles hold the parts;
// without a ring there is but the checkpoint.
// CHECK-LABEL: replay.kernel @three_vectors(
// CHECK-COUNT-2: stack {{.*}} -> tensor<8x128xbf16>
// CHECK: %[[FIRST:.*]] = dot {{.*}} {wide}
// CHECK: %[[SECOND:.*]] = dot %{{.*}}, %{{.*}}, %[[FIRST]] precision bf16 {wide}
// CHECK-COUNT-3: arith.select %{{.*}}, %[[SECOND]],
// CHECK-NOT: dot
replay.kernel @three_vectors() num_warps(2) blocks_per_row(1) {
  %s0, %x, %out = builtin.unrealized_conversion_cast to !checkpoint, tensor<128xf32>,
      !replay.view<32xf32, strides [1]>
  %c0 = arith.constant 0 : i32
  %s = replay.reconstruct %s0 {depth = 1 : i32} : !checkpoint -> !replay.state<32x128>
  %y = arith.addf %x, %x : tensor<128xf32>
  %z = arith.addf %y, %x : tensor<128xf32>
  %u, %v, %w = replay.contract %s, %x, %y, %z {split = #replay<precision bf16>} : !replay.state<32x128>,
      tensor<128xf32>, tensor<128xf32>, tensor<128xf32> -> tensor<32xf32>, tensor<32xf32>, tensor<32xf32>
  replay.store %u, %out[%c0] : tensor<32xf32>, !replay.view<32xf32, strides [1]>
  replay.store %v, %out[%c0] : tensor<32xf32>, !replay.view<32xf32, strides [1]>
  replay.store %w, %out[%c0] : tensor<32xf32>, !replay.view<32xf32, strides [1]>
  replay.return
}

// d has the weights: three parts of it meet k, on top of the decayed checkpoint.
// CHECK-LABEL: replay.kernel @flush(
// CHECK: scf.for
// CHECK: %[[K:.*]] = arith.extf %{{.*}} : tensor<16x64xbf16> to tensor<16x64xf32>
// CHECK: %[[DECAYED:.*]] = arith.mulf %{{.*}}, %{{.*}} : tensor<32x64xf32>
// CHECK: %[[C0:.*]] = replay.dot %{{.*}}, %[[K]], %[[DECAYED]] precision bf16 {wide}
// CHECK: %[[C1:.*]] = replay.dot %{{.*}}, %[[K]], %[[C0]] precision bf16 {wide}
// CHECK: %[[C2:.*]] = replay.dot %{{.*}}, %[[K]], %[[C1]] precision bf16 {wide}
// CHECK: arith.truncf %[[C2]] : tensor<32x64xf32> to tensor<32x64xbf16>
replay.kernel @flush(%m: i32) num_warps(2) blocks_per_row(1) {
  %s0, %d, %k, %g = builtin.unrealized_conversion_cast to !checkpoint, !d, !k, !gates
  %s = replay.reconstruct %s0 rows %m of %d, %k gates %g {depth = 16 : i32}
      : !checkpoint, !d, !k, !gates -> !replay.state<32x128>
  replay.flush %s into %s0 {block_k = 64 : i32, split = #replay<precision bf16>}
      : !replay.state<32x128> into !checkpoint
  replay.return
}

// Half has more digits than bf16, and tf32 enough; the parts are cut off.
// CHECK-LABEL: replay.kernel @half(
// CHECK-COUNT-2: arith.andi {{.*}} : tensor<128xi32>
// CHECK-NOT: arith.andi
// CHECK: stack {{.*}} -> tensor<8x128xf32>
// CHECK: dot {{.*}} precision tf32 {wide}
replay.kernel @half() num_warps(2) blocks_per_row(1) {
  %s0, %x, %out = builtin.unrealized_conversion_cast to
      !replay.view<32x128xf16, strides [128, 1], align 16>, tensor<128xf32>,
      !replay.view<32xf32, strides [1]>
  %c0 = arith.constant 0 : i32
  %s = replay.reconstruct %s0 {depth = 1 : i32}
      : !replay.view<32x128xf16, strides [128, 1], align 16> -> !replay.state<32x128>
  %u = replay.contract %s, %x {split = #replay<precision tf32>} : !replay.state<32x128>,
      tensor<128xf32> -> tensor<32xf32>
  replay.store %u, %out[%c0] : tensor<32xf32>, !replay.view<32xf32, strides [1]>
  replay.return
}

// A ring of f32 is left to fp32; so are rows with weights, and few of them.
// CHECK-LABEL: replay.kernel @other_ring(
// CHECK: dot
// CHECK: load {{.*}} -> tensor<16x128xf32>
// CHECK-NOT: dot
replay.kernel @other_ring(%m: i32) num_warps(2) blocks_per_row(1) {
  %s0, %d, %k, %g, %x, %out = builtin.unrealized_conversion_cast to !checkpoint, !d,
      !replay.view<?x128xf32, strides [-128, 1], align 16>, !gates, tensor<128xf32>,
      !replay.view<32xf32, strides [1]>
  %c0 = arith.constant 0 : i32
  %s = replay.reconstruct %s0 rows %m of %d, %k gates %g {depth = 16 : i32}
      : !checkpoint, !d, !replay.view<?x128xf32, strides [-128, 1], align 16>, !gates
        -> !replay.state<32x128>
  %u = replay.contract %s, %x {split = #replay<precision bf16>} : !replay.state<32x128>,
      tensor<128xf32> -> tensor<32xf32>
  replay.store %u, %out[%c0] : tensor<32xf32>, !replay.view<32xf32, strides [1]>
  replay.return
}

// -----

!checkpoint = !replay.view<32x128xf32, strides [128, 1], align 16>

replay.kernel @too_many_digits() num_warps(2) blocks_per_row(1) {
  %s0, %x = builtin.unrealized_conversion_cast to !checkpoint, tensor<128xf32>
  %s = replay.reconstruct %s0 {depth = 1 : i32} : !checkpoint -> !replay.state<32x128>
  // expected-error @+1 {{cannot split for a checkpoint of 'f32', which bf16 does not hold}}
  %u = replay.contract %s, %x {split = #replay<precision bf16>} : !replay.state<32x128>,
      tensor<128xf32> -> tensor<32xf32>
  replay.return
}

// -----

!checkpoint = !replay.view<32x128xf32, strides [128, 1], align 16>
!d = !replay.view<?x32xbf16, strides [-128, 1], align 16>
!k = !replay.view<?x128xf16, strides [-128, 1], align 16>
!gates = !replay.view<?xf32, strides [-1]>

replay.kernel @too_many_digits_in_ring(%m: i32) num_warps(2) blocks_per_row(1) {
  %s0, %d, %k, %g = builtin.unrealized_conversion_cast to !checkpoint, !d, !k, !gates
  %s = replay.reconstruct %s0 rows %m of %d, %k gates %g {depth = 16 : i32}
      : !checkpoint, !d, !k, !gates -> !replay.state<32x128>
  // expected-error @+1 {{cannot split for a ring of 'f16', which bf16 does not hold}}
  replay.flush %s into %s0 {split = #replay<precision bf16>}
      : !replay.state<32x128> into !checkpoint
  replay.return
}
