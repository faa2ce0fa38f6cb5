#pragma once

#include <memory>

#include "base/range_cover.h"
#include "base/record_iterator.h"

namespace basalt::base {

/// What `source` has, without the stretches of keys in which range deletes hide all of it: they are
/// passed by a seek each, however many records lie there. No record of `source` may have a greater
/// sequence number than `newest`. Records that are hidden while newer ones of the same stretch
/// need not be are still given. `ranges` must outlive what is returned; gives `source` itself back
/// where nothing could be left out.
std::unique_ptr<RecordIterator> WithoutHiddenStretches(std::unique_ptr<RecordIterator> source,
                                                       const RangeCovers* ranges,
                                                       SequenceNumber newest);

}  // namespace basalt::base
