#include "convert.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cmath>
#include <limits>

namespace basalt::python {
namespace {

/// By code. References that the module never lets go of.
std::array<PyObject*, 18> error_classes;
PyObject* error_class = nullptr;

std::atomic<uint64_t> fork_count{0};

}  // namespace

void DefineErrors(nb::module_& module) {
  pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1, std::memory_order_relaxed); });
  const auto make = [&](const char* name, nb::object bases, nb::dict fields) {
    fields["__module__"] = "basalt";
    PyObject* made =
        PyErr_NewException((std::string("basalt.") + name).c_str(), bases.ptr(), fields.ptr());
    if (made == nullptr) throw nb::python_error();
    module.attr(name) = nb::borrow(made);
    return made;
  };
  nb::dict base;
  base["__doc__"] = "An error of Basalt. `code` and `sub_code` are names, for programs to act on.";
  base["code"] = nb::none();
  base["sub_code"] = nb::none();
  error_class = make("Error", nb::borrow(PyExc_Exception), base);
  for (size_t code = 1; code < error_classes.size(); ++code) {
    const std::string name(StatusCodeName(static_cast<StatusCode>(code)));
    nb::object bases = nb::borrow(error_class);
    if (static_cast<StatusCode>(code) == StatusCode::kInvalidArgument)
      bases = nb::make_tuple(nb::borrow(error_class), nb::borrow(PyExc_ValueError));
    nb::dict fields;
    fields["code"] = name.c_str();
    error_classes[code] = make(name.c_str(), bases, fields);
  }
}

void Raise(const Status& status) {
  const auto code = static_cast<size_t>(status.code());
  PyObject* type = code < error_classes.size() ? error_classes[code] : error_class;
  const std::string message(status.message());
  nb::object text = nb::steal(PyUnicode_DecodeUTF8(
      message.data(), static_cast<Py_ssize_t>(message.size()), "backslashreplace"));
  nb::object error = nb::borrow(type)(text);
  if (status.sub_code() != SubCode::kNone)
    error.attr("sub_code") = std::string(SubCodeName(status.sub_code())).c_str();
  PyErr_SetObject(type, error.ptr());
  throw nb::python_error();
}

uint64_t ForkCount() noexcept { return fork_count.load(std::memory_order_relaxed); }

void CheckSameProcess(uint64_t count) {
  if (count == ForkCount()) [[likely]]
    return;
  Raise(Status(StatusCode::kFailedPrecondition,
               "the object was made before fork(), by the parent process: make one in the child",
               SubCode::kForked));
}

void Bytes::Take(nb::handle object) {
  if (PyUnicode_Check(object.ptr())) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
    if (text == nullptr) throw nb::python_error();
    view_ = {text, static_cast<size_t>(size)};
    return;
  }
  if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_SIMPLE) != 0) {
    PyErr_Clear();
    buffer_.obj = nullptr;
    PyErr_Format(PyExc_TypeError, "keys and values are bytes, str or buffers, not %.100s",
                 Py_TYPE(object.ptr())->tp_name);
    throw nb::python_error();
  }
  view_ = {buffer_.buf == nullptr ? "" : static_cast<const char*>(buffer_.buf),
           static_cast<size_t>(buffer_.len)};
}

void RaiseKeyError(nb::handle key) {
  PyErr_SetObject(PyExc_KeyError, key.ptr());
  throw nb::python_error();
}

std::optional<std::chrono::milliseconds> ToTtl(nb::handle ttl) {
  if (ttl.is_none()) return std::nullopt;
  nb::object seconds = nb::borrow(ttl);
  if (nb::hasattr(ttl, "total_seconds")) seconds = ttl.attr("total_seconds")();
  const double value = PyFloat_AsDouble(seconds.ptr());
  if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  if (!(value > 0)) throw nb::value_error("ttl must be positive: seconds, or a timedelta");
  if (std::isinf(value)) return std::chrono::milliseconds(0);
  const double milliseconds = std::ceil(value * 1000);
  if (milliseconds > 9e15) throw nb::value_error("ttl is too long: use math.inf for no expiry");
  return std::chrono::milliseconds(static_cast<int64_t>(milliseconds));
}

std::optional<Durability> ToDurability(nb::handle durability) {
  if (durability.is_none()) return std::nullopt;
  const auto name = nb::cast<nb::str>(durability);
  const std::string_view text = name.c_str();
  if (text == "memory") return Durability::kMemory;
  if (text == "interval") return Durability::kInterval;
  if (text == "process") return Durability::kProcess;
  if (text == "power") return Durability::kPower;
  throw nb::value_error("durability must be 'memory', 'interval', 'process' or 'power'");
}

std::string ToPath(nb::handle path) {
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(path.ptr(), &bytes) == 0) throw nb::python_error();
  const nb::object owner = nb::steal(bytes);
  return {PyBytes_AS_STRING(bytes), static_cast<size_t>(PyBytes_GET_SIZE(bytes))};
}

nb::object FromJson(const std::string& json) {
  return nb::module_::import_("json").attr("loads")(nb::str(json.data(), json.size()));
}

}  // namespace basalt::python

NB_MODULE(_native, module) {
  module.doc() = "The C++ part of the package basalt, which documents it.";
  basalt::python::DefineErrors(module);
  basalt::python::DefineStores(module);
  basalt::python::DefineCache(module);
  basalt::python::DefineSharedMap(module);
  basalt::python::DefineCollections(module);
  basalt::python::DefineGraphs(module);
  basalt::python::DefineCorpora(module);
}
