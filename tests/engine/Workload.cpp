//===- Workload.cpp - Requests for two engines of one model ---------------===//

#include "tests/engine/Workload.h"

#include "tools/Progress.h"

#include <algorithm>

namespace replayjit::internal::engine {

static void appendRandom(Tokens &tokens, int count, int vocabulary,
                         Random &random) {
  for (int i = 0; i < count; ++i)
    tokens.push_back(random.below(vocabulary));
}

Workload::Workload(Jit &jit, const Model &model, const Sizes &sizes,
                   const WorkloadOptions &options, Features &features)
    : model(model), options(options), random(options.seed) {
  for (int ranks : {1, 2})
    engines.push_back(std::make_unique<Engine>(
        jit, model, ranks, sizes, options.seed * 100 + ranks,
        options.statesToCheck, features));
  for (int i = 0; i < 5; ++i)
    appendRandom(families.emplace_back(), options.longest, model.vocabulary,
                 random);
}

std::unique_ptr<Request> Workload::newRequest() {
  Tokens prompt;
  const int kind = random.below(10);
  if (kind < 4)
    prompt = engines[random.below(2)]->someHistory();
  if (kind >= 4 && kind < 9) {
    prompt = families[random.below(int(families.size()))];
    prompt.resize(1 + random.below(options.longest));
  }
  if (prompt.empty() || int(prompt.size()) > 2 * options.longest)
    appendRandom(prompt = {}, 1 + random.below(options.longest),
                 model.vocabulary, random);
  if (random.chance(50))
    appendRandom(prompt, 1 + random.below(4), model.vocabulary, random);
  auto request =
      std::make_unique<Request>(model, ++numRequests, std::move(prompt),
                                1 + random.below(options.outputs));
  request->endsByLength = random.chance(50);
  request->tracks = random.chance(50);
  request->flushesWhenTracked = random.chance(30);
  return request;
}

void Workload::arrive(Engine &engine) {
  while (numRequests < options.requests &&
         waiting.size() < size_t(options.burst))
    waiting.push_back(newRequest());
  if (!retracted.empty() && random.chance(60) &&
      engine.restore(retracted.front()))
    retracted.pop_front();
  while (!waiting.empty() && random.below(options.burst) > 0 &&
         engine.admit(waiting.front()))
    waiting.pop_front();
}

void Workload::disturb(Engine &engine) {
  if (random.chance(6))
    engine.fork(1000000 + ++numForks);
  if (random.chance(2))
    engine.cancel();
  if (random.chance(8))
    if (std::unique_ptr<Request> request = engine.retract())
      retracted.push_back(std::move(request));
  if (++numRounds % 75 == 0) // in turn, the number being odd
    for (std::unique_ptr<Request> &request : engine.reset())
      waiting.push_back(std::move(request));
}

bool Workload::isIdle() const {
  return waiting.empty() && retracted.empty() &&
         std::all_of(engines.begin(), engines.end(),
                     [](const auto &engine) { return engine->isIdle(); });
}

int Workload::numFinished() const {
  size_t unfinished = waiting.size() + retracted.size();
  for (const auto &engine : engines)
    unfinished += engine->numRunning();
  return std::max(0, numRequests - int(unfinished)); // forks are not counted
}

void Workload::run() {
  Progress progress(options.requests);
  while (numRequests < options.requests || !isIdle())
    for (auto &engine : engines) {
      progress.update(numFinished(), model.name);
      arrive(*engine);
      disturb(*engine);
      engine->step();
    }
  for (auto &engine : engines)
    engine->checkCached();
}

std::vector<std::string> Workload::worst() const {
  std::vector<std::string> sentences;
  for (const auto &engine : engines)
    sentences.push_back(engine->worst());
  return sentences;
}

} // namespace replayjit::internal::engine
