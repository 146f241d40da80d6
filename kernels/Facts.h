//===- Facts.h - What is said once of a compile-time fact -------*- C++ -*-===//
//
// A struct of facts, such as DecodeSpec, has a table with one row for each
// member. Validation of ranges, the canonical form, a kernel's name, the cache
// key and kernel.json, the C struct, the tools' flags, Python's fields and the
// fuzzer's draw are loops over that table.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_KERNELS_FACTS_H
#define REPLAYJIT_KERNELS_FACTS_H

#include "base/DataType.h"
#include "base/Status.h"
#include "base/Words.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace replayjit::internal {

/// A short list of values, all as numbers: `{8, 16}`, `{Gate::Softplus}`.
class Few {
public:
  constexpr Few() = default;
  template <typename T> constexpr Few(std::initializer_list<T> values) {
    for (T value : values)
      list[count++] = int(value);
  }
  constexpr const int *begin() const { return list.data(); }
  constexpr const int *end() const { return list.data() + count; }
  constexpr bool empty() const { return count == 0; }

private:
  std::array<int, 12> list = {};
  int count = 0;
};

enum class FactKind : uint8_t { Number, Truth, Choice, Type };

/// The words of an enum's values, from 0 on.
using WordList = std::span<const std::string_view>;
template <typename Enum> WordList allWords() { return wordsOf<Enum>; }

/// What a fact can be and may be.
struct Allowed {
  int low = 1, high = 0; ///< A range; empty while low > high.
  Few values = {};       ///< Single values, beside the range or without one.
  // Set by `fact`. A number has no words.
  FactKind kind = FactKind::Number;
  WordList (*wordList)() = nullptr;

  constexpr bool isNumber() const { return !wordList; }
  WordList words() const { return wordList ? wordList() : WordList(); }
  /// What the member can hold: any number, or a value that has a word.
  bool canHold(int value) const {
    return isNumber() || (value >= 0 && size_t(value) < words().size());
  }
  /// Whether a rule of this fact alone allows it. Without one, all words are.
  bool has(int value) const;
  /// The allowed values of a fact that lists them or has words.
  std::vector<int> list() const;
  /// The least and the greatest allowed value.
  std::pair<int, int> ends() const;
  /// "true", "lowerBound" or "16".
  std::string text(int value) const;
  /// "1 to 64", "0 or 32 to 255", "fp32, bf16".
  std::string text() const;
  /// "NAME: VALUE is not allowed; it must be 1 to 64", or ok.
  Status check(std::string_view name, int value) const;
};

/// How a fact shows in a kernel's name: one part, which its number or word
/// follows, or a part for each value, where an empty one is silent.
using NameParts = std::array<std::string_view, 5>;
std::string namePart(const NameParts &parts, const Allowed &allowed, int value);

/// One row of the table of `Struct`, whose default is the member's own.
template <typename Struct> struct Fact {
  const char *name; ///< The member's.
  /// Whether the program that `all` says has the fact; what it does not have is
  /// ignored. Null: always.
  bool (*in)(const Struct &all) = nullptr;
  Allowed allowed = {};
  const char *doc;  ///< One line, for --help, C and Python.
  const char *flag; ///< Of the tools; a truth's turns the default around.
  NameParts parts = {};
  /// Whether other facts say it already, so that a kernel's name need not.
  bool (*isImplied)(const Struct &all) = nullptr;
  /// Whether speed hardly depends on it: a tuning that was measured holds for
  /// all its values.
  bool isMinor = false;
  /// What the fuzzer draws from, evenly; empty: what is allowed. Of a number
  /// with a range it also draws what lies between the least and the greatest.
  Few draws = {};

  // Set by `fact`.
  int (*get)(const Struct &all) = nullptr;
  void (*set)(Struct &all, int value) = nullptr;

  bool isIn(const Struct &all) const { return !in || in(all); }
  int usual() const { return get(Struct()); }
  std::string text(const Struct &all) const { return allowed.text(get(all)); }
};

template <auto member> struct MemberOf;
template <typename S, typename V, V S::*member> struct MemberOf<member> {
  using Struct = S;
  using Value = V;
};

template <typename Value> constexpr FactKind kindOf() {
  return std::is_same_v<Value, int>        ? FactKind::Number
         : std::is_same_v<Value, bool>     ? FactKind::Truth
         : std::is_same_v<Value, DataType> ? FactKind::Type
                                           : FactKind::Choice;
}

template <>
inline constexpr std::array<std::string_view, 2> wordsOf<bool> = {"false",
                                                                  "true"};

/// The row of a member, with what follows from the member itself.
template <auto member>
constexpr auto fact(Fact<typename MemberOf<member>::Struct> row) {
  using Struct = typename MemberOf<member>::Struct;
  using Value = typename MemberOf<member>::Value;
  row.get = [](const Struct &all) { return int(all.*member); };
  row.set = [](Struct &all, int value) { all.*member = Value(value); };
  row.allowed.kind = kindOf<Value>();
  if constexpr (!std::is_same_v<Value, int>)
    row.allowed.wordList = allWords<Value>;
  return row;
}

struct AnyMember {
  template <typename T> operator T() const;
};

/// Members of a struct of plain values.
template <typename Struct, typename... Given> consteval size_t memberCount() {
  if constexpr (requires { Struct{Given{}..., AnyMember{}}; })
    return memberCount<Struct, Given..., AnyMember>();
  else
    return sizeof...(Given);
}

/// Whether a table has a row for each member: as many, and no two of one.
template <typename Struct>
consteval bool isComplete(std::span<const Fact<Struct>> table) {
  for (const Fact<Struct> &row : table) {
    Struct changed;
    row.set(changed, row.get(changed) == 0);
    for (const Fact<Struct> &other : table)
      if (&other != &row && other.get(changed) != other.get(Struct()))
        return false;
  }
  return table.size() == memberCount<Struct>();
}

/// The default for each fact that a program does not have.
template <typename Struct>
Struct canonicalOf(Struct all, std::span<const Fact<Struct>> table) {
  const Struct given = all;
  for (const Fact<Struct> &row : table)
    if (!row.isIn(given))
      row.set(all, row.usual());
  return all;
}

/// What is wrong with the first fact that a rule of its own refuses.
template <typename Struct>
Status checkFacts(const Struct &all, std::span<const Fact<Struct>> table) {
  for (const Fact<Struct> &row : table)
    if (row.isIn(all) && !row.allowed.has(row.get(all)))
      return row.allowed.check(row.name, row.get(all));
  return Status::ok();
}

/// Adds "_part" for each fact that a name says, in the table's order.
template <typename Struct>
void addNameParts(std::string &name, const Struct &all,
                  std::span<const Fact<Struct>> table) {
  for (const Fact<Struct> &row : table) {
    if (!row.isIn(all) || (row.isImplied && row.isImplied(all)))
      continue;
    const std::string part = namePart(row.parts, row.allowed, row.get(all));
    if (!part.empty())
      name += (name.empty() ? "" : "_") + part;
  }
}

} // namespace replayjit::internal

#endif
