// Exits with 0 when the library of embeddings is there and knows that a folder is not.

#include <basalt/embed.h>

int main() {
  const auto embedder = basalt::OpenLocalEmbedder("/nowhere/at/all");
  const bool is_refused = embedder.status().code() == basalt::StatusCode::kNotFound;
  return is_refused && basalt::NoEmbedder()->model().dimension == 0 ? 0 : 1;
}
