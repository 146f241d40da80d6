//===- PtxEntry.cpp - A kernel out of PTX ---------------------------------===//
//
// Reads the module's .target and the head of each .entry, as chapters 5 and 11
// of the PTX ISA describe them; bodies are passed over.
//
//===----------------------------------------------------------------------===//

#include "runtime/aot/PtxEntry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace replayjit::internal {

namespace {

/// The words of a PTX module: identifiers, directives and numbers, and single
/// marks for all else. Comments and strings are no words.
class Words {
public:
  explicit Words(std::string_view text) : text(text) {}

  /// The next word; empty at the end.
  std::string_view next() {
    for (;;) {
      const size_t begin = text.find_first_not_of(" \t\r\n");
      text.remove_prefix(std::min(begin, text.size()));
      if (text.starts_with("//"))
        skipPast("\n", 2);
      else if (text.starts_with("/*"))
        skipPast("*/", 2);
      else if (text.starts_with("\""))
        skipPast("\"", 1);
      else
        break;
    }
    size_t size = 0;
    while (size < text.size() && isWordLetter(text[size]))
      ++size;
    std::string_view word = text.substr(0, std::max<size_t>(size, 1));
    text.remove_prefix(word.size());
    return word;
  }

  std::string_view peek() const { return Words(*this).next(); }

private:
  static bool isWordLetter(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%' ||
           c == '.';
  }
  void skipPast(std::string_view end, size_t from) {
    const size_t at = text.find(end, from);
    text.remove_prefix(at == text.npos ? text.size() : at + end.size());
  }

  std::string_view text;
};

/// What the head of an entry says.
struct Head {
  std::string_view name;
  KernelSignature signature;
  uint32_t required = 0, most = 0; ///< .reqntid, .maxntid; 0: not there
  bool isFlat = true;              ///< They have one dimension.
};

struct ScalarType {
  std::string_view word;
  uint32_t bytes;
  KernelParam::Kind kind;
};
using Kind = KernelParam::Kind;
constexpr ScalarType scalarTypes[] = {
    {".u64", 8, Kind::I64},   {".s64", 8, Kind::I64},
    {".b64", 8, Kind::I64},   {".u32", 4, Kind::I32},
    {".s32", 4, Kind::I32},   {".b32", 4, Kind::I32},
    {".f32", 4, Kind::F32},   {".f64", 8, Kind::Bytes},
    {".u16", 2, Kind::Bytes}, {".s16", 2, Kind::Bytes},
    {".b16", 2, Kind::Bytes}, {".f16", 2, Kind::Bytes},
    {".u8", 1, Kind::Bytes},  {".s8", 1, Kind::Bytes},
    {".b8", 1, Kind::Bytes},  {".b128", 16, Kind::Bytes},
};

/// 0 if `word` is no number.
uint32_t numberOf(std::string_view word) {
  uint32_t value = 0;
  const auto end = word.data() + word.size();
  if (std::from_chars(word.data(), end, value).ptr != end)
    return 0;
  return value;
}

} // namespace

/// One `.param` and what follows it, up to the comma or parenthesis.
static Status readParam(Words &words, Head &head) {
  auto refused = [&](std::string_view why) {
    return Status::invalid(fmt::format("PTX: parameter {} of entry '{}' {}",
                                       head.signature.params.size(), head.name,
                                       why));
  };
  const ScalarType *type = nullptr;
  bool isPointer = false, isArray = false;
  uint32_t alignment = 0, elements = 1;
  std::string_view name;
  for (;;) {
    const std::string_view next = words.peek();
    if (next == "," || next == ")" || next.empty())
      break;
    const std::string_view word = words.next();
    if (word == ".align") {
      const uint32_t value = numberOf(words.next());
      if (!isPointer) // else it is that of what it points to
        alignment = value;
    } else if (word == ".ptr") {
      isPointer = true;
    } else if (word == "[") {
      isArray = true;
      elements = numberOf(words.next());
      words.next(); // ]
    } else if (word.starts_with(".")) {
      if (type) // the space of a pointer
        continue;
      type = std::find_if(std::begin(scalarTypes), std::end(scalarTypes),
                          [&](const ScalarType &t) { return t.word == word; });
      if (type == std::end(scalarTypes))
        return refused(fmt::format("is {}, which is not known", word));
    } else {
      name = word;
    }
  }
  if (!type || name.empty() || elements == 0)
    return refused("has no type, name or size");

  KernelParam param{std::string(name), isPointer ? Kind::Pointer : type->kind};
  if (isArray)
    param.kind = Kind::Bytes;
  if (param.kind == Kind::Bytes)
    param.size = type->bytes * elements;
  alignment = std::max(alignment, type->bytes);
  KernelSignature &signature = head.signature;
  param.offset = (signature.bytes + alignment - 1) / alignment * alignment;
  signature.bytes = param.offset + param.bytes();
  signature.params.push_back(std::move(param));
  return Status::ok();
}

/// All after `.entry`, up to the body.
static Result<Head> readHead(Words &words) {
  Head head;
  head.name = words.next();
  uint32_t widest = 1;
  if (words.peek() == "(")
    while (words.next() != ")") {
      if (words.peek() == ")")
        continue;
      if (words.next() != ".param")
        return Status::invalid(fmt::format(
            "PTX: the parameters of entry '{}' cannot be read", head.name));
      if (Status status = readParam(words, head); !status)
        return status;
    }
  for (std::string_view word;
       word = words.peek(), word != "{" && word != ";";) {
    if (words.next().empty())
      return Status::invalid(
          fmt::format("PTX: entry '{}' has no body", head.name));
    if (word != ".reqntid" && word != ".maxntid")
      continue;
    uint32_t &threads = word == ".reqntid" ? head.required : head.most;
    threads = numberOf(words.next());
    while (words.peek() == ",") {
      words.next();
      head.isFlat &= numberOf(words.next()) == 1;
    }
  }
  for (const KernelParam &param : head.signature.params)
    widest = std::max(widest, param.kind == Kind::Bytes ? 1 : param.bytes());
  uint32_t &bytes = head.signature.bytes;
  bytes = (bytes + widest - 1) / widest * widest;
  return head;
}

Result<CompiledKernel> kernelFromPtx(std::string_view ptx,
                                     std::string_view entry) {
  Words words(ptx);
  std::string_view chip;
  std::vector<Head> heads;
  for (std::string_view word; !(word = words.next()).empty();) {
    if (word == ".target")
      chip = words.next();
    if (word != ".entry")
      continue;
    Result<Head> head = readHead(words);
    if (!head)
      return head.status();
    heads.push_back(std::move(*head));
  }

  std::vector<std::string_view> names;
  for (const Head &head : heads)
    names.push_back(head.name);
  if (heads.empty())
    return Status::invalid("PTX: there is no .entry");
  if (entry.empty() && heads.size() > 1)
    return Status::invalid(fmt::format("PTX: there are several entries; name "
                                       "one of {}",
                                       fmt::join(names, ", ")));
  const size_t at =
      entry.empty()
          ? 0
          : std::find(names.begin(), names.end(), entry) - names.begin();
  if (at == names.size())
    return Status::error(
        StatusCode::NotFound,
        fmt::format("PTX: there is no entry '{}'; there are {}", entry,
                    fmt::join(names, ", ")));
  Head &head = heads[at];
  if (!head.isFlat)
    return Status::invalid(
        fmt::format("PTX: the blocks of entry '{}' have several dimensions; "
                    "only one is allowed",
                    head.name));
  Result<Target> target = Target::parse(chip);
  if (!target)
    return Status::invalid("PTX: " + target.status().message);

  CompiledKernel kernel;
  kernel.name = head.name;
  kernel.target = *target;
  kernel.signature = std::move(head.signature);
  kernel.launch.threads = head.required ? head.required : head.most;
  kernel.ptx = ptx;
  return kernel;
}

} // namespace replayjit::internal
