#include "tools/basalt/phash.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/perfect_hash.h"
#include "base/base64.h"
#include "tools/basalt/document.h"
#include "tools/basalt/figures.h"
#include "tools/basalt/key_sources.h"
#include "tools/basalt/perfect_hash_file.h"
#include "tools/basalt/progress.h"
#include "tools/basalt/repeated_key.h"
#include "tools/basalt/text_format.h"

namespace basalt::tools {
namespace {

std::string_view KindOf(const PerfectHashForm& form) {
  if (std::holds_alternative<FingerprintSet>(form)) return "set";
  return std::holds_alternative<FingerprintMap>(form) ? "map" : "function";
}

double BitsPerKey(const PerfectHashForm& form) {
  return std::visit([](const auto& any) { return any.bits_per_key(); }, form);
}

/// Shows a build's stages one after the other.
class BuildProgress {
 public:
  explicit BuildProgress(bool asked_for)
      : progress_(ProgressStyleForStderr(asked_for), "reading", 0) {}

  void OnRead(uint64_t done_bytes, uint64_t total_bytes) {
    progress_.set_total_bytes(total_bytes);
    progress_.Update(done_bytes, 0);
  }
  /// All is read, and there are so many keys.
  void BeginBuild(uint64_t keys) { keys_ = keys; }
  void OnBuild(const PerfectHashProgress& at) {
    if (stage_ != at.stage) {
      progress_.BeginStage(NameOf(at), ProgressUnit::kKeys, at.done, at.total);
      stage_ = at.stage;
    }
    progress_.Update(at.done, 0);
  }
  /// Whether OnBuild was called.
  bool has_begun() const { return stage_.has_value(); }
  double seconds() const { return progress_.seconds(); }

 private:
  std::string NameOf(const PerfectHashProgress& at) const {
    if (at.stage == PerfectHashProgress::Stage::kPlacing) return "placing";
    const uint64_t walks = at.total / std::max<uint64_t>(keys_, 1);
    return walks > 1 ? "hashing " + std::to_string(walks) + " times" : "hashing";
  }

  Progress progress_;
  uint64_t keys_ = 0;
  std::optional<PerfectHashProgress::Stage> stage_;
};

/// One run of `phash build`.
class FunctionBuild {
 public:
  FunctionBuild(const PhashBuildOptions& options, BuildProgress& progress)
      : options_(options),
        progress_(progress),
        on_read_([&](uint64_t done, uint64_t total) { progress.OnRead(done, total); }) {
    build_options_ = {.seeds = options.dense ? PerfectHashSeeds::kDense : PerfectHashSeeds::kShift,
                      .threads = options.threads,
                      .memory_budget = options.memory,
                      .on_progress = [&](const PerfectHashProgress& at) {
                        progress.OnBuild(at);
                        return true;
                      }};
  }

  Result<PerfectHashForm> Run() const {
    Result<LineReader> reader = LineReader::Open(options_.keys);
    if (!reader) return reader.error();
    const bool readable_again = options_.keys != "-" && reader->total_bytes() > 0;
    KeyLines lines(std::move(*reader), options_.form, options_.payload_bits);
    if (options_.form == KeyForm::kNumber) return FromNumbers(std::move(lines));
    if (readable_again && options_.payload_bits == 0) return FromFile();
    return FromMemory(std::move(lines));
  }

 private:
  static constexpr uint64_t kUntoldKeysMax = 1 << 20;

  template <class Form>
  static Result<PerfectHashForm> AsForm(Result<Form> form) {
    return std::move(form).transform(
        [](Form&& built) { return PerfectHashForm(std::move(built)); });
  }

  Result<PerfectHashForm> FromFile() const {
    const Result<KeyFile> keys = KeyFile::Open(options_.keys, options_.form, on_read_);
    if (!keys) return keys.error();
    return NamingLines(*keys, [&] {
      return options_.fingerprint_bits == 0
                 ? AsForm(PerfectHashBuilder(build_options_).Build(*keys))
                 : AsForm(FingerprintSet::Build(*keys, options_.fingerprint_bits, build_options_));
    });
  }

  Result<PerfectHashForm> FromMemory(KeyLines lines) const {
    const Result<KeysInMemory> read = KeysInMemory::Read(std::move(lines), on_read_);
    if (!read) return read.error();
    return NamingLines(*read, [&]() -> Result<PerfectHashForm> {
      const std::span<const std::string_view> keys = read->keys();
      const uint32_t bits = options_.fingerprint_bits;
      if (bits == 0) return AsForm(PerfectHashBuilder(build_options_).Build(keys));
      if (options_.payload_bits == 0) {
        return AsForm(FingerprintSet::Build(keys, bits, build_options_));
      }
      return AsForm(FingerprintMap::Build(keys, read->payloads(), options_.payload_bits, bits,
                                          build_options_));
    });
  }

  Result<PerfectHashForm> FromNumbers(KeyLines lines) const {
    const Result<NumberKeys> read = NumberKeys::Read(std::move(lines), on_read_);
    if (!read) return read.error();
    return NamingLines(*read, [&]() -> Result<PerfectHashForm> {
      const std::span<const uint64_t> keys = read->keys();
      const uint32_t bits = options_.fingerprint_bits;
      if (bits == 0) return AsForm(PerfectHashBuilder(build_options_).BuildFromHashes(keys));
      if (options_.payload_bits == 0) {
        return AsForm(FingerprintSet::BuildFromHashes(keys, bits, build_options_));
      }
      return AsForm(FingerprintMap::BuildFromHashes(keys, read->payloads(), options_.payload_bits,
                                                    bits, build_options_));
    });
  }

  /// The result of `build`. An error about a key that occurs twice names its lines.
  template <class BuildForm>
  Result<PerfectHashForm> NamingLines(const KeySource& keys, const BuildForm& build) const {
    progress_.BeginBuild(keys.size());
    Result<PerfectHashForm> built = build();
    if (built || built.error().code() != StatusCode::kInvalidArgument) return built;
    // Refused before the first key was hashed; of so few keys nothing is told.
    if (!progress_.has_begun() && keys.size() > kUntoldKeysMax) return built;
    const Result<std::optional<RepeatedKey>> repeated = FindRepeatedKey(keys, options_.memory);
    if (!repeated) return repeated.error();
    if (!repeated->has_value()) return built;
    const auto& [key, place, first_place] = **repeated;
    return Status(StatusCode::kInvalidArgument,
                  (options_.keys == "-" ? "standard input" : options_.keys) + ":" +
                      std::to_string(place + 1) + ": the key " + Shown(key) + " stands on line " +
                      std::to_string(first_place + 1) +
                      " already; give each key once (`sort -u` drops repeated lines)");
  }

  std::string Shown(std::string_view key) const {
    if (options_.form == KeyForm::kNumber) {
      uint64_t number = 0;
      std::memcpy(&number, key.data(), sizeof number);
      return std::to_string(number);
    }
    constexpr size_t kShown = 64;
    return "'" + ToText(key.substr(0, kShown)) + (key.size() > kShown ? "...'" : "'");
  }

  const PhashBuildOptions& options_;
  BuildProgress& progress_;
  OnRead on_read_;
  PerfectHashOptions build_options_;
};

/// Keys that are the file to be replaced would be lost.
Status CheckKeysAreNotTheFile(const PhashBuildOptions& options) {
  struct stat keys{};
  struct stat file{};
  if (options.keys == "-" || ::stat(options.keys.c_str(), &keys) != 0 ||
      ::stat(options.file.c_str(), &file) != 0 || keys.st_dev != file.st_dev ||
      keys.st_ino != file.st_ino) {
    return {};
  }
  return {StatusCode::kInvalidArgument,
          options.keys + " would be replaced by what is built from it; name another file"};
}

/// With fewer keys, what a key takes is what the file takes.
constexpr uint64_t kTimedKeysMin = 1000;

std::string BuildSummary(const std::string& path, const PerfectHashForm& form, double seconds) {
  const uint64_t keys = NumbersOf(form).size();
  std::string text = "built " + path + ": a " + std::string(KindOf(form)) + " of " +
                     FormatCount(keys) + (keys == 1 ? " key, " : " keys, ") +
                     FormatBytes(BytesOf(form).size());
  if (keys > 0) text += " (" + FormatDecimal(BitsPerKey(form), 2) + " bits a key)";
  text += ", in " + FormatSeconds(seconds);
  if (keys >= kTimedKeysMin) {
    text += " (" + FormatCount(static_cast<uint64_t>(seconds * 1e9 / static_cast<double>(keys))) +
            " ns a key)";
  }
  return text + "\n";
}

/// Answers for many keys at once, a line each.
class Answers {
 public:
  Answers(const PerfectHashForm& form, Output& out, size_t batch)
      : form_(form), out_(out), batch_(std::min(batch, kBatchMax)) {}

  void Add(std::string_view key) { AddHash(NumbersOf(form_).HashKey(key)); }
  void AddHash(uint64_t hash) {
    hashes_[count_++] = hash;
    if (count_ == batch_) Answer();
  }
  /// Prints the answers. False: the output has no reader any more.
  bool Answer() {
    std::string lines;
    const std::span<const uint64_t> hashes(hashes_.data(), count_);
    if (NumbersOf(form_).size() == 0) {
      for (size_t i = 0; i < count_; ++i) AppendAbsent(lines);
    } else if (const auto* set = std::get_if<FingerprintSet>(&form_)) {
      AppendPresence(*set, hashes, lines);
    } else if (const auto* map = std::get_if<FingerprintMap>(&form_)) {
      AppendPayloads(*map, hashes, lines);
    } else {
      AppendNumbers(NumbersOf(form_), hashes, lines);
    }
    count_ = 0;
    read_ = out_.Write(lines) && read_;
    if (batch_ == 1) read_ = out_.Flush().ok() && read_;
    return read_;
  }
  bool is_read() const noexcept { return read_; }
  bool all_present() const noexcept { return all_present_; }

  static constexpr size_t kBatchMax = 1024;

 private:
  void AppendAbsent(std::string& lines) {
    lines += "absent\n";
    all_present_ = false;
  }
  void AppendPresence(const FingerprintSet& set, std::span<const uint64_t> hashes,
                      std::string& lines) {
    std::array<bool, kBatchMax> perhaps;
    set.MayContainMany(hashes, perhaps);
    for (size_t i = 0; i < hashes.size(); ++i) {
      if (perhaps[i]) {
        lines += "perhaps\n";
      } else {
        AppendAbsent(lines);
      }
    }
  }
  void AppendPayloads(const FingerprintMap& map, std::span<const uint64_t> hashes,
                      std::string& lines) {
    for (const uint64_t hash : hashes) {
      if (const std::optional<uint64_t> payload = map.Get(hash)) {
        lines.append(std::to_string(*payload)).append("\n");
      } else {
        AppendAbsent(lines);
      }
    }
  }
  static void AppendNumbers(const PerfectHash& numbers, std::span<const uint64_t> hashes,
                            std::string& lines) {
    std::array<uint64_t, kBatchMax> indexes;
    numbers.IndexMany(hashes, indexes);
    for (size_t i = 0; i < hashes.size(); ++i) {
      lines.append(std::to_string(indexes[i])).append("\n");
    }
  }

  const PerfectHashForm& form_;
  Output& out_;
  size_t batch_;
  std::array<uint64_t, kBatchMax> hashes_;
  size_t count_ = 0;
  bool read_ = true;
  bool all_present_ = true;
};

Status AnswerArgument(const std::string& argument, KeyForm form, Answers& answers) {
  const auto mistaken = [&](const Status& status) {
    return Status(StatusCode::kInvalidArgument,
                  "argument '" + argument + "' is " + std::string(status.message()));
  };
  if (form == KeyForm::kNumber) {
    const Result<uint64_t> number = ParseNumber(argument);
    if (!number) return number.error();
    answers.AddHash(*number);
  } else if (form == KeyForm::kBase64) {
    const Result<std::string> bytes = base::DecodeBase64(argument);
    if (!bytes) return mistaken(bytes.error());
    answers.Add(*bytes);
  } else {
    answers.Add(argument);
  }
  return {};
}

Status AnswerStandardInput(KeyForm form, Answers& answers) {
  Result<LineReader> reader = LineReader::Open("-");
  if (!reader) return reader.error();
  KeyLines lines(std::move(*reader), form, 0);
  KeyLines::Line line;
  while (answers.is_read()) {
    const Result<bool> more = lines.Next(line);
    if (!more) return more.error();
    if (!*more) return {};
    form == KeyForm::kNumber ? answers.AddHash(line.number) : answers.Add(line.key);
  }
  return {};
}

std::string_view NameOf(PerfectHashSeeds seeds) {
  return seeds == PerfectHashSeeds::kDense ? "dense" : "shift";
}

struct CellWidths {
  uint32_t fingerprint_bits = 0;
  uint32_t payload_bits = 0;
};

CellWidths WidthsOf(const PerfectHashForm& form) {
  if (const auto* set = std::get_if<FingerprintSet>(&form)) return {set->fingerprint_bits(), 0};
  if (const auto* map = std::get_if<FingerprintMap>(&form)) {
    return {map->fingerprint_bits(), map->payload_bits()};
  }
  return {};
}

std::string StatTable(const PerfectHashForm& form) {
  const PerfectHash& numbers = NumbersOf(form);
  std::string text = "level             keys  of all keys       buckets     slice         bytes\n";
  size_t number = 0;
  for (const PerfectHash::LevelFigures& level : numbers.levels()) {
    const double share =
        100 * static_cast<double>(level.keys) / static_cast<double>(numbers.size());
    const bool is_table = level.buckets == 0;
    text += Left(is_table ? "table" : "L" + std::to_string(number++), 8) +
            Right(FormatCount(level.keys), 14) + Right(FormatDecimal(share, 3) + "%", 13) +
            Right(is_table ? "" : FormatCount(level.buckets), 14) +
            Right(is_table ? "" : FormatCount(level.slice), 10) +
            Right(FormatBytes(level.bytes), 14) + "\n";
  }
  const CellWidths widths = WidthsOf(form);
  text += "\n" + Row("kind", KindOf(form)) + Row("keys", FormatCount(numbers.size())) +
          Row("seeds", NameOf(numbers.seeds())) +
          Row("bits_per_key", FormatDecimal(BitsPerKey(form), 3)) +
          Row("bytes", FormatBytes(BytesOf(form).size())) +
          Row("hash_seed", std::to_string(numbers.hash_seed()));
  if (widths.fingerprint_bits > 0) {
    text += Row("fingerprint_bits", std::to_string(widths.fingerprint_bits));
  }
  if (widths.payload_bits > 0) text += Row("payload_bits", std::to_string(widths.payload_bits));
  return text;
}

Document StatDocument(const PerfectHashForm& form) {
  const PerfectHash& numbers = NumbersOf(form);
  const CellWidths widths = WidthsOf(form);
  Document document{{"kind", KindOf(form)},
                    {"keys", numbers.size()},
                    {"seeds", NameOf(numbers.seeds())},
                    {"bits_per_key", DecimalValue(BitsPerKey(form), 6)},
                    {"bytes", BytesOf(form).size()},
                    {"hash_seed", numbers.hash_seed()},
                    {"fingerprint_bits", widths.fingerprint_bits},
                    {"payload_bits", widths.payload_bits}};
  boost::json::array levels;
  for (const PerfectHash::LevelFigures& level : numbers.levels()) {
    levels.push_back(Document{{"keys", level.keys},
                              {"buckets", level.buckets},
                              {"slice", level.slice},
                              {"bytes", level.bytes}});
  }
  document["levels"] = std::move(levels);
  return document;
}

}  // namespace

ExitCode PhashBuild(const PhashBuildOptions& options, Output& out) {
  Status failed = CheckKeysAreNotTheFile(options);
  if (failed.ok()) failed = CheckNewFile(options.file, options.force);
  if (!failed.ok()) return ReportPlainly(failed);
  std::string summary;
  {
    BuildProgress progress(options.progress);
    const Result<PerfectHashForm> form = FunctionBuild(options, progress).Run();
    failed = form ? WriteNewFile(options.file, BytesOf(*form), options.force) : form.error();
    if (failed.ok()) summary = BuildSummary(options.file, *form, progress.seconds());
  }
  if (failed.ok()) out.Write(summary);
  return ReportPlainly(failed);
}

ExitCode PhashQuery(const PhashQueryOptions& options, Output& out) {
  const Result<PerfectHashFile> file = PerfectHashFile::Open(options.file);
  if (!file) return ReportPlainly(file.error());
  std::vector<std::string> keys = options.more_keys;
  if (options.first_key) keys.insert(keys.begin(), *options.first_key);
  // Keys that are typed are answered one by one.
  const bool typed = keys.empty() && ::isatty(STDIN_FILENO) == 1;
  Answers answers(file->form(), out, typed ? 1 : Answers::kBatchMax);
  Status status;
  for (const std::string& key : keys) {
    status = AnswerArgument(key, options.form, answers);
    if (!status.ok()) return ReportPlainly(status);
  }
  if (keys.empty()) status = AnswerStandardInput(options.form, answers);
  answers.Answer();
  if (!status.ok()) return ReportPlainly(status);
  return answers.all_present() ? ExitCode::kOk : ExitCode::kAbsent;
}

ExitCode PhashStat(const PhashStatOptions& options, Output& out) {
  const Result<PerfectHashFile> file = PerfectHashFile::Open(options.file);
  if (!file) return ReportPlainly(file.error());
  out.Write(options.output == OutputFormat::kTable
                ? StatTable(file->form())
                : Rendered(options.output, StatDocument(file->form())));
  return ExitCode::kOk;
}

}  // namespace basalt::tools
