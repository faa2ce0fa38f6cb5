#include <array>

#include "bench/shared_map_subject.h"

namespace basalt::bench {
namespace {

void Check(const Status& status, std::string_view what) {
  if (!status.ok()) Fail(what, status.ToString());
}

template <class T>
T Checked(Result<T> result, std::string_view what) {
  Check(result.status(), what);
  return std::move(*result);
}

std::string MapIn(const std::string& directory) { return directory + "/map"; }

}  // namespace

void BasaltSubject::Build(const SharedMapRecords& records, const std::string& directory) {
  const SharedMapOptions options{.layout = layout_};
  const auto builder =
      Checked(SharedMapBuilder::Create(MapIn(directory), options), "begin to build a map");
  std::array<char, kSharedMapValueBytes> value;
  for (uint64_t number = 0; number < records.count(); ++number) {
    records.FillValue(number, 'v', value.data());
    Check(builder->Add(RecordKey::Of(number).view(), {value.data(), value.size()}), "add to a map");
  }
  Check(Checked(builder->Finish(), "finish a map")->Close(), "close a map");
}

void BasaltSubject::Open(const std::string& directory) {
  map_ = Checked(SharedMap::Attach(MapIn(directory)), "attach to a map");
  reader_ = Checked(map_->NewReader(), "make a reader of a map");
}

void BasaltSubject::OpenToWrite(const std::string& directory, const SharedMapOptions& options) {
  map_ = Checked(SharedMap::Open(MapIn(directory), options), "open a map");
  reader_ = Checked(map_->NewReader(), "make a reader of a map");
}

Seen BasaltSubject::Get(std::string_view key) {
  const Answer answer = reader_->Get(key);
  if (!answer) Fail("get from a map", answer.error().ToString());
  if (!*answer) return {0, Seen::kNothing};
  return LookAt((*answer)->view());
}

void BasaltSubject::GetMany(std::span<const std::string_view> keys, char* values) {
  answers_.resize(keys.size());
  Check(reader_->MultiGet(keys, answers_), "get many from a map");
  for (const Answer& answer : answers_) {
    if (!answer) Fail("get many from a map", answer.error().ToString());
    if (!*answer) Fail("get many from a map", "a key is missing");
    CopyValue((*answer)->view(), values);
    values += kSharedMapValueBytes;
  }
}

void BasaltSubject::Put(std::string_view key, std::string_view value) {
  Check(map_->Put(key, value), "put into a map");
}

SharedMapStats BasaltSubject::Stats() const {
  return Checked(map_->GetStats(), "get a map's figures");
}

}  // namespace basalt::bench
