#include "db/change_reader.h"

#include <optional>
#include <utility>

#include "base/check.h"
#include "base/out_of_memory.h"
#include "db/core.h"
#include "wal/log_reader.h"

namespace basalt::db {
namespace {

// A record is in the log before its batch is visible. It is handed out only then, so that who reads
// the store after a change sees it.
class LogChangeReader final : public ChangeReader {
 public:
  LogChangeReader(std::shared_ptr<Core> core, wal::LogReader reader)
      : core_(std::move(core)), reader_(std::move(reader)) {}

  Result<bool> Next() override {
    return base::OrOutOfMemory([&] { return FindNext(); });
  }
  CommittedBatch batch() const override {
    BASALT_CHECK(is_current_);
    return {record_->payload,
            record_->count,
            {.sequence = record_->last_sequence(), .lsn = record_->lsn}};
  }

 private:
  Result<bool> FindNext() {
    BASALT_RETURN_IF_ERROR(core_->CheckUsable());
    if (is_current_ || !record_) {
      is_current_ = false;
      record_.reset();
      BASALT_ASSIGN_OR_RETURN(record_, reader_.Next());
    }
    is_current_ = record_ && record_->last_sequence() <= core_->visible();
    return is_current_;
  }

  const std::shared_ptr<Core> core_;
  wal::LogReader reader_;
  std::optional<wal::Record> record_;
  bool is_current_ = false;  // record_ is what Next has gone to; else it is not visible yet
};

}  // namespace

Result<std::unique_ptr<ChangeReader>> NewChangeReader(const std::shared_ptr<Core>& core,
                                                      uint64_t from_lsn) {
  BASALT_ASSIGN_OR_RETURN(wal::LogReader reader, core->ReadLog(from_lsn));
  return std::unique_ptr<ChangeReader>(std::make_unique<LogChangeReader>(core, std::move(reader)));
}

}  // namespace basalt::db
