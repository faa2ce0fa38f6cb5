#include "phash/function_builder.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/coding.h"
#include "base/hash.h"
#include "base/hexadecimal.h"
#include "base/printable_key.h"
#include "base/random.h"
#include "phash/format.h"
#include "phash/hole_list.h"
#include "phash/level.h"
#include "phash/level_builder.h"
#include "phash/partition.h"
#include "phash/threads.h"

namespace basalt::phash {
namespace {

using Stage = PerfectHashProgress::Stage;

constexpr uint32_t kThreadsMax = 256;
constexpr uint64_t kPassesMax = 64;
// With good hashes the first attempt fails once in 40 times at 10^9 keys.
constexpr uint64_t kAttemptsMax = 8;
constexpr uint64_t kReportEvery = 65'536;

Status Cancelled() {
  return Status(StatusCode::kCancelled, "building a perfect hash function: on_progress said stop");
}

// The levels of a function as they are built.
class Form {
 public:
  explicit Form(uint64_t keys, PerfectHashSeeds seeds) : keys_(keys), seeds_(seeds) {}

  void AddLevel(const LevelShape& shape, const LevelBuilder& level) {
    records_.push_back({.keys = shape.keys(),
                        .buckets = static_cast<uint32_t>(shape.buckets()),
                        .slice_log2 = static_cast<uint8_t>(shape.slice_log2()),
                        .seeds = static_cast<uint8_t>(shape.dense() ? PerfectHashSeeds::kDense
                                                                    : PerfectHashSeeds::kShift),
                        .zero = 0});
    body_.append(reinterpret_cast<const char*>(level.seeds().data()), level.seeds().size());
    body_.resize(base::RoundUp(body_.size(), 8), '\0');
    HoleList::Append(level.Holes(), shape.keys(), &body_);
  }
  size_t levels() const noexcept { return records_.size(); }

  std::string Finish(std::vector<uint64_t> table, uint64_t hash_seed, uint64_t golden_hash) {
    std::sort(table.begin(), table.end());
    const size_t bytes = sizeof(Header) + sizeof(LevelRecord) * records_.size() +
                         sizeof(uint64_t) * table.size() + body_.size();
    Header header = {.magic = kFunctionMagic,
                     .version = hash_seed == 0 ? kFormatVersion : kSeededFormatVersion,
                     .required_features = 0,
                     .keys = keys_,
                     .hash_seed = hash_seed,
                     .golden_hash = golden_hash,
                     .bytes = bytes,
                     .seeds = static_cast<uint8_t>(seeds_),
                     .levels = static_cast<uint8_t>(records_.size()),
                     .zero = 0,
                     .table_keys = static_cast<uint32_t>(table.size()),
                     .checksum = 0};
    std::string form;
    form.reserve(bytes);
    form.append(reinterpret_cast<const char*>(&header), sizeof header);
    form.append(reinterpret_cast<const char*>(records_.data()),
                sizeof(LevelRecord) * records_.size());
    form.append(reinterpret_cast<const char*>(table.data()), sizeof(uint64_t) * table.size());
    form.append(body_);
    base::Store(form.data() + offsetof(Header, checksum), FormChecksum(form));
    return form;
  }

 private:
  uint64_t keys_;
  PerfectHashSeeds seeds_;
  std::vector<LevelRecord> records_;
  std::string body_;
};

}  // namespace

// What a function is built from.
class FunctionBuilder::Input {
 public:
  virtual ~Input() = default;
  virtual uint64_t size() const = 0;
  // Bytes that one walk takes for each key that it is for.
  virtual uint64_t bytes_a_key() const = 0;
  // The mixed hashes of all keys that belong to `chunks`. `walk` of `walks` is for progress.
  virtual Result<Partition> Walk(const LevelShape& shape, Partition::Chunks chunks, uint64_t walk,
                                 uint64_t walks) = 0;
  virtual Result<std::vector<uint64_t>> All() = 0;
  // Whether mixed hashes that are there twice come from one key: the error says from which. When
  // there is none, the next attempt is made with other hashes.
  virtual Status ExplainRepeated(std::span<const uint64_t> sorted) = 0;
  // With which keys that are bytes are hashed now.
  virtual const base::SeededHash& hash() const {
    static const base::SeededHash unseeded;
    return unseeded;
  }
};

class FunctionBuilder::HashInput final : public Input {
 public:
  HashInput(std::span<const uint64_t> hashes, uint32_t threads)
      : hashes_(hashes), threads_(threads) {}

  uint64_t size() const override { return hashes_.size(); }
  uint64_t bytes_a_key() const override { return 8; }
  Result<Partition> Walk(const LevelShape& shape, Partition::Chunks chunks, uint64_t /*walk*/,
                         uint64_t /*walks*/) override {
    return Partition(shape, chunks, hashes_, Partition::Input::kToBeMixed, threads_);
  }
  Result<std::vector<uint64_t>> All() override {
    std::vector<uint64_t> mixed;
    mixed.reserve(hashes_.size());
    for (const uint64_t hash : hashes_) mixed.push_back(Mix(hash));
    return mixed;
  }
  Status ExplainRepeated(std::span<const uint64_t> sorted) override {
    std::map<uint64_t, size_t> places;
    for (size_t i = 0; i < hashes_.size(); ++i) {
      if (!std::binary_search(sorted.begin(), sorted.end(), Mix(hashes_[i]))) continue;
      const auto [found, is_new] = places.try_emplace(hashes_[i], i);
      if (is_new) continue;
      return Status(StatusCode::kInvalidArgument,
                    "building a perfect hash function: hash " + base::Hexadecimal(hashes_[i]) +
                        " is given at " + std::to_string(found->second) + " and again at " +
                        std::to_string(i) + "; give each hash once");
    }
    return Status();
  }

 private:
  std::span<const uint64_t> hashes_;
  uint32_t threads_;
};

// Keys that are bytes, hashed under a seed.
class FunctionBuilder::KeyInput : public Input {
 public:
  using Visit = std::function<void(std::span<const std::string_view>)>;

  explicit KeyInput(const FunctionBuilder& builder)
      : builder_(builder), hash_(builder.options_.hash_seed) {}

  uint64_t bytes_a_key() const override { return 16; }
  const base::SeededHash& hash() const override { return hash_; }

  Result<Partition> Walk(const LevelShape& shape, Partition::Chunks chunks, uint64_t walk,
                         uint64_t walks) override {
    std::vector<uint64_t> mixed;
    const uint64_t expected = size() * (chunks.end - chunks.begin) / shape.chunks();
    mixed.reserve(walks == 1 ? size() : expected + expected / 32);
    BASALT_RETURN_IF_ERROR(Collect(walk, walks, &mixed, [&](uint64_t hash) {
      const uint64_t part = shape.Part(hash);
      return part >= chunks.begin * shape.parts_per_chunk() &&
             part < chunks.end * shape.parts_per_chunk();
    }));
    return Partition(shape, chunks, mixed, Partition::Input::kMixed, builder_.options_.threads);
  }

  Result<std::vector<uint64_t>> All() override {
    std::vector<uint64_t> mixed;
    BASALT_RETURN_IF_ERROR(Collect(0, 1, &mixed, [](uint64_t) { return true; }));
    return mixed;
  }

  Status ExplainRepeated(std::span<const uint64_t> sorted) override {
    // By the keys themselves, so that it takes n log n, however many have one hash.
    std::map<std::string, uint64_t, std::less<>> places;
    std::map<uint64_t, const std::pair<const std::string, uint64_t>*> first_of_hash;
    uint64_t place = 0;
    Status repeated;
    std::string collision;
    BASALT_RETURN_IF_ERROR(Visitation([&](std::span<const std::string_view> keys) {
      for (const std::string_view key : keys) {
        const uint64_t at = place++;
        const uint64_t mixed = Mixed(key);
        if (!repeated.ok() || !std::binary_search(sorted.begin(), sorted.end(), mixed)) continue;
        const auto [seen, is_new] = places.try_emplace(std::string(key), at);
        if (!is_new) {
          repeated =
              Status(StatusCode::kInvalidArgument,
                     "building a perfect hash function: key " + base::PrintableKey(key) +
                         " is given twice" + Places(seen->second, at) + "; give each key once");
          continue;
        }
        const auto [first, is_first] = first_of_hash.try_emplace(mixed, &*seen);
        if (is_first || !collision.empty()) continue;
        collision = "keys " + base::PrintableKey(first->second->first) + " and " +
                    base::PrintableKey(key) + Places(first->second->second, at);
      }
    }));
    if (!repeated.ok()) return repeated;
    if (++attempts_ < kAttemptsMax) {
      hash_ = base::SeededHash(NextSeed());
      return Status();
    }
    return Status(StatusCode::kInvalidArgument,
                  "building a perfect hash function: " + collision +
                      " have equal 64-bit hashes, and so had others under each of " +
                      std::to_string(kAttemptsMax) + " seeds; divide the keys into smaller sets");
  }

 protected:
  uint64_t Mixed(std::string_view key) const { return Mix(builder_.hash_(key, hash_)); }
  virtual Status Visitation(const Visit& visit) const = 0;
  // Appends the mixed hashes that `wanted` takes.
  template <class Wanted>
  Status Collect(uint64_t walk, uint64_t walks, std::vector<uint64_t>* mixed,
                 const Wanted& wanted) const {
    uint64_t seen = 0;
    uint64_t reported = 0;
    bool stopped = false;
    const uint64_t total = size() * walks;
    BASALT_RETURN_IF_ERROR(Visitation([&](std::span<const std::string_view> keys) {
      for (const std::string_view key : keys) {
        const uint64_t hash = Mixed(key);
        if (wanted(hash) && seen < size()) mixed->push_back(hash);
        ++seen;
        if (seen - reported < kReportEvery || stopped) continue;
        reported = seen;
        stopped = !builder_.Report(Stage::kHashing, std::min(size() * walk + seen, total), total);
      }
    }));
    if (stopped) return Cancelled();
    if (seen == size()) return Status();
    return Status(StatusCode::kInvalidArgument,
                  "building a perfect hash function: a walk over the keys gave " +
                      std::to_string(seen) + " where size() is " + std::to_string(size()) +
                      "; a KeySource must give the same keys at each walk");
  }

  const FunctionBuilder& builder_;

 private:
  static std::string Places(uint64_t first, uint64_t second) {
    return " (" + std::to_string(first) + " and " + std::to_string(second) + ")";
  }
  // The second one is the same for the same keys. Who has chosen keys that collide under both does
  // not know the others.
  uint64_t NextSeed() const {
    return attempts_ == 1 ? base::Random(builder_.options_.hash_seed).Next() : base::RandomSeed();
  }

  base::SeededHash hash_;
  uint64_t attempts_ = 0;  // That have failed.
};

class FunctionBuilder::SpanInput final : public KeyInput {
 public:
  SpanInput(std::span<const std::string_view> keys, const FunctionBuilder& builder)
      : KeyInput(builder), keys_(keys) {}

  uint64_t size() const override { return keys_.size(); }

  Result<Partition> Walk(const LevelShape& shape, Partition::Chunks chunks, uint64_t walk,
                         uint64_t walks) override {
    if (walks > 1) return KeyInput::Walk(shape, chunks, walk, walks);
    const auto mixed = std::make_unique_for_overwrite<uint64_t[]>(keys_.size());
    std::atomic<uint64_t> next = 0;
    bool stopped = false;
    const auto stop = [&] { next = keys_.size(); };
    RunOnThreads(
        static_cast<uint32_t>(
            std::clamp<uint64_t>(keys_.size() / kReportEvery, 1, builder_.options_.threads)),
        [&](uint32_t thread) {
          for (uint64_t begin = next.fetch_add(kReportEvery); begin < keys_.size();
               begin = next.fetch_add(kReportEvery)) {
            const uint64_t end = std::min<uint64_t>(begin + kReportEvery, keys_.size());
            for (uint64_t i = begin; i < end; ++i) mixed[i] = Mixed(keys_[i]);
            if (thread == 0 && !builder_.Report(Stage::kHashing, end, keys_.size())) {
              stopped = true;
              stop();
            }
          }
        },
        stop);
    if (stopped) return Cancelled();
    return Partition(shape, chunks, {mixed.get(), keys_.size()}, Partition::Input::kMixed,
                     builder_.options_.threads);
  }

 private:
  Status Visitation(const Visit& visit) const override {
    visit(keys_);
    return Status();
  }

  std::span<const std::string_view> keys_;
};

class FunctionBuilder::SourceInput final : public KeyInput {
 public:
  SourceInput(const KeySource& source, const FunctionBuilder& builder)
      : KeyInput(builder), source_(source), size_(source.size()) {}

  uint64_t size() const override { return size_; }

 private:
  Status Visitation(const Visit& visit) const override { return source_.Walk(visit); }

  const KeySource& source_;
  uint64_t size_;
};

FunctionBuilder::FunctionBuilder(const PerfectHashOptions& options, HashFunction hash)
    : options_(options), hash_(hash) {
  if (options_.threads == 0) {
    options_.threads = std::clamp<uint32_t>(std::thread::hardware_concurrency(), 1, kThreadsMax);
  }
}

bool FunctionBuilder::Report(Stage stage, uint64_t done, uint64_t total) const {
  return options_.on_progress == nullptr || options_.on_progress({stage, done, total});
}

Result<uint64_t> FunctionBuilder::Passes(uint64_t keys, uint64_t bytes_a_key) const {
  if (options_.memory_budget == 0) return 1;
  const LevelShape shape(keys, options_.seeds);
  const uint64_t scratch = LevelBuilder::ScratchBytes(shape, options_.threads);
  const uint64_t passes_max = std::min(shape.chunks(), kPassesMax);
  // A share of hashes is a little more or less than its part.
  const uint64_t all = keys * bytes_a_key + keys * bytes_a_key / 32;
  const uint64_t least = scratch + all / passes_max + 1;
  if (options_.memory_budget < least) {
    return Status(StatusCode::kInvalidArgument,
                  "building a perfect hash function: memory_budget is " +
                      std::to_string(options_.memory_budget) + " bytes; " + std::to_string(keys) +
                      " keys on " + std::to_string(options_.threads) + " threads need at least " +
                      std::to_string(least));
  }
  const uint64_t share = options_.memory_budget - scratch;
  return std::clamp<uint64_t>((all + share - 1) / share, 1, passes_max);
}

Result<std::string> FunctionBuilder::TryBuild(Input* input, std::vector<uint64_t>* repeated) {
  Form form(input->size(), options_.seeds);
  const auto finish = [&](std::vector<uint64_t> table) -> Result<std::string> {
    std::sort(table.begin(), table.end());
    for (size_t i = 1; i < table.size(); ++i) {
      if (table[i] == table[i - 1]) repeated->push_back(table[i]);
    }
    return form.Finish(std::move(table), input->hash().seed(),
                       Mix(hash_({kGoldenKey, sizeof kGoldenKey - 1}, input->hash())));
  };
  if (input->size() <= kTableKeys) {
    BASALT_ASSIGN_OR_RETURN(std::vector<uint64_t> all, input->All());
    return finish(std::move(all));
  }

  BASALT_ASSIGN_OR_RETURN(const uint64_t passes, Passes(input->size(), input->bytes_a_key()));
  std::vector<uint64_t> bumped;
  {
    const LevelShape shape(input->size(), options_.seeds);
    LevelBuilder level(shape, options_.threads);
    uint64_t walked = 0;
    for (uint64_t pass = 0; pass < passes; ++pass) {
      const Partition::Chunks chunks = {shape.chunks() * pass / passes,
                                        shape.chunks() * (pass + 1) / passes};
      BASALT_ASSIGN_OR_RETURN(const Partition partition, input->Walk(shape, chunks, pass, passes));
      walked += partition.size();
      // What does not come to the number of keys would not fit the slots.
      if (walked > input->size() || (pass + 1 == passes && walked != input->size())) {
        return Status(StatusCode::kInvalidArgument,
                      "building a perfect hash function: the walks over the keys gave different "
                      "keys; a KeySource must give the same keys at each walk");
      }
      const bool went_on = level.Place(partition, [&](uint64_t placed) {
        return Report(Stage::kPlacing, placed, input->size());
      });
      if (!went_on) return Cancelled();
    }
    level.PlaceSeams();
    repeated->assign(level.repeated().begin(), level.repeated().end());
    if (!repeated->empty()) return std::string();
    form.AddLevel(shape, level);
    bumped = level.TakeBumped();
  }
  for (;;) {
    for (uint64_t& hash : bumped) hash = MixForNextLevel(hash);
    if (bumped.size() <= kTableKeys || form.levels() == kLevelsMax) return finish(bumped);
    const LevelShape shape(bumped.size(), options_.seeds);
    LevelBuilder level(shape, options_.threads);
    const Partition partition(shape, {0, shape.chunks()}, bumped, Partition::Input::kMixed,
                              options_.threads);
    level.Place(partition, [](uint64_t) { return true; });
    level.PlaceSeams();
    form.AddLevel(shape, level);
    bumped = level.TakeBumped();
  }
}

Result<std::string> FunctionBuilder::BuildFrom(Input* input) try {
  if (input->size() > PerfectHashBuilder::kKeysMax) {
    return Status(StatusCode::kInvalidArgument,
                  "building a perfect hash function: " + std::to_string(input->size()) +
                      " keys are more than 10^9; divide them into several sets");
  }
  if (options_.threads > kThreadsMax) {
    return Status(StatusCode::kInvalidArgument, "building a perfect hash function: threads is " +
                                                    std::to_string(options_.threads) +
                                                    ", more than " + std::to_string(kThreadsMax));
  }
  if (options_.seeds != PerfectHashSeeds::kShift && options_.seeds != PerfectHashSeeds::kDense) {
    return Status(StatusCode::kInvalidArgument,
                  "building a perfect hash function: seeds is neither kShift nor kDense");
  }
  for (;;) {
    std::vector<uint64_t> repeated;
    BASALT_ASSIGN_OR_RETURN(std::string form, TryBuild(input, &repeated));
    if (repeated.empty()) return form;
    std::sort(repeated.begin(), repeated.end());
    BASALT_RETURN_IF_ERROR(input->ExplainRepeated(repeated));
  }
} catch (const std::bad_alloc&) {
  return Status(StatusCode::kResourceExhausted,
                "building a perfect hash function: out of memory; set memory_budget");
}

Result<std::string> FunctionBuilder::Build(std::span<const std::string_view> keys) {
  SpanInput input(keys, *this);
  return BuildFrom(&input);
}

Result<std::string> FunctionBuilder::Build(const KeySource& keys) {
  SourceInput input(keys, *this);
  return BuildFrom(&input);
}

Result<std::string> FunctionBuilder::BuildFromHashes(std::span<const uint64_t> hashes) {
  HashInput input(hashes, options_.threads);
  return BuildFrom(&input);
}

}  // namespace basalt::phash
