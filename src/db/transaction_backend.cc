#include "db/transaction_backend.h"

#include <optional>
#include <utility>

#include "base/check.h"
#include "db/core.h"
#include "db/db_iterator.h"
#include "transaction/backend.h"
#include "transaction/state.h"

namespace basalt::db {
namespace {

/// Keeps the history of commits from before the snapshot on, so that a short transaction is checked
/// without a look at memtables and tables.
class TransactionBackend final : public transaction::Backend {
 public:
  explicit TransactionBackend(std::shared_ptr<Core> core) noexcept : core_(std::move(core)) {}

  Result<Snapshot> GetSnapshot() override {
    user_.emplace(core_->history());
    core_->BeginHistory();
    return core_->TakeSnapshot();
  }
  Result<MaybeValue> Get(std::string_view key, const ReadOptions& options) override {
    return core_->Get(key, options);
  }
  Result<std::optional<Entry>> GetEntry(std::string_view key, const ReadOptions& options) override {
    return core_->GetEntry(key, options);
  }
  Status MultiGet(std::span<const std::string_view> keys, std::span<Result<MaybeValue>> results,
                  const ReadOptions& options) override {
    return core_->MultiGet(keys, results, options);
  }
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options) override {
    return NewDBIterator(core_, options);
  }
  std::chrono::milliseconds DefaultTtl(KeyspaceId keyspace) override {
    return core_->DefaultTtl(keyspace);
  }
  Result<Commit> CommitIfUnchanged(transaction::ReadSet* reads, const Snapshot* snapshot,
                                   const WriteBatch& batch, const WriteOptions& options) override {
    // What was read from one snapshot without a write stands in the order where the snapshot does.
    if (batch.empty() && !batch.has_conditions()) return Commit();
    if (snapshot == nullptr || reads->empty()) return core_->Write(batch, options);
    return core_->WriteIfUnchanged(batch, reads, snapshot->sequence(), options);
  }

 private:
  const std::shared_ptr<Core> core_;
  std::optional<CommitHistory::User> user_;
};

}  // namespace

Result<Transaction> NewTransaction(const std::shared_ptr<Core>& core,
                                   const TransactionOptions& options) {
  BASALT_RETURN_IF_ERROR(core->CheckWritable());
  return transaction::TransactionAccess::Make(
      std::make_unique<transaction::State>(std::make_shared<TransactionBackend>(core), options));
}

}  // namespace basalt::db
