#include "values.h"

#include <cmath>
#include <cstring>
#include <utility>

namespace basalt::python {
namespace {

[[noreturn]] void RaiseType(const char* what, const char* wanted, nb::handle got) {
  PyErr_Format(PyExc_TypeError, "%s must be %s, not %.100s", what, wanted,
               Py_TYPE(got.ptr())->tp_name);
  throw nb::python_error();
}

int64_t FromInteger(nb::handle value) {
  const int64_t number = PyLong_AsLongLong(value.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return number;
}

double FromFloat(nb::handle value) {
  const double number = PyFloat_AsDouble(value.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return number;
}

/// What bool, int, float and str have in common for attributes and properties. False: it is none
/// of them.
template <class Value>
bool FromPlain(nb::handle value, Value* to) {
  if (PyBool_Check(value.ptr())) {
    *to = value.ptr() == Py_True;
  } else if (PyLong_Check(value.ptr())) {
    *to = FromInteger(value);
  } else if (PyFloat_Check(value.ptr())) {
    *to = FromFloat(value);
  } else if (PyUnicode_Check(value.ptr())) {
    *to = FromText(value, "a text");
  } else {
    return false;
  }
  return true;
}

/// Calls `each(name, value)` with the items of a mapping; None has none.
template <class Each>
void ForEachItem(nb::handle mapping, const char* what, const Each& each) {
  if (mapping.is_none()) return;
  if (!nb::hasattr(mapping, "items")) RaiseType(what, "a mapping", mapping);
  const nb::object items = nb::steal(PyMapping_Items(mapping.ptr()));
  if (!items.is_valid()) throw nb::python_error();
  for (nb::handle item : items) each(FromText(item[0], "a name"), nb::object(item[1]));
}

PropertyValue FromProperty(nb::handle value, int depth) {
  PropertyValue plain;
  if (value.is_none() || FromPlain(value, &plain)) return plain;
  if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) {
    if (depth == kPropertyDepthMax) throw nb::value_error("lists of a property nest up to 16 deep");
    PropertyValue::List list;
    for (nb::handle element : value) list.push_back(FromProperty(element, depth + 1));
    return list;
  }
  if (nb::hasattr(value, "timestamp")) return *FromTime(value);
  if (nb::hasattr(value, "item")) return FromProperty(value.attr("item")(), depth);
  if (!PyObject_CheckBuffer(value.ptr()))
    RaiseType("a property", "None, bool, int, float, str, bytes, datetime or a list", value);
  return basalt::Bytes{std::string(Bytes(value).view())};
}

nb::object ToProperty(const PropertyValue& value) {
  if (const auto* boolean = value.As<bool>()) return nb::bool_(*boolean);
  if (const auto* integer = value.As<int64_t>()) return nb::int_(*integer);
  if (const auto* number = value.As<double>()) return nb::float_(*number);
  if (const auto* text = value.As<std::string>()) return ToText(*text);
  if (const auto* bytes = value.As<basalt::Bytes>()) return ToBytes(bytes->bytes);
  if (const auto* time = value.As<WallTime>()) return ToTime(*time);
  if (const auto* list = value.As<PropertyValue::List>()) {
    nb::list elements;
    for (const PropertyValue& element : *list) elements.append(ToProperty(element));
    return elements;
  }
  return nb::none();
}

/// A buffer of floating-point numbers, of one or two dimensions.
class Floats {
 public:
  /// False: the object has no buffer.
  bool Take(nb::handle object) {
    if (!PyObject_CheckBuffer(object.ptr())) return false;
    if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
      buffer_.obj = nullptr;
      throw nb::python_error();
    }
    std::string_view format = buffer_.format == nullptr ? "B" : buffer_.format;
    if (format.size() == 2 && (format[0] == '@' || format[0] == '=' || format[0] == '<'))
      format.remove_prefix(1);
    if (format != "f" && format != "d" && format != "e") {
      PyErr_Format(PyExc_TypeError,
                   "a vector's buffer must be of float16, float32 or float64, not of '%.20s'",
                   buffer_.format == nullptr ? "B" : buffer_.format);
      throw nb::python_error();
    }
    format_ = format[0];
    return true;
  }
  ~Floats() {
    if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
  }
  Floats() = default;
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;

  int dimensions() const noexcept { return buffer_.ndim; }
  size_t size(int dimension) const noexcept {
    return static_cast<size_t>(buffer_.shape[dimension]);
  }

  /// The elements from `at` on, along the last dimension.
  std::vector<float> Row(const char* at) const {
    const int last = buffer_.ndim - 1;
    const Py_ssize_t stride = buffer_.strides[last];
    std::vector<float> row(size(last));
    if (format_ == 'f' && stride == sizeof(float)) {
      if (!row.empty()) std::memcpy(row.data(), at, row.size() * sizeof(float));
      return row;
    }
    for (float& element : row) {
      element = Element(at);
      at += stride;
    }
    return row;
  }
  std::vector<float> Row() const { return Row(static_cast<const char*>(buffer_.buf)); }
  /// Of two dimensions.
  std::vector<float> Row(size_t index) const {
    return Row(static_cast<const char*>(buffer_.buf) +
               static_cast<Py_ssize_t>(index) * buffer_.strides[0]);
  }

 private:
  float Element(const char* at) const {
    if (format_ == 'f') {
      float value;
      std::memcpy(&value, at, sizeof(value));
      return value;
    }
    if (format_ == 'd') {
      double value;
      std::memcpy(&value, at, sizeof(value));
      return static_cast<float>(value);
    }
    uint16_t half;
    std::memcpy(&half, at, sizeof(half));
    const double magnitude = (half & 0x7c00) == 0x7c00 ? ((half & 0x3ff) == 0 ? INFINITY : NAN)
                             : (half & 0x7c00) == 0
                                 ? std::ldexp(half & 0x3ff, -24)
                                 : std::ldexp((half & 0x3ff) + 1024, ((half >> 10) & 31) - 25);
    return static_cast<float>((half & 0x8000) != 0 ? -magnitude : magnitude);
  }

  Py_buffer buffer_{};
  char format_ = 'f';
};

}  // namespace

std::string FromText(nb::handle text, const char* what) {
  if (PyBytes_Check(text.ptr())) return std::string(Bytes(text).view());
  if (!PyUnicode_Check(text.ptr())) RaiseType(what, "str or bytes", text);
  Py_ssize_t size = 0;
  if (const char* utf8 = PyUnicode_AsUTF8AndSize(text.ptr(), &size))
    return {utf8, static_cast<size_t>(size)};
  PyErr_Clear();
  const nb::object bytes =
      nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
  if (!bytes.is_valid()) throw nb::python_error();
  return std::string(Bytes(bytes).view());
}

nb::object ToText(std::string_view text) {
  PyObject* decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
  if (decoded == nullptr) throw nb::python_error();
  return nb::steal(decoded);
}

std::vector<std::string> FromTexts(nb::handle texts, const char* what) {
  std::vector<std::string> found;
  if (PyUnicode_Check(texts.ptr()) || PyBytes_Check(texts.ptr())) {
    found.push_back(FromText(texts, what));
    return found;
  }
  for (nb::handle text : nb::iter(texts)) found.push_back(FromText(text, what));
  return found;
}

Attributes FromAttributes(nb::handle mapping) {
  Attributes attributes;
  ForEachItem(mapping, "attributes", [&](std::string name, nb::object value) {
    if (value.is_none()) return;
    AttributeValue attribute;
    if (!FromPlain(value, &attribute)) {
      // A number of numpy.
      if (!nb::hasattr(value, "item") || !FromPlain(value.attr("item")(), &attribute))
        RaiseType("an attribute", "bool, int, float, str or None", value);
    }
    attributes.insert_or_assign(std::move(name), std::move(attribute));
  });
  return attributes;
}

nb::dict ToAttributes(const Attributes& attributes) {
  nb::dict found;
  for (const auto& [name, attribute] : attributes) {
    found[ToText(name)] = std::visit(
        [](const auto& value) -> nb::object {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
            return ToText(value);
          } else {
            return nb::cast(value);
          }
        },
        attribute);
  }
  return found;
}

Properties FromProperties(nb::handle mapping) {
  Properties properties;
  ForEachItem(mapping, "properties", [&](std::string name, nb::object value) {
    properties.insert_or_assign(std::move(name), FromProperty(value, 0));
  });
  return properties;
}

nb::dict ToProperties(const Properties& properties) {
  nb::dict found;
  for (const auto& [name, value] : properties) found[ToText(name)] = ToProperty(value);
  return found;
}

std::optional<WallTime> FromTime(nb::handle time) {
  if (time.is_none()) return std::nullopt;
  nb::object seconds = nb::borrow(time);
  if (nb::hasattr(time, "timestamp")) seconds = time.attr("timestamp")();
  const double milliseconds = std::round(FromFloat(seconds) * 1000);
  if (!(std::abs(milliseconds) < 9e15)) throw nb::value_error("the time is out of range");
  return WallTime(std::chrono::milliseconds(static_cast<int64_t>(milliseconds)));
}

nb::object ToTime(const std::optional<WallTime>& time) {
  if (!time) return nb::none();
  const nb::object module = nb::module_::import_("datetime");
  const nb::object epoch =
      module.attr("datetime")(1970, 1, 1, nb::arg("tzinfo") = module.attr("timezone").attr("utc"));
  return epoch +
         module.attr("timedelta")(nb::arg("milliseconds") = time->time_since_epoch().count());
}

std::vector<float> FromVector(nb::handle vector) {
  Floats floats;
  if (floats.Take(vector)) {
    if (floats.dimensions() != 1) throw nb::value_error("a vector has one dimension");
    return floats.Row();
  }
  if (PyUnicode_Check(vector.ptr())) RaiseType("a vector", "a buffer or a sequence", vector);
  std::vector<float> elements;
  for (nb::handle element : nb::iter(vector))
    elements.push_back(static_cast<float>(FromFloat(element)));
  return elements;
}

std::vector<std::vector<float>> FromVectors(nb::handle vectors) {
  std::vector<std::vector<float>> rows;
  Floats floats;
  if (floats.Take(vectors)) {
    if (floats.dimensions() != 2) throw nb::value_error("a buffer of vectors has two dimensions");
    rows.reserve(floats.size(0));
    for (size_t row = 0; row < floats.size(0); ++row) rows.push_back(floats.Row(row));
    return rows;
  }
  if (PyUnicode_Check(vectors.ptr())) RaiseType("vectors", "a buffer or an iterable", vectors);
  for (nb::handle vector : nb::iter(vectors)) rows.push_back(FromVector(vector));
  return rows;
}

nb::object ToVector(std::span<const float> vector) {
  return nb::module_::import_("array").attr("array")(
      "f", ToBytes({reinterpret_cast<const char*>(vector.data()), vector.size_bytes()}));
}

}  // namespace basalt::python
