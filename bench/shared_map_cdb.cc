#include <cdb.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "bench/shared_map_subject.h"

namespace basalt::bench {
namespace {

void Check(int answer, std::string_view what) {
  if (answer < 0) Fail(what, std::strerror(errno));
}

/// tinycdb: an immutable hash table in a mapped file.
class Cdb final : public SharedMapSubject {
 public:
  ~Cdb() override {
    if (descriptor_ < 0) return;
    cdb_free(&table_);
    close(descriptor_);
  }

  void Build(const SharedMapRecords& records, const std::string& directory) override {
    const int descriptor = open(FileIn(directory).c_str(), O_RDWR | O_CREAT | O_EXCL, 0644);
    Check(descriptor, "create a cdb file");
    cdb_make maker;
    Check(cdb_make_start(&maker, descriptor), "begin a cdb file");
    std::array<char, kSharedMapValueBytes> value;
    for (uint64_t number = 0; number < records.count(); ++number) {
      const RecordKey key = RecordKey::Of(number);
      records.FillValue(number, 'v', value.data());
      Check(cdb_make_add(&maker, key.bytes(), SizeOf(key.view()), value.data(),
                         static_cast<unsigned>(value.size())),
            "add to a cdb file");
    }
    Check(cdb_make_finish(&maker), "finish a cdb file");
    Check(fdatasync(descriptor), "sync a cdb file");
    Check(close(descriptor), "close a cdb file");
  }
  void Open(const std::string& directory) override {
    descriptor_ = open(FileIn(directory).c_str(), O_RDONLY);
    Check(descriptor_, "open a cdb file");
    Check(cdb_init(&table_, descriptor_), "map a cdb file");
  }

  Seen Get(std::string_view key) override {
    std::string_view value;
    return Find(key, &value) ? LookAt(value) : Seen{0, Seen::kNothing};
  }
  void GetMany(std::span<const std::string_view> keys, char* values) override {
    for (const std::string_view key : keys) {
      std::string_view value;
      if (!Find(key, &value)) Fail("get many from a cdb file", "a key is missing");
      CopyValue(value, values);
      values += kSharedMapValueBytes;
    }
  }

 private:
  static std::string FileIn(const std::string& directory) { return directory + "/map.cdb"; }
  static unsigned SizeOf(std::string_view bytes) { return static_cast<unsigned>(bytes.size()); }

  bool Find(std::string_view key, std::string_view* value) {
    const int found = cdb_find(&table_, key.data(), SizeOf(key));
    Check(found, "find in a cdb file");
    if (found == 0) return false;
    const unsigned bytes = cdb_datalen(&table_);
    const void* const at = cdb_get(&table_, bytes, cdb_datapos(&table_));
    if (at == nullptr) Fail("get from a cdb file", std::strerror(errno));
    *value = {static_cast<const char*>(at), bytes};
    return true;
  }

  int descriptor_ = -1;
  cdb table_{};
};

}  // namespace

std::unique_ptr<SharedMapSubject> MakeCdb() { return std::make_unique<Cdb>(); }

}  // namespace basalt::bench
