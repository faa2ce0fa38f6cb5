// Serves a database that this process has open, and uses it from a client as one would from another
// process:
//
//     ./remote

#include <iostream>
#include <string>

#include "basalt/client.h"
#include "basalt/server.h"
#include "basalt/transaction.h"

int main() {
  auto db = basalt::DB::Open(":memory:").value();
  auto server = basalt::net::Serve(db.get()).value();

  // In another process: the URL is all that it needs.
  auto store = basalt::net::RemoteStore::Connect(server->url()).value();
  if (!store->Put("user/42", "Ada").ok()) return 1;

  // A transaction: what it has read is unchanged when it commits, or it runs again.
  auto renamed = basalt::Transact(*store, [](basalt::Transaction& tx) -> basalt::Status {
    auto name = tx.Get("user/42");
    if (!name) return name.error();
    return tx.Put("user/42", (*name)->ToString() + " Lovelace");
  });
  if (!renamed) return 1;

  auto it = store->NewIterator({.prefix = "user/"});
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    std::cout << it->key() << " = " << it->value() << '\n';
  }
  // The process that has the database sees the same.
  std::cout << db->Get("user/42").value()->ToString() << '\n';
  return it->status().ok() ? 0 : 1;
}
