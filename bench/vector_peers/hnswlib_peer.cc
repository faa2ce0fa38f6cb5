#include <hnswlib/hnswlib.h>

#include "peer.h"

namespace {

struct Index {
  Index(size_t dimension, size_t vectors_max)
      : space(dimension), graph(&space, vectors_max, /*M=*/16, /*ef_construction=*/200) {}
  hnswlib::L2Space space;
  hnswlib::HierarchicalNSW<float> graph;
};

struct Filter : hnswlib::BaseFilterFunctor {
  bool (*passes)(void*, uint32_t);
  void* state;
  bool operator()(hnswlib::labeltype id) override {
    return passes(state, static_cast<uint32_t>(id));
  }
};

size_t Search(void* index, const float* query, size_t k, bool (*passes)(void*, uint32_t),
              void* state, uint32_t* ids) {
  Filter filter;
  filter.passes = passes;
  filter.state = state;
  auto found =
      static_cast<Index*>(index)->graph.searchKnn(query, k, passes == nullptr ? nullptr : &filter);
  const size_t count = found.size();
  for (size_t i = count; i-- > 0; found.pop()) ids[i] = static_cast<uint32_t>(found.top().second);
  return count;
}

}  // namespace

extern "C" {
extern const VectorPeer vector_peer;
const VectorPeer vector_peer = {
    [](size_t dimension, size_t vectors_max) -> void* { return new Index(dimension, vectors_max); },
    [](void* index) { delete static_cast<Index*>(index); },
    [](void* index, const float* vector, uint32_t id) {
      static_cast<Index*>(index)->graph.addPoint(vector, id);
    },
    [](void* index, size_t ef) { static_cast<Index*>(index)->graph.setEf(ef); },
    Search,
    [](void* index, uint32_t id) { static_cast<Index*>(index)->graph.markDelete(id); },
};
}
