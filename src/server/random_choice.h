#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/view.h"

namespace basalt::server {

/// Some of `size` things, as SRANDMEMBER and its kin count: `wanted` different ones in random
/// order; or, if that is negative, its amount with repetitions, at most `repeated_max`.
std::vector<size_t> ChooseRandomly(size_t size, int64_t wanted, uint64_t repeated_max);

/// Goes to some record of the walk, in a time that does not grow with their number. A record is as
/// likely as the gap before it is wide, in the eight bytes behind what all keys have in common.
void SeekToRandom(Walk* walk);

}  // namespace basalt::server
