//===- JsonReader.h - JSON objects, read strictly ---------------*- C++ -*-===//
//
// Private to runtime/cache. Types are checked before a value is taken: a wrong
// one is an error of ours, and no exception of the JSON library's.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_CACHE_JSONREADER_H
#define REPLAYJIT_RUNTIME_CACHE_JSONREADER_H

#include "base/CompiledKernel.h"
#include "base/Words.h"
#include "kernels/Facts.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace replayjit::internal {

using Json = nlohmann::ordered_json;

template <>
inline constexpr std::array<std::string_view, 5> wordsOf<KernelParam::Kind> = {
    "pointer", "i64", "i32", "f32", "bytes"};

/// Stands before what makes a Json of so much text, or the text of it. The
/// library's destructor allocates, and an exception that leaves it ends the
/// process: so this takes, or throws std::bad_alloc, as much memory as the work
/// needs at most, and gives it back when another allocation of its thread
/// fails.
class JsonReserve {
public:
  explicit JsonReserve(size_t textBytes);
  ~JsonReserve();
  JsonReserve(const JsonReserve &) = delete;

private:
  void *const outer; ///< That of the scope around, perhaps null.
};

/// Reads one object. The first failure goes into a status that nested readers
/// share; after it a field keeps what it had.
class ObjectReader {
public:
  /// The whole of a file, which errors call `file`.
  ObjectReader(Status &status, const Json &json,
               const std::string &file = "kernel.json");
  /// `path` is what errors call the object inside `outer`.
  ObjectReader(const ObjectReader &outer, std::string path, const Json &json);

  bool has(const char *name) const {
    return json.is_object() && json.contains(name);
  }
  void read(const char *name, bool &field) const;
  void read(const char *name, int &field) const;
  void read(const char *name, uint32_t &field) const;
  void read(const char *name, uint64_t &field) const;
  void read(const char *name, double &field) const; ///< Any finite number.
  void read(const char *name, std::string &field) const;
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void read(const char *name, Enum &field) const {
    field = Enum(readWord(name, wordsOf<Enum>, int(field)));
  }
  /// A fact as its row of a table says; `value` if that fails.
  int readFact(const char *name, const Allowed &allowed, int value) const;
  ObjectReader object(const char *name) const;
  const Json *array(const char *name) const; ///< Null on failure.

  void know(const char *name) const { known.push_back(name); }
  /// Fails if there is a member that was neither read nor made known.
  void refuseOthers() const;
  void fail(const char *name, std::string_view why) const;

private:
  const Json *member(const char *name) const;
  int readWord(const char *name, std::span<const std::string_view> words,
               int value) const;
  template <typename Int> void readInteger(const char *name, Int &field) const;

  Status &status;
  std::string path; ///< What stands before a member's name in errors.
  const Json &json;
  mutable std::vector<std::string_view> known;
};

} // namespace replayjit::internal

#endif
