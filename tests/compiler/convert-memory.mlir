// RUN: replay-opt %s --convert-replay-to-nvvm --cse --canonicalize | FileCheck %s

// A thread holds 8 neighbours; 4 rows a warp.
#f32 = #replay.layout<register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = []>
#columns = #replay.layout<register = [[1, 0], [2, 0]], lane = [[4, 0], [8, 0], [16, 0], [0, 1], [0, 2]], warp = []>
#vector = #replay.layout<register = [[1], [2]], lane = [[4], [8], [16], [0], [0]], warp = []>
#row = #replay.layout<register = [], lane = [[0], [0], [0], [1], [2]], warp = []>
#thin = #replay.layout<register = [], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = []>
#shared = #replay.layout<register = [[1], [2]], lane = [[4], [8], [16], [0], [0]], warp = [[0]]>

// 16 bytes at once, the view's bounds known to hold: no predicate. Loads through
// an argument that nothing writes are marked.
// CHECK-LABEL: llvm.func @wide(
// CHECK-NOT: cmpi
// CHECK: replay.ld %{{[^ ]*}} {readonly} : !llvm.ptr<1> -> f32, f32, f32, f32
// CHECK: replay.ld %{{[^ ]*}} {readonly} : !llvm.ptr<1> -> f32, f32, f32, f32
// CHECK-NOT: replay.ld
// CHECK: replay.st {{.*}} : !llvm.ptr<1>, f32, f32, f32, f32
// CHECK: replay.st {{.*}} : !llvm.ptr<1>, f32, f32, f32, f32
// CHECK-NOT: replay.st
// CHECK: llvm.return
replay.kernel @wide(%p: !replay.ptr<f32> {replay.readonly}, %q: !replay.ptr<f32>, %n: i64)
    num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !replay.view<4x64xf32, strides [64, 1], align 16>
  %w = replay.view %q offset %n : !replay.ptr<f32> -> !replay.view<4x64xf32, strides [64, 1], align 16>
  %t = replay.load %v[%c0, %c0] : !replay.view<4x64xf32, strides [64, 1], align 16> -> tensor<4x64xf32, #f32>
  replay.store %t, %w[%c0, %c0] : tensor<4x64xf32, #f32>, !replay.view<4x64xf32, strides [64, 1], align 16>
  replay.return
}

// CHECK-LABEL: llvm.func @wide_halves(
// CHECK: replay.ld %{{[^ ]*}} : !llvm.ptr<1> -> bf16, bf16, bf16, bf16, bf16, bf16, bf16, bf16
// CHECK-NOT: replay.ld
// CHECK: replay.st {{.*}} : !llvm.ptr<1>, bf16, bf16, bf16, bf16, bf16, bf16, bf16, bf16
replay.kernel @wide_halves(%p: !replay.ptr<bf16>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<bf16> -> !replay.view<4x64xbf16, strides [64, 1], align 16>
  %t = replay.load %v[%c0, %c0] : !replay.view<4x64xbf16, strides [64, 1], align 16> -> tensor<4x64xbf16, #f32>
  replay.store %t, %v[%c0, %c0] : tensor<4x64xbf16, #f32>, !replay.view<4x64xbf16, strides [64, 1], align 16>
  replay.return
}

// Alignment narrows: 8 bytes, then 4.
// CHECK-LABEL: llvm.func @aligned_8(
// CHECK-COUNT-4: replay.ld %{{[^ ]*}} : !llvm.ptr<1> -> f32, f32{{$}}
// CHECK-NOT: replay.ld
// CHECK: llvm.return
replay.kernel @aligned_8(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !replay.view<4x64xf32, strides [64, 1], align 8>
  %t = replay.load %v[%c0, %c0] : !replay.view<4x64xf32, strides [64, 1], align 8> -> tensor<4x64xf32, #f32>
  replay.store %t, %v[%c0, %c0] : tensor<4x64xf32, #f32>, !replay.view<4x64xf32, strides [64, 1], align 8>
  replay.return
}

// CHECK-LABEL: llvm.func @unaligned(
// CHECK-COUNT-8: replay.ld %{{[^ ]*}} : !llvm.ptr<1> -> f32{{$}}
// CHECK-NOT: replay.ld
// CHECK: llvm.return
replay.kernel @unaligned(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !replay.view<4x64xf32, strides [64, 1]>
  %t = replay.load %v[%c0, %c0] : !replay.view<4x64xf32, strides [64, 1]> -> tensor<4x64xf32, #f32>
  replay.store %t, %v[%c0, %c0] : tensor<4x64xf32, #f32>, !replay.view<4x64xf32, strides [64, 1]>
  replay.return
}

// So does an offset along the row: 2 is a multiple of 8 bytes only, and one that
// is not known of 4.
// CHECK-LABEL: llvm.func @offsets(
// CHECK-COUNT-4: replay.ld {{.*}} -> f32, f32{{$}}
// CHECK-COUNT-8: replay.ld {{.*}} -> f32{{$}}
// CHECK: llvm.return
replay.kernel @offsets(%p: !replay.ptr<f32>, %n: i64, %i: i32) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !replay.view<4x128xf32, strides [128, 1], align 16>
  %t = replay.load %v[%c0, %c2] : !replay.view<4x128xf32, strides [128, 1], align 16> -> tensor<4x64xf32, #f32>
  %u = replay.load %v[%c0, %i] : !replay.view<4x128xf32, strides [128, 1], align 16> -> tensor<4x64xf32, #f32>
  %s = arith.addf %t, %u : tensor<4x64xf32, #f32>
  replay.store %s, %v[%c0, %c0] : tensor<4x64xf32, #f32>, !replay.view<4x128xf32, strides [128, 1], align 16>
  replay.return
}

// Rows past a run-time size are not accessed: the width stays, under a predicate.
// CHECK-LABEL: llvm.func @rows(
// CHECK-SAME: %[[M:[^:]*]]: i32
// CHECK: %[[IN:.*]] = arith.cmpi ult, %{{.*}}, %[[M]] : i32
// CHECK-COUNT-2: replay.ld %{{[^ ]*}} if %[[IN]] : !llvm.ptr<1> -> f32, f32, f32, f32
// CHECK-COUNT-2: replay.st {{.*}} if %[[IN]] : !llvm.ptr<1>, f32, f32, f32, f32
// CHECK: llvm.return
replay.kernel @rows(%m: i32, %p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n sizes %m : !replay.ptr<f32> -> !replay.view<?x64xf32, strides [64, 1], align 16>
  %t = replay.load %v[%c0, %c0] : !replay.view<?x64xf32, strides [64, 1], align 16> -> tensor<4x64xf32, #f32>
  replay.store %t, %v[%c0, %c0] : tensor<4x64xf32, #f32>, !replay.view<?x64xf32, strides [64, 1], align 16>
  replay.return
}

// A tile larger than a static size is cut there. 60 columns end between two
// accesses of 4, 62 between two of 2.
// CHECK-LABEL: llvm.func @columns_60(
// CHECK: %[[C60:.*]] = arith.constant 60 : i32
// CHECK: arith.cmpi ult, %{{.*}}, %[[C60]]
// CHECK-COUNT-2: replay.ld %{{[^ ]*}} if %{{.*}} -> f32, f32, f32, f32
// CHECK-NOT: replay.ld
// CHECK: llvm.return
replay.kernel @columns_60(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !replay.view<4x60xf32, strides [60, 1], align 16>
  %t = replay.load %v[%c0, %c0] : !replay.view<4x60xf32, strides [60, 1], align 16> -> tensor<4x64xf32, #f32>
  replay.store %t, %v[%c0, %c0] : tensor<4x64xf32, #f32>, !replay.view<4x60xf32, strides [60, 1], align 16>
  replay.return
}

// CHECK-LABEL: llvm.func @columns_62(
// CHECK-COUNT-4: replay.ld %{{[^ ]*}} if %{{.*}} -> f32, f32{{$}}
// CHECK-NOT: replay.ld
// CHECK: llvm.return
replay.kernel @columns_62(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !replay.view<4x62xf32, strides [64, 1], align 16>
  %t = replay.load %v[%c0, %c0] : !replay.view<4x62xf32, strides [64, 1], align 16> -> tensor<4x64xf32, #f32>
  replay.store %t, %v[%c0, %c0] : tensor<4x64xf32, #f32>, !replay.view<4x62xf32, strides [64, 1], align 16>
  replay.return
}

// CHECK-LABEL: llvm.func @unknown_columns(
// CHECK-COUNT-8: replay.ld %{{[^ ]*}} if %{{.*}} -> f32{{$}}
// CHECK-NOT: replay.ld
// CHECK: llvm.return
replay.kernel @unknown_columns(%p: !replay.ptr<f32>, %n: i64, %m: i32) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n sizes %m : !replay.ptr<f32> -> !replay.view<4x?xf32, strides [64, 1], align 16>
  %t = replay.load %v[%c0, %c0] : !replay.view<4x?xf32, strides [64, 1], align 16> -> tensor<4x64xf32, #f32>
  replay.store %t, %v[%c0, %c0] : tensor<4x64xf32, #f32>, !replay.view<4x?xf32, strides [64, 1], align 16>
  replay.return
}

// Neighbours need a stride of 1; it may be the first. Backwards is no width.
// CHECK-LABEL: llvm.func @strides(
// CHECK: replay.ld {{.*}} -> f32, f32, f32, f32
// CHECK-COUNT-4: replay.ld {{.*}} -> f32{{$}}
// CHECK-NOT: replay.ld
// CHECK: llvm.return
replay.kernel @strides(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !replay.view<32x4xf32, strides [1, 32], align 16>
  %w = replay.view %p offset %n : !replay.ptr<f32> -> !replay.view<32x4xf32, strides [-1, 32]>
  %t = replay.load %v[%c0, %c0] : !replay.view<32x4xf32, strides [1, 32], align 16> -> tensor<32x4xf32, #columns>
  %u = replay.load %w[%c0, %c0] : !replay.view<32x4xf32, strides [-1, 32]> -> tensor<32x4xf32, #columns>
  %s = arith.addf %t, %u : tensor<32x4xf32, #columns>
  replay.store %s, %v[%c0, %c0] : tensor<32x4xf32, #columns>, !replay.view<32x4xf32, strides [1, 32], align 16>
  replay.return
}

// A run-time stride is multiplied in 64 bits.
// CHECK-LABEL: llvm.func @pitch(
// CHECK-SAME: %[[PITCH:[^:]*]]: i64
// CHECK: %[[ROW:.*]] = arith.extsi %{{.*}} : i32 to i64
// CHECK: arith.muli %[[ROW]], %[[PITCH]] : i64
// CHECK-COUNT-2: replay.ld {{.*}} -> f32, f32, f32, f32
replay.kernel @pitch(%pitch: i64, %p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n strides %pitch : !replay.ptr<f32> -> !replay.view<4x64xf32, strides [?, 1], align 16>
  %t = replay.load %v[%c0, %c0] : !replay.view<4x64xf32, strides [?, 1], align 16> -> tensor<4x64xf32, #f32>
  replay.store %t, %v[%c0, %c0] : tensor<4x64xf32, #f32>, !replay.view<4x64xf32, strides [?, 1], align 16>
  replay.return
}

// A mask is a predicate an element, on top of the bounds.
// CHECK-LABEL: llvm.func @mask(
// CHECK-SAME: %[[M:[^:]*]]: i32
// CHECK-COUNT-4: replay.ld %{{[^ ]*}} if %{{.*}} {cache = #replay<cache streaming>} : !llvm.ptr<1> -> f32{{$}}
// CHECK-NOT: replay.ld
// CHECK: llvm.return
replay.kernel @mask(%m: i32, %p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !replay.view<32xf32, strides [1], align 16>
  %i = replay.iota : tensor<32xi32, #vector>
  %end = replay.splat %m : i32 -> tensor<32xi32, #vector>
  %mask = arith.cmpi slt, %i, %end : tensor<32xi32, #vector>
  %t = replay.load %v[%c0] mask %mask : tensor<32xi1, #vector> {cache = #replay<cache streaming>}
      : !replay.view<32xf32, strides [1], align 16> -> tensor<32xf32, #vector>
  replay.store %t, %v[%c0] : tensor<32xf32, #vector>, !replay.view<32xf32, strides [1], align 16>
  replay.return
}

// A row's elements share its mask: the width stays, under one predicate.
// CHECK-LABEL: llvm.func @masked_rows(
// CHECK-SAME: %[[M:[^:]*]]: i32
// CHECK: %[[THERE:.*]] = arith.cmpi ult, %{{.*}}, %[[M]] : i32
// CHECK-COUNT-2: replay.ld %{{[^ ]*}} if %[[THERE]] : !llvm.ptr<1> -> f32, f32, f32, f32
// CHECK-NOT: replay.ld
// CHECK: llvm.return
replay.kernel @masked_rows(%m: i32, %p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !replay.view<4x64xf32, strides [64, 1], align 16>
  %i = replay.iota : tensor<4xi32, #row>
  %end = replay.splat %m : i32 -> tensor<4xi32, #row>
  %there = arith.cmpi ult, %i, %end : tensor<4xi32, #row>
  %thin = replay.expand %there axis 1 : tensor<4xi1, #row> -> tensor<4x1xi1, #thin>
  %mask = replay.broadcast %thin : tensor<4x1xi1, #thin> -> tensor<4x64xi1, #f32>
  %t = replay.load %v[%c0, %c0] mask %mask : tensor<4x64xi1, #f32>
      : !replay.view<4x64xf32, strides [64, 1], align 16> -> tensor<4x64xf32, #f32>
  replay.store %t, %v[%c0, %c0] : tensor<4x64xf32, #f32>, !replay.view<4x64xf32, strides [64, 1], align 16>
  replay.return
}

// So it does under the bounds as well.
// CHECK-LABEL: llvm.func @masked_bounded_rows(
// CHECK-DAG: %[[THERE:.*]] = arith.cmpi ult, %{{.*}}, %{{.*}} : i32
// CHECK-DAG: %[[IN:.*]] = arith.cmpi ult, %{{.*}}, %{{.*}} : i32
// CHECK: %[[BOTH:.*]] = arith.andi %{{.*}}, %{{.*}} : i1
// CHECK-COUNT-2: replay.ld %{{[^ ]*}} if %[[BOTH]] : !llvm.ptr<1> -> f32, f32, f32, f32
// CHECK-NOT: replay.ld
// CHECK: llvm.return
replay.kernel @masked_bounded_rows(%m: i32, %p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !replay.view<3x64xf32, strides [64, 1], align 16>
  %i = replay.iota : tensor<4xi32, #row>
  %end = replay.splat %m : i32 -> tensor<4xi32, #row>
  %there = arith.cmpi ult, %i, %end : tensor<4xi32, #row>
  %thin = replay.expand %there axis 1 : tensor<4xi1, #row> -> tensor<4x1xi1, #thin>
  %mask = replay.broadcast %thin : tensor<4x1xi1, #thin> -> tensor<4x64xi1, #f32>
  %t = replay.load %v[%c0, %c0] mask %mask : tensor<4x64xi1, #f32>
      : !replay.view<3x64xf32, strides [64, 1], align 16> -> tensor<4x64xf32, #f32>
  replay.store %t, %v[%c0, %c0] : tensor<4x64xf32, #f32>, !replay.view<3x64xf32, strides [64, 1], align 16>
  replay.return
}

// A mask of any shape is a predicate an element.
// CHECK-LABEL: llvm.func @masked_elements(
// CHECK-COUNT-2: replay.ld %{{[^ ]*}} : !llvm.ptr<1> -> f32, f32, f32, f32
// CHECK-COUNT-8: replay.ld %{{[^ ]*}} if %{{.*}} : !llvm.ptr<1> -> f32{{$}}
// CHECK-NOT: replay.ld
// CHECK: llvm.return
replay.kernel @masked_elements(%x: f32, %p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !replay.view<4x64xf32, strides [64, 1], align 16>
  %q = replay.load %v[%c0, %c0] : !replay.view<4x64xf32, strides [64, 1], align 16> -> tensor<4x64xf32, #f32>
  %least = replay.splat %x : f32 -> tensor<4x64xf32, #f32>
  %mask = arith.cmpf ogt, %q, %least : tensor<4x64xf32, #f32>
  %t = replay.load %v[%c0, %c0] mask %mask : tensor<4x64xi1, #f32>
      : !replay.view<4x64xf32, strides [64, 1], align 16> -> tensor<4x64xf32, #f32>
  replay.store %t, %v[%c0, %c0] : tensor<4x64xf32, #f32>, !replay.view<4x64xf32, strides [64, 1], align 16>
  replay.return
}

// What several threads hold is written by one: lanes 0 to 7 of warp 0.
// CHECK-LABEL: llvm.func @replicated(
// CHECK-DAG: %[[C24:.*]] = arith.constant 24 : i32
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[LANES:.*]] = arith.andi %{{.*}}, %[[C24]]
// CHECK-DAG: %[[LANE:.*]] = arith.cmpi eq, %[[LANES]], %[[C0]]
// CHECK: %[[WARP:.*]] = arith.cmpi eq, %{{.*}}, %[[C0]]
// CHECK: %[[OWNER:.*]] = arith.andi %[[LANE]], %[[WARP]] : i1
// CHECK: replay.st {{.*}} if %[[OWNER]] : !llvm.ptr<1>, f32, f32, f32, f32
replay.kernel @replicated(%p: !replay.ptr<f32>, %n: i64) num_warps(2) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !replay.view<32xf32, strides [1], align 16>
  %t = replay.load %v[%c0] : !replay.view<32xf32, strides [1], align 16> -> tensor<32xf32, #shared>
  replay.store %t, %v[%c0] : tensor<32xf32, #shared>, !replay.view<32xf32, strides [1], align 16>
  replay.return
}

// A scalar: every thread reads it, thread 0 writes it.
// CHECK-LABEL: llvm.func @scalar(
// CHECK: %[[IN:.*]] = arith.cmpi ult
// CHECK: replay.ld %{{[^ ]*}} if %[[IN]] : !llvm.ptr<1> -> i64
// CHECK: %[[FIRST:.*]] = arith.cmpi eq
// CHECK: %[[BOTH:.*]] = arith.andi
// CHECK: replay.st {{.*}} if %[[BOTH]] : !llvm.ptr<1>, i64
replay.kernel @scalar(%p: !replay.ptr<i64>, %n: i64, %i: i32) num_warps(1) blocks_per_row(1) {
  %v = replay.view %p offset %n : !replay.ptr<i64> -> !replay.view<16xi64, strides [1]>
  %x = replay.load %v[%i] : !replay.view<16xi64, strides [1]> -> i64
  %y = arith.addi %x, %n : i64
  replay.store %y, %v[%i] : i64, !replay.view<16xi64, strides [1]>
  replay.return
}

// An address from memory becomes a pointer that no argument's attributes cover.
// CHECK-LABEL: llvm.func @pointer(
// CHECK: %[[ADDRESS:.*]] = replay.ld %{{.*}} {readonly} : !llvm.ptr<1> -> i64
// CHECK: %[[P:.*]] = llvm.inttoptr %[[ADDRESS]] : i64 to !llvm.ptr<1>
// CHECK: llvm.getelementptr %[[P]][
// CHECK-COUNT-2: replay.ld %{{[^ ]*}} : !llvm.ptr<1> -> f32, f32, f32, f32
// CHECK-NOT: replay.ld
// CHECK: llvm.return
replay.kernel @pointer(%table: !replay.ptr<i64> {replay.readonly}, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %addresses = replay.view %table offset %n : !replay.ptr<i64> -> !replay.view<1xi64, strides [1]>
  %address = replay.load %addresses[%c0] : !replay.view<1xi64, strides [1]> -> i64
  %p = replay.pointer %address -> !replay.ptr<f32>
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !replay.view<4x64xf32, strides [64, 1], align 16>
  %t = replay.load %v[%c0, %c0] : !replay.view<4x64xf32, strides [64, 1], align 16> -> tensor<4x64xf32, #f32>
  replay.store %t, %v[%c0, %c0] : tensor<4x64xf32, #f32>, !replay.view<4x64xf32, strides [64, 1], align 16>
  replay.return
}

// One thread counts; who counted first writes row, layer and value, then, past a
// fence, the kind.
// CHECK-LABEL: llvm.func @report(
// CHECK-SAME: %[[KIND:[^:]*]]: i32, %[[ROW:[^:]*]]: i32, %[[LAYER:[^:]*]]: i32, %[[VALUE:[^:]*]]: i64, %[[WORD:[^:]*]]: !llvm.ptr<1>
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[NULL:.*]] = arith.constant 0 : i64
// CHECK: %[[ADDRESS:.*]] = llvm.ptrtoint %[[WORD]]
// CHECK: %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[TID]], %[[ZERO]]
// CHECK: %[[WANTED:.*]] = arith.cmpi ne, %[[ADDRESS]], %[[NULL]]
// CHECK: %[[BOTH:.*]] = arith.andi %[[FIRST]], %[[WANTED]]
// CHECK: scf.if %[[BOTH]] {
// CHECK-NEXT: %[[BEFORE:.*]] = llvm.atomicrmw add %[[WORD]], %[[ONE]] monotonic {alignment = 4 : i64}
// CHECK-NEXT: %[[EMPTY:.*]] = arith.cmpi eq, %[[BEFORE]], %[[ZERO]]
// CHECK-NEXT: scf.if %[[EMPTY]] {
// CHECK-NEXT: %[[AT8:.*]] = llvm.getelementptr %[[WORD]][8]
// CHECK-NEXT: replay.st %[[ROW]] to %[[AT8]] : !llvm.ptr<1>, i32
// CHECK-NEXT: %[[AT12:.*]] = llvm.getelementptr %[[WORD]][12]
// CHECK-NEXT: replay.st %[[LAYER]] to %[[AT12]] : !llvm.ptr<1>, i32
// CHECK-NEXT: %[[AT16:.*]] = llvm.getelementptr %[[WORD]][16]
// CHECK-NEXT: replay.st %[[VALUE]] to %[[AT16]] : !llvm.ptr<1>, i64
// CHECK-NEXT: %[[AT4:.*]] = llvm.getelementptr %[[WORD]][4]
// CHECK-NEXT: llvm.atomicrmw xchg %[[AT4]], %[[KIND]] release {alignment = 4 : i64}
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: llvm.return
replay.kernel @report(%kind: i32, %row: i32, %layer: i32, %value: i64, %word: !replay.ptr<i32>)
    num_warps(4) blocks_per_row(1) {
  replay.report %kind row %row layer %layer value %value to %word : !replay.ptr<i32>
  replay.return
}

// Who reports ends the launch once the report is there, first or not.
// CHECK-LABEL: llvm.func @report_and_trap(
// CHECK: scf.if
// CHECK: llvm.atomicrmw add
// CHECK: scf.if
// CHECK: llvm.atomicrmw xchg {{.*}} release {alignment = 4 : i64}
// CHECK-NEXT: }
// CHECK-NEXT: llvm.fence seq_cst
// CHECK-NEXT: llvm.intr.trap
// CHECK-NEXT: }
// CHECK-NEXT: llvm.return
replay.kernel @report_and_trap(%kind: i32, %row: i32, %layer: i32, %value: i64, %word: !replay.ptr<i32>)
    num_warps(4) blocks_per_row(1) {
  replay.report %kind row %row layer %layer value %value to %word {trap} : !replay.ptr<i32>
  replay.return
}

// A load fence stays where it is, between what became of its neighbours.
// CHECK-LABEL: llvm.func @fence(
// CHECK: replay.ld
// CHECK: replay.load_fence
// CHECK: replay.st
replay.kernel @fence(%p: !replay.ptr<f32>, %n: i64) num_warps(1) blocks_per_row(1) {
  %c0 = arith.constant 0 : i32
  %v = replay.view %p offset %n : !replay.ptr<f32> -> !replay.view<1xf32, strides [1]>
  %x = replay.load %v[%c0] : !replay.view<1xf32, strides [1]> -> f32
  replay.load_fence
  replay.store %x, %v[%c0] : f32, !replay.view<1xf32, strides [1]>
  replay.return
}
