# Installs the build into an empty prefix, checks that nothing but the public face is there, and builds
# and runs tests/package against it as a user's project would. Then it does the same with the project of
# docs/getting-started.md, and configures that project with the checkout as a subdirectory.
#
#   cmake -DBUILD_DIR=... -DSOURCE_DIR=... -DCXX_COMPILER=... -DGENERATOR=... -DWITH_EMBED=... -P test_package.cmake

set(work ${BUILD_DIR}/package_test)
set(prefix ${work}/prefix)
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "this failed (${result}): ${command}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix})

file(GLOB_RECURSE installed RELATIVE ${prefix} ${prefix}/*)
set(allowed "^(bin/basalt|include/basalt/[a-z0-9_]+\\.h|lib[^ ]*/libbasalt(_embed)?\\.(a|so[.0-9]*)|\
lib[^ ]*/pkgconfig/basalt\\.pc|lib[^ ]*/cmake/basalt/basalt-[a-z-]+\\.cmake)$")
foreach(file IN LISTS installed)
  if(NOT file MATCHES "${allowed}")
    message(FATAL_ERROR "installed, but no part of the public face: ${file}")
  endif()
endforeach()
file(GLOB headers RELATIVE ${SOURCE_DIR}/include ${SOURCE_DIR}/include/basalt/*.h)
foreach(header IN LISTS headers)
  if(NOT EXISTS ${prefix}/include/${header})
    message(FATAL_ERROR "not installed: include/${header}")
  endif()
endforeach()

run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/package -B ${work}/build -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/hello ${work}/db)
run(${work}/build/hello_c ${work}/db_of_c)
run(${work}/build/hello_pkg_config ${work}/db_of_c)
if(EXISTS ${work}/build/hello_embed)
  run(${work}/build/hello_embed)
elseif(WITH_EMBED)
  message(FATAL_ERROR "the component embed was built, and not found")
endif()

# The project of docs/getting-started.md.
file(COPY ${SOURCE_DIR}/tests/package/tour ${SOURCE_DIR}/tests/package/subdirectory DESTINATION ${work})
file(COPY ${SOURCE_DIR}/examples/tour.cc DESTINATION ${work}/tour)
file(COPY ${SOURCE_DIR}/examples/tour.cc DESTINATION ${work}/subdirectory)
run(${CMAKE_COMMAND} -S ${work}/tour -B ${work}/tour/build -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${work}/tour/build)
run(${CMAKE_COMMAND} -E chdir ${work}/tour ${work}/tour/build/tour)

# With the checkout as a subdirectory. Only the program is compiled, because the library takes minutes.
file(CREATE_LINK ${SOURCE_DIR} ${work}/subdirectory/basalt SYMBOLIC)
set(build ${work}/subdirectory/build)
run(${CMAKE_COMMAND} -S ${work}/subdirectory -B ${build} -G ${GENERATOR} -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
    -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DCMAKE_BUILD_TYPE=Release)
if(GENERATOR STREQUAL "Ninja")
  run(${CMAKE_COMMAND} --build ${build} --target CMakeFiles/tour.dir/tour.cc.o)
endif()
file(STRINGS ${build}/compile_commands.json strict REGEX "-Werror")
if(strict)
  message(FATAL_ERROR "warnings are errors in another project's build")
endif()
file(STRINGS ${build}/compile_commands.json own REGEX "/subdirectory/basalt/(tests|tools|examples)/")
if(own)
  message(FATAL_ERROR "tests, tools or examples are part of another project's build")
endif()
