#include "tools/basalt/bench_report.h"

#include <cmath>

#include "tools/basalt/document.h"
#include "tools/basalt/document_line.h"
#include "tools/basalt/figures.h"

namespace basalt::tools {
namespace {

/// A result's figures; the names are the columns of csv.
Document ResultDocument(const WorkloadResult& result, const BenchOptions& options) {
  const WorkloadCounts& counts = result.counts;
  const auto operations = static_cast<double>(counts.operations);
  const double seconds = counts.seconds();
  const auto micros = [](uint64_t nanoseconds) {
    return DecimalValue(static_cast<double>(nanoseconds) / 1e3, 3);
  };
  return {{"workload", result.workload->name},
          {"threads", result.threads},
          {"operations", counts.operations},
          {"seconds", DecimalValue(seconds, 6)},
          {"ops_per_s", DecimalValue(seconds > 0 ? operations / seconds : 0, 1)},
          {"mb_per_s",
           DecimalValue(seconds > 0 ? static_cast<double>(counts.bytes) / 1e6 / seconds : 0, 3)},
          {"us_per_op",
           DecimalValue(operations > 0 ? 1e6 * seconds * result.threads / operations : 0, 3)},
          {"p50_us", micros(counts.latency_ns.Percentile(50))},
          {"p99_us", micros(counts.latency_ns.Percentile(99))},
          {"p999_us", micros(counts.latency_ns.Percentile(99.9))},
          {"max_us", micros(counts.latency_ns.max())},
          {"lookups", counts.lookups},
          {"found", counts.found},
          {"num", options.num},
          {"value_bytes", options.value_bytes},
          {"durability", options.durability == Durability::kPower ? "power" : "process"},
          {"seed", options.seed}};
}

std::string Heading(const BenchOptions& options) {
  return FormatCount(options.num) + " records, values of " + FormatCount(options.value_bytes) +
         " bytes that compress to about half, durability " +
         (options.durability == Durability::kPower ? "power" : "process") + ", " +
         std::to_string(options.threads) + (options.threads == 1 ? " thread" : " threads") +
         "; times in us\n\n" + Left("workload", 12) + Right("ops/s", 12) + Right("MB/s", 9) +
         Right("us/op", 11) + Right("p50", 9) + Right("p99", 9) + Right("p99.9", 10) +
         Right("max", 12) + "  found\n";
}

/// Figures with about four digits that count.
std::string Short(const boost::json::value& value) {
  const double number = value.to_number<double>();
  return number < 1000 ? FormatDecimal(number, number < 100 ? 2 : 1)
                       : FormatCount(static_cast<uint64_t>(std::llround(number)));
}

std::string TableLine(const Document& document) {
  const auto cell = [&](const char* name, size_t width) {
    return Right(Short(document.at(name)), width);
  };
  std::string line = Left(LeafText(document.at("workload")), 12);
  line +=
      Right(FormatCount(static_cast<uint64_t>(document.at("ops_per_s").to_number<double>())), 12);
  line += cell("mb_per_s", 9) + cell("us_per_op", 11) + cell("p50_us", 9) + cell("p99_us", 9) +
          cell("p999_us", 10) + cell("max_us", 12);
  const auto lookups = document.at("lookups").to_number<uint64_t>();
  if (lookups > 0) {
    line += "  " + FormatCount(document.at("found").to_number<uint64_t>()) + " of " +
            FormatCount(lookups);
  }
  return line + "\n";
}

}  // namespace

void BenchReport::Begin() {
  if (options_.output == OutputFormat::kTable) out_.Write(Heading(options_));
  if (options_.output != OutputFormat::kCsv) return;
  static const Workload kNone{};
  out_.Write(CsvNameLine(ResultDocument({.workload = &kNone, .counts = {}}, options_)));
}

void BenchReport::Add(const WorkloadResult& result) {
  const Document document = ResultDocument(result, options_);
  switch (options_.output) {
    case OutputFormat::kTable:
      out_.Write(TableLine(document));
      break;
    case OutputFormat::kCsv:
      out_.Write(CsvLine(document));
      break;
    case OutputFormat::kJson:
      out_.Write(JsonLine(document));
      break;
    case OutputFormat::kRaw:
      out_.Write(RawLine(document));
      break;
  }
}

}  // namespace basalt::tools
