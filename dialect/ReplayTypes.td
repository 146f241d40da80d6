//===- ReplayTypes.td - Types ------------------------------*- tablegen -*-===//

#ifndef REPLAY_TYPES_TD
#define REPLAY_TYPES_TD

include "dialect/ReplayDialect.td"
include "mlir/IR/AttrTypeBase.td"

class Replay_Type<string name, string mnem> : TypeDef<Replay_Dialect, name> {
  let mnemonic = mnem;
}

def Replay_PtrType : Replay_Type<"Ptr", "ptr"> {
  let summary = "Address in global memory of elements of one type";
  let description = [{ `!replay.ptr<bf16>`. Uniform over the block. }];
  let parameters = (ins "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $elementType `>`";
}

def Replay_ViewType : Replay_Type<"View", "view"> {
  let summary = "A structured piece of memory with bounds";
  let description = [{
    `!replay.view<?x128xf32, strides [?, 1], align 16>`: sizes bound what may be
    accessed (`?`: known at run time), strides count elements, and `align` is
    the number of bytes that divides the address of element (0, .., 0) and every
    stride other than 1 (default: the element's size). The memory is global, or
    the block's shared memory if `shared` ends the list.

    Constraints:
    - (V1) rank 1 or 2, and as many strides as sizes;
    - (V2) sizes are positive or `?`; strides may be negative;
    - (V3) `align` is a power of two and at least the element's size in bytes;
    - (V4) the element type is an integer or float of 16, 32 or 64 bits;
    - (V5) `align` divides the bytes of every static stride other than 1.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape,
    "::mlir::Type":$elementType,
    ArrayRefParameter<"int64_t">:$strides,
    "int64_t":$alignment,
    DefaultValuedParameter<"bool", "false">:$shared);
  let builders = [TypeBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape,
      "::mlir::Type":$elementType, "::llvm::ArrayRef<int64_t>":$strides,
      "int64_t":$alignment), [{
    return $_get($_ctxt, shape, elementType, strides, alignment,
                 /*shared=*/false);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
  }];
}

def Replay_StateType : Replay_Type<"State", "state"> {
  let summary = "A block's rows of a recurrent state";
  let description = [{
    `!replay.state<32x128>`: 32 rows (V) of 128 columns (K), both powers of two,
    that are not formed: the sum of a decayed checkpoint and of a ring's outer
    products, in memory. `!replay.state<32x128, tiles 64>`: formed; held in
    registers, as f32 tiles of 64 columns, a power of two that divides K.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$columns,
    "int64_t":$tileColumns);
  let builders = [TypeBuilder<(ins "int64_t":$rows, "int64_t":$columns), [{
    return $_get($_ctxt, rows, columns, /*tileColumns=*/0);
  }]>];
  let extraClassDeclaration = [{
    bool isFormed() const { return getTileColumns() != 0; }
  }];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Replay_BufferType : Replay_Type<"Buffer", "buffer"> {
  let summary = "Shared memory that one asynchronous copy fills";
  let description = [{ `!replay.buffer<64x128xf32>`: 64 rows of 128 elements. }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape,
                        "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif
