//===- ArgumentApi.cpp - The fields of the argument structs ---------------===//

#include "replayjit/replayjit_describe.h"
#include "runtime/capi/Structs.h"

#include <deque>
#include <span>

using namespace replayjit::internal;
using namespace replayjit::internal::capi;

namespace {

/// One struct of arguments, as C sees it.
class Fields {
public:
  Fields(const char *structName, ArgumentTable table, size_t offset)
      : structName(structName) {
    for (const Argument &argument : table)
      list.push_back({.name = keep(divided(argument.name, '_')),
                      .doc = keep(describe(table, argument)),
                      .stride = nullptr,
                      .offset = uint32_t(offset + argument.offset),
                      .type = typeOf(argument),
                      .is_wide = int32_t(isWide(argument))});
    for (size_t i = 0; i < table.size(); ++i)
      if (table[i].kind == Argument::Kind::Stride)
        list[table[i].pointer].stride = list[i].name;
  }

  Fields(const Fields &) = delete; // `list` points into `texts`.

  const std::string structName;
  std::vector<replayjit_argument_t> list;

private:
  static replayjit_field_t typeOf(const Argument &argument) {
    if (argument.kind == Argument::Kind::Pointer)
      return REPLAYJIT_FIELD_U64;
    if (argument.bytes() == sizeof(int64_t))
      return REPLAYJIT_FIELD_I64;
    return argument.type.fixed == DataType::F32 ? REPLAYJIT_FIELD_F32
                                                : REPLAYJIT_FIELD_I32;
  }
  static int isWide(const Argument &argument) {
    switch (argument.alignment) {
    case Argument::Alignment::Wide:
      return 1;
    case Argument::Alignment::WideIfKda:
      return 2;
    default:
      return 0;
    }
  }
  const char *keep(std::string text) {
    return texts.emplace_back(std::move(text)).c_str();
  }

  std::deque<std::string> texts;
};

} // namespace

const replayjit_argument_t *replayjit_argument(const char *struct_name,
                                               size_t index) try {
  // Made once and never destroyed: threads may be in here at exit.
  static const Fields *const all = new const Fields[3]{
      {"replayjit_decode_args_t", decodeArguments(),
       argsOffset<replayjit_decode_args_t>},
      {"replayjit_materialize_args_t", materializeArguments(),
       argsOffset<replayjit_materialize_args_t>},
      {"replayjit_layer_t", layerArguments(), 0}};
  for (const Fields &fields : std::span(all, 3))
    if (struct_name && fields.structName == struct_name)
      return index < fields.list.size() ? &fields.list[index] : nullptr;
  return nullptr;
} catch (...) { // No memory for the fields, of which there are none then.
  return nullptr;
}
