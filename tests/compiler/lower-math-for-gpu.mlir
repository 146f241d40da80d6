// RUN: replay-opt %s --replay-lower-math-for-gpu | FileCheck %s

// CHECK-LABEL: llvm.func @allowed(
// CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f32)
llvm.func @allowed(%x: f32, %y: f32) -> f32 {
  %one = arith.constant 1.0 : f32
  // CHECK: %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.ftz.f"(%[[X]])
  %r = math.rsqrt %x fastmath<afn> : f32
  // CHECK: %[[I:.*]] = nvvm.rcp.approx.ftz.f %[[R]]
  // CHECK-NOT: arith.mulf
  %i = arith.divf %one, %r fastmath<arcp> : f32
  // CHECK: %[[J:.*]] = nvvm.rcp.approx.ftz.f %[[Y]]
  // CHECK: arith.mulf %[[I]], %[[J]]
  %q = arith.divf %i, %y fastmath<arcp> : f32
  llvm.return %q : f32
}

// Without the flag, or of another type, an operation stays.
// CHECK-LABEL: llvm.func @others(
// CHECK-NOT: approx
// CHECK: llvm.return
llvm.func @others(%x: f32, %d: f64) -> f32 {
  %r = math.rsqrt %x fastmath<nnan> : f32
  %q = arith.divf %x, %r fastmath<nnan> : f32
  %e = math.rsqrt %d fastmath<afn> : f64
  %s = arith.divf %d, %e fastmath<arcp> : f64
  %t = arith.truncf %s : f64 to f32
  %u = arith.addf %q, %t : f32
  llvm.return %u : f32
}
