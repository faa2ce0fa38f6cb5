#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

// The command-line program run by a shell, as a person or a script runs it. BASALT_TOOL is its
// path.

namespace basalt {

/// Changes one bit of the byte at `offset`.
inline void FlipBit(const std::filesystem::path& path, uintmax_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(byte);
}

/// What a command that was run to its end has come to.
struct Outcome {
  int code;
  std::string out;
  std::string err;
};

/// A test that runs the program in a directory of its own, which is removed when the test ends.
class CommandTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "basalt_cli_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    home_ = name;
    ::setenv("B", BASALT_TOOL, 1);
    ::unsetenv("TERM");
  }
  void TearDown() override { std::filesystem::remove_all(home_); }

 public:
  std::filesystem::path At(const std::string& name) const { return home_ / name; }

  void WriteFile(const std::string& name, const std::string& bytes) const {
    std::ofstream(At(name), std::ios::binary) << bytes;
  }
  std::string ReadFile(const std::string& name) const {
    std::ostringstream bytes;
    bytes << std::ifstream(At(name), std::ios::binary).rdbuf();
    return bytes.str();
  }

  /// Runs a shell command, in which $B is the program, in the test's directory.
  Outcome Run(const std::string& command) const {
    const std::string line = "cd '" + home_.string() + "' && { " + command + "\n} >.out 2>.err";
    const int status = std::system(line.c_str());
    EXPECT_TRUE(WIFEXITED(status)) << command;
    return {WEXITSTATUS(status), ReadFile(".out"), ReadFile(".err")};
  }

  /// Runs a command that must succeed in silence on stderr; gives what it printed.
  std::string Out(const std::string& command) const {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.code, 0) << command << "\n" << outcome.err;
    EXPECT_EQ(outcome.err, "") << command;
    return outcome.out;
  }

  /// Runs a command that must fail with `code`, print nothing, and name `word` on stderr.
  void ExpectRefused(const std::string& command, int code, const std::string& word) const {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.code, code) << command << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << command;
    EXPECT_NE(outcome.err.find(word), std::string::npos) << command << "\n" << outcome.err;
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

 private:
  std::filesystem::path home_;
};

}  // namespace basalt
