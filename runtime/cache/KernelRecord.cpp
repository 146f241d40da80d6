//===- KernelRecord.cpp - A kernel as JSON --------------------------------===//

#include "runtime/cache/KernelRecord.h"

#include "runtime/cache/Digest.h"
#include "runtime/cache/FactsJson.h"

#include <fmt/format.h>

namespace replayjit::internal {

/// Of an entry's kernel.json: raise it when a reader must know.
static constexpr int entryFormat = 1;
static constexpr std::string_view checksumIntro = ",\n  \"checksum\": \"";
static constexpr std::string_view checksumEnd = "\"\n}\n";

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Never fails: a byte that is no UTF-8 becomes U+FFFD.
/// Of what is written here; most of it are the names of fields.
static constexpr size_t mostRecordBytes = 32 << 10;

static std::string dump(const Json &json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

/// `madeFrom` comes after the target.
static Json record(const CompiledKernel &kernel, const Json &madeFrom) {
  Json params = Json::array();
  for (const KernelParam &param : kernel.signature.params) {
    params.push_back({{"name", param.name},
                      {"kind", wordOf(param.kind)},
                      {"offset", param.offset}});
    if (param.kind == KernelParam::Kind::Bytes)
      params.back()["size"] = param.size;
  }
  const ResourceUsage &usage = kernel.resources;
  Json record = {{"name", kernel.name}, {"target", kernel.target.chip}};
  record.update(madeFrom);
  record.update(Json{
      {"launch",
       {{"blocksPerRow", kernel.launch.blocksPerRow},
        {"threads", kernel.launch.threads},
        {"sharedBytes", kernel.launch.sharedBytes}}},
      {"params", params},
      {"paramBytes", kernel.signature.bytes},
      {"resources",
       {{"registers", usage.registers},
        {"spillStoreBytes", usage.spillStoreBytes},
        {"spillLoadBytes", usage.spillLoadBytes},
        {"stackBytes", usage.stackBytes},
        {"staticSharedBytes", usage.staticSharedBytes}}},
      {"assembler", kernel.assembler},
      {"ptxBytes", kernel.ptx.size()},
      {"cubinBytes", kernel.cubin.size()},
  });
  return record;
}

static Json specRecord(const CompiledKernel &kernel, const DecodeSpec &spec,
                       const DecodeTuning &tuning) {
  return record(kernel, {{"spec", factsToJson(spec, decodeFacts())},
                         {"tuning", factsToJson(tuning, tuningFacts())}});
}

std::string toJson(const CompiledKernel &kernel, const DecodeSpec &spec,
                   const DecodeTuning &tuning) {
  const JsonReserve reserve(mostRecordBytes);
  return dump(specRecord(kernel, spec, tuning)) + "\n";
}

std::string toJson(const CompiledKernel &kernel) {
  const JsonReserve reserve(mostRecordBytes);
  return dump(record(kernel, Json::object())) + "\n";
}

std::string toEntryJson(const CompiledKernel &kernel, const CacheKey &key) {
  const JsonReserve reserve(mostRecordBytes);
  Json facts = Json::array();
  for (std::string_view fact : factsOf(key.text))
    facts.push_back(std::string(fact));
  Json json = specRecord(kernel, key.spec, key.tuning);
  json["format"] = entryFormat;
  json["key"] = facts;
  json["ptxDigest"] = digestOf(kernel.ptx);
  json["cubinDigest"] = digestOf({kernel.cubin.data(), kernel.cubin.size()});
  std::string text = dump(json);
  text.resize(text.size() - 2); // "\n}"
  const std::string checksum = digestOf(text);
  text += checksumIntro;
  text += checksum;
  text += checksumEnd;
  return text;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static void readSignature(const ObjectReader &record,
                          KernelSignature &signature) {
  record.read("paramBytes", signature.bytes);
  const Json *params = record.array("params");
  if (!params)
    return;
  uint64_t end = 0;
  for (size_t i = 0; i < params->size(); ++i) {
    KernelParam param;
    ObjectReader object(record, fmt::format("params[{}]", i), (*params)[i]);
    object.read("name", param.name);
    object.read("kind", param.kind);
    object.read("offset", param.offset);
    const bool isOther = param.kind == KernelParam::Kind::Bytes;
    if (isOther)
      object.read("size", param.size);
    object.refuseOthers();
    const uint64_t size = param.bytes();
    if (param.offset < end || (!isOther && param.offset % size != 0) ||
        param.offset + size > signature.bytes)
      object.fail("offset", fmt::format("{} is not allowed; {} bytes there "
                                        "leave their place in a buffer of {}",
                                        param.offset, size, signature.bytes));
    end = param.offset + size;
    signature.params.push_back(std::move(param));
  }
}

static void readLaunch(const ObjectReader &object, LaunchConfig &launch) {
  object.read("blocksPerRow", launch.blocksPerRow);
  object.read("threads", launch.threads);
  object.read("sharedBytes", launch.sharedBytes);
  object.refuseOthers();
  if (launch.blocksPerRow == 0)
    object.fail("blocksPerRow", "0 is not allowed; it must be 1 or more");
  if (launch.threads == 0 || launch.threads > 1024)
    object.fail("threads", fmt::format("{} is not allowed; it must be 1 to "
                                       "1024",
                                       launch.threads));
}

static void readResources(const ObjectReader &object, ResourceUsage &usage) {
  object.read("registers", usage.registers);
  object.read("spillStoreBytes", usage.spillStoreBytes);
  object.read("spillLoadBytes", usage.spillLoadBytes);
  object.read("stackBytes", usage.stackBytes);
  object.read("staticSharedBytes", usage.staticSharedBytes);
  object.refuseOthers();
}

Result<KernelRecord> readRecord(std::string_view text) {
  const JsonReserve reserve(text.size());
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  Status status;
  ObjectReader record(status, json);
  KernelRecord result;
  CompiledKernel &kernel = result.kernel;
  std::string chip;
  record.read("name", kernel.name);
  record.read("target", chip);
  readLaunch(record.object("launch"), kernel.launch);
  readSignature(record, kernel.signature);
  readResources(record.object("resources"), kernel.resources);
  record.read("assembler", kernel.assembler);
  record.read("ptxBytes", result.ptxBytes);
  record.read("cubinBytes", result.cubinBytes);
  if (record.has("spec") || record.has("tuning")) {
    readFacts(record.object("spec"), result.spec.emplace(), decodeFacts());
    readFacts(record.object("tuning"), result.tuning.emplace(), tuningFacts());
  }
  if (record.has("format")) // readEntryRecord reads these
    for (const char *name :
         {"format", "key", "ptxDigest", "cubinDigest", "checksum"})
      record.know(name);
  record.refuseOthers();
  if (!status)
    return status;
  Result<Target> target = Target::parse(chip);
  if (!target)
    return Status::invalid("kernel.json: " + target.status().message);
  kernel.target = *target;
  return result;
}

/// The checksum is the last member and covers every byte before it; what
/// follows is fixed. So no bit of the file can change unnoticed.
static Status compareChecksum(std::string_view text) {
  const size_t tail = checksumIntro.size() + digestDigits + checksumEnd.size();
  const std::string_view body =
      text.substr(0, text.size() - std::min(tail, text.size()));
  std::string expected(checksumIntro);
  expected += digestOf(body);
  expected += checksumEnd;
  if (text.substr(body.size()) == expected)
    return Status::ok();
  return Status::invalid("kernel.json: its checksum is missing or does not "
                         "match its text");
}

static void readDigest(const ObjectReader &record, const char *name,
                       std::string &digest) {
  record.read(name, digest);
  if (!isDigest(digest))
    record.fail(name, "it must be 32 hexadecimal digits");
}

Result<EntryRecord> readEntryRecord(std::string_view text) {
  if (Status status = compareChecksum(text); !status)
    return status;
  const JsonReserve reserve(text.size());
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  Status status;
  ObjectReader record(status, json);
  int format = 0;
  record.read("format", format);
  if (status && format != entryFormat)
    return Status::invalid(fmt::format("kernel.json: format: {} is not "
                                       "allowed; this version reads {}",
                                       format, entryFormat));
  EntryRecord entry;
  record.read("name", entry.name);
  if (const Json *facts = record.array("key"))
    for (const Json &fact : *facts) {
      if (!fact.is_string())
        record.fail("key", "it must be a list of strings");
      else
        entry.keyText += fact.get_ref<const std::string &>() + "\n";
    }
  readDigest(record, "ptxDigest", entry.ptxDigest);
  readDigest(record, "cubinDigest", entry.cubinDigest);
  record.read("ptxBytes", entry.ptxBytes);
  record.read("cubinBytes", entry.cubinBytes);
  if (!status)
    return status;
  return entry;
}

} // namespace replayjit::internal
