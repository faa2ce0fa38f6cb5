#include "db/tree_iterator.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "db/tree_key.h"

namespace basalt::db {
namespace {

/// Puts a keyspace before keys that lack it.
class WithKeyspace final : public base::RecordIterator {
 public:
  WithKeyspace(std::unique_ptr<base::RecordIterator> source, uint32_t keyspace)
      : source_(std::move(source)), keyspace_(keyspace) {}

  void SeekToFirst() override {
    source_->SeekToFirst();
    Show();
  }
  void SeekToLast() override {
    source_->SeekToLast();
    Show();
  }
  void Seek(std::string_view key, base::Tag tag) override {
    const uint32_t sought = KeyspaceOf(key);
    if (sought < keyspace_) {
      source_->SeekToFirst();
    } else if (sought == keyspace_) {
      source_->Seek(std::string(key.substr(kKeyspaceBytes)), tag);
    } else {
      return PassAll();
    }
    Show();
  }
  void SeekForPrev(std::string_view key, base::Tag tag) override {
    const uint32_t sought = KeyspaceOf(key);
    if (sought > keyspace_) {
      source_->SeekToLast();
    } else if (sought == keyspace_) {
      source_->SeekForPrev(std::string(key.substr(kKeyspaceBytes)), tag);
    } else {
      return PassAll();
    }
    Show();
  }
  void Next() override {
    source_->Next();
    Show();
  }
  void Prev() override {
    source_->Prev();
    Show();
  }

 private:
  void Show() {
    ShowAs(*source_);
    if (!valid_) return;
    shown_.resize(kKeyspaceBytes);
    PutKeyspace(keyspace_, shown_.data());
    shown_ += key_;
    key_ = shown_;
  }
  void PassAll() {
    valid_ = false;
    status_ = Status();
  }

  const std::unique_ptr<base::RecordIterator> source_;
  const uint32_t keyspace_;
  std::string shown_;
};

/// One keyspace after the other.
class KeyspaceChain final : public base::RecordIterator {
 public:
  KeyspaceChain(const memtable::Generation& memtable, std::vector<uint32_t> keyspaces)
      : memtable_(memtable), keyspaces_(std::move(keyspaces)) {}

  void SeekToFirst() override {
    next_ = 0;
    present_.reset();
    Settle();
  }
  void Next() override {
    present_->Next();
    Settle();
  }
  void SeekToLast() override { BASALT_CHECK(false); }
  void Seek(std::string_view, base::Tag) override { BASALT_CHECK(false); }
  void SeekForPrev(std::string_view, base::Tag) override { BASALT_CHECK(false); }
  void Prev() override { BASALT_CHECK(false); }

 private:
  void Settle() {
    while (present_ == nullptr || (!present_->Valid() && present_->status().ok())) {
      if (next_ == keyspaces_.size()) {
        valid_ = false;
        return;
      }
      const uint32_t keyspace = keyspaces_[next_++];
      auto records = memtable_.NewIterator(keyspace, base::kMaxSequence);
      if (TreeOf(keyspace) == kSharedTree) {
        present_ = std::make_unique<WithKeyspace>(std::move(records), keyspace);
      } else {
        present_ = std::move(records);
      }
      present_->SeekToFirst();
    }
    ShowAs(*present_);
  }

  const memtable::Generation& memtable_;
  const std::vector<uint32_t> keyspaces_;
  size_t next_ = 0;
  std::unique_ptr<base::RecordIterator> present_;
};

/// Takes the keyspace from the keys of a tree, and ends where the keyspace does.
class WithoutKeyspace final : public base::RecordIterator {
 public:
  WithoutKeyspace(std::unique_ptr<base::RecordIterator> source, uint32_t keyspace)
      : source_(std::move(source)), begin_(TreeKey(keyspace, "")) {
    target_ = begin_;
  }

  void SeekToFirst() override { Seek("", base::kNewestTag); }
  // Before the first record of the next keyspace.
  void SeekToLast() override {
    source_->SeekForPrev(TreeKey(KeyspaceOf(begin_) + 1, ""), base::kNewestTag);
    Show();
  }
  void Seek(std::string_view key, base::Tag tag) override {
    source_->Seek(Target(key), tag);
    Show();
  }
  void SeekForPrev(std::string_view key, base::Tag tag) override {
    source_->SeekForPrev(Target(key), tag);
    Show();
  }
  void SeekStep(int step, std::string_view key, base::Tag tag) override {
    source_->SeekStep(step, step == 0 ? Target(key) : target_, tag);
    if (step + 1 == kSeekSteps) Show();
  }
  void Next() override {
    source_->Next();
    Show();
  }
  void Prev() override {
    source_->Prev();
    Show();
  }
  void SkipVersions() override {
    source_->SkipVersions();
    Show();
  }
  std::span<const base::PlainPut> PlainAhead(size_t passed,
                                             base::SequenceNumber at) noexcept override {
    const auto ahead = source_->PlainAhead(passed, at);
    if (passed != 0) Show();
    size_t count = 0;
    for (const base::PlainPut& put : ahead) {
      if (count == puts_.size() || !put.key().starts_with(begin_)) break;
      puts_[count] = put;
      puts_[count].key_bytes += kKeyspaceBytes;
      puts_[count++].key_size -= uint32_t{kKeyspaceBytes};
    }
    return {puts_.data(), count};
  }

 private:
  /// Which may be this iterator's own key.
  std::string_view Target(std::string_view key) {
    std::string target = begin_;
    target += key;
    target_ = std::move(target);
    return target_;
  }
  void Show() {
    ShowAs(*source_);
    if (!valid_) return;
    valid_ = key_.starts_with(begin_);
    key_.remove_prefix(std::min(key_.size(), kKeyspaceBytes));
  }

  const std::unique_ptr<base::RecordIterator> source_;
  const std::string begin_;  // what its keys begin with
  std::string target_;       // of a seek
  std::array<base::PlainPut, 16> puts_;
};

}  // namespace

Result<std::unique_ptr<base::RecordIterator>> NewTreeIterator(const TableFile& file,
                                                              bool fill_cache) {
  BASALT_ASSIGN_OR_RETURN(const table::Table* const table, file.Open());
  std::unique_ptr<base::RecordIterator> records = table->NewIterator(fill_cache);
  const uint32_t keyspace = file.properties().keyspace;
  if (TreeOf(keyspace) != kSharedTree || keyspace == table::kSharedKeyspaces) return records;
  return std::unique_ptr<base::RecordIterator>(
      std::make_unique<WithKeyspace>(std::move(records), keyspace));
}

std::unique_ptr<base::RecordIterator> NewTreeIterator(const memtable::Generation& memtable,
                                                      std::vector<uint32_t> keyspaces) {
  return std::make_unique<KeyspaceChain>(memtable, std::move(keyspaces));
}

std::unique_ptr<base::RecordIterator> NewKeyspaceIterator(
    std::unique_ptr<base::RecordIterator> source, uint32_t keyspace) {
  if (TreeOf(keyspace) != kSharedTree) return source;
  return std::make_unique<WithoutKeyspace>(std::move(source), keyspace);
}

}  // namespace basalt::db
