// Uses four parts in one program: a database with a transaction, a cache of values from it, and a
// map that other processes can read. docs/getting-started.md explains it line by line.

#include <chrono>
#include <iostream>
#include <string>

#include "basalt/cache.h"
#include "basalt/db.h"
#include "basalt/shared_map.h"
#include "basalt/transaction.h"

using namespace std::chrono_literals;

namespace {

int Fail(const basalt::Status& status) {
  std::cerr << status.ToString() << '\n';
  return 1;
}

/// Moves an amount between two accounts. Both change, or none.
basalt::Status Transfer(basalt::DB& db, int amount) {
  return basalt::Transact(db, [amount](basalt::Transaction& tx) {
    basalt::Result<basalt::MaybeValue> from = tx.Get("account/ada");
    if (!from.ok()) return from.error();
    basalt::Result<basalt::MaybeValue> to = tx.Get("account/grace");
    if (!to.ok()) return to.error();
    const int old_from = *from ? std::stoi((*from)->ToString()) : 0;
    const int old_to = *to ? std::stoi((*to)->ToString()) : 0;
    if (old_from < amount) {  // An error from the function ends the transaction: nothing changes.
      return basalt::Status(basalt::StatusCode::kFailedPrecondition, "transfer: too little money");
    }
    basalt::Status put = tx.Put("account/ada", std::to_string(old_from - amount));
    return put.ok() ? tx.Put("account/grace", std::to_string(old_to + amount)) : put;
  });
}

int Run() {
  // The database: created if it is absent, recovered if the last process was killed.
  auto db = basalt::DB::Open("tour.db");
  if (!db) return Fail(db.error());
  basalt::Status put = (*db)->Put("account/ada", "100");
  if (put.ok()) put = (*db)->Put("account/grace", "0");
  if (!put.ok()) return Fail(put);

  // A transaction.
  if (basalt::Status moved = Transfer(**db, 30); !moved.ok()) return Fail(moved);

  // A cache: at most 16 MiB; entries expire after a minute.
  auto cache = basalt::Cache::Create({.capacity_bytes = 16 << 20, .default_ttl = 1min});
  if (!cache) return Fail(cache.error());
  auto balance = (*cache)->GetOrCompute("ada", [&]() -> basalt::Result<std::string> {
    auto stored = (*db)->Get("account/ada");  // Only on a miss.
    if (!stored.ok()) return stored.error();
    return *stored ? (*stored)->ToString() : std::string("0");
  });
  if (!balance) return Fail(balance.error());
  std::cout << "ada has " << balance->view() << '\n';

  // A shared map: this process writes, any other process reads.
  auto map = basalt::SharedMap::Create("tour.map", {.overwrite = true});
  if (!map) return Fail(map.error());
  if (basalt::Status shared = (*map)->Put("ada", balance->view()); !shared.ok()) {
    return Fail(shared);
  }
  auto attached = basalt::SharedMap::Attach("tour.map");  // As another process does.
  if (!attached) return Fail(attached.error());
  auto reader = (*attached)->NewReader();
  if (!reader) return Fail(reader.error());
  auto found = reader->Get("ada");
  if (!found.ok()) return Fail(found.error());
  std::cout << "the map has " << (*found ? (*found)->view() : "nothing") << '\n';

  basalt::Status closed = (*db)->Close();
  return closed.ok() && *found && **found == "70" ? 0 : Fail(closed);
}

}  // namespace

int main() { return Run(); }
