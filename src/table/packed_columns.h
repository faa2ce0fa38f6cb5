#pragma once

#include <span>
#include <string_view>

// A block's columns of numbers in an order that compresses better. LZ4 finds repetitions of at
// least four bytes and has no other means: of numbers that lie side by side, each with a byte or
// two that change and others that do not, it makes a repetition of some bytes and some single
// bytes, six for each tag or key prefix. Taken apart, what does not change is one long repetition.
//
//   column        as it is packed
//   -----------   -----------------------------------------------------
//   key prefixes  each less the one before it, in planes
//   tags, times   in planes
//   ends          each less the one before it, in planes
//   all else      as it is (see Block)
//
// Planes: the lowest bytes of all numbers, then all their second bytes, and so on. Differences are
// modulo 2^(bits of a number). Everything stays where it was and as large as it was.
//
// Cost: 14 ns a record, and 9 to unpack; LZ4 saves as much (docs/table.md).

namespace basalt::table {

/// Writes the packed form of a block in raw form to `out`, which has raw.size() bytes.
void PackColumns(std::string_view raw, char* out) noexcept;

/// Makes the raw form of the packed one, in place. Bytes whose header is not that of a block are
/// left as they are: Block::Parse says what is wrong. Throws std::bad_alloc.
void UnpackColumns(std::span<char> block);

}  // namespace basalt::table
