#include "text/stemmer.h"

#include <new>

#if BASALT_STEMMER
#include <libstemmer.h>
#endif

namespace basalt::text {

#if BASALT_STEMMER

std::vector<std::string> Stemmer::Languages() {
  std::vector<std::string> languages;
  for (const char** name = sb_stemmer_list(); *name != nullptr; ++name) {
    languages.emplace_back(*name);
  }
  return languages;
}

Result<std::unique_ptr<Stemmer>> Stemmer::Create(std::string_view language) {
  const std::string name(language);
  sb_stemmer* const stemmer = sb_stemmer_new(name.c_str(), "UTF_8");
  if (stemmer != nullptr) return std::unique_ptr<Stemmer>(new Stemmer(stemmer));
  std::string message = "there is no stemmer for the language '" + name + "'; there are:";
  for (const std::string& known : Languages()) message += " " + known;
  return Status(StatusCode::kInvalidArgument, message);
}

Stemmer::~Stemmer() { sb_stemmer_delete(stemmer_); }

std::string_view Stemmer::Stem(std::string_view word) {
  const sb_symbol* const stem = sb_stemmer_stem(
      stemmer_, reinterpret_cast<const sb_symbol*>(word.data()), static_cast<int>(word.size()));
  if (stem == nullptr) throw std::bad_alloc();
  return {reinterpret_cast<const char*>(stem), static_cast<size_t>(sb_stemmer_length(stemmer_))};
}

#else

std::vector<std::string> Stemmer::Languages() { return {}; }

Result<std::unique_ptr<Stemmer>> Stemmer::Create(std::string_view language) {
  return Status(StatusCode::kUnsupported,
                "stemming for the language '" + std::string(language) +
                    "': this build has no stemmers; build it with libstemmer");
}

Stemmer::~Stemmer() = default;

std::string_view Stemmer::Stem(std::string_view word) { return word; }

#endif

}  // namespace basalt::text
