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
  std::string line = FittedLine(label_, Bar(done), Parts(done, records), StderrColumns() - 1);
  if (is_bar) {
    line.insert(0, kWipeLine);
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

std::string Progress::Bar(uint64_t done) const {
  if (style_ != ProgressStyle::kBar || total_ == 0) return {};
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
  const auto filled = static_cast<size_t>(share * static_cast<double>(kBarCells));
  return "[" + std::string(filled, '#') + std::string(kBarCells - filled, '.') + "]";
}

std::vector<std::string> Progress::Parts(uint64_t done, uint64_t records) const {
  const double elapsed = std::chrono::duration<double>(Clock::now() - stage_start_).count();
  const uint64_t stage_done = done - std::min(done, stage_done_);
  std::vector<std::string> parts;
  if (total_ > 0) {
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
    parts.push_back(FormatDecimal(share * 100, 0) + "% of " + Amount(total_));
  } else {
    parts.push_back(Amount(done));
  }
  if (total_ > done && stage_done > 0) {
    const double left =
        elapsed * static_cast<double>(total_ - done) / static_cast<double>(stage_done);
    parts.push_back(FormatDecimal(left, 0) + " s left");
  }
  if (stage_done > 0) {
    const uint64_t rate = PerSecond(stage_done, elapsed);
    parts.push_back((unit_ == ProgressUnit::kBytes ? FormatBytes(rate) : FormatCount(rate)) + "/s");
  }
  if (records > 0) parts.push_back(FormatCount(PerSecond(records, elapsed)) + " records/s");
  return parts;
}

std::string FittedLine(const std::string& label, const std::string& bar,
                       std::vector<std::string> parts, size_t columns) {
  for (bool with_bar = !bar.empty();;) {
    std::string line = label;
    if (with_bar) line.append(" ").append(bar);
    for (size_t i = 0; i < parts.size(); ++i) line.append(i == 0 ? " " : ", ").append(parts[i]);
    if (line.size() <= columns) return line;
    if (parts.size() > 1) {
      parts.pop_back();
    } else if (with_bar) {
      with_bar = false;
    } else {
      return line.substr(0, columns);
    }
  }
}

}  // namespace basalt::tools
