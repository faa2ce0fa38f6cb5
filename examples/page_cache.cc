// Keeps rendered pages for a second, within 16 MiB, and renders each only once at a time, however
// many threads ask for it:
//
//     ./page_cache

#include <atomic>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "basalt/cache.h"

using namespace std::chrono_literals;

namespace {

std::atomic<int> renderings{0};

basalt::Result<std::string> Render(const std::string& path) {
  ++renderings;
  std::this_thread::sleep_for(20ms);
  return "<h1>" + path + "</h1>";
}

}  // namespace

int main() {
  auto cache = basalt::Cache::Create({.capacity_bytes = 16 << 20, .default_ttl = 1s}).value();

  std::vector<std::thread> visitors;
  for (int i = 0; i < 64; ++i) {
    visitors.emplace_back([&] {
      auto page = cache->GetOrCompute("/home", [] { return Render("/home"); });
      if (!page) std::cerr << page.error().ToString() << '\n';
    });
  }
  for (std::thread& visitor : visitors) visitor.join();
  std::cout << "rendered " << renderings << " time for " << visitors.size() << " visitors\n";

  // A value stays as it is for as long as it is held, whatever happens to the cache.
  basalt::MaybeValue page = cache->Get("/home");
  cache->Clear();
  std::cout << page.value().view() << '\n';

  // Objects are shared, not copied.
  auto users = basalt::TypedCache<uint64_t, std::vector<std::string>>::Create().value();
  if (!users->Put(7, {"ada", "grace"}, {.ttl = 5min}).ok()) return 1;
  if (auto names = users->Get(7)) std::cout << names->size() << " names\n";

  return renderings == 1 ? 0 : 1;
}
