#include "retrieve/posting_record.h"

#include <bit>

#include "basalt/key.h"
#include "base/coding.h"

namespace basalt::retrieve {
namespace {

void AppendVarint(std::string* out, uint64_t value) {
  char bytes[base::kVarintBytesMax];
  out->append(bytes, static_cast<size_t>(base::StoreVarint(bytes, value) - bytes));
}

constexpr int kChangesShift = 40;

void AppendBigEndian(std::string* key, uint64_t number) {
  number = std::byteswap(number);
  key->append(reinterpret_cast<const char*>(&number), sizeof number);
}

Status Malformed(std::string_view what) {
  return Status(StatusCode::kCorruption,
                std::string(what) +
                    " of a text index is malformed; drop its keyspace and put the documents again");
}

}  // namespace

std::string EncodePosting(const PostingRecord& posting) {
  std::string out;
  if (posting.positions.empty()) return out;
  AppendVarint(&out, posting.length);
  uint32_t next = 0;
  for (const uint32_t position : posting.positions) {
    AppendVarint(&out, position - next);
    next = position + 1;
  }
  return out;
}

Result<PostingRecord> DecodePosting(std::string_view bytes) {
  PostingRecord posting;
  if (bytes.empty()) return posting;
  base::Decoder in(bytes);
  const uint64_t length = in.ReadVarint();
  uint64_t next = 0;
  while (in.ok() && !in.AtEnd()) {
    const uint64_t step = in.ReadVarint();
    // The greatest position is left out, so that the next one does not wrap.
    if (step >= UINT32_MAX - next) return Malformed("a posting");
    posting.positions.push_back(static_cast<uint32_t>(next + step));
    next += step + 1;
  }
  if (!in.ok() || posting.positions.empty() || length > UINT32_MAX ||
      length < posting.positions.size()) {
    return Malformed("a posting");
  }
  posting.length = static_cast<uint32_t>(length);
  return posting;
}

std::string EncodeDocument(const DocumentRecord& document) {
  std::string out;
  AppendVarint(&out, document.length);
  for (const std::string& term : document.terms) {
    AppendVarint(&out, term.size());
    out += term;
  }
  return out;
}

Result<DocumentRecord> DecodeDocument(std::string_view bytes) {
  base::Decoder in(bytes);
  DocumentRecord document{.length = in.ReadVarint()};
  while (in.ok() && !in.AtEnd()) {
    const uint64_t size = in.ReadVarint();
    document.terms.emplace_back(in.ReadBytes(size));
    if (!in.ok()) break;
    const size_t count = document.terms.size();
    if (count > 1 && document.terms[count - 2] >= document.terms[count - 1]) {
      return Malformed("a document");
    }
  }
  if (!in.ok()) return Malformed("a document");
  return document;
}

std::string TermCounterOperand(int64_t documents, int64_t changes) {
  const uint64_t sum =
      static_cast<uint64_t>(documents) + (static_cast<uint64_t>(changes) << kChangesShift);
  std::string operand;
  base::Append(&operand, sum);
  return operand;
}

Result<TermCounter> DecodeTermCounter(std::string_view bytes) {
  if (bytes.size() != sizeof(uint64_t)) return Malformed("a counter");
  const auto sum = base::Load<uint64_t>(bytes.data());
  return TermCounter{.documents = sum & ((uint64_t{1} << kChangesShift) - 1),
                     .changes = sum >> kChangesShift};
}

std::string DocumentKey(uint64_t document) {
  std::string key = "d";
  AppendBigEndian(&key, document);
  return key;
}
std::string TermKey(char tag, std::string_view term) {
  std::string key(1, tag);
  KeyWriter(&key).String(term);
  return key;
}
std::string PostingKey(char tag, std::string_view term, uint64_t document) {
  std::string key = TermKey(tag, term);
  AppendBigEndian(&key, document);
  return key;
}

Result<uint64_t> DocumentOf(std::string_view key, std::string_view prefix) {
  if (!key.starts_with(prefix) || key.size() != prefix.size() + sizeof(uint64_t)) {
    return Malformed("a key");
  }
  return std::byteswap(base::Load<uint64_t>(key.data() + prefix.size()));
}

}  // namespace basalt::retrieve
