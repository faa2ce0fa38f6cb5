# How our own code is compiled: warnings are errors, ccache when it is there, sanitizers on request.

# Paths are given to ccache relative to the checkout, so that a copy of the tree elsewhere hits too.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=true ${CCACHE})
endif()

# In another project's build (add_subdirectory) a new compiler's warning must not end the build.
add_library(basalt_warnings INTERFACE)
target_compile_options(basalt_warnings INTERFACE -Wall -Wextra -Wconversion $<$<BOOL:${PROJECT_IS_TOP_LEVEL}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # clang counts changes of sign among conversions, g++ does not.
  target_compile_options(basalt_warnings INTERFACE -Wno-sign-conversion)
else()
  add_compile_options(-fno-semantic-interposition)
endif()

if(BASALT_SANITIZE)
  if(BASALT_SANITIZE STREQUAL "address")
    set(sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all)
    add_compile_definitions(__SANITIZE_ADDRESS__)  # g++ defines it itself, clang does not.
  elseif(BASALT_SANITIZE STREQUAL "thread")
    set(sanitizers -fsanitize=thread)
  elseif(BASALT_SANITIZE STREQUAL "fuzzer")
    if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      message(FATAL_ERROR "BASALT_SANITIZE=fuzzer needs clang: cmake --preset fuzz chooses it")
    endif()
    set(sanitizers -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  else()
    message(FATAL_ERROR "BASALT_SANITIZE is '${BASALT_SANITIZE}': give address, thread or fuzzer")
  endif()
  add_compile_options(${sanitizers} -fno-omit-frame-pointer)
  add_link_options(${sanitizers})
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumented code leads g++ to report variables that the plain build knows to be set.
    target_compile_options(basalt_warnings INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()

# g++ 12 sees overlapping copies in string concatenation where there are none (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(basalt_warnings INTERFACE -Wno-restrict)
endif()
