#pragma once

// src/c_api: basalt/c.h over the C++ API. Read Call first, the frame of every function; handles.h
// has the handles.

// Each function of the C API (basalt/c.h) does the same: check the pointers, turn options into
// those of the C++ API (options.h), call it, and turn the result into out-parameters. Call catches
// exceptions and fills the basalt_error.

#include <cstddef>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "basalt/c.h"
#include "basalt/changes.h"
#include "basalt/status.h"
#include "basalt/value.h"

namespace basalt::c_api {

/// Fills `error`, unless it is null, and gives the code.
int Fail(const Status& status, basalt_error* error) noexcept;

/// InvalidArgument: `what` is NULL, or has a size that does not fit.
Status NullArgument(std::string_view what);

/// What `fn` answers, a Status, as the C API gives it. Nothing that is thrown leaves this.
template <class Function>
int Call(basalt_error* error, const Function& fn) noexcept {
  try {
    const Status status = fn();
    if (status.ok()) [[likely]]
      return BASALT_OK;
    return Fail(status, error);
  } catch (const std::bad_alloc&) {
    return Fail(Status(StatusCode::kResourceExhausted, "the system has no memory left: retry",
                       SubCode::kMemory),
                error);
  } catch (const std::exception& exception) {
    return Fail(Status(StatusCode::kResourceExhausted, exception.what()), error);
  } catch (...) {
    return Fail(Status(StatusCode::kFailedPrecondition, "an exception of an unknown type"), error);
  }
}

/// Returns from the enclosing function with an error.
#define BASALT_C_REQUIRE(condition, what) \
  if (!(condition)) [[unlikely]]          \
  return NullArgument(what)
#define BASALT_C_RETURN_IF_ERROR(expression)                                   \
  if (Status status_of_call = (expression); !status_of_call.ok()) [[unlikely]] \
  return status_of_call

/// Whether `data` may be read for `size` bytes, as far as one can tell.
inline bool IsBytes(const void* data, size_t size) noexcept { return data != nullptr || size == 0; }
inline std::string_view ViewOf(const void* data, size_t size) noexcept {
  // Not a null pointer: the C++ API distinguishes some of those from empty keys.
  return data == nullptr ? std::string_view("")
                         : std::string_view(static_cast<const char*>(data), size);
}

/// Puts `value` into a basalt_value, or nothing where it is absent.
inline void Give(MaybeValue&& value, basalt_value* to) noexcept {
  static_assert(sizeof(Value) <= sizeof to->storage && alignof(Value) <= alignof(basalt_value));
  if (!value) {
    to->data = nullptr;
    to->size = 0;
    return;
  }
  const auto* placed = new (to->storage) Value(*std::move(value));
  to->data = placed->view().data();
  to->size = placed->size();
  // A value of no bytes may have no address.
  if (to->data == nullptr) to->data = reinterpret_cast<const char*>(to->storage);
}
inline void GiveNothing(basalt_value* to) noexcept {
  to->data = nullptr;
  to->size = 0;
}

/// Where a write stands, for a caller who may not want to know.
inline Status GiveCommit(const Result<Commit>& written, basalt_commit* commit) {
  if (!written) return written.error();
  if (commit != nullptr) *commit = {.sequence = written->sequence, .lsn = written->lsn};
  return {};
}

inline void GiveNoCommit(basalt_commit* commit) {
  if (commit != nullptr) *commit = {};
}

/// A copy of `text` by malloc, with a zero byte at its end, for basalt_free. Throws std::bad_alloc.
char* CopyForCaller(std::string_view text);

}  // namespace basalt::c_api
