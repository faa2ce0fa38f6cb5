#pragma once

namespace basalt::base {

/// Adds one to a number while it lives; of many threads to an atomic one, or under its lock.
template <class Number>
class Counted {
 public:
  explicit Counted(Number* number) noexcept : number_(number) { ++*number_; }
  ~Counted() { --*number_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  Number* const number_;
};

}  // namespace basalt::base
