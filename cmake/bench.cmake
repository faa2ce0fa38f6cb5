# Comparisons with other engines: bench/<name>_bench.cc is the program <name>_bench. To cache_bench belong
# the files that begin with cache_, to memtable_bench those that begin with memtable_, to phash_bench those
# that begin with phash_, to retrieval_bench those that begin with retrieval_, to shared_map_bench those that begin with
# shared_map_, to vector_bench those that begin with vector_, to db_bench the others; each but the last also takes what
# it shares with another.

find_package(RocksDB REQUIRED)
find_package(leveldb REQUIRED)
find_package(TBB CONFIG REQUIRED)
find_package(libcuckoo REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(Boost 1.81 REQUIRED)
pkg_check_modules(BASALT_LMDB REQUIRED IMPORTED_TARGET lmdb)
pkg_check_modules(BASALT_CMPH REQUIRED IMPORTED_TARGET cmph)
pkg_check_modules(BASALT_CDB REQUIRED IMPORTED_TARGET libcdb)

set(bench ${PROJECT_SOURCE_DIR}/bench)
file(GLOB cache_sources CONFIGURE_DEPENDS ${bench}/cache_*.cc)
file(GLOB memtable_sources CONFIGURE_DEPENDS ${bench}/memtable_*.cc)
file(GLOB phash_sources CONFIGURE_DEPENDS ${bench}/phash_*.cc)
file(GLOB retrieval_sources CONFIGURE_DEPENDS ${bench}/retrieval_*.cc)
file(GLOB shared_map_sources CONFIGURE_DEPENDS ${bench}/shared_map_*.cc)
file(GLOB vector_sources CONFIGURE_DEPENDS ${bench}/vector_*.cc)
file(GLOB db_sources CONFIGURE_DEPENDS ${bench}/*.cc)
list(REMOVE_ITEM db_sources ${bench}/c_api_bench.cc ${bench}/transaction_bench.cc ${bench}/embed_bench.cc ${bench}/graph_bench.cc ${bench}/server_bench.cc ${cache_sources}
                            ${memtable_sources} ${phash_sources} ${retrieval_sources} ${shared_map_sources} ${vector_sources})
add_executable(db_bench ${db_sources})
target_link_libraries(db_bench PRIVATE leveldb::leveldb PkgConfig::BASALT_LMDB)
add_executable(cache_bench ${cache_sources} ${bench}/report.cc ${bench}/text.cc
                           ${bench}/cache_sim/lru.cc)
target_link_libraries(cache_bench PRIVATE TBB::tbb libcuckoo::libcuckoo)
add_executable(memtable_bench ${memtable_sources} ${bench}/cache_footprint.cc ${bench}/cache_report.cc
                              ${bench}/cache_ticks.cc ${bench}/report.cc ${bench}/text.cc)
target_link_libraries(memtable_bench PRIVATE TBB::tbb absl::btree)
add_executable(phash_bench ${phash_sources} ${bench}/report.cc ${bench}/text.cc)
target_link_libraries(phash_bench PRIVATE PkgConfig::BASALT_CMPH)
add_executable(shared_map_bench ${shared_map_sources} ${bench}/cache_ticks.cc ${bench}/report.cc
                                ${bench}/text.cc)
target_link_libraries(shared_map_bench PRIVATE Boost::headers PkgConfig::BASALT_CDB PkgConfig::BASALT_LMDB)
add_executable(vector_bench ${vector_sources} ${bench}/cache_report.cc ${bench}/report.cc ${bench}/text.cc)
target_link_libraries(vector_bench PRIVATE ${CMAKE_DL_LIBS})
foreach(program db_bench cache_bench memtable_bench phash_bench shared_map_bench vector_bench)
  target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${program} PRIVATE basalt_workload ${BASALT_INTERNALS} basalt_warnings RocksDB::rocksdb-shared)
endforeach()

# Embeddings need none of those engines; the peer is a program of Python.
if(TARGET basalt_embed)
  add_executable(embed_bench ${bench}/embed_bench.cc ${bench}/report.cc ${bench}/text.cc)
  target_include_directories(embed_bench PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(embed_bench PRIVATE basalt_embed basalt_warnings)
endif()

# The C API is compared with the C++ API below it.
add_executable(c_api_bench ${bench}/c_api_bench.cc)
target_link_libraries(c_api_bench PRIVATE ${BASALT_INTERNALS} basalt_warnings)

# The peers of graphs are programs of Python.
add_executable(graph_bench ${bench}/graph_bench.cc ${bench}/report.cc ${bench}/text.cc)
target_include_directories(graph_bench PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(graph_bench PRIVATE ${BASALT_INTERNALS} basalt_warnings)

# Retrieval has no peer.
add_executable(retrieval_bench ${retrieval_sources} ${bench}/report.cc ${bench}/text.cc)
target_include_directories(retrieval_bench PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(retrieval_bench PRIVATE ${BASALT_INTERNALS} basalt_warnings)

add_executable(transaction_bench ${bench}/transaction_bench.cc ${bench}/report.cc ${bench}/text.cc)
target_include_directories(transaction_bench PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(transaction_bench PRIVATE ${BASALT_INTERNALS} basalt_warnings RocksDB::rocksdb-shared)

# The servers and redis-benchmark are processes of their own; make builds the program in build/release.
add_executable(server_bench ${bench}/server_bench.cc ${bench}/report.cc ${bench}/text.cc)
target_include_directories(server_bench PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(server_bench PRIVATE ${BASALT_INTERNALS} basalt_warnings)

# The simulator of cache policies, bench/cache_sim, needs none of those engines.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/cache_sim/*.cc)
list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
add_executable(cache_sim ${sources} ${PROJECT_SOURCE_DIR}/bench/text.cc)
target_include_directories(cache_sim PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(cache_sim PRIVATE ${BASALT_INTERNALS} basalt_warnings)

# Steadiness and growth of the database alone.
file(GLOB sources CONFIGURE_DEPENDS ${bench}/steady/*.cc)
add_executable(steady_bench ${sources} ${bench}/disk_space.cc ${bench}/idle.cc ${bench}/measurement.cc
                            ${bench}/process_io.cc ${bench}/report.cc ${bench}/text.cc ${bench}/workload.cc)
target_include_directories(steady_bench PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(steady_bench PRIVATE basalt_workload ${BASALT_INTERNALS} basalt_warnings)
