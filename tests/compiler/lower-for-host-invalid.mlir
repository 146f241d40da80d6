// RUN: replay-opt %s --replay-lower-for-host -verify-diagnostics

llvm.func @clock() attributes {nvvm.kernel} {
  // expected-error @+1 {{nvvm.read.ptx.sreg.clock has no emulation}}
  %t = nvvm.read.ptx.sreg.clock : i32
  llvm.return
}
