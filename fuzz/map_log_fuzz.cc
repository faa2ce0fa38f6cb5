#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/coding.h"
#include "base/hash.h"
#include "io/manual_executor.h"
#include "io/sim_file_system.h"
#include "shared_map/change_log.h"
#include "shared_map/control_page.h"
#include "shared_map/environment.h"
#include "shared_map/file_names.h"
#include "shared_map/guarded_word.h"
#include "shared_map/version.h"
#include "shared_map/version_files.h"

// Any bytes as one file of a small map whose writer was killed in the midst of a fold: its control
// page, list of files, a log of changes, or an index. The others are what they should be. Whoever
// reads, checks or writes such a map gets errors or answers, and exactly what the map holds when
// nothing was changed.
//
// The first byte of an input says which file its other bytes are, and the following.

namespace basalt::shared_map {
namespace {

enum Selector : uint8_t {
  kFile = 0x07,       // Of kFiles, modulo their number.
  kReseal = 0x08,     // All checksums are made right, so that what they protect is reached.
  kRestarted = 0x10,  // The machine was started anew since.
  kFill = 0x20,       // Zeros follow, up to the size that the file had.
  kUnchanged = 0x40,  // The bytes are those that the file had.
};

constexpr std::string_view kDirectory = "/map";
constexpr uint64_t kBootId = 1;
constexpr uint64_t kMapId = 7;
constexpr uint64_t kLogBytes = 8192;

using Files = std::map<std::string, std::string>;
using Model = std::map<std::string, std::string>;

struct Machine {
  explicit Machine(const Files& files, uint64_t boot_id = kBootId) {
    environment.fs = &fs;
    environment.executor = &executor;
    environment.boot_id = boot_id;
    environment.new_map_id = kMapId;
    if (files.empty()) return;
    BASALT_CHECK(fs.CreateDirectory(kDirectory).ok());
    for (const auto& [name, bytes] : files) {
      const auto file = fs.Open(io::JoinPath(kDirectory, name), io::OpenMode::kCreate).value();
      BASALT_CHECK(file->WriteAt(0, bytes).ok());
    }
  }
  Files ReadAll() {
    Files files;
    const std::vector<std::string> names = fs.List(kDirectory).value();
    for (const std::string& name : names) {
      if (name == kLockName) continue;
      files[name] = io::ReadWholeFile(&fs, io::JoinPath(kDirectory, name), 64 << 20).value();
    }
    return files;
  }

  io::SimFileSystem fs{io::SimFileSystem::Durability::kIgnored};
  io::ManualExecutor executor;
  Environment environment;
};

template <class T>
T LoadAt(const std::string& bytes, size_t at) {
  return base::Load<T>(bytes.data() + at);
}
template <class T>
void StoreAt(std::string* bytes, size_t at, T value) {
  base::Store(bytes->data() + at, value);
}

/// Makes the checksums of a log right; where it ends then.
LogEnd ResealLog(std::string* bytes) {
  LogEnd end;
  if (bytes->size() < kLogHeaderBytes) return end;
  constexpr size_t kCheckedBytes = 56;
  StoreAt(bytes, kCheckedBytes, base::Hash({bytes->data(), kCheckedBytes}));
  const auto file_id = LoadAt<uint64_t>(*bytes, 16);
  const auto first = LoadAt<Location>(*bytes, 32);
  end.last_checksum = static_cast<uint32_t>(file_id);
  uint64_t at = kLogHeaderBytes;
  while (at + kChangeHeaderBytes + kRecordHeaderBytes <= bytes->size()) {
    const RecordHeader header = RecordRef(bytes->data() + at + kChangeHeaderBytes).header();
    const uint64_t size =
        kChangeHeaderBytes + PaddedRecordBytes(header.key_bytes, header.value_bytes);
    if (header.kind == 0 || size > bytes->size() - at) break;
    end.last_checksum = FinishChange(bytes->data() + at, size, file_id, at, end.last_checksum);
    at += size;
  }
  end.end = static_cast<Location>(first + at / kLogUnit);
  return end;
}

/// A word of a shared page becomes the guarded form of the number in its low bits.
void GuardAt(std::string* bytes, size_t at) {
  if (bytes->size() < at + 8) return;
  StoreAt(bytes, at, Guarded(LoadAt<uint64_t>(*bytes, at) & kGuardedMax));
}

void SealHead(std::string* bytes, size_t checked_bytes) {
  if (bytes->size() < checked_bytes + 8) return;
  StoreAt(bytes, checked_bytes, base::Hash({bytes->data(), checked_bytes}));
}

/// A map with a base, changes that are being folded, newer ones, and what it holds.
struct Sound {
  Files files;
  Model model;
  std::string list_name;
  std::vector<std::string> names;  // Of the files that an input may replace.
};

void Normalize(Sound* sound) {
  // What is random in them becomes the same in every run, so that inputs keep their meaning.
  std::string& list_bytes = sound->files.at(sound->list_name);
  VersionFiles list = VersionFiles::Decode(list_bytes, sound->list_name).value();
  BASALT_CHECK(list.map_id == kMapId);
  std::string& control = sound->files.at(std::string(kControlName));
  StoreAt(&control, ControlPage::kWriterAt, uint64_t{0});
  sound->names = {std::string(kControlName), sound->list_name};
  for (ChangeSetEntry& set : list.change_sets) {
    BASALT_CHECK(set.segments.size() == 1);
    SegmentEntry& segment = set.segments.front();
    segment.capacity_bytes = kLogBytes;
    const std::string name = NameOf(FileKind::kLog, segment.file);
    std::string& log = sound->files.at(name);
    log.resize(kLogBytes);
    StoreAt(&log, 16, segment.file);
    StoreAt(&log, 24, kLogBytes);
    const LogEnd end = ResealLog(&log);
    if (segment.end != 0) {
      BASALT_CHECK(segment.end == end.end);
      segment.last_checksum = end.last_checksum;
    }
    sound->names.push_back(name);
    sound->names.push_back(NameOf(FileKind::kIndex, set.index_file));
  }
  list_bytes = list.Encode();
}

std::string KeyOf(int number) { return "key" + std::to_string(number); }

Sound MakeSound() {
  Sound sound;
  Machine machine({});
  const auto map = CreateMap(kDirectory, {}, machine.environment).value();
  const auto put = [&](int number, const std::string& value) {
    sound.model[KeyOf(number)] = value;
    BASALT_CHECK(map->Put(KeyOf(number), value).ok());
  };
  const auto erase = [&](int number) {
    sound.model.erase(KeyOf(number));
    BASALT_CHECK(map->Delete(KeyOf(number)).ok());
  };
  for (int i = 0; i < 6; ++i) put(i, "base");
  BASALT_CHECK(map->Compact().ok());
  for (int i = 2; i < 4; ++i) put(i, "folding");
  put(6, std::string(40, 'f'));
  erase(0);
  const Status broken_off = map->Compact([](const SharedMapProgress&) { return false; });
  BASALT_CHECK(broken_off.code() == StatusCode::kCancelled);
  WriteBatch batch;
  batch.Put(KeyOf(3), "newest");
  batch.Put(KeyOf(7), "");
  BASALT_CHECK(map->Write(batch).ok());
  sound.model[KeyOf(3)] = "newest";
  sound.model[KeyOf(7)] = "";
  put(3, "newest of all");
  erase(1);
  erase(2);
  sound.files = machine.ReadAll();
  sound.list_name =
      NameOf(FileKind::kVersion, NewestVersionNumber(&machine.fs, std::string(kDirectory)).value());
  Normalize(&sound);
  return sound;
}

void Reseal(const Sound& sound, const std::string& name, Files* files) {
  std::string* const bytes = &files->at(name);
  if (name == kControlName) {
    SealHead(bytes, 24);
    GuardAt(bytes, ControlPage::kNumberAt);
  } else if (name == sound.list_name) {
    if (bytes->size() >= 8) SealHead(bytes, bytes->size() - 8);
  } else if (name.starts_with("index")) {
    SealHead(bytes, 32);
    for (size_t at = 128; at < 160; at += 8) GuardAt(bytes, at);
  } else {
    const LogEnd end = ResealLog(bytes);
    VersionFiles list = VersionFiles::Decode(files->at(sound.list_name), name).value();
    for (ChangeSetEntry& set : list.change_sets) {
      SegmentEntry& segment = set.segments.front();
      if (NameOf(FileKind::kLog, segment.file) != name || segment.end == 0) continue;
      segment.end = std::max<Location>(end.end, kLogHeaderBytes / kLogUnit);
      segment.last_checksum = end.last_checksum;
    }
    files->at(sound.list_name) = list.Encode();
  }
}

void CheckError(const Status& status) {
  BASALT_CHECK(status.code() == StatusCode::kCorruption ||
               status.code() == StatusCode::kUnsupported || status.code() == StatusCode::kNotFound);
  BASALT_CHECK(!status.message().empty());
}

// Where the bytes lie must be within what is mapped: reads them all.
void ReadAll(std::string_view bytes) {
  const volatile uint64_t hash = base::Hash(bytes);
  static_cast<void>(hash);
}

void CheckAnswer(const Result<SharedMap::MaybeView>& answer, const std::string& key,
                 const Model* model) {
  if (model != nullptr) {
    BASALT_CHECK(answer);
    const auto at = model->find(key);
    BASALT_CHECK(answer->has_value() == (at != model->end()));
    if (*answer) BASALT_CHECK((*answer)->view() == at->second);
  }
  if (!answer) return CheckError(answer.error());
  if (*answer) ReadAll((*answer)->view());
}

void AskReader(SharedMap::Reader* reader, const Model* model) {
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) names.push_back(KeyOf(i));
  names.emplace_back();
  for (const std::string& name : names) {
    const auto answer = reader->Get(name);
    CheckAnswer(answer, name, model);
  }
  const std::vector<std::string_view> keys(names.begin(), names.end());
  std::vector<Result<SharedMap::MaybeView>> results(keys.size());
  BASALT_CHECK(reader->MultiGet(keys, results).ok());
  for (size_t i = 0; i < keys.size(); ++i) CheckAnswer(results[i], names[i], model);
  Model contents;
  const Status scanned = reader->ParallelScan(1, [&](std::string_view key, std::string_view value) {
    contents[std::string(key)] = value;
    return Status();
  });
  BASALT_CHECK(model == nullptr || (scanned.ok() && contents == *model));
  if (!scanned.ok()) CheckError(scanned);
}

/// `model`: what it must hold; null: nobody knows.
void Ask(const SharedMap& map, const Model* model) {
  auto reader = map.NewReader();
  BASALT_CHECK(reader);
  AskReader(&*reader, model);
  auto snapshot = reader->GetSnapshot();
  BASALT_CHECK(model == nullptr || snapshot);
  if (snapshot) AskReader(&*snapshot, model);
  const auto stats = map.GetStats();
  BASALT_CHECK(stats && (model == nullptr || stats->entries == model->size()));
}

void Try(const Files& files, uint64_t boot_id, const Model* model) {
  Machine machine(files, boot_id);
  const auto attached = AttachMap(kDirectory, machine.environment);
  BASALT_CHECK(model == nullptr || attached);
  if (attached) {
    Ask(**attached, model);
  } else {
    CheckError(attached.error());
  }
  const auto report = CheckMap(kDirectory, nullptr, machine.environment);
  BASALT_CHECK(model == nullptr || (report && report->ok()));

  const auto opened = OpenMap(kDirectory, {}, machine.environment);
  BASALT_CHECK(model == nullptr || opened);
  if (!opened) return CheckError(opened.error());
  Ask(**opened, model);
  auto reader = (*opened)->NewReader().value();
  for (int i = 0; i < 10; i += 3) {
    if (!(*opened)->Put(KeyOf(i), "put").ok()) continue;
    const auto found = reader.Get(KeyOf(i));
    BASALT_CHECK(found && *found && **found == "put");
  }
  const Status folded = (*opened)->Compact();
  BASALT_CHECK(model == nullptr || folded.ok());
  Ask(**opened, nullptr);
  // A reader of before follows, or is told why it cannot.
  if (attached) Ask(**attached, nullptr);
}

void TryInput(const uint8_t* data, size_t size) {
  if (size == 0) return;
  static const Sound sound = MakeSound();
  const uint8_t selector = data[0];
  const std::string& name = sound.names[(selector & kFile) % sound.names.size()];
  Files files = sound.files;
  std::string& bytes = files.at(name);
  if ((selector & kUnchanged) == 0) {
    const size_t size_before = bytes.size();
    bytes.assign(reinterpret_cast<const char*>(data + 1), size - 1);
    if ((selector & kFill) != 0 && bytes.size() < size_before) bytes.resize(size_before);
    if ((selector & kReseal) != 0) Reseal(sound, name, &files);
  }
  const uint64_t boot_id = kBootId + ((selector & kRestarted) != 0 ? 1 : 0);
  Try(files, boot_id, files == sound.files ? &sound.model : nullptr);
}

}  // namespace
}  // namespace basalt::shared_map

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  basalt::shared_map::TryInput(data, size);
  return 0;
}
