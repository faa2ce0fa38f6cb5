#include "io/sim_inode.h"

#include <algorithm>
#include <cstring>

namespace basalt::io {
namespace {

constexpr uint64_t kSectorBytes = 512;

/// Puts bytes into an image whose unwritten bytes are zeros.
void Put(std::string* image, uint64_t offset, std::string_view bytes) {
  if (bytes.empty()) return;
  if (image->size() < offset + bytes.size()) image->resize(offset + bytes.size());
  std::memcpy(image->data() + offset, bytes.data(), bytes.size());
}

/// Forgets an image's bytes from `size` on.
void Cut(std::string* image, uint64_t size) {
  if (image->size() > size) image->resize(size);
}

std::string_view Slice(const std::string& bytes, uint64_t offset, uint64_t length) {
  return std::string_view(bytes).substr(std::min<uint64_t>(offset, bytes.size()), length);
}

}  // namespace

/// Which changes of the log, and which parts of them, a power cut leaves. Time is the position in
/// the log: at time t the changes before position t have been made.
class SimInode::Survival {
 public:
  Survival(const std::vector<Change>& log, CrashMode mode, base::Random* random)
      : log_(log), dropped_(log.size(), false) {
    const uint64_t end = log.size();
    const bool drawn = mode != CrashMode::kNone && mode != CrashMode::kAll;
    if (mode == CrashMode::kAll) size_time_ = end;
    if (drawn) {
      size_time_ = random->Below(end + 1);
      for (size_t i = 0; i < log.size(); ++i) {
        dropped_[i] = log[i].kind == Change::Kind::kWrite &&
                      log[i].state == Change::State::kAbandoned && random->OneIn(2);
      }
    }
    if (mode == CrashMode::kTornTail && size_time_ < end) torn_ = random->Next();
    if (mode == CrashMode::kSubset) {
      sector_seed_ = random->Next() | 1;
      // Truncations are metadata, and a journal keeps those in order with the data of later writes:
      // bytes written after a truncation that is lost are lost too.
      sector_time_max_ = size_time_;
      while (sector_time_max_ < end && !Shrinks(log[sector_time_max_])) ++sector_time_max_;
    }
  }

  /// Whether a change of the size (by a write, too) has happened.
  bool KeepsSize(size_t at) const {
    return log_[at].state == Change::State::kDurable || (at < size_time_ && !dropped_[at]);
  }

  /// How much of a change that is not kept was caught half-way.
  uint64_t TornBytes(size_t at) const {
    if (torn_ == 0 || at != size_time_ || log_[at].kind != Change::Kind::kWrite || dropped_[at]) {
      return 0;
    }
    return torn_ % log_[at].length;
  }

  bool by_sector() const { return sector_seed_ != 0; }
  /// With by_sector(): whether a write reached this sector.
  bool KeepsSector(size_t at, uint64_t sector) const {
    if (log_[at].state == Change::State::kDurable) return true;
    if (dropped_[at]) return false;
    // A third of the sectors stays as synced, a third is as new as can be, a third between.
    base::Random random(sector_seed_ + sector * 0x9E37'79B9'7F4A'7C15);
    const uint64_t choice = random.Below(3);
    if (choice == 0) return false;
    return at < (choice == 1 ? sector_time_max_ : random.Below(sector_time_max_ + 1));
  }

 private:
  static bool Shrinks(const Change& change) {
    return change.kind == Change::Kind::kTruncate && change.length < change.old_size;
  }

  const std::vector<Change>& log_;
  std::vector<bool> dropped_;  // Abandoned writes that are lost whatever else is kept.
  uint64_t size_time_ = 0;     // The file's size, and without sectors its bytes, are of this time.
  uint64_t torn_ = 0;          // Not 0: some bytes of the next change too.
  uint64_t sector_seed_ = 0;   // Not 0: every sector has a time of its own, drawn from this.
  uint64_t sector_time_max_ = 0;  // No sector's time is later.
};

std::shared_ptr<SimInode> SimInode::Clone() const {
  std::shared_ptr<SimInode> clone(new SimInode(*this));
  clone->live_ = std::make_shared<std::string>(*live_);
  clone->moved_.clear();
  return clone;
}

size_t SimInode::Read(uint64_t offset, std::span<char> out) const {
  if (offset >= size_) return 0;
  const size_t wanted = std::min<uint64_t>(out.size(), size_ - offset);
  const std::string_view stored = Slice(*live_, offset, wanted);
  std::memcpy(out.data(), stored.data(), stored.size());
  std::memset(out.data() + stored.size(), 0, wanted - stored.size());
  return wanted;
}

void SimInode::Write(uint64_t offset, std::span<const std::string_view> pieces, uint64_t length) {
  if (length == 0) return;
  Log(Change::Kind::kWrite, offset, length);
  std::string* const live = GrowLive(offset + length);
  uint64_t at = offset;
  for (const std::string_view piece : pieces) {
    const std::string_view bytes = piece.substr(0, offset + length - at);
    Put(live, at, bytes);
    if (tracked_) logged_bytes_ += bytes;
    for (const std::weak_ptr<std::string>& moved : moved_) {
      const std::shared_ptr<std::string> mapped = moved.lock();
      if (mapped == nullptr || at >= mapped->size()) continue;
      std::memcpy(mapped->data() + at, bytes.data(),
                  std::min<uint64_t>(bytes.size(), mapped->size() - at));
    }
    at += bytes.size();
  }
  size_ = std::max(size_, at);
}

void SimInode::Truncate(uint64_t size) {
  Log(Change::Kind::kTruncate, 0, size);
  SetLiveSize(size);
}

void SimInode::Allocate(uint64_t size) {
  if (size <= size_) return;
  Log(Change::Kind::kAllocate, 0, size);
  size_ = size;
}

void SimInode::Sync() {
  if (!tracked_) return;
  const bool foldable = std::all_of(log_.begin(), log_.end(), [](const Change& change) {
    return change.state == Change::State::kDirty;
  });
  if (!foldable) {
    for (Change& change : log_) {
      if (change.state == Change::State::kDirty) change.state = Change::State::kDurable;
    }
    return;
  }
  for (const Change& change : log_) {
    if (change.kind == Change::Kind::kWrite) {
      Put(&durable_.bytes, change.offset, Slice(*live_, change.offset, change.length));
    } else if (change.kind == Change::Kind::kTruncate) {
      Cut(&durable_.bytes, change.length);
    }
  }
  durable_.size = size_;
  log_.clear();
  logged_bytes_.clear();
}

void SimInode::FailSync() {
  for (Change& change : log_) {
    if (change.state == Change::State::kDirty) change.state = Change::State::kAbandoned;
  }
}

std::shared_ptr<const std::string> SimInode::Map(uint64_t size) {
  std::string* const live = GrowLive(size);
  if (live->size() < size) live->resize(size);
  return live_;
}

void SimInode::Crash(CrashMode mode, base::Random* random) {
  if (mode == CrashMode::kRandom) {
    constexpr CrashMode kModes[] = {CrashMode::kNone, CrashMode::kAll, CrashMode::kPrefix,
                                    CrashMode::kTornTail, CrashMode::kSubset};
    mode = kModes[random->Below(std::size(kModes))];
  }
  if (!log_.empty()) {
    durable_ = Replay(Survival(log_, mode, random));
    live_ = std::make_shared<std::string>(durable_.bytes);
    size_ = durable_.size;
    log_.clear();
    logged_bytes_.clear();
  } else if (live_.use_count() > 1) {
    live_ = std::make_shared<std::string>(*live_);
  }
  // What was mapped before the cut shows nothing of the time after it.
  moved_.clear();
}

void SimInode::FlipBit(uint64_t bit) {
  const uint64_t at = bit / 8;
  const auto flip = [mask = 1 << (bit % 8)](char* byte) {
    *byte = static_cast<char>(*byte ^ mask);
  };
  const auto flip_in = [&](std::string* image) {
    if (image->size() <= at) image->resize(at + 1);
    flip(image->data() + at);
  };
  flip_in(GrowLive(at + 1));
  if (at < durable_.size) flip_in(&durable_.bytes);
  for (const Change& change : log_) {
    if (change.kind == Change::Kind::kWrite && at >= change.offset &&
        at - change.offset < change.length) {
      flip(logged_bytes_.data() + change.position + (at - change.offset));
    }
  }
}

void SimInode::Log(Change::Kind kind, uint64_t offset, uint64_t length) {
  if (!tracked_) return;
  log_.push_back({kind, Change::State::kDirty, offset, length, logged_bytes_.size(), size_});
}

/// Makes room for an image of `size` bytes. A buffer that is mapped never moves: the live image
/// goes on in another one, and writes are repeated in the old one.
std::string* SimInode::GrowLive(uint64_t size) {
  if (size > live_->capacity() && live_.use_count() > 1) {
    std::erase_if(moved_, [](const auto& moved) { return moved.expired(); });
    moved_.push_back(live_);
    auto grown = std::make_shared<std::string>();
    grown->reserve(std::max<uint64_t>(size, live_->capacity() * 2));
    *grown = *live_;
    live_ = std::move(grown);
  }
  return live_.get();
}

void SimInode::SetLiveSize(uint64_t size) {
  Cut(live_.get(), size);
  size_ = size;
}

SimInode::Image SimInode::Replay(const Survival& survival) const {
  Image image = durable_;
  for (size_t i = 0; i < log_.size(); ++i) {
    const Change& change = log_[i];
    const bool keeps_size = survival.KeepsSize(i);
    if (change.kind == Change::Kind::kTruncate && keeps_size) {
      Cut(&image.bytes, change.length);
      image.size = change.length;
    } else if (change.kind == Change::Kind::kAllocate && keeps_size) {
      image.size = std::max(image.size, change.length);
    }
    if (change.kind != Change::Kind::kWrite) continue;
    const std::string_view bytes = Slice(logged_bytes_, change.position, change.length);
    const uint64_t kept = keeps_size ? change.length : survival.TornBytes(i);
    if (kept > 0) image.size = std::max(image.size, change.offset + kept);
    if (!survival.by_sector()) {
      Put(&image.bytes, change.offset, bytes.substr(0, kept));
      continue;
    }
    for (uint64_t at = 0; at < change.length;) {
      const uint64_t sector = (change.offset + at) / kSectorBytes;
      const uint64_t end = std::min((sector + 1) * kSectorBytes - change.offset, change.length);
      if (survival.KeepsSector(i, sector)) {
        Put(&image.bytes, change.offset + at, bytes.substr(at, end - at));
      }
      at = end;
    }
  }
  Cut(&image.bytes, image.size);
  return image;
}

}  // namespace basalt::io
