#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "basalt/shared_map.h"
#include "shared_map/core.h"

namespace basalt::shared_map {

/// What a lookup may have to read between its key's slot and the record.
enum class Detour : uint8_t {
  kNone,     ///< Nothing: there are no changes, and all bases have the fixed layout.
  kStarts,   ///< There are no changes, and some bases have the variable layout.
  kChanges,  ///< There may be changes, in whatever layout the bases are.
};

/// What a Reader is, and its Views hold on to: it goes when the last of them does.
struct ReaderState {
  /// The Reader itself, if it lives, and its Views. Stands first: Views know only this.
  uint64_t pins = 1;
  uint64_t seen_word = 0;  // Of the control page.
  std::shared_ptr<const Version> version;
  ReadLimit limit;  // Of the newest changes. That of a snapshot does not follow.
  std::shared_ptr<Core> core;
  const ControlPage* control = nullptr;  // Of the core.

  /// To the newest version, unless something holds this one.
  Status Follow() {
    if (pins != 1 || !limit.follows || control->word() == seen_word) [[likely]] {
      return Status();
    }
    return FollowNow();
  }
  [[gnu::noinline]] Status FollowNow();

  Result<SharedMap::MaybeView> Get(std::string_view key);
  /// Of what changes within `limit` say. `results` are without a value and without an error.
  template <Detour kDetour>
  void GetMany(ReadLimit within, std::span<const std::string_view> keys,
               std::span<Result<SharedMap::MaybeView>> results);
  /// What was found of a key into its result, which is without a value and without an error.
  void Answer(Found found, std::string_view key, std::string_view value,
              Result<SharedMap::MaybeView>* result);
  [[gnu::cold, gnu::noinline]] Status WhyCorrupt(std::string_view key) const {
    return version->WhyCorrupt(version->hash_of()(key), key, limit);
  }
  SharedMap::View ViewOf(std::string_view value) noexcept {
    return SharedMap::View(value.data(), value.size(), &pins);
  }
};

/// ParallelScan of a version as of a location in its newest changes.
Status ScanVersion(
    const Version& version, uint64_t end, uint32_t threads,
    const std::function<Status(std::string_view key, std::string_view value)>& visit);

}  // namespace basalt::shared_map
