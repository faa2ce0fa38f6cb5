// A small web service's store: sessions that expire, counters, mails in a keyspace of their own.

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

#include "basalt/db.h"

namespace {

void Check(const basalt::Status& status) {
  if (status.ok()) return;
  std::cerr << status.ToString() << '\n';
  std::exit(1);
}

}  // namespace

int main() {
  auto db = basalt::DB::Open("service.db").value();

  // Expires in half an hour.
  Check(db->Put("session/7", "Ada", {.ttl = std::chrono::minutes(30)}));

  // Adds without reading. Any number of threads may do this at once.
  for (int i = 0; i < 1000; ++i) {
    Check(db->Merge("visits", basalt::MergeOperator::kAdd, basalt::EncodeCounter(1)));
  }
  const basalt::MaybeValue visits = db->Get("visits").value();
  std::cout << basalt::DecodeCounter(visits->view()).value() << " visits\n";

  // A keyspace is a separate set of keys, which can be dropped in one step.
  const basalt::KeyspaceId mails = db->OpenOrCreateKeyspace("mails").value();
  for (int i = 0; i < 100; ++i) {
    Check(db->Put("2025/" + std::to_string(i), "old", {.keyspace = mails}));
    Check(db->Put("2026/" + std::to_string(i), "new", {.keyspace = mails}));
  }
  Check(db->DeleteRange("2025/", "20250", {.keyspace = mails}));
  auto it = db->NewIterator({.keyspace = mails});
  it->SeekToFirst();
  std::cout << "the first mail is " << it->key() << '\n';
  it.reset();
  Check(db->DropKeyspace(mails));

  const bool was_free = db->PutIfAbsent("owner", "Grace").value().has_value();
  std::cout << (was_free ? "Grace owns it\n" : "it has an owner already\n");
  Check(db->Close());
  return basalt::DB::Destroy("service.db").ok() ? 0 : 1;
}
