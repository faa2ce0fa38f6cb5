#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "basalt/shared_map.h"
#include "bench/shared_map_records.h"

namespace basalt::bench {

/// One map under measurement, by its library's fastest ordinary calls. An error ends the program
/// with its message. One thread at a time.
class SharedMapSubject {
 public:
  virtual ~SharedMapSubject() = default;
  SharedMapSubject(const SharedMapSubject&) = delete;
  SharedMapSubject& operator=(const SharedMapSubject&) = delete;

  /// Makes a map of all records, durably if it lies in files, in an existing, empty directory.
  virtual void Build(const SharedMapRecords& records, const std::string& directory) = 0;
  /// Opens what Build has made to be read.
  virtual void Open(const std::string& directory) = 0;
  virtual bool lies_in_files() const { return true; }

  virtual Seen Get(std::string_view key) = 0;
  /// Copies the values of keys that are all present, one behind the other.
  virtual void GetMany(std::span<const std::string_view> keys, char* values) = 0;

 protected:
  SharedMapSubject() = default;
};

inline void CopyValue(std::string_view value, char* to) noexcept {
  if (value.size() != kSharedMapValueBytes) Fail("copy a value", "it has another size");
  std::memcpy(to, value.data(), kSharedMapValueBytes);
}

/// Ours, without its handle on files that Open makes.
class BasaltSubject final : public SharedMapSubject {
 public:
  explicit BasaltSubject(SharedMapLayout layout) : layout_(layout) {}

  void Build(const SharedMapRecords& records, const std::string& directory) override;
  void Open(const std::string& directory) override;
  /// The same, with a handle of its own that may write.
  void OpenToWrite(const std::string& directory, const SharedMapOptions& options);
  Seen Get(std::string_view key) override;
  void GetMany(std::span<const std::string_view> keys, char* values) override;
  void Put(std::string_view key, std::string_view value);
  SharedMapStats Stats() const;

 private:
  using Answer = Result<SharedMap::MaybeView>;

  const SharedMapLayout layout_;
  std::unique_ptr<SharedMap> map_;
  std::optional<SharedMap::Reader> reader_;
  std::vector<Answer> answers_;
};

std::unique_ptr<SharedMapSubject> MakeUnorderedMap();
std::unique_ptr<SharedMapSubject> MakeFlatMap();
std::unique_ptr<SharedMapSubject> MakeLmdbMap();
std::unique_ptr<SharedMapSubject> MakeCdb();
std::unique_ptr<SharedMapSubject> MakePlainTable();

}  // namespace basalt::bench
