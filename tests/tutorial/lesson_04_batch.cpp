//===- lesson_04_batch.cpp - Requests that decode together ----------------===//
//
// Three requests in a batch of four rows. Each is at another place of its ring,
// which one launch serves; the fourth row is padding. What the kernel finds
// wrong with a row it reports in a word that the host can read at any time.
//
//===----------------------------------------------------------------------===//

#include "Request.h"

#include <replayjit/replayjit_state.h>

using namespace replayjit;

int main() {
  constexpr int rows = 4, slots = 8;
  Device device = orStop(Device::emulation());
  Jit jit = orStop(Jit::create(device));

  // An engine prepares all that it will launch before it serves: each layer
  // shape at each batch size, in parallel. Under REPLAYJIT_MUST_HIT=1 a kernel
  // that no cache holds is then an error here, and not a stall later.
  const DecodeSpec spec = lessonSpec();
  const auto kernels = jit.prepareAll(
      {{spec, 1}, {spec, rows}, {spec, 256}},
      [](size_t done, size_t total, const char *name, const Status &status) {
        std::printf("%zu of %zu: %.40s...\n", done, total,
                    status ? name : status.message.c_str());
      });
  Kernel kernel = orStop(kernels[1]);

  Memory memory(device, rows, slots);
  // Of host memory: the kernel writes, the host reads without a copy.
  const MappedMemory mapped =
      orStop(device.allocateMapped(sizeof(replayjit_error_word_t), "errors"));
  auto *errors = static_cast<replayjit_error_word_t *>(mapped.host);
  *errors = {};
  memory.args.error_word = mapped.device;

  // Any slots will do; a negative one is padding. Its row costs next to
  // nothing, its output is zero and nothing else is touched, so that a CUDA
  // graph of four rows serves three requests.
  memory.setSlots({5, 2, 7, -1});
  std::vector<int32_t> cursors(rows), bases(rows);
  std::vector<Recurrence> plain(3);
  Numbers numbers;
  for (int step = 0; step < 9; ++step) {
    // Row 1 writes its state now and again, as for a snapshot of its prefix.
    const std::vector<int32_t> forced = {0, step % 3 == 1, 0, 0};
    std::vector<Token> tokens;
    for (int row = 0; row < rows; ++row)
      tokens.push_back(Token::draw(numbers));
    memory.setTokens(tokens);
    memory.setCursors(cursors);
    memory.setForced(forced);
    orStop(kernel.launch(device.stream(), memory.args));
    orStop(device.synchronize(device.stream()));
    for (int row = 0; row < 3; ++row) {
      expect(isNear(memory.output(row), plain[row].step(tokens[row])),
             "the output of a row");
      orStop(Status::take(replayjit_ring_cursor_advance(
          &spec, &cursors[row], &bases[row], forced[row])));
    }
    expect(isNear(memory.output(3), std::vector<double>(HV * V)),
           "padding gives zeros");
    // A request that starts late: from here on its ring is not in step.
    if (step == 1) {
      plain[2] = Recurrence();
      cursors[2] = 0;
      memory.setSlots({5, 2, 6, -1});
    }
  }
  expect(cursors[0] == 1 && cursors[1] == 1 && cursors[2] == 3,
         "each row has a cursor of its own");
  expect(errors->count == 0, "nothing was wrong");

  // A slot that is not there: no fault, the row is padding, and it is told.
  memory.setSlots({5, 2, slots, -1});
  memory.setCursors(cursors);
  orStop(kernel.launch(device.stream(), memory.args));
  orStop(device.synchronize(device.stream()));
  std::printf("%u error, row %d, slot %lld\n", errors->count, errors->row,
              static_cast<long long>(errors->value));
  expect(errors->count == 1 && errors->row == 2 && errors->value == slots,
         "the first bad row is in the word");
  orStop(device.freeMapped(mapped));
}
