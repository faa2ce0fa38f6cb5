#include "basalt/shared_map.h"

#include <optional>
#include <string>
#include <utility>

#include "basalt/json.h"
#include "convert.h"

namespace basalt::python {
namespace {

/// Reads go through one Reader, which the GIL gives to one thread at a time; they wait for no
/// lock. What writes lets go of the GIL.
struct PyMap {
  std::unique_ptr<SharedMap> map;
  std::optional<SharedMap::Reader> reader;
  bool closed = false;

  SharedMap& Use() {
    if (closed)
      Raise(Status(StatusCode::kFailedPrecondition, "the map is closed", SubCode::kClosed));
    return *map;
  }
  SharedMap::Reader& UseReader() {
    Use();
    return *reader;
  }
};

/// A value where it lies in the map's files. It has a Reader of its own, so that it does not hold
/// others back on its version.
struct PyView {
  SharedMap::Reader reader;
  SharedMap::MaybeView view;
};

int GetBuffer(PyObject* self, Py_buffer* buffer, int flags) {
  const std::string_view bytes = nb::inst_ptr<PyView>(self)->view->view();
  return PyBuffer_FillInfo(buffer, self, const_cast<char*>(bytes.data()),
                           static_cast<Py_ssize_t>(bytes.size()), 1, flags);
}

PyMap MakeMap(Result<std::unique_ptr<SharedMap>> opened) {
  PyMap made{.map = Check(std::move(opened)), .reader = std::nullopt};
  made.reader.emplace(Check(made.map->NewReader()));
  return made;
}

template <class Open>
PyMap OpenMap(const Open& open) {
  auto opened = [&] {
    const nb::gil_scoped_release release;
    return open();
  }();
  return MakeMap(std::move(opened));
}

template <class Work>
void ChangeMap(PyMap& self, const Work& work) {
  SharedMap& map = self.Use();
  const Status status = [&] {
    const nb::gil_scoped_release release;
    return work(map);
  }();
  Check(status);
}

void PutRecord(PyMap& self, nb::handle key, nb::handle value) {
  const Bytes key_bytes(key), value_bytes(value);
  ChangeMap(self, [&](SharedMap& map) { return map.Put(key_bytes.view(), value_bytes.view()); });
}

nb::object View(PyMap& self, nb::handle key, nb::handle otherwise) {
  PyView made{.reader = Check(self.UseReader().GetSnapshot()), .view = {}};
  made.view = Check(made.reader.Get(Bytes(key).view()));
  if (!made.view) return nb::borrow(otherwise);
  const nb::object owner = nb::cast(std::move(made));
  return nb::steal(PyMemoryView_FromObject(owner.ptr()));
}

/// All records, copied while the map is scanned on this thread.
nb::list Collect(PyMap& self, bool keys_only) {
  nb::list records;
  Check(self.UseReader().ParallelScan(1, [&](std::string_view key, std::string_view value) {
    if (keys_only) {
      records.append(ToBytes(key));
    } else {
      records.append(nb::make_tuple(ToBytes(key), ToBytes(value)));
    }
    return Status();
  }));
  return records;
}

/// Builds a map out of an iterable of pairs.
PyMap Build(nb::handle path, nb::iterable records, bool overwrite) {
  const std::string name = ToPath(path);
  auto builder =
      Check(SharedMapBuilder::Create(name, {.overwrite = overwrite}, Duplicates::kKeepLast));
  for (nb::handle record : records) {
    if (nb::len(record) != 2) throw nb::value_error("a record is a pair of key and value");
    const nb::object key = record[0], value = record[1];
    Check(builder->Add(Bytes(key).view(), Bytes(value).view()));
  }
  return OpenMap([&] { return builder->Finish(); });
}

}  // namespace

void DefineSharedMap(nb::module_& module) {
  using nb::literals::operator""_a;
  static PyType_Slot buffer_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&GetBuffer)},
                                       {0, nullptr}};
  nb::class_<PyView>(module, "_View", nb::type_slots(buffer_slots));
  nb::class_<PyMap>(module, "SharedMap")
      .def_static(
          "create",
          [](nb::handle path, bool overwrite) {
            const std::string name = ToPath(path);
            return OpenMap([&] { return SharedMap::Create(name, {.overwrite = overwrite}); });
          },
          "path"_a, nb::kw_only(), "overwrite"_a = false)
      .def_static(
          "open",
          [](nb::handle path) {
            const std::string name = ToPath(path);
            return OpenMap([&] { return SharedMap::Open(name); });
          },
          "path"_a)
      .def_static(
          "attach",
          [](nb::handle path) {
            const std::string name = ToPath(path);
            return OpenMap([&] { return SharedMap::Attach(name); });
          },
          "path"_a)
      .def_static("build", &Build, "path"_a, "records"_a, nb::kw_only(), "overwrite"_a = false)
      .def("__getitem__",
           [](PyMap& self, nb::handle key) {
             const SharedMap::MaybeView value = Check(self.UseReader().Get(Bytes(key).view()));
             if (!value) RaiseKeyError(key);
             return ToBytes(value->view());
           })
      .def(
          "get",
          [](PyMap& self, nb::handle key, nb::handle otherwise) {
            const SharedMap::MaybeView value = Check(self.UseReader().Get(Bytes(key).view()));
            return value ? ToBytes(value->view()) : nb::borrow(otherwise);
          },
          "key"_a, "default"_a = nb::none())
      .def("view", &View, "key"_a, "default"_a = nb::none())
      .def("__contains__",
           [](PyMap& self, nb::handle key) {
             return Check(self.UseReader().Contains(Bytes(key).view()));
           })
      .def("__len__", [](PyMap& self) { return Check(self.Use().GetStats()).entries; })
      .def("__iter__",
           [](PyMap& self) { return nb::steal(PyObject_GetIter(Collect(self, true).ptr())); })
      .def("__setitem__", &PutRecord)
      .def("put", &PutRecord, "key"_a, "value"_a)
      .def(
          "delete",
          [](PyMap& self, nb::handle key) {
            const Bytes bytes(key);
            ChangeMap(self, [&](SharedMap& map) { return map.Delete(bytes.view()); });
          },
          "key"_a)
      .def("__delitem__",
           [](PyMap& self, nb::handle key) {
             const Bytes bytes(key);
             bool was_there = false;
             const auto remove = [&](EntryUpdate& entry) {
               was_there = entry.exists();
               if (was_there) entry.Delete();
               return Status();
             };
             ChangeMap(self,
                       [&](SharedMap& map) { return map.Update(bytes.view(), std::cref(remove)); });
             if (!was_there) RaiseKeyError(key);
           })
      .def("_items", [](PyMap& self) { return Collect(self, false); })
      .def("sync", [](PyMap& self) { ChangeMap(self, [](SharedMap& map) { return map.Sync(); }); })
      .def("compact",
           [](PyMap& self) { ChangeMap(self, [](SharedMap& map) { return map.Compact(); }); })
      .def("stats", [](PyMap& self) { return FromJson(ToJson(Check(self.Use().GetStats()))); })
      .def("close",
           [](PyMap& self) {
             if (!self.closed) ChangeMap(self, [](SharedMap& map) { return map.Close(); });
             self.closed = true;
           })
      .def_prop_ro("closed", [](PyMap& self) { return self.closed; })
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def(
          "__exit__",
          [](PyMap& self, nb::handle, nb::handle, nb::handle) {
            if (!self.closed) ChangeMap(self, [](SharedMap& map) { return map.Close(); });
            self.closed = true;
          },
          nb::arg().none(), nb::arg().none(), nb::arg().none());
}

}  // namespace basalt::python
