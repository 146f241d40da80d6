//===- FactsJson.h - Facts as JSON ------------------------------*- C++ -*-===//
#ifndef REPLAYJIT_RUNTIME_CACHE_FACTSJSON_H
#define REPLAYJIT_RUNTIME_CACHE_FACTSJSON_H

#include "runtime/cache/JsonReader.h"

namespace replayjit::internal {

/// A member for each row: a number, a truth or a word.
template <typename Struct>
Json factsToJson(const Struct &all, std::span<const Fact<Struct>> table) {
  Json json = Json::object();
  for (const Fact<Struct> &fact : table) {
    Json &value = json[fact.name];
    if (fact.allowed.kind == FactKind::Number)
      value = fact.get(all);
    else if (fact.allowed.kind == FactKind::Truth)
      value = fact.get(all) != 0;
    else
      value = fact.text(all);
  }
  return json;
}

/// Reads the same: all members, and no others.
template <typename Struct>
void readFacts(const ObjectReader &object, Struct &all,
               std::span<const Fact<Struct>> table) {
  for (const Fact<Struct> &fact : table)
    fact.set(all, object.readFact(fact.name, fact.allowed, fact.get(all)));
  object.refuseOthers();
}

} // namespace replayjit::internal

#endif
