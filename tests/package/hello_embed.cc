// Links the library of embeddings. Embeds a text if there is a model in the working folder;
// elsewhere a folder without a model is an error.

#include <basalt/embed.h>

int main() {
  const auto embedder = basalt::OpenLocalEmbedder("models/all-MiniLM-L6-v2");
  if (embedder.ok()) {
    const auto vector = (*embedder)->Embed("how do I reset a password").value();
    return vector.size() == (*embedder)->model().dimension ? 0 : 1;
  }
  const bool is_refused = embedder.status().code() == basalt::StatusCode::kNotFound;
  return is_refused && basalt::NoEmbedder()->model().dimension == 0 ? 0 : 1;
}
