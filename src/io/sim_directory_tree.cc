#include "io/sim_directory_tree.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <unordered_map>
#include <utility>

namespace basalt::io {
namespace {

/// The parts of a path, normalised by name.
std::vector<std::string_view> Parts(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
  }
  return parts;
}

}  // namespace

SimDirectoryTree::SimDirectoryTree(bool tracked) : tracked_(tracked), root_(NewDirectory()) {}
SimDirectoryTree::~SimDirectoryTree() = default;

SimDirectoryTree::Directory* SimDirectoryTree::NewDirectory() {
  return directories_.emplace_back(std::make_unique<Directory>()).get();
}

void SimDirectoryTree::Apply(const Edit& edit, Entries Directory::* image) {
  Entries& entries = (*edit.directory).*image;
  if (edit.node.empty()) {
    entries.erase(edit.name);
  } else {
    entries.insert_or_assign(edit.name, edit.node);
  }
}

SimDirectoryTree::Node SimDirectoryTree::Find(std::string_view path, int* error) const {
  Node node{nullptr, root_};
  for (const std::string_view part : Parts(path)) {
    if (node.directory == nullptr) {
      *error = ENOTDIR;
      return {};
    }
    const auto entry = node.directory->live.find(part);
    if (entry == node.directory->live.end()) {
      *error = ENOENT;
      return {};
    }
    node = entry->second;
  }
  *error = 0;
  return node;
}

/// The directory that a path's last part is in, and what it stands for there, if anything. EBUSY
/// for the root.
int SimDirectoryTree::FindPlace(std::string_view path, Place* place) const {
  const std::vector<std::string_view> parts = Parts(path);
  if (parts.empty()) return EBUSY;
  place->parent = root_;
  place->name = parts.back();
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    const auto entry = place->parent->live.find(parts[i]);
    if (entry == place->parent->live.end()) return ENOENT;
    if (entry->second.directory == nullptr) return ENOTDIR;
    place->parent = entry->second.directory;
  }
  const auto entry = place->parent->live.find(place->name);
  if (entry != place->parent->live.end()) place->node = entry->second;
  return 0;
}

void SimDirectoryTree::Commit(Change change) {
  for (const Edit& edit : change.edits) Apply(edit, &Directory::live);
  if (tracked_) pending_.push_back(std::move(change));
}

int SimDirectoryTree::FindFile(std::string_view path, std::shared_ptr<SimInode>* file) const {
  int error = 0;
  Node node = Find(path, &error);
  if (error == 0 && node.directory != nullptr) error = EISDIR;
  *file = std::move(node.file);
  return error;
}

int SimDirectoryTree::Stat(std::string_view path, bool* is_directory, uint64_t* size) const {
  int error = 0;
  const Node node = Find(path, &error);
  *is_directory = node.directory != nullptr;
  *size = node.file != nullptr ? node.file->size() : 0;
  return error;
}

int SimDirectoryTree::List(std::string_view path, std::vector<std::string>* names) const {
  int error = 0;
  const Node node = Find(path, &error);
  if (error != 0) return error;
  if (node.directory == nullptr) return ENOTDIR;
  for (const auto& [name, entry] : node.directory->live) names->push_back(name);
  return 0;
}

int SimDirectoryTree::CreateFile(std::string_view path, std::shared_ptr<SimInode>* file) {
  Place place;
  const int error = FindPlace(path, &place);
  if (error == EBUSY || !place.node.empty()) return EEXIST;
  if (error != 0) return error;
  *file = std::make_shared<SimInode>(tracked_);
  Commit({{{place.parent, std::move(place.name), {*file, nullptr}}}});
  return 0;
}

int SimDirectoryTree::CreateDirectory(std::string_view path) {
  Place place;
  const int error = FindPlace(path, &place);
  if (error == EBUSY || !place.node.empty()) return EEXIST;
  if (error != 0) return error;
  Commit({{{place.parent, std::move(place.name), {nullptr, NewDirectory()}}}});
  return 0;
}

int SimDirectoryTree::Rename(std::string_view from, std::string_view to) {
  Place source;
  Place target;
  if (const int error = FindPlace(from, &source); error != 0) return error;
  if (const int error = FindPlace(to, &target); error != 0) return error;
  if (source.node.empty()) return ENOENT;
  if (source.parent == target.parent && source.name == target.name) return 0;
  const bool moves_directory = source.node.directory != nullptr;
  if (moves_directory) {
    const std::vector<std::string_view> above = Parts(from);
    const std::vector<std::string_view> below = Parts(to);
    if (std::mismatch(above.begin(), above.end(), below.begin(), below.end()).first ==
        above.end()) {
      return EINVAL;
    }
    if (target.node.file != nullptr) return ENOTDIR;
    if (target.node.directory != nullptr && !target.node.directory->live.empty()) return ENOTEMPTY;
  } else if (target.node.directory != nullptr) {
    return EISDIR;
  }
  Commit({{{source.parent, std::move(source.name), {}},
           {target.parent, std::move(target.name), std::move(source.node)}},
          moves_directory});
  return 0;
}

int SimDirectoryTree::RemoveFile(std::string_view path) {
  Place place;
  const int error = FindPlace(path, &place);
  if (error == EBUSY || place.node.directory != nullptr) return EISDIR;
  if (error != 0) return error;
  if (place.node.empty()) return ENOENT;
  Commit({{{place.parent, std::move(place.name), {}}}});
  return 0;
}

int SimDirectoryTree::RemoveDirectory(std::string_view path) {
  Place place;
  if (const int error = FindPlace(path, &place); error != 0) return error;
  if (place.node.empty()) return ENOENT;
  if (place.node.directory == nullptr) return ENOTDIR;
  if (!place.node.directory->live.empty()) return ENOTEMPTY;
  Commit({{{place.parent, std::move(place.name), {}}}});
  return 0;
}

/// Makes durable what touches the directory, and what came before that in any directory which such
/// a change touches too: a rename between directories is one change, and order within a directory
/// holds.
int SimDirectoryTree::SyncDirectory(std::string_view path) {
  int error = 0;
  const Node node = Find(path, &error);
  if (error != 0) return error;
  if (node.directory == nullptr) return ENOTDIR;
  std::set<const Directory*> touched{node.directory};
  std::vector<bool> durable(pending_.size(), false);
  for (size_t i = pending_.size(); i-- > 0;) {
    const std::vector<Edit>& edits = pending_[i].edits;
    durable[i] = std::any_of(edits.begin(), edits.end(),
                             [&](const Edit& edit) { return touched.contains(edit.directory); });
    if (!durable[i]) continue;
    for (const Edit& edit : edits) touched.insert(edit.directory);
  }
  std::vector<Change> left;
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (!durable[i]) {
      left.push_back(std::move(pending_[i]));
      continue;
    }
    for (const Edit& edit : pending_[i].edits) Apply(edit, &Directory::durable);
  }
  pending_ = std::move(left);
  return 0;
}

uint64_t SimDirectoryTree::BytesUsed() const {
  uint64_t bytes = 0;
  std::vector<const Directory*> left{root_};
  while (!left.empty()) {
    const Directory* const directory = left.back();
    left.pop_back();
    for (const auto& [name, node] : directory->live) {
      if (node.file != nullptr) bytes += node.file->size();
      if (node.directory != nullptr) left.push_back(node.directory);
    }
  }
  return bytes;
}

/// Which pending changes survive. A change of a name survives only if the earlier ones of that name
/// do; the move of a directory only if everything before it does.
std::vector<bool> SimDirectoryTree::DrawKept(CrashMode mode, base::Random* random) const {
  if (mode == CrashMode::kRandom) {
    constexpr CrashMode kModes[] = {CrashMode::kNone, CrashMode::kAll, CrashMode::kPrefix,
                                    CrashMode::kSubset};
    mode = kModes[random->Below(std::size(kModes))];
  }
  std::vector<bool> kept(pending_.size(), false);
  if (mode == CrashMode::kNone) return kept;
  if (mode == CrashMode::kAll) return std::vector<bool>(pending_.size(), true);
  if (mode != CrashMode::kSubset) {
    const uint64_t count = random->Below(pending_.size() + 1);
    for (size_t i = 0; i < count; ++i) kept[i] = true;
    return kept;
  }
  std::set<std::pair<const Directory*, std::string_view>> lost_names;
  for (size_t i = 0; i < pending_.size(); ++i) {
    const std::vector<Edit>& edits = pending_[i].edits;
    const bool blocked = (pending_[i].moves_directory && !lost_names.empty()) ||
                         std::any_of(edits.begin(), edits.end(), [&](const Edit& edit) {
                           return lost_names.contains({edit.directory, edit.name});
                         });
    kept[i] = !blocked && random->OneIn(2);
    if (kept[i]) continue;
    for (const Edit& edit : edits) lost_names.emplace(edit.directory, edit.name);
  }
  return kept;
}

void SimDirectoryTree::Crash(CrashMode mode, base::Random* random) {
  if (!tracked_) return;
  const std::vector<bool> kept = DrawKept(mode, random);
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (!kept[i]) continue;
    for (const Edit& edit : pending_[i].edits) Apply(edit, &Directory::durable);
  }
  pending_.clear();
  std::set<const Directory*> reached{root_};
  std::vector<Directory*> left{root_};
  while (!left.empty()) {
    Directory* const directory = left.back();
    left.pop_back();
    directory->live = directory->durable;
    for (const auto& [name, node] : directory->live) {
      if (node.file != nullptr) node.file->Crash(mode, random);
      if (node.directory != nullptr && reached.insert(node.directory).second) {
        left.push_back(node.directory);
      }
    }
  }
  std::erase_if(directories_,
                [&](const auto& directory) { return !reached.contains(directory.get()); });
}

/// Copies nodes into another tree, each once.
class SimDirectoryTree::Copier {
 public:
  explicit Copier(SimDirectoryTree* target) : target_(target) {}

  Node Copy(const Node& node) {
    Node copy;
    if (node.file != nullptr) {
      std::shared_ptr<SimInode>& file = files_[node.file.get()];
      if (file == nullptr) file = node.file->Clone();
      copy.file = file;
    }
    if (node.directory != nullptr) {
      // Known before its entries are copied, which may lead back to it.
      Directory*& directory = directories_[node.directory];
      const bool known = directory != nullptr;
      if (!known) directory = target_->NewDirectory();
      copy.directory = directory;
      if (!known) CopyEntries(*node.directory, copy.directory);
    }
    return copy;
  }

  void CopyRoot(const Directory& root) {
    directories_[&root] = target_->root_;
    CopyEntries(root, target_->root_);
  }

 private:
  void CopyEntries(const Directory& from, Directory* to) {
    for (const auto& [name, node] : from.live) to->live.emplace(name, Copy(node));
    for (const auto& [name, node] : from.durable) to->durable.emplace(name, Copy(node));
  }

  SimDirectoryTree* const target_;
  std::unordered_map<const SimInode*, std::shared_ptr<SimInode>> files_;
  std::unordered_map<const Directory*, Directory*> directories_;
};

std::unique_ptr<SimDirectoryTree> SimDirectoryTree::Clone() const {
  auto clone = std::make_unique<SimDirectoryTree>(tracked_);
  Copier copier(clone.get());
  copier.CopyRoot(*root_);
  for (const Change& change : pending_) {
    Change copy{{}, change.moves_directory};
    for (const Edit& edit : change.edits) {
      Directory* const directory = copier.Copy(Node{nullptr, edit.directory}).directory;
      copy.edits.push_back({directory, edit.name, copier.Copy(edit.node)});
    }
    clone->pending_.push_back(std::move(copy));
  }
  return clone;
}

}  // namespace basalt::io
