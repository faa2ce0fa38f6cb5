// Measures basalt::embed against PyTorch: the same model and texts, one thread each, in alternating
// order over several rounds. bench/README.md says what each figure means.

#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/embed.h"
#include "bench/cpu_time.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/text.h"

namespace basalt::bench {
namespace {

struct Settings {
  std::string folder = "build/embedding";
  std::string peer = "bench/embed_peers/pytorch_embed.py";
  std::string output = "build/bench/embed.json";
  int runs = 7;
};

/// What one call embeds.
struct Case {
  const char* name;
  std::vector<std::vector<std::string>> calls;
  std::vector<double> basalt_us{};  // a text, median over the calls; one a round
  std::vector<double> pytorch_us{};
};

constexpr std::array<const char*, 8> kQueries = {
    "how do I reset a forgotten password",
    "what is the capital of the country where the Danube rises?",
    "convert video files to another format from the command line",
    "who wrote the first program for an analytical engine",
    "difference between optimistic and pessimistic concurrency control in databases",
    "symptoms of vitamin D deficiency in adults",
    "best way to cook rice without a rice cooker",
    "why is the sky blue at noon and red at sunset?"};

/// A text of about so many words.
std::string Passage(size_t begin, size_t words) {
  std::string text;
  for (size_t i = begin; words > 0; ++i) {
    const std::string_view query = kQueries[i % kQueries.size()];
    text += std::string(query) + (i % 2 == 0 ? ", and " : ". ");
    const auto more = static_cast<size_t>(std::ranges::count(query, ' ')) + 1;
    words -= std::min(words, more);
  }
  return text;
}

std::vector<Case> AllCases() {
  std::vector<Case> cases = {{"query", {}}, {"passage", {}}, {"passages32", {}}};
  for (size_t i = 0; i < kQueries.size(); ++i) {
    cases[0].calls.push_back({kQueries[i]});
    cases[1].calls.push_back({Passage(i, 85)});
  }
  cases[2].calls.emplace_back();
  for (size_t i = 0; i < 32; ++i) cases[2].calls.back().push_back(Passage(i, 40 + 3 * i));
  return cases;
}

/// The program of the peer, and pipes to and from it.
class Peer {
 public:
  Peer(const Settings& settings) {
    int to[2];
    int from[2];
    if (::pipe(to) != 0 || ::pipe(from) != 0) Fail("pipe", "no pipe could be made");
    const std::string python = settings.folder + "/venv/bin/python";
    const std::string model = settings.folder + "/model";
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(to[0], STDIN_FILENO);
      ::dup2(from[1], STDOUT_FILENO);
      for (const int end : {to[0], to[1], from[0], from[1]}) ::close(end);
      ::execl(python.c_str(), python.c_str(), settings.peer.c_str(), model.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    out_ = ::fdopen(to[1], "w");
    in_ = ::fdopen(from[0], "r");
    version_ = ReadLine();
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() {
    std::fclose(out_);
    std::fclose(in_);
    ::waitpid(process_, nullptr, 0);
  }

  const std::string& version() const { return version_; }

  /// Seconds of processor time; `vector` gets that of the first text.
  double Embed(const std::vector<std::string>& texts, std::vector<float>* vector) {
    std::fprintf(out_, "%s\n", boost::json::serialize(boost::json::value_from(texts)).c_str());
    std::fflush(out_);
    const boost::json::value answer = boost::json::parse(ReadLine());
    *vector = boost::json::value_to<std::vector<float>>(answer.at(1));
    return static_cast<double>(answer.at(0).as_int64()) / 1e9;
  }

 private:
  std::string ReadLine() {
    std::string line;
    for (int byte = std::fgetc(in_); byte != '\n'; byte = std::fgetc(in_)) {
      if (byte == EOF)
        Fail("PyTorch", "its program has ended; bench/embed_peers/build installs it");
      line.push_back(static_cast<char>(byte));
    }
    return line;
  }

  pid_t process_;
  std::FILE* out_;
  std::FILE* in_;
  std::string version_;
};

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double EmbedByBasalt(const Embedder& embedder, const std::vector<std::string>& texts,
                     std::vector<float>* vector) {
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const double begin = CpuSeconds();
  const std::vector<float> vectors = embedder.EmbedAll(views).value();
  const double spent = CpuSeconds() - begin;
  vector->assign(vectors.begin(),
                 vectors.begin() + static_cast<ptrdiff_t>(embedder.model().dimension));
  return spent;
}

/// Each call by both, one right after the other, so that they share what the machine is doing.
void RunRound(const Embedder& embedder, Peer* peer, int round, Case* which) {
  std::vector<double> basalt_us;
  std::vector<double> pytorch_us;
  for (size_t i = 0; i < which->calls.size(); ++i) {
    const std::vector<std::string>& texts = which->calls[i];
    const double us_each = 1e6 / static_cast<double>(texts.size());
    std::vector<float> ours;
    std::vector<float> theirs;
    for (const bool is_ours : {round % 2 == 0, round % 2 != 0}) {
      // The first is to warm up: caches hold what the other one has used.
      for (int turn = 0; turn < 2; ++turn) {
        const double seconds =
            is_ours ? EmbedByBasalt(embedder, texts, &ours) : peer->Embed(texts, &theirs);
        if (turn == 1) (is_ours ? basalt_us : pytorch_us).push_back(seconds * us_each);
      }
    }
    double cosine = 0;
    for (size_t j = 0; j < ours.size(); ++j) cosine += double{ours[j]} * theirs[j];
    if (cosine < 0.999) Fail(texts.front(), Format("the vectors have a cosine of %.5f", cosine));
  }
  which->basalt_us.push_back(Median(std::move(basalt_us)));
  which->pytorch_us.push_back(Median(std::move(pytorch_us)));
}

void Run(const Settings& settings) {
  const auto embedder = OpenLocalEmbedder(settings.folder + "/model").value();
  Peer peer(settings);
  std::printf("%s; PyTorch %s; one thread; processor time, medians of %d rounds\n",
              MachineDescription().c_str(), peer.version().c_str(), settings.runs);
  std::vector<Case> cases = AllCases();
  for (int round = 0; round < settings.runs; ++round) {
    for (Case& which : cases) RunRound(*embedder, &peer, round, &which);
  }
  std::string json = "[\n";
  std::printf("%-12s %12s %12s %8s %16s\n", "", "basalt us", "PyTorch us", "ratio",
              "over the rounds");
  for (const Case& which : cases) {
    std::vector<double> ratios;
    for (size_t i = 0; i < which.basalt_us.size(); ++i) {
      ratios.push_back(which.pytorch_us[i] / which.basalt_us[i]);
    }
    const auto [least, greatest] = std::ranges::minmax(ratios);
    std::printf("%-12s %12.0f %12.0f %8.2f %9.2f to %.2f\n", which.name, Median(which.basalt_us),
                Median(which.pytorch_us), Median(ratios), least, greatest);
    json += Format(
        "%s{\"benchmark\":\"%s\",\"metric\":\"processor time a "
        "text\",\"unit\":\"us\",\"basalt\":%.6g,"
        "\"pytorch\":%.6g,\"ratio\":%.4g,\"ratio_min\":%.4g,\"ratio_max\":%.4g,\"runs\":%zu}",
        json.size() > 2 ? ",\n" : "", which.name, Median(which.basalt_us), Median(which.pytorch_us),
        Median(ratios), least, greatest, ratios.size());
  }
  WriteFile(settings.output, json + "\n]\n");
}

}  // namespace
}  // namespace basalt::bench

int main(int argc, char** argv) {
  basalt::bench::Settings settings;
  CLI::App app("Measures embeddings of texts against PyTorch.");
  app.add_option("--folder", settings.folder, "What scripts/embedding_reference has made")
      ->capture_default_str();
  app.add_option("--peer", settings.peer, "The program of the peer")->capture_default_str();
  basalt::bench::AddOutput(&app, &settings.output);
  basalt::bench::AddRuns(&app, &settings.runs);
  CLI11_PARSE(app, argc, argv);
  basalt::bench::Run(settings);
  return 0;
}
