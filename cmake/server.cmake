# basalt::server: the Redis protocol and HTTP on a database, a library of its own because it needs Boost. It is
# compiled in batches as the tools are.

find_package(Boost 1.81 REQUIRED COMPONENTS json)
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/server/*.cc)
list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
if(BASALT_BATCHES)
  basalt_batches(sources basalt_server ${sources})
endif()
add_library(basalt_server STATIC ${sources})
add_library(basalt::server ALIAS basalt_server)
target_include_directories(basalt_server PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
if(BASALT_BATCHES)
  target_include_directories(basalt_server PRIVATE ${PROJECT_SOURCE_DIR})
endif()
target_link_libraries(basalt_server PUBLIC ${BASALT_INTERNALS} ${BASALT_DEPENDENCIES} Boost::json
                                    PRIVATE basalt_warnings)
if(BASALT_SANITIZE STREQUAL "thread")  # It does not know fences. Asio's handlers are ordered by its locks.
  target_compile_definitions(basalt_server PUBLIC BOOST_ASIO_DISABLE_FENCED_BLOCK)
endif()
