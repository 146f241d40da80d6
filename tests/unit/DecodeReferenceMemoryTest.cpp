//===- DecodeReferenceMemoryTest.cpp - Ring formats, indices, errors ------===//
//
// What a launch does to memory, against closed forms.
//
//===----------------------------------------------------------------------===//

#include "DecodeLaunch.h"
#include "kernels/Materialize/MaterializeReference.h"

#include <catch2/catch.hpp>

using namespace replayjit::internal;

namespace {

DecodeSpec makeBounded(RingFormat format, int H, int K, int V, int L) {
  DecodeSpec spec = makeSpec(H, H, K, V, L);
  spec.isKda = true;
  spec.gate = Gate::LowerBound;
  spec.ringFormat = format;
  return spec;
}

/// One head, K = V = 2, k = e0, v = (4, 0), q = e0, beta = 1/2, S0 = 0, and
/// every gate -1: numbers to follow by hand.
struct ByHand : Launch {
  ByHand(DecodeSpec changed, int batch, int slots)
      : Launch(changed, batch, slots) {
    args.scale = 1;
    args.lowerBound = -2; // times sigmoid(0)
    const DecodeTensors t = tensors();
    t.aLog.set(0, 0, 0);
    for (int i = 0; i < 2; ++i)
      t.dtBias.set(0, i, 0);
    for (int row = 0; row < batch; ++row) {
      const double q[] = {1, 0}, k[] = {1, 0}, v[] = {4, 0};
      for (int i = 0; i < 2; ++i) {
        t.q.set(row, i, q[i]);
        t.k.set(row, i, k[i]);
        t.v.set(row, i, v[i]);
        t.a.set(row, i, 0);
      }
      t.b.set(row, 0, 0);
    }
    for (int slot = 0; slot < slots; ++slot)
      for (int i = 0; i < 4; ++i)
        t.state.set(slot, i, 0);
  }
};

/// S[0, 0] after n tokens of ByHand: S <- S/e + (4 - S/e) / 2.
double stateAfter(int n) {
  double S = 0;
  for (int i = 0; i < n; ++i)
    S = (4 + S * std::exp(-1)) / 2;
  return S;
}

double dOf(int n) { return (4 - stateAfter(n) * std::exp(-1)) / 2; }

} // namespace

TEST_CASE("ring formats by hand", "[reference]") {
  for (RingFormat format :
       {RingFormat::Raw, RingFormat::Prefix, RingFormat::Predecayed})
    for (bool separate : {false, true}) {
      DecodeSpec spec = makeBounded(format, 1, 2, 2, 4);
      spec.hasSeparateQkv = separate;
      ByHand launch(spec, 1, 1);
      const DecodeTensors t = launch.tensors();
      for (int m = 0; m < 4; ++m) {
        t.writePos.set(0, 0, m);
        replayStep(spec, launch.args);
        CHECK(t.out.get(0, 0) == Approx(stateAfter(m + 1)).epsilon(1e-5));
        if (m == 3)
          break;
        const bool sums = format != RingFormat::Raw;
        const bool decays = format == RingFormat::Predecayed;
        CHECK(t.dRing.get(0, m * 2) == Approx(dOf(m)).epsilon(1e-5));
        CHECK(t.gRing.get(0, m * 2 + 1) == (sums ? -m - 1 : -1));
        CHECK(t.kRing.get(0, m * 2) ==
              Approx(decays ? std::exp(m + 1) : 1).epsilon(1e-5));
        CHECK(t.state.get(0, 0) == 0);
      }
      CHECK(t.state.get(0, 0) == Approx(stateAfter(4)).epsilon(1e-5));
      CHECK(std::isnan(t.gRing.get(0, 3 * 2))); // a flush appends nothing
      CHECK(launch.guardsIntact());
    }
}

TEST_CASE("a circular ring keeps the token of a natural flush", "[reference]") {
  DecodeSpec spec = makeBounded(RingFormat::Predecayed, 1, 2, 2, 4);
  spec.isCircular = true;
  ByHand launch(spec, 1, 1);
  const DecodeTensors t = launch.tensors();
  RingCursor cursor{0, 2};
  for (int token = 0; token < 9; ++token) {
    t.writePos.set(0, 0, cursor.writePos);
    t.ringBase.set(0, 0, cursor.base);
    const int place = (cursor.base + cursor.writePos) % 4;
    replayStep(spec, launch.args);
    // Flushes come at m = 3 and leave m = 1: after tokens 3, 6 and so on.
    const bool flush = cursor.writePos == 3;
    CHECK(flush == (token > 0 && token % 3 == 0));
    if (flush)
      CHECK(t.state.get(0, 0) == Approx(stateAfter(token)).epsilon(1e-5));
    const int P = flush ? 1 : cursor.writePos + 1;
    CHECK(t.gRing.get(0, place * 2) == -P);
    CHECK(t.kRing.get(0, place * 2) == Approx(std::exp(P)).epsilon(1e-5));
    CHECK(t.dRing.get(0, place * 2) == Approx(dOf(token)).epsilon(1e-5));
    cursor = nextCursor(spec, cursor, false);
    if (flush)
      CHECK(cursor == RingCursor{1, place});
    launch.forgetRing(0, cursor);
    CHECK(t.out.get(0, 0) == Approx(stateAfter(token + 1)).epsilon(1e-5));
  }
  // A forced flush wins over a natural one: all is folded, nothing appended.
  while (cursor.writePos < 3) {
    t.writePos.set(0, 0, cursor.writePos);
    t.ringBase.set(0, 0, cursor.base);
    replayStep(spec, launch.args);
    cursor = nextCursor(spec, cursor, false);
  }
  t.writePos.set(0, 0, 3);
  t.forceFlush.set(0, 0, 1);
  const int place = (cursor.base + 3) % 4;
  launch.forgetRing(0, cursor);
  replayStep(spec, launch.args);
  CHECK(t.state.get(0, 0) == Approx(t.out.get(0, 0)).epsilon(1e-5));
  CHECK(std::isnan(t.kRing.get(0, place * 2)));
  CHECK(nextCursor(spec, cursor, true) == RingCursor{0, 0});
}

TEST_CASE("cursors of a circular batch", "[reference]") {
  // Four slots, three rows, the last one padding; the first is forced.
  DecodeSpec spec = makeBounded(RingFormat::Prefix, 1, 2, 2, 4);
  spec.isCircular = true;
  ByHand launch(spec, 3, 4);
  const DecodeTensors t = launch.tensors();
  std::vector<RingCursor> cursors = {{0, 0}, {2, 1}, {3, 2}, {0, 0}};
  const int slots[] = {1, 2, -1}, force[] = {1, 0, 0};
  for (int row = 0; row < 3; ++row) {
    t.stateIndices.set(row, 0, slots[row]);
    t.forceFlush.set(row, 0, force[row]);
    const RingCursor cursor = cursors[slots[row] < 0 ? 0 : slots[row]];
    t.writePos.set(row, 0, cursor.writePos);
    t.ringBase.set(row, 0, cursor.base);
  }
  for (int slot : {1, 2}) // histories of zeros
    for (int i = 0; i < 8; ++i)
      for (const HostTensor &ring : {t.dRing, t.kRing, t.gRing})
        ring.set(slot, i, 0);
  replayStep(spec, launch.args);
  for (int row = 0; row < 3; ++row) {
    const DecodeRow did = readRow(spec, launch.args, row);
    CHECK(did.isLive == (row < 2));
    if (did.isLive)
      cursors[slots[row]] = nextCursor(spec, did.cursor, did.forced);
  }
  CHECK(cursors == std::vector<RingCursor>{{0, 0}, {0, 0}, {1, 1}, {0, 0}});
  CHECK(t.state.get(1, 0) == Approx(2)); // folded: the token alone
  CHECK(t.state.get(2, 0) == 0);         // not in the checkpoint yet ..
  CHECK(t.gRing.get(2, 1 * 2) == -1);    // .. but in the ring, at its base
  CHECK(launch.error.count == 0);
}

TEST_CASE("packed decode reads no cursor and no ring", "[reference]") {
  for (bool isKda : {false, true}) {
    DecodeSpec spec = makeSpec(1, 3, 4, 3, 1), packed = spec;
    spec.isKda = packed.isKda = isKda;
    packed.family = Family::Packed;
    Launch x(spec, 2, 3), y(packed, 2, 3); // the same random values
    y.args.writePos = y.args.forceFlush = 0;
    y.args.dRing = y.args.kRing = y.args.gRing = 0;
    for (int step = 0; step < 3; ++step) {
      x.freshInputs();
      y.freshInputs();
      replayStep(spec, x.args);
      replayStep(packed, y.args);
    }
    for (int slot : {1, 2})
      for (int i = 0; i < 36; ++i)
        CHECK(x.tensors().state.get(slot, i) == y.tensors().state.get(slot, i));
    for (int i = 0; i < 9; ++i)
      CHECK(x.tensors().out.get(1, i) == y.tensors().out.get(1, i));
  }
}

TEST_CASE("flushes and tracks write to slots of their own", "[reference]") {
  // Four rows at m = 1: plain, tracked, forced, tracked and forced.
  DecodeSpec spec = makeBounded(RingFormat::Raw, 1, 2, 2, 4);
  spec.hasRingIndices = spec.hasDstIndices = spec.hasTrackIndices = true;
  for (bool circular : {false, true}) {
    spec.isCircular = circular;
    if (circular)
      spec.ringFormat = RingFormat::Prefix;
    for (bool full : {false, true}) { // at m = 3: all flush
      ByHand launch(spec, 4, 12);
      launch.args.ringSlots = 5;
      const DecodeTensors t = launch.tensors();
      const int m = full ? 3 : 1;
      for (int row = 0; row < 4; ++row) {
        t.stateIndices.set(row, 0, row);
        t.ringIndices.set(row, 0, 4 - row);
        t.dstIndices.set(row, 0, 4 + row);
        t.trackIndices.set(row, 0, row % 2 ? 8 + row : -1);
        t.forceFlush.set(row, 0, row / 2);
        for (int j = 0; j < m; ++j) // as after m tokens
          for (int i = 0; i < 2; ++i) {
            t.dRing.set(4 - row, j * 2 + i, i == 0 ? dOf(j) : 0);
            t.kRing.set(4 - row, j * 2 + i, i == 0);
            t.gRing.set(4 - row, j * 2 + i, circular ? -j - 1 : -1);
          }
        t.writePos.set(row, 0, m);
      }
      replayStep(spec, launch.args);
      for (int row = 0; row < 4; ++row) {
        const bool forced = row / 2, flush = full || forced;
        CHECK(t.out.get(row, 0) == Approx(stateAfter(m + 1)));
        CHECK(t.state.get(row, 0) == 0); // the checkpoint
        const bool historyOnly = circular && full && !forced;
        const double folded = stateAfter(historyOnly ? m : m + 1);
        CHECK(t.state.get(4 + row, 0) == Approx(flush ? folded : 0));
        CHECK(t.state.get(8 + row, 0) ==
              Approx(row % 2 ? stateAfter(m + 1) : 0));
        const bool appended = !flush || historyOnly;
        CHECK(std::isnan(t.gRing.get(4 - row, m * 2)) == !appended);
      }
      CHECK(launch.error.count == 0);
      CHECK(launch.guardsIntact());
    }
  }
}

TEST_CASE("bad indices are padding and are reported", "[reference]") {
  DecodeSpec spec = makeBounded(RingFormat::Prefix, 1, 2, 2, 4);
  spec.isCircular = true;
  spec.hasRingIndices = spec.hasDstIndices = spec.hasTrackIndices = true;
  struct Bad {
    int slot, writePos, ring, dst, track, base;
    ErrorKind kind;
    int64_t value;
  };
  const Bad rows[] = {
      {-1, 9, 9, 9, 9, 9, ErrorKind::None, 0}, // null: nothing else is read
      {6, 4, 9, 9, 9, 9, ErrorKind::StateSlot, 6},
      {1, 4, 9, 9, 9, 9, ErrorKind::WritePos, 4},
      {1, -2, 9, 9, 9, 9, ErrorKind::WritePos, -2},
      {1, 0, 5, 9, 9, 9, ErrorKind::RingSlot, 5},
      {1, 0, -1, 9, 9, 9, ErrorKind::RingSlot, -1},
      {1, 0, 0, 6, 9, 9, ErrorKind::DstSlot, 6},
      {1, 0, 0, -1, 9, 9, ErrorKind::DstSlot, -1},
      {1, 0, 0, 2, 6, 9, ErrorKind::TrackSlot, 6},
      {1, 0, 0, 2, -7, 4, ErrorKind::RingBase, 4},
      {1, 0, 0, 2, 3, -1, ErrorKind::RingBase, -1},
  };
  for (const Bad &bad : rows) {
    ByHand launch(spec, 1, 6);
    launch.args.ringSlots = 5;
    launch.args.layer = 11;
    const DecodeTensors t = launch.tensors();
    t.stateIndices.set(0, 0, bad.slot);
    t.writePos.set(0, 0, bad.writePos);
    t.ringIndices.set(0, 0, bad.ring);
    t.dstIndices.set(0, 0, bad.dst);
    t.trackIndices.set(0, 0, bad.track);
    t.ringBase.set(0, 0, bad.base);
    t.forceFlush.set(0, 0, 1);
    replayStep(spec, launch.args);
    replayStep(spec, launch.args);
    const ErrorWord &error = launch.error;
    INFO("kind " << uint32_t(bad.kind) << ", value " << bad.value);
    CHECK(t.out.get(0, 0) == 0);
    CHECK(error.count == (bad.kind == ErrorKind::None ? 0 : 2));
    CHECK(error.kind == uint32_t(bad.kind));
    CHECK(error.value == bad.value);
    CHECK(error.layer == (error.count ? 11 : 0));
    for (int slot = 0; slot < 6; ++slot)
      CHECK(t.state.get(slot, 0) == 0);
    launch.args.errorWord = 0; // it may be absent
    replayStep(spec, launch.args);
    CHECK(launch.guardsIntact());
  }

  // The first of several rows is kept; zero is a null slot where asked.
  spec.nullSlot = NullSlot::NonPositive;
  ByHand launch(spec, 4, 6);
  const DecodeTensors t = launch.tensors();
  const int slots[] = {0, 7, 2, 9}, dst[] = {3, 3, 0, 3};
  for (int row = 0; row < 4; ++row) {
    t.stateIndices.set(row, 0, slots[row]);
    t.dstIndices.set(row, 0, dst[row]);
    t.trackIndices.set(row, 0, 0); // null
  }
  replayStep(spec, launch.args);
  CHECK(launch.error.count == 3);
  CHECK(launch.error.row == 1);
  CHECK(launch.error.value == 7);
  CHECK(readRow(spec, launch.args, 2).error == ErrorKind::DstSlot);
}

TEST_CASE("materialize folds each layer", "[reference]") {
  for (bool circular : {false, true}) {
    DecodeSpec spec = makeBounded(RingFormat::Predecayed, 1, 2, 2, 4);
    spec.isCircular = circular;
    // Two layers of other sizes of padding; the second lies 3 tokens behind.
    ByHand first(spec, 1, 6), second(spec, 1, 6);
    second.args.statePitch = first.args.statePitch - 1;
    auto advance = [&](ByHand &launch, int tokens) {
      const DecodeTensors t = launch.tensors();
      RingCursor cursor{0, circular ? 3 : 0};
      t.stateIndices.set(0, 0, 2);
      for (int i = 0; i < 4; ++i)
        t.state.set(2, i, 0);
      for (int i = 0; i < tokens; ++i) {
        t.writePos.set(0, 0, cursor.writePos);
        t.ringBase.set(0, 0, cursor.base);
        replayStep(spec, launch.args);
        cursor = nextCursor(spec, cursor, false);
      }
      return cursor;
    };
    const int cycle = circular ? 3 : 4;
    const RingCursor cursor = advance(first, 3);
    CHECK(advance(second, 3 + cycle).writePos == cursor.writePos);
    std::vector<ReplayLayer> layers;
    for (const ByHand *launch : {&first, &second}) {
      const DecodeArgs &a = launch->args;
      layers.push_back({a.state, a.dRing, a.kRing, a.gRing, a.statePitch,
                        a.dPitch, a.kPitch, a.gPitch});
    }
    spec.family = Family::Materialize;
    ErrorWord error;
    // To another slot, masked, null src, null dst, three bad rows, in place.
    std::vector<int32_t> src = {2, 2, -1, 2, 6, 2, 2, 2},
                         dst = {4, 5, 1, -1, 1, 6, 1, 2},
                         mask = {1, 0, 1, -1, 1, 1, 1, 7};
    std::vector<int32_t> writePos(8, cursor.writePos), base(8, cursor.base);
    writePos[6] = 4;
    MaterializeArgs args;
    auto address = [](auto &values) {
      return reinterpret_cast<uint64_t>(values.data());
    };
    args.layers = address(layers);
    args.srcIndices = address(src);
    args.dstIndices = address(dst);
    args.writePos = address(writePos);
    args.ringBase = address(base);
    args.mask = address(mask);
    args.errorWord = reinterpret_cast<uint64_t>(&error);
    args.batch = 8;
    args.numLayers = 2;
    args.slots = 6;
    // The second layer's cursor differs for circular rings: skip its place.
    if (circular)
      args.numLayers = 1;
    materializeLaunch(spec, args);
    const double now = stateAfter(3), later = stateAfter(3 + cycle);
    for (int slot : {2, 4})
      CHECK(first.tensors().state.get(slot, 0) == Approx(now).epsilon(1e-5));
    for (int slot : {1, 3, 5})
      CHECK(first.tensors().state.get(slot, 0) == 0);
    if (!circular)
      for (int slot : {2, 4})
        CHECK(second.tensors().state.get(slot, 0) ==
              Approx(later).epsilon(1e-5));
    CHECK(error.count == 3 * uint32_t(args.numLayers));
    CHECK(error.row == 4);
    CHECK(error.layer == 0);
    CHECK(error.value == 6);
    CHECK(error.kind == uint32_t(ErrorKind::StateSlot));
  }
}

TEST_CASE("materialize takes any ring slot of an empty ring", "[reference]") {
  for (bool circular : {false, true}) {
    DecodeSpec spec = makeBounded(RingFormat::Prefix, 1, 2, 2, 4);
    spec.isCircular = circular;
    spec.hasRingIndices = true;
    ByHand pool(spec, 1, 6);
    const DecodeArgs &a = pool.args;
    for (int slot = 0; slot < 6; ++slot)
      pool.tensors().state.set(slot, 0, slot);
    const ReplayLayer layer = {a.state,      a.dRing,  a.kRing,  a.gRing,
                               a.statePitch, a.dPitch, a.kPitch, a.gPitch};
    spec.family = Family::Materialize;
    for (int ring : {-1, 5, INT32_MIN, INT32_MAX})
      for (int writePos : {0, 1}) {
        INFO("ring " << ring << ", write_pos " << writePos);
        auto address = [](const auto &value) {
          return reinterpret_cast<uint64_t>(&value);
        };
        const int32_t src = 3, dst = writePos ? 2 : 1, base = 2, mask = 1;
        ErrorWord error;
        MaterializeArgs args;
        args.layers = address(layer);
        args.srcIndices = address(src);
        args.dstIndices = address(dst);
        args.ringIndices = address(ring);
        args.writePos = address(writePos);
        args.ringBase = address(base);
        args.mask = address(mask);
        args.errorWord = address(error);
        args.batch = args.numLayers = 1;
        args.slots = 6;
        args.ringSlots = 5;
        materializeLaunch(spec, args);
        CHECK(pool.tensors().state.get(dst, 0) == (writePos ? 2 : 3));
        CHECK(error.count == uint32_t(writePos));
        CHECK(error.kind ==
              uint32_t(writePos ? ErrorKind::RingSlot : ErrorKind::None));
        CHECK(error.value == (writePos ? ring : 0));
      }
  }
}
