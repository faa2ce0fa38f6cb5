// Writes under a condition, and follows what is written: by a listener in this process, and by
// reading the log from a record on.

#include <iostream>
#include <string>

#include "basalt/db.h"
#include "basalt/transaction.h"

namespace {

/// Replaces a page unless another writer has changed it since `version`.
basalt::Result<basalt::Commit> ReplacePage(basalt::DB& db, uint64_t version,
                                           std::string_view text) {
  basalt::WriteBatch batch;
  batch.RequireUnchanged("page/7", version);
  batch.Put("page/7", text);
  return db.Write(batch);  // Aborted: another writer has changed the page.
}

/// Appends to the page in a transaction that is committed here. Aborted: begin again.
basalt::Status AppendToPage(basalt::DB& db, std::string_view text) {
  basalt::Result<basalt::Transaction> tx = db.Begin();
  if (!tx) return tx.error();
  basalt::Result<basalt::MaybeValue> page = tx->Get("page/7");
  if (!page) return page.error();
  const std::string old_text = *page ? (*page)->ToString() : "";
  basalt::Status put = tx->Put("page/7", old_text + std::string(text));
  if (!put.ok()) return put;
  return tx->Commit();
}

}  // namespace

int main() {
  auto db = basalt::DB::Open("pages.db").value();
  int heard = 0;
  basalt::Subscription subscription =
      db->AddListener([&heard](const basalt::CommittedBatch& batch) {
          heard += static_cast<int>(batch.count());
        }).value();

  const uint64_t first_lsn = db->Put("page/7", "draft").value().lsn;
  const uint64_t version = db->GetEntry("page/7").value()->version;
  if (!ReplacePage(*db, version, "first edition").ok()) return 1;
  const auto late = ReplacePage(*db, version, "second edition");
  std::cout << late.status().ToString() << '\n';

  if (!AppendToPage(*db, ", corrected").ok()) return 1;

  // All batches from a record of the log on.
  int read = 0;
  auto changes = db->Changes(first_lsn).value();
  while (changes->Next().value()) {
    basalt::Status visited =
        changes->batch().ForEach([&read](const basalt::WriteBatch::Record& record) {
          std::cout << record.key << " = " << record.value << '\n';
          ++read;
          return basalt::Status();
        });
    if (!visited.ok()) return 1;
  }
  const bool is_aborted = late.code() == basalt::StatusCode::kAborted;
  return is_aborted && heard == 3 && read == 3 && db->Close().ok() ? 0 : 1;
}
