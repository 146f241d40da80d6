//===- PlanArgs.cpp - Which arguments of a plan are legal -----------------===//

#include "kernels/Plan/PlanArgs.h"

#include <fmt/format.h>

namespace replayjit::internal {

/// Without a live row begin reads nothing; a header may say that there is one.
static bool readsRows(const PlanArgs &args) {
  return args.live > 0 || args.header != 0;
}

static Status checkRange(const char *name, int64_t value, int64_t most) {
  if (value >= 0 && value <= most)
    return Status::ok();
  return Status::invalid(fmt::format(
      "{}: {} is not allowed; it must be 0 to {}", name, value, most));
}

static ArgumentValues valuesOf(const LaunchRules &rules, const PlanArgs &args) {
  return {rules.tables[0], &args};
}

static ArgumentValues valuesOfGroup(const LaunchRules &rules,
                                    const PlanArgs &args, int group) {
  return {rules.tables[1], &args.groups[group], inPlanGroup(group)};
}

/// Of rows that each write a slot of their own: in a step the cursor, the ring
/// and the track slot, and otherwise the destination. Forks read one state.
static Status checkOwnSlots(const DecodeSpec &spec, const PlanArgs &args) {
  const int32_t rows = args.header ? args.batch : args.live;
  const bool isStep = args.header != 0 || args.step != 0;
  const bool writesRing = isStep && spec.ringDepth > 1;
  auto shared = [rows](const std::string &name) {
    return Status::invalid(
        fmt::format("{}: 0 is not allowed with {} rows; it gives all of them "
                    "one index, of what they would write at once",
                    name, rows));
  };
  if (rows <= 1)
    return Status::ok();
  if (isStep && args.keyStride == 0)
    return shared("keyStride");
  for (int g = 0; g < args.numGroups; ++g) {
    const PlanGroup &group = args.groups[g];
    // What has no array of its own is the state's.
    auto isShared = [](const PlanIndices &indices) {
      return indices.in != 0 && indices.stride == 0;
    };
    if (group.state.stride == 0 &&
        (!group.dst.in || (writesRing && !group.ring.in)))
      return shared(inPlanGroup(g) + "state.stride");
    if (isShared(group.dst))
      return shared(inPlanGroup(g) + "dst.stride");
    if (writesRing && isShared(group.ring))
      return shared(inPlanGroup(g) + "ring.stride");
    if (isStep && isShared(group.track))
      return shared(inPlanGroup(g) + "track.stride");
  }
  return Status::ok();
}

static Status checkGroup(const LaunchRules &rules, const PlanArgs &args,
                         int group) {
  const ArgumentValues values = valuesOfGroup(rules, args, group);
  if (Status status = checkCounts(values); !status)
    return status;
  if (args.groups[group].state.in == 0)
    return missingAddress(values.where + "state.in");
  return checkPointers(values);
}

static Status checkBegin(const LaunchRules &rules, const PlanArgs &args) {
  for (const Status &status :
       {checkRange("live", args.live, args.batch),
        checkRange("numGroups", args.numGroups, maxPlanGroups)})
    if (!status)
      return status;
  if (args.keys == 0 && readsRows(args))
    return missingAddress("keys");
  if ((args.seqLen == 0) != (args.noFlushPast == 0))
    return missingAddress(args.seqLen ? "noFlushPast" : "seqLen");
  for (int g = 0; g < args.numGroups && readsRows(args); ++g)
    if (Status status = checkGroup(rules, args, g); !status)
      return status;
  return checkOwnSlots(rules.spec, args);
}

Status validateArgs(const LaunchRules &rules, const PlanArgs &args) {
  const ArgumentValues values = valuesOf(rules, args);
  if (args.step < 0)
    return Status::invalid(fmt::format(
        "step: {} is not allowed; it must be 0 or more", args.step));
  if (Status status = checkCounts(values); !status)
    return status;
  if (Status status = checkPointers(values); !status)
    return status;
  return rules.spec.family == Family::PlanBegin ? checkBegin(rules, args)
                                                : Status::ok();
}

std::vector<NamedAddress> addressesOf(const LaunchRules &rules,
                                      const PlanArgs &args) {
  std::vector<NamedAddress> all;
  if (args.batch == 0)
    return all;
  appendAddresses(valuesOf(rules, args), all);
  if (!readsRows(args))
    std::erase_if(all, [](const NamedAddress &pointer) {
      return find(planArguments(), pointer.name).isPer(perLiveRow);
    });
  if (rules.spec.family == Family::PlanBegin && readsRows(args))
    for (int g = 0; g < args.numGroups; ++g)
      appendAddresses(valuesOfGroup(rules, args, g), all);
  return all;
}

} // namespace replayjit::internal
