#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/out_of_memory.h"
#include "shared_map/reader_state.h"

// A scan goes over pieces of the bases, and then over pieces of the change indexes. Each record is
// given once: by the base unless a change decides about its key, by the compacting changes unless a
// newer one does, else by the newest changes.

namespace basalt::shared_map {
namespace {

constexpr uint64_t kPiece = uint64_t{16} << 10;

using Visit = std::function<Status(std::string_view key, std::string_view value)>;

/// Slots of a shard's base, or words of a change set's index.
struct Piece {
  uint64_t shard;
  int change_set;  // -1: of the base.
  uint64_t begin;
  uint64_t end;
};

std::vector<Piece> PiecesOf(const Version& version) {
  std::vector<Piece> pieces;
  const auto add = [&](uint64_t shard, int change_set, uint64_t size) {
    for (uint64_t begin = 0; begin < size; begin += kPiece) {
      pieces.push_back({shard, change_set, begin, std::min(begin + kPiece, size)});
    }
  };
  for (uint64_t shard = 0; shard < version.bases().size(); ++shard) {
    const BaseFile* const base = version.bases()[shard].get();
    if (base != nullptr) add(shard, -1, base->figures().records);
  }
  for (size_t set = 0; set < version.change_sets().size(); ++set) {
    add(0, static_cast<int>(set), version.change_sets()[set].index().capacity());
  }
  return pieces;
}

class Scan {
 public:
  Scan(const Version& version, uint64_t end, const Visit& visit, std::vector<Piece> pieces)
      : version_(version), limit_{.end = end}, visit_(visit), pieces_(std::move(pieces)) {}

  /// Takes pieces until none is left or somebody met an error.
  void Work() {
    for (size_t at = next_++; at < pieces_.size() && !stopped_.load(); at = next_++) {
      Status status;
      try {
        const Piece& piece = pieces_[at];
        status = piece.change_set < 0 ? ScanBase(piece) : ScanChanges(piece);
      } catch (...) {
        const std::lock_guard guard(mutex_);
        if (!exception_) exception_ = std::current_exception();
        stopped_ = true;
      }
      if (status.ok()) continue;
      const std::lock_guard guard(mutex_);
      if (status_.ok()) status_ = status;
      stopped_ = true;
    }
  }
  size_t pieces() const { return pieces_.size(); }
  Status status() const {
    if (exception_) std::rethrow_exception(exception_);
    return status_;
  }

 private:
  Status ScanBase(const Piece& piece) const {
    const BaseFile& base = *version_.bases()[piece.shard];
    for (uint64_t slot = piece.begin; slot < piece.end; ++slot) {
      BASALT_ASSIGN_OR_RETURN(const RecordRef record, base.At(slot));
      const uint64_t hash = version_.hash_of()(record.key());
      // A base that is being split is that of several shards.
      if (version_.ShardOf(hash) != piece.shard) continue;
      if (version_.MayHaveChanges()) {
        RecordRef change;
        ReadLimit limit = limit_;
        const Found found = version_.FindInChanges(hash, record.key(), &limit, &change);
        if (found == Found::kCorrupt) return version_.WhyCorrupt(hash, record.key(), limit_);
        if (found == Found::kPresent) continue;
      }
      BASALT_RETURN_IF_ERROR(visit_(record.key(), record.value()));
    }
    return Status();
  }

  Status ScanChanges(const Piece& piece) const {
    const ChangeSet& set = version_.change_sets()[static_cast<size_t>(piece.change_set)];
    for (uint64_t at = piece.begin; at < piece.end; ++at) {
      const uint64_t word = set.index().WordAt(at);
      if (word == 0) continue;
      Change change;
      if (!set.At(ChangeIndex::LocationOf(word), &change)) {
        return Status(StatusCode::kCorruption, set.segments().front()->path() +
                                                   ": a change that the index leads to is damaged");
      }
      // The newest change of the key as of the limit, and whether it is one of this set.
      const std::string_view key = change.record.key();
      const uint64_t hash = version_.hash_of()(key);
      const char* const seen = change.record.address();
      RecordRef counted;
      ReadLimit limit = limit_;
      const Found found = version_.FindInChanges(hash, key, &limit, &counted);
      if (found == Found::kCorrupt) return version_.WhyCorrupt(hash, key, limit_);
      if (found == Found::kAbsent || !counted.is_put()) continue;
      if (piece.change_set != 0 && counted.address() != seen) continue;
      if (piece.change_set == 0 && !IsOfNewest(counted)) continue;
      BASALT_RETURN_IF_ERROR(visit_(counted.key(), counted.value()));
    }
    return Status();
  }

  bool IsOfNewest(const RecordRef& record) const {
    const auto& segments = version_.newest().segments();
    return std::any_of(segments.begin(), segments.end(), [&](const auto& segment) {
      const char* const begin = segment->AddressOf(segment->first());
      return record.address() >= begin && record.address() < begin + segment->capacity_bytes();
    });
  }

  const Version& version_;
  const ReadLimit limit_;
  const Visit& visit_;
  const std::vector<Piece> pieces_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;  // Covers the rest.
  Status status_;
  std::exception_ptr exception_;
};

}  // namespace

Status ScanVersion(const Version& version, uint64_t end, uint32_t threads, const Visit& visit) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  // What `visit` throws reaches the caller as it is.
  BASALT_ASSIGN_OR_RETURN(auto pieces, base::OrOutOfMemory([&]() -> Result<std::vector<Piece>> {
                            return PiecesOf(version);
                          }));
  Scan scan(version, end, visit, std::move(pieces));
  std::vector<std::thread> others;
  size_t wanted = std::min<size_t>(threads, scan.pieces());
  while (others.size() + 1 < wanted) {
    try {
      others.emplace_back([&] { scan.Work(); });
    } catch (const std::exception&) {
      wanted = others.size() + 1;  // Those that there are do the same work.
    }
  }
  scan.Work();
  for (std::thread& thread : others) thread.join();
  return scan.status();
}

}  // namespace basalt::shared_map
