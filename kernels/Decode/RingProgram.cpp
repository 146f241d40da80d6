//===- RingProgram.cpp - Tokens that go to a ring -------------------------===//

#include "kernels/Decode/RingProgram.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

void RingProgram::storeHistory(Value state) {
  b.describe("flush");
  flush(state, flushView(at.dst));
}

void RingProgram::storeD(const Token &token, Value row, Value isWanted) {
  const int64_t v = spec.headDimV;
  Value offset =
      b.addI(ringRow(pool.dPitch, at.head, row, v), b.toI64(at.firstV));
  b.storeTile(token.d, vectorView(pool.dRing, "dRing", spec.ringType, offset,
                                  onlyIf(isWanted, at.vDim), v));
}

void RingProgram::storeK(Value k, Value row) {
  const int64_t size = spec.headDimK;
  b.storeTile(k, vectorView(pool.kRing, "kRing", spec.ringType,
                            ringRow(pool.kPitch, at.keyHead, row, size),
                            Dim{size, 1}, size));
}

void RingProgram::storeGate(Value g, Value row) {
  const int64_t gates = gatesPerRow();
  Value offset = ringRow(pool.gPitch, at.head, row, gates);
  if (spec.isKda) {
    b.storeTile(g, vectorView(pool.gRing, "gRing", DataType::F32, offset,
                              Dim{gates, 1}, gates));
    return;
  }
  b.describe("gRing");
  Value one = b.view(pool.gRing, offset, {Dim{1, 1}});
  StoreOp::create(b, g, one, ValueRange{b.i32(0)});
}

void RingProgram::append(ArrayRef<Token> tokens, Value total, Value startsAnew,
                         Value count) {
  SmallVector<Value> places, isWanted;
  for (auto [i, token] : llvm::enumerate(tokens)) {
    places.push_back(physicalRow(i ? b.addI(at.cursor, b.i32(i)) : at.cursor));
    isWanted.push_back(count ? b.isLess(b.i32(i), count) : Value());
    storeD(token, places[i], isWanted[i]);
  }
  auto forEach = [&](llvm::function_ref<void(const Token &, Value)> visit) {
    for (auto [i, token] : llvm::enumerate(tokens)) {
      auto one = [&, i = i] { visit(tokens[i], places[i]); };
      if (isWanted[i])
        b.when(isWanted[i], one);
      else
        one();
    }
  };
  // What blocks share is written by one of them.
  Value isFirstTile = b.isEqual(at.tile, b.i32(0));
  const int32_t ratio = spec.numValueHeads / spec.numKeyHeads;
  Value isFirstHead = b.isEqual(b.remI(at.head, ratio), b.i32(0));
  const bool isPredecayed = spec.ringFormat == RingFormat::Predecayed;
  if (!isPredecayed)
    b.when(b.allOf(isFirstTile, isFirstHead), [&] {
      forEach([&](const Token &token, Value row) { storeK(token.k, row); });
    });
  b.when(isFirstTile, [&] {
    Value sum = total;
    if (sum && startsAnew)
      sum = b.select(startsAnew, b.constant(0, sum), sum);
    SmallVector<Value> gates;
    for (const Token &token : tokens) {
      gates.push_back(sum ? b.add(sum, token.gate.g) : token.gate.g);
      if (sum)
        sum = gates.back();
    }
    int i = 0;
    forEach([&](const Token &token, Value row) {
      Value g = gates[i++];
      if (isPredecayed)
        storeK(b.mul(token.k, b.exp(b.neg(g))), row);
      storeGate(g, row);
    });
  });
}
