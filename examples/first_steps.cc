// Opens a database and does each of the basic things once: put, get, scan, batch, snapshot.

#include <iostream>

#include "basalt/db.h"

int main() {
  // A directory; it is made when it is not there. value() ends the program with the error's text.
  auto db = basalt::DB::Open("first-steps.db").value();

  // Every write gives a Status: ok means visible, and safe when this process dies.
  if (basalt::Status status = db->Put("user/1", "Ada"); !status.ok()) {
    std::cerr << status.ToString() << '\n';
    return 1;
  }

  // An absent key is no error but an empty optional.
  basalt::MaybeValue name = db->Get("user/1").value();
  std::cout << "user/1 is " << (name ? name->view() : "absent") << '\n';

  // A batch is applied as a whole or not at all, here also against a power cut.
  basalt::WriteBatch batch;
  batch.Put("user/2", "Grace");
  batch.Put("user/3", "Edsger");
  batch.Delete("user/1");
  if (basalt::Status status = db->Write(batch, {.durability = basalt::Durability::kPower});
      !status.ok()) {
    std::cerr << status.ToString() << '\n';
    return 1;
  }

  // A snapshot keeps the present moment for later reads.
  basalt::Snapshot before = db->GetSnapshot().value();
  if (!db->Put("user/2", "Grace Hopper").ok()) return 1;
  std::cout << "user/2 was " << db->Get("user/2", {.snapshot = &before}).value()->ToString()
            << " and is " << db->Get("user/2").value()->ToString() << '\n';

  // Keys come in bytewise order, forward or backward, in a range or under a prefix.
  auto it = db->NewIterator({.prefix = "user/"});
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    std::cout << it->key() << " = " << it->value() << '\n';
  }
  return it->status().ok() && db->Close().ok() ? 0 : 1;
}
