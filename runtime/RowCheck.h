//===- RowCheck.h - Do the rows of a launch share slots? --------*- C++ -*-===//
#ifndef REPLAYJIT_RUNTIME_ROWCHECK_H
#define REPLAYJIT_RUNTIME_ROWCHECK_H

#include "kernels/LaunchArgs.h"
#include "runtime/Device.h"

namespace replayjit::internal {

/// Copies the indices, cursors and flags of a launch's rows to the host, in the
/// order of `stream` and waiting for it, and checks that no two live rows meet
/// in a slot that one of them writes. Expects legal arguments. InvalidArgument
/// also while `stream` is under capture. Commit has nothing to check, nor have
/// arguments of which the library does not know who writes what.
Status checkRows(Device &device, void *stream, const DecodeSpec &spec,
                 LaunchArgs args);

} // namespace replayjit::internal

#endif
