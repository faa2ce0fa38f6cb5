#pragma once

// Between Python's objects and what collections, graphs and corpora keep: texts, attributes,
// properties, times and vectors.
//
// Texts are str in Python and bytes in the store. Bytes that are not UTF-8 become lone surrogates
// and back, as in os.fsdecode, so that no id is lost.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/attributes.h"
#include "basalt/property.h"
#include "basalt/wall_time.h"
#include "convert.h"

namespace basalt::python {

/// The bytes of a str, or of bytes. `what` names it in the TypeError for other types.
std::string FromText(nb::handle text, const char* what);
nb::object ToText(std::string_view text);
/// A str is one text; other iterables are many.
std::vector<std::string> FromTexts(nb::handle texts, const char* what);

/// A mapping of names to bool, int, float, str, or None, which is left out. None: empty.
Attributes FromAttributes(nb::handle mapping);
nb::dict ToAttributes(const Attributes& attributes);

/// A mapping of names to None, bool, int, float, str, bytes, datetime, or a list of these. None:
/// empty.
Properties FromProperties(nb::handle mapping);
nb::dict ToProperties(const Properties& properties);

/// A datetime, or seconds since 1970 UTC; None: unset.
std::optional<WallTime> FromTime(nb::handle time);
/// A datetime in UTC, or None.
nb::object ToTime(const std::optional<WallTime>& time);

/// A vector: a buffer of one dimension of float16, float32 or float64 (a numpy array, array.array),
/// or a sequence of numbers.
std::vector<float> FromVector(nb::handle vector);
/// Many vectors: a buffer of two dimensions, or an iterable of vectors.
std::vector<std::vector<float>> FromVectors(nb::handle vectors);
/// An array.array of float32.
nb::object ToVector(std::span<const float> vector);

/// Makes one of the classes of basalt._types.
template <class... Arguments>
nb::object Make(const char* class_name, Arguments&&... arguments) {
  return nb::module_::import_("basalt._types")
      .attr(class_name)(std::forward<Arguments>(arguments)...);
}

}  // namespace basalt::python
