#include "table/zstd_block.h"

#include <zdict.h>
#include <zstd.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "base/thread_kept.h"

namespace basalt::table {
namespace {

// Of one block, for a dictionary.
constexpr size_t kSampleBytesMax = 64 << 10;
// Below it a dictionary would not earn its place in the file.
constexpr size_t kAllSamplesBytesMin = 256 << 10;
constexpr size_t kSampleBytesForADictionaryByte = 32;
// Above it a dictionary saves hardly more, and compression takes several times as long
// (docs/table.md).
constexpr int kLevel = 3;

template <class T>
T* NotNull(T* made) {
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

// Some 100 KB for each thread that reads such blocks: setting one up takes longer than a block.
struct Decompressor {
  std::unique_ptr<ZSTD_DCtx, FreeContext> context{NotNull(ZSTD_createDCtx())};
};

}  // namespace

std::string TrainDictionary(std::span<const std::string_view> blocks, size_t bytes_max) {
  std::string samples;
  std::vector<size_t> sizes;
  for (const std::string_view block : blocks) {
    const std::string_view sample = block.substr(0, kSampleBytesMax);
    samples.append(sample);
    sizes.push_back(sample.size());
  }
  if (samples.size() < kAllSamplesBytesMin) return {};
  std::string dictionary(std::min(bytes_max, samples.size() / kSampleBytesForADictionaryByte),
                         '\0');
  const size_t size = ZDICT_trainFromBuffer(dictionary.data(), dictionary.size(), samples.data(),
                                            sizes.data(), static_cast<unsigned>(sizes.size()));
  dictionary.resize(ZDICT_isError(size) != 0 ? 0 : size);
  return dictionary;
}

void ZstdCompressor::Free::operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
void ZstdCompressor::Free::operator()(ZSTD_CDict* dictionary) const noexcept {
  ZSTD_freeCDict(dictionary);
}

ZstdCompressor::ZstdCompressor(std::string_view dictionary) : context_(NotNull(ZSTD_createCCtx())) {
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_dictIDFlag, 0);
  if (dictionary.empty()) return;
  dictionary_.reset(NotNull(ZSTD_createCDict(dictionary.data(), dictionary.size(), kLevel)));
  ZSTD_CCtx_refCDict(context_.get(), dictionary_.get());
}

size_t ZstdCompressor::Compress(std::string_view raw, char* out, size_t bytes_max) noexcept {
  const size_t size = ZSTD_compress2(context_.get(), out, bytes_max, raw.data(), raw.size());
  return ZSTD_isError(size) != 0 ? 0 : size;
}

void ZstdDictionary::Free::operator()(ZSTD_DDict* dictionary) const noexcept {
  ZSTD_freeDDict(dictionary);
}

Result<ZstdDictionary> ZstdDictionary::Create(std::string_view bytes) {
  // Any bytes can serve as a dictionary; ours are trained ones.
  if (ZSTD_getDictID_fromDict(bytes.data(), bytes.size()) == 0) {
    return Status(StatusCode::kCorruption, "the bytes are not a dictionary");
  }
  ZstdDictionary dictionary;
  dictionary.dictionary_.reset(ZSTD_createDDict(bytes.data(), bytes.size()));
  if (dictionary.empty()) {
    return Status(StatusCode::kCorruption,
                  "the dictionary is malformed, or there is no memory for it");
  }
  return dictionary;
}

size_t ZstdDictionary::memory_bytes() const noexcept {
  return ZSTD_sizeof_DDict(dictionary_.get());
}

bool ZstdDictionary::Decompress(std::string_view stored, std::span<char> raw) const {
  const base::ThreadKept<Decompressor> decompressor;
  ZSTD_DCtx* const context = decompressor->context.get();
  const size_t size =
      empty() ? ZSTD_decompressDCtx(context, raw.data(), raw.size(), stored.data(), stored.size())
              : ZSTD_decompress_usingDDict(context, raw.data(), raw.size(), stored.data(),
                                           stored.size(), dictionary_.get());
  return size == raw.size();
}

}  // namespace basalt::table
