//===- SpecOptions.cpp - Flags that say which kernel ----------------------===//

#include "tools/SpecOptions.h"

#include <climits>

using namespace replayjit::internal;

void SpecOptions::addFactsTo(CLI::App &app, bool hasPlans) {
  const size_t before = app.get_options({}).size();
  const char *group = "Kernel";
  CLI::Option *preset = app.add_option("--model", model,
                                       "Start from a model: qwen3-next, "
                                       "qwen3.5-27b, qwen3.5-397b, "
                                       "kimi-linear, kimi-k3 or ling-flash")
                            ->group(group);
  app.add_option("--tp", tensorParallel, "Ranks that share the model's heads")
      ->needs(preset)
      ->group(group);
  std::string what = "replay: a checkpoint and a ring; packed: the state "
                     "written at every token; materialize: a checkpoint made "
                     "of both";
  std::vector<std::string> families = {"replay", "packed", "materialize"};
  if (hasPlans) {
    what += "; plan-begin and plan-commit: the cursors of a step";
    families.insert(families.end(), {"plan-begin", "plan-commit"});
  }
  app.add_option("--family", family, what)
      ->check(oneOf(families))
      ->group(group);
  app.add_flag("--kda", isKda, "Kimi Delta Attention: a gate per key channel")
      ->group(group);
  app.add_option("--gate", gateKind,
                 "How a decay follows from a; lower-bound needs KDA")
      ->check(oneOf({"softplus", "lower-bound"}))
      ->group(group);
  app.add_flag("--beta-round", betaRound, "Round beta through the type of b")
      ->group(group);
  app.add_flag("--no-l2norm", noNorm, "q and k come normalized")->group(group);
  app.add_option("--heads", heads, "Key heads, H")->group(group);
  app.add_option("--value-heads", valueHeads, "Value heads, a multiple of H")
      ->group(group);
  app.add_option("--k", k, "Size of a key head")->group(group);
  app.add_option("--v", v, "Size of a value head")->group(group);
  app.add_option("-L,--ring-depth", ringDepth,
                 "Tokens between two flushes; packed has none, so 1")
      ->group(group);
  app.add_option("--ring-format", ringFormat,
                 "What a ring row of KDA holds; all but raw need --gate "
                 "lower-bound and as many value heads as key heads")
      ->check(oneOf({"raw", "prefix", "predecayed"}))
      ->group(group);
  app.add_flag("--circular", isCircular,
               "A full ring keeps its newest token; needs prefix or predecayed")
      ->group(group);
  CLI::Option *read =
      app.add_option("--readout", readout, "How an output is read")
          ->check(oneOf({"output-only", "rebuild"}))
          ->group(group);

  group = "Element types";
  const std::string types = ": fp32, bf16 or fp16";
  app.add_option("--act", act, "Type of q, k and v" + types)->group(group);
  app.add_option("--gate-type", gate, "Type of a; default: that of --act")
      ->group(group);
  app.add_option("--beta-type", beta, "Type of b; default: that of --gate-type")
      ->group(group);
  app.add_option("--param-type", param, "Type of A_log: fp32 or bf16")
      ->group(group);
  app.add_option("--bias-type", bias,
                 "Type of dt_bias; default: that of --param-type")
      ->group(group);
  app.add_option("--out-type", out,
                 "Type of the output; default: that of --act")
      ->group(group);
  app.add_option("--state", state, "Type of the state" + types)->group(group);
  app.add_option("--ring", ring, "Type of the ring's d and k" + types)
      ->group(group);
  app.add_option("--index-type", index, "Type of all indices: int32 or int64")
      ->group(group);

  group = "Arguments of a launch";
  app.add_flag("--separate-qkv", separateQkv,
               "q, k and v are three tensors instead of one")
      ->group(group);
  app.add_flag("--no-force-flush", noForceFlush,
               "There is no force_flush argument")
      ->group(group);
  app.add_flag("--ring-indices", ringIndices,
               "Rings have indices other than state_indices")
      ->group(group);
  app.add_flag("--dst-indices", dstIndices,
               "A flush writes the state to the slot of another index")
      ->group(group);
  app.add_flag("--track-indices", trackIndices,
               "A further index says where the state is stored too")
      ->group(group);
  app.add_flag("--no-mask", noMask, "materialize: there is no mask argument")
      ->group(group);
  app.add_flag("--trap-on-error", trapOnError,
               "What is reported in the error word ends the launch as well")
      ->group(group);
  app.add_flag("--programmatic-launch", programmaticLaunch,
               "The kernel may start before the one before it ends")
      ->group(group);
  app.add_option("--null-slot", nullSlot, "Slots that mean no request")
      ->check(oneOf({"negative", "nonpositive"}))
      ->group(group);
  app.add_option("--alignment", alignment,
                 "Bytes that divide every pointer, stride and pitch: 16 or 0")
      ->group(group);
  app.add_option("--abi", abi,
                 "How a launch hands over its arguments: one struct, or what "
                 "Triton's launcher passes to the replay kernel, all dense")
      ->check(oneOf({"native", "triton"}))
      ->group(group);

  factOptions = app.get_options({});
  factOptions.erase(factOptions.begin(), factOptions.begin() + before);
  std::erase(factOptions, read);
}

void SpecOptions::addTo(CLI::App &app, bool hasPlans) {
  addFactsTo(app, hasPlans);
  const char *const choices = "Tuning";
  app.add_option("--rows", rows,
                 "Choose what is not given below for so many requests at once; "
                 "0: very many; default: 1, or the --batch of a run")
      ->check(within(0, INT_MAX))
      ->group(choices);
  app.add_option("--block-v", blockV, "State rows per block")->group(choices);
  app.add_option("--block-k", blockK, "Columns per K tile")->group(choices);
  app.add_option("--warps", warps, "Warps per block")->group(choices);
  app.add_option("--flush-rows", flushRows, "Ring rows per step of a flush")
      ->group(choices);
  app.add_option("--max-registers", maxRegisters,
                 "Cap of a thread's registers; 0: none")
      ->group(choices);
  app.add_option("--target", chip, "GPU architecture, such as sm_90a")
      ->group(choices);
}

/// Overwrites `field` with the flag's value, if there is one.
static Status setType(DataType &field, const char *name,
                      const std::optional<std::string> &flag) {
  if (!flag)
    return Status::ok();
  Result<DataType> type = parseDataType(name, *flag);
  if (type)
    field = *type;
  return type.status();
}

Result<DecodeSpec> SpecOptions::spec() const {
  DecodeSpec spec;
  if (!model.empty()) {
    Result<DecodeSpec> preset = modelPreset(model, tensorParallel);
    if (!preset)
      return preset.status();
    spec = *preset;
  }
  spec.numKeyHeads = heads.value_or(spec.numKeyHeads);
  spec.numValueHeads = valueHeads.value_or(spec.numValueHeads);
  spec.headDimK = k.value_or(spec.headDimK);
  spec.headDimV = v.value_or(spec.headDimV);
  if (!family.empty())
    spec.family = family == "packed"        ? Family::Packed
                  : family == "materialize" ? Family::Materialize
                  : family == "plan-begin"  ? Family::PlanBegin
                  : family == "plan-commit" ? Family::PlanCommit
                                            : Family::Replay;
  const bool hasRing = spec.family != Family::Packed;
  spec.ringDepth = ringDepth.value_or(hasRing ? spec.ringDepth : 1);
  spec.alignment = alignment.value_or(spec.alignment);
  const std::optional<std::string> &gateOrAct = gate ? gate : act;
  struct Flag {
    DataType &field;
    const char *name;
    const std::optional<std::string> &value;
  };
  for (Flag flag : {Flag{spec.actType, "actType", act},
                    Flag{spec.gateType, "gateType", gateOrAct},
                    Flag{spec.betaType, "betaType", beta ? beta : gateOrAct},
                    Flag{spec.paramType, "paramType", param},
                    Flag{spec.biasType, "biasType", bias ? bias : param},
                    Flag{spec.outType, "outType", out ? out : act},
                    Flag{spec.stateType, "stateType", state},
                    Flag{spec.ringType, "ringType", ring},
                    Flag{spec.indexType, "indexType", index}})
    if (Status status = setType(flag.field, flag.name, flag.value); !status)
      return status;
  spec.isKda = spec.isKda || isKda;
  if (!gateKind.empty())
    spec.gate = gateKind == "softplus" ? Gate::Softplus : Gate::LowerBound;
  if (!ringFormat.empty())
    spec.ringFormat = ringFormat == "prefix"       ? RingFormat::Prefix
                      : ringFormat == "predecayed" ? RingFormat::Predecayed
                                                   : RingFormat::Raw;
  spec.isCircular = isCircular;
  spec.betaRound = betaRound;
  spec.qkL2Norm = !noNorm;
  spec.hasForceFlush = !noForceFlush;
  spec.hasSeparateQkv = separateQkv;
  spec.hasRingIndices = ringIndices;
  spec.hasDstIndices = dstIndices;
  spec.hasTrackIndices = trackIndices;
  spec.hasMask = !noMask;
  spec.trapOnError = trapOnError;
  spec.hasProgrammaticLaunch = programmaticLaunch;
  if (nullSlot == "nonpositive")
    spec.nullSlot = NullSlot::NonPositive;
  if (abi == "triton")
    spec.abi = LaunchAbi::Triton;
  if (readout == "rebuild")
    spec.readout = Readout::Rebuild;
  return spec;
}

DecodeTuning SpecOptions::tuning(const DecodeSpec &spec, int defaultRows,
                                 const Target &target,
                                 int multiprocessors) const {
  DecodeTuning tuning =
      chooseTuning(spec, rows.value_or(defaultRows), target, multiprocessors);
  tuning.blockV = blockV.value_or(tuning.blockV);
  tuning.blockK = blockK.value_or(tuning.blockK);
  tuning.numWarps = warps.value_or(tuning.numWarps);
  tuning.flushRows = flushRows.value_or(tuning.flushRows);
  tuning.maxRegisters = maxRegisters.value_or(tuning.maxRegisters);
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
