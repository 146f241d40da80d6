//===- ExactProducts.cpp - fp32 products on the matrix unit ---------------===//

#include "compiler/Transforms/ExactProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

/// bf16 has 8 digits and tf32 11, of the 24 of fp32.
static constexpr int numParts = 3;
/// Columns of a fragment.
static constexpr int64_t leastColumns = 8;

bool replayjit::internal::holds(Precision precision, Type type) {
  return type.isBF16() || (precision == Precision::Tf32 && type.isF16());
}

/// The digits of an f32 tile that tf32 has.
static Value cutToTf32(TileBuilder &b, Value x) {
  auto type = cast<RankedTensorType>(x.getType());
  auto bits = RankedTensorType::get(type.getShape(), b.getI32Type());
  Value mask = arith::ConstantOp::create(
      b, DenseElementsAttr::get(bits, b.getI32IntegerAttr(~0x1fff)));
  Value word = arith::BitcastOp::create(b, bits, x);
  return arith::BitcastOp::create(b, type,
                                  Value(arith::AndIOp::create(b, word, mask)));
}

/// Three tiles of which `x` is the sum, in the type in which they take least
/// room.
static SmallVector<Value> partsOf(TileBuilder &b, Value x,
                                  Precision precision) {
  SmallVector<Value> parts;
  for (Value rest = x; parts.size() < numParts;) {
    const bool isLast = parts.size() + 1 == numParts;
    parts.push_back(precision == Precision::Bf16
                        ? b.narrow(rest, b.getBF16Type())
                        : (isLast ? rest : cutToTf32(b, rest)));
    if (!isLast)
      rest = b.sub(rest, b.widen(parts.back()));
  }
  return parts;
}

static Value wideDot(TileBuilder &b, Value left, Value right, Value sum,
                     Precision precision) {
  return DotOp::create(b, sum.getType(), left, right, sum, precision,
                       /*wide=*/true);
}

Value replayjit::internal::exactDot(TileBuilder &b, Value left, Value right,
                                    Value sum, Value split,
                                    Precision precision) {
  for (Value part : partsOf(b, split, precision))
    sum = split == left ? wideDot(b, b.widen(part), right, sum, precision)
                        : wideDot(b, left, b.widen(part), sum, precision);
  return sum;
}

SplitVectors::SplitVectors(TileBuilder &b, ValueRange vectors,
                           Precision precision)
    : count(vectors.size()), padded(llvm::PowerOf2Ceil(count)),
      columns(std::max(padded, leastColumns)), precision(precision) {
  SmallVector<SmallVector<Value>> parts;
  for (Value vector : vectors)
    parts.push_back(partsOf(b, vector, precision));
  Type type = parts[0][0].getType();
  Value none =
      arith::ConstantOp::create(b, cast<TypedAttr>(b.getZeroAttr(type)));
  const int64_t perTile = columns / padded;
  for (int64_t first = 0; first < numParts; first += perTile) {
    SmallVector<Value> rows;
    for (int64_t part = first;
         part < std::min<int64_t>(first + perTile, numParts); ++part)
      for (int64_t i = 0; i < padded; ++i)
        rows.push_back(i < count ? parts[i][part] : none);
    fragments.push_back(b.transpose(b.widen(b.stack(rows, columns))));
  }
}

SmallVector<Value> SplitVectors::products(TileBuilder &b, Value tile) const {
  int64_t rows = cast<RankedTensorType>(tile.getType()).getDimSize(0);
  Value sums = b.zeros({rows, columns});
  for (Value fragment : fragments)
    sums = wideDot(b, tile, fragment, sums, precision);
  // A vector's products are the sum of its columns.
  auto all = [&](int32_t number) { return b.splat(b.i32(number), {columns}); };
  SmallVector<Value> results;
  for (int64_t i = 0; i < count; ++i) {
    Value isOwn = b.isEqual(b.remI(b.iota(columns), all(padded)), all(i));
    Value own =
        b.select(b.spread(isOwn, 0, rows), sums, b.zeros({rows, columns}));
    results.push_back(b.reduce(own, 1));
  }
  return results;
}
