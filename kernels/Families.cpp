//===- Families.cpp - The registry of families ----------------------------===//

#include "kernels/Families.h"

#define REPLAYJIT_REGISTRY

namespace replayjit::internal {

#define REPLAYJIT_FAMILY(Name, word) extern const FamilyDescriptor word##Family;
#include "kernels/Families.def"

static constexpr std::string_view words[] = {
#define REPLAYJIT_FAMILY(Name, word) #word,
#include "kernels/Families.def"
};

static constexpr const FamilyDescriptor *families[] = {
#define REPLAYJIT_FAMILY(Name, word) &word##Family,
#include "kernels/Families.def"
};

template <> WordList allWords<Family>() { return words; }

std::string_view wordOf(Family family) {
  return size_t(family) < std::size(words) ? words[size_t(family)]
                                           : std::string_view();
}

const FamilyDescriptor &familyOf(Family family) {
  static constexpr FamilyDescriptor none;
  return size_t(family) < std::size(families) ? *families[size_t(family)]
                                              : none;
}

std::span<const FamilyDescriptor *const> allFamilies() { return families; }

} // namespace replayjit::internal
