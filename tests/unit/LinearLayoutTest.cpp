//===- LinearLayoutTest.cpp - Which thread holds which element ------------===//
//
// Everything here is checked by going through all registers, lanes and warps of
// a layout; nothing relies on how bases are stored.
//
//===----------------------------------------------------------------------===//

#include "dialect/LinearLayout.h"
#include "dialect/ReplayDialect.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <catch2/catch.hpp>

#include <array>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace replayjit::internal;

namespace {

using Coordinate = std::vector<int64_t>;

/// A register of a thread.
struct Place {
  int reg, lane, warp;
};

int numWarps(const LinearLayout &layout) { return 1 << layout.warps.size(); }

/// The coordinate that a register holds: the moves of all set bits, added up.
Coordinate at(const LinearLayout &layout, Place place) {
  Coordinate coordinate(layout.shape.size(), 0);
  auto add = [&](llvm::ArrayRef<Basis> bases, int number) {
    for (size_t bit = 0; bit < bases.size(); ++bit)
      if (number >> bit & 1 && bases[bit].move)
        coordinate[bases[bit].dim] += bases[bit].move;
  };
  add(layout.registers, place.reg);
  add(layout.lanes, place.lane);
  add(layout.warps, place.warp);
  return coordinate;
}

template <typename Body>
void forEachPlace(const LinearLayout &layout, Body body) {
  for (int warp = 0; warp < numWarps(layout); ++warp)
    for (int lane = 0; lane < 32; ++lane)
      for (int reg = 0; reg < layout.numRegisters(); ++reg)
        body(Place{reg, lane, warp});
}

/// Whether every element is held, each equally often, none by two registers of
/// one thread, and as often as the layout's replicated bits say; and that the
/// queries agree with what registers hold.
void checkCovers(const LinearLayout &layout) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  layout.print(stream);
  INFO(text);
  REQUIRE(layout.lanes.size() == 5);
  int64_t elements = 1;
  for (int64_t size : layout.shape)
    elements *= size;
  std::vector<int> holders(elements, 0), owners(elements, 0);
  int outside = 0;
  forEachPlace(layout, [&](Place place) {
    Coordinate coordinate = at(layout, place);
    int64_t index = 0;
    for (size_t dim = 0; dim < coordinate.size(); ++dim) {
      if (coordinate[dim] < 0 || coordinate[dim] >= layout.shape[dim])
        return void(++outside);
      index = index * layout.shape[dim] + coordinate[dim];
    }
    ++holders[index];
    // An element's owner is the thread whose replicated bits are zero.
    if (!(place.lane & layout.replicatedLanes()) &&
        !(place.warp & layout.replicatedWarps()))
      ++owners[index];
  });
  int copies = 1 << (llvm::popcount((unsigned)layout.replicatedLanes()) +
                     llvm::popcount((unsigned)layout.replicatedWarps()));
  int wrong = 0;
  for (int64_t i = 0; i < elements; ++i)
    wrong += holders[i] != copies || owners[i] != 1;
  for (int reg = 0; reg < layout.numRegisters(); ++reg) {
    llvm::SmallVector<int64_t> offset = layout.registerOffset(reg);
    wrong +=
        Coordinate(offset.begin(), offset.end()) != at(layout, {reg, 0, 0});
    wrong += layout.registerAt(offset) != reg;
    for (int dim = 0; dim < layout.rank(); ++dim) {
      int run = layout.contiguous(dim);
      Coordinate first = at(layout, {reg / run * run, 0, 0});
      first[dim] += reg % run;
      wrong += first != at(layout, {reg, 0, 0});
    }
  }
  CHECK(outside == 0);
  CHECK(wrong == 0);
}

Coordinate without(Coordinate coordinate, int dim) {
  coordinate.erase(coordinate.begin() + dim);
  return coordinate;
}

/// The set of coordinates that a thread holds, mapped by `map`.
std::set<Coordinate>
heldBy(const LinearLayout &layout, int lane, int warp,
       const std::function<Coordinate(Coordinate)> &map = {}) {
  std::set<Coordinate> held;
  for (int reg = 0; reg < layout.numRegisters(); ++reg) {
    Coordinate coordinate = at(layout, {reg, lane, warp});
    held.insert(map ? map(coordinate) : coordinate);
  }
  return held;
}

/// Calls `body` with rank-2 layouts of several kinds.
void forEachTile(const std::function<void(const LinearLayout &)> &body) {
  for (int warps : {1, 4, 8})
    for (int64_t rows : {1, 4, 16, 32, 128})
      for (int64_t columns : {1, 8, 32, 128}) {
        body(LinearLayout::coalesced({rows, columns}, 1,
                                     std::min<int>(columns, 4), 8, warps));
        body(LinearLayout::coalesced({rows, columns}, 0, 1, 32, warps));
      }
  for (int warps : {1, 4, 16})
    for (int64_t m : {16, 64})
      for (int64_t n : {8, 32})
        body(LinearLayout::mmaResult(m, n, warps));
}

} // namespace

TEST_CASE("coalesced layouts cover their tiles", "[layout]") {
  for (int warps : {1, 2, 4, 32})
    for (int vector : {1, 4, 8})
      for (int lanes : {1, 8, 32}) {
        for (int64_t rows : {1, 2, 16, 128})
          for (int64_t columns : {1, 2, 16, 128})
            for (int dim : {0, 1}) {
              CAPTURE(warps, vector, lanes, rows, columns, dim);
              auto layout = LinearLayout::coalesced({rows, columns}, dim,
                                                    vector, lanes, warps);
              checkCovers(layout);
              CHECK(numWarps(layout) == warps);
              // Where all threads have a vector, no two have one element.
              if (vector <= (dim ? columns : rows) &&
                  rows * columns >= vector * 32 * warps)
                CHECK(layout.numRegisters() * 32 * warps == rows * columns);
            }
        for (int64_t size : {1, 2, 16, 32, 64, 1024}) {
          CAPTURE(warps, vector, lanes, size);
          auto layout =
              LinearLayout::coalesced({size}, 0, vector, lanes, warps);
          checkCovers(layout);
          CHECK(numWarps(layout) == warps);
        }
      }
}

TEST_CASE("coalesced layouts are made for wide accesses", "[layout]") {
  // 8 lanes of 4 floats: a row's 32 neighbours are 128 bytes of one line.
  auto layout = LinearLayout::coalesced({32, 128}, 1, 4, 8, 4);
  CHECK(layout.contiguous(1) == 4);
  CHECK(layout.contiguous(0) == 1);
  CHECK(layout.numRegisters() == 32);
  for (int warp = 0; warp < 4; ++warp)
    for (int lane = 0; lane < 32; ++lane)
      CHECK(at(layout, {0, lane, warp}) ==
            Coordinate{8 * warp + lane / 8, 4 * (lane % 8)});
  CHECK(layout.replicatedLanes() == 0);
  CHECK(layout.replicatedWarps() == 0);
  // Columns first, for memory whose neighbours stand in a column.
  layout = LinearLayout::coalesced({32, 128}, 0, 4, 8, 4);
  CHECK(layout.contiguous(0) == 4);
  CHECK(at(layout, {3, 1, 0}) == Coordinate{7, 0});
  // A short row leaves lanes to more rows.
  layout = LinearLayout::coalesced({64, 8}, 1, 4, 8, 1);
  CHECK(at(layout, {0, 1, 0}) == Coordinate{0, 4});
  CHECK(at(layout, {0, 2, 0}) == Coordinate{1, 0});
  // Too few elements for all threads: the rest repeats them.
  layout = LinearLayout::coalesced({1, 32}, 1, 4, 8, 4);
  CHECK(layout.numRegisters() == 4);
  CHECK(layout.replicatedLanes() == 24);
  CHECK(layout.replicatedWarps() == 3);
}

TEST_CASE("every thread holds a tile in registers", "[layout]") {
  for (int warps : {1, 2, 32})
    for (int64_t rows : {1, 2, 16}) {
      checkCovers(LinearLayout::inRegisters({rows}, warps));
      for (int64_t columns : {1, 8}) {
        auto layout = LinearLayout::inRegisters({rows, columns}, warps);
        checkCovers(layout);
        CHECK(layout.numRegisters() == rows * columns);
        CHECK(layout.replicatedLanes() == 31);
        CHECK(layout.replicatedWarps() == warps - 1);
        CHECK(layout.contiguous(1) == columns);
      }
    }
}

//===----------------------------------------------------------------------===//
// Fragments of mma.sync, from the PTX ISA's formulas
//===----------------------------------------------------------------------===//

namespace {

/// PTX ISA, "Matrix Fragments for mma.m16n8k8" with .tf32 and
/// "mma.m16n8k16" with floating point types: the row and column of the i-th
/// element that a lane holds, groupID g = lane >> 2, threadID_in_group
/// t = lane % 4.
struct Fragment {
  int elements, rows, columns;
  std::array<int, 2> (*at)(int i, int g, int t);
};

// a0: (g, t)  a1: (g + 8, t)  a2: (g, t + 4)  a3: (g + 8, t + 4)
const Fragment tf32A = {
    4, 16, 8, [](int i, int g, int t) {
      return std::array{i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4};
    }};
// b0: (t, g)  b1: (t + 4, g)
const Fragment tf32B = {2, 8, 8, [](int i, int g, int t) {
                          return std::array{i == 0 ? t : t + 4, g};
                        }};
// row = g for ai where 0 <= i < 2 || 4 <= i < 6, else g + 8;
// col = t * 2 + (i & 1) for ai where i < 4, else t * 2 + (i & 1) + 8
const Fragment halfA = {
    8, 16, 16, [](int i, int g, int t) {
      bool upper = i < 2 || (i >= 4 && i < 6);
      return std::array{upper ? g : g + 8, t * 2 + (i & 1) + (i < 4 ? 0 : 8)};
    }};
// row = t * 2 + (i & 1) for bi where i < 2, else t * 2 + (i & 1) + 8; col = g
const Fragment halfB = {
    4, 16, 8, [](int i, int g, int t) {
      return std::array{t * 2 + (i & 1) + (i < 2 ? 0 : 8), g};
    }};
// row = g for ci where i < 2, else g + 8; col = t * 2 + (i & 1)
const Fragment result = {
    4, 16, 8, [](int i, int g, int t) {
      return std::array{i < 2 ? g : g + 8, t * 2 + (i & 1)};
    }};

/// Lanes hold the fragments that tile the matrix, the same ones for each warp's
/// part of it: every element lies in a register of the lane that mma.sync wants
/// it in, and lanes hold nothing else.
void checkFragments(const LinearLayout &layout, const Fragment &fragment) {
  int wrong = 0;
  for (int lane = 0; lane < 32; ++lane) {
    std::set<std::pair<int64_t, int64_t>> expected;
    for (int i = 0; i < fragment.elements; ++i) {
      auto [row, column] = fragment.at(i, lane >> 2, lane & 3);
      expected.insert({row, column});
    }
    REQUIRE((int)expected.size() == fragment.elements);
    for (int warp = 0; warp < numWarps(layout); ++warp) {
      // How many elements of each fragment this thread holds.
      std::map<std::pair<int64_t, int64_t>, int> fragments;
      for (int reg = 0; reg < layout.numRegisters(); ++reg) {
        Coordinate c = at(layout, {reg, lane, warp});
        wrong +=
            !expected.count({c[0] % fragment.rows, c[1] % fragment.columns});
        ++fragments[{c[0] / fragment.rows, c[1] / fragment.columns}];
      }
      for (auto &[where, count] : fragments)
        wrong += count != fragment.elements;
    }
  }
  CHECK(wrong == 0);
}

/// A warp holds the rows of A and the columns of B of its part of the result,
/// for all of K.
void checkWarps(const LinearLayout &a, const LinearLayout &b,
                const LinearLayout &c) {
  const int64_t k = a.shape[1];
  for (int warp = 0; warp < 1 << c.warps.size(); ++warp) {
    std::set<int64_t> rowsOfC, columnsOfC, rowsOfA, columnsOfB;
    std::set<int64_t> depthOfA, depthOfB;
    for (int lane = 0; lane < 32; ++lane) {
      for (const Coordinate &x : heldBy(c, lane, warp)) {
        rowsOfC.insert(x[0]);
        columnsOfC.insert(x[1]);
      }
      for (const Coordinate &x : heldBy(a, lane, warp)) {
        rowsOfA.insert(x[0]);
        depthOfA.insert(x[1]);
      }
      for (const Coordinate &x : heldBy(b, lane, warp)) {
        columnsOfB.insert(x[1]);
        depthOfB.insert(x[0]);
      }
    }
    CHECK(rowsOfA == rowsOfC);
    CHECK(columnsOfB == columnsOfC);
    CHECK((int64_t)depthOfA.size() == k);
    CHECK((int64_t)depthOfB.size() == k);
  }
}

} // namespace

TEST_CASE("mma fragments are those of the PTX ISA", "[layout]") {
  for (int warps : {1, 2, 4, 8, 32})
    for (int64_t m : {16, 32, 128})
      for (int64_t n : {8, 64})
        for (int64_t k : {16, 64}) {
          CAPTURE(warps, m, n, k);
          auto c = LinearLayout::mmaResult(m, n, warps);
          checkCovers(c);
          checkFragments(c, result);
          for (bool half : {false, true}) {
            auto a = LinearLayout::mmaOperandA(m, k, n, half, warps);
            auto b = LinearLayout::mmaOperandB(m, k, n, half, warps);
            checkCovers(a);
            checkCovers(b);
            checkFragments(a, half ? halfA : tf32A);
            checkFragments(b, half ? halfB : tf32B);
            checkWarps(a, b, c);
          }
        }
}

TEST_CASE("wide fragments hold neighbours of a row", "[layout]") {
  for (int warps : {1, 2, 4, 8})
    for (int64_t m : {16, 32, 128})
      for (int64_t n : {8, 16, 64, 128})
        for (int64_t k : {16, 32, 128}) {
          CAPTURE(warps, m, n, k);
          auto c = LinearLayout::wideMmaResult(m, n, warps);
          auto a = LinearLayout::wideMmaOperandA(m, k, n, warps);
          auto b = LinearLayout::wideMmaOperandB(m, k, n, warps);
          for (const LinearLayout &layout : {c, a, b})
            checkCovers(layout);
          checkWarps(a, b, c);
          CHECK(a.contiguous(1) == std::min<int64_t>(8, k / 4));
          if (n > 8)
            CHECK(b.contiguous(1) == std::min<int64_t>(8, n / 8));
          // A lane's columns of A are its rows of B; its columns of the result
          // are those of B of the two groups of lanes with which the matrix
          // unit pairs it.
          for (int lane = 0; lane < 32; ++lane) {
            std::set<int64_t> ofA, ofB, ofC, ofPair;
            for (const Coordinate &x : heldBy(a, lane, 0))
              ofA.insert(x[1]);
            for (const Coordinate &x : heldBy(b, lane, 0))
              ofB.insert(x[0]);
            CHECK(ofA == ofB);
            for (const Coordinate &x : heldBy(c, lane, 0))
              ofC.insert(x[1]);
            for (int group : {2 * (lane % 4), 2 * (lane % 4) + 1})
              for (const Coordinate &x : heldBy(b, 4 * group, 0))
                ofPair.insert(x[1]);
            CHECK(ofC == ofPair);
          }
        }
}

TEST_CASE("warps split the rows of an mma first", "[layout]") {
  auto layout = LinearLayout::mmaResult(32, 64, 4);
  CHECK(at(layout, {0, 0, 1}) == Coordinate{16, 0});
  CHECK(at(layout, {0, 0, 2}) == Coordinate{0, 32});
  // More warps than tiles: the rest repeats them.
  layout = LinearLayout::mmaResult(16, 8, 4);
  CHECK(layout.replicatedWarps() == 3);
  CHECK(layout.replicatedLanes() == 0);
}

//===----------------------------------------------------------------------===//
// Derived layouts
//===----------------------------------------------------------------------===//

TEST_CASE("a slice holds the coordinates that its tile holds", "[layout]") {
  forEachTile([](const LinearLayout &tile) {
    for (int dim : {0, 1}) {
      LinearLayout slice = tile.slice(dim);
      CHECK(slice.rank() == 1);
      CHECK(slice.shape[0] == tile.shape[1 - dim]);
      checkCovers(slice);
      int wrong = 0;
      for (int warp = 0; warp < numWarps(tile); ++warp)
        for (int lane = 0; lane < 32; ++lane)
          wrong += heldBy(slice, lane, warp) !=
                   heldBy(tile, lane, warp,
                          [&](Coordinate c) { return without(c, dim); });
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("squeezing keeps the other dimension where it is", "[layout]") {
  forEachTile([](const LinearLayout &tile) {
    for (int dim : {0, 1}) {
      LinearLayout thin = tile.squeeze(dim);
      CHECK(thin.shape[dim] == 1);
      CHECK(thin.shape[1 - dim] == tile.shape[1 - dim]);
      checkCovers(thin);
      int wrong = 0;
      for (int warp = 0; warp < numWarps(tile); ++warp)
        for (int lane = 0; lane < 32; ++lane)
          wrong += heldBy(thin, lane, warp) !=
                   heldBy(tile, lane, warp, [&](Coordinate c) {
                     c[dim] = 0;
                     return c;
                   });
      CHECK(wrong == 0);
      // Expanding the slice is squeezing the tile.
      CHECK(tile.slice(dim).expand(dim) == thin);
    }
  });
}

TEST_CASE("expanding a vector moves nothing", "[layout]") {
  for (int warps : {1, 4})
    for (int64_t size : {1, 16, 32, 256})
      for (int vector : {1, 4}) {
        auto layout = LinearLayout::coalesced({size}, 0, vector, 32, warps);
        for (int dim : {0, 1}) {
          LinearLayout tile = layout.expand(dim);
          CHECK(tile.shape[dim] == 1);
          CHECK(tile.shape[1 - dim] == size);
          checkCovers(tile);
          CHECK(tile.slice(dim) == layout);
        }
      }
}

TEST_CASE("widening gives the operand of a broadcast back", "[layout]") {
  forEachTile([](const LinearLayout &tile) {
    for (int dim : {0, 1})
      for (int64_t size : {1, 2, 64}) {
        LinearLayout thin = tile.squeeze(dim);
        for (const LinearLayout &wide :
             {thin.widen(dim, size), thin.widenInRegisters(dim, size)}) {
          CHECK(wide.shape[dim] == size);
          CHECK(wide.shape[1 - dim] == tile.shape[1 - dim]);
          checkCovers(wide);
          CHECK(wide.squeeze(dim) == thin);
        }
        // In registers alone, every thread holds all of what it holds any of.
        LinearLayout inRegisters = thin.widenInRegisters(dim, size);
        CHECK(inRegisters.numRegisters() == thin.numRegisters() * size);
        CHECK(inRegisters.lanes == thin.lanes);
        CHECK(inRegisters.warps == thin.warps);
        // Otherwise no thread idles while others hold more than one.
        LinearLayout spread = thin.widen(dim, size);
        if (spread.numRegisters() > thin.numRegisters()) {
          CHECK(spread.replicatedLanes() == 0);
          CHECK(spread.replicatedWarps() == 0);
        }
      }
  });
}

TEST_CASE("a sum is held by lanes that summed its row", "[layout]") {
  forEachTile([](const LinearLayout &tile) {
    for (int axis : {0, 1}) {
      LinearLayout sum = tile.reduced(axis);
      CHECK(sum.rank() == 1);
      CHECK(sum.shape[0] == tile.shape[1 - axis]);
      checkCovers(sum);
      // A lane keeps rows that it holds elements of, so that it needs nothing
      // but the sums of the lanes it exchanges with.
      int wrong = 0;
      for (int warp = 0; warp < numWarps(tile); ++warp)
        for (int lane = 0; lane < 32; ++lane) {
          auto rows = heldBy(tile, lane, warp,
                             [&](Coordinate c) { return without(c, axis); });
          for (const Coordinate &row : heldBy(sum, lane, warp))
            wrong += !rows.count(row);
        }
      CHECK(wrong == 0);
      // The lanes that summed share the rows, as far as these go.
      int summing = 0;
      for (const Basis &basis : tile.lanes)
        summing += basis.move && basis.dim == axis;
      int before = tile.slice(axis).numRegisters();
      CHECK(sum.numRegisters() == std::max(1, before >> summing));
    }
  });
}

TEST_CASE("the distributed sum of a warp's 32 rows", "[layout]") {
  // 8 lanes a row, 4 rows at once, 8 times: each lane ends with one row.
  auto tile = LinearLayout::coalesced({32, 32}, 1, 4, 8, 1);
  LinearLayout sum = tile.reduced(1);
  CHECK(sum.numRegisters() == 1);
  CHECK(sum.replicatedLanes() == 0);
  std::set<Coordinate> rows;
  for (int lane = 0; lane < 32; ++lane)
    rows.insert(at(sum, {0, lane, 0}));
  CHECK(rows.size() == 32);
  // One row for 8 lanes: all of them have it.
  sum = LinearLayout::coalesced({4, 32}, 1, 4, 8, 1).reduced(1);
  CHECK(sum.numRegisters() == 1);
  CHECK(sum.replicatedLanes() == 7);
}

//===----------------------------------------------------------------------===//
// Conversions to and from the IR
//===----------------------------------------------------------------------===//

TEST_CASE("a tile's type gives its layout back", "[layout]") {
  mlir::MLIRContext context;
  context.loadDialect<replay::ReplayDialect>();
  mlir::Type f32 = mlir::Float32Type::get(&context);
  auto check = [&](const LinearLayout &layout) {
    auto plain = mlir::RankedTensorType::get(layout.shape, f32);
    CHECK_FALSE(LinearLayout::of(plain).has_value());
    auto type = layout.applyTo(plain);
    REQUIRE(LinearLayout::of(type).has_value());
    CHECK(*LinearLayout::of(type) == layout);
    // Legal by the constraints of the attribute: (L1) to (L4).
    std::string errors;
    mlir::ScopedDiagnosticHandler handler(&context,
                                          [&](mlir::Diagnostic &diagnostic) {
                                            errors += diagnostic.str() + "\n";
                                            return mlir::success();
                                          });
    auto emit = [&] {
      return mlir::emitError(mlir::UnknownLoc::get(&context));
    };
    (void)layout.toAttr(&context).verifyEncoding(layout.shape, f32, emit);
    CHECK(errors == "");
  };
  forEachTile([&](const LinearLayout &tile) {
    check(tile);
    for (int dim : {0, 1}) {
      check(tile.slice(dim));
      check(tile.squeeze(dim));
      check(tile.squeeze(dim).widen(dim, 16));
      check(tile.reduced(dim));
    }
  });
  check(LinearLayout::mmaOperandA(64, 32, 64, true, 8));
  check(LinearLayout::mmaOperandB(64, 32, 64, false, 8));
  CHECK_FALSE(LinearLayout::of(f32).has_value());
}
