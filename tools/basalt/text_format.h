#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "basalt/status.h"
#include "basalt/wall_time.h"

namespace basalt::tools {

// Records as lines, in two forms that carry any bytes and come back as they were.
//
// Text: `key TAB value NEWLINE`. Well-formed UTF-8 stands as it is, except for
//
//   backslash  \\        carriage return                    \r
//   tab        \t        any other control character        \xNN, a byte each (00-1F, 7F, 80-9F
//   newline    \n                                           of Unicode)
//                        a byte that is not UTF-8           \xNN
//                        the byte order mark (U+FEFF)       \xEF\xBB\xBF
//
// so that a line never holds a raw control character but the tab between key and value.
//
// JSON: `{"key":K,"value":V} NEWLINE`, where K and V are strings, or {"base64":"..."} for what is
// not UTF-8.
//
// A record that expires has a further part, `TAB expiry_ms=N`, or a member, `"expiry_ms":N`: N
// milliseconds after the beginning of 1970, UTC. Where a line names the keyspace of its record, it
// has the part `TAB keyspace=NAME` or the member `"keyspace":NAME`, in the form of keys.

enum class RecordFormat : uint8_t { kText, kJson };

struct Record {
  std::string key;
  std::string value;
  std::optional<WallTime> expiry{};
  std::string keyspace{};  ///< Empty: none is named.
};

/// What a line may tell of a record besides key and value.
struct RecordDetails {
  std::optional<WallTime> expiry{};
  std::string_view keyspace{};  ///< Empty: none is named.
};

/// By the machine's clock.
bool HasExpired(const Record& record);

/// Whether all of it is well-formed UTF-8.
bool IsUtf8(std::string_view bytes);

/// Appends the text form of `bytes`.
void AppendText(std::string_view bytes, std::string& out);
/// The text form of `bytes`, for messages.
std::string ToText(std::string_view bytes);
/// The text form of a key in quotes, for messages: of a long one only the beginning, with its
/// length.
std::string KeyText(std::string_view key);
/// The bytes behind a text form; raw control characters stand for themselves. InvalidArgument, with
/// the position, for a backslash that begins none of the forms above.
Result<std::string> ParseText(std::string_view text);

/// Appends `bytes` as a JSON string, or as {"base64":"..."}.
void AppendJson(std::string_view bytes, std::string& out);

/// Appends one line. Without a value, the key alone: the text of the key, or {"key":K}.
void AppendRecord(RecordFormat format, std::string_view key, std::optional<std::string_view> value,
                  std::string& out, const RecordDetails& details = {});
/// Reads one line, without its newline; a raw carriage return at the end is not part of a text
/// line. InvalidArgument says what is wrong and where in the line.
Result<Record> ParseRecord(RecordFormat format, std::string_view line);

}  // namespace basalt::tools
