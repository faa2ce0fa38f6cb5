#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace basalt::tools {

/// True when `fd` is a terminal that understands control sequences (TERM is set and not "dumb").
bool IsTerminal(int fd);

/// kBar redraws one line ten times a second; kLines writes a plain line every two seconds.
enum class ProgressStyle : uint8_t { kSilent, kLines, kBar };

/// For stderr: a bar on a terminal; elsewhere lines when asked for, else nothing.
ProgressStyle ProgressStyleForStderr(bool asked_for);

enum class ProgressUnit : uint8_t { kBytes, kKeys, kCalls };

/// A line of at most `columns` characters: the label, the bar, and the parts with commas between
/// them. Parts that do not fit are left out, the last ones first, and the bar before the first part
/// is. All are ASCII.
std::string FittedLine(const std::string& label, const std::string& bar,
                       std::vector<std::string> parts, size_t columns);

/// How far a long operation has come, on stderr: share, amount, records, rate, time left.
/// One thread at a time. `Update` costs a clock read when nothing is due.
class Progress {
 public:
  /// `total_bytes` 0: not known, no share and no time left are shown.
  Progress(ProgressStyle style, std::string label, uint64_t total_bytes);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Wipes the bar away; plain lines stay.
  ~Progress();

  /// From here on `label` is done, of which `done` of `total` are behind us already: rate and time
  /// left are this stage's own.
  void BeginStage(std::string label, ProgressUnit unit, uint64_t done, uint64_t total);
  /// `records` 0: not counted, not shown.
  void Update(uint64_t done, uint64_t records);
  void set_total_bytes(uint64_t total_bytes) { total_ = total_bytes; }
  /// Since the first stage began.
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  /// What there is to say, the most important part first.
  std::vector<std::string> Parts(uint64_t done, uint64_t records) const;
  std::string Bar(uint64_t done) const;
  std::string Amount(uint64_t amount) const;

  ProgressStyle style_;
  std::string label_;
  ProgressUnit unit_ = ProgressUnit::kBytes;
  uint64_t total_;
  uint64_t stage_done_ = 0;  // When the stage began.
  Clock::time_point start_ = Clock::now();
  Clock::time_point stage_start_ = start_;
  Clock::time_point shown_ = start_;
  bool bar_on_screen_ = false;
};

}  // namespace basalt::tools
