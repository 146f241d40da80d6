//===- SlotImage.cpp - A request's states as bytes ------------------------===//
//
// ImageHeader, a GroupHeader for each group, then the tensors in the order of
// transferList, then the digest of all before it.
//
//===----------------------------------------------------------------------===//

#include "runtime/state/SlotImage.h"

#include "runtime/cache/Digest.h"

#include <fmt/format.h>

#include <cstring>
#include <tuple>

namespace replayjit::internal {

namespace {

constexpr char magic[8] = {'r', 'j', 's', 'l', 'o', 't', '0', '1'};

struct ImageHeader {
  char magic[8];
  uint32_t form, numGroups;
  int32_t writePos, ringBase;
};

/// What two pools must have in common to exchange a group, but for the heads.
struct GroupShape {
  uint32_t layers, isKda, headDimK, headDimV, valuePerKey, totalKeyHeads;
  uint32_t stateType, ringDepth, ringType, ringFormat, isCircular;
  bool operator==(const GroupShape &) const = default;
};

struct GroupHeader {
  GroupShape shape;
  int32_t keyHeads, firstKeyHead;
};

/// An image whose checksum is right, which says nothing of what it holds: the
/// digest is no secret. See checkImage.
struct Image {
  ImageHeader header;
  std::vector<GroupHeader> groups;
  std::string_view data; ///< The tensors.
};

} // namespace

static int32_t totalKeyHeads(const PoolGroup &group) {
  return group.keyHeadTotal ? group.keyHeadTotal : group.spec.numKeyHeads;
}

/// A folded image says nothing of a ring.
static GroupHeader headerOf(const PoolGroup &group, ImageForm form) {
  const DecodeSpec &spec = group.spec;
  GroupHeader header = {};
  GroupShape &shape = header.shape;
  shape.layers = uint32_t(group.layers.size());
  shape.isKda = spec.isKda;
  shape.headDimK = spec.headDimK;
  shape.headDimV = spec.headDimV;
  shape.valuePerKey = spec.numValueHeads / spec.numKeyHeads;
  shape.totalKeyHeads = totalKeyHeads(group);
  shape.stateType = uint32_t(spec.stateType);
  if (form == ImageForm::WithRing) {
    shape.ringDepth = spec.ringDepth;
    shape.ringType = uint32_t(spec.ringType);
    shape.ringFormat = uint32_t(spec.ringFormat);
    shape.isCircular = spec.isCircular;
  }
  header.keyHeads = spec.numKeyHeads;
  header.firstKeyHead = group.keyHeadBegin;
  return header;
}

size_t transferCount(const StatePool &pool) {
  size_t count = 0;
  for (const PoolGroup &group : pool.groups())
    count += group.layers.size() * (group.spec.ringDepth == 1 ? 1 : 4);
  return count;
}

std::vector<TransferRegion> transferList(const StatePool &pool) {
  using Tensor = TransferRegion;
  std::vector<TransferRegion> list;
  list.reserve(transferCount(pool));
  for (size_t g = 0; g < pool.groups().size(); ++g) {
    const PoolGroup &group = pool.groups()[g];
    const DecodeSpec &spec = group.spec;
    const int64_t K = spec.headDimK, V = spec.headDimV, L = spec.ringDepth;
    for (size_t l = 0; l < group.layers.size(); ++l) {
      const ReplayLayer &layer = group.layers[l];
      auto add = [&](Tensor::Tensor tensor, uint64_t base, int64_t pitch,
                     DataType type, int64_t perHead, bool isOfKeys) {
        const int32_t ratio =
            isOfKeys ? 1 : spec.numValueHeads / spec.numKeyHeads;
        TransferRegion region;
        region.group = int32_t(g);
        region.layer = int32_t(l);
        region.tensor = tensor;
        region.base = base;
        region.heads = ratio * spec.numKeyHeads;
        region.firstHead = ratio * group.keyHeadBegin;
        region.totalHeads = ratio * totalKeyHeads(group);
        region.pitchBytes = pitch * byteSize(type);
        region.slotBytes = region.heads * perHead * byteSize(type);
        region.count = tensor == Tensor::State ? group.slots : group.ringSlots;
        list.push_back(region);
      };
      add(Tensor::State, layer.state, layer.statePitch, spec.stateType, V * K,
          false);
      if (L == 1)
        continue; // There is no ring.
      add(Tensor::DRing, layer.dRing, layer.dPitch, spec.ringType, L * V,
          false);
      add(Tensor::KRing, layer.kRing, layer.kPitch, spec.ringType, L * K, true);
      add(Tensor::GRing, layer.gRing, layer.gPitch, DataType::F32,
          L * gateWidth(spec), false);
    }
  }
  return list;
}

//===----------------------------------------------------------------------===//
// Slots and cursors
//===----------------------------------------------------------------------===//

static Status checkPlace(const StatePool &pool,
                         std::span<const GroupSlot> slots, int32_t key,
                         ImageForm form) {
  if (slots.size() != pool.groups().size())
    return Status::invalid(fmt::format("slots: {} are given; the pool has {} "
                                       "groups",
                                       slots.size(), pool.groups().size()));
  if (key < -1 || key >= pool.cursors().numKeys)
    return Status::invalid(
        fmt::format("key: {} is not allowed; it must be -1 to {}", key,
                    pool.cursors().numKeys - 1));
  for (size_t g = 0; g < slots.size(); ++g) {
    const PoolGroup &group = pool.groups()[g];
    auto check = [&](const char *name, int64_t slot, int32_t count) {
      if (slot >= 0 && slot < count)
        return Status::ok();
      return Status::invalid(
          fmt::format("slots[{}].{}: {} is not allowed; it must be 0 to {}", g,
                      name, slot, count - 1));
    };
    if (Status status = check("state", slots[g].state, group.slots); !status)
      return status;
    if (form == ImageForm::WithRing)
      if (Status status = check("ring", slots[g].ring, group.ringSlots);
          !status)
        return status;
  }
  return Status::ok();
}

/// `what` is that of which the ring is.
static Status ringNeedsKey(const char *what) {
  return Status::invalid(fmt::format(
      "key: -1 is not allowed for {} with a ring, which needs a cursor", what));
}

/// The tensors of an image of this form.
static std::vector<TransferRegion> regionsOf(const StatePool &pool,
                                             ImageForm form) {
  std::vector<TransferRegion> regions = transferList(pool);
  if (form == ImageForm::Folded)
    std::erase_if(regions, [](const TransferRegion &region) {
      return region.tensor != TransferRegion::State;
    });
  return regions;
}

static uint64_t addressIn(const TransferRegion &region,
                          std::span<const GroupSlot> slots) {
  const GroupSlot &slot = slots[region.group];
  return region.base +
         (region.tensor == TransferRegion::State ? slot.state : slot.ring) *
             region.pitchBytes;
}

//===----------------------------------------------------------------------===//
// Export
//===----------------------------------------------------------------------===//

template <typename T> static void append(std::string &bytes, const T &value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
}

Result<std::string> exportSlot(StatePool &pool, void *stream,
                               std::span<const GroupSlot> slots, int32_t key,
                               ImageForm form) {
  Device &device = pool.device();
  if (Status status = device.checkNoCapture(stream, "export a slot"); !status)
    return status;
  if (Status status = checkPlace(pool, slots, key, form); !status)
    return status;
  if (key < 0 && form == ImageForm::WithRing)
    return ringNeedsKey("an image");
  ImageHeader header = {};
  std::memcpy(header.magic, magic, sizeof magic);
  header.form = uint32_t(form);
  header.numGroups = uint32_t(slots.size());
  const CursorTable &cursors = pool.cursors();
  const uint64_t bases = pool.spec().isCircular ? cursors.ringBase : 0;
  if (key >= 0) {
    auto read = [&](int32_t &value, uint64_t table) {
      if (table == 0)
        return Status::ok();
      return device.copyFromDeviceOn(stream, &value, table + 4 * uint64_t(key),
                                     sizeof value);
    };
    for (const Status &status : {read(header.writePos, cursors.writePos),
                                 read(header.ringBase, bases)})
      if (!status)
        return status;
    if (Status status = device.synchronizeOn(stream); !status)
      return status;
  }
  if (form == ImageForm::Folded && header.writePos != 0)
    return Status::invalid(
        fmt::format("key: {} has {} tokens in its ring, which a folded image "
                    "would lose; fold them first, or export with the ring",
                    key, header.writePos));
  if (form == ImageForm::Folded)
    header.ringBase = 0;

  std::string bytes;
  append(bytes, header);
  for (const PoolGroup &group : pool.groups())
    append(bytes, headerOf(group, form));
  size_t end = bytes.size();
  const std::vector<TransferRegion> regions = regionsOf(pool, form);
  for (const TransferRegion &region : regions)
    end += region.slotBytes;
  size_t at = bytes.size();
  bytes.resize(end);
  for (const TransferRegion &region : regions) {
    if (Status status = device.copyFromDeviceOn(
            stream, &bytes[at], addressIn(region, slots), region.slotBytes);
        !status)
      return status;
    at += region.slotBytes;
  }
  if (Status status = device.synchronizeOn(stream); !status)
    return status;
  bytes += digestOf(bytes);
  return bytes;
}

//===----------------------------------------------------------------------===//
// Import
//===----------------------------------------------------------------------===//

static Status damaged(size_t number, std::string_view why) {
  return Status::invalid(fmt::format("images[{}]: {}", number, why));
}

static Result<Image> readImage(std::string_view bytes, size_t number) {
  Image image;
  if (bytes.size() < sizeof(ImageHeader) + digestDigits ||
      std::memcmp(bytes.data(), magic, sizeof magic) != 0)
    return damaged(number, "this is no image of a slot that this version "
                           "knows");
  const std::string_view content = bytes.substr(0, bytes.size() - digestDigits);
  if (digestOf(content) != bytes.substr(content.size()))
    return damaged(number, "it is damaged: its checksum is another");
  std::memcpy(&image.header, content.data(), sizeof image.header);
  size_t at = sizeof image.header;
  if (image.header.numGroups > maxPlanGroups ||
      content.size() < at + image.header.numGroups * sizeof(GroupHeader))
    return damaged(number, "it is damaged: its header is cut off");
  image.groups.resize(image.header.numGroups);
  std::memcpy(image.groups.data(), content.data() + at,
              image.groups.size() * sizeof(GroupHeader));
  image.data = content.substr(at + image.groups.size() * sizeof(GroupHeader));
  return image;
}

/// The bytes of a head of a region.
static int64_t headBytes(const TransferRegion &region) {
  return region.slotBytes / region.heads;
}

/// The heads that an image has of a region for each of its key heads.
static int32_t headsPerKey(const StatePool &pool,
                           const TransferRegion &region) {
  return region.heads / pool.groups()[region.group].spec.numKeyHeads;
}

static int64_t regionBytes(const StatePool &pool, const Image &image,
                           const TransferRegion &region) {
  return headsPerKey(pool, region) * headBytes(region) *
         image.groups[region.group].keyHeads;
}

/// That a cursor of the image's is one that kernels may be given.
static Status checkCursor(const DecodeSpec &spec, const ImageHeader &header,
                          size_t number) {
  const bool hasRing = ImageForm(header.form) == ImageForm::WithRing;
  for (auto [field, value, most] :
       {std::tuple("writePos", header.writePos,
                   hasRing ? spec.ringDepth - 1 : 0),
        {"ringBase", header.ringBase,
         hasRing && spec.isCircular ? spec.ringDepth - 1 : 0}})
    if (value < 0 || value > most)
      return damaged(number,
                     fmt::format("{}: {} is not allowed; it must be 0 to {}",
                                 field, value, most));
  return Status::ok();
}

/// That the image is one of this pool's, whoever wrote it: all that is read of
/// it later is right.
static Status checkImage(const StatePool &pool, const Image &image,
                         const Image &first, size_t number) {
  if (image.header.form > uint32_t(ImageForm::WithRing))
    return damaged(number,
                   fmt::format("form: {} is not allowed; it must be 0 or 1",
                               image.header.form));
  const ImageForm form = ImageForm(image.header.form);
  if (image.header.form != first.header.form ||
      image.header.writePos != first.header.writePos ||
      image.header.ringBase != first.header.ringBase)
    return damaged(number, "its form or its cursor is not that of images[0]: "
                           "they are of one request at one time");
  if (image.groups.size() != pool.groups().size())
    return damaged(number, "it has another number of groups than the pool");
  for (size_t g = 0; g < image.groups.size(); ++g)
    if (image.groups[g].shape != headerOf(pool.groups()[g], form).shape)
      return damaged(number, "layers, head sizes, head counts, types or rings "
                             "are not those of the pool");
  if (Status status = checkCursor(pool.spec(), image.header, number); !status)
    return status;
  for (size_t g = 0; g < image.groups.size(); ++g) {
    const GroupHeader &group = image.groups[g];
    const int32_t total = totalKeyHeads(pool.groups()[g]);
    if (group.keyHeads < 1 || group.keyHeads > total ||
        group.firstKeyHead < 0 || group.firstKeyHead > total - group.keyHeads)
      return damaged(
          number,
          fmt::format("keyHeads: {} from {} are not allowed in group "
                      "{}; they must be 1 to {} of the model's {}",
                      group.keyHeads, group.firstKeyHead, g, total, total));
  }
  int64_t bytes = 0;
  for (const TransferRegion &region : regionsOf(pool, form))
    bytes += regionBytes(pool, image, region);
  if (bytes != int64_t(image.data.size()))
    return damaged(number,
                   fmt::format("it has {} bytes of tensors; its header says {}",
                               image.data.size(), bytes));
  return Status::ok();
}

/// Where head `head` of a tensor is in the images; null if none has it.
static const char *findHead(const StatePool &pool,
                            std::span<const Image> images,
                            const std::vector<TransferRegion> &regions,
                            size_t wanted, int32_t head) {
  const TransferRegion &region = regions[wanted];
  const int32_t ratio = headsPerKey(pool, region);
  for (const Image &image : images) {
    const GroupHeader &group = image.groups[region.group];
    const int32_t index = head - ratio * group.firstKeyHead;
    if (index < 0 || index >= ratio * group.keyHeads)
      continue;
    int64_t at = index * headBytes(region);
    for (size_t r = 0; r < wanted; ++r)
      at += regionBytes(pool, image, regions[r]);
    return image.data.data() + at;
  }
  return nullptr;
}

Status importSlot(StatePool &pool, void *stream,
                  std::span<const GroupSlot> slots, int32_t key,
                  std::span<const std::string_view> images) {
  Device &device = pool.device();
  if (Status status = device.checkNoCapture(stream, "import a slot"); !status)
    return status;
  if (images.empty())
    return Status::invalid("images: none is not allowed; there must be one");
  std::vector<Image> parts;
  for (size_t i = 0; i < images.size(); ++i) {
    Result<Image> image = readImage(images[i], i);
    if (!image)
      return image.status();
    parts.push_back(std::move(*image));
    if (Status status = checkImage(pool, parts[i], parts[0], i); !status)
      return status;
  }
  const ImageForm form = ImageForm(parts[0].header.form);
  if (Status status = checkPlace(pool, slots, key, form); !status)
    return status;
  if (key < 0 && form == ImageForm::WithRing)
    return ringNeedsKey("images");

  // All is assembled before anything is written.
  const std::vector<TransferRegion> regions = regionsOf(pool, form);
  std::vector<std::string> tensors;
  for (size_t r = 0; r < regions.size(); ++r) {
    const TransferRegion &region = regions[r];
    std::string &tensor = tensors.emplace_back();
    for (int32_t h = 0; h < region.heads; ++h) {
      const char *head =
          findHead(pool, parts, regions, r, region.firstHead + h);
      if (!head)
        return Status::invalid(
            fmt::format("images: head {} of {} of group {} is in none of them",
                        region.firstHead + h, region.totalHeads, region.group));
      tensor.append(head, headBytes(region));
    }
  }
  for (size_t r = 0; r < regions.size(); ++r)
    if (Status status =
            device.copyToDeviceOn(stream, addressIn(regions[r], slots),
                                  tensors[r].data(), tensors[r].size());
        !status)
      return status;
  const ImageHeader &header = parts[0].header;
  const uint64_t offset = sizeof(int32_t) * uint64_t(std::max(key, 0));
  for (auto [table, value] :
       {std::pair(pool.cursors().writePos, header.writePos),
        std::pair(pool.cursors().ringBase, header.ringBase)})
    if (key >= 0 && table)
      if (Status status =
              device.fill32On(stream, table + offset, uint32_t(value), 1);
          !status)
        return status;
  return device.synchronizeOn(stream);
}

} // namespace replayjit::internal
