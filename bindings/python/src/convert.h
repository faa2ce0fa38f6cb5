#pragma once

// Between Python's objects and what the C++ API takes: bytes, times, errors, and the GIL.
//
// All objects of this module belong to the GIL: their fields are read and written while it is held.
// It is let go around what may wait for a disk or for another thread. A read asks memory alone
// first, with the GIL, because letting go of it costs more than most reads.

#include <nanobind/nanobind.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "basalt/options.h"
#include "basalt/status.h"
#include "basalt/value.h"

namespace nb = nanobind;

namespace basalt::python {

/// Makes basalt.Error and a class for each code.
void DefineErrors(nb::module_& module);
/// Raises the exception of an error.
[[noreturn]] void Raise(const Status& status);
inline void Check(const Status& status) {
  if (!status.ok()) [[unlikely]]
    Raise(status);
}
template <class T>
T Check(Result<T>&& result) {
  if (!result) [[unlikely]]
    Raise(result.error());
  return *std::move(result);
}

/// Counts the forks that this process has come out of as a child.
uint64_t ForkCount() noexcept;
/// Raises FailedPrecondition where `fork_count` is the parent's.
void CheckSameProcess(uint64_t fork_count);

/// The bytes of a key or value: bytes as they are, str as UTF-8, others by the buffer protocol.
/// Valid while this lives; the caller's arguments keep the object alive.
class Bytes {
 public:
  explicit Bytes(nb::handle object) {
    if (PyBytes_CheckExact(object.ptr())) [[likely]] {
      view_ = {PyBytes_AS_STRING(object.ptr()),
               static_cast<size_t>(PyBytes_GET_SIZE(object.ptr()))};
    } else {
      Take(object);
    }
  }
  ~Bytes() {
    if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  std::string_view view() const noexcept { return view_; }

 private:
  void Take(nb::handle object);
  std::string_view view_;
  Py_buffer buffer_{};
};

inline nb::object ToBytes(std::string_view bytes) {
  return nb::steal(PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
}
inline nb::object ToBytesOr(const MaybeValue& value, nb::handle otherwise) {
  return value ? ToBytes(value->view()) : nb::borrow(otherwise);
}
[[noreturn]] void RaiseKeyError(nb::handle key);

/// Seconds, or a timedelta; None: unset; infinity: never expires. Raises ValueError for what is not
/// positive.
std::optional<std::chrono::milliseconds> ToTtl(nb::handle ttl);
/// "interval", "process" or "power", and "memory" where a store is opened; None: unset.
std::optional<Durability> ToDurability(nb::handle durability);
/// A path as str, bytes or os.PathLike.
std::string ToPath(nb::handle path);
/// What json.loads makes of it.
nb::object FromJson(const std::string& json);

/// Calls `read(options)` with the GIL if memory has the answer, and without it otherwise.
template <class Read>
auto ReadWith(ReadOptions options, const Read& read) {
  options.memory_only = true;
  auto result = read(options);
  if (result || result.error().code() != StatusCode::kWouldBlock) return Check(std::move(result));
  options.memory_only = false;
  {
    const nb::gil_scoped_release release;
    result = read(options);
  }
  return Check(std::move(result));
}

/// The same for a write. `waits`: it is one that always waits.
template <class Write>
auto WriteWith(WriteOptions options, bool waits, const Write& write) {
  if (!waits) {
    options.may_wait = false;
    auto result = write(options);
    if (result || result.error().code() != StatusCode::kWouldBlock) return Check(std::move(result));
    options.may_wait = true;
  }
  auto result = [&] {
    const nb::gil_scoped_release release;
    return write(options);
  }();
  return Check(std::move(result));
}

/// Marks an object that one thread at a time may use, around a call that lets go of the GIL.
class InUse {
 public:
  InUse(bool* mark, const char* what) : mark_(mark) {
    if (*mark) throw nb::value_error((std::string(what) + " is in use by another thread").c_str());
    *mark = true;
  }
  ~InUse() { *mark_ = false; }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  bool* mark_;
};

void DefineStores(nb::module_& module);
void DefineCache(nb::module_& module);
void DefineSharedMap(nb::module_& module);
/// After DefineStores: they add methods to its classes.
void DefineCollections(nb::module_& module);
void DefineGraphs(nb::module_& module);
void DefineCorpora(nb::module_& module);

}  // namespace basalt::python
