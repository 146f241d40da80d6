//===- ModelPresets.cpp - Shipped models ----------------------------------===//
//
// Sizes are those of a published configuration. Of the models with a state
// space, "checked" is what stands in the configuration classes and pages of the
// transformers package, version 5: heads, V, groups and K (d_state) of
// NemotronHConfig's default, heads, V and K of FalconH1Config's table, and the
// fixed decays of MiniMax, exp(-slope). The others' configuration files were
// not at hand, so their sizes are unconfirmed: for Bamba and Granite the
// classes only default to K = 256.
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/DecodeSpec.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <vector>

namespace replayjit::internal {

namespace {
struct Model {
  const char *name;
  int keyHeads, valueHeads; ///< Of the whole model.
  void (*set)(DecodeSpec &);
  int k = 128, v = 128;
};
} // namespace

static void gdn(DecodeSpec &) {}
static void kda(DecodeSpec &spec) { spec.isKda = true; }
static void boundedKda(DecodeSpec &spec) {
  spec.isKda = true;
  spec.gate = Gate::LowerBound;
}
/// q, k and v as they are, and all of v.
static void additive(DecodeSpec &spec) {
  spec.rule = Rule::Additive;
  spec.qkL2Norm = false;
  spec.hasSeparateQkv = true;
}
/// C, B and x are q, k and v, groups key heads. The norm that follows has the
/// gate z.
static void mamba2(DecodeSpec &spec) {
  additive(spec);
  spec.beta = Beta::Step;
  spec.skip = Skip::Head;
}
static void lightning(DecodeSpec &spec) {
  additive(spec);
  spec.gate = Gate::Fixed;
  spec.beta = Beta::One;
}

static constexpr Model models[] = {
    {"qwen3-next", 16, 32, gdn},
    {"qwen3.5-27b", 16, 48, gdn},
    {"qwen3.5-397b", 16, 64, gdn},
    {"kimi-linear", 32, 32, kda},
    {"kimi-k3", 96, 96, boundedKda},
    {"ling-flash", 32, 32, boundedKda},
    {"nemotron-h-8b", 8, 128, mamba2, 128, 64}, // checked
    {"nemotron-3-super", 8, 128, mamba2, 128, 64},
    {"nemotron-nano-9b-v2", 8, 128, mamba2, 128, 80},
    {"granite-4-h-small", 1, 128, mamba2, 128, 64},
    {"bamba-9b", 1, 128, mamba2, 128, 64},
    {"falcon-h1-1.5b", 1, 48, mamba2, 256, 64}, // checked
    {"falcon-h1-7b", 1, 24, mamba2, 256, 128},  // checked
    {"minimax-01", 64, 64, lightning},          // the rule: checked
};

/// A key head that is alone is there on every rank.
static bool canSplit(const Model &model, int ranks) {
  return model.valueHeads % ranks == 0 &&
         (model.keyHeads == 1 || model.keyHeads % ranks == 0);
}

std::string modelNames() {
  std::vector<std::string_view> names;
  for (const Model &model : models)
    names.push_back(model.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<DecodeSpec> modelPreset(const std::string &name, int tensorParallel) {
  const auto found =
      std::find_if(std::begin(models), std::end(models),
                   [&](const Model &entry) { return name == entry.name; });
  if (found == std::end(models))
    return Status::invalid(fmt::format("model: '{}' is unknown; allowed are {}",
                                       name, modelNames()));

  const Model &model = *found;
  std::vector<int> allowed;
  for (int ranks = 1; ranks <= model.valueHeads; ++ranks)
    if (canSplit(model, ranks))
      allowed.push_back(ranks);
  if (std::find(allowed.begin(), allowed.end(), tensorParallel) ==
      allowed.end())
    return Status::invalid(fmt::format(
        "tensorParallel: {} does not divide the {} key and {} value heads of "
        "{}; allowed are {}",
        tensorParallel, model.keyHeads, model.valueHeads, name,
        fmt::join(allowed, ", ")));

  DecodeSpec spec;
  model.set(spec);
  spec.numKeyHeads = std::max(1, model.keyHeads / tensorParallel);
  spec.numValueHeads = model.valueHeads / tensorParallel;
  spec.headDimK = model.k;
  spec.headDimV = model.v;
  return spec;
}

} // namespace replayjit::internal
