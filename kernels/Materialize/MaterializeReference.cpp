//===- MaterializeReference.cpp - Materialize in fp64 ---------------------===//

#include "kernels/Materialize/MaterializeReference.h"

#include "kernels/Decode/RowRules.h"
#include "kernels/Decode/SlotConflicts.h"

#include <cstring>

namespace replayjit::internal {

MaterializeRow readRow(const DecodeSpec &spec, const MaterializeArgs &args,
                       int index) {
  auto read = [&](DataType type, uint64_t address, int64_t stride) {
    return int64_t(HostTensor{type, address, stride}.get(index, 0));
  };
  const int64_t first = firstLegalSlot(spec), L = spec.ringDepth;
  MaterializeRow row;
  row.src = row.ringSlot =
      read(spec.indexType, args.srcIndices, args.srcIndexStride);
  row.dst = read(spec.indexType, args.dstIndices, args.dstIndexStride);
  if (row.src < first || row.dst < first || // R1
      (spec.hasMask && read(DataType::I32, args.mask, 1) == 0))
    return row;
  if (spec.hasRingIndices) // R15
    row.ringSlot = read(spec.indexType, args.ringIndices, args.ringIndexStride);
  const int64_t writePos = read(DataType::I32, args.writePos, 1);
  const int64_t base =
      spec.isCircular ? read(DataType::I32, args.ringBase, 1) : 0;
  const int64_t ringSlots = spec.hasRingIndices ? args.ringSlots : args.slots;
  judge(row, {{ErrorKind::StateSlot, row.src, first, args.slots},
              {ErrorKind::WritePos, writePos, 0, L},
              {ErrorKind::RingSlot, row.ringSlot, 0, ringSlots, writePos != 0},
              {ErrorKind::DstSlot, row.dst, first, args.slots},
              {ErrorKind::RingBase, base, 0, L}});
  if (row.isLive)
    row.cursor = {int32_t(writePos), int32_t(base)};
  return row;
}

void materializeLaunch(const DecodeSpec &spec, const MaterializeArgs &args) {
  for (int layer = 0; layer < args.numLayers; ++layer) {
    ReplayLayer place;
    std::memcpy(&place,
                reinterpret_cast<void *>(args.layers + layer * sizeof(place)),
                sizeof(place));
    const ReplayTensors tensors(spec, place);
    for (int index = 0; index < args.batch; ++index) {
      const MaterializeRow row = readRow(spec, args, index);
      if (!row.isLive) {
        reportError(args.errorWord, row.error, index, layer, row.badValue);
        continue;
      }
      double overflow = 0; // R18
      for (int hv = 0; hv < spec.numValueHeads; ++hv) {
        const std::vector<double> S =
            materialize(spec, tensors, row.src, row.ringSlot, hv, row.cursor);
        for (size_t i = 0; i < S.size(); ++i)
          tensors.state.store(row.dst, int64_t(hv) * S.size() + i, S[i],
                              overflow);
      }
      reportOverflow(args.errorWord, index, layer, overflow);
    }
  }
}

Status checkSlots(const DecodeSpec &spec, const MaterializeArgs &args) {
  SlotUses states;
  for (int i = 0; i < args.batch; ++i) {
    const MaterializeRow row = readRow(spec, args, i);
    if (!row.isLive)
      continue;
    states.read(i, row.src);
    states.write(i, row.dst);
  }
  return states.check("state slot");
}

} // namespace replayjit::internal
