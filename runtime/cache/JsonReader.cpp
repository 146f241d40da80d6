//===- JsonReader.cpp - JSON objects, read strictly -----------------------===//

#include "runtime/cache/JsonReader.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <new>
#include <utility>

namespace replayjit::internal {

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static thread_local void *kept = nullptr;

/// The new-handler, of this library alone, whose C++ library is its own.
static void giveBack() {
  if (!kept)
    throw std::bad_alloc();
  std::free(std::exchange(kept, nullptr));
}

JsonReserve::JsonReserve(size_t textBytes) : outer(kept) {
  [[maybe_unused]] static const auto before = std::set_new_handler(giveBack);
  // A member of five letters, such as "a":1 and its comma, takes 48 bytes in a
  // vector that doubles, copied once or twice on the way.
  void *memory = std::malloc((64 << 10) + 64 * textBytes);
  if (!memory)
    throw std::bad_alloc();
  kept = memory;
}

JsonReserve::~JsonReserve() {
  std::free(kept);
  kept = outer;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

ObjectReader::ObjectReader(Status &status, const Json &json,
                           const std::string &file)
    : status(status), path(file + ": "), json(json) {
  if (!json.is_object())
    status = Status::invalid(path + "it is no JSON object");
}

ObjectReader::ObjectReader(const ObjectReader &outer, std::string name,
                           const Json &json)
    : status(outer.status), path(outer.path + name + "."), json(json) {
  if (!json.is_object())
    outer.fail(name.c_str(), "it must be an object");
}

void ObjectReader::fail(const char *name, std::string_view why) const {
  if (status)
    status = Status::invalid(fmt::format("{}{}: {}", path, name, why));
}

const Json *ObjectReader::member(const char *name) const {
  know(name);
  if (!json.is_object())
    return nullptr; // has been reported
  auto found = json.find(name);
  if (found != json.end())
    return &*found;
  fail(name, "it is missing");
  return nullptr;
}

void ObjectReader::read(const char *name, bool &field) const {
  const Json *value = member(name);
  if (!value)
    return;
  if (value->is_boolean())
    field = value->get<bool>();
  else
    fail(name, "it must be true or false");
}

int ObjectReader::readWord(const char *name,
                           std::span<const std::string_view> words,
                           int value) const {
  std::string word;
  read(name, word);
  const auto found = std::find(words.begin(), words.end(), word);
  if (found != words.end())
    return int(found - words.begin());
  fail(name, fmt::format("'{}' is not allowed; allowed are {}", word,
                         fmt::join(words, ", ")));
  return value;
}

int ObjectReader::readFact(const char *name, const Allowed &allowed,
                           int value) const {
  if (allowed.kind == FactKind::Number)
    read(name, value);
  else if (allowed.kind == FactKind::Truth) {
    bool truth = value != 0;
    read(name, truth);
    value = truth;
  } else
    value = readWord(name, allowed.words(), value);
  return value;
}

template <typename Int>
void ObjectReader::readInteger(const char *name, Int &field) const {
  const Json *value = member(name);
  if (!value)
    return;
  bool fits = false;
  if (value->is_number_unsigned())
    fits = std::in_range<Int>(value->get<uint64_t>());
  else if (value->is_number_integer())
    fits = std::in_range<Int>(value->get<int64_t>());
  if (fits)
    field = value->get<Int>();
  else
    fail(name, fmt::format("it must be an integer from {} to {}",
                           std::numeric_limits<Int>::min(),
                           std::numeric_limits<Int>::max()));
}

void ObjectReader::read(const char *name, int &field) const {
  readInteger(name, field);
}
void ObjectReader::read(const char *name, uint32_t &field) const {
  readInteger(name, field);
}
void ObjectReader::read(const char *name, uint64_t &field) const {
  readInteger(name, field);
}

void ObjectReader::read(const char *name, double &field) const {
  const Json *value = member(name);
  if (!value)
    return;
  if (value->is_number() && std::isfinite(value->get<double>()))
    field = value->get<double>();
  else
    fail(name, "it must be a number");
}

void ObjectReader::read(const char *name, std::string &field) const {
  const Json *value = member(name);
  if (!value)
    return;
  if (value->is_string())
    field = value->get_ref<const std::string &>();
  else
    fail(name, "it must be a string");
}

ObjectReader ObjectReader::object(const char *name) const {
  static const Json none;
  const Json *value = member(name);
  return ObjectReader(*this, name, value ? *value : none);
}

const Json *ObjectReader::array(const char *name) const {
  const Json *value = member(name);
  if (value && value->is_array())
    return value;
  fail(name, "it must be a list");
  return nullptr;
}

void ObjectReader::refuseOthers() const {
  if (!json.is_object())
    return;
  for (const auto &[name, value] : json.items())
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail(name.c_str(), "a member of this name is unknown");
}

} // namespace replayjit::internal
