#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "io/sim_inode.h"

namespace basalt::io {

/// The names of a simulated file system: as programs see them (live), and as a power cut may leave
/// them. The model is told at the head of sim_file_system.h.
///
/// Layout: every directory has a live and a durable map of its entries; one list holds the changes
/// of entries since then, in order. Invariants: the durable maps with all pending changes made are
/// the live ones; without tracking, durable maps and list stay empty.
///
/// Paths are taken from "/", also without a leading slash; "." is passed over, and ".." goes up by
/// name. Functions give an errno. Cost: a look-up in a map per part of the path; SyncDirectory
/// reads the list of pending changes. Not thread-safe: the file system's mutex covers it.
class SimDirectoryTree {
 public:
  explicit SimDirectoryTree(bool tracked);
  SimDirectoryTree(const SimDirectoryTree&) = delete;
  SimDirectoryTree& operator=(const SimDirectoryTree&) = delete;
  ~SimDirectoryTree();

  /// Copies every file that is live, durable or in a pending change.
  std::unique_ptr<SimDirectoryTree> Clone() const;

  /// The file of this name. EISDIR for a directory.
  int FindFile(std::string_view path, std::shared_ptr<SimInode>* file) const;
  int Stat(std::string_view path, bool* is_directory, uint64_t* size) const;
  int List(std::string_view path, std::vector<std::string>* names) const;
  int CreateFile(std::string_view path, std::shared_ptr<SimInode>* file);
  int CreateDirectory(std::string_view path);
  int Rename(std::string_view from, std::string_view to);
  int RemoveFile(std::string_view path);
  int RemoveDirectory(std::string_view path);
  int SyncDirectory(std::string_view path);

  /// Bytes of all files that have a name.
  uint64_t BytesUsed() const;
  /// Draws what is left, of names first and then of every file's bytes.
  void Crash(CrashMode mode, base::Random* random);

 private:
  struct Directory;
  /// What a name stands for; both are null where it stands for nothing.
  struct Node {
    std::shared_ptr<SimInode> file;
    Directory* directory = nullptr;
    bool empty() const { return file == nullptr && directory == nullptr; }
  };
  using Entries = std::map<std::string, Node, std::less<>>;
  struct Directory {
    Entries live;
    Entries durable;
  };
  /// From now on `name` stands for `node`.
  struct Edit {
    Directory* directory = nullptr;
    std::string name;
    Node node;
  };
  /// One or two edits that happen together.
  struct Change {
    std::vector<Edit> edits;
    bool moves_directory = false;
  };
  struct Place {
    Directory* parent = nullptr;
    std::string name;
    Node node;
  };
  class Copier;

  static void Apply(const Edit& edit, Entries Directory::* image);
  Node Find(std::string_view path, int* error) const;
  int FindPlace(std::string_view path, Place* place) const;
  Directory* NewDirectory();
  void Commit(Change change);
  std::vector<bool> DrawKept(CrashMode mode, base::Random* random) const;

  const bool tracked_;
  // All that a crash may bring back, and removed ones until the next crash. A directory may be
  // above another one in a live map and below it in a durable one, so none owns another.
  std::vector<std::unique_ptr<Directory>> directories_;
  Directory* root_;
  std::vector<Change> pending_;
};

}  // namespace basalt::io
