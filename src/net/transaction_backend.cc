#include "net/transaction_backend.h"

#include <optional>
#include <utility>

#include "base/check.h"
#include "net/remote_reads.h"
#include "net/remote_writes.h"
#include "transaction/backend.h"
#include "transaction/state.h"

namespace basalt::net {
namespace {

class TransactionBackend final : public transaction::Backend {
 public:
  explicit TransactionBackend(std::shared_ptr<Client> client) noexcept
      : client_(std::move(client)) {}

  Result<Snapshot> GetSnapshot() override { return TakeSnapshot(client_, std::nullopt); }
  Result<MaybeValue> Get(std::string_view key, const ReadOptions& options) override {
    return ReadValue(*client_, key, options);
  }
  Result<std::optional<Entry>> GetEntry(std::string_view key, const ReadOptions& options) override {
    return ReadEntry(*client_, key, options);
  }
  Status MultiGet(std::span<const std::string_view> keys, std::span<Result<MaybeValue>> results,
                  const ReadOptions& options) override {
    return ReadValues(client_, keys, results, options);
  }
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options) override {
    return NewRemoteIterator(client_, options);
  }
  std::chrono::milliseconds DefaultTtl(KeyspaceId /*keyspace*/) override {
    return client_->facts().default_ttl;
  }
  Result<Commit> CommitIfUnchanged(transaction::ReadSet* reads, const Snapshot* snapshot,
                                   const WriteBatch& batch, const WriteOptions& options) override {
    if (snapshot == nullptr || reads->empty()) return WriteRemote(*client_, batch, options);
    BASALT_ASSIGN_OR_RETURN(const uint64_t id, SnapshotIdOf(*client_, snapshot));
    return WriteRemote(*client_, batch, options, {.snapshot = id, .reads = reads});
  }

 private:
  const std::shared_ptr<Client> client_;
};

}  // namespace

Transaction NewTransaction(std::shared_ptr<Client> client, const TransactionOptions& options) {
  return transaction::TransactionAccess::Make(std::make_unique<transaction::State>(
      std::make_shared<TransactionBackend>(std::move(client)), options));
}

}  // namespace basalt::net
