//===- TuningTable.h - Tunings that were measured ---------------*- C++ -*-===//
//
// What `replay-bench tune` found on one type of GPU. The file is JSON:
//
//   tool, chip, multiprocessors, device
//   specs: [{spec: the facts that count (Fact::isMinor are left out),
//            rows: [{rows, us, usualUs, tuning}]}]
//
// A member of `spec` or `tuning` that is missing has its default.
//
//===----------------------------------------------------------------------===//
#ifndef REPLAYJIT_RUNTIME_CACHE_TUNINGTABLE_H
#define REPLAYJIT_RUNTIME_CACHE_TUNINGTABLE_H

#include "kernels/Decode/DecodeSpec.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace replayjit::internal {

/// The fastest tuning for so many rows.
struct TunedRows {
  int rows = 1;
  double us = 0;      ///< Of one launch, median.
  double usualUs = 0; ///< The same with what is chosen without a table.
  DecodeTuning tuning;
};

/// Kernels of one spec.
struct TunedSpec {
  DecodeSpec spec;             ///< Minor facts have their defaults.
  std::vector<TunedRows> rows; ///< In ascending order, at least one.

  /// For at least that many rows (0: a large batch), else for the most.
  const TunedRows &forRows(int count) const;
  void add(TunedRows entry); ///< In its place; replaces one of as many rows.
};

struct TuningTable {
  std::string chip;        ///< Of the target, "sm_90a".
  int multiprocessors = 0; ///< Of the GPU.
  std::string device;      ///< In words.
  std::vector<TunedSpec> specs;

  bool isFor(const Target &target, int multiprocessors) const;
  /// Null: none is like `spec` in all that counts.
  const TunedSpec *find(const DecodeSpec &spec) const;
  TunedSpec &add(const DecodeSpec &spec); ///< Found, or new.

  std::string json() const;
  static Result<TuningTable> parse(std::string_view text,
                                   const std::string &file);
  static Result<TuningTable> read(const std::string &path);
};

/// `file`, which must be a table; if that is empty, tuning.json in the first of
/// a cache's roots that has a good one, of others `diagnose` hears (may be
/// null). Null if there is none.
Result<std::shared_ptr<const TuningTable>>
openTuningTable(const std::string &file, std::span<const std::string> roots,
                const std::function<void(const std::string &)> &diagnose = {});
/// What REPLAYJIT_TUNING names, or nothing.
std::string tuningFileFromEnvironment();

/// chooseTuning, but what `table` (may be null) says first, if it is of such a
/// GPU and legal for all of `spec`.
DecodeTuning chooseTuning(const DecodeSpec &spec, int rows,
                          const Target &target, int multiprocessors,
                          const TuningTable *table);

} // namespace replayjit::internal

#endif
