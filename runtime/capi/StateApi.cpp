//===- StateApi.cpp - Pools, images and sizes of the C API ----------------===//

#include "runtime/capi/StateHandles.h"
#include "runtime/capi/Structs.h"
#include "runtime/state/Sizing.h"
#include "runtime/state/SlotImage.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdlib>

using namespace replayjit::internal;
using namespace replayjit::internal::capi;

//===----------------------------------------------------------------------===//
// Sizing
//===----------------------------------------------------------------------===//

replayjit_error_t *replayjit_state_bytes(const replayjit_decode_spec_t *spec,
                                         int64_t *state_bytes,
                                         int64_t *ring_bytes) try {
  Result<DecodeSpec> asked = toSpec(spec);
  if (!asked)
    return toError(asked.status());
  if (Status status = supports(*asked, Target()); !status)
    return toError(status);
  if (state_bytes)
    *state_bytes = stateBytes(*asked);
  if (ring_bytes)
    *ring_bytes = ringBytes(*asked);
  return nullptr;
} catch (...) {
  return caught();
}

static Result<std::vector<LayerCount>>
toLayers(const replayjit_decode_spec_t *const *specs, const int32_t *layers,
         size_t count) {
  std::vector<LayerCount> all;
  for (auto [pointer, name] :
       {std::pair<const void *, const char *>(specs, "specs"),
        {layers, "layers"}})
    if (Status status = need(pointer, name); !status)
      return status;
  for (size_t i = 0; i < count; ++i) {
    Result<DecodeSpec> spec = toSpec(specs[i]);
    if (!spec)
      return Status(spec.status()).within(fmt::format("specs[{}]", i));
    all.push_back({*spec, layers[i]});
  }
  return all;
}

replayjit_error_t *
replayjit_pool_bytes(const replayjit_decode_spec_t *const *specs,
                     const int32_t *layers, size_t count, int64_t states,
                     int64_t rings, int64_t num_keys, int64_t *bytes) try {
  Result<std::vector<LayerCount>> all = toLayers(specs, layers, count);
  if (!all)
    return toError(all.status());
  if (Status status = need(bytes, "bytes"); !status)
    return toError(status);
  Result<int64_t> whole = poolBytes(*all, states, rings, num_keys);
  if (!whole)
    return toError(whole.status());
  *bytes = *whole;
  return nullptr;
} catch (...) {
  return caught();
}

replayjit_error_t *
replayjit_pool_states(const replayjit_decode_spec_t *const *specs,
                      const int32_t *layers, size_t count, int64_t rings,
                      int64_t num_keys, int64_t budget, int64_t *states) try {
  Result<std::vector<LayerCount>> all = toLayers(specs, layers, count);
  if (!all)
    return toError(all.status());
  if (Status status = need(states, "states"); !status)
    return toError(status);
  Result<int64_t> fitting = statesForBudget(*all, rings, num_keys, budget);
  if (!fitting)
    return toError(fitting.status());
  *states = *fitting;
  return nullptr;
} catch (...) {
  return caught();
}

replayjit_error_t *
replayjit_decode_spec_recommend(const replayjit_decode_spec_t *spec,
                                int32_t rows, float lower_bound,
                                int32_t *family, int32_t *ring_depth,
                                int32_t *ring_type) try {
  Result<DecodeSpec> asked = toSpec(spec);
  if (!asked)
    return toError(asked.status());
  for (auto [pointer, name] :
       {std::pair(family, "family"), {ring_depth, "ring_depth"},
        {ring_type, "ring_type"}})
    if (Status status = need(pointer, name); !status)
      return toError(status);
  const auto measured = openTuningTable(
      tuningFileFromEnvironment(), DiskCacheOptions::rootsFromEnvironment());
  if (!measured)
    return toError(measured.status());
  Result<Recommendation> best =
      recommend(*asked, rows, lower_bound, measured->get());
  if (!best)
    return toError(best.status());
  *family = int32_t(best->family);
  *ring_depth = best->ringDepth;
  *ring_type = int32_t(best->ringType);
  return nullptr;
} catch (...) {
  return caught();
}

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

void replayjit_pool_group_init(replayjit_pool_group_t *group,
                               size_t struct_size) {
  writeStruct(group, struct_size, replayjit_pool_group_t{});
}

void replayjit_cursors_init(replayjit_cursors_t *cursors, size_t struct_size) {
  writeStruct(cursors, struct_size, replayjit_cursors_t{});
}

void replayjit_pool_options_init(replayjit_pool_options_t *options,
                                 size_t struct_size) {
  writeStruct(options, struct_size, replayjit_pool_options_t{});
}

void replayjit_group_slot_init(replayjit_group_slot_t *slot) {
  if (slot)
    *slot = {-1, -1};
}

void replayjit_region_init(replayjit_region_t *region, size_t struct_size) {
  writeStruct(region, struct_size, replayjit_region_t{});
}

/// `needsLayers`: their addresses are the caller's; else they do not count.
static Result<PoolGroup> toGroup(const replayjit_pool_group_t *given,
                                 bool needsLayers) {
  Result<replayjit_pool_group_t> c = readStruct(given, {}, "group");
  if (!c)
    return c.status();
  if (c->num_layers < 1 || c->num_layers > maxGroupLayers)
    return Status::invalid(
        fmt::format("num_layers: {} is not allowed; it must be 1 to {}",
                    c->num_layers, maxGroupLayers));
  if (Status status = need(c->layers, "layers"); needsLayers && !status)
    return status;
  Result<DecodeSpec> spec = toSpec(c->spec);
  if (!spec)
    return spec.status();
  PoolGroup group;
  group.spec = *spec;
  group.layers.resize(c->num_layers);
  if (needsLayers)
    std::memcpy(static_cast<void *>(group.layers.data()), c->layers,
                c->num_layers * sizeof(ReplayLayer));
  group.slots = c->slots;
  group.ringSlots = c->ring_slots;
  group.keyHeadBegin = c->key_head_begin;
  group.keyHeadTotal = c->key_head_total;
  return group;
}

/// What both ways of making a pool read; then `make` makes it.
template <typename Make>
static replayjit_error_t *makePool(replayjit_jit_t *jit,
                                   const replayjit_pool_group_t *const *groups,
                                   size_t num_groups, bool needsLayers,
                                   const replayjit_pool_options_t *options,
                                   replayjit_pool_t **pool, Make make) {
  for (auto [pointer, name] :
       {std::pair<const void *, const char *>(jit, "jit"),
        {groups, "groups"},
        {pool, "pool"}})
    if (Status status = need(pointer, name); !status)
      return toError(status);
  std::vector<PoolGroup> all;
  for (size_t i = 0; i < num_groups; ++i) {
    Result<PoolGroup> group = toGroup(groups[i], needsLayers);
    if (!group)
      return toError(
          Status(group.status()).within(fmt::format("groups[{}]", i)));
    all.push_back(std::move(*group));
  }
  PoolOptions chosen;
  void *stream = nullptr;
  if (options) {
    Result<replayjit_pool_options_t> c = readStruct(options, {}, "options");
    if (!c)
      return toError(c.status());
    for (auto [name, value] : {std::pair("batch_invariant", c->batch_invariant),
                               {"check_rows", c->check_rows}})
      if (value < 0 || value > 1)
        return toError(Status::invalid(fmt::format(
            "{}: {} is not allowed; it must be 0 or 1", name, value)));
    chosen.batchInvariant = c->batch_invariant;
    chosen.checkRows = c->check_rows;
    // The same struct under two names; see Structs.cpp.
    chosen.errorWord = {reinterpret_cast<ErrorWord *>(c->error_word),
                        c->error_word_address};
    stream = c->stream;
  }
  Result<std::unique_ptr<StatePool>> made =
      make(*jit->jit, std::move(all), chosen, stream);
  if (!made)
    return toError(made.status());
  auto *handle = new replayjit_pool_t(jit);
  handle->pool = std::move(*made);
  handle->stream = stream;
  *pool = handle;
  return nullptr;
}

replayjit_error_t *replayjit_pool_adopt(
    replayjit_jit_t *jit, const replayjit_pool_group_t *const *groups,
    size_t num_groups, const replayjit_cursors_t *cursors,
    const replayjit_pool_options_t *options, replayjit_pool_t **pool) try {
  Result<replayjit_cursors_t> c = readStruct(cursors, {}, "cursors");
  if (!c)
    return toError(c.status());
  const CursorTable table{c->write_pos, c->ring_base, c->num_keys};
  return makePool(jit, groups, num_groups, /*needsLayers=*/true, options, pool,
                  [&](Jit &owner, std::vector<PoolGroup> all,
                      const PoolOptions &chosen, void *stream) {
                    return StatePool::adopt(owner, std::move(all), table,
                                            chosen, stream);
                  });
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_pool_allocate(
    replayjit_jit_t *jit, const replayjit_pool_group_t *const *groups,
    size_t num_groups, int32_t num_keys,
    const replayjit_pool_options_t *options, replayjit_pool_t **pool) try {
  return makePool(jit, groups, num_groups, /*needsLayers=*/false, options, pool,
                  [&](Jit &owner, std::vector<PoolGroup> all,
                      const PoolOptions &chosen, void *stream) {
                    return StatePool::allocate(owner, std::move(all), num_keys,
                                               chosen, stream);
                  });
} catch (...) {
  return caught();
}

void replayjit_pool_retain(replayjit_pool_t *pool) { retain(pool); }
void replayjit_pool_release(replayjit_pool_t *pool) { release(pool); }

replayjit_error_t *replayjit_pool_cursors(const replayjit_pool_t *pool,
                                          replayjit_cursors_t *cursors) try {
  if (Status status = need(pool, "pool"); !status)
    return toError(status);
  const CursorTable &table = pool->pool->cursors();
  replayjit_cursors_t whole = {};
  whole.num_keys = table.numKeys;
  whole.write_pos = table.writePos;
  whole.ring_base = table.ringBase;
  return toError(fillIn(cursors, whole, "cursors"));
} catch (...) {
  return caught();
}

Status capi::checkLayer(const replayjit_pool_t *pool, int32_t group,
                        int32_t layer) {
  if (Status status = need(pool, "pool"); !status)
    return status;
  const std::vector<PoolGroup> &groups = pool->pool->groups();
  if (group < 0 || size_t(group) >= groups.size())
    return Status::invalid(fmt::format(
        "group: {} is not allowed; the pool has {}, numbered from 0", group,
        groups.size()));
  const size_t layers = groups[group].layers.size();
  if (layer < 0 || size_t(layer) >= layers)
    return Status::invalid(fmt::format(
        "layer: {} is not allowed; group {} has {}, numbered from 0", layer,
        group, layers));
  return Status::ok();
}

replayjit_error_t *replayjit_pool_prepare(replayjit_pool_t *pool, int32_t group,
                                          int32_t rows,
                                          replayjit_kernel_t **kernel) try {
  if (Status status = checkLayer(pool, group, 0); !status)
    return toError(status);
  if (Status status = need(kernel, "kernel"); !status)
    return toError(status);
  Result<KernelHandle> prepared =
      pool->pool->prepareDecode(group, rows, pool->stream);
  if (!prepared)
    return toError(prepared.status());
  *kernel = new replayjit_kernel_t(std::move(*prepared));
  return nullptr;
} catch (...) {
  return caught();
}

replayjit_error_t *
replayjit_pool_layer_args(const replayjit_pool_t *pool, int32_t group,
                          int32_t layer, replayjit_decode_args_t *args) try {
  if (Status status = checkLayer(pool, group, layer); !status)
    return toError(status);
  return toError(fillInArgs(args, pool->pool->layerArgs(group, layer)));
} catch (...) {
  return caught();
}

replayjit_error_t *
replayjit_pool_poll_errors(const replayjit_pool_t *pool,
                           replayjit_error_word_t *word) try {
  if (Status status = need(pool, "pool"); !status)
    return toError(status);
  if (Status status = need(word, "word"); !status)
    return toError(status);
  const ErrorWord seen = pool->pool->pollErrors();
  std::memcpy(word, &seen, sizeof seen);
  return nullptr;
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_pool_clear_errors(replayjit_pool_t *pool) try {
  if (Status status = need(pool, "pool"); !status)
    return toError(status);
  pool->pool->clearErrors();
  return nullptr;
} catch (...) {
  return caught();
}

replayjit_error_t *replayjit_pool_reset(replayjit_pool_t *pool,
                                        void *stream) try {
  if (Status status = need(pool, "pool"); !status)
    return toError(status);
  return toError(pool->pool->resetAll(stream));
} catch (...) {
  return caught();
}

//===----------------------------------------------------------------------===//
// Snapshots
//===----------------------------------------------------------------------===//

int32_t replayjit_should_flush(int64_t seq_len, int64_t interval) {
  return shouldFlush(seq_len, interval);
}

int64_t replayjit_tokens_to_drop(int64_t committed_len, int64_t fed_len) {
  return tokensToDrop(committed_len, fed_len);
}

//===----------------------------------------------------------------------===//
// Images
//===----------------------------------------------------------------------===//

static_assert(REPLAYJIT_IMAGE_WITH_RING == int(ImageForm::WithRing));

/// One for each group of the pool.
static Result<std::vector<GroupSlot>>
toSlots(const replayjit_pool_t *pool, const replayjit_group_slot_t *slots) {
  if (Status status = need(pool, "pool"); !status)
    return status;
  if (Status status = need(slots, "slots"); !status)
    return status;
  std::vector<GroupSlot> all;
  for (size_t i = 0; i < pool->pool->groups().size(); ++i)
    all.push_back({slots[i].state, slots[i].ring});
  return all;
}

replayjit_error_t *replayjit_pool_export(replayjit_pool_t *pool, void *stream,
                                         const replayjit_group_slot_t *slots,
                                         int32_t key, int32_t form,
                                         char **image, size_t *bytes) try {
  Result<std::vector<GroupSlot>> where = toSlots(pool, slots);
  if (!where)
    return toError(where.status());
  for (auto [pointer, name] :
       {std::pair<const void *, const char *>(image, "image"),
        {bytes, "bytes"}})
    if (Status status = need(pointer, name); !status)
      return toError(status);
  if (form < 0 || form > REPLAYJIT_IMAGE_WITH_RING)
    return toError(Status::invalid(
        fmt::format("form: {} is not allowed; it must be 0 or 1", form)));
  Result<std::string> exported =
      exportSlot(*pool->pool, stream, *where, key, ImageForm(form));
  if (!exported)
    return toError(exported.status());
  auto *copy = static_cast<char *>(std::malloc(exported->size()));
  if (!copy)
    return toError(Status::error(
        StatusCode::OutOfMemory,
        fmt::format("image: no memory for {} bytes", exported->size())));
  std::memcpy(copy, exported->data(), exported->size());
  *image = copy;
  *bytes = exported->size();
  return nullptr;
} catch (...) {
  return caught();
}

void replayjit_image_destroy(char *image) { std::free(image); }

replayjit_error_t *replayjit_pool_import(replayjit_pool_t *pool, void *stream,
                                         const replayjit_group_slot_t *slots,
                                         int32_t key, const char *const *images,
                                         const size_t *bytes,
                                         size_t count) try {
  Result<std::vector<GroupSlot>> where = toSlots(pool, slots);
  if (!where)
    return toError(where.status());
  for (auto [pointer, name] :
       {std::pair<const void *, const char *>(images, "images"),
        {bytes, "bytes"}})
    if (Status status = need(pointer, name); !status)
      return toError(status);
  std::vector<std::string_view> parts;
  for (size_t i = 0; i < count; ++i) {
    if (!images[i])
      return toError(need(nullptr, fmt::format("images[{}]", i).c_str()));
    parts.emplace_back(images[i], bytes[i]);
  }
  return toError(importSlot(*pool->pool, stream, *where, key, parts));
} catch (...) {
  return caught();
}

size_t replayjit_pool_region_count(const replayjit_pool_t *pool) {
  return pool ? transferCount(*pool->pool) : 0;
}

replayjit_error_t *replayjit_pool_region(const replayjit_pool_t *pool,
                                         size_t index,
                                         replayjit_region_t *region) try {
  if (Status status = need(pool, "pool"); !status)
    return toError(status);
  const std::vector<TransferRegion> all = transferList(*pool->pool);
  if (index >= all.size())
    return toError(Status::invalid(
        fmt::format("index: {} is not allowed; there are {}, numbered from 0",
                    index, all.size())));
  const TransferRegion &one = all[index];
  replayjit_region_t whole = {};
  whole.group = one.group;
  whole.layer = one.layer;
  whole.tensor = int32_t(one.tensor);
  whole.base = one.base;
  whole.pitch_bytes = one.pitchBytes;
  whole.slot_bytes = one.slotBytes;
  whole.count = one.count;
  whole.heads = one.heads;
  whole.first_head = one.firstHead;
  whole.total_heads = one.totalHeads;
  return toError(fillIn(region, whole, "region"));
} catch (...) {
  return caught();
}
