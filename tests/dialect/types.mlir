// The types as ReplayTypes.td documents them; tests/lint/check_examples compares
// the two.
//
// RUN: replay-opt %s | replay-opt | FileCheck %s
// RUN: replay-opt %s --mlir-print-op-generic | replay-opt | FileCheck %s

// CHECK-LABEL: replay.kernel @ptr(
// CHECK: to !replay.ptr<bf16>
replay.kernel @ptr() num_warps(1) blocks_per_row(1) {
  %0 = builtin.unrealized_conversion_cast to !replay.ptr<bf16>
  replay.return
}

// CHECK-LABEL: replay.kernel @view(
// CHECK: to !replay.view<?x128xf32, strides [?, 1], align 16>
replay.kernel @view() num_warps(1) blocks_per_row(1) {
  %0 = builtin.unrealized_conversion_cast to !replay.view<?x128xf32, strides [?, 1], align 16>
  replay.return
}

// The element's size is the default alignment, and is not printed.
// CHECK-LABEL: replay.kernel @view_default_alignment(
// CHECK: to !replay.view<?xf16, strides [-1]>
// CHECK: to !replay.view<?xf64, strides [1]>
// CHECK: to !replay.view<?xi32, strides [1], align 8>
replay.kernel @view_default_alignment() num_warps(1) blocks_per_row(1) {
  %0 = builtin.unrealized_conversion_cast to !replay.view<?xf16, strides [-1]>
  %1 = builtin.unrealized_conversion_cast to !replay.view<?xf64, strides [1], align 8>
  %2 = builtin.unrealized_conversion_cast to !replay.view<?xi32, strides [1], align 8>
  replay.return
}

// CHECK-LABEL: replay.kernel @state(
// CHECK: to !replay.state<32x128>
// CHECK: to !replay.state<32x128, tiles 64>
replay.kernel @state() num_warps(1) blocks_per_row(1) {
  %0 = builtin.unrealized_conversion_cast to !replay.state<32x128>
  %1 = builtin.unrealized_conversion_cast to !replay.state<32x128, tiles 64>
  replay.return
}

// CHECK-LABEL: replay.kernel @buffer(
// CHECK: to !replay.buffer<64x128xf32>
// CHECK: to !replay.buffer<32xbf16>
replay.kernel @buffer() num_warps(1) blocks_per_row(1) {
  %0 = builtin.unrealized_conversion_cast to !replay.buffer<64x128xf32>
  %1 = builtin.unrealized_conversion_cast to !replay.buffer<32xbf16>
  replay.return
}
