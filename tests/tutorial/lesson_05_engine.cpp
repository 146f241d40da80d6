//===- lesson_05_engine.cpp - An engine's loop ----------------------------===//
//
// Two layers; requests come, decode and go. A pool knows where states, rings
// and cursors are; a plan makes each step a transaction: begin fills what the
// kernels read, one launch a layer, commit moves the cursors. A request that
// continues another starts from a copy of its state.
//
//===----------------------------------------------------------------------===//

#include "Request.h"

#include <replayjit/replayjit_state.hpp>

using namespace replayjit;

namespace {

constexpr int layers = 2, rows = 4, slots = 8;

/// A request has a slot of the pool, which is also the key of its cursor.
struct Request {
  int32_t slot;
  int tokensLeft;
  bool isFresh = true;
  Recurrence plain[layers] = {}; ///< To check against.
};

class Engine {
public:
  Engine(Device &device, Jit &jit) : device(device) {
    // The pool may also adopt memory that the engine has (StatePool::adopt).
    PoolGroup group;
    const DecodeSpec spec = lessonSpec();
    group.spec = &spec;
    group.num_layers = layers;
    group.slots = group.ring_slots = slots;
    pool = orStop(StatePool::allocate(jit, {group}, /*numKeys=*/slots));
    plan = orStop(StepPlan::create(pool, rows));
    kernel = orStop(pool.prepareDecode(0, rows));
    for (int layer = 0; layer < layers; ++layer)
      inputs.emplace_back(device, rows, /*slots=*/1);
    fresh = upload(device, "fresh", std::vector<int32_t>(rows));
    indices.state = upload(device, "slots", std::vector<int32_t>(rows));
    indices.dst = 0; // As state, unless slots are copied.
    indices.state_stride = indices.ring_stride = 1;
    indices.dst_stride = indices.track_stride = 1;
    into = upload(device, "into", std::vector<int32_t>(rows));
  }

  /// One token of each request.
  void step(std::vector<Request *> batch) {
    StepInputs step = inputsFor(batch);
    step.fresh = fresh;
    void *stream = device.stream();
    orStop(plan.begin(stream, ++stepId, step));
    for (int layer = 0; layer < layers; ++layer) {
      std::vector<Token> tokens;
      for (int row = 0; row < rows; ++row)
        tokens.push_back(Token::draw(numbers));
      Memory &memory = inputs[layer];
      memory.setTokens(tokens);
      // Where the layer's states are, from the plan; what the model computed,
      // from the engine.
      DecodeArgs args = orStop(plan.argsFor(0, layer, 0, rows));
      memory.addInputsTo(args);
      orStop(kernel.launch(stream, args));
      orStop(device.synchronize(stream));
      for (size_t row = 0; row < batch.size(); ++row)
        expect(isNear(memory.output(int(row)),
                      batch[row]->plain[layer].step(tokens[row])),
               "the output of a request");
    }
    // Without this the step would not have been: a begin that no commit follows
    // leaves all cursors where they were.
    orStop(plan.commit(stream, stepId));
    for (Request *request : batch) {
      request->isFresh = false;
      --request->tokensLeft;
    }
    expect(pool.pollErrors().count == 0, "nothing was wrong");
  }

  /// `to` continues where `from` is, as for a prefix they share.
  void fork(Request &from, Request &to) {
    StepInputs rowsOfIt = inputsFor({&from});
    orStop(device.copyToDevice(into, &to.slot, sizeof to.slot));
    replayjit_group_indices_t withDst = indices;
    withDst.dst = into;
    rowsOfIt.groups = &withDst;
    orStop(plan.materialize(device.stream(), rowsOfIt));
    for (int layer = 0; layer < layers; ++layer)
      to.plain[layer] = from.plain[layer];
  }

private:
  StepInputs inputsFor(const std::vector<Request *> &batch) {
    std::vector<int32_t> where, isFresh;
    for (const Request *request : batch) {
      where.push_back(request->slot);
      isFresh.push_back(request->isFresh);
    }
    const size_t bytes = where.size() * sizeof(int32_t);
    orStop(device.copyToDevice(indices.state, where.data(), bytes));
    orStop(device.copyToDevice(fresh, isFresh.data(), bytes));
    StepInputs step;
    step.live = int32_t(batch.size());
    step.keys = indices.state;
    step.groups = &indices;
    return step;
  }

  Device &device;
  StatePool pool;
  StepPlan plan;
  Kernel kernel;
  std::vector<Memory> inputs; ///< Of each layer; only q, a, b and out count.
  replayjit_group_indices_t indices = {};
  uint64_t fresh = 0, into = 0;
  int64_t stepId = 0;
  Numbers numbers;
};

} // namespace

int main() {
  Device device = orStop(Device::emulation());
  Jit jit = orStop(Jit::create(device));
  Engine engine(device, jit);

  Request first{3, 9}, second{5, 6}, third{1, 4};
  engine.step({&first});
  engine.step({&first, &second});
  engine.step({&first, &second, &third});
  engine.step({&second, &third, &first}); // Rows may change places.
  // A request that goes on from second's tokens, in a slot of its own: the
  // ring is folded into the copy, and second is not touched.
  Request child{6, 3};
  engine.fork(second, child);
  while (first.tokensLeft > 0) {
    std::vector<Request *> batch;
    for (Request *request : {&child, &first, &second, &third})
      if (request->tokensLeft > 0)
        batch.push_back(request);
    engine.step(batch);
  }
  // Its slot is free: a new request's cursor counts as 0, whatever was there.
  // The state is the engine's to zero, as prefill would overwrite it.
  std::printf("%d layers, 4 requests: ok\n", layers);
}
