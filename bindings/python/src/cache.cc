#include "basalt/cache.h"

#include <optional>
#include <string>
#include <utility>

#include "basalt/json.h"
#include "convert.h"

namespace basalt::python {
namespace {

struct PyCache {
  std::unique_ptr<Cache> cache;
  uint64_t fork_count = ForkCount();

  Cache& Use() {
    CheckSameProcess(fork_count);
    return *cache;
  }
};

void PutEntry(PyCache& self, nb::handle key, nb::handle value, nb::handle ttl) {
  Check(self.Use().Put(Bytes(key).view(), Bytes(value).view(), {.ttl = ToTtl(ttl)}));
}

/// What `fn` gives is kept, and given to all threads that ask for the key meanwhile.
nb::object GetOrCompute(PyCache& self, nb::handle key, nb::callable fn, nb::handle ttl) {
  Cache& cache = self.Use();
  const Bytes bytes(key);
  const CachePutOptions options{.ttl = ToTtl(ttl)};
  std::optional<nb::python_error> raised;  // By this thread's call of fn.
  const auto compute = [&]() -> Result<std::string> {
    const nb::gil_scoped_acquire acquire;
    try {
      const nb::object computed = fn();
      return std::string(Bytes(computed).view());
    } catch (nb::python_error& error) {
      raised.emplace(std::move(error));
      return Status(StatusCode::kCancelled,
                    "the function of another thread, which computes the "
                    "value of this key, raised an exception");
    }
  };
  auto value = [&] {
    const nb::gil_scoped_release release;
    return cache.GetOrCompute(bytes.view(), compute, options);
  }();
  if (raised) throw std::move(*raised);
  const Value computed = Check(std::move(value));
  return ToBytes(computed.view());
}

}  // namespace

void DefineCache(nb::module_& module) {
  using nb::literals::operator""_a;
  nb::class_<PyCache>(module, "Cache")
      .def(
          "__init__",
          [](PyCache* self, uint64_t capacity_bytes, nb::handle default_ttl) {
            auto cache = Check(Cache::Create(
                {.capacity_bytes = capacity_bytes,
                 .default_ttl = ToTtl(default_ttl).value_or(std::chrono::milliseconds(0))}));
            new (self) PyCache{.cache = std::move(cache)};
          },
          "capacity_bytes"_a = CacheOptions().capacity_bytes, nb::kw_only(),
          "default_ttl"_a = nb::none())
      .def("__getitem__",
           [](PyCache& self, nb::handle key) {
             const MaybeValue value = self.Use().Get(Bytes(key).view());
             if (!value) RaiseKeyError(key);
             return ToBytes(value->view());
           })
      .def(
          "get",
          [](PyCache& self, nb::handle key, nb::handle otherwise) {
            return ToBytesOr(self.Use().Get(Bytes(key).view()), otherwise);
          },
          "key"_a, "default"_a = nb::none())
      .def("__contains__",
           [](PyCache& self, nb::handle key) {
             return self.Use().Peek(Bytes(key).view()).has_value();
           })
      .def("__setitem__", [](PyCache& self, nb::handle key,
                             nb::handle value) { PutEntry(self, key, value, nb::none()); })
      .def("put", &PutEntry, "key"_a, "value"_a, nb::kw_only(), "ttl"_a = nb::none())
      .def(
          "put_if_absent",
          [](PyCache& self, nb::handle key, nb::handle value, nb::handle ttl) {
            return Check(self.Use().PutIfAbsent(Bytes(key).view(), Bytes(value).view(),
                                                {.ttl = ToTtl(ttl)}));
          },
          "key"_a, "value"_a, nb::kw_only(), "ttl"_a = nb::none())
      .def("__delitem__",
           [](PyCache& self, nb::handle key) {
             if (!self.Use().Delete(Bytes(key).view())) RaiseKeyError(key);
           })
      .def(
          "delete",
          [](PyCache& self, nb::handle key) { return self.Use().Delete(Bytes(key).view()); },
          "key"_a)
      .def(
          "take",
          [](PyCache& self, nb::handle key, nb::handle otherwise) {
            return ToBytesOr(self.Use().Take(Bytes(key).view()), otherwise);
          },
          "key"_a, "default"_a = nb::none())
      .def(
          "touch",
          [](PyCache& self, nb::handle key, nb::handle ttl) {
            return self.Use().Touch(Bytes(key).view(), *ToTtl(ttl));  // None does not come here.
          },
          "key"_a, "ttl"_a)
      .def("get_or_compute", &GetOrCompute, "key"_a, "fn"_a, nb::kw_only(), "ttl"_a = nb::none())
      .def("clear", [](PyCache& self) { self.Use().Clear(); })
      .def("__len__", [](PyCache& self) { return self.Use().GetStats().entries; })
      .def("stats", [](PyCache& self) { return FromJson(ToJson(self.Use().GetStats())); });
}

}  // namespace basalt::python
