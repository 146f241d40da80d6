//===- lesson_03_decode.cpp - Many tokens of one request ------------------===//
//
// Lesson 2 in a loop. Each token reads the checkpoint and the ring and appends
// a row to the ring; when that is full the launch writes the state, which
// empties it. The outputs are those of the plain recurrence, checked here, and
// the state is written once in L tokens.
//
//===----------------------------------------------------------------------===//

#include "Request.h"

#include <replayjit/replayjit_state.h>

using namespace replayjit;

int main() {
  Device device = orStop(Device::emulation());
  Jit jit = orStop(Jit::create(device));
  const DecodeSpec spec = lessonSpec();
  Kernel kernel = orStop(jit.prepare(spec, 1));
  Memory memory(device, /*rows=*/1, /*slots=*/2);
  memory.setSlots({0});

  // The cursor: how many rows of the ring are in use. Kernels never move it;
  // the engine does, once a step, whatever the number of layers.
  int32_t writePos = 0, base = 0;
  int flushes = 0;
  Recurrence plain;
  Numbers numbers;
  for (int token = 0; token < 10; ++token) {
    const Token input = Token::draw(numbers);
    memory.setTokens({input});
    memory.setCursors({writePos});
    orStop(kernel.launch(device.stream(), memory.args));
    orStop(device.synchronize(device.stream()));
    expect(isNear(memory.output(0), plain.step(input)), "the output");

    flushes += writePos == spec.ring_depth - 1;
    orStop(Status::take(
        replayjit_ring_cursor_advance(&spec, &writePos, &base, /*forced=*/0)));
  }
  std::printf("10 tokens, %d flushes, %d rows in the ring\n", flushes,
              writePos);
  expect(flushes == 2 && writePos == 2, "a flush at every 4th token");

  // Slot 0 holds a checkpoint that is two tokens old, and a ring. Another
  // kernel makes a whole state of both, for a prefix cache or a fork. It serves
  // all layers of a shape in one launch: a table of them lies on the device.
  DecodeSpec whole = spec;
  whole.family = REPLAYJIT_FAMILY_MATERIALIZE;
  whole.has_mask = 0;
  Kernel materialize = orStop(jit.prepare(whole));
  const DecodeArgs &decode = memory.args;
  const std::vector<replayjit_layer_t> layers = {
      {decode.state, decode.d_ring, decode.k_ring, decode.g_ring,
       decode.state_pitch, decode.d_pitch, decode.k_pitch, decode.g_pitch}};
  orStop(Status::take(replayjit_layer_validate(&whole, layers.data())));
  MaterializeArgs args;
  args.layers = upload(device, "layers", layers);
  args.num_layers = args.batch = 1;
  args.slots = decode.slots;
  args.src_indices = upload(device, "from", std::vector<int32_t>{0});
  args.dst_indices = upload(device, "to", std::vector<int32_t>{1});
  memory.setCursors({writePos});
  args.write_pos = decode.write_pos;
  orStop(materialize.launch(device.stream(), args));
  orStop(device.synchronize(device.stream()));
  expect(isNear(memory.state(1), plain.state), "slot 1 has the whole state");
  std::printf("materialized: ok\n");
}
