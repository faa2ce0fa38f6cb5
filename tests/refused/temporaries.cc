// What would leave a view, a reference or a pointer into a temporary does not compile. ctest
// compiles this file with each number that stands below, and expects that a deleted function is
// called. Without a number it has what is safe, which must compile.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/cache.h"
#include "basalt/db.h"
#include "basalt/perfect_hash.h"
#include "basalt/shared_map.h"
#include "basalt/write_batch.h"

#ifndef REFUSED
#define REFUSED 0
#endif

namespace basalt {

using Words = TypedCache<std::string, std::string>;

void Use(std::string_view bytes);

void Try(DB& db, Cache& cache, Words& words, SharedMap::Reader& reader,
         const PerfectHashBuilder& builder, const std::vector<uint64_t>& hashes) {
  const auto word = []() -> Result<std::string> { return std::string("word"); };
#if REFUSED == 0
  // References to values that a temporary has given up live as long as their names.
  for (const KeyspaceInfo& keyspace : db.ListKeyspaces().value()) Use(keyspace.name);
  for (const KeyspaceInfo& keyspace : *db.ListKeyspaces()) Use(keyspace.name);
  const Value& value = *db.Get("key").value();
  Use(value.view());
  const Status& error = db.Get("key").error();
  Use(error.message());
  const Status& of_batch = WriteBatch::Parse("bytes").value().status();
  Use(of_batch.message());
  // So do those into something that has a name.
  const auto found = db.Get("key");
  if (found && *found) Use((*found)->view());
  const MaybeValue held = cache.Get("key");
  if (held) Use(*held);
  const auto seen = reader.Get("key");
  if (seen && *seen) Use((*seen)->view());
  const auto pinned = words.Get("key");
  if (pinned) Use(*pinned);
  const auto function = builder.BuildFromHashes(hashes);
  if (function) Use(function->bytes());
  // A temporary can be copied from.
  const std::string copy = db.Get("key").value()->ToString();
  const std::string whole = (*db.Get("key").value()).ToString();
  const std::string view = reader.Get("key").value()->ToString();
  Use(copy);
  Use(whole);
  Use(view);
  const std::optional<Value> plain = db.Get("key").value();
  if (plain && plain->size() == db.Get("key").value()->size() && plain == held) Use(*plain);
  if (db.Get("key").value() == std::nullopt || !cache.Get("key").has_value()) Use("none");
#elif REFUSED == 1
  Use(db.Get("key").value()->view());
#elif REFUSED == 2
  Use(*db.Get("key").value());
#elif REFUSED == 3
  Use(db.Get("key").value().value().view());
#elif REFUSED == 4
  Use(db.Get("key")->value().view());
#elif REFUSED == 5
  Use((*db.Get("key"))->view());
#elif REFUSED == 6
  Use(db.Get("key").error().message());
#elif REFUSED == 7
  Use(db.Put("key", "value").error().message());
#elif REFUSED == 8
  Use(db.ListKeyspaces()->front().name);
#elif REFUSED == 9
  Use(cache.Get("key")->view());
#elif REFUSED == 10
  Use(cache.GetOrCompute("key", word)->view());
#elif REFUSED == 11
  Use(reader.Get("key").value()->view());
#elif REFUSED == 12
  Use(*reader.Get("key").value());
#elif REFUSED == 13
  Use(*words.Get("key"));
#elif REFUSED == 14
  Use(words.Get("key")->c_str());
#elif REFUSED == 15
  Use(*words.GetOrCompute("key", word).value());
#elif REFUSED == 16
  Use(builder.BuildFromHashes(hashes).value().bytes());
#elif REFUSED == 17
  Use(FingerprintSet::BuildFromHashes(hashes).value().bytes());
#elif REFUSED == 18
  Use(FingerprintSet::BuildFromHashes(hashes).value().numbers().bytes());
#elif REFUSED == 19
  Use(FingerprintMap::BuildFromHashes(hashes, hashes, 8).value().bytes());
#elif REFUSED == 20
  Use(WriteBatch::Parse("bytes").value().bytes());
#elif REFUSED == 21
  const auto get = [&]() -> const Result<MaybeValue> { return db.Get("key"); };
  Use(get().value()->view());
#else
#error "there is no such number"
#endif
}

}  // namespace basalt
