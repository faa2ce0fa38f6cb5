#pragma once

#include <memory>
#include <vector>

#include "base/record_iterator.h"

namespace basalt::base {

/// All records of `children` in internal order; both directions, and changes of direction at any
/// record. Of equal records (same key and tag) the earlier child's comes first. An error of any
/// child ends the iteration. Owns the children; a single child is given back as it is.
///
/// Cost of a step: the child's own, and ceil(log2(children)) comparisons, or one where the same
/// child goes on; each is of 8 cached bytes of the keys, behind what they share, unless those are
/// equal. A change of direction seeks every other child.
std::unique_ptr<base::RecordIterator> NewMergingIterator(
    std::vector<std::unique_ptr<base::RecordIterator>> children);

}  // namespace basalt::base
