#include "basalt/embed.h"
#include "base/out_of_memory.h"

namespace basalt {
namespace {

class NoModel final : public Embedder {
 public:
  NoModel() : Embedder({}) {}

 private:
  Status DoEmbed(std::span<const std::string_view>, float*) const override {
    return Status(StatusCode::kFailedPrecondition,
                  "embedding texts: there is no model; open one, as by OpenLocalEmbedder");
  }
};

}  // namespace

Result<std::vector<float>> Embedder::EmbedAll(std::span<const std::string_view> texts) const {
  return base::OrOutOfMemory([&]() -> Result<std::vector<float>> {
    std::vector<float> vectors(texts.size() * model_.dimension);
    Status status = DoEmbed(texts, vectors.data());
    if (!status.ok()) return status;
    return vectors;
  });
}

Result<std::vector<float>> Embedder::Embed(std::string_view text) const {
  return EmbedAll({&text, 1});
}

std::shared_ptr<const Embedder> NoEmbedder() { return std::make_shared<NoModel>(); }

}  // namespace basalt
