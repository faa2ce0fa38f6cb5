#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/command.h"

// What commands print, in each format. cli_test.cc compiles Boost.JSON.

namespace basalt {

/// An object of JSON; an empty one, and a failure, where the text is none.
inline boost::json::object ParseObject(const std::string& text) {
  boost::json::error_code error;
  const boost::json::value value = boost::json::parse(text, error);
  EXPECT_FALSE(error) << error.message() << ": " << text;
  return value.is_object() ? value.get_object() : boost::json::object();
}

/// An unsigned number of a document, wherever it came from.
inline uint64_t Number(const boost::json::object& document, const char* name) {
  const boost::json::value* value = document.if_contains(name);
  EXPECT_NE(value, nullptr) << name;
  return value == nullptr ? 0 : value->to_number<uint64_t>();
}

/// The lines of a CSV text as RFC 4180 has them.
inline std::vector<std::vector<std::string>> ParseCsv(const std::string& text) {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> line(1);
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      line.back() += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      line.emplace_back();
    } else if (!quoted && c == '\n') {
      lines.push_back(std::exchange(line, std::vector<std::string>(1)));
    } else {
      line.back() += c;
    }
  }
  EXPECT_FALSE(quoted) << text;
  EXPECT_EQ(line, std::vector<std::string>(1)) << "a last line without its end: " << text;
  return lines;
}

/// The lines of JSON in a text.
inline std::vector<boost::json::object> ParseLines(const std::string& text) {
  std::vector<boost::json::object> objects;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) objects.push_back(ParseObject(line));
  return objects;
}

/// A string of a document.
inline std::string Text(const boost::json::object& document, const char* name) {
  const boost::json::value* value = document.if_contains(name);
  EXPECT_TRUE(value != nullptr && value->is_string()) << name;
  return value == nullptr ? "" : std::string(value->as_string());
}

/// The values of a document by their names, as csv and raw give them.
inline void Flatten(const std::string& name, const boost::json::value& value,
                    std::map<std::string, std::string>* flat) {
  const std::string prefix = name.empty() ? "" : name + ".";
  if (value.is_object()) {
    for (const auto& member : value.get_object()) {
      Flatten(prefix + std::string(member.key()), member.value(), flat);
    }
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.get_array().size(); ++i) {
      Flatten(prefix + std::to_string(i), value.get_array()[i], flat);
    }
  } else if (value.is_string()) {
    (*flat)[name] = std::string(value.get_string());
  } else if (value.is_double()) {
    (*flat)[name] = "a decimal";
  } else {
    (*flat)[name] = boost::json::serialize(value);
  }
}

/// Runs a command that prints figures in each format, which must all say the same.
inline boost::json::object Figures(const CommandTest& test, const std::string& command,
                                   int code = 0) {
  const auto run = [&](const std::string& format) {
    const Outcome outcome = test.Run(command + " --output " + format);
    EXPECT_EQ(outcome.code, code) << command << " " << format << "\n" << outcome.err;
    return outcome.out;
  };
  const boost::json::object document = ParseObject(run("json"));
  std::map<std::string, std::string> flat;
  Flatten("", document, &flat);
  const auto lines = ParseCsv(run("csv"));
  EXPECT_EQ(lines.at(0), (std::vector<std::string>{"name", "value"})) << command;
  EXPECT_EQ(lines.size(), flat.size() + 1) << command;
  std::string raw;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::string& name = lines[i].at(0);
    EXPECT_TRUE(flat.contains(name)) << command << ": " << name;
    if (flat[name] != "a decimal") {
      EXPECT_EQ(lines[i].at(1), flat[name]) << command << ": " << name;
    }
    raw += name + "\t" + lines[i].at(1) + "\n";
  }
  EXPECT_EQ(run("raw"), raw) << command;
  return document;
}

}  // namespace basalt
