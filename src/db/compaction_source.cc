#include "db/compaction_source.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/merging_iterator.h"
#include "db/tree_iterator.h"

namespace basalt::db {

void RunIterator::SeekToFirst() {
  BASALT_CHECK(present_ == 0 && inner_ == nullptr);
  Settle();
}

void RunIterator::Next() {
  ++records_passed_;
  inner_->Next();
  Settle();
}

// To the first record at or after the place where the present table's iterator stands.
void RunIterator::Settle() {
  valid_ = false;
  while (present_ < tables_.size()) {
    if (inner_ == nullptr) {
      auto opened = NewTreeIterator(*tables_[present_], /*fill_cache=*/false);
      if (!opened) {
        status_ = opened.error();
        return;
      }
      inner_ = std::move(*opened);
      inner_->SeekToFirst();
    }
    if (inner_->Valid()) break;
    if (!inner_->status().ok()) {
      status_ = inner_->status();
      return;
    }
    inner_.reset();
    tables_[present_].reset();
    ++present_;
    records_passed_ = 0;
  }
  if (present_ == tables_.size()) return;
  valid_ = true;
  key_ = inner_->key();
  tag_ = inner_->tag();
  time_ms_ = inner_->time_ms();
  value_ = inner_->value();
}

void RunIterator::SeekToLast() { BASALT_CHECK(false); }
void RunIterator::Seek(std::string_view, base::Tag) { BASALT_CHECK(false); }
void RunIterator::SeekForPrev(std::string_view, base::Tag) { BASALT_CHECK(false); }
void RunIterator::Prev() { BASALT_CHECK(false); }

uint64_t RunIterator::bytes_left() const noexcept {
  if (!valid_) return 0;
  const table::TableProperties& properties = tables_[present_]->properties();
  const double left =
      static_cast<double>(properties.records - std::min(records_passed_, properties.records));
  return static_cast<uint64_t>(static_cast<double>(properties.file_bytes) * left /
                               static_cast<double>(std::max<uint64_t>(properties.records, 1)));
}

Result<CompactionSource> NewCompactionSource(const CompactionJob& job) {
  CompactionSource source;
  std::vector<std::unique_ptr<base::RecordIterator>> children;
  for (const std::shared_ptr<TableFile>& file : job.inputs[0]) {
    BASALT_ASSIGN_OR_RETURN(auto records, NewTreeIterator(*file, /*fill_cache=*/false));
    children.push_back(std::move(records));
  }
  for (size_t level = 1; level < Tree::kLevels; ++level) {
    if (job.inputs[level].empty()) continue;
    auto run = std::make_unique<RunIterator>(job.inputs[level]);
    if (level == job.output_level) source.output_level = run.get();
    children.push_back(std::move(run));
  }
  source.records = base::NewMergingIterator(std::move(children));
  return source;
}

}  // namespace basalt::db
