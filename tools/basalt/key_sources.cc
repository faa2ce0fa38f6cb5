#include "tools/basalt/key_sources.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace basalt::tools {
namespace {

/// Gives each line to `visit`, and tells `on_read` how far it has come.
template <class Visit>
Status ForEachLine(KeyLines& lines, const OnRead& on_read, const Visit& visit) {
  constexpr uint64_t kReportEvery = 4096;
  KeyLines::Line line;
  for (uint64_t read = 1;; ++read) {
    const Result<bool> more = lines.Next(line);
    if (!more) return more.error();
    if (!*more) return {};
    visit(line);
    if (on_read && read % kReportEvery == 0) on_read(lines.consumed_bytes(), lines.total_bytes());
  }
}

}  // namespace

Result<KeyFile> KeyFile::Open(const std::string& path, KeyForm form, const OnRead& on_read) {
  const Result<Identity> identity = IdentityOf(path);
  if (!identity) return identity.error();
  KeyFile file(path, form, *identity);
  Result<LineReader> reader = LineReader::Open(path);
  if (!reader) return reader.error();
  KeyLines lines(std::move(*reader), form, 0);
  const Status read = ForEachLine(lines, on_read, [&](const KeyLines::Line&) { ++file.size_; });
  if (!read.ok()) return read;
  return file;
}

Status KeyFile::Walk(const std::function<void(std::span<const std::string_view>)>& visit) const {
  Result<LineReader> reader = LineReader::Open(path_);
  if (!reader) return reader.error();
  KeyLines lines(std::move(*reader), form_, 0);
  Status walked = ForEachLine(lines, nullptr, [&](const KeyLines::Line& line) {
    visit(std::span<const std::string_view>(&line.key, 1));
  });
  const Result<Identity> identity = IdentityOf(path_);
  if (!identity) return identity.error();
  if (*identity == identity_) return walked;
  return {StatusCode::kIoError,
          path_ + ": changed while it was read; build again when no process writes to it"};
}

Result<KeyFile::Identity> KeyFile::IdentityOf(const std::string& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0) {
    return Status(StatusCode::kIoError, "cannot read " + path + ": " + std::strerror(errno));
  }
  return Identity{.device = about.st_dev,
                  .inode = about.st_ino,
                  .bytes = about.st_size,
                  .changed_s = about.st_mtim.tv_sec,
                  .changed_ns = about.st_mtim.tv_nsec};
}

Result<KeysInMemory> KeysInMemory::Read(KeyLines lines, const OnRead& on_read) {
  KeysInMemory keys;
  const Status read = ForEachLine(lines, on_read, [&](const KeyLines::Line& line) {
    keys.Add(line.key);
    if (lines.has_payloads()) keys.payloads_.push_back(line.payload);
  });
  if (!read.ok()) return read;
  return keys;
}

void KeysInMemory::Add(std::string_view key) {
  if (blocks_.empty() || blocks_.back().capacity() - blocks_.back().size() < key.size()) {
    blocks_.emplace_back().reserve(std::max(kBlockBytes, key.size()));
  }
  std::string& block = blocks_.back();
  const size_t begin = block.size();
  block += key;
  keys_.emplace_back(block.data() + begin, key.size());
}

Status KeysInMemory::Walk(
    const std::function<void(std::span<const std::string_view>)>& visit) const {
  visit(keys_);
  return {};
}

Result<NumberKeys> NumberKeys::Read(KeyLines lines, const OnRead& on_read) {
  NumberKeys keys;
  const Status read = ForEachLine(lines, on_read, [&](const KeyLines::Line& line) {
    keys.keys_.push_back(line.number);
    if (lines.has_payloads()) keys.payloads_.push_back(line.payload);
  });
  if (!read.ok()) return read;
  return keys;
}

Status NumberKeys::Walk(const std::function<void(std::span<const std::string_view>)>& visit) const {
  for (const uint64_t& key : keys_) {
    const std::string_view bytes(reinterpret_cast<const char*>(&key), sizeof key);
    visit(std::span<const std::string_view>(&bytes, 1));
  }
  return {};
}

}  // namespace basalt::tools
