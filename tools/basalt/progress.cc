#include "tools/basalt/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "tools/basalt/figures.h"

namespace basalt::tools {
namespace {

constexpr auto kBarInterval = std::chrono::milliseconds(100);
constexpr auto kLineInterval = std::chrono::seconds(2);
constexpr size_t kBarCells = 14;
constexpr std::string_view kWipeLine = "\r\x1b[K";

size_t StderrColumns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string Bar(double share) {
  const auto filled = static_cast<size_t>(share * static_cast<double>(kBarCells));
  return "[" + std::string(filled, '#') + std::string(kBarCells - filled, '.') + "] ";
}

}  // namespace

bool IsTerminal(int fd) {
  const char* term = std::getenv("TERM");
  if (term == nullptr || *term == '\0' || std::string_view(term) == "dumb") return false;
  return ::isatty(fd) == 1;
}

ProgressStyle ProgressStyleForStderr(bool asked_for) {
  if (IsTerminal(STDERR_FILENO)) return ProgressStyle::kBar;
  return asked_for ? ProgressStyle::kLines : ProgressStyle::kSilent;
}

Progress::Progress(ProgressStyle style, std::string label, uint64_t total_bytes)
    : style_(style), label_(std::move(label)), total_(total_bytes) {}

Progress::~Progress() {
  if (bar_on_screen_) std::fwrite(kWipeLine.data(), 1, kWipeLine.size(), stderr);
}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void Progress::BeginStage(std::string label, ProgressUnit unit, uint64_t done, uint64_t total) {
  label_ = std::move(label);
  unit_ = unit;
  stage_done_ = done;
  total_ = total;
  stage_start_ = Clock::now();
}

void Progress::Update(uint64_t done, uint64_t records) {
  if (style_ == ProgressStyle::kSilent) return;
  const Clock::time_point now = Clock::now();
  const bool is_bar = style_ == ProgressStyle::kBar;
  if (now - shown_ < (is_bar ? Clock::duration(kBarInterval) : Clock::duration(kLineInterval))) {
    return;
  }
  shown_ = now;
  std::string line = Line(done, records);
  if (is_bar) {
    line = std::string(kWipeLine) + line.substr(0, StderrColumns() - 1);
    bar_on_screen_ = true;
  } else {
    line += '\n';
  }
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::string Progress::Amount(uint64_t amount) const {
  if (unit_ == ProgressUnit::kBytes) return FormatBytes(amount);
  return FormatCount(amount) + (unit_ == ProgressUnit::kKeys ? " keys" : " calls");
}

std::string Progress::Line(uint64_t done, uint64_t records) const {
  const double elapsed = std::chrono::duration<double>(Clock::now() - stage_start_).count();
  const uint64_t stage_done = done - std::min(done, stage_done_);
  std::string line = label_ + " ";
  if (total_ > 0) {
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
    if (style_ == ProgressStyle::kBar) line += Bar(share);
    line.append(FormatDecimal(share * 100, 0)).append("% of ").append(Amount(total_));
  } else {
    line += Amount(done);
  }
  if (stage_done > 0) {
    const uint64_t rate = PerSecond(stage_done, elapsed);
    line.append(", ");
    line.append(unit_ == ProgressUnit::kBytes ? FormatBytes(rate) : FormatCount(rate)).append("/s");
  }
  if (records > 0) {
    line.append(", ").append(FormatCount(PerSecond(records, elapsed))).append(" records/s");
  }
  if (total_ > done && stage_done > 0) {
    const double left =
        elapsed * static_cast<double>(total_ - done) / static_cast<double>(stage_done);
    line.append(", ").append(FormatDecimal(left, 0)).append(" s left");
  }
  return line;
}

}  // namespace basalt::tools
