//===- ArgumentsTest.cpp - Tables of arguments beside the header ----------===//
//
// The public header is written by hand: its text is held to the tables here.
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/TritonArgs.h"
#include "kernels/Materialize/MaterializeArgs.h"
#include "kernels/Parameters.h"
#include "kernels/Plan/PlanArgs.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <regex>
#include <sstream>

using namespace replayjit::internal;

namespace {

struct Field {
  std::string type, name;
  size_t offset;
};

/// The fields of a struct of replayjit.h, at their natural alignment.
std::vector<Field> fieldsOf(const std::string &structName) {
  std::ifstream file(REPLAYJIT_SOURCE_DIR
                     "/runtime/include/replayjit/replayjit.h");
  std::stringstream whole;
  whole << file.rdbuf();
  const std::string text = whole.str();
  const size_t begin = text.find("typedef struct " + structName + " {");
  REQUIRE(begin != std::string::npos);
  std::string body = text.substr(begin, text.find('}', begin) - begin);
  body = body.substr(body.find('{') + 1);
  body = std::regex_replace(body, std::regex(R"(/\*[^]*?\*/)"), "");
  std::vector<Field> fields;
  size_t offset = 0;
  const std::regex line(R"((\w+)\s+([\w,\s]+);)"), word(R"(\w+)");
  for (std::sregex_iterator i(body.begin(), body.end(), line), end; i != end;
       ++i) {
    const std::string type = (*i)[1], names = (*i)[2];
    const size_t bytes = type.find("64") != std::string::npos ? 8 : 4;
    for (std::sregex_iterator name(names.begin(), names.end(), word);
         name != end; ++name) {
      offset = (offset + bytes - 1) / bytes * bytes;
      fields.push_back({type, name->str(), offset});
      offset += bytes;
    }
  }
  return fields;
}

std::string typeOf(const Argument &argument) {
  if (argument.kind == Argument::Kind::Pointer)
    return "uint64_t";
  if (argument.bytes() == 8)
    return "int64_t";
  return argument.type.fixed == DataType::F32 ? "float" : "int32_t";
}

void compare(const char *structName, ArgumentTable table, size_t skipped) {
  const std::vector<Field> fields = fieldsOf(structName);
  INFO(structName);
  REQUIRE(fields.size() == skipped + table.size());
  for (size_t i = 0; i < table.size(); ++i) {
    const Field &field = fields[skipped + i];
    CHECK(field.name == divided(table[i].name, '_'));
    INFO(field.name);
    CHECK(field.type == typeOf(table[i]));
    CHECK(field.offset == table[i].offset + skipped * sizeof(uint32_t));
  }
}

} // namespace

TEST_CASE("the header has the fields of the tables", "[args]") {
  compare("replayjit_decode_args_t", decodeArguments(), 2);
  compare("replayjit_materialize_args_t", materializeArguments(), 2);
  compare("replayjit_layer_t", layerArguments(), 0);
}

TEST_CASE("rows of tensors", "[args]") {
  DecodeSpec spec = *modelPreset("qwen3-next", 4); // H=4 HV=8 K=V=128 L=16
  auto elements = [&](const char *name) {
    return innerElements(spec, find(decodeArguments(), name));
  };
  CHECK(elements("q") == 2 * 4 * 128 + 8 * 128);
  CHECK(elements("a") == 8);
  CHECK(elements("aLog") == 8);
  CHECK(elements("writePos") == 1);
  CHECK(elements("state") == 8 * 128 * 128);
  CHECK(elements("kRing") == 4 * 16 * 128);
  CHECK(elements("gRing") == 8 * 16);
  spec.isKda = spec.hasSeparateQkv = true;
  CHECK(elements("q") == 4 * 128);
  CHECK(elements("a") == 8 * 128);
  CHECK(elements("gRing") == 8 * 16 * 128);
  CHECK(innerDims(spec, find(decodeArguments(), "gRing")) ==
        std::vector<int64_t>{8, 16, 128});
}

TEST_CASE("what documents say of an argument", "[args]") {
  const ArgumentTable table = decodeArguments();
  DecodeSpec spec = *modelPreset("qwen3-next", 4);
  auto said = [&](const char *name, const DecodeSpec *of = nullptr) {
    return describe(table, find(table, name), of);
  };
  CHECK(said("gRing") == "[ring_slots, HV, L, K if is_kda] fp32, read and "
                         "written; if there is a ring");
  CHECK(said("gRing", &spec) == "[ring_slots, 8, 16] fp32, read and written");
  CHECK(said("out") == "[tokens, HV, V] out_type, written");
  CHECK(said("out", &spec) == "[B, 8, 128] bf16, written"); // one a row
  DecodeSpec drafts = spec;
  drafts.family = Family::Verify;
  CHECK(said("out", &drafts) == "[tokens, 8, 128] bf16, written");
  CHECK(said("gPitch") == "elements from one slot of g_ring to the next; if "
                          "there is a ring");
  CHECK(said("errorWord", &spec) == "int32, read and written, or 0; a "
                                    "replayjit_error_word_t");
  CHECK(said("trackIndices", &spec) == "not used");
}

TEST_CASE("the parameters of every family", "[args]") {
  DecodeSpec spec;
  auto last = [&](Family family) {
    spec.family = family;
    const Parameter parameter = parametersOf(spec).back();
    return std::pair(parameter.name,
                     parameter.offset + parameter.argument->bytes());
  };
  using Last = std::pair<std::string, size_t>;
  // Structs of 64-bit members end with one.
  for (Family family : {Family::Replay, Family::Packed, Family::Verify})
    CHECK(last(family) == Last{"tokens", sizeof(DecodeArgs) - 4});
  CHECK(last(Family::Materialize) ==
        Last{"ringSlots", sizeof(MaterializeArgs)});
  for (Family family : {Family::PlanBegin, Family::PlanCommit})
    CHECK(last(family) == Last{"groups[7].ringSlots", sizeof(PlanArgs)});
  spec.abi = LaunchAbi::Triton;
  CHECK(last(Family::Replay) == Last{"profileScratch", sizeof(TritonArgs)});
}

TEST_CASE("a launch of Triton's has the arguments of ours", "[args]") {
  DecodeArgs args;
  uint64_t next = 0x1000;
  for (const Argument &argument : decodeArguments())
    if (argument.kind == Argument::Kind::Pointer)
      memberOf(argument, &args) = next += 0x100;
  args.scale = 0.25f;
  const TritonArgs triton = toTritonArgs(args);
  CHECK(triton.scale == 0.25f);
  CHECK(triton.finalState == args.state);
  for (const Argument &argument : tritonArguments())
    for (const Argument &native : decodeArguments())
      if (std::string_view(argument.name) == native.name &&
          argument.kind == Argument::Kind::Pointer) {
        INFO(argument.name);
        CHECK(memberOf(argument, &triton) == memberOf(native, &args));
      }
}

TEST_CASE("a layer is a part of a decode step's arguments", "[args]") {
  ReplayLayer layer;
  uint64_t next = 0;
  for (const Argument &argument : layerArguments())
    memberOf(argument, &layer) = ++next;
  DecodeArgs args;
  setLayer(args, layer);
  CHECK(args.state == 1);
  CHECK(args.kRing == 3);
  CHECK(args.gPitch == 8);
  const ReplayLayer back = layerOf(args);
  for (const Argument &argument : layerArguments())
    CHECK(memberOf(argument, &back) == memberOf(argument, &layer));
}
