// A small web service's store: sessions that expire, counters, mails in a keyspace of their own.

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>

#include "basalt/db.h"

namespace {

std::string Bytes(int64_t number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

int64_t Number(std::string_view bytes) {
  int64_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

void Check(const basalt::Status& status) {
  if (status.ok()) return;
  std::cerr << status.ToString() << '\n';
  std::exit(1);
}

}  // namespace

int main() {
  auto db = basalt::DB::Open("service.db").value();

  // Gone by itself, half an hour from now.
  Check(db->Put("session/7", "Ada", {.ttl = std::chrono::minutes(30)}));

  // Counts without reading: any number of threads may do it at once.
  for (int i = 0; i < 1000; ++i) {
    Check(db->Merge("visits", basalt::MergeOperator::kAdd, Bytes(1)));
  }
  std::cout << Number(db->Get("visits").value()->ToString()) << " visits\n";

  // Keys of their own, which go all at once.
  const basalt::KeyspaceId mails = db->CreateKeyspace("mails").value();
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
  std::cout << (was_free ? "Grace owns it\n" : "somebody else owns it\n");
  Check(db->Close());
  return basalt::DB::Destroy("service.db").ok() ? 0 : 1;
}
