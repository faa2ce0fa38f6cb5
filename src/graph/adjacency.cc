#include "graph/adjacency.h"

#include <algorithm>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/fork_count.h"
#include "base/out_of_memory.h"
#include "base/printable_key.h"

namespace basalt::graph {
namespace {

Status TooMuchMemory(uint64_t bytes_max) {
  return Status(StatusCode::kResourceExhausted,
                "the adjacency of a graph needs more than " + std::to_string(bytes_max) +
                    " bytes: reads scan the records. Raise adjacency_bytes_max");
}

Status TooLarge() {
  return Status(StatusCode::kResourceExhausted,
                "the adjacency of a graph holds fewer than 2^32 node numbers and edges, and 2^31 "
                "types: reads scan the records");
}

Status Stopped() {
  return Status(StatusCode::kAborted, "the graph was closed while its adjacency was built");
}

/// How many edges are added between two looks at memory and at whether to stop.
constexpr uint32_t kEdgesPerLook = 4'096;

uint64_t NumberOf(NodeId node) noexcept { return static_cast<uint64_t>(node); }

bool FitsRows(const EdgeKeyParts& key) noexcept {
  return NumberOf(key.owner) < kAdjacentNodesEnd && NumberOf(key.other) < kAdjacentNodesEnd &&
         key.type < kAdjacentTypesEnd;
}

/// Whether a key should be one of an edge, well-formed or not.
bool IsOfEdge(std::string_view key) noexcept {
  return key.size() >= kNodePrefixBytes && LoadBigEndian<uint64_t>(key.data()) != kCatalogue &&
         (static_cast<NodeTag>(key[8]) == NodeTag::kOut ||
          static_cast<NodeTag>(key[8]) == NodeTag::kIn);
}

EdgeDetail DetailOf(const EdgeHead& head, std::string_view discriminator,
                    std::optional<WallTime> expiry) {
  EdgeDetail detail{.valid_from_ms = head.valid_from_ms,
                    .valid_to_ms = head.valid_to_ms,
                    .discriminator = std::string(discriminator)};
  if (expiry) detail.expiry_ms = expiry->time_since_epoch().count();
  return detail;
}

/// The node all of whose keys a range of keys is.
std::optional<uint64_t> NodeOfRange(std::string_view begin, std::string_view end) noexcept {
  if (begin.size() != 8 || end.size() != 8) return std::nullopt;
  const auto node = LoadBigEndian<uint64_t>(begin.data());
  if (node == kCatalogue || LoadBigEndian<uint64_t>(end.data()) != node + 1) return std::nullopt;
  return node;
}

}  // namespace

/// Adds edges to a base within its limits.
class Adjacency::RowsBuilder {
 public:
  RowsBuilder(const Adjacency* adjacency, AdjacencyBase* base)
      : adjacency_(*adjacency), base_(*base) {}

  Status Add(uint32_t owner, NodeTag tag, const AdjacentEdge& edge) {
    if (!base_.rows(tag).Append(owner, edge)) return TooLarge();
    if (++added_ % kEdgesPerLook != 0) return {};
    if (base_.bytes() > adjacency_.bytes_max_) return TooMuchMemory(adjacency_.bytes_max_);
    return adjacency_.IsStopping() ? Stopped() : Status();
  }
  Status Finish() {
    base_.Finish();
    return base_.bytes() > adjacency_.bytes_max_ ? TooMuchMemory(adjacency_.bytes_max_) : Status();
  }

 private:
  const Adjacency& adjacency_;
  AdjacencyBase& base_;
  uint32_t added_ = 0;
};

Adjacency::Adjacency(Store* store, KeyspaceId keyspace, uint64_t bytes_max, const Tuning& tuning)
    : store_(store),
      keyspace_(keyspace),
      bytes_max_(bytes_max),
      tuning_(tuning),
      fork_count_(base::ForkCount()) {}

Adjacency::~Adjacency() {
  if (fork_count_ != base::ForkCount()) {
    if (worker_.joinable()) worker_.detach();  // The thread is the parent's.
    return;
  }
  {
    const std::lock_guard lock(worker_mutex_);
    is_stopping_.store(true, std::memory_order_relaxed);
    worker_wakes_.notify_one();
  }
  // Once it is stopping nobody starts another.
  if (worker_.joinable()) worker_.join();
  subscription_ = Subscription();
}

// Building

Status Adjacency::Rebuild() {
  return base::OrOutOfMemory([&]() -> Status {
    const std::lock_guard building(build_mutex_);
    if (bytes_max_ == 0) return TooMuchMemory(bytes_max_);
    BASALT_RETURN_IF_ERROR(Subscribe());
    auto next = std::make_shared<AdjacencyVersion>();
    Attach(next);
    Status made = base::OrOutOfMemory([&] { return RebuildAttached(next.get()); });
    if (made.ok()) return Publish();
    GiveUp();
    return made;
  });
}

Status Adjacency::RebuildAttached(AdjacencyVersion* next) {
  BASALT_ASSIGN_OR_RETURN(const Snapshot snapshot, store_->GetSnapshot());
  next->base_sequence = snapshot.sequence();
  next->base_time = snapshot.time();
  // A store that is open to be read has no commits to wait for.
  if (!subscription_) next->applied.store(snapshot.sequence(), std::memory_order_release);
  return ReadRecords(snapshot, next);
}

Status Adjacency::ReadRecords(const Snapshot& snapshot, AdjacencyVersion* next) const {
  RowsBuilder rows(this, &next->base);
  const auto it =
      store_->NewIterator({.snapshot = &snapshot, .keyspace = keyspace_, .fill_cache = false});
  for (it->Seek(NodePrefix(NodeId{kCatalogue + 1})); it->Valid(); it->Next()) {
    if (!IsOfEdge(it->key())) continue;
    const auto key = ParseEdgeKey(it->key());
    if (!key) {
      return Status(StatusCode::kCorruption, "the key " + base::PrintableKey(it->key()) +
                                                 " of an edge of a graph is malformed; run basalt "
                                                 "graph verify");
    }
    if (!FitsRows(*key)) return TooLarge();
    BASALT_ASSIGN_OR_RETURN(const EdgeHead head, DecodeHead(it->value()));
    const EdgeDetail detail = DetailOf(head, key->discriminator, it->expiry());
    BASALT_RETURN_IF_ERROR(rows.Add(static_cast<uint32_t>(NumberOf(key->owner)), key->tag,
                                    {.other = static_cast<uint32_t>(NumberOf(key->other)),
                                     .type = key->type,
                                     .weight = head.weight,
                                     .detail = &detail}));
  }
  BASALT_RETURN_IF_ERROR(it->status());
  return rows.Finish();
}

/// Begins to follow the commits. Under build_mutex_.
Status Adjacency::Subscribe() {
  if (subscription_) return {};
  auto made = store_->AddListener([this](const CommittedBatch& batch) { OnCommit(batch); });
  if (!made && made.error().sub_code() == SubCode::kReadOnly) return {};
  if (!made) return made.error();
  subscription_ = *std::move(made);
  return {};
}

/// From now on the commits are added to it, too. Returns the last commit before.
uint64_t Adjacency::Attach(std::shared_ptr<AdjacencyVersion> next) {
  const std::lock_guard lock(follow_mutex_);
  has_given_up_ = false;
  const uint64_t sequence = std::max(delivered_, subscription_.sequence());
  next->applied.store(sequence, std::memory_order_relaxed);
  next_ = std::move(next);
  return sequence;
}

/// Puts the version that is attached in the place of the present one.
Status Adjacency::Publish() {
  Version before;  // Freed without a lock.
  const std::lock_guard lock(follow_mutex_);
  // The listener has given up.
  if (next_ == nullptr) return TooMuchMemory(bytes_max_);
  followed_ = std::exchange(next_, nullptr);
  const std::lock_guard current(current_mutex_);
  before = std::exchange(current_, followed_);
  return {};
}

void Adjacency::GiveUp() noexcept {
  Version before;  // Freed without a lock.
  const std::lock_guard lock(follow_mutex_);
  before = GiveUpLocked();
}

/// Until the next Rebuild the records are scanned. Returns the version that was the present one.
Adjacency::Version Adjacency::GiveUpLocked() noexcept {
  has_given_up_ = true;
  followed_.reset();
  next_.reset();
  const std::lock_guard current(current_mutex_);
  return std::exchange(current_, nullptr);
}

bool Adjacency::IsLarge(const AdjacencyVersion& version) const noexcept {
  // An edge has two entries.
  return version.delta.entries() >=
         std::max<uint64_t>(tuning_.delta_entries_min, version.base.edges() / 2);
}

std::unique_ptr<Adjacency::Merge> Adjacency::BeginMerge() {
  auto merge = std::make_unique<Merge>();
  merge->building = std::unique_lock(build_mutex_);
  merge->from = Current();
  const Result<Snapshot> snapshot = store_->GetSnapshot();
  if (merge->from == nullptr || !snapshot) return nullptr;
  merge->next = std::make_shared<AdjacencyVersion>();
  merge->next->base_time = snapshot->time();
  merge->next->base_sequence = Attach(merge->next);
  return merge;
}

Status Adjacency::FinishMerge(std::unique_ptr<Merge> merge) {
  Status made = base::OrOutOfMemory([&] { return MergeInto(*merge); });
  if (made.ok()) return Publish();
  GiveUp();
  return made;
}

Status Adjacency::MergeInto(const Merge& merge) {
  const AdjacencyVersion& from = *merge.from;
  AdjacencyVersion& next = *merge.next;
  const int64_t now_ms = next.base_time.time_since_epoch().count();
  RowsBuilder builder(this, &next.base);
  std::vector<const DeltaEntry*> entries;
  std::vector<AdjacentEdge> edges;
  for (const NodeTag tag : {NodeTag::kOut, NodeTag::kIn}) {
    const AdjacencyRows& rows = from.base.rows(tag);
    const uint32_t nodes_end = std::max(rows.nodes_end(), from.delta.nodes_end());
    next.base.rows(tag).Reserve(nodes_end, rows.edges() + from.delta.entries() / 2);
    for (uint32_t node = 0; node < nodes_end; ++node) {
      MergeEdges(rows, node, from.delta.Head(node, tag), next.base_sequence, &entries, &edges);
      for (const AdjacentEdge& edge : edges) {
        if (edge.detail != nullptr && edge.detail->IsExpired(now_ms)) continue;
        BASALT_RETURN_IF_ERROR(builder.Add(node, tag, edge));
      }
    }
  }
  return builder.Finish();
}

// Following

void Adjacency::OnCommit(const CommittedBatch& batch) noexcept {
  Version before;  // Freed without a lock.
  bool needs_work = false;
  {
    const std::lock_guard lock(follow_mutex_);
    delivered_ = batch.commit().sequence;
    if (followed_ != nullptr) Follow(batch, followed_.get());
    if (next_ != nullptr) Follow(batch, next_.get());
    const bool is_lost = (followed_ != nullptr && !followed_->is_followed) ||
                         (next_ != nullptr && !next_->is_followed);
    if (is_lost) before = GiveUpLocked();
    needs_work = is_lost || (followed_ != nullptr && next_ == nullptr && IsLarge(*followed_));
  }
  if (needs_work) WakeWorker();
}

/// Adds a commit, or sets is_followed to false. Under follow_mutex_.
void Adjacency::Follow(const CommittedBatch& batch, AdjacencyVersion* version) noexcept {
  bool is_followed = true;
  const Status added = base::OrOutOfMemory([&] {
    return batch.ForEach([&](const WriteBatch::Record& record) {
      if (record.keyspace == keyspace_) {
        is_followed = is_followed && FollowRecord(record, batch.commit().sequence, &version->delta);
      }
      return Status();
    });
  });
  // The base of a version that is being built belongs to its builder.
  const uint64_t bytes =
      version->delta.bytes() + (version == next_.get() ? 0 : version->base.bytes());
  version->is_followed = is_followed && added.ok() && bytes <= bytes_max_;
  if (version->is_followed) {
    version->applied.store(batch.commit().sequence, std::memory_order_release);
  }
}

/// False: what the record does to the edges is not known.
bool Adjacency::FollowRecord(const WriteBatch::Record& record, uint64_t sequence,
                             AdjacencyDelta* delta) const {
  if (record.kind == RecordKind::kDeleteRange) {
    if (record.value <= std::string_view(NodePrefix(NodeId{kCatalogue + 1}))) return true;
    const auto node = NodeOfRange(record.key, record.value);
    if (!node || *node >= kAdjacentNodesEnd) return false;
    delta->Clear(static_cast<uint32_t>(*node), NodeTag::kOut, sequence);
    delta->Clear(static_cast<uint32_t>(*node), NodeTag::kIn, sequence);
    return true;
  }
  if (!IsOfEdge(record.key)) return true;
  const auto key = ParseEdgeKey(record.key);
  if (!key || !FitsRows(*key)) return false;
  const auto owner = static_cast<uint32_t>(NumberOf(key->owner));
  AdjacentEdge edge{.other = static_cast<uint32_t>(NumberOf(key->other)), .type = key->type};
  if (record.kind == RecordKind::kDelete) {
    delta->Add(owner, key->tag, DeltaEntry::Kind::kDelete, edge,
               {.discriminator = std::string(key->discriminator)}, sequence);
    return true;
  }
  // What a merge makes of a record only the store knows.
  if (record.kind != RecordKind::kPut) return false;
  const Result<EdgeHead> head = DecodeHead(record.value);
  if (!head) return false;
  edge.weight = head->weight;
  delta->Add(owner, key->tag, DeltaEntry::Kind::kPut, edge,
             DetailOf(*head, key->discriminator, record.expiry), sequence);
  return true;
}

// The worker

void Adjacency::WakeWorker() noexcept {
  const std::lock_guard lock(worker_mutex_);
  if (IsStopping()) return;
  has_work_ = true;
  if (worker_.joinable()) {
    worker_wakes_.notify_one();
    return;
  }
  try {
    worker_ = std::thread([this] { RunWorker(); });
  } catch (const std::system_error&) {
    has_work_ = false;  // Without a thread reads scan the records.
  }
}

void Adjacency::RunWorker() {
  std::unique_lock lock(worker_mutex_);
  while (true) {
    worker_wakes_.wait(lock, [this] { return has_work_ || IsStopping(); });
    if (IsStopping()) return;
    has_work_ = false;
    lock.unlock();
    Work();
    lock.lock();
  }
}

/// Builds what is to be built. What fails has given up.
void Adjacency::Work() {
  while (!IsStopping()) {
    const Version current = Current();
    if (current == nullptr) {
      if (EndIfGivenUp()) return;
      if (!Rebuild().ok()) return;
    } else if (IsLarge(*current)) {
      (void)base::OrOutOfMemory([this]() -> Status {
        std::unique_ptr<Merge> merge = BeginMerge();
        return merge == nullptr ? Status() : FinishMerge(std::move(merge));
      });
    } else {
      return;
    }
  }
}

/// Whether it has given up. Then it does not follow commits either.
bool Adjacency::EndIfGivenUp() {
  const std::lock_guard building(build_mutex_);
  {
    const std::lock_guard lock(follow_mutex_);
    if (!has_given_up_) return false;
  }
  subscription_ = Subscription();
  return true;
}

}  // namespace basalt::graph
