#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/command.h"

// Commands on a database, and what they print in each format.

namespace basalt {

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

/// A test of commands on a database.
class DatabaseCommandTest : public CommandTest {
 protected:
  /// Runs a command that prints figures in each format, which must all say the same.
  boost::json::object Figures(const std::string& command, int code = 0) const {
    const auto run = [&](const std::string& format) {
      const Outcome outcome = Run(command + " --output " + format);
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

  /// The only file of the database `db` whose name ends so; a path in the test's directory.
  std::string OnlyFile(const std::string& ending) const {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator(At("db"))) {
      const std::string name = entry.path().filename().string();
      if (!name.ends_with(ending)) continue;
      EXPECT_EQ(found, "") << "a second file: " << name;
      found = "db/" + name;
    }
    EXPECT_NE(found, "") << ending;
    return found;
  }
};

}  // namespace basalt
