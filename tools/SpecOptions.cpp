//===- SpecOptions.cpp - Flags that say which kernel ----------------------===//

#include "tools/SpecOptions.h"

#include "kernels/Families.h"
#include "runtime/cache/TuningTable.h"

#include <climits>
#include <fmt/format.h>

using namespace replayjit::internal;

/// Adds the flag of one fact; what it says goes to `given`. `values` are those
/// that it may choose from, unless it is a number.
template <typename Struct>
static CLI::Option *addFlag(CLI::App &app, const Fact<Struct> &fact,
                            const std::vector<int> &values,
                            std::optional<int> &given) {
  const Allowed &allowed = fact.allowed;
  if (allowed.kind == FactKind::Truth) {
    const bool usual = fact.usual();
    return app.add_flag_callback(
        fact.flag, [&given, usual] { given = !usual; },
        fmt::format("{}{}", usual ? "Not: " : "", fact.doc));
  }
  if (allowed.kind == FactKind::Number)
    return app.add_option(fact.flag, given,
                          fmt::format("{} ({})", fact.doc, allowed.text()));
  std::map<std::string, int> choices;
  std::vector<std::string> words; // in the order of the table
  for (int value : values) {
    words.push_back(divided(allowed.text(value), '-'));
    choices[words.back()] = value;
  }
  return app
      .add_option_function<std::string>(
          fact.flag,
          [&given, choices](const std::string &word) {
            given = choices.at(word);
          },
          fact.doc)
      ->check(oneOf(words));
}

void SpecOptions::addFactsTo(CLI::App &app, OffersFn offers) {
  const size_t before = app.get_options({}).size();
  CLI::Option *preset =
      app.add_option("--model", model, "Start from a model: " + modelNames())
          ->group("Kernel");
  app.add_option("--tp", tensorParallel, "Ranks that share the model's heads")
      ->needs(preset)
      ->group("Kernel");
  for (const Fact<DecodeSpec> &fact : decodeFacts()) {
    std::vector<int> values = fact.allowed.list();
    std::erase_if(values, [&](int value) {
      DecodeSpec spec;
      fact.set(spec, value);
      return offers && !offers(spec);
    });
    addFlag(app, fact, values, specGiven[fact.name])
        ->group(fact.allowed.kind == FactKind::Type ? "Element types"
                                                    : "Kernel");
  }
  factOptions = app.get_options({});
  factOptions.erase(factOptions.begin(), factOptions.begin() + before);
  std::erase(factOptions, app.get_option("--readout"));
}

void SpecOptions::addTo(CLI::App &app, OffersFn offers) {
  addFactsTo(app, offers);
  const char *const choices = "Tuning";
  app.add_option("--rows", rows,
                 "Choose what is not given below for so many requests at once; "
                 "0: very many; default: 1, or the --batch of a run")
      ->check(within(0, INT_MAX))
      ->group(choices);
  for (const Fact<DecodeTuning> &fact : tuningFacts())
    addFlag(app, fact, fact.allowed.list(), tuningGiven[fact.name])
        ->group(choices);
  app.add_option("--target", chip, "GPU architecture, such as sm_90a")
      ->group(choices);
}

/// Overwrites the facts that flags say.
template <typename Struct>
static void setGiven(Struct &all, std::span<const Fact<Struct>> table,
                     const SpecOptions::Given &given) {
  for (const Fact<Struct> &fact : table)
    if (auto flag = given.find(fact.name); flag != given.end() && flag->second)
      fact.set(all, *flag->second);
}

Result<DecodeSpec> SpecOptions::spec() const {
  DecodeSpec spec;
  if (!model.empty()) {
    Result<DecodeSpec> preset = modelPreset(model, tensorParallel);
    if (!preset)
      return preset.status();
    spec = *preset;
  }
  setGiven(spec, decodeFacts(), specGiven);
  auto isGiven = [&](const char *name) {
    return specGiven.at(name).has_value();
  };
  const FamilyTraits &traits = traitsOf(spec);
  if (traits.states && !traits.rings && !isGiven("ringDepth"))
    spec.ringDepth = 1;
  // A type that is not given is that of the tensor it goes with.
  if (!isGiven("gateType"))
    spec.gateType = spec.actType;
  if (!isGiven("betaType"))
    spec.betaType = spec.gateType;
  if (!isGiven("biasType"))
    spec.biasType = spec.paramType;
  if (!isGiven("outType"))
    spec.outType = spec.actType;
  return spec;
}

Result<DecodeTuning> SpecOptions::tuning(const DecodeSpec &spec,
                                         int defaultRows, const Target &target,
                                         int multiprocessors) const {
  const auto measured = openTuningTable(tuningFileFromEnvironment(), {});
  if (!measured)
    return measured.status();
  DecodeTuning tuning = chooseTuning(spec, rows.value_or(defaultRows), target,
                                     multiprocessors, measured->get());
  setGiven(tuning, tuningFacts(), tuningGiven);
  return tuning;
}

Result<std::optional<Target>> SpecOptions::target() const {
  if (chip.empty())
    return std::optional<Target>();
  Result<Target> target = Target::parse(chip);
  if (!target)
    return target.status();
  return std::optional<Target>(*target);
}
