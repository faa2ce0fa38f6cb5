#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

// A value or nothing, as a get returns it. Read Maybe first.

namespace basalt {

/// Returned by `->` of a temporary Maybe: gives access to copies only. Lives as long as the
/// temporary.
template <class T>
class OfTemporary {
 public:
  explicit OfTemporary(const T& value) noexcept : value_(value) {}
  OfTemporary(const OfTemporary&) = delete;
  OfTemporary& operator=(const OfTemporary&) = delete;
  const OfTemporary* operator->() const noexcept { return this; }

  void view() const = delete;
  std::string ToString() const { return value_.ToString(); }
  size_t size() const noexcept { return value_.size(); }
  bool empty() const noexcept { return value_.size() == 0; }

 private:
  const T& value_;
};

/// The result of a lookup: a T that provides views of its bytes, or nothing if the key is absent.
///
/// It is a std::optional that is safe for temporaries. With a std::optional,
/// `store.Get(key).value()->view()` would compile and dangle. A temporary Maybe returns its T by
/// value, whose `view()` is deleted, and its `->` offers only `ToString()`, `size()` and `empty()`.
template <class T>
class Maybe : public std::optional<T> {
  using Base = std::optional<T>;

 public:
  using Base::Base;
  Maybe() noexcept = default;
  Maybe(Base value) noexcept : Base(std::move(value)) {}
  using Base::operator=;

  T& operator*() & noexcept { return Base::operator*(); }
  const T& operator*() const& noexcept { return Base::operator*(); }
  T operator*() && noexcept { return std::move(Base::operator*()); }
  void operator*() const&& = delete;

  T* operator->() & noexcept { return Base::operator->(); }
  const T* operator->() const& noexcept { return Base::operator->(); }
  OfTemporary<T> operator->() const&& noexcept { return OfTemporary<T>(**this); }

  /// Throws std::bad_optional_access if it is empty.
  T& value() & { return Base::value(); }
  const T& value() const& { return Base::value(); }
  T value() && { return std::move(Base::value()); }
  void value() const&& = delete;
};

// The operators of std::optional are ambiguous for derived classes.
template <class T>
bool operator==(const Maybe<T>& a, const Maybe<T>& b) noexcept {
  return a.has_value() == b.has_value() && (!a || *a == *b);
}
template <class T>
bool operator==(const Maybe<T>& a, std::nullopt_t) noexcept {
  return !a;
}

}  // namespace basalt
