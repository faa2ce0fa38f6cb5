// Stores, batches, snapshots and transactions.

#include "store.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <functional>
#include <utility>

#include "basalt/db.h"
#include "basalt/json.h"
#include "basalt/memtable.h"
#include "basalt/transaction.h"
#include "convert.h"
#include "scan.h"

namespace basalt::python {
namespace {

struct PyMemTable : PyStore {};
struct PyKeyspace : PyStore {};

struct PySnapshot {
  std::shared_ptr<State> state;
  std::shared_ptr<const Snapshot> snapshot;
  KeyspaceId keyspace = KeyspaceId::kDefault;

  Store& store() const {
    if (snapshot == nullptr) {
      Raise(Status(StatusCode::kFailedPrecondition, "the snapshot is closed", SubCode::kClosed));
    }
    return state->Use();
  }
  ReadOptions options() const { return {.snapshot = snapshot.get(), .keyspace = keyspace}; }
};

struct PyBatch {
  std::shared_ptr<State> state;
  std::shared_ptr<WriteBatch> batch = std::make_shared<WriteBatch>();
  KeyspaceId keyspace = KeyspaceId::kDefault;
  bool ended = false;

  WriteBatch& Use() {
    if (ended) {
      Raise(Status(StatusCode::kFailedPrecondition, "the batch was written already: begin another",
                   SubCode::kClosed));
    }
    return *batch;
  }
};

// What a read holds while it runs without the GIL: the mark of a transaction, which other threads
// may not use meanwhile, and a snapshot, which they may close.
template <class Reader>
struct ReadMark {
  explicit ReadMark(const Reader&) {}
};
template <>
struct ReadMark<PyTransaction> {
  explicit ReadMark(const PyTransaction& reader)
      : in_use(&reader.shared->in_use, "the transaction") {}
  InUse in_use;
};
template <>
struct ReadMark<PySnapshot> {
  explicit ReadMark(const PySnapshot& reader) : snapshot(reader.snapshot) {}
  std::shared_ptr<const Snapshot> snapshot;
};

// Reads, of all three.

template <class Reader>
MaybeValue Lookup(const Reader& self, nb::handle key) {
  const Bytes bytes(key);
  auto& store = self.store();
  const ReadMark<Reader> mark(self);
  return ReadWith(self.options(),
                  [&](const ReadOptions& options) { return store.Get(bytes.view(), options); });
}

template <class Reader>
nb::object GetItem(const Reader& self, nb::handle key) {
  const MaybeValue value = Lookup(self, key);
  if (!value) RaiseKeyError(key);
  return ToBytes(value->view());
}

template <class Reader>
nb::object Get(const Reader& self, nb::handle key, nb::handle otherwise) {
  return ToBytesOr(Lookup(self, key), otherwise);
}

template <class Reader>
bool Contains(const Reader& self, nb::handle key) {
  const Bytes bytes(key);
  auto& store = self.store();
  const ReadMark<Reader> mark(self);
  return ReadWith(self.options(), [&](const ReadOptions& options) {
    return store.Contains(bytes.view(), options);
  });
}

template <class Reader>
Scan MakeScan(const Reader& self, nb::handle prefix, nb::handle lower, nb::handle upper,
              bool reverse, Scan::Yields yields) {
  auto& store = self.store();
  ReadOptions options = self.options();
  options.keys_only = yields == Scan::Yields::kKeys;
  std::optional<Bytes> bounds[3];
  const auto set = [](nb::handle from, std::optional<Bytes>* bytes,
                      std::optional<std::string_view>* to) {
    if (!from.is_none()) *to = bytes->emplace(from).view();
  };
  set(prefix, &bounds[0], &options.prefix);
  set(lower, &bounds[1], &options.lower);
  set(upper, &bounds[2], &options.upper);
  const ReadMark<Reader> mark(self);
  return Scan(
      [&] {
        const nb::gil_scoped_release release;
        return store.NewIterator(options);
      }(),
      reverse, yields);
}

template <class Reader>
size_t Length(const Reader& self) {
  auto& store = self.store();
  ReadOptions options = self.options();
  options.keys_only = true;
  const ReadMark<Reader> mark(self);
  size_t count = 0;
  const Status status = [&] {
    const nb::gil_scoped_release release;
    const std::unique_ptr<Iterator> it = store.NewIterator(options);
    for (it->SeekToFirst(); it->Valid(); it->Next()) ++count;
    return it->status();
  }();
  Check(status);
  return count;
}

template <class Reader, class... Extra>
void DefineReads(nb::class_<Reader, Extra...>& cls) {
  using nb::literals::operator""_a;
  cls.def("__getitem__", &GetItem<Reader>)
      .def("get", &Get<Reader>, "key"_a, "default"_a = nb::none())
      .def("__contains__", &Contains<Reader>)
      .def("__len__", &Length<Reader>)
      .def("__bool__",
           [](const Reader& self) {
             Scan scan =
                 MakeScan(self, nb::none(), nb::none(), nb::none(), false, Scan::Yields::kKeys);
             return scan.HasNext();
           })
      .def("__iter__",
           [](const Reader& self) {
             return MakeScan(self, nb::none(), nb::none(), nb::none(), false, Scan::Yields::kKeys);
           })
      .def("__reversed__", [](const Reader& self) {
        return MakeScan(self, nb::none(), nb::none(), nb::none(), true, Scan::Yields::kKeys);
      });
  const auto scan = [&](const char* name, Scan::Yields yields) {
    cls.def(
        name,
        [yields](const Reader& self, nb::handle prefix, nb::handle lower, nb::handle upper,
                 bool reverse) { return MakeScan(self, prefix, lower, upper, reverse, yields); },
        nb::kw_only(), "prefix"_a = nb::none(), "lower"_a = nb::none(), "upper"_a = nb::none(),
        "reverse"_a = false);
  };
  scan("scan", Scan::Yields::kItems);
  scan("scan_keys", Scan::Yields::kKeys);
  scan("scan_values", Scan::Yields::kValues);
}

// Writes.

WriteOptions MakeWriteOptions(KeyspaceId keyspace, nb::handle ttl, nb::handle durability) {
  return {.durability = ToDurability(durability), .keyspace = keyspace, .ttl = ToTtl(ttl)};
}

bool Waits(const State& state, const WriteOptions& options) {
  return options.durability ? *options.durability == Durability::kPower : state.waits;
}

void Put(PyStore& self, nb::handle key, nb::handle value, nb::handle ttl, nb::handle durability) {
  Store& store = self.store();
  const WriteOptions options = MakeWriteOptions(self.keyspace, ttl, durability);
  const Bytes key_bytes(key), value_bytes(value);
  WriteWith(options, Waits(*self.state, options), [&](const WriteOptions& write) {
    return store.Put(key_bytes.view(), value_bytes.view(), write);
  });
}

void SetItem(PyStore& self, nb::handle key, nb::handle value) {
  Put(self, key, value, nb::none(), nb::none());
}

bool PutIfAbsent(PyStore& self, nb::handle key, nb::handle value, nb::handle ttl,
                 nb::handle durability) {
  Store& store = self.store();
  const WriteOptions options = MakeWriteOptions(self.keyspace, ttl, durability);
  const Bytes key_bytes(key), value_bytes(value);
  return WriteWith(options, Waits(*self.state, options),
                   [&](const WriteOptions& write) {
                     return store.PutIfAbsent(key_bytes.view(), value_bytes.view(), write);
                   })
      .has_value();
}

void Delete(PyStore& self, nb::handle key, nb::handle durability) {
  Store& store = self.store();
  const WriteOptions options = MakeWriteOptions(self.keyspace, nb::none(), durability);
  const Bytes bytes(key);
  WriteWith(options, Waits(*self.state, options),
            [&](const WriteOptions& write) { return store.Delete(bytes.view(), write); });
}

/// Removes the key and gives the value that it had, as one step.
MaybeValue Take(PyStore& self, nb::handle key) {
  Store& store = self.store();
  const Bytes bytes(key);
  std::optional<std::string> taken;
  const WriteOptions options{.keyspace = self.keyspace};
  const auto take = [&](EntryUpdate& entry) {
    taken.reset();
    if (entry.exists()) taken.emplace(entry.value());
    entry.Delete();
    return Status();
  };
  WriteWith(options, Waits(*self.state, options), [&](const WriteOptions& write) {
    return store.Update(bytes.view(), std::cref(take), write);
  });
  if (!taken) return {};
  return Value::Copy(*taken);
}

void DelItem(PyStore& self, nb::handle key) {
  if (!Take(self, key)) RaiseKeyError(key);
}

void DeleteRange(PyStore& self, nb::handle begin, nb::handle end) {
  Store& store = self.store();
  const Bytes begin_bytes(begin), end_bytes(end);
  const WriteOptions options{.keyspace = self.keyspace};
  WriteWith(options, Waits(*self.state, options), [&](const WriteOptions& write) {
    return store.DeleteRange(begin_bytes.view(), end_bytes.view(), write);
  });
}

/// An operand of a merge: bytes to append, or an integer of 8 bytes.
struct Operand {
  Operand(const char* name, nb::handle operand) {
    const std::string_view text = name;
    if (text == "append") {
      op = MergeOperator::kAppend;
      bytes = std::string(Bytes(operand).view());
      return;
    }
    if (text == "add") {
      op = MergeOperator::kAdd;
    } else if (text == "min") {
      op = MergeOperator::kMin;
    } else if (text == "max") {
      op = MergeOperator::kMax;
    } else {
      throw nb::value_error("a merge is 'add', 'min', 'max' or 'append'");
    }
    const int64_t number = PyLong_AsLongLong(operand.ptr());
    if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    for (int shift = 0; shift < 64; shift += 8)
      bytes += static_cast<char>(static_cast<uint64_t>(number) >> shift);
  }
  MergeOperator op = MergeOperator::kAdd;
  std::string bytes;
};

void Merge(PyStore& self, nb::handle key, const char* name, nb::handle operand) {
  Store& store = self.store();
  const Bytes bytes(key);
  const Operand merge(name, operand);
  const WriteOptions options{.keyspace = self.keyspace};
  WriteWith(options, Waits(*self.state, options), [&](const WriteOptions& write) {
    return store.Merge(bytes.view(), merge.op, merge.bytes, write);
  });
}

nb::object GetEntry(const PyStore& self, nb::handle key) {
  const Bytes bytes(key);
  Store& store = self.store();
  const std::optional<Entry> entry = ReadWith(self.options(), [&](const ReadOptions& options) {
    return store.GetEntry(bytes.view(), options);
  });
  if (!entry) return nb::none();
  nb::object expiry = nb::none();
  if (entry->expiry)
    expiry = nb::float_(static_cast<double>(entry->expiry->time_since_epoch().count()) / 1000);
  return nb::make_tuple(ToBytes(entry->value.view()), entry->version, expiry);
}

nb::list GetMany(const PyStore& self, nb::iterable keys, nb::handle otherwise) {
  Store& store = self.store();
  std::vector<nb::object> objects;
  std::vector<std::unique_ptr<Bytes>> bytes;
  std::vector<std::string_view> views;
  for (nb::handle key : keys) {
    objects.push_back(nb::borrow(key));
    bytes.push_back(std::make_unique<Bytes>(key));
    views.push_back(bytes.back()->view());
  }
  std::vector<Result<MaybeValue>> results(views.size());
  const ReadOptions options = self.options();
  const Status status = [&] {
    const nb::gil_scoped_release release;
    return store.MultiGet(views, results, options);
  }();
  Check(status);
  nb::list values;
  for (Result<MaybeValue>& result : results)
    values.append(ToBytesOr(Check(std::move(result)), otherwise));
  return values;
}

// Batches.

void CommitBatch(PyBatch& self, nb::handle durability) {
  WriteBatch& batch = self.Use();
  Store& store = self.state->Use();
  self.ended = true;
  const WriteOptions options{.durability = ToDurability(durability)};
  // Without the GIL where the copy of the records is what takes time.
  const bool waits = Waits(*self.state, options) || batch.byte_size() > (size_t{16} << 10);
  WriteWith(options, waits, [&](const WriteOptions& write) { return store.Write(batch, write); });
}

void DefineBatch(nb::module_& module) {
  using nb::literals::operator""_a;
  nb::class_<PyBatch>(module, "Batch")
      .def("__setitem__",
           [](PyBatch& self, nb::handle key, nb::handle value) {
             WriteBatch& batch = self.Use();
             batch.Put(Bytes(key).view(), Bytes(value).view(), {.keyspace = self.keyspace});
             Check(batch.status());
           })
      .def(
          "put",
          [](PyBatch& self, nb::handle key, nb::handle value, nb::handle ttl) {
            WriteBatch& batch = self.Use();
            batch.Put(Bytes(key).view(), Bytes(value).view(),
                      {.keyspace = self.keyspace, .ttl = ToTtl(ttl)});
            Check(batch.status());
          },
          "key"_a, "value"_a, nb::kw_only(), "ttl"_a = nb::none())
      .def(
          "delete",
          [](PyBatch& self, nb::handle key) {
            self.Use().Delete(Bytes(key).view(), self.keyspace);
            Check(self.batch->status());
          },
          "key"_a)
      .def("__delitem__",
           [](PyBatch& self, nb::handle key) {
             self.Use().Delete(Bytes(key).view(), self.keyspace);
             Check(self.batch->status());
           })
      .def(
          "delete_range",
          [](PyBatch& self, nb::handle begin, nb::handle end) {
            self.Use().DeleteRange(Bytes(begin).view(), Bytes(end).view(), self.keyspace);
            Check(self.batch->status());
          },
          "begin"_a, "end"_a)
      .def(
          "merge",
          [](PyBatch& self, nb::handle key, const char* op, nb::handle operand) {
            const Operand merge(op, operand);
            self.Use().Merge(Bytes(key).view(), merge.op, merge.bytes, {.keyspace = self.keyspace});
            Check(self.batch->status());
          },
          "key"_a, "op"_a, "operand"_a)
      .def(
          "require_absent",
          [](PyBatch& self, nb::handle key) {
            self.Use().RequireAbsent(Bytes(key).view(), self.keyspace);
            Check(self.batch->status());
          },
          "key"_a)
      .def(
          "require_present",
          [](PyBatch& self, nb::handle key) {
            self.Use().RequirePresent(Bytes(key).view(), self.keyspace);
            Check(self.batch->status());
          },
          "key"_a)
      .def(
          "require_unchanged",
          [](PyBatch& self, nb::handle key, uint64_t version) {
            self.Use().RequireUnchanged(Bytes(key).view(), version, self.keyspace);
            Check(self.batch->status());
          },
          "key"_a, "version"_a)
      .def("__len__", [](PyBatch& self) { return self.batch->count(); })
      .def(
          "keyspace",
          [](PyBatch& self, const PyStore& of) {
            if (of.state != self.state) throw nb::value_error("a keyspace of another store");
            return PyBatch{.state = self.state, .batch = self.batch, .keyspace = of.keyspace};
          },
          "keyspace"_a, "The same batch, for records of another keyspace.")
      .def("commit", &CommitBatch, nb::kw_only(), "durability"_a = nb::none())
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def(
          "__exit__",
          [](PyBatch& self, nb::handle type, nb::handle, nb::handle) {
            if (type.is_none() && !self.ended) CommitBatch(self, nb::none());
            self.ended = true;
          },
          nb::arg().none(), nb::arg().none(), nb::arg().none());
}

// Transactions.

void CommitTransaction(PyTransaction& self, nb::handle durability) {
  Transaction& transaction = self.store();
  const WriteOptions options{.durability = ToDurability(durability)};
  const InUse in_use(&self.shared->in_use, "the transaction");
  // A commit ends the transaction with any answer, so that there is no second attempt.
  WriteWith(options, true, [&](const WriteOptions& write) { return transaction.Commit(write); });
}

WriteOptions InTransaction(const PyTransaction& self, nb::handle ttl) {
  return {.keyspace = self.keyspace, .ttl = ToTtl(ttl)};
}

void DefineTransaction(nb::module_& module) {
  using nb::literals::operator""_a;
  nb::class_<PyTransaction> cls(module, "Transaction");
  DefineReads(cls);
  cls.def("__setitem__",
          [](PyTransaction& self, nb::handle key, nb::handle value) {
            Check(self.store().Put(Bytes(key).view(), Bytes(value).view(),
                                   {.keyspace = self.keyspace}));
          })
      .def(
          "put",
          [](PyTransaction& self, nb::handle key, nb::handle value, nb::handle ttl) {
            Check(
                self.store().Put(Bytes(key).view(), Bytes(value).view(), InTransaction(self, ttl)));
          },
          "key"_a, "value"_a, nb::kw_only(), "ttl"_a = nb::none())
      .def(
          "put_if_absent",
          [](PyTransaction& self, nb::handle key, nb::handle value, nb::handle ttl) {
            return Check(self.store().PutIfAbsent(Bytes(key).view(), Bytes(value).view(),
                                                  InTransaction(self, ttl)));
          },
          "key"_a, "value"_a, nb::kw_only(), "ttl"_a = nb::none())
      .def(
          "delete",
          [](PyTransaction& self, nb::handle key) {
            Check(self.store().Delete(Bytes(key).view(), {.keyspace = self.keyspace}));
          },
          "key"_a)
      .def("__delitem__",
           [](PyTransaction& self, nb::handle key) {
             if (!Contains(self, key)) RaiseKeyError(key);
             Check(self.store().Delete(Bytes(key).view(), {.keyspace = self.keyspace}));
           })
      .def(
          "delete_range",
          [](PyTransaction& self, nb::handle begin, nb::handle end) {
            Check(self.store().DeleteRange(Bytes(begin).view(), Bytes(end).view(),
                                           {.keyspace = self.keyspace}));
          },
          "begin"_a, "end"_a)
      .def(
          "merge",
          [](PyTransaction& self, nb::handle key, const char* op, nb::handle operand) {
            const Operand merge(op, operand);
            Check(self.store().Merge(Bytes(key).view(), merge.op, merge.bytes,
                                     {.keyspace = self.keyspace}));
          },
          "key"_a, "op"_a, "operand"_a)
      .def(
          "keyspace",
          [](PyTransaction& self, const PyStore& of) {
            if (of.state != self.shared->state)
              throw nb::value_error("a keyspace of another store");
            return PyTransaction{.shared = self.shared, .keyspace = of.keyspace};
          },
          "keyspace"_a, "The same transaction, on another keyspace.")
      .def("commit", &CommitTransaction, nb::kw_only(), "durability"_a = nb::none())
      .def("rollback", [](PyTransaction& self) { self.store().Rollback(); })
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def(
          "__exit__",
          [](PyTransaction& self, nb::handle type, nb::handle, nb::handle) {
            if (!self.store().is_open()) return;
            if (type.is_none()) {
              CommitTransaction(self, nb::none());
            } else {
              self.store().Rollback();
            }
          },
          nb::arg().none(), nb::arg().none(), nb::arg().none());
}

// Stores.

PyDb OpenDb(nb::handle path, bool create, bool read_only, uint64_t memory_budget,
            nb::handle durability, nb::handle default_ttl) {
  const std::string name = ToPath(path);
  const Durability level = ToDurability(durability).value_or(Durability::kProcess);
  const DBOptions options{.create_if_missing = create,
                          .memory_budget = memory_budget,
                          .durability = level,
                          .default_ttl = ToTtl(default_ttl).value_or(std::chrono::milliseconds(0))};
  auto opened = [&] {
    const nb::gil_scoped_release release;
    return read_only ? DB::OpenReadOnly(name, options) : DB::Open(name, options);
  }();
  std::unique_ptr<DB> db = Check(std::move(opened));
  auto state = std::make_shared<State>();
  state->db = db.get();
  state->store = std::move(db);
  state->waits = level == Durability::kPower;
  return {{.state = std::move(state), .name = name}};
}

PyMemTable MakeMemTable(uint64_t memory_budget) {
  std::unique_ptr<MemTable> table = Check(MemTable::Create({.memory_budget = memory_budget}));
  auto state = std::make_shared<State>();
  state->memtable = table.get();
  state->store = std::move(table);
  return {{.state = std::move(state)}};
}

PyKeyspace OpenKeyspace(PyStore& self, std::string name, bool create, nb::handle default_ttl) {
  Store& store = self.store();
  const KeyspaceOptions options{.default_ttl = ToTtl(default_ttl)};
  auto opened = [&] {
    const nb::gil_scoped_release release;
    return create ? store.OpenOrCreateKeyspace(name, options) : store.OpenKeyspace(name);
  }();
  const KeyspaceId id = Check(std::move(opened));
  return {{.state = self.state, .keyspace = id, .name = std::move(name)}};
}

/// Calls `work(store)` without the GIL.
template <class Work>
void Background(PyStore& self, const Work& work) {
  Store& store = self.store();
  const Status status = [&] {
    const nb::gil_scoped_release release;
    return work(store);
  }();
  Check(status);
}

void Close(PyStore& self) {
  CheckSameProcess(self.state->fork_count);
  self.state->closed = true;
  if (self.state->db == nullptr) return;
  auto collections = std::exchange(self.state->collections, {});
  const Status status = [&] {
    const nb::gil_scoped_release release;
    collections.clear();
    return self.state->db->Close();
  }();
  Check(status);
}

DB& DatabaseOf(PyStore& self) {
  self.store();
  if (self.state->db == nullptr) {
    Raise(Status(StatusCode::kUnsupported, "a memtable has no tables on disk"));
  }
  return *self.state->db;
}

void DefineStore(nb::module_& module) {
  using nb::literals::operator""_a;
  nb::class_<PyStore> cls(module, "Store");
  DefineReads(cls);
  cls.def("__setitem__", &SetItem)
      .def("__delitem__", &DelItem)
      .def("put", &Put, "key"_a, "value"_a, nb::kw_only(), "ttl"_a = nb::none(),
           "durability"_a = nb::none())
      .def("put_if_absent", &PutIfAbsent, "key"_a, "value"_a, nb::kw_only(), "ttl"_a = nb::none(),
           "durability"_a = nb::none())
      .def("delete", &Delete, "key"_a, nb::kw_only(), "durability"_a = nb::none())
      .def("delete_range", &DeleteRange, "begin"_a, "end"_a)
      .def("merge", &Merge, "key"_a, "op"_a, "operand"_a)
      .def(
          "_take",
          [](PyStore& self, nb::handle key, nb::handle otherwise) {
            return ToBytesOr(Take(self, key), otherwise);
          },
          nb::arg(), nb::arg().none())
      .def("_get_entry", &GetEntry)
      .def("get_many", &GetMany, "keys"_a, "default"_a = nb::none())
      .def("batch",
           [](PyStore& self) {
             self.store();
             return PyBatch{.state = self.state, .keyspace = self.keyspace};
           })
      .def("transaction",
           [](PyStore& self) {
             return PyTransaction{
                 .shared = std::make_shared<PyTransaction::Shared>(PyTransaction::Shared{
                     .state = self.state, .transaction = Check(self.store().Begin())}),
                 .keyspace = self.keyspace};
           })
      .def("snapshot",
           [](PyStore& self) {
             return PySnapshot{
                 .state = self.state,
                 .snapshot = std::make_shared<const Snapshot>(Check(self.store().GetSnapshot())),
                 .keyspace = self.keyspace};
           })
      .def("sync",
           [](PyStore& self) { Background(self, [](Store& store) { return store.Sync(); }); })
      .def("compact",
           [](PyStore& self) {
             Background(self, [&](Store&) {
               return self.state->db != nullptr
                          ? self.state->db->CompactRange({}, {}, self.keyspace)
                          : self.state->memtable->Compact();
             });
           })
      .def("stats",
           [](PyStore& self) {
             self.store();
             return FromJson(self.state->db != nullptr ? ToJson(self.state->db->GetStats())
                                                       : ToJson(self.state->memtable->GetStats()));
           })
      .def_prop_ro("name", [](PyStore& self) {
        return nb::steal(PyUnicode_DecodeFSDefaultAndSize(
            self.name.data(), static_cast<Py_ssize_t>(self.name.size())));
      });

  const auto define_owner = [](auto& owner) {
    owner
        .def(
            "keyspace",
            [](PyStore& self, std::string name, bool create, nb::handle default_ttl) {
              return OpenKeyspace(self, std::move(name), create, default_ttl);
            },
            "name"_a, nb::kw_only(), "create"_a = true, "default_ttl"_a = nb::none())
        .def("keyspaces",
             [](PyStore& self) {
               nb::list names;
               for (const KeyspaceInfo& info : Check(self.store().ListKeyspaces()))
                 if (info.id != KeyspaceId::kDefault)
                   names.append(nb::str(info.name.data(), info.name.size()));
               return names;
             })
        .def(
            "drop_keyspace",
            [](PyStore& self, std::string name) {
              Background(self, [&](Store& store) -> Status {
                Result<KeyspaceId> id = store.OpenKeyspace(name);
                return id ? store.DropKeyspace(*id) : id.error();
              });
            },
            "name"_a)
        .def("close", &Close)
        .def_prop_ro("closed", [](PyStore& self) { return self.state->closed; })
        .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
        .def(
            "__exit__",
            [](PyStore& self, nb::handle, nb::handle, nb::handle) {
              if (!self.state->closed) Close(self);
            },
            nb::arg().none(), nb::arg().none(), nb::arg().none());
  };
  nb::class_<PyDb, PyStore> db(module, "DB");
  define_owner(db);
  db.def("flush", [](PyDb& self) {
    DB& database = DatabaseOf(self);
    Background(self, [&](Store&) { return database.Flush(); });
  });
  nb::class_<PyMemTable, PyStore> memtable(module, "MemTable");
  define_owner(memtable);
  memtable.def(
      "__init__",
      [](PyMemTable* self, uint64_t memory_budget) {
        new (self) PyMemTable(MakeMemTable(memory_budget));
      },
      nb::kw_only(), "memory_budget"_a = MemTableOptions().memory_budget);
  nb::class_<PyKeyspace, PyStore>(module, "Keyspace");

  nb::class_<PySnapshot> snapshot(module, "Snapshot");
  DefineReads(snapshot);
  snapshot
      .def(
          "keyspace",
          [](PySnapshot& self, const PyStore& of) {
            if (of.state != self.state) throw nb::value_error("a keyspace of another store");
            return PySnapshot{
                .state = self.state, .snapshot = self.snapshot, .keyspace = of.keyspace};
          },
          "keyspace"_a, "The same moment of another keyspace.")
      .def("close", [](PySnapshot& self) { self.snapshot.reset(); })
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def(
          "__exit__",
          [](PySnapshot& self, nb::handle, nb::handle, nb::handle) { self.snapshot.reset(); },
          nb::arg().none(), nb::arg().none(), nb::arg().none());

  module.def("open", &OpenDb, "path"_a, nb::kw_only(), "create"_a = true, "read_only"_a = false,
             "memory_budget"_a = 0, "durability"_a = nb::none(), "default_ttl"_a = nb::none());
  module.def("_check", [](nb::handle path) {
    const std::string name = ToPath(path);
    auto report = [&] {
      const nb::gil_scoped_release release;
      return DB::Check(name);
    }();
    return FromJson(ToJson(Check(std::move(report))));
  });
  module.def("destroy", [](nb::handle path) { Check(DB::Destroy(ToPath(path))); }, "path"_a);
}

}  // namespace

void DefineStores(nb::module_& module) {
  DefineScan(module);
  DefineBatch(module);
  DefineStore(module);
  DefineTransaction(module);
}

}  // namespace basalt::python
