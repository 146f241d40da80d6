//===- Parameters.h - What a kernel takes, by name --------------*- C++ -*-===//
#ifndef REPLAYJIT_KERNELS_PARAMETERS_H
#define REPLAYJIT_KERNELS_PARAMETERS_H

#include "kernels/Arguments.h"

namespace replayjit::internal {

/// One parameter of a kernel. Those of a plan's groups are "groups[3].slots".
struct Parameter {
  std::string name;
  uint32_t offset = 0; ///< In the parameter buffer.
  ArgumentTable table; ///< Its struct's; it outlives the process.
  const Argument *argument = nullptr;
};

/// The parameters of a kernel of `spec`, in order.
std::vector<Parameter> parametersOf(const DecodeSpec &spec);

/// One for each row of a table. The struct is `offset` bytes into the buffer,
/// and `where` goes before the names.
void appendParameters(std::vector<Parameter> &all, ArgumentTable table,
                      const std::string &where = "", size_t offset = 0);

} // namespace replayjit::internal

#endif
