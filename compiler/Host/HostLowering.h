//===- HostLowering.h - Thread programs for emulation -----------*- C++ -*-===//
#ifndef REPLAYJIT_COMPILER_HOST_HOSTLOWERING_H
#define REPLAYJIT_COMPILER_HOST_HOSTLOWERING_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace replayjit::internal {

/// The module attribute that names the call sites, and the entry's suffix.
inline constexpr llvm::StringLiteral kSites = "replay.sites";
inline constexpr llvm::StringLiteral kHostSuffix = "_host";

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/Host/HostLowering.h.inc"

} // namespace replayjit::internal

#endif
