//===- Family.h - The families of kernels, by name --------------*- C++ -*-===//
#ifndef REPLAYJIT_KERNELS_FAMILY_H
#define REPLAYJIT_KERNELS_FAMILY_H

#include "kernels/Facts.h"

#include <cstdint>
#include <string_view>

namespace replayjit::internal {

/// Which of the kernels around one state pool. Families.h says what each is.
enum class Family : uint8_t {
#define REPLAYJIT_FAMILY(Name, word) Name,
#include "kernels/Families.def"
};

/// Its word; empty for what is no family.
std::string_view wordOf(Family family);

/// The words of all families, those of test programs too.
template <> WordList allWords<Family>();

} // namespace replayjit::internal

#endif
