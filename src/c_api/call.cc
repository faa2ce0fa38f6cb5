#include "c_api/call.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace basalt::c_api {

int Fail(const Status& status, basalt_error* error) noexcept {
  const auto code = static_cast<int>(status.code());
  if (error == nullptr) return code;
  error->code = code;
  error->sub_code = static_cast<int>(status.sub_code());
  const std::string_view message = status.message();
  size_t size = std::min(message.size(), sizeof error->message - 1);
  if (size < message.size()) {
    // Not in the middle of a character of UTF-8.
    while (size > 0 && (static_cast<unsigned char>(message[size]) & 0xC0) == 0x80) --size;
  }
  std::memcpy(error->message, message.data(), size);
  error->message[size] = '\0';
  return code;
}

Status NullArgument(std::string_view what) {
  return Status(StatusCode::kInvalidArgument,
                std::string(what) + " is NULL: give a pointer to what the call needs");
}

char* CopyForCaller(std::string_view text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

}  // namespace basalt::c_api

using namespace basalt;         // NOLINT(google-*)
using namespace basalt::c_api;  // NOLINT(google-*)

const char* basalt_version(void) { return BASALT_VERSION; }

const char* basalt_code_name(int code) {
  if (code < BASALT_OK || code > BASALT_OUT_OF_RANGE) return "Unknown";
  return StatusCodeName(static_cast<StatusCode>(code)).data();  // Literals, which end with a zero.
}

const char* basalt_sub_code_name(int sub_code) {
  if (sub_code < BASALT_SUB_NONE || sub_code > BASALT_SUB_KEYSPACE) return "Unknown";
  const std::string_view name = SubCodeName(static_cast<SubCode>(sub_code));
  return name.empty() ? "" : name.data();
}

void basalt_free(void* memory) { std::free(memory); }

void basalt_value_release(basalt_value* value) {
  if (value == nullptr || value->data == nullptr) return;
  reinterpret_cast<Value*>(value->storage)->~Value();
  GiveNothing(value);
}
