#include "tests/metamorphic/operation.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/coding.h"
#include "base/random.h"

namespace basalt::metamorphic {
namespace {

constexpr std::array<std::string_view, kOperationKinds> kKindNames = {
    "put",     "delete",   "batch", "update",   "put_if_absent", "delete_range", "merge",
    "get",     "multiget", "scan",  "iterator", "move",          "end",          "snapshot",
    "release", "flush",    "sync",  "compact",  "jobs",          "reopen",       "drop",
    "crash",   "cut",      "wait",  "renew"};
/// In the order of RecordKind, which counts from 1; likewise MergeOperator.
constexpr std::array<std::string_view, 4> kRecordNames = {"put", "delete", "delete_range", "merge"};
constexpr std::array<std::string_view, 4> kOperatorNames = {"add", "min", "max", "append"};
constexpr std::array<std::string_view, 6> kMoveNames = {"first", "last", "next",
                                                        "prev",  "seek", "seek_for_prev"};
constexpr std::array<std::string_view, 5> kActionNames = {"set", "append", "remove", "refuse",
                                                          "throw"};
constexpr std::array<std::string_view, 6> kModeNames = {"random", "none",      "all",
                                                        "prefix", "torn_tail", "subset"};

template <class Enum>
std::string_view NameOf(std::span<const std::string_view> names, Enum value) {
  return names[static_cast<size_t>(value)];
}

bool HasTarget(Move::Kind kind) {
  return kind == Move::Kind::kSeek || kind == Move::Kind::kSeekForPrev;
}
bool HasValue(UpdateAction action) {
  return action == UpdateAction::kSet || action == UpdateAction::kAppend;
}

std::string_view LevelName(Durability level) {
  return level == Durability::kPower ? "power" : "process";
}

/// Appends words to a line, one space between them.
class Line {
 public:
  explicit Line(std::string_view first) : text_(first) {}
  Line& Word(std::string_view word) {
    text_.append(" ").append(word);
    return *this;
  }
  Line& Number(uint64_t number) { return Word(std::to_string(number)); }
  Line& Key(std::string_view key) { return Word(Quoted(key)); }
  Line& Value(const ValueRecipe& value) {
    return Word(std::to_string(value.size) + "@" + std::to_string(value.seed));
  }
  Line& Slot(char letter, const std::optional<size_t>& slot) {
    return slot ? Word(letter + std::to_string(*slot)) : *this;
  }
  Line& InSpace(Space space) { return space == Space::kSecond ? Word("second") : *this; }
  Line& Level(const std::optional<Durability>& level) {
    return level ? Word(LevelName(*level)) : *this;
  }
  Line& NamedKey(std::string_view name, const std::optional<std::string>& key) {
    return key ? Word(name).Key(*key) : *this;
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

/// A word of a line: bare, or the bytes of a quoted key.
struct Token {
  bool quoted = false;
  std::string text;
};

Status Malformed(size_t line, std::string_view what) {
  return Status(StatusCode::kInvalidArgument,
                "line " + std::to_string(line) + " of the operations: " + std::string(what));
}

std::optional<char> FromHex(std::string_view two) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(two.data(), two.data() + two.size(), value, 16);
  if (two.size() != 2 || error != std::errc() || end != two.data() + 2) return std::nullopt;
  return static_cast<char>(value);
}

/// Reads a quoted key that begins at `at`, and leaves `at` behind it.
std::optional<std::string> ReadQuoted(std::string_view line, size_t& at) {
  std::string bytes;
  for (++at; at < line.size() && line[at] != '"'; ++at) {
    if (line[at] != '\\') {
      bytes += line[at];
      continue;
    }
    if (++at == line.size()) return std::nullopt;
    if (line[at] != 'x') {
      bytes += line[at];
      continue;
    }
    const std::optional<char> byte = FromHex(line.substr(at + 1, 2));
    if (!byte) return std::nullopt;
    bytes += *byte;
    at += 2;
  }
  if (at == line.size()) return std::nullopt;
  ++at;
  return bytes;
}

/// Takes the words of one line from the left.
class LineReader {
 public:
  static Result<LineReader> Split(std::string_view line, size_t number) {
    LineReader reader(number);
    for (size_t at = 0; at < line.size();) {
      if (line[at] == ' ') {
        ++at;
      } else if (line[at] == '"') {
        std::optional<std::string> bytes = ReadQuoted(line, at);
        if (!bytes) return Malformed(number, "a key does not end, or has a bad escape");
        reader.tokens_.push_back({true, *std::move(bytes)});
      } else {
        const size_t end = std::min(line.find(' ', at), line.size());
        reader.tokens_.push_back({false, std::string(line.substr(at, end - at))});
        at = end;
      }
    }
    return reader;
  }

  bool done() const { return next_ == tokens_.size(); }
  bool AtKey() const { return !done() && tokens_[next_].quoted; }
  Status Wrong(std::string_view expected) const {
    return Malformed(number_, "expected " + std::string(expected) + " instead of " +
                                  (done() ? "the end of the line" : tokens_[next_].text));
  }

  /// Takes the next word if it is this one.
  bool Take(std::string_view word) {
    if (done() || tokens_[next_].quoted || tokens_[next_].text != word) return false;
    ++next_;
    return true;
  }
  /// Takes the next word if it is one of a table's.
  template <class Enum>
  bool TakeName(std::span<const std::string_view> names, Enum* value) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (Take(names[i])) {
        *value = static_cast<Enum>(i);
        return true;
      }
    }
    return false;
  }
  Space TakeSpace() { return Take("second") ? Space::kSecond : Space::kDefault; }
  void TakeLevel(std::optional<Durability>* level) {
    if (Take("process")) *level = Durability::kProcess;
    if (Take("power")) *level = Durability::kPower;
  }
  void TakeSlot(char letter, std::optional<size_t>* slot) {
    for (size_t i = 0; i < kSlots; ++i) {
      if (Take(letter + std::to_string(i))) *slot = i;
    }
  }
  Result<std::string> Key() {
    if (!AtKey()) return Wrong("a quoted key");
    return tokens_[next_++].text;
  }
  template <class Integer = uint64_t>
  Result<Integer> Number() {
    if (done() || tokens_[next_].quoted) return Wrong("a number");
    const std::string& text = tokens_[next_].text;
    Integer number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return Wrong("a number");
    ++next_;
    return number;
  }
  Result<ValueRecipe> Value() {
    if (done() || tokens_[next_].quoted) return Wrong("a value <size>@<seed>");
    const std::string& text = tokens_[next_].text;
    const char* const end = text.data() + text.size();
    ValueRecipe value;
    const auto size = std::from_chars(text.data(), end, value.size);
    if (size.ec != std::errc() || size.ptr == end || *size.ptr != '@' || value.size > (64U << 20)) {
      return Wrong("a value <size>@<seed>");
    }
    const auto seed = std::from_chars(size.ptr + 1, end, value.seed);
    if (seed.ec != std::errc() || seed.ptr != end) return Wrong("a value <size>@<seed>");
    ++next_;
    return value;
  }
  Status NamedKey(std::string_view name, std::optional<std::string>* key) {
    if (!Take(name)) return {};
    BASALT_ASSIGN_OR_RETURN(*key, Key());
    return {};
  }
  bool AtSetting(std::string_view name) const {
    return !done() && tokens_[next_].text.starts_with(std::string(name) + "=");
  }
  /// The number of a word "name=number".
  Result<std::string> Setting(std::string_view name) {
    const std::string start = std::string(name) + "=";
    if (done() || !tokens_[next_].text.starts_with(start)) return Wrong(start + "..");
    return tokens_[next_++].text.substr(start.size());
  }

 private:
  explicit LineReader(size_t number) : number_(number) {}

  size_t number_;
  std::vector<Token> tokens_;
  size_t next_ = 0;
};

Result<uint64_t> NumericSetting(LineReader& line, std::string_view name) {
  BASALT_ASSIGN_OR_RETURN(const std::string text, line.Setting(name));
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return line.Wrong("a number after " + std::string(name) + "=");
  }
  return number;
}

Result<Settings> ParseSettings(LineReader& line) {
  Settings settings;
  BASALT_ASSIGN_OR_RETURN(settings.memtable_bytes, NumericSetting(line, "memtable_bytes"));
  BASALT_ASSIGN_OR_RETURN(settings.table_bytes, NumericSetting(line, "table_bytes"));
  BASALT_ASSIGN_OR_RETURN(settings.memory_budget, NumericSetting(line, "memory_budget"));
  BASALT_ASSIGN_OR_RETURN(const uint64_t compression, NumericSetting(line, "compression"));
  settings.compression = static_cast<Compression>(compression);
  BASALT_ASSIGN_OR_RETURN(const std::string level, line.Setting("durability"));
  settings.durability = level == "power" ? Durability::kPower : Durability::kProcess;
  if (line.AtSetting("default_ttl")) {
    BASALT_ASSIGN_OR_RETURN(settings.default_ttl_ms, NumericSetting(line, "default_ttl"));
  }
  return settings;
}

Status ParseMerge(LineReader& line, Record* record) {
  size_t name = 0;
  if (!line.TakeName(kOperatorNames, &name)) return line.Wrong("a merge's operator");
  record->merge_operator = static_cast<MergeOperator>(name + 1);
  if (record->merge_operator == MergeOperator::kAppend) {
    BASALT_ASSIGN_OR_RETURN(record->value, line.Value());
  } else {
    BASALT_ASSIGN_OR_RETURN(record->number, line.Number<int64_t>());
  }
  return {};
}

Status ParseRecord(LineReader& line, RecordKind kind, Operation* operation) {
  Record record;
  record.kind = kind;
  record.space = line.TakeSpace();
  BASALT_ASSIGN_OR_RETURN(record.key, line.Key());
  if (kind == RecordKind::kPut) {
    BASALT_ASSIGN_OR_RETURN(record.value, line.Value());
    if (line.Take("ttl")) {
      BASALT_ASSIGN_OR_RETURN(record.ttl_ms, line.Number());
    }
  } else if (kind == RecordKind::kDeleteRange) {
    BASALT_ASSIGN_OR_RETURN(record.end, line.Key());
  } else if (kind == RecordKind::kMerge) {
    BASALT_RETURN_IF_ERROR(ParseMerge(line, &record));
  }
  operation->records.push_back(std::move(record));
  return {};
}

Status ParseBatch(LineReader& line, Operation* operation) {
  line.TakeLevel(&operation->durability);
  while (!line.done()) {
    size_t name = 0;
    if (!line.TakeName(kRecordNames, &name)) {
      return line.Wrong("put, delete, delete_range or merge");
    }
    BASALT_RETURN_IF_ERROR(ParseRecord(line, static_cast<RecordKind>(name + 1), operation));
  }
  return {};
}

Status ParseUpdate(LineReader& line, Operation* operation) {
  Record record;
  record.space = line.TakeSpace();
  BASALT_ASSIGN_OR_RETURN(record.key, line.Key());
  if (!line.TakeName(kActionNames, &operation->action)) return line.Wrong("what the update does");
  if (HasValue(operation->action)) {
    BASALT_ASSIGN_OR_RETURN(record.value, line.Value());
  }
  operation->records.push_back(std::move(record));
  return {};
}

Status ParseMoves(LineReader& line, Operation* operation) {
  line.TakeSlot('i', &operation->iterator);
  while (!line.done()) {
    Move move;
    if (!line.TakeName(kMoveNames, &move.kind)) return line.Wrong("a move");
    if (HasTarget(move.kind)) {
      BASALT_ASSIGN_OR_RETURN(move.target, line.Key());
    }
    operation->moves.push_back(std::move(move));
  }
  return {};
}

Status ParseCrash(LineReader& line, Operation* operation) {
  if (operation->kind == OperationKind::kCut) {
    BASALT_ASSIGN_OR_RETURN(operation->count, line.Number());
  }
  if (!line.TakeName(kModeNames, &operation->mode)) return line.Wrong("a mode of crash");
  BASALT_ASSIGN_OR_RETURN(operation->seed, line.Number());
  return {};
}

Status ParseArguments(LineReader& line, Operation* operation) {
  switch (operation->kind) {
    case OperationKind::kPut:
    case OperationKind::kPutIfAbsent:
    case OperationKind::kDelete:
    case OperationKind::kDeleteRange:
    case OperationKind::kMerge:
      BASALT_RETURN_IF_ERROR(ParseRecord(line, RecordKindOf(operation->kind), operation));
      line.TakeLevel(&operation->durability);
      return {};
    case OperationKind::kBatch:
      return ParseBatch(line, operation);
    case OperationKind::kUpdate:
      return ParseUpdate(line, operation);
    case OperationKind::kMove:
      return ParseMoves(line, operation);
    case OperationKind::kCrash:
    case OperationKind::kCut:
      return ParseCrash(line, operation);
    case OperationKind::kJobs:
    case OperationKind::kWait: {
      BASALT_ASSIGN_OR_RETURN(operation->count, line.Number());
      return {};
    }
    default:
      break;
  }
  // What is left takes only a keyspace, slots, keys and bounds.
  operation->space = line.TakeSpace();
  line.TakeSlot('i', &operation->iterator);
  line.TakeSlot('s', &operation->snapshot);
  while (line.AtKey()) {
    BASALT_ASSIGN_OR_RETURN(std::string key, line.Key());
    operation->keys.push_back(std::move(key));
  }
  line.TakeSlot('s', &operation->snapshot);
  BASALT_RETURN_IF_ERROR(line.NamedKey("lower", &operation->lower));
  BASALT_RETURN_IF_ERROR(line.NamedKey("upper", &operation->upper));
  BASALT_RETURN_IF_ERROR(line.NamedKey("prefix", &operation->prefix));
  operation->keys_only = line.Take("keys_only");
  return {};
}

Line& AppendRecord(Line& line, const Record& record) {
  line.InSpace(record.space).Key(record.key);
  switch (record.kind) {
    case RecordKind::kPut:
      line.Value(record.value);
      return record.ttl_ms == 0 ? line : line.Word("ttl").Number(record.ttl_ms);
    case RecordKind::kDeleteRange:
      return line.Key(record.end);
    case RecordKind::kMerge:
      line.Word(kOperatorNames[static_cast<size_t>(record.merge_operator) - 1]);
      if (record.merge_operator == MergeOperator::kAppend) return line.Value(record.value);
      return line.Word(std::to_string(record.number));
    default:
      return line;
  }
}

}  // namespace

std::string ValueRecipe::Bytes() const {
  std::string bytes(size, '\0');
  base::Random random(seed);
  // Runs of one letter, so that blocks compress.
  for (size_t at = 0; at < bytes.size();) {
    const uint64_t word = random.Next();
    const size_t end = std::min(bytes.size(), at + 1 + (word & 7));
    while (at < end) bytes[at++] = static_cast<char>('a' + (word >> 32) % 26);
  }
  return bytes;
}

std::string Record::Operand() const {
  if (merge_operator == MergeOperator::kAppend) return value.Bytes();
  std::string bytes(sizeof(number), '\0');
  base::Store(bytes.data(), static_cast<uint64_t>(number));
  return bytes;
}

RecordKind RecordKindOf(OperationKind kind) {
  switch (kind) {
    case OperationKind::kDelete:
      return RecordKind::kDelete;
    case OperationKind::kDeleteRange:
      return RecordKind::kDeleteRange;
    case OperationKind::kMerge:
      return RecordKind::kMerge;
    default:
      return RecordKind::kPut;
  }
}

std::string Quoted(std::string_view key) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text = "\"";
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7F) {
      text.append("\\x").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    } else {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
  }
  return text + '"';
}

std::string ToText(const Move& move) {
  Line line(NameOf(kMoveNames, move.kind));
  if (HasTarget(move.kind)) line.Key(move.target);
  return line.Take();
}

std::string ToText(const Operation& operation) {
  Line line(NameOf(kKindNames, operation.kind));
  switch (operation.kind) {
    case OperationKind::kPut:
    case OperationKind::kPutIfAbsent:
    case OperationKind::kDelete:
    case OperationKind::kDeleteRange:
    case OperationKind::kMerge:
      AppendRecord(line, operation.records[0]).Level(operation.durability);
      break;
    case OperationKind::kBatch:
      line.Level(operation.durability);
      for (const Record& record : operation.records) {
        AppendRecord(line.Word(kRecordNames[static_cast<size_t>(record.kind) - 1]), record);
      }
      break;
    case OperationKind::kUpdate:
      line.InSpace(operation.records[0].space).Key(operation.records[0].key);
      line.Word(NameOf(kActionNames, operation.action));
      if (HasValue(operation.action)) line.Value(operation.records[0].value);
      break;
    case OperationKind::kMove:
      line.Slot('i', operation.iterator);
      for (const Move& move : operation.moves) line.Word(ToText(move));
      break;
    case OperationKind::kCrash:
      line.Word(NameOf(kModeNames, operation.mode)).Number(operation.seed);
      break;
    case OperationKind::kCut:
      line.Number(operation.count).Word(NameOf(kModeNames, operation.mode)).Number(operation.seed);
      break;
    case OperationKind::kJobs:
    case OperationKind::kWait:
      line.Number(operation.count);
      break;
    default:
      line.InSpace(operation.space);
      line.Slot('i', operation.iterator).Slot('s', operation.snapshot);
      for (const std::string& key : operation.keys) line.Key(key);
      line.NamedKey("lower", operation.lower).NamedKey("upper", operation.upper);
      line.NamedKey("prefix", operation.prefix);
      if (operation.keys_only) line.Word("keys_only");
      break;
  }
  return line.Take();
}

std::string ToText(const OperationList& list) {
  const Settings& settings = list.settings;
  std::string text = "settings memtable_bytes=" + std::to_string(settings.memtable_bytes) +
                     " table_bytes=" + std::to_string(settings.table_bytes) +
                     " memory_budget=" + std::to_string(settings.memory_budget) +
                     " compression=" + std::to_string(static_cast<int>(settings.compression)) +
                     " durability=" + std::string(LevelName(settings.durability));
  if (settings.default_ttl_ms != 0) {
    text += " default_ttl=" + std::to_string(settings.default_ttl_ms);
  }
  text += "\n";
  for (const Operation& operation : list.operations) text += ToText(operation) + "\n";
  return text;
}

Result<OperationList> ParseOperations(std::string_view text) {
  OperationList list;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.empty() || content.starts_with('#')) continue;
    BASALT_ASSIGN_OR_RETURN(LineReader line, LineReader::Split(content, number));
    if (line.Take("settings")) {
      BASALT_ASSIGN_OR_RETURN(list.settings, ParseSettings(line));
    } else {
      Operation operation;
      if (!line.TakeName(kKindNames, &operation.kind)) return line.Wrong("an operation");
      BASALT_RETURN_IF_ERROR(ParseArguments(line, &operation));
      list.operations.push_back(std::move(operation));
    }
    if (!line.done()) return line.Wrong("the end of the line");
  }
  return list;
}

}  // namespace basalt::metamorphic
