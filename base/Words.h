//===- Words.h - The words of enums -----------------------------*- C++ -*-===//
//
// Every word of an enum's value stands once, beside the enum: sentences, keys,
// JSON, flags and Python take it from there.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_BASE_WORDS_H
#define REPLAYJIT_BASE_WORDS_H

#include <array>
#include <string>
#include <string_view>

namespace replayjit::internal {

/// The words of an enum whose values count from 0, in camelCase. Enums that
/// have words specialize it.
template <typename Enum>
inline constexpr std::array<std::string_view, 0> wordsOf = {};

/// The word of a value; empty if it is none of the enum's.
template <typename Enum> constexpr std::string_view wordOf(Enum value) {
  const auto &words = wordsOf<Enum>;
  return size_t(value) < words.size() ? words[size_t(value)]
                                      : std::string_view();
}

/// `name`, which is in camelCase, in small letters with `divider` where a word
/// begins: "numKeyHeads" is "num_key_heads" in C and Python, and "lowerBound"
/// is "lower-bound" on a command line and in Python.
inline std::string divided(std::string_view name, char divider) {
  std::string text;
  for (char c : name) {
    const bool begins = c >= 'A' && c <= 'Z';
    if (begins)
      text += divider;
    text += begins ? char(c - 'A' + 'a') : c;
  }
  return text;
}

} // namespace replayjit::internal

#endif
