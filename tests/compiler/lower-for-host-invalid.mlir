// RUN: replay-opt %s --replay-lower-for-host -split-input-file -verify-diagnostics

llvm.func @clock() attributes {nvvm.kernel} {
  // expected-error @+1 {{nvvm.read.ptx.sreg.clock has no emulation}}
  %t = nvvm.read.ptx.sreg.clock : i32
  llvm.return
}

// -----

llvm.func @uni(%p: i1) attributes {nvvm.kernel} {
  %all = llvm.mlir.constant(-1 : i32) : i32
  // expected-error @+1 {{only votes of kind any and ballot have an emulation}}
  %same = nvvm.vote.sync uni %all, %p -> i1
  llvm.return
}
