//===- ArgsErrorsTest.cpp - The sentences for illegal arguments -----------===//

#include "kernels/Decode/DecodeArgs.h"
#include "kernels/Materialize/MaterializeArgs.h"

#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <string>
#include <vector>

using namespace replayjit::internal;

static constexpr float infinite = std::numeric_limits<float>::infinity();

/// Arguments that are legal for `spec`, with all that any spec can have.
static DecodeArgs legalArgs(const DecodeSpec &spec) {
  const int64_t H = spec.numKeyHeads, HV = spec.numValueHeads;
  const int64_t K = spec.headDimK, V = spec.headDimV, L = spec.ringDepth;
  DecodeArgs args;
  uint64_t next = 0x10000;
  for (uint64_t *address : {&args.q,
                            &args.k,
                            &args.v,
                            &args.a,
                            &args.b,
                            &args.aLog,
                            &args.dtBias,
                            &args.out,
                            &args.state,
                            &args.dRing,
                            &args.kRing,
                            &args.gRing,
                            &args.stateIndices,
                            &args.writePos,
                            &args.forceFlush,
                            &args.ringBase,
                            &args.ringIndices,
                            &args.dstIndices,
                            &args.trackIndices,
                            &args.skip,
                            &args.outGate,
                            &args.errorWord})
    *address = next += 0x100;
  args.qStride = 2 * H * K + HV * V;
  args.kStride = H * K;
  args.vStride = HV * V;
  args.aStride = HV * gateWidth(spec);
  args.bStride = HV;
  args.outStride = args.outGateStride = HV * V;
  args.statePitch = HV * V * K;
  args.dPitch = HV * L * V;
  args.kPitch = H * L * K;
  args.gPitch = HV * L * gateWidth(spec);
  args.batch = 4;
  args.slots = args.ringSlots = 8;
  return args;
}

static MaterializeArgs legalMaterializeArgs() {
  MaterializeArgs args;
  uint64_t next = 0x10000;
  for (uint64_t *address :
       {&args.layers, &args.srcIndices, &args.dstIndices, &args.ringIndices,
        &args.writePos, &args.ringBase, &args.mask, &args.errorWord})
    *address = next += 0x100;
  args.batch = 4;
  args.numLayers = 3;
  args.slots = args.ringSlots = 8;
  return args;
}

static DecodeSpec materialize() {
  DecodeSpec spec;
  spec.family = Family::Materialize;
  return spec;
}

static DecodeSpec predecayed(int ringDepth) {
  DecodeSpec spec = *modelPreset("kimi-k3", 8);
  spec.ringFormat = RingFormat::Predecayed;
  spec.ringDepth = ringDepth;
  return spec;
}

/// What validateArgs says of `good` after `change`; nothing if it is legal.
template <typename Args>
static std::string said(const DecodeSpec &spec, Args args,
                        const std::function<void(Args &)> &change) {
  change(args);
  Status status = validateArgs(spec, args);
  CHECK((status.isOk() || status.code == StatusCode::InvalidArgument));
  return status.message;
}

static std::string said(const DecodeSpec &spec,
                        const std::function<void(DecodeArgs &)> &change) {
  return said(spec, legalArgs(spec), change);
}

TEST_CASE("legal arguments", "[error]") {
  std::vector<DecodeSpec> specs(6);
  specs[1].isKda = true;
  specs[2].family = Family::Packed;
  specs[2].ringDepth = 1;
  specs[3].hasSeparateQkv = specs[3].hasRingIndices = true;
  specs[3].hasDstIndices = specs[3].hasTrackIndices = true;
  specs[4] = predecayed(16);
  specs[4].isCircular = true;
  specs[5].alignment = 0;
  for (const DecodeSpec &spec : specs) {
    CHECK(said(spec, [](DecodeArgs &) {}) == "");
    CHECK(said(spec, [](DecodeArgs &a) { a.errorWord = 0; }) == "");
    CHECK(said(spec, [](DecodeArgs &a) { a.slots = 0; }) == "");
  }
  CHECK(validateArgs(materialize(), legalMaterializeArgs()).isOk());
  // Nothing to do, so nothing is looked at.
  CHECK(validateArgs(DecodeSpec(), DecodeArgs()).isOk());
  CHECK(validateArgs(materialize(), MaterializeArgs()).isOk());
  CHECK(said<MaterializeArgs>(materialize(), {},
                              [](MaterializeArgs &a) { a.batch = 4; }) == "");
}

TEST_CASE("pointers of every spec", "[error]") {
  DecodeSpec spec;
  spec.indexType = DataType::I64;
  struct Pointer {
    const char *name;
    uint64_t DecodeArgs::*field;
    int unit; ///< Bytes, with an alignment of 16.
    int own;  ///< Bytes of an element.
  };
  for (const Pointer &pointer :
       {Pointer{"q", &DecodeArgs::q, 16, 2},
        {"a", &DecodeArgs::a, 2, 2},
        {"b", &DecodeArgs::b, 2, 2},
        {"aLog", &DecodeArgs::aLog, 4, 4},
        {"dtBias", &DecodeArgs::dtBias, 4, 4},
        {"out", &DecodeArgs::out, 16, 2},
        {"state", &DecodeArgs::state, 16, 4},
        {"dRing", &DecodeArgs::dRing, 16, 4},
        {"kRing", &DecodeArgs::kRing, 16, 4},
        {"gRing", &DecodeArgs::gRing, 4, 4},
        {"stateIndices", &DecodeArgs::stateIndices, 8, 8},
        {"writePos", &DecodeArgs::writePos, 4, 4},
        {"forceFlush", &DecodeArgs::forceFlush, 4, 4}}) {
    const std::string name = pointer.name;
    auto at = [&](uint64_t address) {
      return said(spec, [&](DecodeArgs &a) { a.*pointer.field = address; });
    };
    auto mustDivide = [&](int bytes) {
      return ": 0x20001 is not allowed; the address must be a multiple of " +
             std::to_string(bytes) + " bytes";
    };
    spec.alignment = 16;
    CHECK(at(0) == name + ": 0 is not allowed; it must be a device address");
    CHECK(at(0x20001) == name + mustDivide(pointer.unit));
    CHECK(at(0x20000 + pointer.unit) == "");
    CHECK((at(0x20000 + pointer.own) == "") == (pointer.own == pointer.unit));
    spec.alignment = 0;
    CHECK(at(0x20001) == name + mustDivide(pointer.own));
    CHECK(at(0x20000 + pointer.own) == "");
  }
  // KDA's gates are vectors.
  spec.isKda = true;
  spec.alignment = 16;
  for (auto [name, field] : {std::pair{"a", &DecodeArgs::a},
                             {"dtBias", &DecodeArgs::dtBias},
                             {"gRing", &DecodeArgs::gRing}})
    CHECK(said(spec, [&](DecodeArgs &a) { a.*field = 0x20008; }) ==
          std::string(name) + ": 0x20008 is not allowed; the address must be a "
                              "multiple of 16 bytes");
}

TEST_CASE("pointers that only some specs have", "[error]") {
  struct Pointer {
    const char *name;
    uint64_t DecodeArgs::*field;
    bool DecodeSpec::*fact;
  };
  for (const Pointer &pointer :
       {Pointer{"k", &DecodeArgs::k, &DecodeSpec::hasSeparateQkv},
        {"v", &DecodeArgs::v, &DecodeSpec::hasSeparateQkv},
        {"forceFlush", &DecodeArgs::forceFlush, &DecodeSpec::hasForceFlush},
        {"ringBase", &DecodeArgs::ringBase, &DecodeSpec::isCircular},
        {"ringIndices", &DecodeArgs::ringIndices, &DecodeSpec::hasRingIndices},
        {"dstIndices", &DecodeArgs::dstIndices, &DecodeSpec::hasDstIndices},
        {"trackIndices", &DecodeArgs::trackIndices,
         &DecodeSpec::hasTrackIndices}})
    for (bool has : {false, true}) {
      DecodeSpec spec = predecayed(16);
      spec.*pointer.fact = has;
      auto at = [&](uint64_t address) {
        return said(spec, [&](DecodeArgs &a) { a.*pointer.field = address; });
      };
      const std::string name = pointer.name;
      CHECK(at(0) ==
            (has ? name + ": 0 is not allowed; it must be a device address"
                 : ""));
      CHECK((at(0x20001) == "") == !has);
    }
  CHECK(said(DecodeSpec(), [](DecodeArgs &a) { a.errorWord = 0x20004; }) ==
        "errorWord: 0x20004 is not allowed; it must be 0 or a multiple of 8 "
        "bytes");

  // Without a ring, and without a cursor.
  DecodeSpec spec;
  spec.ringDepth = 1;
  auto noRing = [](DecodeArgs &a) {
    a.dRing = a.kRing = a.gRing = a.dPitch = a.kPitch = a.gPitch = 0;
  };
  CHECK(said(spec, noRing) == "");
  spec.family = Family::Packed;
  CHECK(said(spec, [&](DecodeArgs &a) {
          noRing(a);
          a.writePos = a.forceFlush = 0;
        }) == "");
}

TEST_CASE("counts and numbers", "[error]") {
  DecodeSpec spec;
  CHECK(said(spec, [](DecodeArgs &a) { a.batch = -1; }) ==
        "batch: -1 is not allowed; it must be 0 or more");
  CHECK(said(spec, [](DecodeArgs &a) { a.slots = -2; }) ==
        "slots: -2 is not allowed; it must be 0 or more");
  CHECK(said(spec, [](DecodeArgs &a) { a.ringSlots = -3; }) == "");
  spec.hasRingIndices = true;
  CHECK(said(spec, [](DecodeArgs &a) { a.ringSlots = -3; }) ==
        "ringSlots: -3 is not allowed; it must be 0 or more");
  CHECK(said(spec, [](DecodeArgs &a) { a.scale = infinite; }) ==
        "scale: inf is not allowed; it must be finite");
  CHECK(said(spec, [](DecodeArgs &a) {
          a.scale = infinite - infinite;
        }).find("nan is not allowed; it must be finite") != std::string::npos);
  CHECK(said(spec, [](DecodeArgs &a) { a.lowerBound = 1; }) == "");
}

TEST_CASE("limits of a step", "[error]") {
  DecodeSpec spec;
  spec.rule = Rule::Additive;
  spec.beta = Beta::Step;
  auto noBeta = [](DecodeArgs &a) { a.b = a.bStride = 0; };
  CHECK(said(spec, noBeta) == "");
  CHECK(said(spec, [](DecodeArgs &a) { a.stepMin = -1; }) == "");
  spec.hasStepLimits = true;
  CHECK(said(spec, [](DecodeArgs &a) { a.stepMax = infinite; }) == "");
  CHECK(said(spec, [](DecodeArgs &a) { a.stepMin = -1; }) ==
        "stepMin: -1 is not allowed; it must be finite, 0 or more");
  CHECK(said(spec, [](DecodeArgs &a) { a.stepMin = infinite; }) ==
        "stepMin: inf is not allowed; it must be finite, 0 or more");
  CHECK(said(spec, [](DecodeArgs &a) { a.stepMin = 2, a.stepMax = 1; }) ==
        "stepMax: 1 is not allowed; it must be stepMin = 2 or more");
  CHECK(said(spec, [](DecodeArgs &a) { a.stepMax = infinite - infinite; })
            .find("nan is not allowed; it must be stepMin = 0 or more") !=
        std::string::npos);
}

TEST_CASE("tensors of the output", "[error]") {
  DecodeSpec spec;
  auto without = [](DecodeArgs &a) { a.skip = a.outGate = 0; };
  CHECK(said(spec, without) == "");
  spec.hasOutGate = true;
  CHECK(said(spec, without) ==
        "outGate: 0 is not allowed; it must be a device address");
  spec.hasOutGate = false;
  spec.skip = Skip::Head;
  CHECK(said(spec, without) ==
        "skip: 0 is not allowed; it must be a device address");
}

TEST_CASE("strides of rows", "[error]") {
  DecodeSpec spec; // bf16: 8 elements are 16 bytes; HV*V = 4096
  CHECK(said(spec, [](DecodeArgs &a) { a.qStride = 8196; }) ==
        "qStride: 8196 is not allowed; it must be a multiple of 8");
  CHECK(said(spec, [](DecodeArgs &a) { a.outStride = 4100; }) ==
        "outStride: 4100 is not allowed; it must be a multiple of 8");
  CHECK(said(spec, [](DecodeArgs &a) { a.outStride = 4088; }) ==
        "outStride: 4088 is not allowed; it must be 4096 or more");
  // One row may serve all inputs.
  CHECK(said(spec, [](DecodeArgs &a) {
          a.qStride = a.aStride = a.bStride = 0;
        }) == "");
  CHECK(said(spec, [](DecodeArgs &a) { a.aStride = 33; }) == "");
  CHECK(said(spec, [](DecodeArgs &a) { a.kStride = a.vStride = 7; }) == "");
  // A single row's are not used.
  CHECK(said(spec, [](DecodeArgs &a) {
          a.batch = 1;
          a.qStride = a.outStride = 1;
        }) == "");
  spec.isKda = spec.hasSeparateQkv = true;
  CHECK(said(spec, [](DecodeArgs &a) { a.aStride = 4100; }) ==
        "aStride: 4100 is not allowed; it must be a multiple of 8");
  CHECK(said(spec, [](DecodeArgs &a) { a.kStride = 2050; }) ==
        "kStride: 2050 is not allowed; it must be a multiple of 8");
  CHECK(said(spec, [](DecodeArgs &a) { a.vStride = 4; }) ==
        "vStride: 4 is not allowed; it must be a multiple of 8");
  spec.alignment = 0;
  CHECK(said(spec, [](DecodeArgs &a) {
          a.qStride = a.kStride = a.vStride = a.aStride = 4099;
          a.outStride = 4097;
        }) == "");
}

TEST_CASE("rows that write have indices of their own", "[error]") {
  auto sentence = [](const std::string &name) {
    return name + ": 0 is not allowed with 4 rows; it gives all of them one "
                  "slot, which they would write at once";
  };
  auto zero = [](int64_t DecodeArgs::*stride) {
    return [stride](DecodeArgs &a) { a.*stride = 0; };
  };
  DecodeSpec plain, packed, all, shared;
  packed.family = Family::Packed;
  packed.ringDepth = 1;
  for (DecodeSpec *spec : {&plain, &packed})
    CHECK(said(*spec, zero(&DecodeArgs::stateIndexStride)) ==
          sentence("stateIndexStride"));
  all.hasRingIndices = all.hasDstIndices = all.hasTrackIndices = true;
  CHECK(said(all, zero(&DecodeArgs::ringIndexStride)) ==
        sentence("ringIndexStride"));
  CHECK(said(all, zero(&DecodeArgs::dstIndexStride)) ==
        sentence("dstIndexStride"));
  CHECK(said(all, zero(&DecodeArgs::trackIndexStride)) ==
        sentence("trackIndexStride"));
  // Forks read one state where they write others; without dst or rings of
  // their own they write that one.
  CHECK(said(all, zero(&DecodeArgs::stateIndexStride)) == "");
  packed.hasDstIndices = true;
  CHECK(said(packed, zero(&DecodeArgs::stateIndexStride)) == "");
  shared.hasDstIndices = true;
  CHECK(said(shared, zero(&DecodeArgs::stateIndexStride)) ==
        sentence("stateIndexStride"));
  // What the spec has not, and a single row's, do not count.
  CHECK(said(plain, zero(&DecodeArgs::dstIndexStride)) == "");
  CHECK(said(plain, [](DecodeArgs &a) {
          a.batch = 1;
          a.stateIndexStride = 0;
        }) == "");
}

TEST_CASE("no offset of a row or slot passes 64 bits", "[error]") {
  struct Stride {
    const char *name;
    int64_t DecodeArgs::*field;
    int64_t bytes, least;
  };
  DecodeSpec spec = predecayed(16); // H = HV, K = V = 128, L = 16
  spec.isCircular = spec.hasSeparateQkv = spec.hasRingIndices = true;
  spec.hasDstIndices = spec.hasTrackIndices = true;
  spec.alignment = 0;
  const int64_t HV = spec.numValueHeads;
  constexpr int64_t any = INT64_MIN;
  for (const Stride &stride :
       {Stride{"qStride", &DecodeArgs::qStride, 2, any},
        {"kStride", &DecodeArgs::kStride, 2, any},
        {"vStride", &DecodeArgs::vStride, 2, any},
        {"aStride", &DecodeArgs::aStride, 2, any},
        {"bStride", &DecodeArgs::bStride, 2, any},
        {"outStride", &DecodeArgs::outStride, 2, HV * 128},
        {"stateIndexStride", &DecodeArgs::stateIndexStride, 4, any},
        {"ringIndexStride", &DecodeArgs::ringIndexStride, 4, any},
        {"dstIndexStride", &DecodeArgs::dstIndexStride, 4, any},
        {"trackIndexStride", &DecodeArgs::trackIndexStride, 4, any},
        {"statePitch", &DecodeArgs::statePitch, 4, HV * 128 * 128},
        {"dPitch", &DecodeArgs::dPitch, 4, HV * 16 * 128},
        {"kPitch", &DecodeArgs::kPitch, 4, HV * 16 * 128},
        {"gPitch", &DecodeArgs::gPitch, 4, HV * 16 * 128}}) {
    const int64_t most = (int64_t(1) << 32) / stride.bytes;
    auto with = [&](int64_t value) {
      return said(spec, [&](DecodeArgs &a) { a.*stride.field = value; });
    };
    auto refused = [&](int64_t value) {
      return std::string(stride.name) + ": " + std::to_string(value) +
             " is not allowed; it must be " +
             std::to_string(stride.least == any ? -most : stride.least) +
             " to " + std::to_string(most) + " (2^32 bytes)";
    };
    INFO(stride.name);
    CHECK(with(most) == "");
    if (stride.least == any)
      CHECK(with(-most) == "");
    for (int64_t value : {most + 1, int64_t(1) << 62, -most - 1, INT64_MIN})
      CHECK(with(value) == refused(value));
  }
}

TEST_CASE("pitches of slots", "[error]") {
  DecodeSpec spec; // H=16 HV=32 K=V=128 L=16, fp32
  struct Pitch {
    const char *name;
    int64_t DecodeArgs::*field;
    int64_t least;
    int64_t unit;
  };
  for (bool isKda : {false, true})
    for (const Pitch &pitch :
         {Pitch{"statePitch", &DecodeArgs::statePitch, 32 * 128 * 128, 4},
          {"dPitch", &DecodeArgs::dPitch, 32 * 16 * 128, 4},
          {"kPitch", &DecodeArgs::kPitch, 16 * 16 * 128, 4},
          {"gPitch", &DecodeArgs::gPitch, 32 * 16 * (isKda ? 128 : 1),
           isKda ? 4 : 1}}) {
      spec.isKda = isKda;
      auto with = [&](int64_t value) {
        return said(spec, [&](DecodeArgs &a) { a.*pitch.field = value; });
      };
      const std::string name = pitch.name;
      int64_t low = pitch.least - pitch.unit;
      CHECK(with(low) == name + ": " + std::to_string(low) +
                             " is not allowed; it must be " +
                             std::to_string(pitch.least) + " or more");
      CHECK(with(pitch.least + pitch.unit) == "");
      if (pitch.unit > 1)
        CHECK(with(pitch.least + 2) ==
              name + ": " + std::to_string(pitch.least + 2) +
                  " is not allowed; it must be a multiple of 4");
    }
}

TEST_CASE("the layers of a materialize launch", "[error]") {
  const DecodeSpec spec = materialize();
  const DecodeArgs args = legalArgs(spec);
  const ReplayLayer good = {args.state,  args.dRing,      args.kRing,
                            args.gRing,  args.statePitch, args.dPitch,
                            args.kPitch, args.gPitch};
  CHECK(validateLayer(spec, good).isOk());
  ReplayLayer layer = good;
  layer.gRing = 0;
  CHECK(validateLayer(spec, layer).message ==
        "gRing: 0 is not allowed; it must be a device address");
  layer = good;
  layer.kPitch -= 4;
  CHECK(validateLayer(spec, layer).message ==
        "kPitch: 32764 is not allowed; it must be 32768 or more");
}

TEST_CASE("arguments of materialize", "[error]") {
  DecodeSpec spec = materialize();
  auto check = [&](const std::function<void(MaterializeArgs &)> &change) {
    return said(spec, legalMaterializeArgs(), change);
  };
  using Args = MaterializeArgs;
  const std::string null = ": 0 is not allowed; it must be a device address";
  CHECK(check([](Args &a) { a.batch = -1; }) ==
        "batch: -1 is not allowed; it must be 0 or more");
  CHECK(check([](Args &a) { a.numLayers = -1; }) ==
        "numLayers: -1 is not allowed; it must be 0 or more");
  CHECK(check([](Args &a) { a.slots = -1; }) ==
        "slots: -1 is not allowed; it must be 0 or more");
  CHECK(check([](Args &a) { a.layers = 0; }) == "layers" + null);
  CHECK(check([](Args &a) { a.layers = 0x20004; }) ==
        "layers: 0x20004 is not allowed; the address must be a multiple of 8 "
        "bytes");
  CHECK(check([](Args &a) { a.srcIndices = 0; }) == "srcIndices" + null);
  CHECK(check([](Args &a) { a.dstIndices = 0; }) == "dstIndices" + null);
  CHECK(check([](Args &a) { a.writePos = 0; }) == "writePos" + null);
  CHECK(check([](Args &a) { a.mask = 0; }) == "mask" + null);
  CHECK(check([](Args &a) { a.errorWord = 0x20002; }) ==
        "errorWord: 0x20002 is not allowed; it must be 0 or a multiple of 8 "
        "bytes");
  CHECK(check([](Args &a) {
          a.errorWord = a.ringIndices = a.ringBase = 0;
          a.ringSlots = -1;
        }) == "");
  // One source may serve all rows, one destination none.
  CHECK(check([](Args &a) { a.srcIndexStride = a.ringIndexStride = 0; }) == "");
  CHECK(check([](Args &a) { a.dstIndexStride = 0; }) ==
        "dstIndexStride: 0 is not allowed with 4 rows; it gives all of them "
        "one slot, which they would write at once");
  spec.hasMask = false;
  CHECK(check([](Args &a) { a.mask = 0; }) == "");
  spec.hasRingIndices = true;
  CHECK(check([](Args &a) { a.ringIndices = 0; }) == "ringIndices" + null);
  CHECK(check([](Args &a) { a.ringSlots = -1; }) ==
        "ringSlots: -1 is not allowed; it must be 0 or more");
  spec = predecayed(16);
  spec.family = Family::Materialize;
  spec.isCircular = true;
  CHECK(check([](Args &a) { a.ringBase = 0; }) == "ringBase" + null);
}

TEST_CASE("the bound of a gate", "[error]") {
  DecodeSpec spec = predecayed(16);
  CHECK(validateLowerBound(spec, -5).isOk());
  CHECK(validateLowerBound(spec, -5.333f).isOk());
  CHECK(validateLowerBound(spec, -6).message ==
        "lowerBound: -6 is not allowed with a predecayed ring of ringDepth = "
        "16; inverse-prefix scaling is unsafe unless (ringDepth - 1) "
        "|lowerBound| is at most 80, so it must be -5.333 or more");
  CHECK(said(spec, [](DecodeArgs &a) { a.lowerBound = -6; }) ==
        validateLowerBound(spec, -6).message);
  CHECK(said(spec, [](DecodeArgs &a) { a.batch = 0, a.lowerBound = -6; }) ==
        validateLowerBound(spec, -6).message);
  // The value in the sentence is itself allowed.
  CHECK(validateLowerBound(predecayed(13), -7)
            .message.ends_with("so it must be -6.666 or more"));
  CHECK(validateLowerBound(predecayed(13), -6.666f).isOk());
  CHECK(validateLowerBound(predecayed(17), -5).isOk());
  CHECK(!validateLowerBound(predecayed(18), -5).isOk());
  CHECK(validateLowerBound(predecayed(64), -1).isOk());
  CHECK(validateLowerBound(predecayed(1), -1000).isOk());

  for (RingFormat format :
       {RingFormat::Raw, RingFormat::Prefix, RingFormat::Predecayed}) {
    spec.ringFormat = format;
    CHECK(validateLowerBound(spec, -6).isOk() ==
          (format != RingFormat::Predecayed));
    for (auto [value, text] : {std::pair{0.0f, "0"},
                               {-0.0f, "-0"},
                               {2.0f, "2"},
                               {infinite, "inf"},
                               {-infinite, "-inf"}})
      CHECK(validateLowerBound(spec, value).message ==
            std::string("lowerBound: ") + text +
                " is not allowed; it must be finite and negative");
    CHECK(!validateLowerBound(spec, std::numeric_limits<float>::quiet_NaN())
               .isOk());
  }
  // Sums in a prefix ring stay finite.
  spec.ringFormat = RingFormat::Prefix;
  CHECK(validateLowerBound(spec, -2e37f).isOk());
  CHECK(validateLowerBound(spec, -3e37f).message ==
        "lowerBound: -3e+37 is not allowed with a prefix ring of ringDepth = "
        "16; ringDepth |lowerBound| must be a number of fp32");
  // The other gate has none.
  spec.ringFormat = RingFormat::Raw;
  spec.gate = Gate::Softplus;
  CHECK(validateLowerBound(spec, infinite).isOk());
}
