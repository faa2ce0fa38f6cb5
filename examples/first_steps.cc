// Opens a database and uses each basic operation once: put, get, transaction, snapshot, scan.

#include <iostream>

#include "basalt/db.h"
#include "basalt/transaction.h"

int main() {
  // Creates the directory if it is absent. On an error, value() ends the program with its text.
  auto db = basalt::DB::Open("first-steps.db").value();

  // When Put returns ok, the write is visible and survives the end of this process.
  if (auto put = db->Put("user/1", "Ada"); !put.ok()) {
    std::cerr << put.status().ToString() << '\n';
    return 1;
  }
  basalt::MaybeValue name = db->Get("user/1").value();  // Empty if the key is absent.
  std::cout << "user/1 is " << (name ? name->view() : "absent") << '\n';

  // A transaction takes effect as a whole or not at all. Transact runs it again after a conflict.
  basalt::Snapshot before = db->GetSnapshot().value();
  basalt::Status renamed = basalt::Transact(*db, [](basalt::Transaction& tx) {
    basalt::Result<basalt::MaybeValue> old = tx.Get("user/1");
    if (!old.ok()) return old.status();
    basalt::Status put = tx.Put("user/2", (*old)->ToString() + " Lovelace");
    return put.ok() ? tx.Delete("user/1") : put;
  });
  if (!renamed.ok()) return 1;
  std::cout << "user/1 was " << db->Get("user/1", {.snapshot = &before}).value()->ToString()
            << '\n';

  // Iterators visit keys in bytewise order, forward or backward, in a range or with a prefix.
  auto it = db->NewIterator({.prefix = "user/"});
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    std::cout << it->key() << " = " << it->value() << '\n';
  }
  return it->status().ok() && db->Close().ok() ? 0 : 1;
}
