#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "basalt/store.h"
#include "basalt/text_index.h"
#include "basalt/transaction.h"
#include "retrieve/posting_packer.h"
#include "text/tokenizer.h"

namespace basalt::retrieve {

/// A text index that is open: writes the records of posting_record.h. StorePostings reads them.
/// Thread-safe.
class TextIndexCore {
 public:
  static Result<std::unique_ptr<TextIndexCore>> Open(Store* store, const TextIndexOptions& options);

  Store& store() const noexcept { return *store_; }
  KeyspaceId keyspace() const noexcept { return keyspace_; }
  PostingPacker& packer() noexcept { return packer_; }
  Result<std::unique_ptr<text::Tokenizer>> NewTokenizer() const;

  Status Put(Transaction& tx, uint64_t document, std::string_view text);
  Result<bool> Remove(Transaction& tx, uint64_t document);

 private:
  TextIndexCore(Store* store, KeyspaceId keyspace)
      : store_(store), keyspace_(keyspace), packer_(store, keyspace) {}
  Status ReadFormat(const TextIndexOptions& options);
  Status AddToCounter(Transaction& tx, std::string_view key, int64_t amount) const;
  /// Adds to the counter of a term, for a 'p' record that is written, and remembers the term.
  Status CountChange(Transaction& tx, const std::string& term, int64_t documents);
  Status RemovePosting(Transaction& tx, const std::string& term, uint64_t document);

  Store* const store_;
  const KeyspaceId keyspace_;
  std::string stemmer_;  // Constant once the index is open.
  PostingPacker packer_;
};

}  // namespace basalt::retrieve
