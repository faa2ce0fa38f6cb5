#include "vector/hnsw_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#include "base/check.h"
#include "base/coding.h"
#include "base/hash.h"
#include "vector/graph_audit.h"

namespace basalt::vector {
namespace {

constexpr size_t kHeadBytesUsed = 40;

/// Collects what belongs under one checksum, and hands it on.
class Writer {
 public:
  Writer(uint64_t id, const CheckpointSink& sink) : id_(id), sink_(sink) {}

  std::string& part() noexcept { return part_; }
  Status Seal() {
    base::Append(&part_, base::Checksum(id_, offset_, part_));
    offset_ += part_.size();
    Status status = sink_(part_);
    part_.clear();
    return status;
  }

 private:
  const uint64_t id_;
  const CheckpointSink& sink_;
  uint64_t offset_ = 0;
  std::string part_;
};

void AppendLinks(const GraphNodes& nodes, uint32_t level, uint32_t slot, uint32_t slots,
                 std::string* out) {
  const size_t at = out->size();
  out->push_back('\0');
  uint8_t count = 0;
  ForEachLink(nodes.Links(level, slot), [&](uint32_t word) {
    if (Link::SlotOf(word) >= slots) return;
    base::Append(out, word);
    ++count;
  });
  (*out)[at] = static_cast<char>(count);
}

void AppendSlot(const GraphNodes& nodes, uint32_t slot, uint32_t slots, std::string* out) {
  // Whoever changes links or rings holds this lock.
  const std::lock_guard lock(nodes.LockOf(slot));
  const SlotState state = nodes.State(slot);
  BASALT_CHECK(state != SlotState::kCondemned);
  out->push_back(static_cast<char>(state));
  if (state == SlotState::kFree) return;
  out->append(reinterpret_cast<const char*>(nodes.Code(slot)), nodes.code_bytes());
  uint32_t next = nodes.NextInRing(slot);
  while (next >= slots) next = nodes.NextInRing(next);
  base::Append(out, next);
  if (!IsNode(state)) return;
  for (uint32_t level = 0; level <= nodes.LevelOf(slot); ++level) {
    AppendLinks(nodes, level, slot, slots, out);
  }
}

/// Takes bytes from the front, if there are enough.
bool TakeBytes(std::string_view* from, size_t count, const char** bytes) noexcept {
  if (from->size() < count) return false;
  *bytes = from->data();
  from->remove_prefix(count);
  return true;
}

template <class Number>
bool TakeNumber(std::string_view* from, Number* number) noexcept {
  const char* bytes;
  if (!TakeBytes(from, sizeof(Number), &bytes)) return false;
  *number = base::Load<Number>(bytes);
  return true;
}

bool ReadLinks(LinkWords words, uint32_t slots, std::string_view* from) noexcept {
  uint8_t count;
  if (!TakeNumber(from, &count) || count > words.size()) return false;
  for (size_t i = 0; i < count; ++i) {
    uint32_t word;
    if (!TakeNumber(from, &word) || Link::SlotOf(word) >= slots) return false;
    words[i].store(word, std::memory_order_relaxed);
  }
  for (size_t i = count; i < words.size(); ++i) {
    words[i].store(Link::kNone, std::memory_order_relaxed);
  }
  return true;
}

}  // namespace

Status WriteCheckpoint(const GraphNodes& nodes, const CodeBook& book, uint32_t slots,
                       GraphNodes::Entry entry, uint64_t id, const CheckpointSink& sink) {
  Writer writer(id, sink);
  std::string book_bytes;
  book.AppendTo(&book_bytes);
  std::string& part = writer.part();
  part.append(kCheckpointMagic, sizeof kCheckpointMagic);
  base::Append(&part, kCheckpointVersion);
  base::Append(&part, uint32_t{0});
  base::Append(&part, id);
  base::Append(&part, slots);
  base::Append(&part, entry.slot);
  base::Append(&part, entry.level);
  base::Append(&part, static_cast<uint32_t>(book_bytes.size()));
  part.resize(kCheckpointHeadBytes, '\0');
  part += book_bytes;
  if (Status status = writer.Seal(); !status.ok()) return status;
  for (uint32_t begin = 0; begin < slots; begin += kCheckpointBlockSlots) {
    const uint32_t end = std::min(slots, begin + kCheckpointBlockSlots);
    part.resize(sizeof(uint32_t));
    for (uint32_t slot = begin; slot < end; ++slot) AppendSlot(nodes, slot, slots, &part);
    base::Store(part.data(), static_cast<uint32_t>(part.size() - sizeof(uint32_t)));
    if (Status status = writer.Seal(); !status.ok()) return status;
  }
  return Status();
}

Status CheckpointReader::Corrupt(std::string_view what) const {
  return Status(StatusCode::kCorruption, "a checkpoint of vectors is damaged at byte " +
                                             std::to_string(bytes_.size() - rest_.size()) + " (" +
                                             std::string(what) + "): build it from the vectors");
}

Status CheckpointReader::TakeChecksum(const char* begin) {
  const auto offset = static_cast<uint64_t>(begin - bytes_.data());
  const std::string_view covered(begin, static_cast<size_t>(rest_.data() - begin));
  uint64_t checksum;
  if (!TakeNumber(&rest_, &checksum)) return Corrupt("it is cut short");
  if (checksum != base::Checksum(id_, offset, covered)) return Corrupt("wrong checksum");
  return Status();
}

Result<CodeBook> CheckpointReader::ReadBook() {
  if (rest_.size() < kCheckpointHeadBytes) return Corrupt("it is cut short");
  const char* const head = rest_.data();
  if (std::memcmp(head, kCheckpointMagic, sizeof kCheckpointMagic) != 0) {
    return Corrupt("it does not begin as one");
  }
  const auto version = base::Load<uint32_t>(head + 8);
  const auto features = base::Load<uint32_t>(head + 12);
  id_ = base::Load<uint64_t>(head + 16);
  slots_ = base::Load<uint32_t>(head + 24);
  entry_ = {base::Load<uint32_t>(head + 28), base::Load<uint32_t>(head + 32)};
  const auto book_bytes = base::Load<uint32_t>(head + 36);
  rest_.remove_prefix(kCheckpointHeadBytes);
  if (rest_.size() < book_bytes) return Corrupt("it is cut short");
  std::string_view book_part = rest_.substr(0, book_bytes);
  rest_.remove_prefix(book_bytes);
  BASALT_RETURN_IF_ERROR(TakeChecksum(head));
  if (version != kCheckpointVersion || features != 0) {
    return Status(StatusCode::kUnsupported,
                  "a checkpoint of vectors has version " + std::to_string(version) +
                      " and features " + std::to_string(features) + "; this is version " +
                      std::to_string(kCheckpointVersion) + " without any: build it again");
  }
  if (std::any_of(head + kHeadBytesUsed, head + kCheckpointHeadBytes,
                  [](char byte) { return byte != 0; })) {
    return Corrupt("its head");
  }
  Result<CodeBook> book = CodeBook::Parse(&book_part);
  if (!book || !book_part.empty()) return Corrupt("its code book");
  return book;
}

Status CheckpointReader::ReadSlot(uint32_t slot, std::string_view* block, GraphNodes* nodes) {
  uint8_t state_byte;
  if (!TakeNumber(block, &state_byte)) return Corrupt("a block ends early");
  const auto state = static_cast<SlotState>(state_byte);
  if (state > SlotState::kRemovedDuplicate) return Corrupt("an unknown state");
  nodes->SetSpecial(slot, true);
  nodes->SetNextInRing(slot, slot);
  if (state == SlotState::kFree) return Status();
  const char* code;
  uint32_t next;
  if (!TakeBytes(block, nodes->code_bytes(), &code) || !TakeNumber(block, &next)) {
    return Corrupt("a block ends early");
  }
  if (std::any_of(code, code + nodes->code_bytes(), [](char byte) { return byte < 0; })) {
    return Corrupt("no code");
  }
  if (next >= slots_) return Corrupt("a ring");
  std::memcpy(nodes->Code(slot), code, nodes->code_bytes());
  nodes->SetNextInRing(slot, next);
  nodes->SetState(slot, state);
  if (!IsNode(state)) return Status();
  nodes->SetSpecial(slot, state != SlotState::kLive || next != slot);
  for (uint32_t level = 0; level <= nodes->LevelOf(slot); ++level) {
    if (!ReadLinks(nodes->Links(level, slot), slots_, block)) return Corrupt("links");
  }
  return Status();
}

Status CheckpointReader::ReadBlock(uint32_t begin, uint32_t end, GraphNodes* nodes) {
  const char* const at = rest_.data();
  uint32_t size;
  if (!TakeNumber(&rest_, &size) || rest_.size() < size) return Corrupt("it is cut short");
  std::string_view block = rest_.substr(0, size);
  rest_.remove_prefix(size);
  BASALT_RETURN_IF_ERROR(TakeChecksum(at));
  nodes->Grow(end);
  for (uint32_t slot = begin; slot < end; ++slot) {
    BASALT_RETURN_IF_ERROR(ReadSlot(slot, &block, nodes));
  }
  return block.empty() ? Status() : Corrupt("a block is too long");
}

Status CheckpointReader::ReadNodes(GraphNodes* nodes) {
  if (slots_ > kSlotsMax) return Corrupt("more slots than there can be");
  for (uint32_t begin = 0; begin < slots_; begin += kCheckpointBlockSlots) {
    const uint32_t end = std::min(slots_, begin + kCheckpointBlockSlots);
    BASALT_RETURN_IF_ERROR(ReadBlock(begin, end, nodes));
  }
  if (!rest_.empty()) return Corrupt("more bytes after its end");
  nodes->set_entry(entry_);
  const GraphAudit audit = AuditGraph(*nodes);
  return audit.fault.empty() ? Status() : Corrupt(audit.fault);
}

}  // namespace basalt::vector
