//===- Parameters.cpp - What a kernel takes, by name ----------------------===//

#include "kernels/Parameters.h"

#include "kernels/Families.h"

namespace replayjit::internal {

void appendParameters(std::vector<Parameter> &all, ArgumentTable table,
                      const std::string &where, size_t offset) {
  for (const Argument &argument : table)
    all.push_back({where + argument.name, uint32_t(offset + argument.offset),
                   table, &argument});
}

std::vector<Parameter> parametersOf(const DecodeSpec &spec) {
  return familyOf(spec.family).parameters(spec);
}

} // namespace replayjit::internal
