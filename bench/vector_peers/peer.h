#pragma once

#include <cstddef>
#include <cstdint>

// What vector_bench calls of another library's index. bench/vector_peers/build compiles each peer
// by itself, as its users would, into a shared object that has `extern "C" const VectorPeer
// vector_peer`.

struct VectorPeer {
  /// An empty index for L2 distances, with links and candidates as ours has them.
  void* (*make)(size_t dimension, size_t vectors_max);
  void (*destroy)(void* index);
  void (*add)(void* index, const float* vector, uint32_t id);
  void (*set_ef)(void* index, size_t ef);
  /// Ids of the k nearest for which `passes` (null: all) is true; gives how many.
  size_t (*search)(void* index, const float* query, size_t k, bool (*passes)(void*, uint32_t),
                   void* filter, uint32_t* ids);
  void (*remove)(void* index, uint32_t id);
};
