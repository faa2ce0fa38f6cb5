#include <algorithm>

#include "server/command.h"
#include "server/numbers.h"

namespace basalt::server {
namespace {

enum class End : uint8_t { kLeft, kRight };

int64_t Size(const Key& list) { return static_cast<int64_t>(list.meta.count); }

std::string ElementAt(const Key& list, int64_t index) {
  return ListElementKey(list.meta.id, list.meta.first + index);
}

void PushElement(Call& call, Key* list, End end, std::string_view value) {
  if (!list->exists && list->meta.id == 0) call.view.MakeCollection(list, Type::kList);
  if (end == End::kLeft) --list->meta.first;
  ++list->meta.count;
  call.view.Put(ElementAt(*list, end == End::kLeft ? 0 : Size(*list) - 1), value);
}

/// The list has an element.
std::string PopElement(Call& call, Key* list, End end) {
  const std::string element = ElementAt(*list, end == End::kLeft ? 0 : Size(*list) - 1);
  std::string value = call.view.Get(element).value_or(std::string());
  call.view.Delete(element);
  if (end == End::kLeft) ++list->meta.first;
  --list->meta.count;
  return value;
}

void Push(Call& call, End end, bool only_if_present) {
  Key list;
  if (!call.Open(call.arg(1), Type::kList, &list)) return;
  if (only_if_present && !list.exists) return call.reply.Integer(0);
  for (size_t i = 2; i < call.count(); ++i) PushElement(call, &list, end, call.arg(i));
  call.view.Save(list);
  call.reply.Integer(Size(list));
}
void RunLpush(Call& call) { Push(call, End::kLeft, false); }
void RunRpush(Call& call) { Push(call, End::kRight, false); }
void RunLpushx(Call& call) { Push(call, End::kLeft, true); }
void RunRpushx(Call& call) { Push(call, End::kRight, true); }

/// Replies with up to `count` popped elements as an array.
void ReplyPopped(Call& call, Key* list, End end, uint64_t count) {
  const uint64_t popped = std::min(count, list->meta.count);
  call.reply.Array(popped);
  for (uint64_t i = 0; i < popped && call.view.ok(); ++i) {
    call.reply.Bulk(PopElement(call, list, end));
  }
  if (popped > 0) call.view.Save(*list);
}

void Pop(Call& call, End end) {
  if (call.count() > 3) {
    return call.reply.Error("ERR wrong number of arguments for '" + std::string(call.command.name) +
                            "' command");
  }
  std::optional<int64_t> count;
  if (call.count() == 3) {
    count = ParseInteger(call.arg(2));
    if (!count || *count < 0) {
      return call.reply.Error("ERR value is out of range, must be positive");
    }
  }
  Key list;
  if (!call.Open(call.arg(1), Type::kList, &list)) return;
  if (!list.exists) return count ? call.reply.NullArray() : call.reply.Null();
  if (count) return ReplyPopped(call, &list, end, static_cast<uint64_t>(*count));
  call.reply.Bulk(PopElement(call, &list, end));
  call.view.Save(list);
}
void RunLpop(Call& call) { Pop(call, End::kLeft); }
void RunRpop(Call& call) { Pop(call, End::kRight); }

void RunLlen(Call& call) {
  Key list;
  if (call.Open(call.arg(1), Type::kList, &list)) call.reply.Integer(Size(list));
}

/// Makes a range of indexes, which may be negative, one of [begin, end) inside the list.
std::pair<int64_t, int64_t> Clamp(int64_t from, int64_t to, int64_t size) {
  if (from < 0) from = std::max<int64_t>(from + size, 0);
  if (to < 0) to += size;
  to = std::min(to, size - 1);
  return from > to ? std::pair<int64_t, int64_t>(0, 0) : std::pair(from, to + 1);
}

void RunLrange(Call& call) {
  const std::optional<int64_t> from = call.Integer(2);
  if (!from) return;
  const std::optional<int64_t> to = call.Integer(3);
  if (!to) return;
  Key list;
  if (!call.Open(call.arg(1), Type::kList, &list)) return;
  const auto [begin, end] = Clamp(*from, *to, Size(list));
  call.reply.Array(static_cast<size_t>(end - begin));
  if (begin == end) return;
  const std::string prefix = ElementPrefix(list.meta.id);
  Walk walk(&call.view, prefix);
  walk.Seek(std::string_view(ElementAt(list, begin)).substr(prefix.size()));
  for (int64_t i = begin; i < end && walk.Valid() && !call.reply.is_over_limit(); ++i) {
    call.reply.Bulk(walk.value());
    walk.Next();
  }
}

/// The place of an index in the list, if it has one.
std::optional<int64_t> PlaceOf(const Key& list, int64_t index) {
  if (index < 0) index += Size(list);
  return index >= 0 && index < Size(list) ? std::optional(index) : std::nullopt;
}

void RunLindex(Call& call) {
  Key list;
  if (!call.Open(call.arg(1), Type::kList, &list)) return;
  if (!list.exists) return call.reply.Null();
  const std::optional<int64_t> index = call.Integer(2);
  if (!index) return;
  const std::optional<int64_t> place = PlaceOf(list, *index);
  if (!place) return call.reply.Null();
  call.reply.Bulk(call.view.Get(ElementAt(list, *place)).value_or(std::string()));
}

void RunLset(Call& call) {
  Key list;
  if (!call.Open(call.arg(1), Type::kList, &list)) return;
  if (!list.exists) return call.reply.Error("ERR no such key");
  const std::optional<int64_t> index = call.Integer(2);
  if (!index) return;
  const std::optional<int64_t> place = PlaceOf(list, *index);
  if (!place) return call.reply.Error("ERR index out of range");
  call.view.Put(ElementAt(list, *place), call.arg(3));
  call.view.Save(list);
  call.reply.Ok();
}

void DeleteElements(Call& call, const Key& list, int64_t begin, int64_t end) {
  constexpr int64_t kDeletedSingly = 64;
  if (end - begin > kDeletedSingly) {
    return call.view.DeleteRange(ElementAt(list, begin), ElementAt(list, end));
  }
  for (int64_t i = begin; i < end; ++i) call.view.Delete(ElementAt(list, i));
}

void RunLtrim(Call& call) {
  const std::optional<int64_t> from = call.Integer(2);
  if (!from) return;
  const std::optional<int64_t> to = call.Integer(3);
  if (!to) return;
  Key list;
  if (!call.Open(call.arg(1), Type::kList, &list)) return;
  call.reply.Ok();
  if (!list.exists) return;
  const auto [begin, end] = Clamp(*from, *to, Size(list));
  if (begin == end) return call.view.Remove(list);
  const int64_t size = Size(list);
  DeleteElements(call, list, 0, begin);
  DeleteElements(call, list, end, size);
  list.meta.first += begin;
  list.meta.count = static_cast<uint64_t>(end - begin);
  call.view.Save(list);
}

std::vector<std::string> AllElements(Call& call, const Key& list) {
  std::vector<std::string> elements;
  if (!list.exists) return elements;
  for (Walk walk(&call.view, ElementPrefix(list.meta.id)); walk.Valid(); walk.Next()) {
    elements.emplace_back(walk.value());
  }
  return elements;
}

void RunLinsert(Call& call) {
  const bool before = call.Is(2, "before");
  if (!before && !call.Is(2, "after")) return call.SyntaxError();
  Key list;
  if (!call.Open(call.arg(1), Type::kList, &list)) return;
  if (!list.exists) return call.reply.Integer(0);
  const std::vector<std::string> elements = AllElements(call, list);
  const auto pivot = std::find(elements.begin(), elements.end(), call.arg(3));
  if (pivot == elements.end()) return call.reply.Integer(-1);
  const int64_t place = pivot - elements.begin() + (before ? 0 : 1);
  const int64_t size = Size(list);
  // What lies on the shorter side moves by one.
  if (place < size / 2) {
    --list.meta.first;
    for (int64_t i = 0; i < place; ++i) {
      call.view.Put(ElementAt(list, i), elements[static_cast<size_t>(i)]);
    }
  } else {
    for (int64_t i = size; i > place; --i) {
      call.view.Put(ElementAt(list, i), elements[static_cast<size_t>(i - 1)]);
    }
  }
  ++list.meta.count;
  call.view.Put(ElementAt(list, place), call.arg(4));
  call.view.Save(list);
  call.reply.Integer(Size(list));
}

void RunLrem(Call& call) {
  const std::optional<int64_t> wanted = call.Integer(2);
  if (!wanted) return;
  Key list;
  if (!call.Open(call.arg(1), Type::kList, &list)) return;
  const std::vector<std::string> elements = AllElements(call, list);
  std::vector<size_t> matches;
  for (size_t i = 0; i < elements.size(); ++i) {
    if (elements[i] == call.arg(3)) matches.push_back(i);
  }
  const uint64_t limit = *wanted == 0  ? UINT64_MAX
                         : *wanted < 0 ? uint64_t{0} - static_cast<uint64_t>(*wanted)
                                       : static_cast<uint64_t>(*wanted);
  if (matches.size() > limit) {
    if (*wanted > 0) {
      matches.resize(limit);
    } else {
      matches.erase(matches.begin(), matches.end() - static_cast<ptrdiff_t>(limit));
    }
  }
  if (matches.empty()) return call.reply.Integer(0);
  // What lies between the first match and the nearer end of the list moves up.
  std::vector<std::string> kept;
  size_t next = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    if (next < matches.size() && matches[next] == i) {
      ++next;
    } else {
      kept.push_back(elements[i]);
    }
  }
  const auto removed = static_cast<int64_t>(matches.size());
  const auto first = static_cast<int64_t>(matches.front());
  const auto last = static_cast<int64_t>(matches.back());
  const int64_t size = Size(list);
  if (size - first <= last + 1) {
    for (int64_t i = first; i < size - removed; ++i) {
      call.view.Put(ElementAt(list, i), kept[static_cast<size_t>(i)]);
    }
    for (int64_t i = size - removed; i < size; ++i) call.view.Delete(ElementAt(list, i));
  } else {
    for (int64_t i = 0; i < removed; ++i) call.view.Delete(ElementAt(list, i));
    for (int64_t i = removed; i <= last; ++i) {
      call.view.Put(ElementAt(list, i), kept[static_cast<size_t>(i - removed)]);
    }
    list.meta.first += removed;
  }
  list.meta.count -= matches.size();
  call.view.Save(list);
  call.reply.Integer(removed);
}

struct PositionOptions {
  int64_t rank = 1;
  std::optional<int64_t> count{};
  int64_t length_max = 0;

  bool Parse(Call& call) {
    for (size_t i = 3; i < call.count(); i += 2) {
      if (i + 1 >= call.count()) return call.SyntaxError(), false;
      const bool is_rank = call.Is(i, "rank");
      const bool is_count = call.Is(i, "count");
      if (!is_rank && !is_count && !call.Is(i, "maxlen")) return call.SyntaxError(), false;
      const std::optional<int64_t> number = call.Integer(i + 1);
      if (!number) return false;
      if (is_rank) {
        rank = *number;
        if (rank == 0) {
          call.reply.Error(
              "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... "
              "or use negative to start from the end of the list");
          return false;
        }
        if (rank == INT64_MIN) {
          call.reply.Error(
              "ERR value is out of range, value must between -9223372036854775807 and "
              "9223372036854775807");
          return false;
        }
      } else if (*number < 0) {
        call.reply.Error(is_count ? "ERR COUNT can't be negative" : "ERR MAXLEN can't be negative");
        return false;
      } else {
        if (is_count) {
          count = number;
        } else {
          length_max = *number;
        }
      }
    }
    return true;
  }
};

void RunLpos(Call& call) {
  PositionOptions options;
  if (!options.Parse(call)) return;
  Key list;
  if (!call.Open(call.arg(1), Type::kList, &list)) return;
  const std::vector<std::string> elements = AllElements(call, list);
  const auto size = static_cast<int64_t>(elements.size());
  int64_t to_skip = std::abs(options.rank) - 1;
  std::vector<int64_t> found;
  const int64_t wanted = options.count ? (*options.count == 0 ? INT64_MAX : *options.count) : 1;
  for (int64_t i = 0; i < size && static_cast<int64_t>(found.size()) < wanted; ++i) {
    if (options.length_max != 0 && i >= options.length_max) break;
    const int64_t place = options.rank > 0 ? i : size - 1 - i;
    if (elements[static_cast<size_t>(place)] != call.arg(2)) continue;
    if (to_skip-- > 0) continue;
    found.push_back(place);
  }
  if (!options.count) return found.empty() ? call.reply.Null() : call.reply.Integer(found[0]);
  call.reply.Array(found.size());
  for (const int64_t place : found) call.reply.Integer(place);
}

std::optional<End> EndOf(Call& call, size_t index) {
  if (call.Is(index, "left")) return End::kLeft;
  if (call.Is(index, "right")) return End::kRight;
  call.SyntaxError();
  return std::nullopt;
}

/// Moves an element and replies with it. False: the source is absent, and nothing was replied.
bool Move(Call& call, End from, End to) {
  Key source;
  if (!call.Open(call.arg(1), Type::kList, &source)) return true;
  if (!source.exists) return false;
  if (call.arg(1) == call.arg(2)) {
    const std::string value = PopElement(call, &source, from);
    PushElement(call, &source, to, value);
    call.view.Save(source);
    call.reply.Bulk(value);
    return true;
  }
  Key target;
  if (!call.Open(call.arg(2), Type::kList, &target)) return true;
  const std::string value = PopElement(call, &source, from);
  PushElement(call, &target, to, value);
  call.view.Save(source);
  call.view.Save(target);
  call.reply.Bulk(value);
  return true;
}

void RunLmove(Call& call) {
  const std::optional<End> from = EndOf(call, 3);
  if (!from) return;
  const std::optional<End> to = EndOf(call, 4);
  if (to && !Move(call, *from, *to)) call.reply.Null();
}
void RunRpoplpush(Call& call) {
  if (!Move(call, End::kRight, End::kLeft)) call.reply.Null();
}

void BlockingPop(Call& call, End end) {
  std::optional<Wait> wait = ParseWait(call, call.arg(call.count() - 1));
  if (!wait) return;
  for (size_t i = 1; i + 1 < call.count(); ++i) {
    Key list;
    if (!call.Open(call.arg(i), Type::kList, &list)) return;
    if (!list.exists) {
      wait->keys.emplace_back(call.arg(i));
      continue;
    }
    call.reply.Array(2);
    call.reply.Bulk(call.arg(i));
    call.reply.Bulk(PopElement(call, &list, end));
    return call.view.Save(list);
  }
  call.wait = std::move(wait);
}
void RunBlpop(Call& call) { BlockingPop(call, End::kLeft); }
void RunBrpop(Call& call) { BlockingPop(call, End::kRight); }

void BlockingMove(Call& call, End from, End to, size_t timeout) {
  std::optional<Wait> wait = ParseWait(call, call.arg(timeout));
  if (!wait || Move(call, from, to)) return;
  wait->keys.emplace_back(call.arg(1));
  wait->null_is_array = false;
  call.wait = std::move(wait);
}
void RunBlmove(Call& call) {
  const std::optional<End> from = EndOf(call, 3);
  if (!from) return;
  if (const std::optional<End> to = EndOf(call, 4)) BlockingMove(call, *from, *to, 5);
}
void RunBrpoplpush(Call& call) { BlockingMove(call, End::kRight, End::kLeft, 3); }

/// LMPOP and, with a timeout before the number of keys, BLMPOP.
void PopFromFirst(Call& call, size_t numkeys_index, std::optional<Wait> wait) {
  const std::optional<int64_t> numkeys = ParseInteger(call.arg(numkeys_index));
  if (!numkeys || *numkeys <= 0) return call.reply.Error("ERR numkeys should be greater than 0");
  const size_t first = numkeys_index + 1;
  if (static_cast<uint64_t>(*numkeys) > call.count() - first) return call.SyntaxError();
  const size_t where = first + static_cast<size_t>(*numkeys);
  if (where >= call.count()) return call.SyntaxError();
  const std::optional<End> end = EndOf(call, where);
  if (!end) return;
  int64_t count = 1;
  if (where + 1 < call.count()) {
    if (where + 3 != call.count() || !call.Is(where + 1, "count")) return call.SyntaxError();
    const std::optional<int64_t> number = ParseInteger(call.arg(where + 2));
    if (!number || *number <= 0) return call.reply.Error("ERR count should be greater than 0");
    count = *number;
  }
  for (size_t i = first; i < where; ++i) {
    Key list;
    if (!call.Open(call.arg(i), Type::kList, &list)) return;
    if (wait) wait->keys.emplace_back(call.arg(i));
    if (!list.exists) continue;
    call.reply.Array(2);
    call.reply.Bulk(call.arg(i));
    return ReplyPopped(call, &list, *end, static_cast<uint64_t>(count));
  }
  if (!wait) return call.reply.NullArray();
  call.wait = std::move(wait);
}
void RunLmpop(Call& call) { PopFromFirst(call, 1, std::nullopt); }
void RunBlmpop(Call& call) {
  if (std::optional<Wait> wait = ParseWait(call, call.arg(1))) {
    PopFromFirst(call, 2, std::move(wait));
  }
}

constexpr Command kListCommands[] = {
    {"lpush", "key element [element ...]", -3, kWrite | kFast, 1, 1, 1, Group::kList,
     "Adds elements at the head of a list.", RunLpush},
    {"rpush", "key element [element ...]", -3, kWrite | kFast, 1, 1, 1, Group::kList,
     "Adds elements at the tail of a list.", RunRpush},
    {"lpushx", "key element [element ...]", -3, kWrite | kFast, 1, 1, 1, Group::kList,
     "Adds elements at the head of a list only when it is there.", RunLpushx},
    {"rpushx", "key element [element ...]", -3, kWrite | kFast, 1, 1, 1, Group::kList,
     "Adds elements at the tail of a list only when it is there.", RunRpushx},
    {"lpop", "key [count]", -2, kWrite | kFast, 1, 1, 1, Group::kList,
     "Removes and returns elements from the head of a list.", RunLpop},
    {"rpop", "key [count]", -2, kWrite | kFast, 1, 1, 1, Group::kList,
     "Removes and returns elements from the tail of a list.", RunRpop},
    {"llen", "key", 2, kReadOnly | kFast | kSingleRead, 1, 1, 1, Group::kList,
     "Returns the length of a list.", RunLlen},
    {"lrange", "key start stop", 4, kReadOnly, 1, 1, 1, Group::kList,
     "Returns a range of the elements of a list.", RunLrange},
    {"lindex", "key index", 3, kReadOnly, 1, 1, 1, Group::kList,
     "Returns the element at an index of a list.", RunLindex},
    {"lset", "key index element", 4, kWrite, 1, 1, 1, Group::kList,
     "Sets the element at an index of a list.", RunLset},
    {"ltrim", "key start stop", 4, kWrite, 1, 1, 1, Group::kList,
     "Removes the elements outside a range of a list.", RunLtrim},
    {"linsert", "key BEFORE|AFTER pivot element", 5, kWrite, 1, 1, 1, Group::kList,
     "Inserts an element before or after another one.", RunLinsert},
    {"lrem", "key count element", 4, kWrite, 1, 1, 1, Group::kList,
     "Removes elements that equal a value.", RunLrem},
    {"lpos", "key element [RANK rank] [COUNT num-matches] [MAXLEN len]", -3, kReadOnly, 1, 1, 1,
     Group::kList, "Returns the index of elements that equal a value.", RunLpos},
    {"lmove", "source destination LEFT|RIGHT LEFT|RIGHT", 5, kWrite, 1, 2, 1, Group::kList,
     "Moves an element from one list to another.", RunLmove},
    {"rpoplpush", "source destination", 3, kWrite, 1, 2, 1, Group::kList,
     "Moves the last element of a list to the head of another.", RunRpoplpush},
    {"lmpop", "numkeys key [key ...] LEFT|RIGHT [COUNT count]", -4, kWrite | kMovableKeys, 0, 0, 0,
     Group::kList, "Removes and returns elements of the first list that is there.", RunLmpop},
    {"blpop", "key [key ...] timeout", -3, kWrite | kNoScript | kBlocking, 1, -2, 1, Group::kList,
     "LPOP of the first list that is there. Waits until there is one.", RunBlpop},
    {"brpop", "key [key ...] timeout", -3, kWrite | kNoScript | kBlocking, 1, -2, 1, Group::kList,
     "RPOP of the first list that is there. Waits until there is one.", RunBrpop},
    {"blmove", "source destination LEFT|RIGHT LEFT|RIGHT timeout", 6,
     kWrite | kNoScript | kBlocking, 1, 2, 1, Group::kList,
     "LMOVE that waits until the source is there.", RunBlmove},
    {"brpoplpush", "source destination timeout", 4, kWrite | kNoScript | kBlocking, 1, 2, 1,
     Group::kList, "RPOPLPUSH that waits until the source is there.", RunBrpoplpush},
    {"blmpop", "timeout numkeys key [key ...] LEFT|RIGHT [COUNT count]", -5,
     kWrite | kNoScript | kBlocking | kMovableKeys, 0, 0, 0, Group::kList,
     "LMPOP that waits until one of the lists is there.", RunBlmpop},
};

}  // namespace

std::span<const Command> ListCommands() { return kListCommands; }

}  // namespace basalt::server
