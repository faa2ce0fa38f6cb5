#include "io/sim_file_system.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <set>
#include <utility>

#include "io/sim_directory_tree.h"

namespace basalt::io {
namespace {

/// No simulated file is larger, so that a wrong offset is an error and not the end of the memory.
constexpr uint64_t kFileBytesMax = uint64_t{1} << 40;

using Observer = std::function<void(uint64_t, std::string_view, std::string_view)>;

}  // namespace

struct SimFileSystem::State {
  explicit State(bool tracked) : tree(std::make_unique<SimDirectoryTree>(tracked)) {}

  /// How many of `wanted` more bytes the capacity has room for.
  uint64_t Room(uint64_t wanted) const {
    if (capacity == 0 || wanted == 0) return wanted;
    const uint64_t used = tree->BytesUsed();
    return used >= capacity ? 0 : std::min(wanted, capacity - used);
  }

  /// Whether there is a directory: 0, ENOENT or ENOTDIR.
  int FindDirectory(const std::string& path) const {
    std::vector<std::string> names;
    return tree->List(path, &names);
  }

  mutable std::mutex mutex;  // Covers everything below, and all inodes.
  std::unique_ptr<SimDirectoryTree> tree;
  uint64_t boot = 0;  // Counts starts of the machine: files and locks of another one are dead.
  std::set<std::shared_ptr<SimInode>> locked;
  std::multiset<std::string> marked;  // Paths of directories.
  std::set<std::pair<const SimInode*, const File*>> in_use;
  uint64_t capacity = 0;
  bool can_allocate = true;
  uint64_t calls = 0;
  std::shared_ptr<const Observer> observer;
  std::shared_ptr<const Fault> fault;
  uint64_t fault_calls = 0;
  bool fault_happened = false;
};

/// One call: counts it, tells the observer, draws the fault; then holds the lock to its own end.
class SimFileSystem::Call {
 public:
  /// `boot`: of the handle that is called; null for a call by path.
  Call(State* state, std::string_view operation, std::string_view path,
       const uint64_t* boot = nullptr)
      : lock_(state->mutex) {
    const uint64_t born = state->boot;
    if (boot != nullptr && *boot != born) {
      error_ = EIO;
      return;
    }
    const uint64_t number = ++state->calls;
    if (const std::shared_ptr<const Observer> observer = state->observer; observer != nullptr) {
      lock_.unlock();
      (*observer)(number, operation, path);
      lock_.lock();
    }
    const std::shared_ptr<const Fault> fault = state->fault;
    bool matches = fault != nullptr && CanHappen(*fault, operation);
    if (matches && fault->matches) {
      lock_.unlock();
      matches = fault->matches(operation, path);
      lock_.lock();
    }
    if (state->boot != born) {
      error_ = EIO;
      return;
    }
    if (!matches || state->fault != fault) return;
    const uint64_t count = ++state->fault_calls;
    if (fault->at_call == 0 || (fault->sticky ? count < fault->at_call : count != fault->at_call)) {
      return;
    }
    state->fault_happened = true;
    if (fault->kind == Fault::Kind::kError) {
      error_ = fault->error;
    } else {
      shortened_ = true;
    }
  }

  /// What the call answers without doing anything; 0: it does its work.
  int error() const { return error_; }
  /// How much of `size` bytes the call gets to.
  uint64_t Shorten(uint64_t size) const {
    return shortened_ ? std::max<uint64_t>(size / 2, std::min<uint64_t>(size, 1)) : size;
  }

 private:
  static bool CanHappen(const Fault& fault, std::string_view operation) {
    switch (fault.kind) {
      case Fault::Kind::kShortRead:
        return operation == "read";
      case Fault::Kind::kShortWrite:
        return operation == "write";
      case Fault::Kind::kError:
        return true;
    }
    return false;
  }

  std::unique_lock<std::mutex> lock_;
  int error_ = 0;
  bool shortened_ = false;
};

/// Lets go of the bytes under the lock, under which a writer asks whether they are mapped.
class SimFileSystem::HeldMapping final : public Mapping {
 public:
  HeldMapping(std::shared_ptr<State> state, std::shared_ptr<const std::string> image, uint64_t size)
      : state_(std::move(state)), image_(std::move(image)) {
    bytes_ = std::string_view(*image_).substr(0, size);
  }
  HeldMapping(const HeldMapping&) = delete;
  HeldMapping& operator=(const HeldMapping&) = delete;
  ~HeldMapping() override {
    const std::lock_guard guard(state_->mutex);
    image_.reset();
  }

 private:
  const std::shared_ptr<State> state_;
  std::shared_ptr<const std::string> image_;
};

/// The same for a mapping that is written. Its stores are no changes that a sync makes durable:
/// they survive a power cut only in a file that has no unsynced changes.
class SimFileSystem::HeldWritableMapping final : public WritableMapping {
 public:
  HeldWritableMapping(std::shared_ptr<State> state, std::shared_ptr<const std::string> image,
                      uint64_t size)
      : state_(std::move(state)), image_(std::move(image)) {
    data_ = const_cast<char*>(image_->data());
    size_ = size;
  }
  HeldWritableMapping(const HeldWritableMapping&) = delete;
  HeldWritableMapping& operator=(const HeldWritableMapping&) = delete;
  ~HeldWritableMapping() override {
    const std::lock_guard guard(state_->mutex);
    image_.reset();
  }

 private:
  const std::shared_ptr<State> state_;
  std::shared_ptr<const std::string> image_;
};

class SimFileSystem::OpenFile final : public File {
 public:
  OpenFile(std::string path, std::shared_ptr<State> state, std::shared_ptr<SimInode> inode,
           bool writable)
      : File(std::move(path)),
        state_(std::move(state)),
        inode_(std::move(inode)),
        boot_(state_->boot),
        writable_(writable) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() override {
    const std::lock_guard guard(state_->mutex);
    state_->in_use.erase({inode_.get(), this});
  }

 private:
  /// A call of this file that writes only with `writes`.
  struct FileCall : Call {
    FileCall(const OpenFile& file, std::string_view operation, bool writes)
        : Call(file.state_.get(), operation, file.path(), &file.boot_),
          refusal(error() == 0 && writes && !file.writable_ ? EBADF : error()) {}
    const int refusal;
  };

  int DoRead(uint64_t offset, std::span<char> out, size_t* done) const override {
    const FileCall call(*this, "read", false);
    if (call.refusal != 0) return call.refusal;
    *done = inode_->Read(offset, out.first(call.Shorten(out.size())));
    return 0;
  }

  int DoWrite(uint64_t offset, std::span<const std::string_view> pieces, size_t* done) override {
    const FileCall call(*this, "write", true);
    if (call.refusal != 0) return call.refusal;
    uint64_t length = 0;
    for (const std::string_view piece : pieces) length += piece.size();
    length = call.Shorten(length);
    if (offset > kFileBytesMax || length > kFileBytesMax - offset) return EFBIG;
    const uint64_t end = offset + length;
    const uint64_t growth = end - std::min(end, inode_->size());
    const uint64_t lacking = growth - state_->Room(growth);
    if (length > 0 && lacking >= length) return ENOSPC;
    *done = length - lacking;
    inode_->Write(offset, pieces, *done);
    return 0;
  }

  void DoWriteThroughMemory(uint64_t chunk_bytes) noexcept override {
    writes_through_memory_ = chunk_bytes != 0;
  }

  // Writes are calls all the same, so that they fail and are torn as others; true for every other
  // stretch, so that callers go both ways.
  bool DoWritesToMemory(uint64_t offset, size_t) const noexcept override {
    constexpr uint64_t kStretchBytes = 2048;
    return writes_through_memory_ && offset / kStretchBytes % 2 == 0;
  }

  int DoSync() override {
    const FileCall call(*this, "sync", false);
    if (call.refusal == 0) inode_->Sync();
    // A dead file's inode may still be there for files that were opened since.
    if (call.refusal != 0 && call.refusal != EINTR && boot_ == state_->boot) {
      inode_->FailSync();
    }
    return call.refusal;
  }

  int DoTruncate(uint64_t size) override {
    const FileCall call(*this, "truncate", true);
    if (call.refusal != 0) return call.refusal;
    if (size > kFileBytesMax) return EFBIG;
    inode_->Truncate(size);
    return 0;
  }

  int DoAllocate(uint64_t size) override {
    const FileCall call(*this, "allocate", true);
    if (call.refusal != 0) return call.refusal;
    if (size > kFileBytesMax) return EFBIG;
    if (!state_->can_allocate) return 0;
    const uint64_t growth = size - std::min(size, inode_->size());
    const uint64_t lacking = growth - state_->Room(growth);
    inode_->Allocate(size - lacking);
    return lacking > 0 ? ENOSPC : 0;
  }

  int DoSize(uint64_t* size) const override {
    const FileCall call(*this, "size", false);
    if (call.refusal != 0) return call.refusal;
    *size = inode_->size();
    return 0;
  }

  int DoMap(uint64_t size, std::unique_ptr<Mapping>* mapping) const override {
    const FileCall call(*this, "map", false);
    if (call.refusal != 0) return call.refusal;
    if (size > inode_->size()) return EINVAL;
    *mapping = std::make_unique<HeldMapping>(state_, inode_->Map(size), size);
    return 0;
  }

  int DoMapForWriting(uint64_t size, std::unique_ptr<WritableMapping>* mapping) override {
    const FileCall call(*this, "map", true);
    if (call.refusal != 0) return call.refusal;
    if (size > inode_->size()) return EINVAL;
    *mapping = std::make_unique<HeldWritableMapping>(state_, inode_->Map(size), size);
    return 0;
  }

  int DoMarkInUse() override {
    const FileCall call(*this, "lock", false);
    if (call.refusal == 0) state_->in_use.insert({inode_.get(), this});
    return call.refusal;
  }

  int DoIsInUse(bool* in_use) const override {
    const FileCall call(*this, "lock", false);
    if (call.refusal != 0) return call.refusal;
    const auto begin = state_->in_use.lower_bound({inode_.get(), nullptr});
    *in_use = std::any_of(begin, state_->in_use.end(), [&](const auto& user) {
      return user.first == inode_.get() && user.second != this;
    });
    return 0;
  }

  const std::shared_ptr<State> state_;
  const std::shared_ptr<SimInode> inode_;
  const uint64_t boot_;
  const bool writable_;
  bool writes_through_memory_ = false;
};

class SimFileSystem::HeldLock final : public FileLock {
 public:
  explicit HeldLock(std::shared_ptr<State> state) : state_(std::move(state)) {}
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;
  ~HeldLock() override {
    if (inode_ == nullptr) return;
    const std::lock_guard guard(state_->mutex);
    if (boot_ == state_->boot) state_->locked.erase(inode_);
  }

  /// Inside a call.
  void Hold(std::shared_ptr<SimInode> inode) noexcept {
    inode_ = std::move(inode);
    boot_ = state_->boot;
  }

 private:
  const std::shared_ptr<State> state_;
  std::shared_ptr<SimInode> inode_;  // Null: it holds nothing.
  uint64_t boot_ = 0;
};

class SimFileSystem::HeldMark final : public FileLock {
 public:
  HeldMark(std::shared_ptr<State> state, std::string path)
      : state_(std::move(state)), path_(std::move(path)) {}
  HeldMark(const HeldMark&) = delete;
  HeldMark& operator=(const HeldMark&) = delete;
  ~HeldMark() override {
    const std::lock_guard guard(state_->mutex);
    if (!is_held_ || boot_ != state_->boot) return;
    state_->marked.erase(state_->marked.find(path_));
  }

  /// Inside a call.
  void Hold() {
    state_->marked.insert(path_);
    boot_ = state_->boot;
    is_held_ = true;
  }

 private:
  const std::shared_ptr<State> state_;
  const std::string path_;
  bool is_held_ = false;
  uint64_t boot_ = 0;
};

SimFileSystem::SimFileSystem(Durability durability)
    : state_(std::make_shared<State>(durability == Durability::kTracked)) {}
SimFileSystem::~SimFileSystem() = default;

void SimFileSystem::Crash(uint64_t seed, CrashMode mode) {
  const std::lock_guard guard(state_->mutex);
  ++state_->boot;
  state_->locked.clear();
  state_->marked.clear();
  state_->in_use.clear();
  base::Random random(seed);
  state_->tree->Crash(mode, &random);
}

std::unique_ptr<SimFileSystem> SimFileSystem::Clone() const {
  auto clone = std::make_unique<SimFileSystem>();
  const std::lock_guard guard(state_->mutex);
  clone->state_->tree = state_->tree->Clone();
  clone->state_->capacity = state_->capacity;
  clone->state_->can_allocate = state_->can_allocate;
  return clone;
}

void SimFileSystem::SetFault(Fault fault) {
  auto shared = std::make_shared<const Fault>(std::move(fault));
  const std::lock_guard guard(state_->mutex);
  state_->fault = std::move(shared);
  state_->fault_calls = 0;
  state_->fault_happened = false;
}

void SimFileSystem::ClearFault() {
  const std::lock_guard guard(state_->mutex);
  state_->fault = nullptr;
  state_->fault_happened = false;
}

bool SimFileSystem::FaultHappened() const {
  const std::lock_guard guard(state_->mutex);
  return state_->fault_happened;
}

uint64_t SimFileSystem::calls() const {
  const std::lock_guard guard(state_->mutex);
  return state_->calls;
}

void SimFileSystem::ResetCalls() {
  const std::lock_guard guard(state_->mutex);
  state_->calls = 0;
  state_->fault_calls = 0;
}

void SimFileSystem::SetObserver(
    std::function<void(uint64_t call, std::string_view operation, std::string_view path)>
        observer) {
  auto shared = observer ? std::make_shared<const Observer>(std::move(observer)) : nullptr;
  const std::lock_guard guard(state_->mutex);
  state_->observer = std::move(shared);
}

Status SimFileSystem::FlipBit(std::string_view path, uint64_t bit) {
  const std::lock_guard guard(state_->mutex);
  std::shared_ptr<SimInode> inode;
  if (const int error = state_->tree->FindFile(path, &inode); error != 0) {
    return ErrnoStatus(error, "flip a bit", path);
  }
  if (bit / 8 >= inode->size()) {
    return {StatusCode::kInvalidArgument, std::string(path) + ": cannot flip bit " +
                                              std::to_string(bit) + ": the file ends at " +
                                              std::to_string(inode->size()) + " bytes"};
  }
  inode->FlipBit(bit);
  return {};
}

void SimFileSystem::SetCapacity(uint64_t bytes) {
  const std::lock_guard guard(state_->mutex);
  state_->capacity = bytes;
}

void SimFileSystem::SetCanAllocate(bool can_allocate) {
  const std::lock_guard guard(state_->mutex);
  state_->can_allocate = can_allocate;
}

uint64_t SimFileSystem::BytesUsed() const {
  const std::lock_guard guard(state_->mutex);
  return state_->tree->BytesUsed();
}

int SimFileSystem::DoOpen(const std::string& path, OpenMode mode, std::unique_ptr<File>* file) {
  const Call call(state_.get(), "open", path);
  if (call.error() != 0) return call.error();
  std::shared_ptr<SimInode> inode;
  const int error = mode == OpenMode::kCreate ? state_->tree->CreateFile(path, &inode)
                                              : state_->tree->FindFile(path, &inode);
  if (error != 0) return error;
  *file = std::make_unique<OpenFile>(path, state_, std::move(inode), mode != OpenMode::kRead);
  return 0;
}

int SimFileSystem::DoCreateDirectory(const std::string& path) {
  const Call call(state_.get(), "mkdir", path);
  return call.error() != 0 ? call.error() : state_->tree->CreateDirectory(path);
}

int SimFileSystem::DoList(const std::string& path, std::vector<std::string>* names) {
  const Call call(state_.get(), "list", path);
  return call.error() != 0 ? call.error() : state_->tree->List(path, names);
}

int SimFileSystem::DoRename(const std::string& from, const std::string& to) {
  const Call call(state_.get(), "rename", from);
  return call.error() != 0 ? call.error() : state_->tree->Rename(from, to);
}

int SimFileSystem::DoRemoveFile(const std::string& path) {
  const Call call(state_.get(), "remove", path);
  return call.error() != 0 ? call.error() : state_->tree->RemoveFile(path);
}

int SimFileSystem::DoRemoveDirectory(const std::string& path) {
  const Call call(state_.get(), "rmdir", path);
  return call.error() != 0 ? call.error() : state_->tree->RemoveDirectory(path);
}

int SimFileSystem::DoSyncDirectory(const std::string& path) {
  const Call call(state_.get(), "syncdir", path);
  return call.error() != 0 ? call.error() : state_->tree->SyncDirectory(path);
}

int SimFileSystem::DoStat(const std::string& path, bool* is_directory, uint64_t* size) {
  const Call call(state_.get(), "stat", path);
  return call.error() != 0 ? call.error() : state_->tree->Stat(path, is_directory, size);
}

int SimFileSystem::DoFreeBytes(const std::string& path, std::optional<uint64_t>* bytes) {
  const Call call(state_.get(), "statfs", path);
  if (call.error() != 0) return call.error();
  if (state_->capacity != 0) *bytes = state_->Room(state_->capacity);
  return 0;
}

int SimFileSystem::DoLock(const std::string& path, std::unique_ptr<FileLock>* lock,
                          std::string* holder) {
  auto made = std::make_unique<HeldLock>(state_);
  const Call call(state_.get(), "lock", path);
  if (call.error() != 0) return call.error();
  std::shared_ptr<SimInode> inode;
  int error = state_->tree->FindFile(path, &inode);
  if (error == ENOENT) error = state_->tree->CreateFile(path, &inode);
  if (error != 0) return error;
  if (!state_->locked.insert(inode).second) {
    *holder = "is already open in this process";
    return EWOULDBLOCK;
  }
  made->Hold(std::move(inode));
  *lock = std::move(made);
  return 0;
}

int SimFileSystem::DoMarkDirectory(const std::string& path, std::unique_ptr<FileLock>* mark) {
  auto made = std::make_unique<HeldMark>(state_, path);
  const Call call(state_.get(), "mark", path);
  if (call.error() != 0) return call.error();
  if (const int error = state_->FindDirectory(path); error != 0) return error;
  made->Hold();
  *mark = std::move(made);
  return 0;
}

int SimFileSystem::DoIsMarked(const std::string& path, bool* is_marked) {
  const Call call(state_.get(), "mark", path);
  if (call.error() != 0) return call.error();
  if (const int error = state_->FindDirectory(path); error != 0) return error;
  *is_marked = state_->marked.contains(path);
  return 0;
}

}  // namespace basalt::io
