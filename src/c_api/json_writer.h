#pragma once

// JSON text, written piece by piece.

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace basalt::c_api {

/// Bytes of the character of UTF-8 that `text`, which is not empty, begins with; 0: with none.
size_t CharacterSize(std::string_view text);
/// Appends `text` as a JSON string. What is no UTF-8 becomes U+FFFD.
void AppendString(std::string_view text, std::string* json);
/// Appends a finite number, so that it reads back the same and as no integer.
void AppendNumber(double number, std::string* json);

/// Writes one object. Members are added in order.
class ObjectWriter {
 public:
  ObjectWriter& Add(std::string_view name, std::string_view text) {
    Begin(name);
    String(text);
    return *this;
  }
  ObjectWriter& Add(std::string_view name, const std::string& text) {
    return Add(name, std::string_view(text));
  }
  ObjectWriter& Add(std::string_view name, std::same_as<bool> auto value) {
    Begin(name);
    json_ += value ? "true" : "false";
    return *this;
  }
  ObjectWriter& Add(std::string_view name, std::unsigned_integral auto value)
    requires(!std::same_as<decltype(value), bool>)
  {
    Begin(name);
    json_ += std::to_string(value);
    return *this;
  }
  ObjectWriter& Add(std::string_view name, std::signed_integral auto value) {
    Begin(name);
    json_ += std::to_string(value);
    return *this;
  }
  ObjectWriter& Add(std::string_view name, double value) {
    Begin(name);
    AppendNumber(value, &json_);
    return *this;
  }
  ObjectWriter& Add(std::string_view name, const std::vector<std::string>& texts) {
    return AddArray(name, texts, [this](const std::string& text) { String(text); });
  }
  /// `json` is the JSON of a value.
  ObjectWriter& AddJson(std::string_view name, std::string_view json) {
    Begin(name);
    json_ += json;
    return *this;
  }
  /// `write(element)` gives the JSON of one.
  template <class Element, class Write>
  ObjectWriter& AddObjects(std::string_view name, const std::vector<Element>& elements,
                           const Write& write) {
    return AddArray(name, elements, [&](const Element& element) { json_ += write(element); });
  }
  std::string Finish() { return json_ + '}'; }

 private:
  void Begin(std::string_view name) {
    if (json_.size() > 1) json_ += ',';
    String(name);
    json_ += ':';
  }

  template <class Element, class Write>
  ObjectWriter& AddArray(std::string_view name, const std::vector<Element>& elements,
                         const Write& write) {
    Begin(name);
    char separator = '[';
    for (const Element& element : elements) {
      json_ += separator;
      write(element);
      separator = ',';
    }
    json_ += elements.empty() ? "[]" : "]";
    return *this;
  }

  void String(std::string_view text) { AppendString(text, &json_); }

  std::string json_ = "{";
};

}  // namespace basalt::c_api
