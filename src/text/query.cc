#include "text/query.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace basalt::text {
namespace {

bool IsSpace(char byte) noexcept {
  return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/// Adds a child, or to the weight of one that is there.
void AddChild(Query child, Query* query) {
  for (Query& known : query->children) {
    if (known.kind == child.kind && known.term == child.term && known.phrase == child.phrase) {
      known.weight += child.weight;
      return;
    }
  }
  if (query->children.size() < kQueryChildrenMax) query->children.push_back(std::move(child));
}

Query TermOf(const Token& token) {
  const bool is_prefix = token.kind == TokenKind::kSingle;
  return {.kind = is_prefix ? Query::Kind::kPrefix : Query::Kind::kTerm,
          .term = std::string(token.term)};
}

/// Words outside of quotation marks, none of them a prefix.
void AddWords(std::string_view text, Tokenizer* tokenizer, Query* query) {
  tokenizer->Reset(text);
  while (tokenizer->Next()) {
    if (tokenizer->token().kind != TokenKind::kTail) AddChild(TermOf(tokenizer->token()), query);
  }
}

/// A word before a *. Only its last term is a beginning.
void AddPrefix(std::string_view word, Tokenizer* tokenizer, Query* query) {
  tokenizer->Reset(word, /*stems=*/false);
  Query last;
  while (tokenizer->Next()) {
    if (tokenizer->token().kind == TokenKind::kTail) continue;
    if (!last.term.empty()) AddChild(std::exchange(last, {}), query);
    last = TermOf(tokenizer->token());
  }
  if (last.term.empty()) return;
  last.kind = Query::Kind::kPrefix;
  AddChild(std::move(last), query);
}

void AddPhrase(std::string_view text, Tokenizer* tokenizer, Query* query) {
  std::vector<Query::PhraseTerm> terms;
  Query only;
  tokenizer->Reset(text);
  while (tokenizer->Next()) {
    const Token& token = tokenizer->token();
    if (token.kind == TokenKind::kTail) continue;
    if (terms.empty()) only = TermOf(token);
    terms.push_back({std::string(token.term), token.position});
  }
  if (terms.size() == 1) {
    AddChild(std::move(only), query);
  } else if (!terms.empty()) {
    AddChild({.kind = Query::Kind::kPhrase, .phrase = std::move(terms)}, query);
  }
}

void AddUnquoted(std::string_view text, Tokenizer* tokenizer, Query* query) {
  size_t words = 0;  // Where words begin that are not added yet.
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    while (end < text.size() && !IsSpace(text[end])) ++end;
    if (end > begin && text[end - 1] == '*') {
      AddWords(text.substr(words, begin - words), tokenizer, query);
      AddPrefix(text.substr(begin, end - begin), tokenizer, query);
      words = end;
    }
    begin = end + 1;
  }
  AddWords(text.substr(words), tokenizer, query);
}

/// Makes the nodes of one query.
class Builder {
 public:
  Builder(PostingsSource* source, Bm25::Parameters parameters)
      : source_(source), bm25_(source->GetStats(), parameters) {}

  Result<std::unique_ptr<Scorer>> Make(const Query& query) {
    switch (query.kind) {
      case Query::Kind::kTerm:
        return MakeTerm(query.term, query.weight);
      case Query::Kind::kPrefix:
        return MakePrefix(query);
      case Query::Kind::kPhrase:
        return MakePhrase(query);
      case Query::Kind::kAny:
      case Query::Kind::kAll:
        break;
    }
    std::vector<std::unique_ptr<Scorer>> children;
    for (const Query& child : query.children) {
      BASALT_ASSIGN_OR_RETURN(children.emplace_back(), Make(child));
    }
    if (query.kind == Query::Kind::kAll && !children.empty()) {
      return std::make_unique<AllScorer>(std::move(children));
    }
    return std::make_unique<AnyScorer>(std::move(children), AnyScorer::Combine::kSum);
  }

 private:
  static std::unique_ptr<Scorer> Nothing() {
    return std::make_unique<AnyScorer>(std::vector<std::unique_ptr<Scorer>>(),
                                       AnyScorer::Combine::kSum);
  }

  Result<std::unique_ptr<Scorer>> MakeTerm(std::string_view term, double weight) {
    BASALT_ASSIGN_OR_RETURN(TermPostings found, source_->Find(term));
    if (found.cursor == nullptr) return Nothing();
    return std::make_unique<TermScorer>(std::move(found.cursor), bm25_,
                                        weight * bm25_.Idf(found.document_frequency));
  }

  Result<std::unique_ptr<Scorer>> MakePrefix(const Query& query) {
    BASALT_ASSIGN_OR_RETURN(const std::vector<std::string> terms,
                            source_->TermsWithPrefix(query.term, kPrefixTermsMax));
    std::vector<std::unique_ptr<Scorer>> children;
    for (const std::string& term : terms) {
      BASALT_ASSIGN_OR_RETURN(children.emplace_back(), MakeTerm(term, query.weight));
    }
    return std::make_unique<AnyScorer>(std::move(children), AnyScorer::Combine::kMax);
  }

  Result<std::unique_ptr<Scorer>> MakePhrase(const Query& query) {
    std::vector<PhraseScorer::Term> terms;
    double idf = 0;
    for (const Query::PhraseTerm& term : query.phrase) {
      BASALT_ASSIGN_OR_RETURN(TermPostings found, source_->Find(term.term));
      if (found.cursor == nullptr) return Nothing();
      idf += bm25_.Idf(found.document_frequency);
      terms.push_back({std::move(found.cursor), term.offset});
    }
    if (terms.empty()) return Nothing();
    return std::make_unique<PhraseScorer>(std::move(terms), bm25_, query.weight * idf);
  }

  PostingsSource* source_;
  Bm25 bm25_;
};

}  // namespace

Query ParseQuery(std::string_view text, Tokenizer* tokenizer) {
  Query query;
  while (true) {
    const size_t quote = std::min(text.find('"'), text.size());
    AddUnquoted(text.substr(0, quote), tokenizer, &query);
    if (quote == text.size()) return query;
    text.remove_prefix(quote + 1);
    const size_t end = std::min(text.find('"'), text.size());
    AddPhrase(text.substr(0, end), tokenizer, &query);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

Result<std::unique_ptr<Scorer>> MakeScorer(const Query& query, PostingsSource* source,
                                           Bm25::Parameters parameters) {
  return Builder(source, parameters).Make(query);
}

}  // namespace basalt::text
