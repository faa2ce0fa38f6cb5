#include "tools/workload/zipf.h"

#include <algorithm>
#include <cmath>

namespace basalt::workload {

Zipf::Zipf(uint64_t items, double skew) : items_(items), skew_(skew), zeta_(Zeta(items, skew)) {
  const double two_of_items = 2.0 / static_cast<double>(items);
  eta_ = (1 - std::pow(two_of_items, 1 - skew)) / (1 - Zeta(2, skew) / zeta_);
}

uint64_t Zipf::operator()(base::Random& random) const {
  const double share = random.NextDouble();
  const double sum = share * zeta_;
  if (sum < 1) return 0;
  if (sum < 1 + std::pow(0.5, skew_)) return 1;
  const double rank =
      static_cast<double>(items_) * std::pow(eta_ * share - eta_ + 1, 1 / (1 - skew_));
  return std::min(static_cast<uint64_t>(rank), items_ - 1);
}

double Zipf::Zeta(uint64_t items, double skew) {
  constexpr uint64_t kSummed = 10'000;
  const uint64_t summed = std::min(items, kSummed);
  double sum = 0;
  for (uint64_t i = 1; i <= summed; ++i) sum += std::pow(static_cast<double>(i), -skew);
  if (items == summed) return sum;
  // The rest by the formula of Euler and Maclaurin, up to its first derivative.
  const auto from = static_cast<double>(summed);
  const auto to = static_cast<double>(items);
  const double integral = (std::pow(to, 1 - skew) - std::pow(from, 1 - skew)) / (1 - skew);
  const double ends = (std::pow(to, -skew) - std::pow(from, -skew)) / 2;
  const double slopes = skew * (std::pow(from, -skew - 1) - std::pow(to, -skew - 1)) / 12;
  return sum + integral + ends + slopes;
}

uint64_t ScrambledZipf::Scramble(uint64_t number) noexcept {
  uint64_t hash = 0xCBF2'9CE4'8422'2325;
  for (int byte = 0; byte < 8; ++byte) {
    hash = (hash ^ (number & 0xFF)) * 0x0000'0100'0000'01B3;
    number >>= 8;
  }
  return hash;
}

}  // namespace basalt::workload
