//===- PlanArgs.cpp - Which arguments of a plan are legal -----------------===//

#include "kernels/Plan/PlanArgs.h"

#include <fmt/format.h>

#include <array>
#include <span>

namespace replayjit::internal {

namespace {
struct Address {
  const char *name;
  uint64_t value;
  int bytes;            ///< What must divide it.
  bool isNeeded = true; ///< Else it may be 0.
};
} // namespace

static Status checkAddresses(std::span<const Address> addresses,
                             const std::string &where = "") {
  for (const Address &address : addresses) {
    if (address.value == 0 && address.isNeeded)
      return Status::invalid(
          fmt::format("{}{}: 0 is not allowed; it must be a device address",
                      where, address.name));
    if (address.value % address.bytes != 0)
      return Status::invalid(fmt::format("{}{}: {:#x} is not allowed; it must "
                                         "be a multiple of {} bytes",
                                         where, address.name, address.value,
                                         address.bytes));
  }
  return Status::ok();
}

static Status checkCount(const char *name, int64_t value, int64_t most) {
  if (value >= 0 && value <= most)
    return Status::ok();
  return Status::invalid(fmt::format(
      "{}: {} is not allowed; it must be 0 to {}", name, value, most));
}

static std::string inGroup(int number) {
  return fmt::format("groups[{}].", number);
}

static std::array<Address, 8> addressesOfGroup(const DecodeSpec &spec,
                                               const PlanGroup &group) {
  const int index = byteSize(spec.indexType);
  return {{{"state.in", group.state.in, index},
           {"ring.in", group.ring.in, index, false},
           {"dst.in", group.dst.in, index, false},
           {"track.in", group.track.in, index, false},
           {"state.out", group.state.out, index, false},
           {"ring.out", group.ring.out, index, false},
           {"dst.out", group.dst.out, index, false},
           {"track.out", group.track.out, index, false}}};
}

static Status checkGroup(const DecodeSpec &spec, const PlanGroup &group,
                         int number) {
  const std::string where = inGroup(number);
  if (group.slots < 0 || group.ringSlots < 0)
    return Status::invalid(
        fmt::format("{}{}: {} is not allowed; it must be 0 or more", where,
                    group.slots < 0 ? "slots" : "ringSlots",
                    group.slots < 0 ? group.slots : group.ringSlots));
  return checkAddresses(addressesOfGroup(spec, group), where);
}

/// What begin and commit share.
static std::array<Address, 9> addressesOfRows(const DecodeSpec &spec,
                                              const PlanArgs &args) {
  return {{{"cursors", args.cursors, 4},
           {"bases", args.bases, 4, spec.isCircular},
           {"header", args.header, 8, false},
           {"writePos", args.writePos, 4},
           {"ringBase", args.ringBase, 4, spec.isCircular},
           {"forceFlush", args.forceFlush, 4},
           {"rowKeys", args.rowKeys, 4},
           {"pending", args.pending, 8},
           {"errorWord", args.errorWord, alignof(ErrorWord), false}}};
}

/// Without a live row begin reads nothing; a header may say that there is one.
static bool readsRows(const PlanArgs &args) {
  return args.live > 0 || args.header != 0;
}

static std::array<Address, 6> addressesOfBegin(const DecodeSpec &spec,
                                               const PlanArgs &args) {
  return {{{"keys", args.keys, byteSize(spec.indexType), readsRows(args)},
           {"flushMask", args.flushMask, 4, false},
           {"fresh", args.fresh, 4, false},
           {"seqLen", args.seqLen, 4, args.noFlushPast != 0},
           {"noFlushPast", args.noFlushPast, 4, args.seqLen != 0},
           {"dropNewest", args.dropNewest, 4, false}}};
}

static std::array<Address, 1> addressesOfCommit(const PlanArgs &args) {
  return {{{"advanceBy", args.advanceBy, 4, false}}};
}

static Status checkRows(const DecodeSpec &spec, const PlanArgs &args) {
  if (args.step < 0)
    return Status::invalid(fmt::format(
        "step: {} is not allowed; it must be 0 or more", args.step));
  if (Status status = checkCount("batch", args.batch, INT32_MAX); !status)
    return status;
  return checkAddresses(addressesOfRows(spec, args));
}

static Status validateBegin(const DecodeSpec &spec, const PlanArgs &args) {
  if (Status status = checkRows(spec, args); !status)
    return status;
  if (Status status = checkCount("live", args.live, args.batch); !status)
    return status;
  if (Status status = checkCount("numKeys", args.numKeys, INT32_MAX); !status)
    return status;
  if (Status status = checkCount("numGroups", args.numGroups, maxPlanGroups);
      !status)
    return status;
  if (Status status = checkAddresses(addressesOfBegin(spec, args)); !status)
    return status;
  for (int g = 0; g < args.numGroups && readsRows(args); ++g)
    if (Status status = checkGroup(spec, args.groups[g], g); !status)
      return status;
  return Status::ok();
}

static Status validateCommit(const DecodeSpec &spec, const PlanArgs &args) {
  if (Status status = checkRows(spec, args); !status)
    return status;
  return checkAddresses(addressesOfCommit(args));
}

Status validateArgs(const DecodeSpec &spec, const PlanArgs &args) {
  return spec.family == Family::PlanCommit ? validateCommit(spec, args)
                                           : validateBegin(spec, args);
}

std::vector<NamedAddress> addressesOf(const DecodeSpec &spec,
                                      const PlanArgs &args) {
  std::vector<NamedAddress> all;
  if (args.batch == 0)
    return all;
  auto append = [&all](std::span<const Address> addresses,
                       const std::string &where = "") {
    for (const Address &address : addresses)
      if (address.value)
        all.push_back({where + address.name, address.value});
  };
  append(addressesOfRows(spec, args));
  if (spec.family == Family::PlanCommit)
    append(addressesOfCommit(args));
  if (spec.family == Family::PlanCommit || !readsRows(args))
    return all;
  append(addressesOfBegin(spec, args));
  for (int g = 0; g < args.numGroups; ++g)
    append(addressesOfGroup(spec, args.groups[g]), inGroup(g));
  return all;
}

} // namespace replayjit::internal
