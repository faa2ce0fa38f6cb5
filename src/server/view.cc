#include "server/view.h"

namespace basalt::server {
namespace {

/// Records that a command may read or write on an event loop: some 100 microseconds.
constexpr uint64_t kLoopSteps = 2048;
/// A collection with more elements is deleted by a range, with fewer by its elements' keys, so that
/// many small collections do not leave many ranges behind.
constexpr uint64_t kElementsDeletedSingly = 64;

Status MustWait() { return {StatusCode::kWouldBlock, "the command must not run on an event loop"}; }

}  // namespace

View::View(Dataset* dataset, uint8_t db, Mode mode, bool single_read)
    : dataset_(dataset), db_(db), mode_(mode), single_read_(single_read) {}

View::~View() = default;

void View::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void View::Step(uint64_t steps) {
  steps_ += steps;
  if (mode_ == Mode::kLoop && steps_ > kLoopSteps) Fail(MustWait());
}

ReadOptions View::Reads(bool track) const {
  return {.keyspace = dataset_->keyspace(), .memory_only = mode_ == Mode::kLoop, .track = track};
}

Transaction* View::transaction() {
  if (!status_.ok()) return nullptr;
  if (!tx_) {
    Result<Transaction> begun = dataset_->db().Begin();
    if (!begun) {
      Fail(begun.error());
      return nullptr;
    }
    tx_ = *std::move(begun);
  }
  return &*tx_;
}

Transaction* View::BeginWrite() {
  // A commit waits for the disk at this durability.
  if (mode_ == Mode::kLoop && dataset_->is_power_durable()) Fail(MustWait());
  Step(1);
  wrote_ = true;
  return transaction();
}

Key View::FindIn(uint8_t db, std::string_view name) {
  Key key{.name = name};
  Step(1);
  const std::string record = MetadataKey(db, name);
  Result<std::optional<Entry>> entry = std::optional<Entry>();
  if (single_read_) {
    if (!status_.ok()) return key;
    entry = dataset_->db().GetEntry(record, Reads(false));
  } else {
    Transaction* tx = transaction();
    if (tx == nullptr) return key;
    entry = tx->GetEntry(record, Reads(true));
  }
  if (!entry) {
    // A key that is too long for a record cannot be there.
    if (entry.code() != StatusCode::kInvalidArgument) Fail(entry.error());
    return key;
  }
  if (!*entry) return key;
  const std::string_view bytes = (*entry)->value.view();
  const std::optional<Metadata> meta = DecodeMetadata(bytes);
  if (!meta) {
    Fail({StatusCode::kCorruption, "the metadata record of a key is malformed"});
    return key;
  }
  key.exists = true;
  key.meta = *meta;
  if (meta->type == Type::kString) key.text = bytes.substr(1);
  key.version = (*entry)->version;
  key.expiry = (*entry)->expiry;
  return key;
}

void View::Changed(uint8_t db, const Key& key, bool is_removed) {
  const bool is_same = changed_.size() > changed_before_ && changed_.back().db == db &&
                       changed_.back().name == key.name;
  if (!is_same) changed_.push_back({.db = db, .name = std::string(key.name)});
  changed_.back().is_removed = is_removed;
  changed_.back().expiry = is_removed ? std::nullopt : key.expiry;
}

void View::SaveIn(uint8_t db, const Key& key) {
  if (key.meta.type != Type::kString && key.meta.type != Type::kStream && key.meta.count == 0) {
    return RemoveName(db, key);
  }
  Transaction* tx = BeginWrite();
  if (tx == nullptr) return;
  std::string bytes;
  if (key.meta.type == Type::kString) {
    bytes.reserve(key.text.size() + 1);
    bytes.push_back(static_cast<char>(Type::kString));
    bytes.append(key.text);
  } else {
    bytes = EncodeMetadata(key.meta);
  }
  const std::string record = MetadataKey(db, key.name);
  Status put = tx->Put(record, bytes, {.keyspace = dataset_->keyspace(), .expiry = key.expiry});
  if (!put.ok()) return Fail(std::move(put));
  if (key.expiry && key.meta.type != Type::kString) {
    const auto expiry_ms = static_cast<uint64_t>(key.expiry->time_since_epoch().count());
    Put(ExpiryKey(expiry_ms, key.meta.id), std::string_view(record).substr(1));
    wrote_expiry_ = true;
  }
  Changed(db, key, false);
}

void View::MakeCollection(Key* key, Type type) {
  key->meta = {.type = type, .id = dataset_->NewId()};
  key->expiry.reset();
}

void View::RemoveName(uint8_t db, const Key& key) {
  if (!key.exists) return;
  Delete(MetadataKey(db, key.name));
  Changed(db, key, true);
}

void View::RemoveIn(uint8_t db, const Key& key) {
  if (!key.exists) return;
  if (key.meta.type != Type::kString) RemoveElements(key.meta);
  RemoveName(db, key);
}

void View::RemoveElements(const Metadata& meta) {
  const std::string prefix = ElementPrefix(meta.id);
  if (meta.count > kElementsDeletedSingly) return DeleteRange(prefix, EndOfPrefix(prefix));
  std::vector<std::string> elements;
  for (Walk walk(this, prefix, true); walk.Valid(); walk.Next()) {
    elements.push_back(prefix + std::string(walk.key()));
  }
  for (const std::string& element : elements) Delete(element);
}

void View::RemoveAll(std::optional<uint8_t> db) {
  if (!db) {
    DeleteRange("E", "F");
    DeleteRange("M", "N");
    return DeleteRange("X", "Y");
  }
  Walk others(this, "M", true, true);
  const char own = static_cast<char>(*db);
  if (others.Valid() && others.key().front() == own) {
    others.Seek(std::string(1, static_cast<char>(own + 1)));
  }
  if (!ok()) return;
  if (!others.Valid()) return RemoveAll(std::nullopt);
  // Elements go by the ids in the metadata records, so collections are looked for.
  const std::string prefix = MetadataKey(*db, {});
  for (Walk walk(this, prefix, false, true); walk.Valid(); walk.Next()) {
    const std::optional<Metadata> meta = DecodeMetadata(walk.value());
    if (meta && meta->type != Type::kString) RemoveElements(*meta);
  }
  DeleteRange(prefix, EndOfPrefix(prefix));
}

std::optional<std::string> View::Get(std::string_view element) {
  Transaction* tx = transaction();
  if (tx == nullptr) return std::nullopt;
  Step(1);
  const Result<MaybeValue> value = tx->Get(element, Reads(false));
  if (!value) {
    if (value.code() != StatusCode::kInvalidArgument) Fail(value.error());
    return std::nullopt;
  }
  if (!*value) return std::nullopt;
  return (*value)->ToString();
}

bool View::Has(std::string_view element) {
  Transaction* tx = transaction();
  if (tx == nullptr) return false;
  Step(1);
  const Result<bool> found = tx->Contains(element, Reads(false));
  if (!found && found.code() != StatusCode::kInvalidArgument) Fail(found.error());
  return found && *found;
}

void View::Put(std::string_view element, std::string_view value) {
  Transaction* tx = BeginWrite();
  if (tx == nullptr) return;
  Fail(tx->Put(element, value, {.keyspace = dataset_->keyspace()}));
}

void View::Delete(std::string_view element) {
  Transaction* tx = BeginWrite();
  if (tx == nullptr) return;
  Fail(tx->Delete(element, {.keyspace = dataset_->keyspace()}));
}

void View::DeleteRange(std::string_view begin, std::string_view end) {
  Transaction* tx = BeginWrite();
  if (tx == nullptr) return;
  Fail(tx->DeleteRange(begin, end, {.keyspace = dataset_->keyspace()}));
}

View::Mark View::SetMark() {
  Mark mark{.changed = changed_.size()};
  changed_before_ = mark.changed;
  if (Transaction* tx = transaction(); tx != nullptr) mark.savepoint = tx->SetSavepoint();
  return mark;
}

void View::RollbackTo(const Mark& mark) {
  Transaction* tx = transaction();
  if (tx == nullptr || !mark.savepoint) return;
  Fail(tx->RollbackTo(*mark.savepoint));
  changed_.resize(mark.changed);
}

Status View::Commit() {
  if (!status_.ok()) return status_;
  // What was only read comes from one snapshot: it is consistent without a look at others.
  if (!tx_ || !wrote_) return {};
  const Result<basalt::Commit> committed = tx_->Commit({.may_wait = mode_ == Mode::kPool});
  if (committed) sequence_ = committed->sequence;
  // An error may come from a commit that was made: one more sweep does no harm.
  if (wrote_expiry_) dataset_->NoteExpiry();
  return committed;
}

Walk::Walk(View* view, std::string prefix, bool keys_only, bool track)
    : view_(view), prefix_(std::move(prefix)) {
  if (view->mode_ == Mode::kLoop && !view->dataset_->iterates_in_memory()) view->Fail(MustWait());
  Transaction* tx = view->transaction();
  if (tx == nullptr) return;
  it_ = tx->NewIterator({.keyspace = view->dataset_->keyspace(),
                         .track = track,
                         .prefix = prefix_,
                         .keys_only = keys_only});
  SeekToFirst();
}

template <class Move>
void Walk::Do(Move move) {
  if (it_ == nullptr) return;
  view_->Step(1);
  if (view_->ok()) move(*it_);
  if (!it_->Valid() && !it_->status().ok()) view_->Fail(it_->status());
  if (!view_->ok()) it_.reset();
}

void Walk::SeekToFirst() {
  Do([](Iterator& it) { it.SeekToFirst(); });
}
void Walk::SeekToLast() {
  Do([](Iterator& it) { it.SeekToLast(); });
}
void Walk::Seek(std::string_view target) {
  const std::string key = prefix_ + std::string(target);
  Do([&](Iterator& it) { it.Seek(key); });
}
void Walk::SeekForPrev(std::string_view target) {
  const std::string key = prefix_ + std::string(target);
  Do([&](Iterator& it) { it.SeekForPrev(key); });
}
void Walk::Next() {
  Do([](Iterator& it) { it.Next(); });
}
void Walk::Prev() {
  Do([](Iterator& it) { it.Prev(); });
}

}  // namespace basalt::server
