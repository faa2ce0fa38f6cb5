#include "basalt/status.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace basalt {
namespace {

constexpr std::array<std::string_view, 12> kCodeNames = {"Ok",
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
                                                         "Corruption"};

}  // namespace

std::string_view StatusCodeName(StatusCode code) noexcept {
  const auto index = static_cast<size_t>(code);
  return index < kCodeNames.size() ? kCodeNames[index] : "Unknown";
}

/// One allocation: this header, then the message. Freed by the reference that counts down to zero.
struct Status::Rep {
  std::atomic<uint64_t> references;
  uint64_t message_bytes;
  StatusCode code;

  char* message() noexcept { return reinterpret_cast<char*>(this + 1); }

  /// The error of a code without a message, for when memory has run out. Its first reference is
  /// never given back, so it is never freed, and it has no destructor that could run before its
  /// last user.
  static Rep* WithoutMessage(StatusCode code) noexcept {
    static constinit Rep reps[kCodeNames.size()] = {
        {1, 0, StatusCode{0}}, {1, 0, StatusCode{1}},  {1, 0, StatusCode{2}},
        {1, 0, StatusCode{3}}, {1, 0, StatusCode{4}},  {1, 0, StatusCode{5}},
        {1, 0, StatusCode{6}}, {1, 0, StatusCode{7}},  {1, 0, StatusCode{8}},
        {1, 0, StatusCode{9}}, {1, 0, StatusCode{10}}, {1, 0, StatusCode{11}}};
    Rep* rep = &reps[static_cast<size_t>(code)];
    rep->references.fetch_add(1, std::memory_order_relaxed);
    return rep;
  }
};

Status::Status(StatusCode code, std::string_view message) noexcept {
  if (code == StatusCode::kOk || static_cast<size_t>(code) >= kCodeNames.size()) {
    internal::ResultCheckFailed("Status made with a code that is no error", nullptr);
  }
  void* memory = message.empty() ? nullptr : std::malloc(sizeof(Rep) + message.size());
  if (memory == nullptr) {
    rep_ = Rep::WithoutMessage(code);
    return;
  }
  rep_ = new (memory) Rep{1, message.size(), code};
  std::memcpy(rep_->message(), message.data(), message.size());
}

Status::Status(const Status& other) noexcept : rep_(other.rep_) {
  if (rep_ != nullptr) rep_->references.fetch_add(1, std::memory_order_relaxed);
}

void Status::Release(Rep* rep) noexcept {
  if (rep->references.fetch_sub(1, std::memory_order_acq_rel) == 1) std::free(rep);
}

StatusCode Status::code() const noexcept { return rep_ == nullptr ? StatusCode::kOk : rep_->code; }

std::string_view Status::message() const& noexcept {
  if (rep_ == nullptr) return {};
  return {rep_->message(), rep_->message_bytes};
}

std::string Status::ToString() const {
  std::string text(StatusCodeName(code()));
  if (const std::string_view why = message(); !why.empty()) text.append(": ").append(why);
  return text;
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
