#include "shared_map/core.h"

#include "base/check.h"
#include "shared_map/file_names.h"
#include "shared_map/writer.h"

namespace basalt::shared_map {

Core::Core(std::string directory, const Environment& environment)
    : environment_(environment),
      directory_(std::move(directory)),
      opener_(environment_.fs, directory_, environment_.boot_id) {}

Core::~Core() = default;

void Core::SetWriter(std::unique_ptr<Writer> writer) { writer_ = std::move(writer); }

Result<std::shared_ptr<Core>> Core::Attach(std::string_view path, const Environment& environment) {
  io::FileSystem* const fs = environment.fs;
  BASALT_ASSIGN_OR_RETURN(std::string directory, ResolveMap(fs, path));
  auto core = std::make_shared<Core>(std::move(directory), environment);
  auto control = ControlPage::Open(fs, core->PathOf(std::string(kControlName)), /*to_write=*/false);
  if (!control && control.error().code() == StatusCode::kNotFound) {
    // Says what the directory is instead.
    BASALT_RETURN_IF_ERROR(NewestGenerationNumber(fs, core->directory_).status());
  }
  if (!control) return control.error();
  core->control_ = std::move(*control);

  // A writer may publish while this one opens: then what was published is gone, and told anew.
  constexpr int kAttemptsMax = 1000;
  Status status;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    const uint64_t word = core->control_->word();
    std::optional<uint64_t> number = core->control_->Number(environment.boot_id);
    auto trust = GenerationOpener::Trust::kVerified;
    if (!number) {
      trust = GenerationOpener::Trust::kNone;
      BASALT_ASSIGN_OR_RETURN(number, NewestGenerationNumber(fs, core->directory_));
    }
    auto listed = ListFile::Open(fs, core->directory_, *number, core->control_->map_id());
    status = listed.status();
    if (listed) {
      auto generation = core->opener_.Open(std::move(*listed), trust);
      if (generation) {
        core->newest_ = std::move(*generation);
        core->newest_word_ = word;
        return core;
      }
      status = generation.error();
    }
    // Anything else may have come of files that were replaced, too.
    if (core->control_->word() == word && status.code() != StatusCode::kNotFound) return status;
    if (core->control_->word() == word && attempt > 10) break;
  }
  return Status(StatusCode::kCorruption, core->directory_ +
                                             ": a file of the newest generation is missing: " +
                                             std::string(status.message()));
}

Result<std::shared_ptr<const Generation>> Core::OpenNumber(uint64_t number) {
  BASALT_ASSIGN_OR_RETURN(ListFile listed,
                          ListFile::Open(environment_.fs, directory_, number, control_->map_id()));
  return opener_.Open(std::move(listed), GenerationOpener::Trust::kPublished);
}

Result<std::shared_ptr<const Generation>> Core::Newest(uint64_t* word) {
  const std::lock_guard guard(mutex_);
  constexpr int kAttemptsMax = 1000;
  for (int attempt = 0;; ++attempt) {
    *word = control_->word();
    if (newest_ != nullptr && newest_word_ == *word) return newest_;
    const std::optional<uint64_t> number = Unguarded(*word);
    if (!number) {
      return Status(
          StatusCode::kCorruption,
          PathOf(std::string(kControlName)) + ": the number of the newest generation is damaged");
    }
    auto opened = OpenNumber(*number);
    if (opened) {
      newest_ = std::move(*opened);
      newest_word_ = *word;
      return newest_;
    }
    if (control_->word() != *word && attempt < kAttemptsMax) continue;
    if (!control_->Number(environment_.boot_id)) {
      // What a writer makes bears the boot id that it sees, and is not believed.
      return Status(StatusCode::kFailedPrecondition,
                    directory_ + ": its writer sees another " + std::string(kBootIdPath) +
                        " than this process; let both see that of the machine");
    }
    if (opened.error().code() != StatusCode::kNotFound) return opened.error();
    return Status(StatusCode::kCorruption, directory_ +
                                               ": a file of the newest generation is missing: " +
                                               std::string(opened.error().message()));
  }
}

void Core::Publish(std::shared_ptr<const Generation> generation) {
  const std::lock_guard guard(mutex_);
  const uint64_t number = generation->number();
  newest_ = std::move(generation);
  newest_word_ = Guarded(number);
  control_->StoreNumber(number);
}

}  // namespace basalt::shared_map
