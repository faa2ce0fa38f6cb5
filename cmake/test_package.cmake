# Installs the build into an empty prefix, checks that nothing but the public face is there, and builds
# and runs tests/package against it as a user's project would.
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
