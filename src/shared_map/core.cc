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

Result<std::shared_ptr<ControlPage>> Core::FindControl() const {
  auto control = ControlPage::Open(environment_.fs, PathOf(std::string(kControlName)),
                                   /*to_write=*/false);
  const StatusCode code = control.status().code();
  if (code != StatusCode::kCorruption && code != StatusCode::kNotFound) return control;
  return ControlPage::Missing();
}

Result<std::shared_ptr<Core>> Core::Attach(std::string_view path, const Environment& environment) {
  io::FileSystem* const fs = environment.fs;
  BASALT_ASSIGN_OR_RETURN(std::string directory, ResolveMap(fs, path));
  auto core = std::make_shared<Core>(std::move(directory), environment);

  // A writer may publish while this one opens: then what was published is gone, and told anew.
  constexpr int kAttemptsMax = 1000;
  Status status;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    if (!core->has_control()) {
      BASALT_ASSIGN_OR_RETURN(core->control_, core->FindControl());
    }
    const uint64_t word = core->control_->word();
    std::optional<uint64_t> number = core->control_->Number(environment.boot_id);
    auto trust = VersionOpener::Trust::kVerified;
    if (!number) {
      trust = VersionOpener::Trust::kUnknown;
      // NotFound says what the directory is instead.
      BASALT_ASSIGN_OR_RETURN(number, NewestVersionNumber(fs, core->directory_));
    }
    auto version = core->OpenNumber(*number, trust);
    if (version) {
      core->newest_ = std::move(*version);
      core->newest_word_ = word;
      return core;
    }
    status = version.error();
    // Anything else may have come of files that were replaced, too.
    if (core->control_->word() == word && status.code() != StatusCode::kNotFound) return status;
    if (core->control_->word() == word && attempt > 10) break;
  }
  return Status(StatusCode::kCorruption,
                core->directory_ +
                    ": a file of the newest version is missing: " + std::string(status.message()));
}

Result<std::shared_ptr<const Version>> Core::OpenNumber(uint64_t number,
                                                        VersionOpener::Trust trust) {
  const auto map_id = has_control() ? std::optional(control_->map_id()) : std::nullopt;
  BASALT_ASSIGN_OR_RETURN(ListFile listed,
                          ListFile::Open(environment_.fs, directory_, number, map_id));
  return opener_.Open(std::move(listed), trust);
}

Result<Core::Followed> Core::NewestWithoutControl() {
  constexpr int kAttemptsMax = 1000;
  for (int attempt = 0;; ++attempt) {
    // Of a map that has been removed the reader keeps what it has.
    const auto number = NewestVersionNumber(environment_.fs, directory_);
    if (number && *number > newest_->number()) {
      auto opened = OpenNumber(*number, VersionOpener::Trust::kUnknown);
      if (!opened && opened.error().code() == StatusCode::kNotFound && attempt < kAttemptsMax) {
        continue;  // Replaced meanwhile.
      }
      if (!opened) return opened.error();
      newest_ = std::move(*opened);
    }
    // The page never has this word: the next call looks again.
    return Followed{.version = newest_, .control = control_.get(), .word = ~control_->word()};
  }
}

Result<Core::Followed> Core::Newest() {
  const std::lock_guard guard(mutex_);
  if (!has_control()) {
    BASALT_ASSIGN_OR_RETURN(auto control, FindControl());
    if (!control->Number(environment_.boot_id)) return NewestWithoutControl();
    control_ = std::move(control);
    newest_word_ = ~control_->word();
  }
  constexpr int kAttemptsMax = 1000;
  for (int attempt = 0;; ++attempt) {
    const uint64_t word = control_->word();
    if (newest_ != nullptr && newest_word_ == word) {
      return Followed{.version = newest_, .control = control_.get(), .word = word};
    }
    const std::optional<uint64_t> number = Unguarded(word);
    if (!number) {
      return Status(StatusCode::kCorruption, PathOf(std::string(kControlName)) +
                                                 ": the number of the newest version is damaged");
    }
    auto opened = OpenNumber(*number, VersionOpener::Trust::kPublished);
    if (opened) {
      newest_ = std::move(*opened);
      newest_word_ = word;
      return Followed{.version = newest_, .control = control_.get(), .word = word};
    }
    if (control_->word() != word && attempt < kAttemptsMax) continue;
    if (!control_->Number(environment_.boot_id)) {
      // What a writer makes bears the boot id that it sees, and is not believed.
      return Status(StatusCode::kFailedPrecondition,
                    directory_ + ": its writer sees another " + std::string(kBootIdPath) +
                        " than this process; let both see that of the machine");
    }
    if (opened.error().code() != StatusCode::kNotFound) return opened.error();
    return Status(StatusCode::kCorruption, directory_ +
                                               ": a file of the newest version is missing: " +
                                               std::string(opened.error().message()));
  }
}

void Core::Publish(std::shared_ptr<const Version> version) {
  const std::lock_guard guard(mutex_);
  const uint64_t number = version->number();
  newest_ = std::move(version);
  newest_word_ = Guarded(number);
  control_->StoreNumber(number);
}

}  // namespace basalt::shared_map
