//===- FactsTest.cpp - The tables of facts, and what follows from them ----===//

#include "checks/DecodeFuzz.h"
#include "kernels/Decode/DecodeSpec.h"
#include "kernels/Families.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

using namespace replayjit::internal;

namespace {

std::string readHeader() {
  std::ifstream file(REPLAYJIT_SOURCE_DIR
                     "/runtime/include/replayjit/replayjit.h");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A member of a C struct with its comment, which stands before or beside it.
struct Member {
  std::string type, name, comment;
};

std::vector<Member> membersOf(const std::string &structName) {
  const std::string text = readHeader();
  const std::string intro = "typedef struct " + structName + " {";
  const size_t begin = text.find(intro);
  REQUIRE(begin != std::string::npos);
  const std::string body =
      text.substr(begin + intro.size(),
                  text.find("} " + structName + ";") - begin - intro.size());
  std::vector<Member> members;
  std::string before;
  // A comment, or a declaration and perhaps a comment on its last line.
  const std::regex item(
      R"((/\*[\s\S]*?\*/)|(\w+) (\w+);[ ]*(/\*[\s\S]*?\*/)?)");
  for (std::sregex_iterator at(body.begin(), body.end(), item), end; at != end;
       ++at) {
    if ((*at)[1].matched) {
      before = (*at)[1];
      continue;
    }
    std::string comment = (*at)[4].matched ? std::string((*at)[4]) : before;
    comment =
        std::regex_replace(comment, std::regex(R"(^/\*|\*/$|\n *\*)"), "");
    comment = std::regex_replace(comment, std::regex(R"(\s+)"), " ");
    comment = std::regex_replace(comment, std::regex("^ | $"), "");
    members.push_back({(*at)[2], (*at)[3], comment});
    before.clear();
  }
  return members;
}

template <typename Struct>
void checkHeader(const std::string &structName,
                 std::span<const Fact<Struct>> table) {
  const std::vector<Member> members = membersOf(structName);
  REQUIRE(members.size() == 1 + table.size());
  CHECK(members[0].type == "uint32_t");
  CHECK(members[0].name == "struct_size");
  for (size_t i = 0; i < table.size(); ++i) {
    const Fact<Struct> &fact = table[i];
    const Member &member = members[1 + i];
    INFO(fact.name << ", in the header: " << member.comment);
    CHECK(member.type == "int32_t");
    CHECK(member.name == divided(fact.name, '_'));
    CHECK_THAT(member.comment, Catch::StartsWith(fact.doc));
    const std::string usual =
        fact.allowed.kind == FactKind::Truth
            ? std::to_string(fact.usual())
            : divided(fact.allowed.text(fact.usual()), '-');
    CHECK_THAT(member.comment, Catch::EndsWith("[" + usual + "]"));
  }
}

/// What any table promises.
template <typename Struct>
void checkTable(std::span<const Fact<Struct>> table) {
  std::set<std::string> names, flags;
  for (const Fact<Struct> &fact : table) {
    INFO(fact.name);
    CHECK(names.insert(divided(fact.name, '_')).second);
    CHECK(flags.insert(fact.flag).second);
    CHECK(std::string(fact.doc).size() > 10);
    CHECK(fact.allowed.has(fact.usual()));
    for (int value : fact.draws)
      CHECK(fact.allowed.has(value));
    Struct changed;
    const std::vector<int> listed = fact.allowed.list();
    for (int value : listed) {
      fact.set(changed, value);
      CHECK(fact.get(changed) == value);
    }
    CHECK((!listed.empty() || fact.allowed.low <= fact.allowed.high));
    std::set<std::string_view> words(fact.allowed.words().begin(),
                                     fact.allowed.words().end());
    CHECK(words.size() == fact.allowed.words().size());
  }
}

} // namespace

TEST_CASE("each row of a table is whole", "[facts]") {
  checkTable(decodeFacts());
  checkTable(tuningFacts());
}

TEST_CASE("the C header has the members, docs and defaults of the tables",
          "[facts]") {
  checkHeader("replayjit_decode_spec_t", decodeFacts());
  checkHeader("replayjit_decode_tuning_t", tuningFacts());
}

TEST_CASE("the C header has the words of the tables", "[facts]") {
  const std::string header = readHeader();
  for (const Fact<DecodeSpec> &fact : decodeFacts()) {
    if (fact.allowed.kind != FactKind::Choice)
      continue;
    const std::string type = "replayjit_" + divided(fact.name, '_') + "_t";
    const size_t end = header.find("} " + type + ";");
    REQUIRE(end != std::string::npos);
    const std::string body =
        header.substr(0, end).substr(header.rfind("typedef enum", end));
    for (int value : fact.allowed.list()) {
      DecodeSpec spec;
      fact.set(spec, value);
      if (!traitsOf(spec).isPublic)
        continue;
      std::string word = divided(fact.allowed.text(value), '_');
      std::transform(word.begin(), word.end(), word.begin(), ::toupper);
      CHECK_THAT(body,
                 Catch::Contains("_" + word + " = " + std::to_string(value)));
    }
  }
}

TEST_CASE("names are divided where words begin", "[facts]") {
  CHECK(divided("numKeyHeads", '_') == "num_key_heads");
  CHECK(divided("qkL2Norm", '_') == "qk_l2_norm");
  CHECK(divided("nonPositive", '-') == "non-positive");
  CHECK(divided("fp32", '-') == "fp32");
  CHECK(wordOf(Family::PlanCommit) == "planCommit");
  CHECK(wordOf(Family(6)).empty());
}

TEST_CASE("what is allowed is said", "[facts]") {
  const Allowed range = {1, 64}, both = {32, 255, {0}};
  CHECK(range.text() == "1 to 64");
  CHECK(range.check("ringDepth", 64));
  CHECK(range.check("ringDepth", 65).message ==
        "ringDepth: 65 is not allowed; it must be 1 to 64");
  CHECK(both.check("maxRegisters", 0));
  CHECK(both.check("maxRegisters", 31).message ==
        "maxRegisters: 31 is not allowed; it must be 0 or 32 to 255");
  CHECK(both.ends() == std::pair(0, 255));
  Allowed words;
  words.wordList = allWords<RingFormat>;
  CHECK(words.list() == std::vector{0, 1, 2});
  CHECK(words.text() == "raw, prefix, predecayed");
  CHECK(words.ends() == std::pair(0, 2));
  CHECK_FALSE(words.has(3));
}

TEST_CASE("every fact takes every value that the fuzzer may draw", "[facts]") {
  std::map<std::string, std::set<int>> seen;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    const DecodeCase entry = randomCase(seed, Target{});
    for (const Fact<DecodeSpec> &fact : decodeFacts())
      if (fact.isIn(entry.problem.spec))
        seen[fact.name].insert(fact.get(entry.problem.spec));
    for (const Fact<DecodeTuning> &fact : tuningFacts())
      seen[fact.name].insert(fact.get(entry.problem.tuning));
  }
  auto check = [&](const auto &fact) {
    INFO(fact.name);
    const std::vector<int> listed = fact.allowed.list();
    if (fact.name == std::string_view("family"))
      for (int value : listed)
        CHECK(seen[fact.name].contains(value) ==
              (allFamilies()[value]->draws > 0));
    else if (!fact.allowed.isNumber())
      CHECK(seen[fact.name] == std::set<int>(listed.begin(), listed.end()));
    for (int value : fact.draws)
      CHECK(seen[fact.name].contains(value));
    CHECK(seen[fact.name].size() >= 2);
  };
  for (const Fact<DecodeSpec> &fact : decodeFacts())
    check(fact);
  for (const Fact<DecodeTuning> &fact : tuningFacts())
    check(fact);
}
