//===- Arguments.cpp - What a launch is handed, as a table ----------------===//

#include "kernels/Arguments.h"
#include "kernels/Families.h"

#include <cstring>
#include <fmt/format.h>

namespace replayjit::internal {

using Kind = Argument::Kind;
using Access = Argument::Access;
using Alignment = Argument::Alignment;

const Argument &find(ArgumentTable table, std::string_view name) {
  for (const Argument &argument : table)
    if (name == argument.name)
      return argument;
  assert(false && "a name that the table does not have");
  return table.front();
}

uint64_t &memberOf(const Argument &argument, void *args) {
  assert(argument.bytes() == sizeof(uint64_t));
  return *reinterpret_cast<uint64_t *>(static_cast<char *>(args) +
                                       argument.offset);
}

template <typename T>
static T valueOf(const Argument &argument, const void *args) {
  assert(argument.bytes() == sizeof(T));
  T value;
  std::memcpy(&value, static_cast<const char *>(args) + argument.offset,
              sizeof(T));
  return value;
}

uint64_t memberOf(const Argument &argument, const void *args) {
  return valueOf<uint64_t>(argument, args);
}

int32_t countOf(const Argument &argument, const void *args) {
  return valueOf<int32_t>(argument, args);
}

std::vector<int64_t> innerDims(const DecodeSpec &spec,
                               const Argument &argument) {
  std::vector<int64_t> dims;
  for (const Extent &extent : argument.shape.dims)
    if (extent.size)
      if (int64_t size = extent.size(spec))
        dims.push_back(size);
  return dims;
}

int64_t innerElements(const DecodeSpec &spec, const Argument &argument) {
  int64_t count = 1;
  for (const Extent &extent : argument.shape.dims)
    if (extent.size)
      if (int64_t size = extent.size(spec))
        count *= size;
  return count;
}

/// Bytes that divide the address: a power of two.
static uint64_t alignmentOf(const DecodeSpec &spec, const Argument &argument) {
  const int element = byteSize(argument.type.of(spec));
  switch (argument.alignment) {
  case Alignment::Element:
    return element;
  case Alignment::Wide:
    return spec.alignment > 0 ? spec.alignment : element;
  case Alignment::WideIfKda:
    return spec.isKda && spec.alignment > 0 ? spec.alignment : element;
  case Alignment::Eight:
    return 8;
  }
  return element;
}

int64_t strideUnit(const DecodeSpec &spec, const Argument &argument) {
  return alignmentOf(spec, argument) / byteSize(argument.type.of(spec));
}

bool isDependent(const DecodeSpec &spec, const Argument &argument) {
  return spec.programmaticLaunch != ProgrammaticLaunch::None &&
         argument.kind == Kind::Pointer &&
         (argument.isOfToken || spec.dependents == Dependents::All ||
          !traitsOf(spec).tokens);
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

static std::string shapeText(const Argument &argument, const DecodeSpec *spec) {
  std::string text;
  for (const Extent &extent : argument.shape.dims) {
    if (!extent.word)
      break;
    const char *comma = text.empty() ? "" : ", ";
    // A row without drafts is a token.
    const bool isRow =
        spec && extent.word == perToken.word && !traitsOf(*spec).drafts;
    if (!spec || !extent.size)
      text += fmt::format("{}{}", comma, isRow ? perRow.word : extent.word);
    else if (int64_t size = extent.size(*spec))
      text += fmt::format("{}{}", comma, size);
  }
  return text.empty() ? "" : "[" + text + "] ";
}

static const char *accessText(Access access) {
  switch (access) {
  case Access::Input:
  case Access::Read:
    return "read";
  case Access::Written:
    return "written";
  case Access::Updated:
    return "read and written";
  }
  return "";
}

std::string describe(ArgumentTable table, const Argument &argument,
                     const DecodeSpec *spec) {
  std::string text;
  if (argument.kind == Kind::Pointer) {
    const bool isFixed = spec || !argument.type.fact;
    text = fmt::format(
        "{}{}, {}", shapeText(argument, spec),
        isFixed ? wordOf(spec ? argument.type.of(*spec) : argument.type.fixed)
                : argument.type.word,
        accessText(argument.access));
    if (argument.mayBe0)
      text += ", or 0";
  } else if (argument.kind == Kind::Stride) {
    const Argument &pointer = table[argument.pointer];
    text = fmt::format("elements from one {} of {} to the next",
                       pointer.isPer(perToken) ? "token"
                       : argument.isOfRows     ? "row"
                                               : "slot",
                       spec ? pointer.name : divided(pointer.name, '_'));
  } else {
    text = wordOf(argument.type.fixed);
  }
  if (*argument.doc)
    text += fmt::format("; {}", argument.doc);
  if (!spec && *argument.presence.words)
    text += fmt::format("; {}", argument.presence.words);
  if (spec && !argument.isThere(*spec))
    text = "not used";
  return text;
}

//===----------------------------------------------------------------------===//
// What is legal
//===----------------------------------------------------------------------===//

Status missingAddress(std::string_view name) {
  return Status::invalid(
      fmt::format("{}: 0 is not allowed; it must be a device address", name));
}

/// Of a stride; times any count of rows or slots it is within 63 bits.
static constexpr int64_t mostStrideBytes = int64_t(1) << 32;

static ArgumentRule ruleOf(const DecodeSpec &spec, ArgumentTable table,
                           const Argument &argument) {
  ArgumentRule rule{&argument};
  if (argument.kind == Kind::Pointer)
    rule.unit = int64_t(alignmentOf(spec, argument));
  if (argument.kind != Kind::Stride)
    return rule;
  const Argument &pointer = table[argument.pointer];
  rule.unit = strideUnit(spec, pointer);
  rule.most = mostStrideBytes / byteSize(pointer.type.of(spec));
  // Rows that are only read may repeat and overlap.
  const bool isWritten =
      pointer.access == Access::Written || pointer.access == Access::Updated;
  rule.least = isWritten ? innerElements(spec, pointer) : -rule.most;
  return rule;
}

ArgumentRules::ArgumentRules(const DecodeSpec &spec, ArgumentTable table) {
  for (const Argument &argument : table)
    if (argument.isThere(spec))
      rules[size_t(argument.kind)].push_back(ruleOf(spec, table, argument));
}

Status checkCounts(const ArgumentValues &values) {
  for (const ArgumentRule &rule : values.rules.of(Kind::Count))
    if (int32_t value = countOf(*rule.argument, values.args); value < 0)
      return Status::invalid(
          fmt::format("{}{}: {} is not allowed; it must be 0 or more",
                      values.where, rule.argument->name, value));
  return Status::ok();
}

Status checkPointers(const ArgumentValues &values) {
  for (const ArgumentRule &rule : values.rules.of(Kind::Pointer)) {
    const Argument &argument = *rule.argument;
    const uint64_t address = memberOf(argument, values.args);
    if (address == 0) {
      if (argument.mayBe0)
        continue;
      return missingAddress(values.where + argument.name);
    }
    if (address & (rule.unit - 1))
      return Status::invalid(fmt::format(
          "{}{}: {:#x} is not allowed; {} a multiple of {} bytes", values.where,
          argument.name, address,
          argument.mayBe0 ? "it must be 0 or" : "the address must be",
          rule.unit));
  }
  return Status::ok();
}

Status checkStrides(const ArgumentValues &values, bool hasRows) {
  for (const auto &[argument, unit, least, most] :
       values.rules.of(Kind::Stride)) {
    if (argument->isOfRows && !hasRows)
      continue;
    const int64_t value = int64_t(memberOf(*argument, values.args));
    if (value >= least && value <= most && !(value & (unit - 1)))
      continue;
    std::string allowed;
    if (value > most || value < -most)
      allowed = fmt::format("{} to {} (2^32 bytes)", least, most);
    else if (value & (unit - 1))
      allowed = fmt::format("a multiple of {}", unit);
    else
      allowed = fmt::format("{} or more", least);
    return Status::invalid(fmt::format("{}{}: {} is not allowed; it must be {}",
                                       values.where, argument->name, value,
                                       allowed));
  }
  return Status::ok();
}

void appendAddresses(const ArgumentValues &values,
                     std::vector<NamedAddress> &all) {
  for (const ArgumentRule &rule : values.rules.of(Kind::Pointer))
    if (uint64_t address = memberOf(*rule.argument, values.args))
      all.push_back({values.where + rule.argument->name, address});
}

} // namespace replayjit::internal
