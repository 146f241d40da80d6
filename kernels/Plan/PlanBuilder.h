//===- PlanBuilder.h - Begin and commit as programs -------------*- C++ -*-===//
#ifndef REPLAYJIT_KERNELS_PLAN_PLANBUILDER_H
#define REPLAYJIT_KERNELS_PLAN_PLANBUILDER_H

#include "kernels/Decode/DecodeSpec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace replayjit::internal {

/// The program of a valid spec of Family::PlanBegin or PlanCommit: one block of
/// one warp for each row. Parameters are those of PlanArgs.
mlir::OwningOpRef<mlir::ModuleOp> buildPlan(mlir::MLIRContext &context,
                                            const DecodeSpec &spec);

} // namespace replayjit::internal

#endif
