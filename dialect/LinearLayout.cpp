//===- LinearLayout.cpp - Which thread holds which element ----------------===//

#include "dialect/LinearLayout.h"
#include "dialect/ReplayDialect.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace replayjit::internal;

//===----------------------------------------------------------------------===//
// Conversions to and from the IR
//===----------------------------------------------------------------------===//

static SmallVector<Basis> toBases(ArrayRef<int32_t> flat, int64_t rank) {
  SmallVector<Basis> bases;
  for (size_t i = 0; i < flat.size(); i += rank) {
    Basis basis;
    for (int64_t dim = 0; dim < rank; ++dim)
      if (flat[i + dim])
        basis = {(int)dim, flat[i + dim]};
    bases.push_back(basis);
  }
  return bases;
}

static SmallVector<int32_t> flatten(ArrayRef<Basis> bases, int64_t rank) {
  SmallVector<int32_t> flat(bases.size() * rank, 0);
  for (auto [i, basis] : llvm::enumerate(bases))
    if (basis.move)
      flat[i * rank + basis.dim] = basis.move;
  return flat;
}

std::optional<LinearLayout> LinearLayout::of(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return std::nullopt;
  auto attr = dyn_cast_if_present<replay::LayoutAttr>(tensor.getEncoding());
  if (!attr)
    return std::nullopt;
  LinearLayout layout;
  layout.shape.assign(tensor.getShape().begin(), tensor.getShape().end());
  layout.registers = toBases(attr.getRegisters(), attr.getRank());
  layout.lanes = toBases(attr.getLanes(), attr.getRank());
  layout.warps = toBases(attr.getWarps(), attr.getRank());
  return layout;
}

replay::LayoutAttr LinearLayout::toAttr(MLIRContext *context) const {
  return replay::LayoutAttr::get(context, rank(), flatten(registers, rank()),
                                 flatten(lanes, rank()),
                                 flatten(warps, rank()));
}

RankedTensorType LinearLayout::applyTo(RankedTensorType type) const {
  return type.cloneWithEncoding(toAttr(type.getContext()));
}

//===----------------------------------------------------------------------===//
// Constructors
//===----------------------------------------------------------------------===//

namespace {
/// Hands out the bits of each dimension from the lowest up.
struct BitSupply {
  ArrayRef<int64_t> shape;
  SmallVector<int32_t> next;

  explicit BitSupply(ArrayRef<int64_t> shape)
      : shape(shape), next(shape.size(), 1) {}
  bool has(int dim) const { return next[dim] < shape[dim]; }
  /// Appends up to `count` bits of `dim` to `bases`; returns how many.
  int take(int dim, int count, SmallVector<Basis> &bases) {
    int taken = 0;
    for (; taken < count && has(dim); ++taken, next[dim] *= 2)
      bases.push_back({dim, next[dim]});
    return taken;
  }
};
} // namespace

static void replicate(SmallVector<Basis> &bases, int count) {
  while ((int)bases.size() < count)
    bases.push_back({});
}

LinearLayout LinearLayout::coalesced(ArrayRef<int64_t> shape, int contiguousDim,
                                     int vector, int lanesPerRow,
                                     int numWarps) {
  LinearLayout layout;
  layout.shape.assign(shape.begin(), shape.end());
  BitSupply bits(shape);
  bits.take(contiguousDim, llvm::Log2_32(vector), layout.registers);
  bits.take(contiguousDim, llvm::Log2_32(lanesPerRow), layout.lanes);
  int otherDim = shape.size() == 2 ? 1 - contiguousDim : contiguousDim;
  bits.take(otherDim, 5 - layout.lanes.size(), layout.lanes);
  bits.take(contiguousDim, 5 - layout.lanes.size(), layout.lanes);
  replicate(layout.lanes, 5);
  // Warps take the high row bits, and column bits where those do not suffice;
  // what is left below them is registers'.
  int warpBits = llvm::Log2_32(numWarps);
  int rowBits = llvm::Log2_64(shape[otherDim] / bits.next[otherDim]);
  int columnBits =
      shape.size() == 2
          ? llvm::Log2_64(shape[contiguousDim] / bits.next[contiguousDim])
          : 0;
  int warpColumnBits = std::clamp(warpBits - rowBits, 0, columnBits);
  bits.take(contiguousDim, columnBits - warpColumnBits, layout.registers);
  bits.take(otherDim, std::max(0, rowBits - warpBits), layout.registers);
  bits.take(otherDim, warpBits, layout.warps);
  bits.take(contiguousDim, warpColumnBits, layout.warps);
  replicate(layout.warps, warpBits);
  return layout;
}

LinearLayout LinearLayout::inRegisters(ArrayRef<int64_t> shape, int numWarps) {
  LinearLayout layout;
  layout.shape.assign(shape.begin(), shape.end());
  BitSupply bits(shape);
  for (int dim = shape.size() - 1; dim >= 0; --dim)
    bits.take(dim, 32, layout.registers);
  replicate(layout.lanes, 5);
  replicate(layout.warps, llvm::Log2_32(numWarps));
  return layout;
}

/// Gives warps the M bits above 16 from the top, then N bits above `nUnit`; the
/// rest becomes registers. Dimensions that an operand lacks replicate.
static void splitWarps(LinearLayout &layout, int64_t m, int64_t n, int mDim,
                       int nDim, int numWarps, int64_t nUnit = 8) {
  int warpBits = llvm::Log2_32(numWarps);
  int mBits = std::min<int>(warpBits, llvm::Log2_64(m / 16));
  int nBits = std::min<int>(warpBits - mBits, llvm::Log2_64(n / nUnit));
  auto give = [&](int dim, int64_t size, int bits, int64_t unit) {
    int64_t warpUnit = size >> bits;
    if (dim >= 0)
      for (int64_t move = unit; move < warpUnit; move *= 2)
        layout.registers.push_back({dim, (int32_t)move});
    for (int64_t move = warpUnit; move < size; move *= 2)
      layout.warps.push_back(dim >= 0 ? Basis{dim, (int32_t)move} : Basis{});
  };
  give(mDim, m, mBits, 16);
  give(nDim, n, nBits, nUnit);
  replicate(layout.warps, warpBits);
}

LinearLayout LinearLayout::mmaResult(int64_t m, int64_t n, int numWarps) {
  LinearLayout layout;
  layout.shape = {m, n};
  layout.registers = {{1, 1}, {0, 8}};
  layout.lanes = {{1, 2}, {1, 4}, {0, 1}, {0, 2}, {0, 4}};
  splitWarps(layout, m, n, 0, 1, numWarps);
  return layout;
}

LinearLayout LinearLayout::mmaOperandA(int64_t m, int64_t k, int64_t n,
                                       bool is16Bit, int numWarps) {
  LinearLayout layout;
  layout.shape = {m, k};
  if (is16Bit) {
    layout.registers = {{1, 1}, {0, 8}, {1, 8}};
    layout.lanes = {{1, 2}, {1, 4}, {0, 1}, {0, 2}, {0, 4}};
  } else {
    layout.registers = {{0, 8}, {1, 4}};
    layout.lanes = {{1, 1}, {1, 2}, {0, 1}, {0, 2}, {0, 4}};
  }
  for (int64_t move = is16Bit ? 16 : 8; move < k; move *= 2)
    layout.registers.push_back({1, (int32_t)move});
  splitWarps(layout, m, n, 0, -1, numWarps);
  return layout;
}

LinearLayout LinearLayout::mmaOperandB(int64_t m, int64_t k, int64_t n,
                                       bool is16Bit, int numWarps) {
  LinearLayout layout;
  layout.shape = {k, n};
  if (is16Bit) {
    layout.registers = {{0, 1}, {0, 8}};
    layout.lanes = {{0, 2}, {0, 4}, {1, 1}, {1, 2}, {1, 4}};
  } else {
    layout.registers = {{0, 4}};
    layout.lanes = {{0, 1}, {0, 2}, {1, 1}, {1, 2}, {1, 4}};
  }
  for (int64_t move = is16Bit ? 16 : 8; move < k; move *= 2)
    layout.registers.push_back({0, (int32_t)move});
  splitWarps(layout, m, n, -1, 1, numWarps);
  return layout;
}

/// How many neighbours of K a lane holds of a fragment's row, of which four
/// lanes hold parts; and how many of N, which eight lanes share.
static int64_t wideK(int64_t k) { return std::min<int64_t>(8, k / 4); }
static int64_t wideN(int64_t n) { return std::min<int64_t>(8, n / 8); }

static void take(SmallVector<Basis> &bases, int dim, int64_t from, int64_t to) {
  for (int64_t move = from; move < to; move *= 2)
    bases.push_back({dim, (int32_t)move});
}

LinearLayout LinearLayout::wideMmaResult(int64_t m, int64_t n, int numWarps) {
  const int64_t run = wideN(n);
  LinearLayout layout;
  layout.shape = {m, n};
  take(layout.registers, 1, 1, 2 * run); // The last is column 1 of a fragment.
  take(layout.registers, 0, 8, 16);
  take(layout.lanes, 1, 2 * run, 8 * run);
  take(layout.lanes, 0, 1, 8);
  splitWarps(layout, m, n, 0, 1, numWarps, 8 * run);
  return layout;
}

LinearLayout LinearLayout::wideMmaOperandA(int64_t m, int64_t k, int64_t n,
                                           int numWarps) {
  const int64_t run = wideK(k);
  LinearLayout layout;
  layout.shape = {m, k};
  take(layout.registers, 1, 1, run);
  take(layout.registers, 0, 8, 16);
  take(layout.registers, 1, 4 * run, k);
  take(layout.lanes, 1, run, 4 * run);
  take(layout.lanes, 0, 1, 8);
  splitWarps(layout, m, n, 0, -1, numWarps, 8 * wideN(n));
  return layout;
}

LinearLayout LinearLayout::wideMmaOperandB(int64_t m, int64_t k, int64_t n,
                                           int numWarps) {
  const int64_t runK = wideK(k), runN = wideN(n);
  LinearLayout layout;
  layout.shape = {k, n};
  take(layout.registers, 1, 1, runN);
  take(layout.registers, 0, 1, runK);
  take(layout.registers, 0, 4 * runK, k);
  take(layout.lanes, 0, runK, 4 * runK);
  take(layout.lanes, 1, runN, 8 * runN);
  splitWarps(layout, m, n, -1, 1, numWarps, 8 * runN);
  return layout;
}

//===----------------------------------------------------------------------===//
// Derived layouts
//===----------------------------------------------------------------------===//

/// Removes what moves along `dim`; registers disappear, threads replicate.
static LinearLayout without(LinearLayout layout, int dim) {
  llvm::erase_if(layout.registers,
                 [&](const Basis &basis) { return basis.dim == dim; });
  for (auto *bases : {&layout.lanes, &layout.warps})
    for (Basis &basis : *bases)
      if (basis.dim == dim)
        basis = {};
  return layout;
}

/// Renumbers the dimensions that `layout` moves along.
static LinearLayout withDim(LinearLayout layout, int dim) {
  for (auto *bases : {&layout.registers, &layout.lanes, &layout.warps})
    for (Basis &basis : *bases)
      basis.dim = basis.move ? dim : 0;
  return layout;
}

LinearLayout LinearLayout::slice(int dim) const {
  LinearLayout layout = withDim(without(*this, dim), 0);
  layout.shape = {shape[1 - dim]};
  return layout;
}

LinearLayout LinearLayout::expand(int dim) const {
  LinearLayout layout = withDim(*this, 1 - dim);
  layout.shape = dim == 0 ? SmallVector<int64_t>{1, shape[0]}
                          : SmallVector<int64_t>{shape[0], 1};
  return layout;
}

LinearLayout LinearLayout::squeeze(int dim) const {
  LinearLayout layout = without(*this, dim);
  layout.shape[dim] = 1;
  return layout;
}

LinearLayout LinearLayout::widen(int dim, int64_t size) const {
  LinearLayout layout = *this;
  layout.shape[dim] = size;
  int32_t move = 1;
  for (auto *bases : {&layout.lanes, &layout.warps})
    for (Basis &basis : *bases)
      if (basis.move == 0 && move < size) {
        basis = {dim, move};
        move *= 2;
      }
  for (; move < size; move *= 2)
    layout.registers.push_back({dim, move});
  return layout;
}

LinearLayout LinearLayout::widenInRegisters(int dim, int64_t size) const {
  LinearLayout layout = *this;
  layout.shape[dim] = size;
  for (int32_t move = 1; move < size; move *= 2)
    layout.registers.push_back({dim, move});
  return layout;
}

LinearLayout LinearLayout::reduced(int axis) const {
  LinearLayout layout = slice(axis);
  for (auto [lane, before] : llvm::zip(layout.lanes, lanes))
    if (before.move && before.dim == axis && !layout.registers.empty()) {
      lane = layout.registers.front();
      layout.registers.erase(layout.registers.begin());
    }
  return layout;
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

SmallVector<int64_t> LinearLayout::registerOffset(int reg) const {
  SmallVector<int64_t> offset(rank(), 0);
  for (auto [bit, basis] : llvm::enumerate(registers))
    if (reg >> bit & 1)
      offset[basis.dim] += basis.move;
  return offset;
}

int LinearLayout::registerAt(ArrayRef<int64_t> offset) const {
  int reg = 0;
  for (auto [bit, basis] : llvm::enumerate(registers))
    if (offset[basis.dim] & basis.move)
      reg |= 1 << bit;
  return reg;
}

int LinearLayout::contiguous(int dim) const {
  int count = 1;
  for (const Basis &basis : registers) {
    if (basis.dim != dim || basis.move != count)
      break;
    count *= 2;
  }
  return count;
}

static int zeroBits(ArrayRef<Basis> bases) {
  int mask = 0;
  for (auto [bit, basis] : llvm::enumerate(bases))
    if (basis.move == 0)
      mask |= 1 << bit;
  return mask;
}

int LinearLayout::replicatedLanes() const { return zeroBits(lanes); }
int LinearLayout::replicatedWarps() const { return zeroBits(warps); }

void LinearLayout::print(raw_ostream &os) const {
  auto list = [&](StringRef name, ArrayRef<Basis> bases) {
    os << name << '[';
    llvm::interleaveComma(bases, os, [&](const Basis &basis) {
      os << (basis.move ? (basis.dim ? "c" : "r") : "-") << basis.move;
    });
    os << "] ";
  };
  list("register", registers);
  list("lane", lanes);
  list("warp", warps);
}
