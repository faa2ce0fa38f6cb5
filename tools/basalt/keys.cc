#include "tools/basalt/keys.h"

#include <functional>
#include <memory>
#include <utility>

#include "basalt/key.h"
#include "basalt/store.h"
#include "tools/basalt/argument_bytes.h"
#include "tools/basalt/keyspace.h"
#include "tools/basalt/open_store.h"
#include "tools/basalt/record_printer.h"
#include "tools/basalt/text_format.h"

namespace basalt::tools {
namespace {

using MakeBatch = std::function<WriteBatch(KeyspaceId)>;
using ChooseKeyspace = std::function<Result<KeyspaceId>(Store&)>;

/// Opens the store, writes to it, and closes it. What cannot be meant makes no database.
Status WriteTo(const std::string& path, const DBOptions& open, const ChooseKeyspace& choose,
               const MakeBatch& records, const WriteOptions& options) {
  if (const WriteBatch meant = records(KeyspaceId::kDefault); !meant.status().ok()) {
    return meant.status();
  }
  Result<std::unique_ptr<Store>> store = OpenStoreToWrite(path, open);
  if (!store) return store.error();
  const Result<KeyspaceId> keyspace = choose(**store);
  if (!keyspace) return keyspace.error();
  if (Status written = (*store)->Write(records(*keyspace), options); !written.ok()) return written;
  return CloseStore(store->get());
}

}  // namespace

ExitCode Get(const GetOptions& options, Output& out) {
  const Result<std::string> key = MeantBytes(options.key, options.base64);
  if (!key) return Report(key.error());
  const Result<std::unique_ptr<Store>> store = OpenStoreToRead(options.path, options.access);
  if (!store) return Report(store.error());
  const Result<KeyspaceId> keyspace = FindKeyspace(**store, options.keyspace);
  if (!keyspace) return Report(keyspace.error());
  const Result<MaybeValue> value = (*store)->Get(*key, {.keyspace = *keyspace});
  if (!value) return Report(value.error());
  if (!value->has_value()) {
    Complain("no key " + KeyText(*key) + " in " + options.path);
    return ExitCode::kAbsent;
  }
  const std::string_view bytes = (*value)->view();
  if (options.output == OutputFormat::kCsv || options.output == OutputFormat::kJson) {
    RecordPrinter(options.output, RecordPrinter::Columns::kKeyAndValue, out).Print(*key, bytes);
    return ExitCode::kOk;
  }
  out.Write(bytes);
  if (options.output != OutputFormat::kRaw) out.Write("\n");
  return ExitCode::kOk;
}

ExitCode Put(const PutOptions& options, Output& /*out*/) {
  const Result<std::string> key = MeantBytes(options.key, options.base64);
  if (!key) return Report(key.error());
  const Result<std::string> value = options.value == "-"
                                        ? ReadValueFromStandardInput()
                                        : MeantBytes(options.value, options.base64);
  if (!value) return Report(value.error());
  const auto choose = [&](Store& store) { return FindOrMakeKeyspace(store, options.keyspace); };
  const auto records = [&](KeyspaceId keyspace) {
    WriteBatch batch;
    batch.Put(*key, *value, {.keyspace = keyspace, .ttl = options.ttl});
    return batch;
  };
  return Report(WriteTo(options.path, {.memory_budget = options.memory_budget}, choose, records,
                        options.write));
}

namespace {

Status CheckDeletion(const DeleteOptions& options, size_t arguments) {
  if (options.form == DeleteForm::kPrefix && arguments != 1) {
    return {StatusCode::kInvalidArgument, "--prefix takes one argument, which keys begin with"};
  }
  if (options.form == DeleteForm::kRange && arguments != 2) {
    return {StatusCode::kInvalidArgument,
            "--range takes two arguments: the first key of the range, and its end"};
  }
  return {};
}

void AddDeletion(DeleteForm form, const std::vector<std::string>& arguments, KeyspaceId keyspace,
                 WriteBatch& batch) {
  if (form == DeleteForm::kRange) {
    batch.DeleteRange(arguments[0], arguments[1], keyspace);
  } else if (form == DeleteForm::kPrefix) {
    const std::string& prefix = arguments[0];
    if (prefix.find_first_not_of('\xFF') != std::string::npos) {
      batch.DeleteRange(prefix, PrefixSuccessor(prefix), keyspace);
      return;
    }
    // Nothing follows these keys. The greatest key that there can be is not in the range.
    const std::string greatest(kMaxKeyBytes, '\xFF');
    batch.DeleteRange(prefix, greatest, keyspace);
    batch.Delete(greatest, keyspace);
  } else {
    for (const std::string& key : arguments) batch.Delete(key, keyspace);
  }
}

}  // namespace

ExitCode Delete(const DeleteOptions& options, Output& /*out*/) {
  std::vector<std::string> arguments = {options.first_key};
  arguments.insert(arguments.end(), options.more_keys.begin(), options.more_keys.end());
  if (Status meant = CheckDeletion(options, arguments.size()); !meant.ok()) return Report(meant);
  for (std::string& argument : arguments) {
    Result<std::string> key = MeantBytes(argument, options.base64);
    if (!key) return Report(key.error());
    argument = std::move(*key);
  }
  const auto choose = [&](Store& store) { return FindKeyspace(store, options.keyspace); };
  const auto records = [&](KeyspaceId keyspace) {
    WriteBatch batch;
    AddDeletion(options.form, arguments, keyspace, batch);
    return batch;
  };
  return Report(
      WriteTo(options.path, {.create_if_missing = false}, choose, records, options.write));
}

ExitCode Scan(const ScanVerbOptions& options, Output& out) {
  std::optional<std::string> prefix = options.prefix;
  std::optional<std::string> from = options.from;
  std::optional<std::string> to = options.to;
  for (std::optional<std::string>* bound : {&prefix, &from, &to}) {
    if (!bound->has_value()) continue;
    Result<std::string> bytes = MeantBytes(**bound, options.base64);
    if (!bytes) return Report(bytes.error());
    *bound = std::move(*bytes);
  }
  const Result<std::unique_ptr<Store>> store = OpenStoreToRead(options.path, options.access);
  if (!store) return Report(store.error());
  const Result<KeyspaceId> keyspace = FindKeyspace(**store, options.keyspace);
  if (!keyspace) return Report(keyspace.error());
  const std::unique_ptr<Iterator> it = (*store)->NewIterator({.keyspace = *keyspace,
                                                              .fill_cache = false,
                                                              .lower = from,
                                                              .upper = to,
                                                              .prefix = prefix,
                                                              .keys_only = options.keys_only});
  RecordPrinter printer(
      options.output,
      options.keys_only ? RecordPrinter::Columns::kKey : RecordPrinter::Columns::kKeyAndValue, out);
  uint64_t left = options.limit;
  options.reverse ? it->SeekToLast() : it->SeekToFirst();
  for (; left > 0 && it->Valid(); --left) {
    if (!printer.Print(it->key(), it->value())) return ExitCode::kOk;
    options.reverse ? it->Prev() : it->Next();
  }
  return Report(it->status());
}

}  // namespace basalt::tools
