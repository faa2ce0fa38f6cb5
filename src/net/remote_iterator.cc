#include "net/remote_iterator.h"

#include <algorithm>
#include <utility>

#include "base/key_bound.h"
#include "base/out_of_memory.h"
#include "net/error_line.h"

namespace basalt::net {
namespace {

constexpr uint64_t kFirstRecords = 16;
constexpr uint64_t kRecordsMax = 4096;
constexpr uint64_t kBlockBytes = uint64_t{1} << 20;

std::string Inclusive(std::string_view key) { return "[" + std::string(key); }
std::string Exclusive(std::string_view key) { return "(" + std::string(key); }

}  // namespace

RemoteIterator::RemoteIterator(std::shared_ptr<Client> client, const ReadOptions& options,
                               std::shared_ptr<const void> snapshot, uint64_t snapshot_id)
    : client_(std::move(client)),
      snapshot_(std::move(snapshot)),
      snapshot_id_(snapshot_id),
      keyspace_(options.keyspace),
      keys_only_(options.keys_only) {
  if (options.prefix) {
    lower_ = *options.prefix;
    upper_ = base::PrefixEnd(*options.prefix);
  } else {
    if (options.lower) lower_ = *options.lower;
    if (options.upper) upper_ = *options.upper;
  }
}

std::optional<WallTime> RemoteIterator::expiry() const noexcept {
  if (!valid_ || records_[index_].expiry_ms == 0) return std::nullopt;
  return WallTime(std::chrono::milliseconds(records_[index_].expiry_ms));
}

std::string RemoteIterator::LowerBound() const { return lower_ ? Inclusive(*lower_) : "-"; }
std::string RemoteIterator::UpperBound() const { return upper_ ? Exclusive(*upper_) : "+"; }

void RemoteIterator::ShowNothing() noexcept {
  valid_ = false;
  key_ = value_ = {};
}

void RemoteIterator::Show(size_t index) noexcept {
  index_ = index;
  key_ = records_[index].key;
  value_ = records_[index].value;
  valid_ = true;
}

void RemoteIterator::ReadBlock(AnswerReader& answer) {
  records_.clear();
  bytes_.clear();
  block_end_ = Status();
  has_more_ = false;
  answer.Array();
  const uint64_t count = answer.Array() / 3;
  std::vector<std::pair<size_t, size_t>> sizes;
  for (uint64_t i = 0; i < count && answer.ok(); ++i) {
    const std::string_view key = answer.Bytes();
    const std::string_view value = answer.Bytes();
    bytes_.append(key).append(value);
    sizes.emplace_back(key.size(), value.size());
    records_.push_back({.key = {}, .value = {}, .expiry_ms = answer.Integer()});
  }
  if (answer.IsError()) {
    block_end_ = StatusOf(answer.Error(), client_->name());
  } else {
    has_more_ = answer.Integer() != 0;
  }
  size_t at = 0;
  for (size_t i = 0; i < records_.size(); ++i) {
    records_[i].key = std::string_view(bytes_).substr(at, sizes[i].first);
    records_[i].value = std::string_view(bytes_).substr(at + sizes[i].first, sizes[i].second);
    at += sizes[i].first + sizes[i].second;
  }
}

Status RemoteIterator::Fetch(Direction direction, const std::string& from) {
  const bool is_forward = direction == Direction::kForward;
  Request request("BASALT.RANGE");
  request.Add(snapshot_id_).Add(static_cast<uint64_t>(keyspace_));
  request.Add(is_forward ? "FORWARD" : "BACKWARD");
  request.Add(is_forward ? from : LowerBound()).Add(is_forward ? UpperBound() : from);
  request.Add(wanted_).Add(kBlockBytes);
  if (keys_only_) request.Add("KEYS");
  const Status read = client_->Call(request, Client::Repeat::kAllowed,
                                    [&](AnswerReader& answer) { ReadBlock(answer); });
  if (!is_forward) std::ranges::reverse(records_);
  loaded_ = direction;
  wanted_ = std::min(wanted_ * 4, kRecordsMax);
  return read;
}

void RemoteIterator::Load(Direction direction, const std::string& from) {
  ShowNothing();
  status_ = base::OrOutOfMemory([&] { return Fetch(direction, from); });
  if (status_.ok() && records_.empty()) status_ = block_end_;
  if (!status_.ok()) records_.clear();
  if (records_.empty()) return;
  Show(direction == Direction::kForward ? 0 : records_.size() - 1);
}

void RemoteIterator::SeekToFirst() {
  wanted_ = kFirstRecords;
  Load(Direction::kForward, LowerBound());
}

void RemoteIterator::SeekToLast() {
  wanted_ = kFirstRecords;
  Load(Direction::kBackward, UpperBound());
}

void RemoteIterator::Seek(std::string_view target) {
  wanted_ = kFirstRecords;
  Load(Direction::kForward, lower_ && target < *lower_ ? LowerBound() : Inclusive(target));
}

void RemoteIterator::SeekForPrev(std::string_view target) {
  wanted_ = kFirstRecords;
  Load(Direction::kBackward, upper_ && target >= *upper_ ? UpperBound() : Inclusive(target));
}

void RemoteIterator::Next() {
  if (!valid_) return;
  if (index_ + 1 < records_.size()) return Show(index_ + 1);
  if (loaded_ == Direction::kForward && !has_more_) {
    ShowNothing();
    status_ = block_end_;
    return;
  }
  Load(Direction::kForward, Exclusive(key_));
}

void RemoteIterator::Prev() {
  if (!valid_) return;
  if (index_ > 0) return Show(index_ - 1);
  if (loaded_ == Direction::kBackward && !has_more_) {
    ShowNothing();
    status_ = block_end_;
    return;
  }
  Load(Direction::kBackward, Exclusive(key_));
}

}  // namespace basalt::net
