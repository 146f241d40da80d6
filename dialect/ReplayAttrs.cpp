//===- ReplayAttrs.cpp - Attributes ---------------------------------------===//

#include "dialect/ReplayDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace replayjit::internal::replay;

#define GET_ATTRDEF_CLASSES
#include "dialect/ReplayAttrs.cpp.inc"

void ReplayDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/ReplayAttrs.cpp.inc"
      >();
}

/// Parses `keyword = [[a, b], [c, d]]`; the first basis fixes the rank.
static ParseResult parseBases(AsmParser &parser, StringRef keyword,
                              int64_t &rank, SmallVector<int32_t> &bases) {
  if (parser.parseKeyword(keyword) || parser.parseEqual())
    return failure();
  return parser.parseCommaSeparatedList(
      AsmParser::Delimiter::Square, [&]() -> ParseResult {
        size_t before = bases.size();
        if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
              return parser.parseInteger(bases.emplace_back());
            }))
          return failure();
        int64_t entries = bases.size() - before;
        if (rank == 0)
          rank = entries;
        if (entries != rank || rank == 0)
          return parser.emitError(parser.getCurrentLocation(),
                                  "layout bases must all have one rank (L1)");
        return success();
      });
}

static void printBases(AsmPrinter &printer, StringRef keyword, int64_t rank,
                       ArrayRef<int32_t> bases) {
  printer << keyword << " = [";
  for (size_t i = 0; i < bases.size(); i += rank) {
    printer << (i ? ", [" : "[");
    llvm::interleaveComma(bases.slice(i, rank), printer);
    printer << ']';
  }
  printer << ']';
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  SmallVector<int32_t> registers, lanes, warps;
  int64_t rank = 0;
  if (parser.parseLess() || parseBases(parser, "register", rank, registers) ||
      parser.parseComma() || parseBases(parser, "lane", rank, lanes) ||
      parser.parseComma() || parseBases(parser, "warp", rank, warps) ||
      parser.parseGreater())
    return {};
  return get(parser.getContext(), rank, registers, lanes, warps);
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printBases(printer, "register", getRank(), getRegisters());
  printer << ", ";
  printBases(printer, "lane", getRank(), getLanes());
  printer << ", ";
  printBases(printer, "warp", getRank(), getWarps());
  printer << '>';
}

LogicalResult
LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                           function_ref<InFlightDiagnostic()> emitError) const {
  int64_t rank = getRank();
  if (rank != (int64_t)shape.size())
    return emitError() << "layout basis has " << rank
                       << " entries for a tile of rank " << shape.size()
                       << " (L1)";
  llvm::DenseSet<std::pair<int64_t, int32_t>> moves;
  for (ArrayRef<int32_t> bases : {getRegisters(), getLanes(), getWarps()})
    for (size_t i = 0; i < bases.size(); i += rank) {
      bool seen = false;
      for (auto [dim, move] : llvm::enumerate(bases.slice(i, rank))) {
        if (move == 0)
          continue;
        if (seen || move < 0 || !llvm::isPowerOf2_32(move) ||
            move >= shape[dim])
          return emitError() << "layout basis must be zero or one power of two "
                                "below its dimension (L1)";
        seen = true;
        if (!moves.insert({(int64_t)dim, move}).second)
          return emitError() << "layout moves dimension " << dim << " by "
                             << move << " twice (L2)";
      }
    }
  for (auto [dim, size] : llvm::enumerate(shape))
    for (int32_t move = 1; move < size; move *= 2)
      if (!moves.count({(int64_t)dim, move}))
        return emitError() << "layout never moves dimension " << dim << " by "
                           << move << " (L3)";
  if ((int64_t)getLanes().size() != 5 * rank)
    return emitError() << "layout has " << getLanes().size() / rank
                       << " lane bases; a warp has 5 (L4)";
  return success();
}
