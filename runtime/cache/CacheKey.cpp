//===- CacheKey.cpp - What one asks a cache for ---------------------------===//

#include "runtime/cache/CacheKey.h"

#include "runtime/cache/Digest.h"

#include <fmt/format.h>
#include <map>

namespace replayjit::internal {

/// The lines of a target; the bindings name every member.
static std::string targetText(const Target &target) {
  const auto &[chip, capability, ptxVersion, maxSharedBytes, hasBulkCopy] =
      target;
  return fmt::format("target.chip = {}\n"
                     "target.capability = {}\n"
                     "target.ptxVersion = {}\n"
                     "target.maxSharedBytes = {}\n"
                     "target.hasBulkCopy = {}\n",
                     chip, capability, ptxVersion, maxSharedBytes, hasBulkCopy);
}

CacheKey CacheKey::of(const DecodeSpec &spec, const DecodeTuning &tuning,
                      const Target &target, int version) {
  const DecodeSpec own = canonical(spec);
  std::string text = fmt::format("generator.version = {}\n", version);
  text += targetText(target);
  for (const Fact<DecodeSpec> &fact : decodeFacts())
    text += fmt::format("spec.{} = {}\n", fact.name, fact.text(own));
  for (const Fact<DecodeTuning> &fact : tuningFacts())
    text += fmt::format("tuning.{} = {}\n", fact.name, fact.text(tuning));
  return {own, tuning, target, text, digestOf(text)};
}

std::vector<std::string_view> factsOf(std::string_view keyText) {
  std::vector<std::string_view> facts;
  while (!keyText.empty()) {
    const size_t end = keyText.find('\n');
    facts.push_back(keyText.substr(0, end));
    keyText.remove_prefix(end == keyText.npos ? keyText.size() : end + 1);
  }
  return facts;
}

std::vector<std::string> differences(std::string_view asked,
                                     std::string_view found) {
  constexpr std::string_view equals = " = ";
  auto nameOf = [&](std::string_view fact) {
    return fact.substr(0, fact.find(equals));
  };
  auto valueOf = [&](std::string_view fact) {
    const size_t at = fact.find(equals);
    return at == fact.npos ? "" : fact.substr(at + equals.size());
  };
  std::map<std::string_view, std::string_view> others;
  for (std::string_view fact : factsOf(found))
    others[nameOf(fact)] = valueOf(fact);

  std::vector<std::string> sentences;
  for (std::string_view fact : factsOf(asked)) {
    auto other = others.find(nameOf(fact));
    if (other == others.end()) {
      sentences.push_back(fmt::format("{}: {} is asked for; the entry knows no "
                                      "such fact",
                                      nameOf(fact), valueOf(fact)));
      continue;
    }
    if (other->second != valueOf(fact))
      sentences.push_back(fmt::format("{}: {} is asked for; the entry has {}",
                                      nameOf(fact), valueOf(fact),
                                      other->second));
    others.erase(other);
  }
  for (const auto &[name, value] : others)
    sentences.push_back(fmt::format("{}: the entry has {}; nothing of that "
                                    "name is asked for",
                                    name, value));
  return sentences;
}

} // namespace replayjit::internal
