# basalt::embed: embeddings of texts, a library of its own because it needs Boost.JSON.

find_package(Boost 1.81 REQUIRED COMPONENTS json)
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/embed/*.cc)
list(FILTER sources EXCLUDE REGEX "_test\\.cc$")

# For our own tests and tools, over the folders of the library.
add_library(basalt_embed STATIC ${sources})
target_include_directories(basalt_embed PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(basalt_embed PUBLIC ${BASALT_INTERNALS} ${BASALT_DEPENDENCIES} Boost::json
                                   PRIVATE basalt_warnings)

set_target_properties(basalt_embed PROPERTIES OUTPUT_NAME basalt_embed_internals)

# For everyone else, of the same objects.
add_library(libbasalt_embed $<TARGET_OBJECTS:basalt_embed>)
add_library(basalt::embed ALIAS libbasalt_embed)
set_target_properties(libbasalt_embed PROPERTIES OUTPUT_NAME basalt_embed EXPORT_NAME embed
                      LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_link_libraries(libbasalt_embed PUBLIC libbasalt PRIVATE ${BASALT_DEPENDENCIES} Boost::json)
install(TARGETS libbasalt_embed EXPORT basalt-embed-targets)
install(EXPORT basalt-embed-targets NAMESPACE basalt:: DESTINATION ${package_dir})
