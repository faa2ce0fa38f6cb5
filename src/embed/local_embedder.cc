#include "embed/local_embedder.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/hexadecimal.h"
#include "base/out_of_memory.h"
#include "embed/json_file.h"
#include "embed/safetensors.h"

namespace basalt::embed {
namespace {

constexpr uint64_t kModelBytesMax = uint64_t{4} << 30;
constexpr uint64_t kVocabularyBytesMax = 64 << 20;
constexpr uint64_t kSettingsBytesMax = 1 << 20;

/// What the optional files say.
struct Settings {
  bool has_case = false;
  size_t tokens_max = 0;  // 0: what the model has positions for
};

/// A JSON object of the folder. An absent file is an empty object.
Result<boost::json::object> ReadSettings(io::FileSystem* fs, const std::string& path) {
  BASALT_ASSIGN_OR_RETURN(const bool exists, fs->Exists(path));
  if (!exists) return boost::json::object();
  BASALT_ASSIGN_OR_RETURN(const std::string json, io::ReadWholeFile(fs, path, kSettingsBytesMax));
  return ParseObject(json, "'" + path + "'");
}

Result<Settings> ReadSettings(io::FileSystem* fs, std::string_view folder) {
  Settings settings;
  BASALT_ASSIGN_OR_RETURN(const boost::json::object tokenizer,
                          ReadSettings(fs, io::JoinPath(folder, "tokenizer_config.json")));
  if (const boost::json::value* value = tokenizer.if_contains("do_lower_case")) {
    settings.has_case = value->is_bool() && !value->get_bool();
  }
  BASALT_ASSIGN_OR_RETURN(const boost::json::object sentences,
                          ReadSettings(fs, io::JoinPath(folder, "sentence_bert_config.json")));
  if (const boost::json::value* value = sentences.if_contains("max_seq_length")) {
    settings.tokens_max = AsSize(*value).value_or(0);
  }
  const std::string path = io::JoinPath(io::JoinPath(folder, "1_Pooling"), "config.json");
  BASALT_ASSIGN_OR_RETURN(const boost::json::object pooling, ReadSettings(fs, path));
  const boost::json::value* const mean = pooling.if_contains("pooling_mode_mean_tokens");
  if (!pooling.empty() && (mean == nullptr || !mean->is_bool() || !mean->get_bool())) {
    return Status(
        StatusCode::kUnsupported,
        "reading '" + path + "': only models with pooling_mode_mean_tokens are supported");
  }
  return settings;
}

}  // namespace

Result<std::shared_ptr<const Embedder>> LocalEmbedder::Open(io::FileSystem* fs,
                                                            std::string_view folder,
                                                            const Kernels& kernels) {
  const std::string config_path = io::JoinPath(folder, "config.json");
  BASALT_ASSIGN_OR_RETURN(const std::string config,
                          io::ReadWholeFile(fs, config_path, kSettingsBytesMax));
  BASALT_ASSIGN_OR_RETURN(const BertShape shape, BertShape::Parse(config, config_path));
  BASALT_ASSIGN_OR_RETURN(const Settings settings, ReadSettings(fs, folder));

  const std::string vocabulary_path = io::JoinPath(folder, "vocab.txt");
  BASALT_ASSIGN_OR_RETURN(const std::string vocabulary,
                          io::ReadWholeFile(fs, vocabulary_path, kVocabularyBytesMax));
  BASALT_ASSIGN_OR_RETURN(WordPieces pieces,
                          WordPieces::Parse(vocabulary, {.has_case = settings.has_case}));
  if (pieces.vocabulary_size() > shape.vocabulary_size) {
    return Status(StatusCode::kCorruption, "reading '" + vocabulary_path + "': it has " +
                                               std::to_string(pieces.vocabulary_size()) +
                                               " pieces, and the model " +
                                               std::to_string(shape.vocabulary_size));
  }

  const std::string model_path = io::JoinPath(folder, "model.safetensors");
  BASALT_ASSIGN_OR_RETURN(const std::string bytes,
                          io::ReadWholeFile(fs, model_path, kModelBytesMax));
  BASALT_ASSIGN_OR_RETURN(const Safetensors tensors, Safetensors::Parse(bytes, model_path));
  BASALT_ASSIGN_OR_RETURN(Bert bert, Bert::Load(tensors, shape, kernels));

  const size_t wanted = settings.tokens_max == 0 ? shape.positions_max : settings.tokens_max;
  const uint64_t hash =
      base::Hash(bytes, base::Hash(vocabulary, base::Hash(config, settings.has_case ? 1 : 0)));
  EmbeddingModel model = {.id = "bert-" + base::Hexadecimal(hash),
                          .dimension = shape.hidden_size,
                          .tokens_max = std::clamp<size_t>(wanted, 2, shape.positions_max),
                          .normalized = true};
  return std::shared_ptr<const Embedder>(
      new LocalEmbedder(std::move(model), std::move(pieces), std::move(bert)));
}

std::unique_ptr<Bert::Scratch> LocalEmbedder::TakeScratch() const {
  const std::lock_guard lock(mutex_);
  if (free_scratch_.empty()) {
    free_scratch_.reserve(free_scratch_.capacity() + 1);  // Giving it back must not fail.
    return std::make_unique<Bert::Scratch>();
  }
  std::unique_ptr<Bert::Scratch> scratch = std::move(free_scratch_.back());
  free_scratch_.pop_back();
  return scratch;
}

Status LocalEmbedder::DoEmbed(std::span<const std::string_view> texts, float* vectors) const {
  std::unique_ptr<Bert::Scratch> scratch = TakeScratch();
  std::vector<uint32_t> ids;
  std::vector<uint32_t> of_text;
  std::vector<size_t> lengths;
  const auto flush = [&] {
    bert_.Embed(ids, lengths, scratch.get(), vectors);
    vectors += lengths.size() * model().dimension;
    ids.clear();
    lengths.clear();
  };
  for (const std::string_view text : texts) {
    pieces_.Encode(text, model().tokens_max, &of_text);
    if (!ids.empty() && ids.size() + of_text.size() > kRowsMax) flush();
    ids.insert(ids.end(), of_text.begin(), of_text.end());
    lengths.push_back(of_text.size());
  }
  flush();
  const std::lock_guard lock(mutex_);
  free_scratch_.push_back(std::move(scratch));
  return Status();
}

}  // namespace basalt::embed

namespace basalt {

Result<std::shared_ptr<const Embedder>> OpenLocalEmbedder(std::string_view folder) {
  return base::OrOutOfMemory([&] {
    return embed::LocalEmbedder::Open(io::FileSystem::Posix(), folder, embed::ProcessorKernels());
  });
}

}  // namespace basalt
