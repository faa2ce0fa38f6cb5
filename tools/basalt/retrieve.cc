#include <string>
#include <string_view>

#include "tools/basalt/document.h"
#include "tools/basalt/figures.h"
#include "tools/basalt/open_corpus.h"
#include "tools/basalt/open_store.h"
#include "tools/basalt/retrieval.h"
#include "tools/basalt/text_format.h"

namespace basalt::tools {
namespace {

constexpr int kScoreDecimals = 4;

boost::json::value ScoreValue(const std::optional<double>& score) {
  if (!score) return nullptr;
  return DecimalValue(*score, kScoreDecimals);
}

Document PassageDocument(const RetrievedPassage& passage, bool explain) {
  Document document{{"source", BytesValue(passage.source)},
                    {"title", BytesValue(passage.title)},
                    {"begin", passage.begin},
                    {"end", passage.end},
                    {"tokens", passage.tokens},
                    {"score", ScoreValue(passage.score)},
                    {"text", BytesValue(passage.text)}};
  if (!explain) return document;
  const ScoreParts& parts = passage.parts;
  document["parts"] = Document{{"bm25", ScoreValue(parts.bm25)},
                               {"dense", ScoreValue(parts.dense)},
                               {"hybrid", ScoreValue(parts.hybrid)},
                               {"page_rank", DecimalValue(parts.page_rank, 8)},
                               {"links", ScoreValue(parts.links)}};
  boost::json::array evidence;
  for (const std::string& id : passage.evidence) evidence.push_back(BytesValue(id));
  document["evidence"] = std::move(evidence);
  return document;
}

Document ResultDocument(const RetrieveResult& result, bool explain) {
  boost::json::array passages;
  for (const RetrievedPassage& passage : result.passages) {
    passages.push_back(PassageDocument(passage, explain));
  }
  return {{"passages", std::move(passages)},
          {"tokens", result.tokens},
          {"duplicates", result.duplicates},
          {"truncated", result.truncated}};
}

/// Text for a terminal: control characters but the end of a line are escaped.
std::string Shown(std::string_view text) {
  std::string shown;
  while (true) {
    const size_t end = text.find('\n');
    shown += "    " + ToText(text.substr(0, end)) + "\n";
    if (end == std::string_view::npos) return shown;
    text = text.substr(end + 1);
  }
}

std::string ShownScore(const char* name, const std::optional<double>& score) {
  return std::string(name) + " " + (score ? FormatDecimal(*score, 3) : "-");
}

std::string PassageText(size_t number, const RetrievedPassage& passage, bool explain) {
  std::string text = std::to_string(number) + ". " + ToText(passage.title) + "  (" +
                     ToText(passage.source) + ", bytes " + std::to_string(passage.begin) + " to " +
                     std::to_string(passage.end) + ")\n";
  if (explain) {
    const ScoreParts& parts = passage.parts;
    text += "   " + ShownScore("score", passage.score) + " = " +
            ShownScore("hybrid", parts.hybrid) + " (" + ShownScore("bm25", parts.bm25) + ", " +
            ShownScore("dense", parts.dense) + ") + " + ShownScore("links", parts.links) + "\n";
    for (size_t i = 0; i < passage.evidence.size(); ++i) {
      text += (i == 0 ? "   by " : " - ") + ToText(passage.evidence[i]);
    }
    if (!passage.evidence.empty()) text += "\n";
  }
  return text + Shown(passage.text);
}

std::string ResultText(const RetrieveResult& result, bool explain) {
  std::string text;
  for (size_t i = 0; i < result.passages.size(); ++i) {
    text += PassageText(i + 1, result.passages[i], explain);
  }
  text += FormatCount(result.passages.size()) + " passages, about " + FormatCount(result.tokens) +
          " tokens";
  if (result.duplicates > 0) text += ", without " + FormatCount(result.duplicates) + " duplicates";
  if (result.truncated) text += ", truncated";
  return text + "\n";
}

}  // namespace

ExitCode Retrieve(const RetrieveVerbOptions& options, Output& out) {
  const Result<std::unique_ptr<Store>> store = OpenStoreToRead(options.path, options.access);
  if (!store) return Report(store.error());
  const Result<OpenedCorpus> opened =
      OpenCorpus(store->get(), options.corpus, CorpusUse::kRetrieve);
  if (!opened) return Report(opened.error());
  const Result<RetrieveResult> result = opened->corpus->Retrieve(
      options.query,
      {.k = options.k, .max_tokens = options.max_tokens, .explain = options.explain});
  if (!result) return Report(result.error());
  out.Write(options.output == OutputFormat::kJson
                ? JsonLine(ResultDocument(*result, options.explain))
                : ResultText(*result, options.explain));
  return result->passages.empty() ? ExitCode::kAbsent : ExitCode::kOk;
}

}  // namespace basalt::tools
