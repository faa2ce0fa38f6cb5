#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

// Errors as values, which the functions of the library return. Read Status first, then Result.

namespace basalt {

/// Why an operation failed. The numbers never change, because other languages copy them.
enum class StatusCode : uint8_t {
  kOk = 0,
  kInvalidArgument =
      1,               ///< The caller passed an argument that can never work; the message names it.
  kNotFound = 2,       ///< A file, database or keyspace is absent. An absent key is not an error.
  kAlreadyExists = 3,  ///< The thing to be created exists already.
  kFailedPrecondition = 4,  ///< The handle is closed, read-only, or used after fork().
  kResourceExhausted = 5,   ///< Out of memory, disk space or descriptors. Retry when some are free.
  kBusy = 6,                ///< Locked by another handle or process; the message names the holder.
  kAborted = 7,             ///< A conflict with a concurrent change: retry.
  kCancelled = 8,           ///< Stopped on request before it finished.
  kUnsupported =
      9,          ///< An unsupported format version, or an operation that this store does not have.
  kIoError = 10,  ///< The operating system reported an error; the message has path and cause.
  kCorruption = 11,    ///< Stored bytes are not what was written; the message has file and offset.
  kTypeMismatch = 12,  ///< The stored data is of another type than the operation needs.
  kWouldBlock = 13,    ///< The call was told not to wait, and would have had to wait.
  kUnavailable = 14,   ///< A server cannot be reached, or is not ready; retry later.
  kDeadlineExceeded = 15,  ///< The time that the caller gave has passed.
  kPermissionDenied = 16,  ///< The caller or the process lacks a permission; the message names it.
  kOutOfRange = 17,        ///< The requested data is no longer kept, or is not there yet.
};

/// The exact cause, for programs that act on it. The numbers never change. A code may come with any
/// sub-code or with none.
enum class SubCode : uint8_t {
  kNone = 0,
  kDiskFull = 1,       ///< ResourceExhausted: free space on the file system.
  kMemory = 2,         ///< ResourceExhausted: the system has no memory left.
  kDescriptors = 3,    ///< ResourceExhausted: the process may open no more files (ulimit -n).
  kBudget = 4,         ///< ResourceExhausted: the store's own memory budget is used up.
  kBatchTooLarge = 5,  ///< A batch or transaction is above the store's limit: split it.
  kPins = 6,           ///< ResourceExhausted: handles hold so much that no room is left.
  kClosed = 7,         ///< FailedPrecondition: the store or transaction was closed.
  kReadOnly = 8,       ///< FailedPrecondition: it was opened to be read only.
  kForked = 9,         ///< FailedPrecondition: the handle belongs to the parent process.
  kLocked = 10,        ///< Busy: another handle or process has it open.
  kConflict = 11,      ///< Aborted: something that a transaction read has changed.
  kCondition = 12,     ///< Aborted: a batch's condition does not hold.
  kLogGone = 13,       ///< OutOfRange: the log no longer has these records.
  kNotDurable = 14,    ///< The write is visible, but it could not be made durable.
  kKeyspace = 15,      ///< NotFound: there is no such keyspace.
};

/// The name of a code as it stands in messages, for example "InvalidArgument".
std::string_view StatusCodeName(StatusCode code) noexcept;
/// For example "DiskFull"; empty for kNone.
std::string_view SubCodeName(SubCode sub_code) noexcept;

/// The outcome of an operation: ok, or a code with a sub-code and a message. The message says what
/// was attempted, on what, and what to do. Programs should use the codes and not the text. Code and
/// sub-code take no memory; the message is missing if there was no memory for it. A Status is 8
/// bytes, null when ok. Copies share one message by a reference count, so that one failed sync can
/// answer many waiting writes. Different objects may be used from any threads.
class [[nodiscard]] Status {
 public:
  /// Ok.
  Status() noexcept = default;
  /// An error with a copy of the message. `code` must not be kOk (a failed check). The message is
  /// empty if there is no memory for it.
  Status(StatusCode code, std::string_view message, SubCode sub_code = SubCode::kNone) noexcept;

  Status(const Status& other) noexcept;
  Status(Status&& other) noexcept : rep_(std::exchange(other.rep_, 0)) {}
  Status& operator=(Status other) noexcept {
    std::swap(rep_, other.rep_);
    return *this;
  }
  ~Status() {
    if (HasText()) Release();
  }

  bool ok() const noexcept { return rep_ == 0; }
  StatusCode code() const noexcept;
  SubCode sub_code() const noexcept;
  /// Empty when ok. Valid as long as this object, or a copy of it, lives. Deleted for a temporary,
  /// whose message would dangle. Use `ToString()` there.
  std::string_view message() const& noexcept;
  std::string_view message() const&& = delete;
  /// "Ok", or "Corruption: <message>", or "ResourceExhausted (DiskFull): <message>".
  std::string ToString() const;

 private:
  struct Text;
  bool HasText() const noexcept { return rep_ != 0 && (rep_ & kBare) == 0; }
  Text* text() const noexcept { return reinterpret_cast<Text*>(rep_); }
  void Release() noexcept;

  /// 0: ok. With the lowest bit set: there is no text; the code is in the second byte, the sub-code
  /// in the third. Otherwise the address of a Text, which has them.
  static constexpr uintptr_t kBare = 1;
  uintptr_t rep_ = 0;
};

namespace internal {
/// Ends the process with a message: the caller broke a precondition of Result or Status. It is in
/// this header because the templates below call it.
[[noreturn]] void ResultCheckFailed(const char* what, const Status* error) noexcept;
}  // namespace internal

/// A `T`, or the Status that says why there is none. It has the interface of std::expected<T,
/// Status>. `value()` on an error ends the process with that error's text; it never throws.
/// `operator*` and `operator->` on an error are undefined, as in std::expected: test first. If the
/// move of T throws during an assignment, the object may afterwards only be destroyed or assigned.
///
/// Unlike std::expected, a temporary returns its value and its error by value, so that a loop over
/// `f().value()` or a reference to it does not dangle. A temporary has no `operator->`, because it
/// cannot have been tested, and its value would be destroyed with it.
template <class T>
class [[nodiscard]] Result {
  static_assert(!std::is_same_v<std::remove_cv_t<T>, Status>, "return a Status instead");

 public:
  using value_type = T;
  using error_type = Status;

  /// Holds `T{}`, as std::expected does, so that arrays of results can be made and filled.
  // Not defaulted: g++ would make a constant of it and zero all its bytes first.
  Result()
    requires(std::is_default_constructible_v<T>)
      : state_(std::in_place_index<0>) {}
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  /// From anything that converts to a T, as in std::expected: a unique_ptr of a derived class,
  /// nullopt.
  template <class U>
    requires(std::is_convertible_v<U, T> && !std::is_same_v<std::remove_cvref_t<U>, T> &&
             !std::is_same_v<std::remove_cvref_t<U>, Status> &&
             !std::is_same_v<std::remove_cvref_t<U>, Result>)
  Result(U&& value) : state_(std::in_place_index<0>, static_cast<T>(std::forward<U>(value))) {}
  /// From a Result of a type that converts to T. An error is passed on.
  template <class U>
    requires(std::is_convertible_v<U, T> && !std::is_same_v<U, T> &&
             !std::is_convertible_v<Result<U>, T>)
  Result(Result<U> other) : state_(StateOf(std::move(other))) {}
  /// Constructs the value in place.
  template <class... Arguments>
  explicit Result(std::in_place_t, Arguments&&... arguments)
      : state_(std::in_place_index<0>, std::forward<Arguments>(arguments)...) {}
  /// `error` must not be ok (a failed check).
  Result(Status error) : state_(std::in_place_index<1>, std::move(error)) {
    if (this->error().ok()) internal::ResultCheckFailed("Result made from an ok Status", nullptr);
  }

  bool has_value() const noexcept { return state_.index() == 0; }
  /// The same as has_value(), with the name that Status uses.
  bool ok() const noexcept { return has_value(); }
  explicit operator bool() const noexcept { return has_value(); }

  T& operator*() & noexcept { return *std::get_if<0>(&state_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&state_); }
  T operator*() && noexcept(std::is_nothrow_move_constructible_v<T>) {
    return std::move(*std::get_if<0>(&state_));
  }
  void operator*() const&& = delete;
  T* operator->() & noexcept { return std::get_if<0>(&state_); }
  const T* operator->() const& noexcept { return std::get_if<0>(&state_); }
  void operator->() const&& = delete;

  T& value() & {
    Check();
    return **this;
  }
  const T& value() const& {
    Check();
    return **this;
  }
  T value() && {
    Check();
    return std::move(**this);
  }
  void value() const&& = delete;

  /// The error. Only when `!has_value()`.
  const Status& error() const& noexcept { return *std::get_if<1>(&state_); }
  Status error() && noexcept { return std::move(*std::get_if<1>(&state_)); }
  Status error() const&& noexcept { return *std::get_if<1>(&state_); }
  /// The error, or ok when there is a value.
  Status status() const { return has_value() ? Status() : error(); }
  StatusCode code() const noexcept { return has_value() ? StatusCode::kOk : error().code(); }
  /// A result whose value only describes a write (Commit) converts to a Status, for callers that do
  /// not need the value.
  operator Status() const
    requires(requires { typename T::IsReceipt; })
  {
    return status();
  }
  /// "Ok" or the error, as Status::ToString() writes it.
  std::string ToString() const
    requires(requires { typename T::IsReceipt; })
  {
    return status().ToString();
  }

  template <class U>
  T value_or(U&& fallback) const& {
    return has_value() ? **this : static_cast<T>(std::forward<U>(fallback));
  }
  template <class U>
  T value_or(U&& fallback) && {
    return has_value() ? std::move(**this) : static_cast<T>(std::forward<U>(fallback));
  }

  /// `next(value)` must return a Result. An error is passed on. This function and the next two move
  /// the value of a temporary, and otherwise pass a reference to it.
  template <class F>
  auto and_then(F&& next) && -> std::invoke_result_t<F, T&&> {
    if (!has_value()) return error();
    return std::invoke(std::forward<F>(next), std::move(**this));
  }
  template <class F>
  auto and_then(F&& next) const& -> std::invoke_result_t<F, const T&> {
    if (!has_value()) return error();
    return std::invoke(std::forward<F>(next), **this);
  }
  /// Maps the value; an error is passed on.
  template <class F>
  auto transform(F&& map) && -> Result<std::remove_cvref_t<std::invoke_result_t<F, T&&>>> {
    if (!has_value()) return error();
    return std::invoke(std::forward<F>(map), std::move(**this));
  }
  template <class F>
  auto transform(F&& map) const& -> Result<std::remove_cvref_t<std::invoke_result_t<F, const T&>>> {
    if (!has_value()) return error();
    return std::invoke(std::forward<F>(map), **this);
  }
  /// `recover(error)` must return a Result<T>; a value is passed on.
  template <class F>
  Result or_else(F&& recover) && {
    if (has_value()) return std::move(*this);
    return std::invoke(std::forward<F>(recover), error());
  }
  template <class F>
  Result or_else(F&& recover) const& {
    if (has_value()) return *this;
    return std::invoke(std::forward<F>(recover), error());
  }

 private:
  using State = std::variant<T, Status>;

  template <class U>
  static State StateOf(Result<U>&& other) {
    if (!other) return State(std::in_place_index<1>, other.error());
    return State(std::in_place_index<0>, *std::move(other));
  }
  void Check() const {
    if (!has_value())
      internal::ResultCheckFailed("value() of a Result that holds an error", &error());
  }
  State state_;
};

}  // namespace basalt
