#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace basalt::tools {

/// True when `fd` is a terminal that understands control sequences (TERM is set and not "dumb").
bool IsTerminal(int fd);

/// kBar redraws one line ten times a second; kLines writes a plain line every two seconds.
enum class ProgressStyle : uint8_t { kSilent, kLines, kBar };

/// For stderr: a bar on a terminal; elsewhere lines when asked for, else nothing.
ProgressStyle ProgressStyleForStderr(bool asked_for);

/// How far a long operation has come, on stderr: share, bytes, records, rate, time left. One thread
/// at a time. `Update` costs a clock read when nothing is due.
class Progress {
 public:
  /// `total_bytes` 0: not known, no share and no time left are shown.
  Progress(ProgressStyle style, std::string label, uint64_t total_bytes);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Wipes the bar away; plain lines stay.
  ~Progress();

  /// `records` 0: not counted, not shown.
  void Update(uint64_t done_bytes, uint64_t records);
  void set_total_bytes(uint64_t total_bytes) { total_bytes_ = total_bytes; }
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  std::string Line(uint64_t done_bytes, uint64_t records) const;

  ProgressStyle style_;
  std::string label_;
  uint64_t total_bytes_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = start_;
  bool bar_on_screen_ = false;
};

}  // namespace basalt::tools
