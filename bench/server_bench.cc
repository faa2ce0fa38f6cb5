// Measures `basalt serve` against redis-server with redis-benchmark over Unix sockets, in
// alternating order over several rounds; and RemoteStore's MultiGet on the same server.
// bench/README.md says what each figure means.

#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "basalt/client.h"
#include "base/random.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/text.h"

namespace basalt::bench {
namespace {

struct Settings {
  std::string program = "build/release/basalt";
  std::string directory = std::filesystem::temp_directory_path();
  std::string output = "build/bench/server.json";
  std::vector<std::string> tests = {"set", "get", "incr", "hset"};
  std::vector<int> pipelines = {1, 16, 64};
  uint64_t requests = 400'000;
  int runs = 5;
};

constexpr std::array<const char*, 3> kServers = {"basalt", "redis", "redis_aof"};
/// Without pipelining a request takes several times as long.
constexpr uint64_t kFewerWithoutPipeline = 4;

/// A server with an empty store in a directory of its own, until it is destroyed.
class Server {
 public:
  Server(const Settings& settings, const std::string& name)
      : home_(settings.directory + "/basalt_server_bench_" + std::to_string(::getpid())) {
    std::filesystem::remove_all(home_);
    std::filesystem::create_directories(home_);
    process_ = ::fork();
    if (process_ < 0) Fail(name, "no process could be made");
    if (process_ == 0) Execute(CommandLine(settings, name));
    for (int i = 0; i < 500 && !std::filesystem::exists(socket()); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    if (!std::filesystem::exists(socket())) Fail(name, "the server does not start");
  }
  ~Server() {
    ::kill(process_, SIGTERM);
    ::waitpid(process_, nullptr, 0);
    std::filesystem::remove_all(home_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::string socket() const { return home_ + "/socket"; }

  /// Processor time of all its threads so far.
  double CpuSeconds() const {
    std::ifstream file("/proc/" + std::to_string(process_) + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    // The name of the program is in parentheses; user and system time are the 12th and 13th fields
    // behind it.
    std::istringstream fields(text.substr(text.rfind(')') + 1));
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;
    uint64_t user = 0;
    uint64_t system = 0;
    fields >> user >> system;
    return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }

 private:
  std::vector<std::string> CommandLine(const Settings& settings, const std::string& name) const {
    if (name == "basalt") {
      return {settings.program, "serve",  home_ + "/db", "--no-tcp",
              "--unix-socket",  socket(), "--threads",   "1"};
    }
    return {"redis-server",
            "--port",
            "0",
            "--unixsocket",
            socket(),
            "--save",
            "",
            "--appendonly",
            name == "redis_aof" ? "yes" : "no",
            "--appendfsync",
            "no",
            "--dir",
            home_};
  }

  [[noreturn]] static void Execute(const std::vector<std::string>& words) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::ignore = std::freopen("/dev/null", "w", stdout);
    ::execvp(arguments.front(), arguments.data());
    ::_exit(127);
  }

  std::string home_;
  pid_t process_;
};

struct Measured {
  double requests_per_second = 0;
  double cpu_us = 0;  ///< Of the server, a request.
};

Measured Measure(const Settings& settings, const Server& server, const std::string& test,
                 int pipeline) {
  const uint64_t requests =
      pipeline == 1 ? settings.requests / kFewerWithoutPipeline : settings.requests;
  const std::string command = "redis-benchmark -s " + server.socket() + " -t " + test + " -n " +
                              std::to_string(requests) + " -P " + std::to_string(pipeline) +
                              " -r 100000 -d 100 -c 50 --csv 2>/dev/null";
  const double before = server.CpuSeconds();
  std::FILE* const output = ::popen(command.c_str(), "r");
  if (output == nullptr) Fail("redis-benchmark", "it cannot be started");
  std::string text;
  for (int byte = std::fgetc(output); byte != EOF; byte = std::fgetc(output)) {
    text.push_back(static_cast<char>(byte));
  }
  ::pclose(output);
  const double spent = server.CpuSeconds() - before;
  // "SET","123456.78",...: after a line of column names.
  const size_t comma = text.find("\",\"", text.find('\n') + 1);
  const double rate = comma == std::string::npos ? 0 : std::atof(text.c_str() + comma + 3);
  if (rate <= 0) Fail("redis-benchmark -t " + test, "it gave no figure: '" + text + "'");
  return {rate, spent * 1e6 / static_cast<double>(requests)};
}

constexpr uint64_t kKeys = 100'000;
constexpr size_t kValueBytes = 100;
constexpr uint64_t kRemoteThreads = 4;
const char* const kRemoteTest = "multiget";

std::string RemoteKey(uint64_t number) {
  return Format("key:%012llu", static_cast<unsigned long long>(number));
}

std::unique_ptr<net::RemoteStore> ConnectTo(const Server& server) {
  auto store = net::RemoteStore::Connect("unix://" + server.socket());
  if (!store) Fail("RemoteStore", store.error().ToString());
  return *std::move(store);
}

/// As many records as redis-benchmark writes, in the store's default keyspace.
void FillRemote(const Server& server) {
  const auto store = ConnectTo(server);
  WriteBatch batch;
  for (uint64_t i = 0; i < kKeys; ++i) {
    batch.Put(RemoteKey(i), std::string(kValueBytes, 'v'));
    if (batch.count() < 1000) continue;
    if (const Status written = store->Write(batch); !written.ok()) {
      Fail("RemoteStore", written.ToString());
    }
    batch.Clear();
  }
}

/// MultiGets of random keys, `at_once` keys a call.
void ReadRemote(const net::RemoteStore& store, uint64_t seed, uint64_t calls, size_t at_once) {
  base::Random random(seed);
  std::vector<std::string> names(at_once);
  std::vector<Result<MaybeValue>> results(at_once);
  for (uint64_t call = 0; call < calls; ++call) {
    for (std::string& name : names) name = RemoteKey(random.Below(kKeys));
    const std::vector<std::string_view> keys(names.begin(), names.end());
    const Status read = store.MultiGet(keys, results);
    const bool all_there =
        std::ranges::all_of(results, [](const auto& result) { return result && *result; });
    if (!read.ok() || !all_there) Fail("RemoteStore", "a MultiGet did not find its keys");
  }
}

/// Threads that share a store read as many keys a call as a pipeline has commands.
Measured MeasureRemote(const Settings& settings, const Server& server, int pipeline) {
  const auto store = ConnectTo(server);
  const auto at_once = static_cast<size_t>(pipeline);
  const uint64_t requests =
      pipeline == 1 ? settings.requests / kFewerWithoutPipeline : settings.requests;
  const uint64_t calls = std::max<uint64_t>(1, requests / at_once / kRemoteThreads);
  const double before = server.CpuSeconds();
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= kRemoteThreads; ++seed) {
    threads.emplace_back([&, seed] { ReadRemote(*store, seed, calls, at_once); });
  }
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  const auto made = static_cast<double>(calls * at_once * kRemoteThreads);
  return {made / elapsed.count(), (server.CpuSeconds() - before) * 1e6 / made};
}

using Name = std::tuple<std::string, int, std::string>;  // Test, pipeline, server.
struct Figures {
  std::vector<double> rates;
  std::vector<double> cpu_us;
};
using AllFigures = std::map<Name, Figures>;

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void Add(const Measured& measured, Figures* figures) {
  figures->rates.push_back(measured.requests_per_second);
  figures->cpu_us.push_back(measured.cpu_us);
}

void RunRound(const Settings& settings, size_t round, AllFigures* figures) {
  for (size_t i = 0; i < kServers.size(); ++i) {
    const std::string name = kServers[(round + i) % kServers.size()];
    const Server server(settings, name);
    for (const int pipeline : settings.pipelines) {
      for (const std::string& test : settings.tests) {
        Add(Measure(settings, server, test, pipeline), &(*figures)[{test, pipeline, name}]);
      }
    }
    if (name != kServers.front()) continue;
    FillRemote(server);
    for (const int pipeline : settings.pipelines) {
      Add(MeasureRemote(settings, server, pipeline), &(*figures)[{kRemoteTest, pipeline, name}]);
    }
  }
}

std::string Cell(const Figures& figures) {
  const auto [least, greatest] = std::ranges::minmax(figures.rates);
  return Format("%4.0f (%.0f-%.0f) %5.2f us", Median(figures.rates) / 1e3, least / 1e3,
                greatest / 1e3, Median(figures.cpu_us));
}

std::string JsonOf(const Name& name, const char* metric, const char* unit,
                   const std::vector<double>& values) {
  const auto [least, greatest] = std::ranges::minmax(values);
  return Format(
      "{\"benchmark\":\"%s\",\"pipeline\":%d,\"subject\":\"%s\",\"metric\":\"%s\",\"unit\":\"%s\","
      "\"median\":%.6g,\"min\":%.6g,\"max\":%.6g,\"runs\":%zu}",
      std::get<0>(name).c_str(), std::get<1>(name), std::get<2>(name).c_str(), metric, unit,
      Median(values), least, greatest, values.size());
}

void Run(const Settings& settings) {
  AllFigures figures;
  for (int round = 0; round < settings.runs; ++round) {
    RunRound(settings, static_cast<size_t>(round), &figures);
  }
  std::printf(
      "%s; thousand requests a second: median (least-greatest), processor time a request;"
      " %d rounds\n%-10s",
      MachineDescription().c_str(), settings.runs, "");
  for (const char* server : kServers) std::printf(" %-28s", server);
  std::printf("\n");
  for (const std::string& test : settings.tests) {
    for (const int pipeline : settings.pipelines) {
      std::printf("%-10s", Format("%s P=%d", test.c_str(), pipeline).c_str());
      for (const char* server : kServers) {
        std::printf(" %-28s", Cell(figures[{test, pipeline, server}]).c_str());
      }
      std::printf("\n");
    }
  }
  for (const int pipeline : settings.pipelines) {
    const Name name{kRemoteTest, pipeline, kServers.front()};
    std::printf("%-14s %s\n", Format("%s P=%d", kRemoteTest, pipeline).c_str(),
                Cell(figures[name]).c_str());
  }
  std::string json;
  for (const auto& [name, mine] : figures) {
    json += (json.empty() ? "[\n" : ",\n") + JsonOf(name, "throughput", "ops/s", mine.rates) +
            ",\n" + JsonOf(name, "processor time", "us", mine.cpu_us);
  }
  WriteFile(settings.output, json + "\n]\n");
}

}  // namespace
}  // namespace basalt::bench

int main(int argc, char** argv) {
  basalt::bench::Settings settings;
  CLI::App app("Measures the server against redis-server.");
  app.add_option("--program", settings.program, "The command-line program")->capture_default_str();
  app.add_option("--dir", settings.directory, "Where the stores are made")->capture_default_str();
  app.add_option("--requests", settings.requests,
                 "Of one measurement; a quarter without pipelining")
      ->check(CLI::Range(1'000, 100'000'000))
      ->capture_default_str();
  app.add_option("--pipelines", settings.pipelines, "Commands sent at once, separated by commas")
      ->delimiter(',')
      ->check(CLI::Range(1, 1'000));
  basalt::bench::AddChoice(&app, "--tests", "commands", &settings.tests);
  basalt::bench::AddOutput(&app, &settings.output);
  basalt::bench::AddRuns(&app, &settings.runs);
  CLI11_PARSE(app, argc, argv);
  basalt::bench::Run(settings);
  return 0;
}
