# The workloads that `basalt bench` and bench/ share.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/workload/*.cc)
list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
add_library(basalt_workload STATIC EXCLUDE_FROM_ALL ${sources})
target_include_directories(basalt_workload PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(basalt_workload PUBLIC ${BASALT_INTERNALS} PRIVATE basalt_warnings)
