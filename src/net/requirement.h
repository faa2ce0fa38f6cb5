#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "basalt/options.h"
#include "basalt/status.h"

// What a write over the wire asks of the store before it is applied: the conditions of its batch,
// and what its transaction has read. They are sent as one string of bytes:
//
//   kind ........ 1 byte
//   expiry ...... 8 bytes (kExpiry), and nothing else
//   keyspace .... 4 bytes
//   key ......... 4 bytes of length, and the bytes
//   version ..... 8 bytes (kUnchanged)
//   end ......... 4 bytes of length, and the bytes (kReadRange)
//
// Numbers are little-endian.

namespace basalt::net {

struct Requirement {
  enum class Kind : uint8_t {
    kAbsent = 1,     ///< As Condition::kAbsent.
    kPresent = 2,    ///< As Condition::kPresent.
    kUnchanged = 3,  ///< As Condition::kUnchanged.
    kReadKey = 4,    ///< The key was not written since the snapshot.
    kReadRange = 5,  ///< No key in [key, end) was.
    kReadTail = 6,   ///< No key from `key` on was.
    kExpiry = 7,     ///< The moment is not past: something that was read expires then.
  };
  Kind kind = Kind::kReadKey;
  KeyspaceId keyspace = KeyspaceId::kDefault;
  std::string_view key{};
  std::string_view end{};
  uint64_t number = 0;  ///< A version, or milliseconds since 1970.
};

void AppendRequirement(const Requirement& requirement, std::string* out);

/// Calls `visit` for each, until one is an error. InvalidArgument: the bytes are malformed.
Status ForEachRequirement(std::string_view bytes,
                          const std::function<Status(const Requirement& requirement)>& visit);

}  // namespace basalt::net
