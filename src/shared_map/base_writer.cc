#include "shared_map/base_writer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "base/out_of_memory.h"
#include "base/random.h"
#include "phash/threads.h"
#include "shared_map/base_format.h"
#include "shared_map/record.h"

namespace basalt::shared_map {
namespace {

using Records = std::span<const char* const>;

constexpr size_t kKeysAtOnce = 256;
constexpr uint64_t kSlotsAtOnce = 65'536;

constexpr uint64_t kLineBytes = 64;
// Records ahead whose header is fetched, and whose other lines are: they lie anywhere.
constexpr uint64_t kHeadersAhead = 32;
constexpr uint64_t kRecordsAhead = 16;
// From there on the processor sees that it goes straight on.
constexpr uint64_t kFetchedBytesMax = 4096;

Status Cancelled(const std::string& path) {
  return Status(StatusCode::kCancelled, path + ": stopped writing on request");
}

// The keys of records[begin, end), kKeysAtOnce at a time, to visit(first record's number, keys).
template <class Visit>
void VisitKeys(Records records, uint64_t begin, uint64_t end, const Visit& visit) {
  std::array<std::string_view, kKeysAtOnce> keys;
  for (uint64_t first = begin; first < end; first += kKeysAtOnce) {
    const uint64_t count = std::min<uint64_t>(kKeysAtOnce, end - first);
    for (uint64_t i = 0; i < count; ++i) {
      if (first + i + kHeadersAhead < end) {
        const char* const ahead = records[first + i + kHeadersAhead];
        __builtin_prefetch(ahead);
        __builtin_prefetch(ahead + kRecordHeaderBytes);  // may be in another line
      }
      keys[i] = RecordRef(records[first + i]).key();
    }
    visit(first, std::span<const std::string_view>(keys).first(count));
  }
}

class RecordKeys final : public KeySource {
 public:
  explicit RecordKeys(Records records) : records_(records) {}

  uint64_t size() const override { return records_.size(); }
  Status Walk(const std::function<void(std::span<const std::string_view>)>& visit) const override {
    VisitKeys(records_, 0, records_.size(), [&](uint64_t, auto keys) { visit(keys); });
    return Status();
  }

 private:
  Records records_;
};

struct Sizes {
  uint64_t largest = 0;  // Filled up to a multiple of 8, as is each of the sum.
  uint64_t sum = 0;
};

Sizes SizesOf(Records records) {
  Sizes sizes;
  for (uint64_t i = 0; i < records.size(); ++i) {
    if (i + kHeadersAhead < records.size()) __builtin_prefetch(records[i + kHeadersAhead]);
    const RecordRef record(records[i]);
    BASALT_CHECK(record.header().kind == kBaseRecordKind);
    const uint64_t bytes = base::RoundUp(record.size(), 8);
    sizes.largest = std::max(sizes.largest, bytes);
    sizes.sum += bytes;
  }
  return sizes;
}

BaseLayout ChooseLayout(SharedMapLayout wanted, const Sizes& sizes, uint64_t records) {
  if (wanted == SharedMapLayout::kFixed) return BaseLayout::kFixed;
  if (wanted == SharedMapLayout::kVariable) return BaseLayout::kVariable;
  const uint64_t variable = sizes.sum + 4 * records;
  return records * sizes.largest <= variable + variable / 10 ? BaseLayout::kFixed
                                                             : BaseLayout::kVariable;
}

// A file that is removed again unless it is kept.
class NewFile {
 public:
  static Result<NewFile> Create(io::FileSystem* fs, const std::string& path) {
    BASALT_ASSIGN_OR_RETURN(std::unique_ptr<io::File> file, fs->Open(path, io::OpenMode::kCreate));
    return NewFile(fs, std::move(file));
  }
  NewFile(NewFile&&) noexcept = default;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile() {
    if (file_ == nullptr) return;
    // What went wrong first is what the caller hears of.
    static_cast<void>(base::OrOutOfMemory([this] { return fs_->RemoveFile(file_->path()); }));
  }

  io::File* operator->() const noexcept { return file_.get(); }
  void Keep() noexcept { file_.reset(); }

 private:
  NewFile(io::FileSystem* fs, std::unique_ptr<io::File> file) : fs_(fs), file_(std::move(file)) {}

  io::FileSystem* fs_;
  std::unique_ptr<io::File> file_;
};

// Writes a file's data from its beginning to its end, then what stands around it.
class DataWriter {
 public:
  // `header` has the places of all sections.
  DataWriter(const NewFile* file, const BaseHeader& header)
      : file_(file),
        header_(header),
        buffer_(std::make_unique_for_overwrite<char[]>(
            std::min(kBufferBytes, std::max<uint64_t>(header.data.bytes, 1)))) {
    block_checksums_.reserve(header.block_checksums.bytes / 8);
  }

  // Bytes of data so far.
  uint64_t position() const noexcept { return flushed_ + used_; }

  // A record that takes `bytes`, from its own size up to a multiple of 8, of the data.
  Status AppendRecord(const RecordRef& record, uint64_t bytes) {
    const RecordHeader header = {.value_bytes = record.header().value_bytes,
                                 .key_bytes = record.header().key_bytes,
                                 .kind = kBaseRecordKind,
                                 .flags = 0};
    // All positions are multiples of 8, so that a header always has room, and is followed by a
    // flush at the earliest.
    if (used_ == kBufferBytes) BASALT_RETURN_IF_ERROR(Flush());
    std::memcpy(buffer_.get() + used_, &header, sizeof header);
    used_ += sizeof header;
    const std::string_view body(record.address() + kRecordHeaderBytes,
                                record.size() - kRecordHeaderBytes);
    BASALT_RETURN_IF_ERROR(Append(body.size(), [&](char* out, uint64_t from, uint64_t count) {
      std::memcpy(out, body.data() + from, count);
    }));
    return Append(bytes - record.size(),
                  [](char* out, uint64_t, uint64_t count) { std::memset(out, 0, count); });
  }

  // The rest of the data and both copies of the header.
  Status Finish(std::string_view function, const std::vector<uint32_t>& starts) {
    BASALT_CHECK(position() == header_.data.bytes);
    AddBlockChecksums();
    const auto seal = [&](BaseSection* section, std::string_view bytes) {
      BASALT_CHECK(section->bytes == bytes.size());
      section->checksum = base::Checksum(header_.file_id, section->offset, bytes);
      return bytes;
    };
    const std::string_view sections[] = {
        seal(&header_.function, function),
        seal(&header_.block_checksums,
             {reinterpret_cast<const char*>(block_checksums_.data()), 8 * block_checksums_.size()}),
        seal(&header_.starts, {reinterpret_cast<const char*>(starts.data()), 4 * starts.size()})};
    const uint64_t offsets[] = {header_.function.offset, header_.block_checksums.offset,
                                header_.starts.offset};
    const std::string_view header(reinterpret_cast<const char*>(&header_), sizeof header_);
    header_.checksum = base::Checksum(header_.file_id, 0, header.substr(0, kBaseChecksummedBytes));

    const std::array<std::string_view, 2> tail = {{{buffer_.get(), used_}, header}};
    BASALT_RETURN_IF_ERROR((*file_)->WritePiecesAt(header_.data.offset + flushed_, tail));
    const std::string zeros(kHeadBytes, '\0');
    std::vector<std::string_view> head = {header};
    uint64_t end = header.size();
    for (size_t i = 0; i < std::size(sections); ++i) {
      head.push_back(std::string_view(zeros).substr(0, offsets[i] - end));
      head.push_back(sections[i]);
      end = offsets[i] + sections[i].size();
    }
    return (*file_)->WritePiecesAt(0, head);
  }

 private:
  // Of the file's alignment, so that whole huge pages are written at once.
  static constexpr uint64_t kBufferBytes = kHugePageBytes;
  static_assert(kBufferBytes % kBlockBytes == 0);

  // fill(out, from, count) for all of [0, bytes), in the pieces that the buffer has room for.
  template <class Fill>
  Status Append(uint64_t bytes, const Fill& fill) {
    for (uint64_t done = 0; done < bytes;) {
      if (used_ == kBufferBytes) BASALT_RETURN_IF_ERROR(Flush());
      const uint64_t count = std::min(bytes - done, kBufferBytes - used_);
      fill(buffer_.get() + used_, done, count);
      used_ += count;
      done += count;
    }
    return Status();
  }

  void AddBlockChecksums() {
    for (uint64_t at = 0; at < used_; at += kBlockBytes) {
      const std::string_view block(buffer_.get() + at, std::min(kBlockBytes, used_ - at));
      block_checksums_.push_back(
          base::Checksum(header_.file_id, header_.data.offset + flushed_ + at, block));
    }
  }

  Status Flush() {
    AddBlockChecksums();
    BASALT_RETURN_IF_ERROR(
        (*file_)->WriteAt(header_.data.offset + flushed_, {buffer_.get(), used_}));
    flushed_ += used_;
    used_ = 0;
    return Status();
  }

  const NewFile* file_;
  BaseHeader header_;
  std::unique_ptr<char[]> buffer_;
  uint64_t used_ = 0;
  uint64_t flushed_ = 0;
  std::vector<uint64_t> block_checksums_;
};

class BaseWriter {
 public:
  BaseWriter(const std::string& path, Records records, const BaseWriteOptions& options)
      : path_(path), records_(records), options_(options), threads_(options.threads) {
    if (threads_ == 0) threads_ = std::max<uint32_t>(std::thread::hardware_concurrency(), 1);
  }

  Result<BaseFigures> Write(io::FileSystem* fs) {
    const Sizes sizes = SizesOf(records_);
    const BaseLayout layout = ChooseLayout(options_.layout, sizes, records_.size());
    if (layout == BaseLayout::kVariable && sizes.sum > kVariableDataBytesMax) {
      return Status(StatusCode::kResourceExhausted,
                    path_ + ": " + std::to_string(sizes.sum) +
                        " bytes of records are more than the 32 GiB that a base file of the "
                        "variable layout holds; divide them, or take the fixed layout");
    }
    BASALT_ASSIGN_OR_RETURN(const PerfectHash function, BuildFunction());
    if (!SortBySlot(function)) return Cancelled(path_);

    BaseHeader header{};
    std::memcpy(header.magic, kBaseMagic, sizeof kBaseMagic);
    header.format_version = kBaseFormatVersion;
    header.required_features = kBaseKnownFeatures;
    header.file_id = base::RandomSeed();
    header.records = records_.size();
    header.golden_hash = base::Hash(kBaseGoldenKey);
    header.layout = layout;
    if (layout == BaseLayout::kFixed) header.stride = sizes.largest;
    PlaceSections(&header, function.bytes().size(),
                  layout == BaseLayout::kFixed ? records_.size() * sizes.largest : sizes.sum);

    BASALT_ASSIGN_OR_RETURN(NewFile file, NewFile::Create(fs, path_));
    // A full disk is found before there is any work, and the file lies in one piece.
    BASALT_RETURN_IF_ERROR(file->Allocate(header.file_bytes));
    DataWriter writer(&file, header);
    BASALT_RETURN_IF_ERROR(WriteRecords(header, &writer));
    BASALT_RETURN_IF_ERROR(writer.Finish(function.bytes(), starts_));
    BASALT_RETURN_IF_ERROR(file->Sync());
    file.Keep();
    return BaseFigures{.records = header.records,
                       .file_bytes = header.file_bytes,
                       .function_bytes = header.function.bytes,
                       .data_bytes = header.data.bytes,
                       .fixed = layout == BaseLayout::kFixed};
  }

 private:
  bool GoOn(uint64_t done) const { return !options_.go_on || options_.go_on(done); }

  Result<PerfectHash> BuildFunction() const {
    const PerfectHashOptions options = {
        .threads = threads_,
        .hash_seed = options_.hash_seed,
        .on_progress = [this](const PerfectHashProgress&) { return GoOn(0); }};
    return PerfectHashBuilder(options).Build(RecordKeys(records_));
  }

  // False: cancelled.
  bool SortBySlot(const PerfectHash& function) {
    by_slot_ = std::make_unique_for_overwrite<const char*[]>(records_.size());
    std::atomic<uint64_t> next = 0;
    bool stopped = false;
    const auto stop = [&] { next = records_.size(); };
    phash::RunOnThreads(
        static_cast<uint32_t>(std::clamp<uint64_t>(records_.size() / kSlotsAtOnce, 1, threads_)),
        [&](uint32_t thread) {
          std::array<uint64_t, kKeysAtOnce> slots;
          for (uint64_t begin = next.fetch_add(kSlotsAtOnce); begin < records_.size();
               begin = next.fetch_add(kSlotsAtOnce)) {
            const uint64_t end = std::min<uint64_t>(begin + kSlotsAtOnce, records_.size());
            VisitKeys(records_, begin, end, [&](uint64_t first, auto keys) {
              function.IndexMany(keys, slots);
              for (size_t i = 0; i < keys.size(); ++i) by_slot_[slots[i]] = records_[first + i];
            });
            if (thread == 0 && !GoOn(0)) {
              stopped = true;
              stop();
            }
          }
        },
        stop);
    return !stopped;
  }

  Status WriteRecords(const BaseHeader& header, DataWriter* writer) {
    constexpr uint64_t kReportBytes = uint64_t{4} << 20;
    constexpr uint64_t kReportRecords = 65'536;
    const bool variable = header.layout == BaseLayout::kVariable;
    // Filled up with zeros to a multiple of 8 bytes.
    if (variable) starts_.resize(header.starts.bytes / 4);
    uint64_t reported_bytes = 0;
    for (uint64_t slot = 0; slot < records_.size(); ++slot) {
      Prefetch(slot);
      const RecordRef record(by_slot_[slot]);
      if (variable) starts_[slot] = static_cast<uint32_t>(writer->position() / 8);
      BASALT_RETURN_IF_ERROR(
          writer->AppendRecord(record, variable ? base::RoundUp(record.size(), 8) : header.stride));
      if (slot % kReportRecords != 0 && writer->position() - reported_bytes < kReportBytes) {
        continue;
      }
      reported_bytes = writer->position();
      if (!GoOn(slot + 1)) return Cancelled(path_);
    }
    return Status();
  }

  void Prefetch(uint64_t slot) const {
    if (slot + kHeadersAhead < records_.size()) __builtin_prefetch(by_slot_[slot + kHeadersAhead]);
    if (slot + kRecordsAhead >= records_.size()) return;
    const RecordRef ahead(by_slot_[slot + kRecordsAhead]);
    const uint64_t bytes = std::min(ahead.size(), kFetchedBytesMax);
    for (uint64_t at = kLineBytes; at < bytes + kLineBytes; at += kLineBytes) {
      __builtin_prefetch(ahead.address() + std::min(at, bytes - 1));
    }
  }

  const std::string& path_;
  const Records records_;
  const BaseWriteOptions& options_;
  uint32_t threads_;
  std::unique_ptr<const char*[]> by_slot_;
  std::vector<uint32_t> starts_;
};

}  // namespace

Result<BaseFigures> WriteBaseFile(io::FileSystem* fs, const std::string& path,
                                  std::span<const char* const> records,
                                  const BaseWriteOptions& options) try {
  return BaseWriter(path, records, options).Write(fs);
} catch (const std::bad_alloc&) {
  return Status(StatusCode::kResourceExhausted, path + ": out of memory for a base file");
}

}  // namespace basalt::shared_map
