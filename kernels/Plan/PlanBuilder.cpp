//===- PlanBuilder.cpp - Begin and commit as programs ---------------------===//
//
// B1 to B8 and C1 to C4 are the rules listed in PlanReference.h. All is scalar:
// a block serves one row. What a launch does not give has address 0 and is a
// load that is not wanted, so that nothing branches and all loads that do not
// need each other are in flight together.
//
//===----------------------------------------------------------------------===//

#include "kernels/FamilyBuilder.h"
#include "kernels/KernelBuilder.h"
#include "kernels/Plan/PlanArgs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cstddef>

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

std::string inGroup(int group, const char *field) {
  return inPlanGroup(group) + field;
}

class PlanProgram {
public:
  PlanProgram(MLIRContext &context, const DecodeSpec &spec)
      : spec(spec), b(context, kernelName(spec, {}),
                      declarations(spec, /*addressesAreNumbers=*/true),
                      /*numWarps=*/1, /*blocksPerRow=*/1) {}

  OwningOpRef<ModuleOp> build() {
    row = ProgramIdOp::create(b, Axis::X);
    row64 = b.toI64(row);
    yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
    b.when(b.isLess(row, b.argument("batch")), [&] {
      readHeader();
      if (spec.family == Family::PlanBegin)
        begin();
      else
        commit();
    });
    return b.take();
  }

private:
  const DecodeSpec &spec;
  KernelBuilder b;
  Value row, row64; ///< The block's.
  Value yes;        ///< True.
  Value step, live; ///< i64, i32

  //===--- Scalars -----------------------------------------------------------//

  Value negated(Value condition) {
    return arith::XOrIOp::create(b, condition, yes);
  }
  Value isLessEqual(Value x, Value y) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::sle, x, y);
  }
  Value isIn(Value x, Value low, Value end) {
    return b.allOf(isLessEqual(low, x), b.isLess(x, end));
  }
  Value isNot0(Value x) {
    return negated(
        b.isEqual(x, x.getType().isInteger(64) ? b.i64(0) : b.i32(0)));
  }
  Value toI32(Value x) { return arith::TruncIOp::create(b, b.getI32Type(), x); }
  Value toInt(Value condition) {
    return b.select(condition, b.i32(1), b.i32(0));
  }
  Value isNull(Value slot) {
    return b.isLess(slot, b.i64(spec.nullSlot == NullSlot::Negative ? 0 : 1));
  }

  /// `condition`, which each lane found by itself, once all of them have: what
  /// they read for it may then be overwritten.
  Value agreed(Value condition) {
    constexpr int lanes = 32;
    Value one = b.select(condition, b.f32(1), b.f32(0));
    Value count = b.sum(SplatOp::create(b, b.tileType({lanes}), one));
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, count, b.f32(0));
  }

  //===--- Arrays ------------------------------------------------------------//

  Value isGiven(const std::string &array) { return isNot0(b.argument(array)); }
  Value pointer(const std::string &array, DataType type) {
    b.describe(array);
    return PointerOp::create(b,
                             PtrType::get(b.getContext(), b.elementType(type)),
                             b.argument(array));
  }
  /// An element, or zero where it is not wanted.
  Value load(const std::string &array, DataType type, Value index,
             Value isWanted) {
    return b.loadScalarIf(isWanted, pointer(array, type), index);
  }
  /// The row's i32 in an array that may not be given: then zero.
  Value loadRowInt(const std::string &array, Value isRow) {
    return load(array, DataType::I32, row64, b.allOf(isRow, isGiven(array)));
  }
  void store(const std::string &array, DataType type, Value index, Value value,
             Value isWanted) {
    b.storeScalarIf(isWanted, value, pointer(array, type), index);
  }
  void storeRow(const std::string &array, DataType type, Value value) {
    store(array, type, row64, value, yes);
  }

  void readHeader() {
    Value has = isGiven("header");
    auto take = [&](DataType type, size_t offset, const char *otherwise) {
      Value index = b.i64(offset / byteSize(type));
      return b.select(has, load("header", type, index, has),
                      b.argument(otherwise));
    };
    step = take(DataType::I64, offsetof(PlanHeader, step), "step");
    live = take(DataType::I32, offsetof(PlanHeader, live), "live");
  }

  //===--- Begin -------------------------------------------------------------//

  /// What must hold of a row, and how the report calls it if it does not.
  struct Check {
    Value isLegal;
    ErrorKind kind;
    Value value; ///< i64
    int layer;
  };
  SmallVector<Check> checks;

  void check(Value isLegal, ErrorKind kind, Value value, int layer = -1) {
    checks.push_back({isLegal, kind, b.toI64(value), layer});
  }

  /// A row's indices in one group, i64, with the defaults put in.
  struct GroupRow {
    Value isThere; ///< The launch has the group.
    Value state, ring, dst, track;
  };

  /// The row's index of a kind, or `otherwise` if the launch has none.
  Value readIndex(int group, const char *kind, Value isRow, Value otherwise) {
    const std::string name = inGroup(group, kind);
    Value index = b.mulI(row64, b.argument(name + ".stride"));
    Value has = isGiven(name + ".in");
    Value value =
        load(name + ".in", spec.indexType, index, b.allOf(isRow, has));
    return b.select(has, b.toI64(value), otherwise);
  }

  GroupRow readGroup(int group, Value isRow) {
    GroupRow at;
    at.isThere = b.isLess(b.i32(group), b.argument("numGroups"));
    isRow = b.allOf(isRow, at.isThere);
    at.state = readIndex(group, "state", isRow, b.i64(0));
    at.ring = readIndex(group, "ring", isRow, at.state);
    at.dst = readIndex(group, "dst", isRow, at.state);
    at.track = readIndex(group, "track", isRow, b.i64(nullSlotOf(spec)));
    return at;
  }

  void judge(int group, const GroupRow &at, Value usesRing) {
    auto checkIn = [&](Value isLegal, ErrorKind kind, Value value) {
      check(b.anyOf(negated(at.isThere), isLegal), kind, value, group);
    };
    Value slots = b.toI64(b.argument(inGroup(group, "slots")));
    Value ringSlots = b.toI64(b.argument(inGroup(group, "ringSlots")));
    checkIn(b.isLess(at.state, slots), ErrorKind::StateSlot, at.state);
    checkIn(b.anyOf(negated(usesRing), isIn(at.ring, b.i64(0), ringSlots)),
            ErrorKind::RingSlot, at.ring);
    checkIn(b.allOf(negated(isNull(at.dst)), b.isLess(at.dst, slots)),
            ErrorKind::DstSlot, at.dst);
    checkIn(b.isLess(at.track, slots), ErrorKind::TrackSlot, at.track);
  }

  void begin() {
    Value isRow = b.isLess(row, live); // B1
    Value key = b.toI64(load("keys", spec.indexType,
                             b.mulI(row64, b.argument("keyStride")), isRow));
    Value isThere = b.allOf(isRow, isLessEqual(b.i64(0), key));
    SmallVector<GroupRow> groups;
    for (int g = 0; g < maxPlanGroups; ++g) {
      groups.push_back(readGroup(g, isRow));
      Value isEmpty = b.allOf(groups[g].isThere, isNull(groups[g].state));
      isThere = b.allOf(isThere, negated(isEmpty));
    }

    Value isKey = b.isLess(key, b.toI64(b.argument("numKeys"))); // B2
    check(isKey, ErrorKind::CursorKey, key);
    Value isFresh = isNot0(loadRowInt("fresh", isRow)); // B3
    Value isLookedUp = b.allOf(b.allOf(isThere, isKey), negated(isFresh));
    const int32_t depth = spec.ringDepth;
    Value cursor = load("cursors", DataType::I32, key, isLookedUp);
    check(isIn(cursor, b.i32(0), b.i32(depth)), ErrorKind::WritePos, cursor);
    Value base = b.i32(0);
    if (spec.isCircular) {
      base = load("bases", DataType::I32, key, isLookedUp);
      check(isIn(base, b.i32(0), b.i32(depth)), ErrorKind::RingBase, base);
    }
    check(
        negated(b.allOf(isNot0(b.argument("requireFlushed")), isNot0(cursor))),
        ErrorKind::NotFlushed, cursor);
    Value drop = loadRowInt("dropNewest", isRow); // B6
    Value left = b.subI(b.toI64(cursor), b.toI64(drop));
    check(b.allOf(isLessEqual(b.i64(0), left),
                  isLessEqual(left, b.toI64(cursor))),
          ErrorKind::FlushedTooFar, b.subI(b.i64(0), left));
    Value feeds =
        b.allOf(isNot0(step), negated(isNot0(b.argument("forceAll"))));
    Value usesRing = b.anyOf(feeds, isNot0(left)); // B8
    for (int g = 0; g < maxPlanGroups; ++g)
      judge(g, groups[g], usesRing);

    Value isForced = b.anyOf(isNot0(b.argument("forceAll")), // B4
                             isNot0(loadRowInt("flushMask", isRow)));
    Value isPast = isPastEnd(isRow, toI32(left), isForced);
    Value isLegal = yes;
    for (const Check &check : checks)
      isLegal = b.allOf(isLegal, check.isLegal);
    fill(b.allOf(b.allOf(isThere, isLegal), negated(isPast)), key, toI32(left),
         base, isForced, groups);
    b.when(b.allOf(isThere, negated(isLegal)), [&] { reportFirst(); });
  }

  /// B5
  Value isPastEnd(Value isRow, Value cursor, Value isForced) {
    Value flushes =
        b.anyOf(isForced, b.isEqual(cursor, b.i32(spec.ringDepth - 1)));
    Value folded = b.toI64(loadRowInt("seqLen", isRow));
    if (spec.isCircular)
      folded = b.subI(folded, b.toI64(toInt(negated(isForced))));
    Value most = loadRowInt("noFlushPast", isRow);
    Value isLimited =
        b.allOf(b.allOf(isGiven("seqLen"), isGiven("noFlushPast")),
                isLessEqual(b.i32(0), most));
    return b.allOf(b.allOf(flushes, isLimited),
                   b.isLess(b.toI64(most), folded));
  }

  /// B7
  void fill(Value isLive, Value key, Value cursor, Value base, Value isForced,
            ArrayRef<GroupRow> groups) {
    auto orZero = [&](Value value) {
      return b.select(isLive, value, b.i32(0));
    };
    storeRow("writePos", DataType::I32, orZero(cursor));
    if (spec.isCircular)
      storeRow("ringBase", DataType::I32, orZero(base));
    storeRow("forceFlush", DataType::I32, orZero(toInt(isForced)));
    storeRow("rowKeys", DataType::I32, b.select(isLive, toI32(key), b.i32(-1)));
    storeRow("pending", DataType::I64, b.select(isLive, step, b.i64(0)));
    for (int g = 0; g < maxPlanGroups; ++g) {
      auto storeIndex = [&](const char *kind, Value slot) {
        const std::string out = inGroup(g, kind) + ".out";
        slot = b.select(isLive, slot, b.i64(nullSlotOf(spec)));
        if (spec.indexType == DataType::I32)
          slot = toI32(slot);
        store(out, spec.indexType, row64, slot,
              b.allOf(groups[g].isThere, isGiven(out)));
      };
      storeIndex("state", groups[g].state);
      storeIndex("ring", groups[g].ring);
      storeIndex("dst", groups[g].dst);
      storeIndex("track", groups[g].track);
    }
  }

  void reportFirst() {
    Value kind = b.i32(0), layer = b.i32(-1), value = b.i64(0);
    for (const Check &check : llvm::reverse(checks)) {
      kind = b.select(check.isLegal, kind, b.i32(int32_t(check.kind)));
      layer = b.select(check.isLegal, layer, b.i32(check.layer));
      value = b.select(check.isLegal, value, check.value);
    }
    report(kind, layer, value);
  }

  void report(Value kind, Value layer, Value value) {
    ReportOp::create(b, kind, row, layer, value,
                     pointer("errorWord", DataType::I32), spec.trapOnError);
  }

  //===--- Commit ------------------------------------------------------------//

  void commit() {
    auto read = [&](const char *array, DataType type) {
      return load(array, type, row64, yes);
    };
    Value pending = read("pending", DataType::I64);
    Value isPending = b.allOf(isNot0(step), b.isEqual(pending, step)); // C1
    Value cursor = read("writePos", DataType::I32);
    Value isForced = isNot0(read("forceFlush", DataType::I32));
    Value key = b.toI64(read("rowKeys", DataType::I32));
    Value count =
        b.select(isGiven("advanceBy"), loadRowInt("advanceBy", yes), b.i32(1));

    // As advance() of PlanArgs.h.
    Value last = b.i32(spec.ringDepth - 1);
    Value flushes = b.anyOf(isForced, b.isEqual(cursor, last));
    Value most = b.select(flushes, b.i32(1), b.subI(last, cursor));
    Value isLegal =
        b.allOf(isLessEqual(b.i32(0), count), isLessEqual(count, most));
    Value moves = b.allOf(isPending, isLegal);
    Value next = b.addI(cursor, count);
    if (spec.isCircular) {
      Value base = read("ringBase", DataType::I32);
      Value moved = b.remI(b.addI(base, cursor), spec.ringDepth);
      Value emptied = b.select(isForced, b.i32(0), moved);
      store("bases", DataType::I32, key, b.select(flushes, emptied, base),
            moves);
      next = b.select(flushes, b.select(isForced, b.i32(0), count), next);
    } else {
      next = b.select(flushes, b.i32(0), next);
    }
    store("cursors", DataType::I32, key, next, moves);
    store("pending", DataType::I64, row64, b.i64(0), agreed(isPending));
    b.when(b.allOf(isPending, negated(isLegal)), [&] { // C2
      report(b.i32(int32_t(ErrorKind::AdvanceBy)), b.i32(-1), b.toI64(count));
    });
    Value isOther = b.allOf(b.allOf(isNot0(step), isNot0(pending)),
                            negated(b.isEqual(pending, step)));
    b.when(isOther, [&] { // C4
      report(b.i32(int32_t(ErrorKind::StepMismatch)), b.i32(-1), pending);
    });
  }
};

} // namespace

OwningOpRef<ModuleOp> replayjit::internal::buildPlanBegin(
    MLIRContext &context, const DecodeSpec &spec, const DecodeTuning &) {
  return PlanProgram(context, spec).build();
}

OwningOpRef<ModuleOp> replayjit::internal::buildPlanCommit(
    MLIRContext &context, const DecodeSpec &spec, const DecodeTuning &) {
  return PlanProgram(context, spec).build();
}
