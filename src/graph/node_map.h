#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "basalt/graph.h"

namespace basalt::graph {

/// Arrays with a number for each node, kept from one search to the next. All numbers are zero while
/// it is kept. Any number of threads.
class NodeArrays {
 public:
  using Array = std::vector<uint32_t>;

  std::unique_ptr<Array> Take() {
    {
      const std::lock_guard lock(mutex_);
      for (std::unique_ptr<Array>& array : kept_) {
        if (array != nullptr) return std::move(array);
      }
    }
    return std::make_unique<Array>();
  }
  void Return(std::unique_ptr<Array> array) noexcept {
    const std::lock_guard lock(mutex_);
    for (std::unique_ptr<Array>& kept : kept_) {
      if (kept != nullptr) continue;
      kept = std::move(array);
      return;
    }
  }

 private:
  std::mutex mutex_;
  std::array<std::unique_ptr<Array>, 4> kept_;
};

/// The nodes that a search has met, each with a number. With `arrays` it looks nodes up in an array
/// of 4 bytes a node of the graph, otherwise in a hash table. One thread.
class NodeMap {
 public:
  /// `arrays`: null, or outlives the map.
  explicit NodeMap(NodeArrays* arrays) : arrays_(arrays) {
    if (arrays_ != nullptr) dense_ = arrays_->Take();
  }
  ~NodeMap() {
    if (dense_ == nullptr) return;
    for (const uint32_t node : touched_) (*dense_)[node] = 0;
    arrays_->Return(std::move(dense_));
  }
  NodeMap(const NodeMap&) = delete;
  NodeMap& operator=(const NodeMap&) = delete;

  static constexpr uint32_t kAbsent = UINT32_MAX;

  uint32_t Find(NodeId node) const {
    const auto number = static_cast<uint64_t>(node);
    if (dense_ != nullptr && number < kDenseEnd) {
      return number < dense_->size() ? (*dense_)[number] - 1 : kAbsent;
    }
    const auto found = sparse_.find(node);
    return found == sparse_.end() ? kAbsent : found->second;
  }
  /// The node must be absent, and `value` below kAbsent.
  void Insert(NodeId node, uint32_t value) {
    const auto number = static_cast<uint64_t>(node);
    if (dense_ == nullptr || number >= kDenseEnd) {
      sparse_.emplace(node, value);
      return;
    }
    if (number >= dense_->size()) dense_->resize(std::max(number + 1, number / 8 * 9));
    touched_.push_back(static_cast<uint32_t>(number));
    (*dense_)[number] = value + 1;
  }

 private:
  static constexpr uint64_t kDenseEnd = UINT32_MAX;

  NodeArrays* const arrays_;
  std::unique_ptr<NodeArrays::Array> dense_{};  // 1 more than the number; 0: absent.
  std::vector<uint32_t> touched_;
  std::unordered_map<NodeId, uint32_t> sparse_;
};

}  // namespace basalt::graph
