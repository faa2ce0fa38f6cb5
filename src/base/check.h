#pragma once

#include <utility>

#include "basalt/status.h"

namespace basalt::base {

/// Reports a broken internal invariant and ends the process.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition) noexcept;

}  // namespace basalt::base

/// Stays on in release builds: for our own bugs only, never for bad input.
#define BASALT_CHECK(condition)                      \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::basalt::base::CheckFailed(__FILE__, __LINE__, #condition))

/// Leaves the enclosing function with the error, if there is one.
#define BASALT_RETURN_IF_ERROR(expression)                                  \
  do {                                                                      \
    if (::basalt::Status basalt_error = (expression); !basalt_error.ok()) { \
      return basalt_error;                                                  \
    }                                                                       \
  } while (false)

#define BASALT_CONCAT_INNER(a, b) a##b
#define BASALT_CONCAT(a, b) BASALT_CONCAT_INNER(a, b)

/// Declares `declaration` from a Result, or leaves the enclosing function with its error.
#define BASALT_ASSIGN_OR_RETURN(declaration, expression) \
  BASALT_ASSIGN_OR_RETURN_INNER(BASALT_CONCAT(result_, __LINE__), declaration, expression)
#define BASALT_ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                          \
  if (!result) return result.error();                                  \
  declaration = std::move(*result)
