// Opens a database and does each of the basic things once: put, get, transaction, snapshot, scan.

#include <iostream>

#include "basalt/db.h"
#include "basalt/transaction.h"

int main() {
  // Makes the directory if it is absent. value() ends the program with the error's text.
  auto db = basalt::DB::Open("first-steps.db").value();

  // A write that is ok is visible, and survives the death of this process.
  if (auto put = db->Put("user/1", "Ada"); !put.ok()) {
    std::cerr << put.status().ToString() << '\n';
    return 1;
  }
  basalt::MaybeValue name = db->Get("user/1").value();  // An absent key is empty, and no error.
  std::cout << "user/1 is " << (name ? name->view() : "absent") << '\n';

  // All of a transaction takes effect, or nothing. It begins again where another writer was faster.
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

  // Keys come in the order of their bytes, forward or backward, in a range or under a prefix.
  auto it = db->NewIterator({.prefix = "user/"});
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    std::cout << it->key() << " = " << it->value() << '\n';
  }
  return it->status().ok() && db->Close().ok() ? 0 : 1;
}
