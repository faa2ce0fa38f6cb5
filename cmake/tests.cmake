# Every test, as ctest runs it: the unit tests of each folder, whole-system tests, examples, the public
# headers alone, the installed package, the scripts.

find_package(GTest REQUIRED)
find_package(rapidcheck REQUIRED)

# A shard that takes longer hangs. Sanitizers slow code down up to fifteen times.
set(test_timeout_s 300)
if(BASALT_SANITIZE)
  set(test_timeout_s 900)
endif()

# A test for another processor runs in an emulator, where one is named.
# ThreadSanitizer of g++ 12 cannot place its shadow where the kernel randomises more than 28 bits.
set(test_launcher ${CMAKE_CROSSCOMPILING_EMULATOR})
if(BASALT_SANITIZE STREQUAL "thread" AND EXISTS /proc/sys/vm/mmap_rnd_bits)
  file(READ /proc/sys/vm/mmap_rnd_bits random_bits)
  if(random_bits GREATER 28)
    set(test_launcher setarch -R)
  endif()
endif()

# ThreadSanitizer is for code that runs in several threads, and slows all code down most. Where a file
# stands below, none of its tests starts a thread, nor does the library for it (they hand it a
# ManualExecutor, or ask it only for what the caller's thread does): there is no second access that could
# race. All of them run in the release build and, with AddressSanitizer, in that build. A file that is not
# named here runs everywhere, so what is new need not be entered, and what gets threads must be taken out.
set(tests_without_threads
    base/coding base/hash base/histogram base/key base/merge_operator base/random base/range_cover
    base/short_hash base/value base/write_batch
    cache/cache_budget cache/cache_expiry cache/cache_failures cache/cache_handles cache/cache_model
    cache/cache_stats cache/cache cache/hash_queue cache/index cache/recency cache/timing_wheel
    db/compaction_plan db/compaction_source db/manifest base/surviving_records
    embed/kernels embed/reference embed/safetensors embed/word_pieces
    io/clock io/file_system io/sim_inode net/answer_parser net/wire
    memtable/generation memtable/sorter
    phash/hole_list phash/level_shape phash/perfect_hash_open phash/placer phash/taken_slots
    shared_map/change_index shared_map/change_set shared_map/record_spool
    shared_map/shared_map_power_cut shared_map/shared_map_recovery
    table/block table/block_index table/bloom_filter table/merging_iterator table/plain_ahead
    table/point_index table/read_ahead table/table_corruption table/table_fault table/table_parts table/table
    table/visible_iterator table/zstd_block
    text/highlight text/postings text/query text/term_normalizer text/tokenizer text/word_break
    vector/attribute_code vector/attribute_filter vector/candidate_pool vector/code_book vector/hnsw_checkpoint
    vector/hnsw_index vector/kernels vector/rotation
    wal/log_crash wal/log_format wal/log wal/recovery)
list(TRANSFORM tests_without_threads PREPEND src/)
list(APPEND tests_without_threads tests/corruption tests/fault_sweep tests/known_bugs)
list(TRANSFORM tests_without_threads PREPEND ${PROJECT_SOURCE_DIR}/)
list(TRANSFORM tests_without_threads APPEND _test.cc)
foreach(source IN LISTS tests_without_threads)
  if(NOT EXISTS ${source})
    message(FATAL_ERROR "cmake/tests.cmake names a test that is not there: ${source}")
  endif()
endforeach()
if(NOT BASALT_SANITIZE STREQUAL "thread")
  set(tests_without_threads "")
endif()

# A program over the internals, which may include "tests/...".
function(basalt_test_program name libraries)
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${libraries} basalt_warnings)
  set_target_properties(${name} PROPERTIES CROSSCOMPILING_EMULATOR "${test_launcher}")
endfunction()

# A GoogleTest program. ctest runs it as several shards: each runs its part of the TESTs in one process, and its last
# line of "[ RUN" names the one that crashed or hung. scripts/run_tests counts the TESTs and names those that failed.
function(basalt_gtest name label libraries)
  set(sources ${ARGN})
  if(BASALT_BATCHES)
    basalt_batches(sources ${name} ${sources})
  endif()
  basalt_test_program(${name} "${libraries}" ${sources})
  target_link_libraries(${name} PRIVATE GTest::gtest_main rapidcheck)
  if(BASALT_SANITIZE)  # Tests compile for longer than they run.
    target_compile_options(${name} PRIVATE -O0)
  elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${name} PRIVATE -O1)
  endif()
  string(REGEX REPLACE "_test$" "" prefix ${name})
  set(shards 4)
  if(label STREQUAL "system")
    set(shards 2)
  endif()
  foreach(shard RANGE 1 ${shards})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${prefix}.${shard} COMMAND ${test_launcher} $<TARGET_FILE:${name}>)
    set_tests_properties(${prefix}.${shard} PROPERTIES
                         ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index}"
                         TIMEOUT ${test_timeout_s} LABELS ${label})
  endforeach()
endfunction()

# A program in C11 over libbasalt.so.
enable_language(C)
function(basalt_c_program name)
  add_executable(${name} ${ARGN})
  set_target_properties(${name} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Werror)
  target_link_libraries(${name} PRIVATE basalt::c)
  if(BASALT_SANITIZE)
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  endif()
endfunction()

# Unit tests stand beside the code: src/<folder>/*_test.cc is <folder>_test.
foreach(folder IN LISTS BASALT_FOLDERS)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*_test.cc)
  list(REMOVE_ITEM sources ${tests_without_threads})
  if(sources AND TARGET basalt_${folder})
    basalt_gtest(${folder}_test unit basalt_${folder} ${sources})
  endif()
endforeach()
if(TARGET basalt_embed)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/embed/*_test.cc)
  list(REMOVE_ITEM sources ${tests_without_threads})
  basalt_gtest(embed_test unit basalt_embed ${sources})
  target_compile_definitions(embed_test PRIVATE BASALT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
endif()
if(TARGET basalt_server)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/server/*_test.cc)
  basalt_gtest(server_test unit basalt_server ${sources})
  target_compile_definitions(server_test PRIVATE BASALT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
endif()
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/basalt/*_test.cc
                                    ${PROJECT_SOURCE_DIR}/tools/workload/*_test.cc)
if(sources AND TARGET basalt_tool)
  basalt_gtest(tool_test unit basalt_tool ${sources})
endif()

# The distance kernels again, on emulated processors that have less than this one: x86-64-v2 without AES,
# which Highway serves with SSSE3, and with it. Skipped where there is no emulator.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND NOT BASALT_SANITIZE AND TARGET vector_test)
  foreach(processor IN ITEMS Nehalem:SSSE3 Westmere:SSE4)
    string(REPLACE ":" ";" processor ${processor})
    list(GET processor 0 name)
    list(GET processor 1 instruction_set)
    add_test(NAME vector.emulated_${name}
             COMMAND ${PROJECT_SOURCE_DIR}/scripts/emulate ${name} $<TARGET_FILE:vector_test>
                     --gtest_filter=Kernels.*:VectorDistance.*)
    set_tests_properties(vector.emulated_${name} PROPERTIES
                         ENVIRONMENT BASALT_EXPECTED_INSTRUCTION_SET=${instruction_set}
                         SKIP_RETURN_CODE 77 TIMEOUT ${test_timeout_s} LABELS unit)
  endforeach()
endif()

# The simulator of cache policies: all of bench/cache_sim but its main.cc. It has no threads.
if(NOT BASALT_SANITIZE STREQUAL "thread")
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/cache_sim/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  basalt_gtest(cache_sim_test unit "${BASALT_INTERNALS}" ${sources} ${PROJECT_SOURCE_DIR}/bench/text.cc)
endif()

# Whole-system tests: tests/<name>_test.cc is <name>_test, and tests/*_cli_test.cc together are cli_test. They know
# where the checkout and the command-line program are; without the program there is no cli_test.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*_test.cc)
list(REMOVE_ITEM sources ${tests_without_threads})
set(cli_sources ${sources})
list(FILTER cli_sources INCLUDE REGEX "cli_test\\.cc$")
list(REMOVE_ITEM sources ${cli_sources})
set(system_tests "")
foreach(source IN LISTS sources)
  get_filename_component(name ${source} NAME_WE)
  basalt_gtest(${name} system "${BASALT_INTERNALS}" ${source})
  list(APPEND system_tests ${name})
endforeach()
if(TARGET basalt)
  basalt_gtest(cli_test system "${BASALT_INTERNALS}" ${cli_sources})
  list(APPEND system_tests cli_test)
endif()
# Tests of remote stores start a server of their own.
if(TARGET basalt_server)
  foreach(name IN ITEMS store_test remote_store_test)
    if(TARGET ${name})
      target_link_libraries(${name} PRIVATE basalt_server)
      target_compile_definitions(${name} PRIVATE BASALT_SERVER)
    endif()
  endforeach()
endif()
foreach(name IN LISTS system_tests)
  target_compile_definitions(${name} PRIVATE BASALT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(TARGET basalt)
    target_compile_definitions(${name} PRIVATE BASALT_TOOL="$<TARGET_FILE:basalt>")
    add_dependencies(${name} basalt)
  endif()
endforeach()

# Long-running programs with a budget of their own, each a folder with a main.cc; what else lies in
# these folders is common to them and to their unit tests. ctest gives each a small budget and a fixed
# seed.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/crash/*.cc
                                    ${PROJECT_SOURCE_DIR}/tests/metamorphic/*.cc
                                    ${PROJECT_SOURCE_DIR}/tests/serializability/*.cc)
set(tests ${sources})
list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$")
list(FILTER tests INCLUDE REGEX "_test\\.cc$")
set(system_libraries ${BASALT_INTERNALS})
if(sources)
  if(BASALT_BATCHES)
    basalt_batches(sources basalt_system ${sources})
  endif()
  add_library(basalt_system STATIC ${sources})
  target_include_directories(basalt_system PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(basalt_system PUBLIC ${BASALT_INTERNALS}
                                      PRIVATE basalt_warnings)
  list(PREPEND system_libraries basalt_system)
endif()
if(tests AND NOT BASALT_SANITIZE STREQUAL "thread")  # They have no threads.
  basalt_gtest(system_test unit "${system_libraries}" ${tests})
endif()
function(basalt_system_program name main)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${main})
    basalt_test_program(${name} "${system_libraries}" ${main})
    add_test(NAME ${name} COMMAND ${test_launcher} $<TARGET_FILE:${name}> ${ARGN})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${test_timeout_s} LABELS system)
  endif()
endfunction()
if(NOT BASALT_SANITIZE STREQUAL "thread")  # Their databases have one thread.
  basalt_system_program(basalt_crash tests/crash/main.cc --rounds 20 --seed 1)
  basalt_system_program(basalt_metamorphic tests/metamorphic/main.cc --operations 20000 --seed 1)
endif()
basalt_system_program(basalt_serializability tests/serializability/main.cc
                      --transactions 10000 --seed 1 --threads 4)

# The C API, from C11 programs over libbasalt.so: every function that it exports. Where the library is instrumented,
# the linker of C++ brings what the instrumentation calls.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/c_test_files)
basalt_c_program(c_test tests/c/c_test.c tests/c/graph_test.c tests/c/null_arguments.c)
add_test(NAME c_test COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:c_test> "-DLAUNCHER=${test_launcher}"
                                 -DDIRECTORY=${PROJECT_BINARY_DIR}/c_test_files
                                 -P ${PROJECT_SOURCE_DIR}/cmake/run_in_empty_directory.cmake)
set_tests_properties(c_test PROPERTIES TIMEOUT ${test_timeout_s} LABELS unit)

# ThreadSanitizer ends here: the examples show, and do not test, what threads may do.
if(BASALT_SANITIZE STREQUAL "thread")
  return()
endif()

# Examples are built as a user builds them, against basalt::basalt alone, and must run.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cc)
if(NOT TARGET basalt_server)
  list(FILTER sources EXCLUDE REGEX "/remote\\.cc$")
endif()
foreach(source IN LISTS sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(example_${name} ${source})
  if(name STREQUAL "remote")  # It serves, too.
    target_link_libraries(example_${name} PRIVATE basalt::server basalt_warnings)
  else()
    target_link_libraries(example_${name} PRIVATE basalt::basalt basalt_warnings)
  endif()
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/examples/${name})
  add_test(NAME example.${name} COMMAND ${test_launcher} $<TARGET_FILE:example_${name}>
           WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/examples/${name})
  set_tests_properties(example.${name} PROPERTIES TIMEOUT ${test_timeout_s} LABELS example)
endforeach()

file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/examples/*.c)
foreach(source IN LISTS sources)
  get_filename_component(name ${source} NAME_WE)
  basalt_c_program(example_${name} ${source})
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/examples/${name})
  add_test(NAME example.${name} COMMAND ${test_launcher} $<TARGET_FILE:example_${name}>
           WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/examples/${name})
  set_tests_properties(example.${name} PROPERTIES TIMEOUT ${test_timeout_s} LABELS example)
endforeach()

# What follows does not depend on how the library was compiled: once is enough.
if(BASALT_SANITIZE)
  return()
endif()

# Each public header, alone, as C++20 with each compiler that is here, with exceptions and RTTI and
# without.
set(compilers "")
foreach(compiler IN ITEMS g++ clang++-19)
  find_program(BASALT_HEADER_${compiler} ${compiler})
  if(BASALT_HEADER_${compiler})
    list(APPEND compilers ${compiler})
  endif()
endforeach()
file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include
     ${PROJECT_SOURCE_DIR}/include/basalt/*.h)
foreach(compiler IN LISTS compilers)
  foreach(header IN LISTS headers)
    foreach(dialect IN ITEMS "" "-fno-exceptions -fno-rtti")
      string(REPLACE " " ";" flags "${dialect}")
      string(REPLACE " " "" suffix "${dialect}")
      set(name header.${header}.${compiler}${suffix})
      add_test(NAME ${name}
               COMMAND ${BASALT_HEADER_${compiler}} -std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Werror ${flags}
                       -I${PROJECT_SOURCE_DIR}/include -include ${header} -x c++ /dev/null)
      set_tests_properties(${name} PROPERTIES TIMEOUT 60 LABELS header)
    endforeach()
  endforeach()
endforeach()

# What must not compile, tests/refused/*.cc: each file alone, which must compile, and with each number of its branches
# `#elif REFUSED == N`, of which the compiler must say that a function is deleted.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/refused/*.cc)
foreach(source IN LISTS sources)
  get_filename_component(name ${source} NAME_WE)
  file(STRINGS ${source} branches REGEX "^#elif REFUSED == [0-9]+$")
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  foreach(branch IN LISTS branches ITEMS "0")
    string(REGEX REPLACE "[^0-9]" "" number ${branch})
    set(test refused.${name}.${number})
    add_test(NAME ${test} COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only -DREFUSED=${number}
                                  -I${PROJECT_SOURCE_DIR}/include ${source})
    set_tests_properties(${test} PROPERTIES TIMEOUT 60 LABELS header)
    if(number)
      set_tests_properties(${test} PROPERTIES PASS_REGULAR_EXPRESSION "delete")
    endif()
  endforeach()
endforeach()

# A separate project finds and uses what `cmake --install` put into an empty prefix.
if(TARGET basalt_db)
  add_test(NAME package
           COMMAND ${CMAKE_COMMAND} -DBUILD_DIR=${PROJECT_BINARY_DIR} -DSOURCE_DIR=${PROJECT_SOURCE_DIR}
                   -DCXX_COMPILER=${CMAKE_CXX_COMPILER} -DGENERATOR=${CMAKE_GENERATOR}
                   -DWITH_EMBED=${BASALT_EMBED}
                   -P ${PROJECT_SOURCE_DIR}/cmake/test_package.cmake)
  set_tests_properties(package PROPERTIES TIMEOUT 300 LABELS package)
endif()

add_test(NAME check_abi COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_abi $<TARGET_FILE:libbasalt_c>
                                $<TARGET_FILE:c_test>)
add_test(NAME header.c.h.c11 COMMAND ${CMAKE_C_COMPILER} -std=c11 -fsyntax-only -Wall -Wextra -Wconversion -Wpedantic
                                     -Werror -I${PROJECT_SOURCE_DIR}/include -include basalt/c.h -x c /dev/null)
set_tests_properties(check_abi header.c.h.c11 PROPERTIES TIMEOUT 60 LABELS header)
add_test(NAME check_includes COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_includes)
add_test(NAME check_includes_refuses COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_includes_test)
set_tests_properties(check_includes check_includes_refuses PROPERTIES TIMEOUT 60 LABELS script)
add_test(NAME check_prose COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_prose)
add_test(NAME check_prose_refuses COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_prose_test)
set_tests_properties(check_prose check_prose_refuses PROPERTIES TIMEOUT 60 LABELS script)
add_test(NAME planted_bugs_apply COMMAND ${PROJECT_SOURCE_DIR}/tests/planted/run --check)
add_test(NAME code_blocks COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_code_blocks)
if(TARGET basalt)
  add_test(NAME manual_sessions COMMAND ${PROJECT_SOURCE_DIR}/tests/docs/console.py $<TARGET_FILE:basalt>
                                        ${PROJECT_SOURCE_DIR}/docs/cli.md)
  set_tests_properties(manual_sessions PROPERTIES TIMEOUT 300 LABELS program)
endif()
add_test(NAME figures COMMAND ${PROJECT_SOURCE_DIR}/bench/db_plot.py --check ${PROJECT_SOURCE_DIR}/docs/figures/db.json
                              ${PROJECT_SOURCE_DIR}/docs/figures/db.svg)
