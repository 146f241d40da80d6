//===- Facts.cpp - Values of facts, and sentences about them --------------===//

#include "kernels/Facts.h"

#include <cassert>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

namespace replayjit::internal {

bool Allowed::has(int value) const {
  if (low > high && values.empty())
    return canHold(value);
  return (value >= low && value <= high) ||
         std::find(values.begin(), values.end(), value) != values.end();
}

std::vector<int> Allowed::list() const {
  std::vector<int> all(values.begin(), values.end());
  if (!all.empty())
    return all;
  all.resize(words().size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::pair<int, int> Allowed::ends() const {
  std::vector<int> all = list();
  if (low <= high)
    all.insert(all.end(), {low, high});
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  assert(least != all.end() && "a number has a range or a list");
  return {*least, *most};
}

std::string Allowed::text(int value) const {
  // A value without a word is a bug of the caller's, yet texts must differ.
  return isNumber() || !canHold(value) ? fmt::format("{}", value)
                                       : std::string(words()[value]);
}

std::string Allowed::text() const {
  std::vector<std::string> listed;
  for (int value : list())
    listed.push_back(text(value));
  const std::string range =
      low > high ? std::string() : fmt::format("{} to {}", low, high);
  const std::string all = fmt::format("{}", fmt::join(listed, ", "));
  return all + (all.empty() || range.empty() ? "" : " or ") + range;
}

Status Allowed::check(std::string_view name, int value) const {
  if (has(value))
    return Status::ok();
  return Status::invalid(
      fmt::format("{}: {} is not allowed; {} {}", name, text(value),
                  low > high ? "allowed are" : "it must be", text()));
}

std::string namePart(const NameParts &parts, const Allowed &allowed,
                     int value) {
  const bool isPerValue = !parts[1].empty() || parts[0].empty();
  if (isPerValue && !allowed.isNumber() && allowed.canHold(value))
    return std::string(parts[value]);
  return std::string(parts[0]) + allowed.text(value);
}

} // namespace replayjit::internal
