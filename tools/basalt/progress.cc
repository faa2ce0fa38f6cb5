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
    : style_(style), label_(std::move(label)), total_bytes_(total_bytes) {}

Progress::~Progress() {
  if (bar_on_screen_) std::fwrite(kWipeLine.data(), 1, kWipeLine.size(), stderr);
}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void Progress::Update(uint64_t done_bytes, uint64_t records) {
  if (style_ == ProgressStyle::kSilent) return;
  const Clock::time_point now = Clock::now();
  const bool is_bar = style_ == ProgressStyle::kBar;
  if (now - shown_ < (is_bar ? Clock::duration(kBarInterval) : Clock::duration(kLineInterval))) {
    return;
  }
  shown_ = now;
  std::string line = Line(done_bytes, records);
  if (is_bar) {
    line = std::string(kWipeLine) + line.substr(0, StderrColumns() - 1);
    bar_on_screen_ = true;
  } else {
    line += '\n';
  }
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::string Progress::Line(uint64_t done_bytes, uint64_t records) const {
  const double elapsed = seconds();
  std::string line = label_ + " ";
  if (total_bytes_ > 0) {
    const double share =
        std::min(1.0, static_cast<double>(done_bytes) / static_cast<double>(total_bytes_));
    if (style_ == ProgressStyle::kBar) line += Bar(share);
    line.append(FormatDecimal(share * 100, 0)).append("% of ").append(FormatBytes(total_bytes_));
  } else {
    line += FormatBytes(done_bytes);
  }
  line.append(", ").append(FormatBytes(PerSecond(done_bytes, elapsed))).append("/s");
  if (records > 0) {
    line.append(", ").append(FormatCount(PerSecond(records, elapsed))).append(" records/s");
  }
  if (total_bytes_ > done_bytes && done_bytes > 0) {
    const double left =
        elapsed * static_cast<double>(total_bytes_ - done_bytes) / static_cast<double>(done_bytes);
    line.append(", ").append(FormatDecimal(left, 0)).append(" s left");
  }
  return line;
}

}  // namespace basalt::tools
