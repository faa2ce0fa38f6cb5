#include "vector/row_set.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

#include "base/check.h"
#include "base/hash.h"
#include "base/out_of_memory.h"

namespace basalt::vector {
namespace {

// A code book is fitted to so many vectors.
constexpr size_t kSampleRows = 2'000;
// So many rows are freed at most when a reader ends.
constexpr size_t kCollectedAtOnce = 256;
// The graph is repaired when a twentieth of it is removed, and at least this many vectors.
constexpr size_t kRepairMin = 1'000;

}  // namespace

void IndexRow::Free::operator()(IndexRow* row) const noexcept {
  row->~IndexRow();
  ::operator delete(row);
}

IndexRow::Owner IndexRow::Make(std::string_view id, std::string_view attributes) {
  void* const memory = ::operator new(sizeof(IndexRow) + id.size() + attributes.size());
  Owner row(new (memory) IndexRow());
  row->id_bytes = static_cast<uint32_t>(id.size());
  row->attribute_bytes = static_cast<uint32_t>(attributes.size());
  char* const bytes = reinterpret_cast<char*>(row.get() + 1);
  std::ranges::copy(id, bytes);
  std::ranges::copy(attributes, bytes + id.size());
  return row;
}

size_t RowSet::HashOfId::operator()(std::string_view id) const noexcept { return base::Hash(id); }

RowSet::RowSet(const IndexMetadata& metadata, const Options& options)
    : metadata_(metadata), options_(options) {}

RowSet::~RowSet() = default;

IndexRow::Owner RowSet::MakeRow(std::string_view id, const VectorRecordView& record,
                                std::optional<WallTime> expiry, uint64_t commit) const {
  IndexRow::Owner row = IndexRow::Make(id, record.attributes);
  row->added = commit;
  row->stamp = record.stamp;
  if (expiry) row->expiry = *expiry;
  return row;
}

RowBlock* RowSet::BlockWithRoom() {
  if (!blocks_->empty() && !blocks_->back()->IsFull()) return blocks_->back().get();
  auto blocks = std::make_shared<RowBlocks>(*blocks_);
  blocks->push_back(std::make_shared<RowBlock>(metadata_.dimension));
  blocks_ = std::move(blocks);
  return blocks_->back().get();
}

void RowSet::AppendToBlock(IndexRow* row, const void* vector, RowBlock* block) const noexcept {
  const uint32_t i = block->count.load(std::memory_order_relaxed);
  std::memcpy(block->vectors.get() + size_t{i} * metadata_.dimension, vector,
              metadata_.dimension * sizeof(float));
  block->rows[i].store(row, std::memory_order_release);
  block->count.store(i + 1, std::memory_order_release);
  ++block->held;
  row->block = block;
  row->place = i;
}

void RowSet::Insert(IndexRow::Owner row) {
  expiring_ += static_cast<size_t>(row->expiry != WallTime::max());
  row_bytes_ += sizeof(IndexRow) + row->id_bytes + row->attribute_bytes;
  ids_.insert(std::move(row));
}

void RowSet::Retire(Ids::iterator place, uint64_t commit) {
  // The entry is taken out and its row kept: what can fail comes first.
  retired_.emplace_back(nullptr);
  Ids::node_type node = ids_.extract(place);
  IndexRow::Owner row = std::move(node.value());
  expiring_ -= static_cast<size_t>(row->expiry != WallTime::max());
  row->removed.store(commit, std::memory_order_release);
  retired_.back() = std::move(row);
}

void RowSet::Update::Put(std::string_view id, const VectorRecordView& record,
                         std::optional<WallTime> expiry) {
  IndexRow::Owner owner = set_.MakeRow(id, record, expiry, commit_);
  IndexRow* const row = owner.get();
  RowBlock* const block = set_.BlockWithRoom();
  Erase(id);
  set_.Insert(std::move(owner));
  set_.AppendToBlock(row, record.vector.data(), block);
}

void RowSet::Update::Erase(std::string_view id) {
  const auto found = set_.ids_.find(id);
  if (found != set_.ids_.end()) set_.Retire(found, commit_);
}

void RowSet::Update::EraseRange(std::string_view begin, std::optional<std::string_view> end) {
  for (auto next = set_.ids_.begin(); next != set_.ids_.end();) {
    const auto place = next++;
    const std::string_view id = (*place)->id();
    if (id >= begin && (!end || id < *end)) set_.Retire(place, commit_);
  }
}

void RowSet::AdoptGraph(std::unique_ptr<HnswIndex> graph) {
  const std::lock_guard lock(mutex_);
  slot_rows_.Grow(graph->slots());
  slot_rows_size_.store(graph->slots(), std::memory_order_release);
  owned_graph_ = std::move(graph);
  graph_.store(owned_graph_.get(), std::memory_order_release);
}

bool RowSet::PutLinked(std::string_view id, const VectorRecordView& record,
                       std::optional<WallTime> expiry, uint32_t slot) {
  const std::lock_guard lock(mutex_);
  if (slot_rows_[slot].load(std::memory_order_relaxed) != nullptr) return false;
  IndexRow::Owner row = MakeRow(id, record, expiry, 0);
  row->place = slot;
  slot_rows_[slot].store(row.get(), std::memory_order_release);
  ++linked_;
  Insert(std::move(row));
  return true;
}

void RowSet::RemoveUnclaimed() {
  const std::lock_guard lock(mutex_);
  for (uint32_t slot = 0; slot < slot_rows_size_.load(std::memory_order_relaxed); ++slot) {
    if (slot_rows_[slot].load(std::memory_order_relaxed) != nullptr) continue;
    // NotFound: the slot was free.
    if (owned_graph_->Remove(slot).ok()) ++changes_;
  }
}

RowSet::Reader::Reader(RowSet* set, Keeps keeps) : set_(*set) {
  const std::lock_guard lock(set_.mutex_);
  ticket_ = set_.next_ticket_;
  set_.readers_.emplace(ticket_, keeps == Keeps::kVersions ? 0 : kNeverRemoved);
  ++set_.next_ticket_;
}

RowSet::Reader::~Reader() {
  const std::lock_guard lock(set_.mutex_);
  set_.readers_.erase(ticket_);
  set_.Collect();
}

RowSet::Update::~Update() {
  if (is_finished_) {
    set_.applied_ = commit_;
    set_.Collect();
  } else {
    set_.Break();
  }
}

RowSet::Reader::View RowSet::Reader::Capture(uint64_t sequence) {
  const std::lock_guard lock(set_.mutex_);
  return CaptureLocked(sequence);
}

RowSet::Reader::View RowSet::Reader::CaptureLocked(uint64_t sequence) {
  const uint64_t commit = std::min(set_.applied_, sequence);
  set_.readers_[ticket_] = commit;
  return {.blocks = set_.blocks_, .commit = commit};
}

void RowSet::Collect() noexcept {
  // Without memory it is done later.
  (void)base::OrOutOfMemory([this] {
    CollectSome();
    return Status();
  });
}

void RowSet::CollectSome() {
  uint64_t seen_by_all = applied_;
  for (const auto& [ticket, commit] : readers_) seen_by_all = std::min(seen_by_all, commit);
  for (size_t i = 0; i < kCollectedAtOnce && !retired_.empty(); ++i) {
    IndexRow* const row = retired_.front().get();
    if (row->removed.load(std::memory_order_relaxed) > seen_by_all) break;
    unlinked_.emplace_back(next_ticket_, nullptr);
    Unlink(row);
    unlinked_.back().second = std::move(retired_.front());
    retired_.pop_front();
  }
  const uint64_t oldest = readers_.empty() ? next_ticket_ : readers_.begin()->first;
  for (size_t i = 0; i < kCollectedAtOnce && !unlinked_.empty(); ++i) {
    if (unlinked_.front().first > oldest) break;
    const IndexRow* const row = unlinked_.front().second.get();
    row_bytes_ -= sizeof(IndexRow) + row->id_bytes + row->attribute_bytes;
    unlinked_.pop_front();
  }
}

void RowSet::Unlink(IndexRow* row) noexcept {
  if (row->block != nullptr) {
    row->block->rows[row->place].store(nullptr, std::memory_order_release);
    if (--row->block->held == 0 && !row->block->is_claimed) DropBlock(row->block);
    return;
  }
  // The slot may be given anew once Repair has freed it, and is set then under this mutex.
  (void)owned_graph_->Remove(row->place);
  slot_rows_[row->place].store(nullptr, std::memory_order_release);
  --linked_;
  ++changes_;
}

void RowSet::DropBlock(const RowBlock* block) noexcept {
  if (!block->IsFull()) return;
  // Without memory it stays, and is empty.
  (void)base::OrOutOfMemory([&] {
    auto blocks = std::make_shared<RowBlocks>(*blocks_);
    std::erase_if(*blocks, [&](const auto& one) { return one.get() == block; });
    blocks_ = std::move(blocks);
    return Status();
  });
}

void RowSet::Pack() {
  constexpr size_t kSpareBlocks = 4;
  size_t held = 0;
  for (const auto& block : *blocks_) held += block->held;
  if (blocks_->size() * kBlockRows <= 2 * held + kSpareBlocks * kBlockRows) return;
  const auto sparse = std::ranges::find_if(*blocks_, [](const auto& block) {
    return !block->is_claimed && block->IsFull() && block->held <= kBlockRows / 2;
  });
  if (sparse != blocks_->end()) MoveRowsOf(*sparse);
}

void RowSet::MoveRowsOf(const std::shared_ptr<RowBlock>& block) {
  // Memory first: nothing fails once a row has moved.
  auto blocks = std::make_shared<RowBlocks>();
  blocks->reserve(blocks_->size() + 1);
  std::ranges::copy_if(*blocks_, std::back_inserter(*blocks),
                       [&](const auto& one) { return one != block; });
  auto fresh = std::make_shared<RowBlock>(metadata_.dimension);
  // Readers that hold the old block find its rows there.
  for (uint32_t i = 0; i < kBlockRows; ++i) {
    IndexRow* const row = block->rows[i].load(std::memory_order_relaxed);
    if (row == nullptr) continue;
    if (blocks->empty() || blocks->back()->IsFull()) blocks->push_back(std::move(fresh));
    AppendToBlock(row, block->vectors.get() + size_t{i} * metadata_.dimension,
                  blocks->back().get());
  }
  blocks_ = std::move(blocks);
}

Status RowSet::EnsureGraph() {
  if (graph() != nullptr) return Status();
  const std::unique_lock upkeep(upkeep_mutex_, std::try_to_lock);
  if (!upkeep.owns_lock() || graph() != nullptr) return Status();
  const Reader reader(this, Reader::Keeps::kRows);
  std::shared_ptr<const RowBlocks> blocks;
  {
    const std::lock_guard lock(mutex_);
    if (ids_.size() < options_.graph_rows_min) return Status();
    blocks = blocks_;
  }
  std::vector<float> sample;
  const size_t step = std::max<size_t>(1, blocks->size() * kBlockRows / kSampleRows);
  for (size_t at = 0; at < blocks->size() * kBlockRows; at += step) {
    const RowBlock& block = *(*blocks)[at / kBlockRows];
    const size_t i = at % kBlockRows;
    if (i >= block.count.load(std::memory_order_acquire)) continue;
    const float* const vector = block.vectors.get() + i * metadata_.dimension;
    sample.insert(sample.end(), vector, vector + metadata_.dimension);
  }
  BASALT_ASSIGN_OR_RETURN(CodeBook book,
                          CodeBook::Fit(metadata_.metric, metadata_.dimension, metadata_.seed,
                                        sample.data(), sample.size() / metadata_.dimension));
  auto graph = std::make_unique<HnswIndex>(std::move(book));
  const std::lock_guard lock(mutex_);
  owned_graph_ = std::move(graph);
  graph_.store(owned_graph_.get(), std::memory_order_release);
  return Status();
}

std::shared_ptr<RowBlock> RowSet::ClaimBlock() {
  const std::lock_guard lock(mutex_);
  Pack();
  if (owned_graph_ == nullptr) return nullptr;
  for (const std::shared_ptr<RowBlock>& block : *blocks_) {
    if (block->is_claimed || block->linked_to == kBlockRows || !block->IsFull()) continue;
    block->is_claimed = true;
    return block;
  }
  return nullptr;
}

Status RowSet::LinkRow(RowBlock* block, uint32_t i) {
  // A row that is removed already stays until it is collected.
  IndexRow* const row = block->rows[i].load(std::memory_order_acquire);
  if (row == nullptr || row->removed.load(std::memory_order_acquire) != kNeverRemoved) {
    return Status();
  }
  BASALT_ASSIGN_OR_RETURN(const uint32_t slot, owned_graph_->Add(block->vectors.get() +
                                                                 size_t{i} * metadata_.dimension));
  const std::lock_guard lock(mutex_);
  if (block->rows[i].load(std::memory_order_relaxed) != row) {
    (void)owned_graph_->Remove(slot);
    return Status();
  }
  if (slot >= slot_rows_size_.load(std::memory_order_relaxed)) {
    slot_rows_.Grow(slot + 1);
    slot_rows_size_.store(slot + 1, std::memory_order_release);
  }
  slot_rows_[slot].store(row, std::memory_order_release);
  row->block = nullptr;
  row->place = slot;
  block->rows[i].store(nullptr, std::memory_order_release);
  --block->held;
  ++linked_;
  ++changes_;
  return Status();
}

Status RowSet::Link(size_t rows_max) {
  return base::OrOutOfMemory([&]() -> Status {
    BASALT_RETURN_IF_ERROR(EnsureGraph());
    while (rows_max > 0) {
      const Reader reader(this, Reader::Keeps::kRows);
      const std::shared_ptr<RowBlock> block = ClaimBlock();
      if (block == nullptr) return Status();
      Status status;
      uint32_t i = block->linked_to;
      for (; i < kBlockRows && rows_max > 0 && status.ok(); ++i, --rows_max) {
        status = base::OrOutOfMemory([&] { return LinkRow(block.get(), i); });
      }
      const std::lock_guard lock(mutex_);
      block->linked_to = status.ok() ? i : i - 1;
      block->is_claimed = false;
      if (block->held == 0) DropBlock(block.get());
      BASALT_RETURN_IF_ERROR(status);
    }
    return Status();
  });
}

Status RowSet::Repair(bool always) {
  HnswIndex* const graph = graph_.load(std::memory_order_acquire);
  if (graph == nullptr) return Status();
  const HnswStats stats = graph->Stats();
  const size_t many = always ? 1 : std::max(kRepairMin, stats.live / 20);
  if (stats.removed < many) return Status();
  const std::unique_lock upkeep(upkeep_mutex_, std::try_to_lock);
  return upkeep.owns_lock() ? graph->Repair() : Status();
}

Status RowSet::Save(uint64_t id, const std::function<void()>& begin, const CheckpointSink& sink,
                    const std::function<Status(std::string_view, const LinkedRow&)>& visit) {
  HnswIndex* const graph = graph_.load(std::memory_order_acquire);
  if (graph == nullptr) return Status();
  // No slot is freed and given anew between the image and the rows.
  const std::lock_guard upkeep(upkeep_mutex_);
  begin();
  size_t changes = 0;
  {
    const std::lock_guard lock(mutex_);
    changes = changes_;
  }
  BASALT_RETURN_IF_ERROR(graph->Save(id, sink));
  const Reader reader(this, Reader::Keeps::kRows);
  const uint32_t slots = slot_rows_size_.load(std::memory_order_acquire);
  for (uint32_t slot = 0; slot < slots; ++slot) {
    const IndexRow* const row = AtSlot(slot);
    if (row == nullptr || row->removed.load(std::memory_order_acquire) != kNeverRemoved) continue;
    BASALT_RETURN_IF_ERROR(visit(row->id(), {.slot = slot, .stamp = row->stamp}));
  }
  const std::lock_guard lock(mutex_);
  changes_ -= changes;
  return Status();
}

uint64_t RowSet::Count(WallTime now) const {
  const std::lock_guard lock(mutex_);
  if (expiring_ == 0) return ids_.size();
  return static_cast<uint64_t>(
      std::ranges::count_if(ids_, [&](const IndexRow::Owner& row) { return now < row->expiry; }));
}

RowSet::Figures RowSet::GetFigures() const {
  const HnswIndex* const graph = this->graph();
  const HnswStats stats = graph == nullptr ? HnswStats() : graph->Stats();
  const std::lock_guard lock(mutex_);
  // An entry of the set is a node of two words, its malloc header, and a bucket.
  constexpr size_t kEntryBytes = 40;
  return {.rows = ids_.size(),
          .linked = linked_,
          .removed = stats.removed,
          .bytes = row_bytes_ + ids_.size() * kEntryBytes + slot_rows_.bytes() + stats.bytes +
                   blocks_->size() *
                       (sizeof(RowBlock) + kBlockRows * metadata_.dimension * sizeof(float)),
          .changes = changes_};
}

}  // namespace basalt::vector
