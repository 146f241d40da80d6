//===- ReplayTypes.cpp - Types --------------------------------------------===//

#include "dialect/ReplayDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace replayjit::internal::replay;

#define GET_TYPEDEF_CLASSES
#include "dialect/ReplayTypes.cpp.inc"

void ReplayDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/ReplayTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// View: <?x128xf32, strides [?, 1], align 16>
//===----------------------------------------------------------------------===//

Type ViewType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape, strides;
  Type element;
  if (parser.parseLess() || parser.parseDimensionList(shape) ||
      parser.parseType(element) || parser.parseComma() ||
      parser.parseKeyword("strides") ||
      parser.parseCommaSeparatedList(
          AsmParser::Delimiter::Square, [&]() -> ParseResult {
            if (succeeded(parser.parseOptionalQuestion())) {
              strides.push_back(ShapedType::kDynamic);
              return success();
            }
            return parser.parseInteger(strides.emplace_back());
          }))
    return {};
  int64_t alignment = element.isIntOrFloat() ? elementBytes(element) : 1;
  bool shared = false;
  while (!shared && succeeded(parser.parseOptionalComma())) {
    shared = succeeded(parser.parseOptionalKeyword("shared"));
    if (!shared &&
        (parser.parseKeyword("align") || parser.parseInteger(alignment)))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ViewType>(parser.getContext(), shape, element,
                                     strides, alignment, shared);
}

void ViewType::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printDimensionList(getShape());
  printer << 'x' << getElementType() << ", strides [";
  llvm::interleaveComma(getStrides(), printer, [&](int64_t stride) {
    if (ShapedType::isDynamic(stride))
      printer << '?';
    else
      printer << stride;
  });
  printer << ']';
  if (getAlignment() != elementBytes(getElementType()))
    printer << ", align " << getAlignment();
  if (getShared())
    printer << ", shared";
  printer << '>';
}

LogicalResult ViewType::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<int64_t> shape, Type element,
                               ArrayRef<int64_t> strides, int64_t alignment,
                               bool shared) {
  if (shape.empty() || shape.size() > 2 || strides.size() != shape.size())
    return emitError() << "view has " << shape.size() << " sizes and "
                       << strides.size()
                       << " strides; allowed are 1 or 2 of both (V1)";
  for (int64_t size : shape)
    if (!ShapedType::isDynamic(size) && size < 1)
      return emitError() << "view size " << size << " must be positive (V2)";
  if (!element.isSignlessIntOrFloat() ||
      !llvm::is_contained({16u, 32u, 64u}, element.getIntOrFloatBitWidth()))
    return emitError() << "view element type " << element
                       << " must be an integer or float of 16, 32 or 64 bits "
                          "(V4)";
  if (!llvm::isPowerOf2_64(alignment) || alignment < elementBytes(element))
    return emitError() << "view alignment " << alignment
                       << " must be a power of two of at least "
                       << elementBytes(element) << " (V3)";
  for (int64_t stride : strides)
    if (!ShapedType::isDynamic(stride) && stride != 1 &&
        stride * elementBytes(element) % alignment != 0)
      return emitError() << "view alignment " << alignment
                         << " does not divide the "
                         << stride * elementBytes(element)
                         << " bytes of a stride (V5)";
  return success();
}

//===----------------------------------------------------------------------===//
// State: <32x128>, <32x128, tiles 64>
//===----------------------------------------------------------------------===//

Type StateType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  int64_t tileColumns = 0;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false,
                                /*withTrailingX=*/false))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("tiles") || parser.parseInteger(tileColumns)))
    return {};
  if (parser.parseGreater())
    return {};
  if (shape.size() != 2) {
    parser.emitError(parser.getNameLoc(),
                     "state needs two sizes: rows x columns");
    return {};
  }
  return parser.getChecked<StateType>(parser.getContext(), shape[0], shape[1],
                                      tileColumns);
}

void StateType::print(AsmPrinter &printer) const {
  printer << '<' << getRows() << 'x' << getColumns();
  if (isFormed())
    printer << ", tiles " << getTileColumns();
  printer << '>';
}

LogicalResult StateType::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t rows, int64_t columns,
                                int64_t tileColumns) {
  if (rows < 1 || columns < 1 || !llvm::isPowerOf2_64(rows) ||
      !llvm::isPowerOf2_64(columns))
    return emitError() << "state sizes " << rows << " and " << columns
                       << " must be powers of two";
  if (tileColumns != 0 && (tileColumns < 0 || tileColumns > columns ||
                           !llvm::isPowerOf2_64(tileColumns)))
    return emitError() << "state tiles of " << tileColumns
                       << " columns must divide the " << columns
                       << " there are";
  return success();
}

//===----------------------------------------------------------------------===//
// Buffer: <64x128xf32>
//===----------------------------------------------------------------------===//

Type BufferType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(element) || parser.parseGreater())
    return {};
  return parser.getChecked<BufferType>(parser.getContext(), shape, element);
}

void BufferType::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printDimensionList(getShape());
  printer << 'x' << getElementType() << '>';
}

LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> shape, Type element) {
  if (shape.empty() || shape.size() > 2 || llvm::is_contained(shape, 0))
    return emitError() << "buffer must have one or two positive sizes";
  return success();
}
