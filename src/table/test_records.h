#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/record_iterator.h"
#include "io/file_system.h"
#include "table/concatenating_iterator.h"
#include "table/table.h"

// What the tests of this folder share: records as values, the model that tables are compared with
// (a sorted vector), and tables made of them.

namespace basalt::table {

/// Reads what is newest.
inline constexpr base::SequenceNumber kEver = base::kMaxSequence;

struct Record {
  std::string key;
  base::Tag tag = 0;
  std::string value;
  uint64_t time_ms = 0;

  friend bool operator==(const Record&, const Record&) = default;
  friend bool operator<(const Record& a, const Record& b) {
    return base::CompareInternal(a.key, a.tag, b.key, b.tag) < 0;
  }
};

inline Record Put(std::string key, base::SequenceNumber sequence, std::string value,
                  uint64_t expiry_ms = 0) {
  return {std::move(key), base::MakeTag(sequence, RecordKind::kPut), std::move(value), expiry_ms};
}
inline Record Merge(std::string key, base::SequenceNumber sequence, std::string value,
                    uint64_t written_ms) {
  return {std::move(key), base::MakeTag(sequence, RecordKind::kMerge), std::move(value),
          written_ms};
}
inline Record Delete(std::string key, base::SequenceNumber sequence) {
  return {std::move(key), base::MakeTag(sequence, RecordKind::kDelete), {}};
}

inline void Sort(std::vector<Record>* records) { std::sort(records->begin(), records->end()); }

inline std::string Numbered(std::string stem, uint64_t number) {
  return stem.append(std::to_string(number));
}

/// Bytes from a small alphabet, so that keys are often prefixes or neighbours of others.
inline std::string RandomBytes(base::Random* random, size_t size, uint64_t alphabet) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random->Below(alphabet));
  return bytes;
}

/// Versions of keys from a small alphabet: prefixes of one another, zero bytes; puts, some of which
/// expire, deletes and merges.
inline std::vector<Record> RandomRecords(base::Random* random, size_t count, size_t key_bytes_max,
                                         size_t value_bytes_max) {
  std::vector<Record> records;
  for (size_t i = 0; i < count; ++i) {
    std::string key = RandomBytes(random, random->Below(key_bytes_max + 1), 3);
    if (random->OneIn(6)) {
      records.push_back(Delete(std::move(key), i + 1));
      continue;
    }
    const size_t size = random->Below(value_bytes_max + 1);
    std::string value = RandomBytes(random, size, random->OneIn(2) ? 256 : 2);
    if (random->OneIn(6)) {
      records.push_back(Merge(std::move(key), i + 1, "+" + value, 1 + random->Below(1000)));
    } else {
      const uint64_t expiry_ms = random->OneIn(100) ? 1 + random->Below(1000) : 0;
      records.push_back(Put(std::move(key), i + 1, std::move(value), expiry_ms));
    }
  }
  return records;
}

/// Walks a sorted vector: the model of every other iterator.
class VectorIterator final : public base::RecordIterator {
 public:
  explicit VectorIterator(std::vector<Record> records)
      : owned_(std::move(records)), records_(owned_) {}
  /// The vector must outlive the iterator.
  explicit VectorIterator(const std::vector<Record>* records) : records_(*records) {}

  void SeekToFirst() override { MoveTo(0); }
  void SeekToLast() override { MoveTo(records_.size() - 1); }
  void Seek(std::string_view key, base::Tag tag) override { MoveTo(LowerBound(key, tag)); }
  void SeekForPrev(std::string_view key, base::Tag tag) override {
    const size_t at = LowerBound(key, tag);
    const bool equal = at < records_.size() && records_[at].key == key && records_[at].tag == tag;
    MoveTo(equal ? at : at - 1);
  }
  void Next() override { MoveTo(at_ + 1); }
  void Prev() override { MoveTo(at_ - 1); }
  std::span<const base::PlainPut> PlainAhead(size_t passed,
                                             base::SequenceNumber at) noexcept override {
    if (passed != 0) MoveTo(at_ + passed);
    ahead_.clear();
    constexpr size_t kMost = 5;
    for (size_t i = at_ + 1; i < records_.size() && ahead_.size() < kMost; ++i) {
      const Record& record = records_[i];
      if (base::TagKind(record.tag) != RecordKind::kPut || base::TagSequence(record.tag) > at ||
          record.time_ms != 0 || record.key == records_[i - 1].key) {
        break;
      }
      ahead_.push_back({record.key.data(), record.value.data(),
                        static_cast<uint32_t>(record.key.size()),
                        static_cast<uint32_t>(record.value.size())});
    }
    return ahead_;
  }

  /// From the next move on the iterator fails.
  void Break(Status status) { broken_ = std::move(status); }

 private:
  size_t LowerBound(std::string_view key, base::Tag tag) const {
    const auto at =
        std::partition_point(records_.begin(), records_.end(), [&](const Record& record) {
          return base::CompareInternal(record.key, record.tag, key, tag) < 0;
        });
    return static_cast<size_t>(at - records_.begin());
  }
  // Before the first is the greatest number, which is out of range.
  void MoveTo(size_t at) {
    at_ = at;
    status_ = broken_;
    valid_ = at < records_.size() && broken_.ok();
    if (!valid_) return;
    key_ = records_[at].key;
    tag_ = records_[at].tag;
    time_ms_ = records_[at].time_ms;
    value_ = records_[at].value;
  }

  const std::vector<Record> owned_;
  const std::vector<Record>& records_;
  size_t at_ = 0;
  std::vector<base::PlainPut> ahead_;
  Status broken_;
};

inline Record Present(const base::RecordIterator& it) {
  return {std::string(it.key()), it.tag(), std::string(it.value()), it.time_ms()};
}

/// Where and as what a test's table is written.
struct TableSpot {
  io::FileSystem* fs;
  std::string path = "/table";
  uint64_t file_id = 0x1234'5678'9ABC'DEF0;
  uint32_t keyspace = 0;
  Compression compression = Compression::kLz4;
  bool at_last_level = false;
  size_t block_bytes = kBlockBytes;
  std::shared_ptr<MetadataBudget> budget = nullptr;
};

/// Has no room for point indexes: tables keep their filters.
inline std::shared_ptr<MetadataBudget> NoRoom() {
  return std::make_shared<MetadataBudget>(~uint64_t{0}, 0);
}
/// Has no room for anything: with a cache, index and filter are read in parts.
inline std::shared_ptr<MetadataBudget> NoRoomAtAll() {
  return std::make_shared<MetadataBudget>(0, 0);
}
/// Has room for this many bytes, whatever they are.
inline std::shared_ptr<MetadataBudget> RoomFor(uint64_t bytes) {
  return std::make_shared<MetadataBudget>(bytes, bytes);
}

/// Writes sorted records as a table; gives its properties.
inline Result<TableProperties> WriteTable(const TableSpot& spot,
                                          const std::vector<Record>& records) {
  BASALT_ASSIGN_OR_RETURN(const std::unique_ptr<io::File> file,
                          spot.fs->Open(spot.path, io::OpenMode::kCreate));
  TableBuilder builder(file.get(), {.file_id = spot.file_id,
                                    .keyspace = spot.keyspace,
                                    .compression = spot.compression,
                                    .at_last_level = spot.at_last_level,
                                    .block_bytes = spot.block_bytes});
  for (const Record& record : records) {
    BASALT_RETURN_IF_ERROR(builder.Add(record.key, record.tag, record.time_ms, record.value));
  }
  BASALT_RETURN_IF_ERROR(builder.Finish());
  return builder.properties();
}

/// A cache for blocks; 0: none.
inline std::shared_ptr<Cache> NewCache(uint64_t capacity_bytes) {
  if (capacity_bytes == 0) return nullptr;
  return Cache::Create({.capacity_bytes = capacity_bytes}).value();
}

/// Opens what lies there; the file's own size stands for the manifest's unless another is given.
inline Result<std::shared_ptr<Table>> OpenTable(const TableSpot& spot,
                                                std::shared_ptr<Cache> cache = nullptr,
                                                uint64_t expected_bytes = 0) {
  if (expected_bytes == 0) {
    BASALT_ASSIGN_OR_RETURN(expected_bytes, spot.fs->FileSize(spot.path));
  }
  BASALT_ASSIGN_OR_RETURN(std::unique_ptr<io::File> file,
                          spot.fs->Open(spot.path, io::OpenMode::kRead));
  return Table::Open(std::move(file), spot.file_id, spot.keyspace, expected_bytes, std::move(cache),
                     spot.budget);
}

/// Tables that are open already, one behind the other.
class OpenTables final : public SortedTables {
 public:
  explicit OpenTables(std::vector<std::shared_ptr<const Table>> tables)
      : tables_(std::move(tables)) {
    // An open table keeps but a part of long keys.
    for (const auto& table : tables_) {
      const auto iterator = table->NewIterator(/*fill_cache=*/false);
      iterator->SeekToFirst();
      smallest_.emplace_back(iterator->Valid() ? iterator->key() : std::string_view());
      iterator->SeekToLast();
      largest_.emplace_back(iterator->Valid() ? iterator->key() : std::string_view());
    }
  }

  size_t size() const noexcept override { return tables_.size(); }
  size_t FirstNotBelow(std::string_view key) const noexcept override {
    const auto first =
        std::ranges::find_if(largest_, [&](const std::string& largest) { return largest >= key; });
    return static_cast<size_t>(first - largest_.begin());
  }
  std::string_view SmallestKey(size_t i) const noexcept override { return smallest_[i]; }
  Result<std::unique_ptr<base::RecordIterator>> NewIterator(size_t i,
                                                            bool fill_cache) const override {
    return tables_[i]->NewIterator(fill_cache);
  }

 private:
  const std::vector<std::shared_ptr<const Table>> tables_;
  std::vector<std::string> smallest_;
  std::vector<std::string> largest_;
};

}  // namespace basalt::table
