#include "basalt/status.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace basalt {
namespace {

constexpr std::array<std::string_view, 18> kCodeNames = {"Ok",
                                                         "InvalidArgument",
                                                         "NotFound",
                                                         "AlreadyExists",
                                                         "FailedPrecondition",
                                                         "ResourceExhausted",
                                                         "Busy",
                                                         "Aborted",
                                                         "Cancelled",
                                                         "Unsupported",
                                                         "IoError",
                                                         "Corruption",
                                                         "TypeMismatch",
                                                         "WouldBlock",
                                                         "Unavailable",
                                                         "DeadlineExceeded",
                                                         "PermissionDenied",
                                                         "OutOfRange"};

constexpr std::array<std::string_view, 16> kSubCodeNames = {
    "",          "DiskFull", "Memory",     "Descriptors", "Budget", "BatchTooLarge",
    "Pins",      "Closed",   "ReadOnly",   "Forked",      "Locked", "Conflict",
    "Condition", "LogGone",  "NotDurable", "Keyspace"};

}  // namespace

std::string_view StatusCodeName(StatusCode code) noexcept {
  const auto index = static_cast<size_t>(code);
  return index < kCodeNames.size() ? kCodeNames[index] : "Unknown";
}

std::string_view SubCodeName(SubCode sub_code) noexcept {
  const auto index = static_cast<size_t>(sub_code);
  return index < kSubCodeNames.size() ? kSubCodeNames[index] : "Unknown";
}

/// One allocation: this header, then the message. Freed by the reference that counts down to zero.
struct Status::Text {
  std::atomic<uint64_t> references;
  uint64_t message_bytes;
  StatusCode code;
  SubCode sub_code;

  char* message() noexcept { return reinterpret_cast<char*>(this + 1); }
};

Status::Status(StatusCode code, std::string_view message, SubCode sub_code) noexcept {
  if (code == StatusCode::kOk || static_cast<size_t>(code) >= kCodeNames.size()) {
    internal::ResultCheckFailed("Status made with a code that is not an error", nullptr);
  }
  void* memory = message.empty() ? nullptr : std::malloc(sizeof(Text) + message.size());
  if (memory == nullptr) {
    rep_ = kBare | static_cast<uintptr_t>(code) << 8 | static_cast<uintptr_t>(sub_code) << 16;
    return;
  }
  auto* const made = new (memory) Text{1, message.size(), code, sub_code};
  std::memcpy(made->message(), message.data(), message.size());
  rep_ = reinterpret_cast<uintptr_t>(made);
}

Status::Status(const Status& other) noexcept : rep_(other.rep_) {
  if (HasText()) text()->references.fetch_add(1, std::memory_order_relaxed);
}

void Status::Release() noexcept {
  if (text()->references.fetch_sub(1, std::memory_order_acq_rel) == 1) std::free(text());
}

StatusCode Status::code() const noexcept {
  return HasText() ? text()->code : static_cast<StatusCode>(rep_ >> 8 & 0xFF);
}

SubCode Status::sub_code() const noexcept {
  return HasText() ? text()->sub_code : static_cast<SubCode>(rep_ >> 16 & 0xFF);
}

std::string_view Status::message() const& noexcept {
  if (!HasText()) return {};
  return {text()->message(), text()->message_bytes};
}

std::string Status::ToString() const {
  std::string name(StatusCodeName(code()));
  if (sub_code() != SubCode::kNone) name.append(" (").append(SubCodeName(sub_code())).append(")");
  if (const std::string_view why = message(); !why.empty()) name.append(": ").append(why);
  return name;
}

void internal::ResultCheckFailed(const char* what, const Status* error) noexcept {
  const std::string_view name = error == nullptr ? "" : StatusCodeName(error->code());
  const std::string_view why = error == nullptr ? "" : error->message();
  std::fprintf(stderr, "basalt: check failed: %s%s%.*s%s%.*s\n", what, name.empty() ? "" : ": ",
               static_cast<int>(name.size()), name.data(), why.empty() ? "" : ": ",
               static_cast<int>(why.size()), why.data());
  std::abort();
}

}  // namespace basalt
