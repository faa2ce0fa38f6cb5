# Comparisons with other engines: bench/<name>_bench.cc is the program <name>_bench; the other files of
# the folder are linked into each.

find_package(RocksDB REQUIRED)
find_package(leveldb REQUIRED)
pkg_check_modules(BASALT_LMDB REQUIRED IMPORTED_TARGET lmdb)

file(GLOB programs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*_bench.cc)
file(GLOB shared_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.cc)
list(FILTER shared_sources EXCLUDE REGEX "_bench\\.cc$")
foreach(program IN LISTS programs)
  get_filename_component(name ${program} NAME_WE)
  add_executable(${name} ${program} ${shared_sources})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${BASALT_INTERNALS} basalt_warnings RocksDB::rocksdb-shared
                                        leveldb::leveldb PkgConfig::BASALT_LMDB)
endforeach()
