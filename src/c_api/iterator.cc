#include "basalt/iterator.h"

#include "c_api/call.h"
#include "c_api/handles.h"

namespace basalt::c_api {
namespace {

/// Whether the iterator may be used; in a child of the process that made it, it may not.
bool IsUsable(const basalt_iterator* iterator) noexcept {
  return iterator != nullptr && !iterator->origin.IsInherited();
}

bool IsAtRecord(const basalt_iterator* iterator) noexcept {
  return IsUsable(iterator) && iterator->failure.ok() && iterator->iterator->Valid();
}

/// Moves, and says whether it is at a record.
template <class Move>
bool Step(basalt_iterator* iterator, const Move& move) noexcept {
  if (!IsUsable(iterator)) [[unlikely]]
    return false;
  try {
    iterator->failure = Status();
    move(*iterator->iterator);
    return iterator->iterator->Valid();
  } catch (...) {
    iterator->failure =
        Status(StatusCode::kResourceExhausted,
               "move an iterator: the system has no memory left; seek again", SubCode::kMemory);
    return false;
  }
}

const char* Part(const basalt_iterator* iterator, std::string_view (Iterator::*part)() const,
                 size_t* size) noexcept {
  if (!IsAtRecord(iterator)) [[unlikely]] {
    if (size != nullptr) *size = 0;
    return nullptr;
  }
  const std::string_view bytes = (*iterator->iterator.*part)();
  if (size != nullptr) *size = bytes.size();
  return bytes.data() == nullptr ? "" : bytes.data();
}

}  // namespace
}  // namespace basalt::c_api

using namespace basalt;         // NOLINT(google-*)
using namespace basalt::c_api;  // NOLINT(google-*)

bool basalt_iterator_valid(const basalt_iterator* iterator) { return IsAtRecord(iterator); }

bool basalt_iterator_seek_to_first(basalt_iterator* iterator) {
  return Step(iterator, [](Iterator& it) { it.SeekToFirst(); });
}

bool basalt_iterator_seek_to_last(basalt_iterator* iterator) {
  return Step(iterator, [](Iterator& it) { it.SeekToLast(); });
}

bool basalt_iterator_seek(basalt_iterator* iterator, const void* key, size_t key_size) {
  return Step(iterator, [&](Iterator& it) { it.Seek(ViewOf(key, key == nullptr ? 0 : key_size)); });
}

bool basalt_iterator_seek_for_prev(basalt_iterator* iterator, const void* key, size_t key_size) {
  return Step(iterator,
              [&](Iterator& it) { it.SeekForPrev(ViewOf(key, key == nullptr ? 0 : key_size)); });
}

bool basalt_iterator_next(basalt_iterator* iterator) {
  return Step(iterator, [](Iterator& it) { it.Next(); });
}

bool basalt_iterator_prev(basalt_iterator* iterator) {
  return Step(iterator, [](Iterator& it) { it.Prev(); });
}

const char* basalt_iterator_key(const basalt_iterator* iterator, size_t* size) {
  return Part(iterator, &Iterator::key, size);
}

const char* basalt_iterator_value(const basalt_iterator* iterator, size_t* size) {
  return Part(iterator, &Iterator::value, size);
}

int64_t basalt_iterator_expiry(const basalt_iterator* iterator) {
  if (!IsAtRecord(iterator)) return 0;
  const std::optional<WallTime> expiry = iterator->iterator->expiry();
  return expiry ? expiry->time_since_epoch().count() : 0;
}

int basalt_iterator_status(const basalt_iterator* iterator, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(iterator != nullptr, "iterator");
    if (iterator->origin.IsInherited()) return Inherited();
    return iterator->failure.ok() ? iterator->iterator->status() : iterator->failure;
  });
}

void basalt_iterator_free(basalt_iterator* iterator) { delete iterator; }
