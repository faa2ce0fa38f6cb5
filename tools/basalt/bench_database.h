#pragma once

#include <memory>
#include <string>

#include "basalt/db.h"

namespace basalt::tools {

/// The database that workloads run on. A file named BENCH in its directory says that it may be
/// replaced.
class BenchDatabase {
 public:
  BenchDatabase(std::string path, DBOptions options)
      : path_(std::move(path)), options_(std::move(options)) {}

  /// AlreadyExists: the directory holds a database that has no such file. With `replace`, that
  /// database is removed instead.
  Status Claim(bool replace);
  /// Opens what is there, or an empty database. Ok when it is open.
  Status Open();
  /// Removes all records, and opens an empty database.
  Status OpenEmpty();
  Status Close();

  /// Only while it is open.
  DB& db() const noexcept { return *db_; }

 private:
  bool in_memory() const { return path_ == ":memory:"; }
  std::string Marker() const;
  Status RemoveFiles() const;

  std::string path_;
  DBOptions options_;
  std::unique_ptr<DB> db_;
};

}  // namespace basalt::tools
