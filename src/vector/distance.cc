#include <string>

#include "basalt/vector.h"
#include "vector/kernels.h"

namespace basalt {

Result<VectorDistance> VectorDistance::Create(VectorMetric metric, VectorElement element,
                                              size_t dimension) {
  if (dimension == 0 || dimension > kVectorDimensionMax) {
    return Status(StatusCode::kInvalidArgument,
                  "vectors have 1 to " + std::to_string(kVectorDimensionMax) +
                      " elements: asked for distances between vectors of " +
                      std::to_string(dimension));
  }
  const vector::DistanceFunctions* const functions =
      vector::ProcessorKernels().Find(metric, element);
  if (functions == nullptr) {
    return Status(StatusCode::kInvalidArgument,
                  "bits have Hamming distances, and nothing else has: choose another metric or "
                  "another element type");
  }
  return VectorDistance(functions, dimension);
}

void VectorDistance::ToRows(const void* query, const void* rows, size_t stride, size_t count,
                            float* distances) const noexcept {
  functions_->to_rows(query, rows, stride, count, dimension_, distances);
}

void VectorDistance::ToEach(const void* query, const void* const* rows, size_t count,
                            float* distances) const noexcept {
  functions_->to_each(query, rows, count, dimension_, distances);
}

const char* VectorInstructionSet() noexcept { return vector::ProcessorKernels().instruction_set; }

}  // namespace basalt
