//===- Arguments.h - What a launch is handed, as a table --------*- C++ -*-===//
//
// The arguments of a launch are a plain struct, which is the kernel's parameter
// buffer. A table has one row for each of its members. What a kernel declares,
// what validation looks at, what bindings and generated headers say, and how
// large the tensors of a timing or a check are: it all follows from the row.
// A family owns the tables of its structs. Plain C++.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_KERNELS_ARGUMENTS_H
#define REPLAYJIT_KERNELS_ARGUMENTS_H

#include "kernels/Decode/DecodeSpec.h"

#include <array>
#include <cassert>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace replayjit::internal {

/// One dimension of a tensor.
struct Extent {
  const char *word = nullptr; ///< As documents call it: "HV". Null: none.
  /// Its size; 0 where a spec lacks the dimension. Null: known at the launch.
  int64_t (*size)(const DecodeSpec &) = nullptr;
};

/// The dimensions that only a launch knows. perToken: of all rows' tokens.
inline constexpr Extent perRow{"B"}, perRowAndEnd{"B + 1"}, perToken{"tokens"},
    perLiveRow{"live"}, perSlot{"slots"}, perRing{"ring_slots"};

/// Of a tensor's elements: one of the spec's types, or always the same.
struct ElementType {
  DataType fixed = DataType::I32;
  DataType DecodeSpec::*fact = nullptr;
  const char *word = nullptr; ///< The fact's name in the C struct.

  constexpr ElementType(DataType fixed = DataType::I32) : fixed(fixed) {}
  constexpr ElementType(DataType DecodeSpec::*fact, const char *word)
      : fact(fact), word(word) {}
  constexpr DataType of(const DecodeSpec &spec) const {
    return fact ? spec.*fact : fixed;
  }
};

/// The dimensions of a tensor, up to four.
struct Shape {
  Extent dims[4] = {};
};

/// Which specs have an argument.
struct Presence {
  bool (*holds)(const DecodeSpec &) = nullptr; ///< Null: all of them.
  const char *words = "";                      ///< "if has_mask"
};

/// One member of a struct of arguments.
struct Argument {
  enum class Kind : uint8_t {
    Pointer, ///< uint64_t: a device address.
    Stride,  ///< int64_t: elements from one row or slot of a pointer on.
    Count,   ///< int32_t: 0 or more.
    Number,  ///< Of `type`; what it may be is the family's matter.
  };
  /// What a launch does with the memory of a pointer.
  enum class Access : uint8_t {
    Input,   ///< Read. Nothing else overlaps it, so loads need no order.
    Read,    ///< Read; may be the memory of another argument.
    Written, ///< Rows do not overlap, nor do those of Updated.
    Updated, ///< Read and written.
  };
  /// What divides the address, in bytes; and of tensors that have a stride,
  /// that one's bytes.
  enum class Alignment : uint8_t {
    Element,   ///< An element.
    Wide,      ///< DecodeSpec::alignment, if that is not 0.
    WideIfKda, ///< The same where gates are vectors.
    Eight,     ///< Eight, of the address alone: a struct.
  };

  const char *name;
  uint32_t offset; ///< In the struct.
  Kind kind = Kind::Pointer;
  ElementType type = {}; ///< Of elements, or the number.
  /// Of a pointer. The first dimension is that of rows or slots, a stride apart
  /// if the table has one for it; the others are dense.
  Shape shape = {};
  Access access = Access::Read;
  Alignment alignment = Alignment::Element;
  Presence presence = {};   ///< A stride's is that of its pointer.
  bool mayBe0 = false;      ///< Of a pointer that is there.
  bool isOfToken = false;   ///< What the layer's kernels before make anew.
  const char *of = nullptr; ///< A stride's pointer, by name.
  const char *doc = "";     ///< What the rest does not say.
  // Of a stride; set by `linked`.
  int pointer = -1;      ///< The row of `of`.
  bool isOfRows = false; ///< From row to row or token to token, not of slots.

  constexpr bool isThere(const DecodeSpec &spec) const {
    return !presence.holds || presence.holds(spec);
  }
  /// Of the member.
  constexpr size_t bytes() const {
    return kind == Kind::Pointer || kind == Kind::Stride ? 8
                                                         : byteSize(type.fixed);
  }
  /// The first dimension of a pointer is `extent`.
  constexpr bool isPer(const Extent &extent) const {
    const char *word = shape.dims[0].word;
    return word && std::string_view(word) == extent.word;
  }

  /// The entries of a pointer's first dimension, of a launch of so many rows
  /// and tokens; 1 of what is neither.
  constexpr int64_t entries(int64_t rows, int64_t tokens) const {
    return isPer(perRow)         ? rows
           : isPer(perRowAndEnd) ? rows + 1
           : isPer(perToken)     ? tokens
                                 : 1;
  }

  //===--- To write a row ------------------------------------------------===//

  constexpr Argument only(Presence holds) const {
    Argument row = *this;
    row.presence = holds;
    return row;
  }
  constexpr Argument orNull() const {
    Argument row = *this;
    row.mayBe0 = true;
    return row;
  }
  constexpr Argument ofToken() const {
    Argument row = *this;
    row.isOfToken = true;
    return row;
  }
  constexpr Argument says(const char *what) const {
    Argument row = *this;
    row.doc = what;
    return row;
  }
  constexpr Argument at(size_t place) const {
    Argument row = *this;
    row.offset = uint32_t(place);
    return row;
  }
};

//===----------------------------------------------------------------------===//
// To write a table
//===----------------------------------------------------------------------===//

constexpr Argument
pointer(const char *name, size_t offset, ElementType type, Shape shape,
        Argument::Access access = Argument::Access::Read,
        Argument::Alignment alignment = Argument::Alignment::Element) {
  return {.name = name,
          .offset = uint32_t(offset),
          .type = type,
          .shape = shape,
          .access = access,
          .alignment = alignment};
}
constexpr Argument stride(const char *name, size_t offset, const char *of) {
  return {.name = name,
          .offset = uint32_t(offset),
          .kind = Argument::Kind::Stride,
          .type = DataType::I64,
          .of = of};
}
constexpr Argument count(const char *name, size_t offset) {
  return {
      .name = name, .offset = uint32_t(offset), .kind = Argument::Kind::Count};
}
constexpr Argument number(const char *name, size_t offset, DataType type) {
  return {.name = name,
          .offset = uint32_t(offset),
          .kind = Argument::Kind::Number,
          .type = type};
}

/// The rows, each stride with the row and the presence of its pointer.
template <size_t n>
constexpr std::array<Argument, n> linked(std::array<Argument, n> rows) {
  for (Argument &row : rows) {
    if (row.kind != Argument::Kind::Stride)
      continue;
    int i = 0; // A name that no row has is past the end: no constant.
    while (std::string_view(rows[i].name) != row.of)
      ++i;
    row.pointer = i;
    row.isOfRows = rows[i].isPer(perRow) || rows[i].isPer(perToken);
    row.presence = rows[i].presence;
  }
  return rows;
}

/// True if each byte up to `end` is that of one row, in order and at its
/// natural alignment, but for padding before `end`.
template <size_t n>
constexpr bool covers(const std::array<Argument, n> &rows, size_t end) {
  size_t at = 0;
  for (const Argument &row : rows) {
    at = (at + row.bytes() - 1) / row.bytes() * row.bytes();
    if (row.offset != at)
      return false;
    at += row.bytes();
  }
  return (at + 7) / 8 * 8 == end;
}

//===----------------------------------------------------------------------===//
// To read one
//===----------------------------------------------------------------------===//

using ArgumentTable = std::span<const Argument>;

/// The row of this name, which the table has.
const Argument &find(ArgumentTable table, std::string_view name);

/// The value of a pointer or stride, and of a Count or Number of 32 bits.
uint64_t &memberOf(const Argument &argument, void *args);
uint64_t memberOf(const Argument &argument, const void *args);
int32_t countOf(const Argument &argument, const void *args);

/// Sizes of a pointer's dimensions after the first.
std::vector<int64_t> innerDims(const DecodeSpec &spec,
                               const Argument &argument);
/// Their product: elements of a row or slot. A stride of so many is dense.
int64_t innerElements(const DecodeSpec &spec, const Argument &argument);
/// Elements that divide the stride of a pointer.
int64_t strideUnit(const DecodeSpec &spec, const Argument &argument);

/// True if the kernel before a programmatic launch of `spec` may still write
/// it: what DecodeSpec::dependents says.
bool isDependent(const DecodeSpec &spec, const Argument &argument);

/// Type, shape, access and what else there is to say; of any spec, or in the
/// numbers of this one.
std::string describe(ArgumentTable table, const Argument &argument,
                     const DecodeSpec *spec = nullptr);

/// What is asked of one argument that a spec has.
struct ArgumentRule {
  const Argument *argument;
  int64_t unit = 1; ///< Divides the address or stride; a power of two.
  int64_t least = 0, most = 0; ///< Of a stride.
};

/// The rules of a table for one spec. Made once for a kernel, so that its
/// launches walk a flat list and ask the spec nothing.
class ArgumentRules {
public:
  ArgumentRules(const DecodeSpec &spec, ArgumentTable table);

  /// Those of one kind, in the order of the table.
  std::span<const ArgumentRule> of(Argument::Kind kind) const {
    return rules[size_t(kind)];
  }

private:
  std::array<std::vector<ArgumentRule>, 4> rules; ///< By Argument::Kind.
};

/// The same of a launch: a spec, and the rules of each table of the struct.
struct LaunchRules {
  DecodeSpec spec;
  std::vector<ArgumentRules> tables;
};

/// Of a struct whose `tables` lists its tables.
template <typename Args> LaunchRules rulesOf(const DecodeSpec &spec) {
  LaunchRules rules{spec, {}};
  for (ArgumentTable table : Args::tables())
    rules.tables.emplace_back(spec, table);
  return rules;
}

/// For callers that check one launch. The overload of `Args` says what is
/// legal.
template <typename Args>
Status validateArgs(const DecodeSpec &spec, const Args &args) {
  return validateArgs(rulesOf<Args>(spec), args);
}

/// A struct of arguments and the rules of its table, which outlive this.
struct ArgumentValues {
  const ArgumentRules &rules;
  const void *args;
  std::string where = {}; ///< What sentences put before a name.
};

/// Each says in one sentence what is wrong with the arguments of its kind. The
/// strides of rows are not used where there is but one.
Status checkCounts(const ArgumentValues &values);
Status checkPointers(const ArgumentValues &values);
Status checkStrides(const ArgumentValues &values, bool hasRows);

/// A pointer among the arguments of a launch.
struct NamedAddress {
  std::string name;
  uint64_t address = 0;
};

/// Appends the pointers that are not 0.
void appendAddresses(const ArgumentValues &values,
                     std::vector<NamedAddress> &all);

/// "NAME: 0 is not allowed; it must be a device address"
Status missingAddress(std::string_view name);

} // namespace replayjit::internal

#endif
