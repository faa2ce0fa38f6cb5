#include "scan.h"

#include <algorithm>
#include <utility>

namespace basalt::python {

Scan::Scan(std::unique_ptr<Iterator> iterator, bool reverse, Yields yields)
    : iterator_(std::move(iterator)), reverse_(reverse), yields_(yields) {
  Check(iterator_->status());
}

void Scan::Fill() {
  constexpr size_t kRecordsMax = 1024;
  constexpr size_t kBytesMax = size_t{64} << 10;
  bytes_.clear();
  sizes_.clear();
  record_ = offset_ = 0;
  const nb::gil_scoped_release release;
  if (!started_) {
    started_ = true;
    if (reverse_) {
      iterator_->SeekToLast();
    } else {
      iterator_->SeekToFirst();
    }
  }
  while (iterator_->Valid() && sizes_.size() < records_max_ && bytes_.size() < kBytesMax) {
    const std::string_view key = iterator_->key();
    const std::string_view value = iterator_->value();
    bytes_.append(key);
    bytes_.append(value);
    sizes_.push_back({static_cast<uint32_t>(key.size()), static_cast<uint32_t>(value.size())});
    if (reverse_) {
      iterator_->Prev();
    } else {
      iterator_->Next();
    }
  }
  records_max_ = std::min(records_max_ * 4, kRecordsMax);
}

bool Scan::HasNext() {
  const InUse in_use(&in_use_, "the scan");
  if (record_ < sizes_.size()) return true;
  if (iterator_ == nullptr) return false;
  CheckSameProcess(fork_count_);
  Fill();
  if (!sizes_.empty()) return true;
  const Status status = iterator_->status();
  iterator_.reset();
  Check(status);
  return false;
}

nb::object Scan::Next() {
  if (!HasNext()) throw nb::stop_iteration();
  const Sizes sizes = sizes_[record_++];
  const std::string_view key(bytes_.data() + offset_, sizes.key);
  const std::string_view value(bytes_.data() + offset_ + sizes.key, sizes.value);
  offset_ += size_t{sizes.key} + sizes.value;
  switch (yields_) {
    case Yields::kKeys:
      return ToBytes(key);
    case Yields::kValues:
      return ToBytes(value);
    case Yields::kItems:
      break;
  }
  // Both before the tuple, whose allocation may run Python code that moves this scan.
  const nb::object key_bytes = ToBytes(key), value_bytes = ToBytes(value);
  return nb::steal(PyTuple_Pack(2, key_bytes.ptr(), value_bytes.ptr()));
}

void DefineScan(nb::module_& module) {
  nb::class_<Scan>(module, "Scan", "Iterates over records; made by scan().")
      .def("__iter__", [](nb::handle self) { return self; })
      .def("__next__", &Scan::Next);
}

}  // namespace basalt::python
