// Any bytes as segments of postings: refused, or read as postings that ascend, are the same when
// they are written anew, and merge as the newest says. Seeks find what a walk finds.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/merged_postings.h"
#include "text/postings.h"

namespace {

using basalt::text::kNoDocument;
using basalt::text::PostingsCursor;
using basalt::text::SegmentCursor;

struct Entry {
  uint32_t length = 0;
  std::vector<uint32_t> positions{};

  friend bool operator==(const Entry&, const Entry&) = default;
};
using Model = std::map<uint64_t, Entry>;

Model ReadAll(PostingsCursor* cursor) {
  Model model;
  for (; cursor->document() != kNoDocument; cursor->Next()) {
    Entry entry{.length = cursor->length()};
    cursor->ReadPositions(&entry.positions);
    BASALT_CHECK(entry.positions.size() == cursor->frequency());
    BASALT_CHECK(cursor->frequency() <= cursor->frequency_max());
    BASALT_CHECK(cursor->frequency() == 0 || cursor->length() >= cursor->length_min());
    BASALT_CHECK(model.empty() || model.rbegin()->first < cursor->document());
    model.emplace_hint(model.end(), cursor->document(), std::move(entry));
  }
  return model;
}

std::string SegmentOf(const Model& model) {
  basalt::text::PostingsBuilder builder;
  for (const auto& [document, entry] : model) {
    builder.Add({document, entry.length, entry.positions});
  }
  return builder.Finish();
}

/// Whether it is a whole segment; `model` gets what is readable.
bool Read(std::string_view segment, Model* model) {
  SegmentCursor cursor(segment);
  *model = ReadAll(&cursor);
  if (!model->empty()) {
    const std::string again = SegmentOf(*model);
    SegmentCursor rewritten(again);
    BASALT_CHECK(ReadAll(&rewritten) == *model);
    const uint64_t target = model->rbegin()->first / 2;
    SegmentCursor seeking(segment);
    seeking.Seek(target);
    BASALT_CHECK(!cursor.status().ok() || seeking.document() == model->lower_bound(target)->first);
  }
  return cursor.status().ok();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // Copies, so that a read beyond either is seen.
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::string newer(bytes.substr(0, data[0]));
  const std::string older(bytes.substr(newer.size()));
  Model of_newer;
  Model of_older;
  const bool newer_is_whole = Read(newer, &of_newer);
  const bool both = Read(older, &of_older) && newer_is_whole;
  const auto merged = basalt::text::MergeSegments({newer, older}, /*is_oldest=*/false);
  BASALT_CHECK(merged.has_value() == both);
  if (!both) return 0;
  of_newer.merge(of_older);
  if (of_newer.empty()) {
    BASALT_CHECK(merged->empty());
  } else {
    BASALT_CHECK(*merged == SegmentOf(of_newer));
  }
  return 0;
}
