#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/iterator.h"
#include "basalt/options.h"
#include "basalt/snapshot.h"
#include "net/client.h"

// An iterator over the wire: a snapshot on the server, and a block of consecutive records of it in
// memory. A move that leaves the block asks for the block behind it or before it. Blocks of one
// walk grow from 16 records to what the server gives at most; a seek begins anew.

namespace basalt::net {

class RemoteIterator final : public Iterator {
 public:
  /// `options`: their bounds are good. The snapshot is kept.
  RemoteIterator(std::shared_ptr<Client> client, const ReadOptions& options,
                 std::shared_ptr<const void> snapshot, uint64_t snapshot_id);

  std::optional<WallTime> expiry() const noexcept override;
  void SeekToFirst() override;
  void SeekToLast() override;
  void Seek(std::string_view target) override;
  void SeekForPrev(std::string_view target) override;
  void Next() override;
  void Prev() override;

 private:
  struct Record {
    std::string_view key;  // Into bytes_.
    std::string_view value;
    int64_t expiry_ms;  // 0: never.
  };
  enum class Direction : uint8_t { kForward, kBackward };

  /// Beginning of a range in the direction of a walk: "[key", "(key", "-" or "+".
  std::string LowerBound() const;
  std::string UpperBound() const;
  /// Reads the block that begins at `from` and shows its first record in that direction.
  void Load(Direction direction, const std::string& from);
  Status Fetch(Direction direction, const std::string& from);
  void ReadBlock(AnswerReader& answer);
  void Show(size_t index) noexcept;
  void ShowNothing() noexcept;

  const std::shared_ptr<Client> client_;
  const std::shared_ptr<const void> snapshot_;
  const uint64_t snapshot_id_;
  const KeyspaceId keyspace_;
  const bool keys_only_;
  std::optional<std::string> lower_;
  std::optional<std::string> upper_;

  std::string bytes_;
  std::vector<Record> records_;  // Ascending.
  size_t index_ = 0;
  Direction loaded_ = Direction::kForward;
  bool has_more_ = false;  // Behind the block, in the direction in which it was loaded.
  Status block_end_;       // What the server met there.
  uint64_t wanted_ = 0;    // Records of the next block.
};

}  // namespace basalt::net
