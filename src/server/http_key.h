#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/view.h"

namespace basalt::server {

// Keys with strings, as the routes of keys and of batches treat them.

/// The entity tag of a version of a key.
std::string EntityTag(uint64_t version);
/// Whether a list of entity tags names the version of this key, or is "*" and the key is there.
bool NamesVersion(std::string_view list, const Key& key);

/// Makes the key a string with this value and lifetime, whatever it was.
void PutString(View& view, Key* key, std::string_view value,
               std::optional<std::chrono::milliseconds> ttl);

/// The greatest lifetime of a key.
inline constexpr int64_t kHttpTtlMsMax = int64_t{1} << 50;

}  // namespace basalt::server
