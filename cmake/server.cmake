# basalt::server: the Redis protocol and HTTP on a database, a library of its own because it needs Boost. It is
# compiled in batches as the tools are.

find_package(Boost 1.81 REQUIRED COMPONENTS json)
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/server/*.cc)
list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
# Scripts need Lua 5.1 as a C++ library, whose errors are exceptions.
pkg_check_modules(BASALT_LUA IMPORTED_TARGET lua5.1-c++)
if(NOT BASALT_LUA_FOUND)
  message(STATUS "Lua 5.1 (liblua5.1-0-dev) is not here: the server has no EVAL, EVALSHA and SCRIPT")
  list(FILTER sources EXCLUDE REGEX "/script[^/]*\\.cc$")
endif()
if(BASALT_BATCHES)
  basalt_batches(sources basalt_server ${sources})
endif()
# The OpenAPI document is a text of the library.
set(document ${PROJECT_SOURCE_DIR}/src/server/openapi.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${document})
file(READ ${document} text)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/openapi.cc @ONLY CONTENT
"#include \"server/openapi.h\"

std::string_view basalt::server::OpenApiDocument() noexcept {
  return R\"openapi(${text})openapi\";
}
")
add_library(basalt_server STATIC ${sources} ${PROJECT_BINARY_DIR}/openapi.cc)
add_library(basalt::server ALIAS basalt_server)
target_include_directories(basalt_server PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
if(BASALT_BATCHES)
  target_include_directories(basalt_server PRIVATE ${PROJECT_SOURCE_DIR})
endif()
target_link_libraries(basalt_server PUBLIC ${BASALT_INTERNALS} ${BASALT_DEPENDENCIES} Boost::json
                                    PRIVATE basalt_warnings)
if(BASALT_LUA_FOUND)
  target_link_libraries(basalt_server PRIVATE PkgConfig::BASALT_LUA)
  target_compile_definitions(basalt_server PUBLIC BASALT_LUA)
endif()
if(BASALT_SANITIZE STREQUAL "thread")  # It does not know fences. Asio's handlers are ordered by its locks.
  target_compile_definitions(basalt_server PUBLIC BOOST_ASIO_DISABLE_FENCED_BLOCK)
endif()
