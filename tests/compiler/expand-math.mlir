// RUN: replay-opt %s --replay-expand-math | FileCheck %s
//
// What the expansions compute is tests/unit/ExpandMathTest.cpp's matter.

// CHECK-LABEL: llvm.func @exp(
// CHECK-NOT: math.exp %
// CHECK: math.fma
// CHECK-NOT: math.exp %
// CHECK: llvm.return
llvm.func @exp(%x: f32) -> f32 {
  %y = math.exp %x : f32
  llvm.return %y : f32
}

// CHECK-LABEL: llvm.func @log1p(
// CHECK-NOT: math.log1p
// CHECK: arith.divf %{{.*}} fastmath<arcp>
// CHECK-NOT: math.log1p
// CHECK: llvm.return
llvm.func @log1p(%x: f32) -> f32 {
  %y = math.log1p %x : f32
  llvm.return %y : f32
}

// Inside of control flow as well.
// CHECK-LABEL: llvm.func @branch(
// CHECK: scf.if
// CHECK: math.fma
// CHECK-NOT: math.exp %
// CHECK: llvm.return
llvm.func @branch(%x: f32, %c: i1) -> f32 {
  %y = scf.if %c -> (f32) {
    %e = math.exp %x : f32
    scf.yield %e : f32
  } else {
    scf.yield %x : f32
  }
  llvm.return %y : f32
}

// Other types and functions stay.
// CHECK-LABEL: llvm.func @others(
// CHECK-DAG: math.exp %{{.*}} : f64
// CHECK-DAG: math.sqrt
// CHECK-DAG: math.rsqrt
// CHECK: llvm.return
llvm.func @others(%x: f32, %d: f64) -> f64 {
  %a = math.exp %d : f64
  %b = math.sqrt %x : f32
  %c = math.rsqrt %b : f32
  %w = arith.extf %c : f32 to f64
  %y = arith.addf %a, %w : f64
  llvm.return %y : f64
}
