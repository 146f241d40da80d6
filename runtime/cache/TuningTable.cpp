//===- TuningTable.cpp - Tunings that were measured -----------------------===//

#include "runtime/cache/TuningTable.h"

#include "base/Files.h"
#include "kernels/Families.h"
#include "runtime/cache/FactsJson.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace replayjit::internal {

/// Some thousand entries.
static constexpr uint64_t mostTableBytes = 4 << 20;

//===----------------------------------------------------------------------===//
// Looking up
//===----------------------------------------------------------------------===//

/// What counts of a spec; all else has its default.
static DecodeSpec majorFacts(DecodeSpec spec) {
  spec = canonical(spec);
  for (const Fact<DecodeSpec> &fact : decodeFacts())
    if (fact.isMinor)
      fact.set(spec, fact.usual());
  return spec;
}

const TunedRows &TunedSpec::forRows(int count) const {
  const auto found =
      std::find_if(rows.begin(), rows.end() - 1, [&](const TunedRows &entry) {
        return count > 0 && count <= entry.rows;
      });
  return *found;
}

void TunedSpec::add(TunedRows entry) {
  auto place =
      std::find_if(rows.begin(), rows.end(), [&](const TunedRows &other) {
        return other.rows >= entry.rows;
      });
  if (place != rows.end() && place->rows == entry.rows)
    *place = entry;
  else
    rows.insert(place, entry);
}

bool TuningTable::isFor(const Target &target, int count) const {
  return chip == target.chip && multiprocessors == count;
}

const TunedSpec *TuningTable::find(const DecodeSpec &spec) const {
  const DecodeSpec major = majorFacts(spec);
  for (const TunedSpec &entry : specs)
    if (entry.spec == major)
      return &entry;
  return nullptr;
}

TunedSpec &TuningTable::add(const DecodeSpec &spec) {
  if (const TunedSpec *found = find(spec))
    return specs[found - specs.data()];
  return specs.emplace_back(TunedSpec{majorFacts(spec), {}});
}

DecodeTuning chooseTuning(const DecodeSpec &spec, int rows,
                          const Target &target, int multiprocessors,
                          const TuningTable *table) {
  if (table && table->isFor(target, multiprocessors))
    if (const TunedSpec *found = table->find(spec)) {
      const DecodeTuning &tuning = found->forRows(rows).tuning;
      if (validate(spec, tuning, target))
        return tuning;
    }
  return chooseTuning(spec, rows, target, multiprocessors);
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

std::string TuningTable::json() const {
  Json list = Json::array();
  for (const TunedSpec &entry : specs) {
    Json spec = Json::object();
    const Json all = factsToJson(entry.spec, decodeFacts());
    for (const Fact<DecodeSpec> &fact : decodeFacts())
      if (!fact.isMinor && fact.isIn(entry.spec))
        spec[fact.name] = all.at(fact.name);
    Json rows = Json::array();
    for (const TunedRows &of : entry.rows)
      rows.push_back({{"rows", of.rows},
                      {"us", of.us},
                      {"usualUs", of.usualUs},
                      {"tuning", factsToJson(of.tuning, tuningFacts())}});
    list.push_back({{"spec", spec}, {"rows", rows}});
  }
  const Json table = {{"tool", "replay-bench tune"},
                      {"chip", chip},
                      {"multiprocessors", multiprocessors},
                      {"device", device},
                      {"specs", list}};
  return table.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// The facts that are there; what is minor, or none, is refused.
template <typename Struct>
static void readSome(const ObjectReader &object, Struct &all,
                     std::span<const Fact<Struct>> table) {
  for (const Fact<Struct> &fact : table) {
    if (fact.isMinor || !object.has(fact.name))
      continue;
    fact.set(all, object.readFact(fact.name, fact.allowed, fact.get(all)));
    if (!fact.allowed.has(fact.get(all)))
      object.fail(fact.name, fmt::format("{} is not allowed; it must be {}",
                                         fact.text(all), fact.allowed.text()));
  }
  object.refuseOthers();
}

static void readRows(const ObjectReader &object, TunedSpec &into) {
  const Json *list = object.array("rows");
  if (!list)
    return;
  for (size_t i = 0; i < list->size(); ++i) {
    TunedRows entry;
    ObjectReader reader(object, fmt::format("rows[{}]", i), (*list)[i]);
    reader.read("rows", entry.rows);
    reader.read("us", entry.us);
    reader.read("usualUs", entry.usualUs);
    readSome(reader.object("tuning"), entry.tuning, tuningFacts());
    reader.refuseOthers();
    if (entry.rows < 1)
      reader.fail("rows", fmt::format("{} is not allowed; it must be 1 or more",
                                      entry.rows));
    into.add(entry);
  }
  if (list->empty())
    object.fail("rows", "it is empty");
}

Result<TuningTable> TuningTable::parse(std::string_view text,
                                       const std::string &file) {
  const JsonReserve reserve(text.size());
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  Status status;
  ObjectReader object(status, json, file);
  TuningTable table;
  object.know("tool");
  object.read("chip", table.chip);
  object.read("multiprocessors", table.multiprocessors);
  object.read("device", table.device);
  if (const Json *list = object.array("specs"))
    for (size_t i = 0; i < list->size(); ++i) {
      ObjectReader reader(object, fmt::format("specs[{}]", i), (*list)[i]);
      DecodeSpec spec;
      readSome(reader.object("spec"), spec, decodeFacts());
      readRows(reader, table.add(spec));
      reader.refuseOthers();
    }
  object.refuseOthers();
  return status ? Result<TuningTable>(std::move(table)) : status;
}

Result<TuningTable> TuningTable::read(const std::string &path) {
  Result<std::string> text = readBytes(path, mostTableBytes);
  return text ? parse(*text, path) : text.status();
}

std::string tuningFileFromEnvironment() {
  const char *file = getenv("REPLAYJIT_TUNING");
  return file ? file : "";
}

Result<std::shared_ptr<const TuningTable>>
openTuningTable(const std::string &file, std::span<const std::string> roots,
                const std::function<void(const std::string &)> &diagnose) {
  using Found = std::shared_ptr<const TuningTable>;
  auto open = [](const std::string &path) -> Result<Found> {
    Result<TuningTable> table = TuningTable::read(path);
    return table ? Found(std::make_shared<TuningTable>(std::move(*table)))
                 : Result<Found>(table.status());
  };
  if (!file.empty()) {
    Result<Found> table = open(file);
    return table ? std::move(table)
                 : Result<Found>(Status(table.status()).within("tuning"));
  }
  for (const std::string &root : roots) {
    const std::string path = root + "/tuning.json";
    std::error_code code;
    if (!std::filesystem::exists(path, code))
      continue;
    Result<Found> table = open(path);
    if (table)
      return table;
    if (diagnose)
      diagnose(table.status().message + "; this table is not used");
  }
  return Found();
}

} // namespace replayjit::internal
