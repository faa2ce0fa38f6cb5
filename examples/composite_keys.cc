// Orders under composite keys: customer, then day with the newest first, then number. The store
// compares bytes, and the keys are in the order of their fields:
//
//     ./composite_keys

#include <cstdint>
#include <iostream>
#include <string>

#include "basalt/key.h"
#include "basalt/memtable.h"

namespace {

std::string OrderKey(std::string_view customer, int64_t day, uint64_t number) {
  std::string key;
  basalt::KeyWriter(&key).String(customer).I64(day, basalt::KeyOrder::kDescending).U64(number);
  return key;
}

/// The beginning of all keys of a customer. No other customer's keys begin with it.
std::string CustomerPrefix(std::string_view customer) {
  std::string key;
  basalt::KeyWriter(&key).String(customer);
  return key;
}

}  // namespace

int main() {
  auto table = basalt::MemTable::Create({.memory_budget = 16 << 20}).value();
  basalt::WriteBatch batch;
  batch.Put(OrderKey("Ada", 19'000, 1), "a loom");
  batch.Put(OrderKey("Ada", 19'400, 7), "cards");
  batch.Put(OrderKey("Ada", -3, 2), "an engine");
  batch.Put(OrderKey("Adam", 19'200, 3), "a spade");
  if (!table->Write(batch).ok()) return 1;

  const std::string ada = CustomerPrefix("Ada");
  auto orders = table->NewIterator({.prefix = ada});
  int shown = 0;
  std::string customer;
  for (orders->SeekToFirst(); orders->Valid(); orders->Next(), ++shown) {
    basalt::KeyReader in(orders->key());
    in.ReadString(&customer);
    const int64_t day = in.ReadI64();
    const uint64_t number = in.ReadU64();
    if (!in.Finish().ok()) return 1;  // Names the offset of what is malformed.
    std::cout << customer << ", day " << day << ", order " << number << ": " << orders->value()
              << '\n';
  }

  const basalt::KeyRange all = basalt::PrefixRange(ada);
  if (!table->DeleteRange(all.begin, all.end).ok()) return 1;
  return shown == 3 ? 0 : 1;
}
