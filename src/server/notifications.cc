#include "server/notifications.h"

#include <algorithm>

#include "server/numbers.h"

namespace basalt::server {
namespace {

/// 'A' stands for all classes of events. Those of 'e' (eviction) and 'd' (modules) do not happen.
constexpr std::string_view kFlags = "g$lshzxetdKE";
constexpr std::string_view kClasses = "g$lshzxetd";

constexpr uint32_t BitOf(char flag) noexcept {
  const size_t at = kFlags.find(flag);
  return at == std::string_view::npos ? 0 : uint32_t{1} << at;
}

uint32_t BitsOf(std::string_view flags) noexcept {
  uint32_t bits = 0;
  for (const char flag : flags) {
    if (flag != 'A') bits |= BitOf(flag);
    for (const char one : flag == 'A' ? kClasses : std::string_view()) bits |= BitOf(one);
  }
  return bits;
}

struct NamedEvent {
  std::string_view command;
  char event_class;
  std::string_view event;
};

/// Commands whose events are not called as they are, or that tell more than one.
constexpr NamedEvent kNamedEvents[] = {
    {"setnx", '$', "set"},        {"setex", '$', "set"},      {"psetex", '$', "set"},
    {"getset", '$', "set"},       {"mset", '$', "set"},       {"msetnx", '$', "set"},
    {"incr", '$', "incrby"},      {"decr", '$', "incrby"},    {"decrby", '$', "incrby"},
    {"bitop", '$', "set"},        {"lpushx", 'l', "lpush"},   {"rpushx", 'l', "rpush"},
    {"blpop", 'l', "lpop"},       {"brpop", 'l', "rpop"},     {"hmset", 'h', "hset"},
    {"hsetnx", 'h', "hset"},      {"zincrby", 'z', "zincr"},  {"bzpopmin", 'z', "zpopmin"},
    {"bzpopmax", 'z', "zpopmax"}, {"pexpire", 'g', "expire"}, {"expireat", 'g', "expire"},
    {"pexpireat", 'g', "expire"}, {"copy", 'g', "copy_to"},   {"unlink", 'g', "del"},
    {"getdel", 'g', "del"},
};

char ClassOf(Group group) noexcept {
  switch (group) {
    case Group::kString:
    case Group::kBitmap:
      return '$';
    case Group::kList:
      return 'l';
    case Group::kSet:
      return 's';
    case Group::kHash:
      return 'h';
    case Group::kSortedSet:
      return 'z';
    case Group::kStream:
      return 't';
    default:
      return 'g';
  }
}

NamedEvent EventOf(const Command& command) noexcept {
  const auto* const found =
      std::find_if(std::begin(kNamedEvents), std::end(kNamedEvents),
                   [&](const NamedEvent& event) { return event.command == command.name; });
  if (found != std::end(kNamedEvents)) return *found;
  return {command.name, ClassOf(command.group), command.name};
}

bool HasWord(Args args, size_t from, std::initializer_list<std::string_view> words) {
  for (size_t i = from; i < args.size(); ++i) {
    for (const std::string_view word : words) {
      if (EqualsIgnoreCase(args[i], word)) return true;
    }
  }
  return false;
}

/// The event of a command that moves something from one key to another, at either key.
std::string_view EventOfMove(const Command& command, Args args, bool is_source) {
  const auto is_left = [&](size_t index) { return EqualsIgnoreCase(args[index], "left"); };
  const std::string_view name = command.name;
  if (name == "rename" || name == "renamenx") return is_source ? "rename_from" : "rename_to";
  if (name == "move") return is_source ? "move_from" : "move_to";
  if (name == "smove") return is_source ? "srem" : "sadd";
  if (name == "rpoplpush" || name == "brpoplpush") return is_source ? "rpop" : "lpush";
  if (name != "lmove" && name != "blmove") return {};
  if (is_source) return is_left(3) ? "lpop" : "rpop";
  return is_left(4) ? "lpush" : "rpush";
}

/// The event of LMPOP and ZMPOP, which goes by a word among the arguments.
std::string_view EventOfPop(const Command& command, Args args) {
  if (command.name.ends_with("lmpop")) return HasWord(args, 1, {"left"}) ? "lpop" : "rpop";
  if (command.name.ends_with("zmpop")) return HasWord(args, 1, {"min"}) ? "zpopmin" : "zpopmax";
  return {};
}

bool SetsExpiry(const Command& command, Args args) {
  return command.name == "setex" || command.name == "psetex" ||
         (command.name == "set" && HasWord(args, 3, {"ex", "px", "exat", "pxat"}));
}

class EventList {
 public:
  EventList(const Command& command, Args args) : command_(command), args_(args) {}
  void Add(const ChangedKey& changed);
  std::vector<Event> Take() { return std::move(events_); }

 private:
  void Push(char event_class, std::string_view name, const ChangedKey& key) {
    events_.push_back({event_class, name, key.db, key.name});
  }
  void AddSingle(const ChangedKey& key, NamedEvent event);

  const Command& command_;
  Args args_;
  std::vector<Event> events_;
};

void EventList::AddSingle(const ChangedKey& key, NamedEvent event) {
  const bool is_store = command_.name.ends_with("store") || command_.name == "bitop" ||
                        command_.name == "set" || event.event == "expire";
  if (event.event == "getex") {
    event = {event.command, 'g', HasWord(args_, 2, {"persist"}) ? "persist" : "expire"};
  }
  if (key.is_removed) {
    if (event.event_class != 'g' && !is_store) Push(event.event_class, event.event, key);
    return Push('g', "del", key);
  }
  if (event.event == "zadd" && HasWord(args_, 2, {"incr"})) event.event = "zincr";
  Push(event.event_class, event.event, key);
  if (SetsExpiry(command_, args_)) Push('g', "expire", key);
}

void EventList::Add(const ChangedKey& changed) {
  NamedEvent event = EventOf(command_);
  const bool is_source = args_.size() > 1 && changed.name == args_[1] &&
                         (command_.name != "move" || changed.is_removed);
  if (const std::string_view name = EventOfMove(command_, args_, is_source); !name.empty()) {
    // A list that turns has both events at one key.
    if (is_source && args_[1] == args_[2] && event.event_class == 'l') {
      Push('l', EventOfMove(command_, args_, false), changed);
    }
    Push(event.event_class, name, changed);
    if (is_source && changed.is_removed && event.event_class != 'g') Push('g', "del", changed);
    return;
  }
  if (const std::string_view name = EventOfPop(command_, args_); !name.empty()) event.event = name;
  AddSingle(changed, event);
}

}  // namespace

std::vector<Event> EventsOf(const Command& command, Args args,
                            std::span<const ChangedKey> changed) {
  EventList events(command, args);
  const bool is_list_move =
      command.group == Group::kList && !EventOfMove(command, args, true).empty();
  if (is_list_move) {  // The push is told of first.
    for (size_t i = changed.size(); i > 0; --i) events.Add(changed[i - 1]);
  } else {
    for (const ChangedKey& key : changed) events.Add(key);
  }
  return events.Take();
}

bool Notifications::AreFlags(std::string_view flags) {
  return std::all_of(flags.begin(), flags.end(),
                     [](char flag) { return flag == 'A' || BitOf(flag) != 0; });
}

void Notifications::set_flags(std::string_view flags) {
  const std::lock_guard lock(mutex_);
  flags_ = BitsOf(flags);
  if (!Wants('x')) {
    expiry_of_.clear();
    due_.clear();
  }
}

std::string Notifications::flags() const {
  const uint32_t bits = flags_.load();
  std::string text;
  if ((bits & BitsOf("A")) == BitsOf("A")) {
    text = "A";
  } else {
    for (const char flag : kClasses) {
      if ((bits & BitOf(flag)) != 0) text += flag;
    }
  }
  for (const char flag : {'K', 'E'}) {
    if ((bits & BitOf(flag)) != 0) text += flag;
  }
  return text;
}

bool Notifications::Wants(char flag) const noexcept {
  return (flags_.load(std::memory_order_relaxed) & BitOf(flag)) != 0;
}

void Notifications::Tell(PubSub* pub_sub, std::span<const Event> events) const {
  for (const Event& event : events) {
    if (!Wants(event.event_class)) continue;
    const std::string at = "@" + std::to_string(event.db) + "__:";
    if (Wants('K')) pub_sub->Publish("__keyspace" + at + event.key, event.name);
    if (Wants('E')) pub_sub->Publish("__keyevent" + at + std::string(event.name), event.key);
  }
}

void Notifications::Forget(const Place& place) {
  const auto found = expiry_of_.find(place);
  if (found == expiry_of_.end()) return;
  due_.erase({found->second, place});
  expiry_of_.erase(found);
}

void Notifications::NoteExpiries(std::span<const ChangedKey> keys) {
  if (!Wants('x')) return;
  const std::lock_guard lock(mutex_);
  for (const ChangedKey& key : keys) {
    const Place place(key.db, key.name);
    Forget(place);
    if (!key.expiry || expiry_of_.size() >= kExpiriesMax) continue;
    expiry_of_.emplace(place, *key.expiry);
    due_.emplace(std::pair(*key.expiry, place), 0);
  }
}

bool Notifications::TakeDue(Place* place) {
  const WallTime now{std::chrono::milliseconds(Dataset::NowMs())};
  const std::lock_guard lock(mutex_);
  if (due_.empty() || due_.begin()->first.first > now) return false;
  *place = due_.begin()->first.second;
  Forget(*place);
  return true;
}

void Notifications::TellExpired(Dataset* dataset, PubSub* pub_sub) {
  Place place;
  while (TakeDue(&place)) {
    const Result<bool> found = dataset->db().Contains(MetadataKey(place.first, place.second),
                                                      {.keyspace = dataset->keyspace()});
    if (!found || *found) continue;
    const Event expired{'x', "expired", place.first, place.second};
    Tell(pub_sub, {&expired, 1});
  }
}

}  // namespace basalt::server
