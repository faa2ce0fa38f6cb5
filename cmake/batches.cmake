# Batches: files that include several source files, so that the compiler reads the headers that these share once.
# BASALT_BATCHES says what is compiled so. The sources of a folder must then not define one name twice, not even in
# unnamed namespaces.
#
# The presets `asan`, `tsan` and `fuzz` compile everything in batches, since they only run tests. `release` compiles
# tests and tools so, but each file of the library alone: that is what users get. `lint` and `debug` have no batches.

set(BASALT_BATCHES "" CACHE STRING "What is compiled several files at a time: nothing, tests (and tools), or all")
if(NOT BASALT_BATCHES MATCHES "^(|tests|all)$")
  message(FATAL_ERROR "BASALT_BATCHES is '${BASALT_BATCHES}': give nothing, tests or all")
endif()

# basalt_batches(VARIABLE TARGET SOURCE...): sets VARIABLE to the files which TARGET compiles for these sources.
# The path of an include is relative to the checkout, so that ccache knows the batch in another checkout.
function(basalt_batches variable target)
  # Highway compiles a file that has kernels several times over, and finds them by their name: each stays alone.
  set(batches "")
  set(batched "")
  foreach(source IN LISTS ARGN)
    file(STRINGS ${source} kernels REGEX "foreach_target" LIMIT_COUNT 1)
    if(kernels)
      list(APPEND batches ${source})
    else()
      list(APPEND batched ${source})
    endif()
  endforeach()
  list(LENGTH batched count)
  if(count EQUAL 0)
    set(${variable} ${batches} PARENT_SCOPE)
    return()
  endif()
  math(EXPR last "(${count} - 1) / 8")  # At most eight files a batch.
  math(EXPR parts "${last} + 1")
  foreach(part RANGE ${last})
    math(EXPR begin "${count} * ${part} / ${parts}")
    math(EXPR size "${count} * (${part} + 1) / ${parts} - ${begin}")
    list(SUBLIST batched ${begin} ${size} sources)
    set(text "")
    foreach(source IN LISTS sources)
      file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${source})
      string(APPEND text "#include \"${path}\"  // NOLINT(bugprone-suspicious-include)\n")
    endforeach()
    set(batch ${PROJECT_BINARY_DIR}/batches/${target}_${part}.cc)
    file(CONFIGURE OUTPUT ${batch} CONTENT "${text}" @ONLY)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # It warns of types in unnamed namespaces where they are not in the main file.
      set_source_files_properties(${batch} PROPERTIES COMPILE_OPTIONS -Wno-subobject-linkage)
    endif()
    list(APPEND batches ${batch})
  endforeach()
  set(${variable} ${batches} PARENT_SCOPE)
endfunction()
