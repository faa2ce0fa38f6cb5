// What a get costs from C over what it costs from C++: the same keys of the same stores in
// alternating rounds. Prints the medians in nanoseconds and their ratio. `--records N --rounds N`.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "basalt/c.h"
#include "basalt/db.h"
#include "basalt/memtable.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Input {
  std::vector<std::string> keys;
  std::vector<uint32_t> order;
};

Input MakeInput(size_t records) {
  Input input;
  std::mt19937_64 random(1);
  for (size_t i = 0; i < records; ++i) {
    char key[17];
    std::snprintf(key, sizeof key, "%016zx", i);
    input.keys.emplace_back(key);
  }
  for (size_t i = 0; i < records; ++i)
    input.order.push_back(static_cast<uint32_t>(random() % records));
  return input;
}

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "c_api_bench: %s\n", what.c_str());
  std::exit(1);
}

template <class Get>
double NanosecondsPerGet(const Input& input, const Get& get) {
  const auto begin = Clock::now();
  size_t bytes = 0;
  for (uint32_t i : input.order) bytes += get(input.keys[i]);
  const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
  if (bytes != input.order.size() * 100) Fail("a value is missing");
  return took.count() / static_cast<double>(input.order.size());
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Compare(const char* name, const Input& input, basalt::Store* store, basalt_store* c_store,
             int rounds) {
  const std::string value(100, 'v');
  for (const std::string& key : input.keys) {
    if (basalt::Status put = store->Put(key, value); !put.ok()) Fail(put.ToString());
    if (basalt_put(c_store, key.data(), key.size(), value.data(), value.size(), nullptr, nullptr,
                   nullptr) != BASALT_OK)
      Fail("basalt_put");
  }
  std::vector<double> cpp, c, ratios;
  for (int round = 0; round < rounds; ++round) {
    cpp.push_back(NanosecondsPerGet(input, [&](const std::string& key) -> size_t {
      const auto found = store->Get(key);
      return found && *found ? (*found)->size() : 0;
    }));
    c.push_back(NanosecondsPerGet(input, [&](const std::string& key) -> size_t {
      basalt_value found;
      if (basalt_get(c_store, key.data(), key.size(), nullptr, &found, nullptr) != BASALT_OK)
        return 0;
      const size_t size = found.size;
      basalt_value_release(&found);
      return size;
    }));
    ratios.push_back(c.back() / cpp.back());
  }
  std::printf("%-10s C++ %6.1f ns   C %6.1f ns   ratio %.3f (%.3f to %.3f)\n", name, Median(cpp),
              Median(c), Median(ratios), *std::min_element(ratios.begin(), ratios.end()),
              *std::max_element(ratios.begin(), ratios.end()));
}

}  // namespace

int main(int argc, char** argv) {
  size_t records = 100'000;
  int rounds = 21;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--records") == 0) records = std::strtoul(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::atoi(argv[i + 1]);
  }
  for (const size_t count : {size_t{100}, records}) {
    Input input = MakeInput(count);
    while (input.order.size() < 100'000) {
      const std::vector<uint32_t> again = input.order;
      input.order.insert(input.order.end(), again.begin(), again.end());
    }
    std::printf("%zu records\n", count);
    auto table = basalt::MemTable::Create().value();
    auto db = basalt::DB::Open(":memory:").value();
    basalt_store *c_table, *c_db;
    if (basalt_memtable_create(nullptr, &c_table, nullptr) != BASALT_OK) Fail("create");
    if (basalt_open(":memory:", nullptr, &c_db, nullptr) != BASALT_OK) Fail("open");
    Compare("memtable", input, table.get(), c_table, rounds);
    Compare("db", input, db.get(), c_db, rounds);
    basalt_store_free(c_db);
    basalt_store_free(c_table);
  }
  return 0;
}
