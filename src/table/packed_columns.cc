#include "table/packed_columns.h"

#include <cstdint>
#include <cstring>
#include <memory>

#include "base/coding.h"
#include "table/block.h"

namespace basalt::table {
namespace {

/// 8 numbers, byte k of number i becomes byte i of number k.
void Transpose(uint64_t (&rows)[8]) noexcept {
  const auto swap = [&](size_t distance, int shift, uint64_t mask) {
    for (size_t i = 0; i < 8; ++i) {
      if ((i & distance) != 0) continue;
      const uint64_t differing = (rows[i] >> shift ^ rows[i + distance]) & mask;
      rows[i] ^= differing << shift;
      rows[i + distance] ^= differing;
    }
  };
  swap(4, 32, 0x0000'0000'FFFF'FFFF);
  swap(2, 16, 0x0000'FFFF'0000'FFFF);
  swap(1, 8, 0x00FF'00FF'00FF'00FF);
}

enum class Stored : uint8_t { kWhole, kDifferences };

template <std::unsigned_integral Number>
void PackSlowly(const char* numbers, size_t from, size_t n, Stored stored, char* planes) noexcept {
  for (size_t i = from; i < n; ++i) {
    auto number = base::Load<Number>(numbers + i * sizeof(Number));
    if (stored == Stored::kDifferences && i > 0) {
      number = static_cast<Number>(number - base::Load<Number>(numbers + (i - 1) * sizeof(Number)));
    }
    for (size_t k = 0; k < sizeof(Number); ++k) {
      planes[k * n + i] = static_cast<char>(number >> 8 * k);
    }
  }
}

template <std::unsigned_integral Number>
void UnpackSlowly(const char* planes, size_t from, size_t n, Stored stored,
                  char* numbers) noexcept {
  for (size_t i = from; i < n; ++i) {
    Number number = 0;
    for (size_t k = 0; k < sizeof(Number); ++k) {
      number =
          static_cast<Number>(number | Number{static_cast<uint8_t>(planes[k * n + i])} << 8 * k);
    }
    if (stored == Stored::kDifferences && i > 0) {
      number = static_cast<Number>(number + base::Load<Number>(numbers + (i - 1) * sizeof(Number)));
    }
    base::Store(numbers + i * sizeof(Number), number);
  }
}

void PackWords(const char* words, size_t n, Stored stored, char* planes) noexcept {
  uint64_t before = 0;
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t rows[8];
    std::memcpy(rows, words + i * sizeof(uint64_t), sizeof rows);
    if (stored == Stored::kDifferences) {
      const uint64_t last = rows[7];
      for (size_t k = 7; k > 0; --k) rows[k] -= rows[k - 1];
      rows[0] -= before;
      before = last;
    }
    Transpose(rows);
    for (size_t k = 0; k < 8; ++k) base::Store(planes + k * n + i, rows[k]);
  }
  PackSlowly<uint64_t>(words, i, n, stored, planes);
}

void UnpackWords(const char* planes, size_t n, Stored stored, char* words) noexcept {
  uint64_t before = 0;
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t rows[8];
    for (size_t k = 0; k < 8; ++k) rows[k] = base::Load<uint64_t>(planes + k * n + i);
    Transpose(rows);
    if (stored == Stored::kDifferences) {
      for (uint64_t& row : rows) row = before += row;
    }
    std::memcpy(words + i * sizeof(uint64_t), rows, sizeof rows);
  }
  UnpackSlowly<uint64_t>(planes, i, n, stored, words);
}

/// Calls `column(offset, bytes of a number, stored)` for each column of numbers, in order; for none
/// if the header is not that of a block.
template <class Column>
void ForEachColumn(std::string_view block, const Column& column) {
  if (block.size() < Block::kHeaderBytes) return;
  const uint64_t n = base::Load<uint32_t>(block.data());
  const auto flags = base::Load<uint32_t>(block.data() + 4);
  const bool wide = (flags & Block::kFlagWide) != 0;
  const bool timed = (flags & Block::kFlagTimed) != 0;
  if ((flags & ~(Block::kFlagWide | Block::kFlagTimed)) != 0) return;
  if (Block::kHeaderBytes + n * Block::RecordBytes(wide, timed) > block.size()) return;
  const size_t end_bytes = wide ? sizeof(uint32_t) : sizeof(uint16_t);
  size_t at = Block::kHeaderBytes;
  const auto next = [&](size_t number_bytes, Stored stored) {
    column(at, number_bytes, stored);
    at += n * number_bytes;
  };
  next(sizeof(uint64_t), Stored::kDifferences);
  next(sizeof(uint64_t), Stored::kWhole);
  if (timed) next(sizeof(uint64_t), Stored::kWhole);
  next(end_bytes, Stored::kDifferences);
  next(end_bytes, Stored::kDifferences);
}

}  // namespace

void PackColumns(std::string_view raw, char* out) noexcept {
  const size_t n = base::Load<uint32_t>(raw.data());
  size_t end = Block::kHeaderBytes;
  std::memcpy(out, raw.data(), end);
  ForEachColumn(raw, [&](size_t at, size_t number_bytes, Stored stored) {
    const char* const numbers = raw.data() + at;
    if (number_bytes == sizeof(uint64_t)) {
      PackWords(numbers, n, stored, out + at);
    } else if (number_bytes == sizeof(uint32_t)) {
      PackSlowly<uint32_t>(numbers, 0, n, stored, out + at);
    } else {
      PackSlowly<uint16_t>(numbers, 0, n, stored, out + at);
    }
    end = at + n * number_bytes;
  });
  std::memcpy(out + end, raw.data() + end, raw.size() - end);
}

void UnpackColumns(std::span<char> block) {
  if (block.size() < Block::kHeaderBytes) return;
  const size_t n = base::Load<uint32_t>(block.data());
  std::unique_ptr<char[]> planes;  // Of one column after the other; the first is of the widest.
  ForEachColumn({block.data(), block.size()}, [&](size_t at, size_t number_bytes, Stored stored) {
    if (planes == nullptr) planes = std::make_unique_for_overwrite<char[]>(n * sizeof(uint64_t));
    char* const numbers = block.data() + at;
    std::memcpy(planes.get(), numbers, n * number_bytes);
    if (number_bytes == sizeof(uint64_t)) {
      UnpackWords(planes.get(), n, stored, numbers);
    } else if (number_bytes == sizeof(uint32_t)) {
      UnpackSlowly<uint32_t>(planes.get(), 0, n, stored, numbers);
    } else {
      UnpackSlowly<uint16_t>(planes.get(), 0, n, stored, numbers);
    }
  });
}

}  // namespace basalt::table
