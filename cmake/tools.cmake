# The command-line program: everything in tools/basalt but its main.cc is a library for its tests.

file(GLOB tool_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/basalt/*.cc)
list(FILTER tool_sources EXCLUDE REGEX "(_test|/main)\\.cc$")
if(EXISTS ${PROJECT_SOURCE_DIR}/tools/basalt/main.cc)
  find_package(CLI11 REQUIRED)
  find_package(Boost 1.81 REQUIRED COMPONENTS json)
  add_executable(basalt ${PROJECT_SOURCE_DIR}/tools/basalt/main.cc)
  target_include_directories(basalt PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(basalt PRIVATE BASALT_VERSION="${PROJECT_VERSION}")
  target_link_libraries(basalt PRIVATE ${BASALT_INTERNALS} CLI11::CLI11 Boost::json basalt_warnings)
  if(tool_sources)
    add_library(basalt_tool STATIC ${tool_sources})
    target_include_directories(basalt_tool PUBLIC ${PROJECT_SOURCE_DIR})
    target_compile_definitions(basalt_tool PRIVATE BASALT_VERSION="${PROJECT_VERSION}")
    target_link_libraries(basalt_tool PUBLIC ${BASALT_INTERNALS} CLI11::CLI11 Boost::json
                                      PRIVATE basalt_warnings)
    target_link_libraries(basalt PRIVATE basalt_tool)
    if(BASALT_SANITIZE)  # It compiles for longer than it runs.
      target_compile_options(basalt_tool PRIVATE -O0)
    endif()
  endif()
  install(TARGETS basalt)
endif()
