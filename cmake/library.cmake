# The library: one static archive a folder for our own tests and tools, and of the same objects two libraries for
# everyone else: basalt::basalt, libbasalt.a, has the C++ API and the C API; basalt::c, libbasalt.so, exports the C API
# alone, with versioned symbols. Folders stand in the order of the house: each links the ones before it.

set(BASALT_FOLDERS base io phash wal cache transaction memtable table db net shared_map vector text graph retrieve c_api)

set(BASALT_INTERNALS "")
set(objects "")
foreach(folder IN LISTS BASALT_FOLDERS)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  if(NOT sources)
    continue()
  endif()
  if(BASALT_BATCHES STREQUAL "all")
    basalt_batches(sources basalt_${folder} ${sources})
  endif()
  add_library(basalt_${folder} STATIC ${sources})
  target_include_directories(basalt_${folder} PUBLIC ${PROJECT_SOURCE_DIR}/include
                                                     ${PROJECT_SOURCE_DIR}/src)
  if(BASALT_BATCHES STREQUAL "all")
    target_include_directories(basalt_${folder} PRIVATE ${PROJECT_SOURCE_DIR})
  endif()
  target_link_libraries(basalt_${folder} PUBLIC ${BASALT_INTERNALS} ${BASALT_DEPENDENCIES}
                                         PRIVATE basalt_warnings)
  list(PREPEND BASALT_INTERNALS basalt_${folder})
  list(APPEND objects $<TARGET_OBJECTS:basalt_${folder}>)
endforeach()

if(BASALT_STEMMER)
  target_compile_definitions(basalt_text PRIVATE BASALT_STEMMER=1)
endif()

add_library(basalt::net ALIAS basalt_net)  # The client alone; it is in basalt::basalt, too.

# The target of the program is called basalt, so the library's target bears its file name.
add_library(libbasalt STATIC ${objects})
add_library(basalt::basalt ALIAS libbasalt)
set_target_properties(libbasalt PROPERTIES OUTPUT_NAME basalt EXPORT_NAME basalt LINKER_LANGUAGE CXX)
target_compile_features(libbasalt PUBLIC cxx_std_20)
target_include_directories(libbasalt PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(libbasalt PRIVATE ${BASALT_DEPENDENCIES})

set(symbols ${PROJECT_SOURCE_DIR}/src/c_api/libbasalt.map)
add_library(libbasalt_c SHARED ${objects})
add_library(basalt::c ALIAS libbasalt_c)
set_target_properties(libbasalt_c PROPERTIES OUTPUT_NAME basalt EXPORT_NAME c LINKER_LANGUAGE CXX
                      VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${symbols})
target_link_options(libbasalt_c PRIVATE -Wl,--version-script=${symbols})
target_include_directories(libbasalt_c PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(libbasalt_c PRIVATE ${BASALT_DEPENDENCIES})
# Relative, so that an installation may be moved.
file(RELATIVE_PATH BASALT_PREFIX_FROM_PKGCONFIG /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/basalt.pc.in ${PROJECT_BINARY_DIR}/basalt.pc @ONLY)

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/basalt)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/basalt-config.cmake.in
                              ${PROJECT_BINARY_DIR}/basalt-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/basalt-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(TARGETS libbasalt libbasalt_c EXPORT basalt-targets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/basalt DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/basalt.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(EXPORT basalt-targets NAMESPACE basalt:: DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/basalt-config.cmake
              ${PROJECT_BINARY_DIR}/basalt-config-version.cmake DESTINATION ${package_dir})
