#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>

#include "basalt/c.h"
#include "basalt/status.h"
#include "base/test_memory.h"
#include "base/test_memory_operators.h"
#include "c_api/call.h"

namespace basalt::c_api {
namespace {

/// The answer of a C function as a Status, for EachAllocation.
template <class Function>
Status AsStatus(const Function& function) {
  basalt_error error;
  if (function(&error) == BASALT_OK) return {};
  return Status(static_cast<StatusCode>(error.code), error.message);
}

TEST(CApi, EveryFailedAllocationIsAnErrorOfTheCall) {
  base::EachAllocation each;
  while (each.Next()) {
    SCOPED_TRACE(each.ToString());
    basalt_store* store = nullptr;
    basalt_batch* batch = nullptr;
    basalt_iterator* iterator = nullptr;
    basalt_snapshot* snapshot = nullptr;
    basalt_transaction* transaction = nullptr;
    basalt_value value;
    char* json = nullptr;
    basalt_keyspace_info* infos = nullptr;
    size_t count = 0;
    uint32_t keyspace = 0;
    basalt_memtable_options options{};
    options.struct_size = sizeof options;
    options.memory_budget = 1 << 20;
    options.no_background_merges = true;
    const std::string large(5000, 'x');
    const Status status = each.Call([&] {
      return AsStatus([&](basalt_error* error) {
        int code = basalt_memtable_create(&options, &store, error);
        if (code == 0) code = basalt_put(store, "a", 1, "1", 1, nullptr, nullptr, error);
        if (code == 0) code = basalt_batch_create(&batch, error);
        if (code == 0)
          code = basalt_batch_put(batch, "b", 1, large.data(), large.size(), nullptr, error);
        if (code == 0) code = basalt_write(store, batch, nullptr, nullptr, error);
        if (code == 0) code = basalt_get(store, "b", 1, nullptr, &value, error);
        if (code == 0) basalt_value_release(&value);
        if (code == 0) code = basalt_snapshot_create(store, &snapshot, error);
        if (code == 0) code = basalt_iterator_create(store, nullptr, &iterator, error);
        if (code == 0 && !basalt_iterator_seek_to_first(iterator))
          code = basalt_iterator_status(iterator, error);
        if (code == 0) code = basalt_begin(store, nullptr, &transaction, error);
        if (code == 0) code = basalt_transaction_put(transaction, "c", 1, "2", 1, nullptr, error);
        if (code == 0) code = basalt_transaction_commit(transaction, nullptr, nullptr, error);
        if (code == 0) code = basalt_keyspace_create(store, "n", 1, nullptr, &keyspace, error);
        if (code == 0) code = basalt_keyspace_list(store, &infos, &count, error);
        if (code == 0) code = basalt_stats(store, &json, error);
        return code;
      });
    });
    if (status.ok()) {
      EXPECT_EQ(count, 2U);
      EXPECT_EQ(json[0], '{');
    }
    basalt_free(json);
    basalt_free(infos);
    basalt_transaction_free(transaction);
    basalt_iterator_free(iterator);
    basalt_snapshot_free(snapshot);
    basalt_batch_free(batch);
    basalt_store_free(store);
  }
}

TEST(CApi, EveryFailedAllocationOfAGraphCallIsAnErrorOfTheCall) {
  basalt_memtable_options options{};
  options.struct_size = sizeof options;
  options.no_background_merges = true;
  base::EachAllocation each;
  while (each.Next()) {
    SCOPED_TRACE(each.ToString());
    basalt_store* store = nullptr;
    basalt_graph* graph = nullptr;
    char* json = nullptr;
    char* page = nullptr;
    ASSERT_EQ(basalt_memtable_create(&options, &store, nullptr), BASALT_OK);
    const std::string_view content =
        R"({"labels":["a"],"properties":{"list":[1,"a long text, in memory"]}})";
    const basalt_edge_name edge{.from = "a",
                                .from_size = 1,
                                .type = "t",
                                .type_size = 1,
                                .to = "a",
                                .to_size = 1,
                                .discriminator = nullptr,
                                .discriminator_size = 0};
    const Status status = each.Call([&] {
      return AsStatus([&](basalt_error* error) {
        int code = basalt_graph_open(store, nullptr, &graph, error);
        if (code == 0) {
          code =
              basalt_graph_put_node(graph, nullptr, "a", 1, content.data(), content.size(), error);
        }
        if (code == 0) code = basalt_graph_put_edge(graph, nullptr, &edge, nullptr, 0, error);
        if (code == 0) code = basalt_graph_get_node(graph, nullptr, "a", 1, &json, error);
        if (code == 0) {
          code = basalt_graph_neighbors(graph, nullptr, "a", 1, nullptr, 9, nullptr, &page, error);
        }
        return code;
      });
    });
    if (status.ok()) {
      EXPECT_NE(std::string_view(json).find("in memory"), std::string_view::npos);
      EXPECT_NE(std::string_view(page).find(R"("type":"t")"), std::string_view::npos);
    }
    basalt_free(json);
    basalt_free(page);
    basalt_graph_free(graph);
    basalt_store_free(store);
  }
}

TEST(CApi, ALongMessageIsCutBetweenCharacters) {
  basalt_error error;
  const size_t room = sizeof error.message - 1;
  for (size_t before = room - 4; before <= room; ++before) {
    const std::string message = std::string(before, 'x') + "\xE2\x82\xAC" + std::string(100, 'y');
    EXPECT_EQ(Fail(Status(StatusCode::kBusy, message, SubCode::kLocked), &error), BASALT_BUSY);
    EXPECT_EQ(error.code, BASALT_BUSY);
    EXPECT_EQ(error.sub_code, BASALT_SUB_LOCKED);
    const size_t kept = std::strlen(error.message);
    EXPECT_EQ(std::string_view(error.message, kept), message.substr(0, kept));
    EXPECT_EQ(kept, before + 3 <= room ? room : before);
  }
  EXPECT_EQ(Fail(Status(StatusCode::kBusy, "short"), &error), BASALT_BUSY);
  EXPECT_STREQ(error.message, "short");
  EXPECT_EQ(Fail(Status(StatusCode::kBusy, "short"), nullptr), BASALT_BUSY);
}

TEST(CApi, WhatIsThrownIsAnError) {
  basalt_error error;
  EXPECT_EQ(Call(&error, []() -> Status { throw std::bad_alloc(); }), BASALT_RESOURCE_EXHAUSTED);
  EXPECT_EQ(error.sub_code, BASALT_SUB_MEMORY);
  EXPECT_EQ(Call(&error, []() -> Status { throw std::runtime_error("of a library"); }),
            BASALT_RESOURCE_EXHAUSTED);
  EXPECT_STREQ(error.message, "of a library");
  EXPECT_EQ(Call(&error, []() -> Status { throw 7; }), BASALT_FAILED_PRECONDITION);
}

// The numbers are said to be those of the C++ API.
static_assert(BASALT_OUT_OF_RANGE == static_cast<int>(StatusCode::kOutOfRange));
static_assert(BASALT_TYPE_MISMATCH == static_cast<int>(StatusCode::kTypeMismatch));
static_assert(BASALT_SUB_KEYSPACE == static_cast<int>(SubCode::kKeyspace));
static_assert(BASALT_SUB_PINS == static_cast<int>(SubCode::kPins));

}  // namespace
}  // namespace basalt::c_api
