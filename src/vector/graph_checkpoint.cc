#include "vector/graph_checkpoint.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/coding.h"
#include "base/hash.h"
#include "base/out_of_memory.h"
#include "base/random.h"

namespace basalt::vector {
namespace {

constexpr size_t kPartBytes = size_t{64} << 10;

std::string HeadKey() { return std::string(kCheckpointPrefix) + "head"; }
std::string PartsPrefix() { return std::string(kCheckpointPrefix) + "part"; }
std::string PartsOf(uint64_t number) {
  std::string key = PartsPrefix();
  base::Append(&key, std::byteswap(number));
  return key;
}
std::string PartKey(uint64_t number, uint32_t part) {
  std::string key = PartsOf(number);
  base::Append(&key, std::byteswap(part));
  return key;
}

/// The end of the keys that begin with `prefix`, whose last byte is not 0xFF.
std::string EndOf(std::string prefix) {
  ++prefix.back();
  return prefix;
}

/// Cuts what it is given into parts.
class PartWriter {
 public:
  PartWriter(Store* store, const WriteOptions& options, uint64_t number)
      : store_(*store), options_(options), number_(number) {}

  Status Append(std::string_view bytes) {
    bytes_ += bytes.size();
    while (!bytes.empty()) {
      const size_t taken = std::min(bytes.size(), kPartBytes - part_.size());
      part_ += bytes.substr(0, taken);
      bytes.remove_prefix(taken);
      if (part_.size() == kPartBytes) BASALT_RETURN_IF_ERROR(Flush());
    }
    return Status();
  }
  Status Flush() {
    if (part_.empty()) return Status();
    std::string value;
    base::Append(&value, base::Checksum(number_, next_, part_));
    value += part_;
    part_.clear();
    return store_.Put(PartKey(number_, next_++), value, options_);
  }
  uint64_t bytes() const noexcept { return bytes_; }

 private:
  Store& store_;
  const WriteOptions& options_;
  const uint64_t number_;
  std::string part_;
  uint32_t next_ = 0;
  uint64_t bytes_ = 0;
};

Status DropParts(Store* store, const std::string& begin, const std::string& end,
                 KeyspaceId keyspace) {
  WriteOptions options;
  options.keyspace = keyspace;
  return store->DeleteRange(begin, end, options);
}

struct Head {
  uint64_t number = 0;
  uint64_t image_bytes = 0;
  uint64_t row_bytes = 0;
};

std::string EncodeHead(const Head& head) {
  std::string out;
  base::Append(&out, head.number);
  base::Append(&out, head.image_bytes);
  base::Append(&out, head.row_bytes);
  base::Append(&out, base::Hash(out));
  return out;
}

std::optional<Head> DecodeHead(std::string_view bytes) {
  base::Decoder decoder(bytes);
  Head head;
  head.number = decoder.Read<uint64_t>();
  head.image_bytes = decoder.Read<uint64_t>();
  head.row_bytes = decoder.Read<uint64_t>();
  if (decoder.Read<uint64_t>() != base::Hash(bytes.substr(0, decoder.position() - 8)) ||
      !decoder.ok() || !decoder.AtEnd()) {
    return std::nullopt;
  }
  return head;
}

/// All parts, one behind the other. Nothing: one is missing or damaged.
Result<std::optional<std::string>> ReadParts(const Store& store, const ReadOptions& options,
                                             const Head& head) {
  std::string bytes;
  ReadOptions of_parts = options;
  const std::string prefix = PartsOf(head.number);
  of_parts.prefix = prefix;
  of_parts.fill_cache = false;
  const auto it = store.NewIterator(of_parts);
  uint32_t part = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next(), ++part) {
    base::Decoder decoder(it->value());
    const auto checksum = decoder.Read<uint64_t>();
    if (it->key() != PartKey(head.number, part) ||
        checksum != base::Checksum(head.number, part, decoder.rest())) {
      return std::nullopt;
    }
    bytes += decoder.rest();
  }
  BASALT_RETURN_IF_ERROR(it->status());
  if (bytes.size() < head.image_bytes || bytes.size() - head.image_bytes != head.row_bytes) {
    return std::nullopt;
  }
  return bytes;
}

bool ReadRows(std::string_view bytes, uint32_t slots, LoadedGraph* loaded) {
  base::Decoder decoder(bytes);
  while (decoder.ok() && !decoder.AtEnd()) {
    const auto slot = decoder.Read<uint32_t>();
    const auto stamp = decoder.Read<uint64_t>();
    const std::string_view id = decoder.ReadBytes(decoder.ReadVarint());
    // Slots beyond the image were given while it was saved.
    if (decoder.ok() && slot < slots) {
      loaded->rows.emplace(std::string(id), LinkedRow{.slot = slot, .stamp = stamp});
    }
  }
  return decoder.ok();
}

}  // namespace

Status SaveGraph(Store* store, KeyspaceId keyspace, RowSet* rows) {
  return base::OrOutOfMemory([&]() -> Status {
    WriteOptions options;
    options.keyspace = keyspace;
    options.ttl = std::chrono::milliseconds(0);
    const uint64_t number = base::RandomSeed();
    PartWriter writer(store, options, number);
    bool has_begun = false;
    uint64_t image_bytes = 0;
    Status status = rows->Save(
        number, [&] { has_begun = true; },
        [&](std::string_view piece) {
          image_bytes += piece.size();
          return writer.Append(piece);
        },
        [&](std::string_view id, const LinkedRow& row) {
          std::string entry;
          base::Append(&entry, row.slot);
          base::Append(&entry, row.stamp);
          char size[base::kVarintBytesMax];
          entry.append(size, static_cast<size_t>(base::StoreVarint(size, id.size()) - size));
          entry += id;
          return writer.Append(entry);
        });
    if (!has_begun) return status;
    if (status.ok()) status = writer.Flush();
    if (status.ok()) {
      status = store->Put(HeadKey(),
                          EncodeHead({.number = number,
                                      .image_bytes = image_bytes,
                                      .row_bytes = writer.bytes() - image_bytes}),
                          options);
    }
    const std::string own = PartsOf(number);
    const std::string own_end = PartKey(number, UINT32_MAX);
    if (!status.ok()) {
      (void)DropParts(store, own, own_end, keyspace);
      return status;
    }
    BASALT_RETURN_IF_ERROR(DropParts(store, PartsPrefix(), own, keyspace));
    return DropParts(store, own_end, EndOf(PartsPrefix()), keyspace);
  });
}

Result<std::unique_ptr<LoadedGraph>> LoadGraph(const Store& store, KeyspaceId keyspace,
                                               const Snapshot& snapshot,
                                               const IndexMetadata& metadata) {
  const ReadOptions options{.snapshot = &snapshot, .keyspace = keyspace};
  BASALT_ASSIGN_OR_RETURN(const MaybeValue head_value, store.Get(HeadKey(), options));
  if (!head_value) return nullptr;
  const std::optional<Head> head = DecodeHead(head_value->view());
  if (!head) return nullptr;
  BASALT_ASSIGN_OR_RETURN(const std::optional<std::string> bytes, ReadParts(store, options, *head));
  if (!bytes) return nullptr;
  const auto image = std::string_view(*bytes).substr(0, head->image_bytes);
  auto graph = HnswIndex::Load(image);
  if (!graph) {
    if (graph.code() == StatusCode::kResourceExhausted) return graph.error();
    return nullptr;
  }
  const CodeBook& book = (*graph)->book();
  if (book.metric() != metadata.metric || book.dimension() != metadata.dimension) return nullptr;
  auto loaded = std::make_unique<LoadedGraph>();
  loaded->graph = *std::move(graph);
  const auto rows = std::string_view(*bytes).substr(head->image_bytes);
  if (!ReadRows(rows, loaded->graph->slots(), loaded.get())) return nullptr;
  return loaded;
}

}  // namespace basalt::vector
