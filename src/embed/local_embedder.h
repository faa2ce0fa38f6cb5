#pragma once

// src/embed: vectors of texts by a BERT model from files. Read LocalEmbedder first, then Bert
// (bert.h).

#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "basalt/embed.h"
#include "embed/bert.h"
#include "embed/word_pieces.h"
#include "io/file_system.h"

namespace basalt::embed {

/// A model of files (OpenLocalEmbedder), by the kernels of one instruction set.
///
/// Texts go through the model some at a time, up to kRowsMax tokens together: their weights are
/// read once for all of these. Scratch memory is kept for as many threads as have used the embedder
/// at once; `mutex_` guards the list of what is free, and is not held while a thread computes.
class LocalEmbedder final : public Embedder {
 public:
  static constexpr size_t kRowsMax = 512;

  static Result<std::shared_ptr<const Embedder>> Open(io::FileSystem* fs, std::string_view folder,
                                                      const Kernels& kernels);

 private:
  LocalEmbedder(EmbeddingModel model, WordPieces pieces, Bert bert)
      : Embedder(std::move(model)), pieces_(std::move(pieces)), bert_(std::move(bert)) {}

  Status DoEmbed(std::span<const std::string_view> texts, float* vectors) const override;
  std::unique_ptr<Bert::Scratch> TakeScratch() const;

  WordPieces pieces_;
  Bert bert_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Bert::Scratch>> free_scratch_;
};

}  // namespace basalt::embed
