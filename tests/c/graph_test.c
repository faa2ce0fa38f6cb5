/* Graphs and corpora through the C API. */

#include "check.h"

void TestGraph(void);
void TestGraphNullArguments(void);

static basalt_edge_name Edge(const char* from, const char* type, const char* to) {
  const basalt_edge_name edge = {from, strlen(from), type, strlen(type), to, strlen(to), NULL, 0};
  return edge;
}

/* Whether an answer has a part; frees it. */
static bool Has(char* json, const char* part) {
  const bool has = json != NULL && strstr(json, part) != NULL;
  if (!has) fprintf(stderr, "%s has no %s\n", json == NULL ? "NULL" : json, part);
  basalt_free(json);
  return has;
}

static void TestContent(basalt_graph* graph) {
  const char* content =
      "{ \"labels\": [\"Person\"], \"properties\": {\"born\": 1815, \"height\": 1.5e0,"
      " \"name\": \"\\u00e9\\ud83d\\ude00\\n\", \"list\": [true, null, []], \"raw\": {\"$hex\": "
      "\"00ff\"}, \"at\": {\"$time_ms\": -1}, \"far\": {\"$double\": \"inf\"}}}";
  char* json;
  OK(basalt_graph_put_node(graph, NULL, S("ada"), S(content), &error));
  OK(basalt_graph_get_node(graph, NULL, S("ada"), &json, &error));
  CHECK(json != NULL);
  CHECK(strcmp(json,
               "{\"id\":\"ada\",\"labels\":[\"Person\"],\"properties\":{\"at\":{\"$time_ms\":-1},"
               "\"born\":1815,\"far\":{\"$double\":\"inf\"},\"height\":1.5,\"list\":[true,null,[]],"
               "\"name\":\"\xC3\xA9\xF0\x9F\x98\x80\\u000a\",\"raw\":{\"$hex\":\"00ff\"}}}") == 0);
  basalt_free(json);
  OK(basalt_graph_get_node(graph, NULL, S("absent"), &json, &error));
  CHECK(json == NULL);
  const char* refused[] = {"{",
                           "[]",
                           "{\"labels\":1}",
                           "{\"name\":1}",
                           "{} x",
                           "{\"properties\":{\"a\":{}}}",
                           "{\"properties\":{\"a\":{\"$hex\":\"0\"}}}",
                           "{\"properties\":{\"a\":\"\\ud800\"}}",
                           "{\"properties\":{\"a\":01}}",
                           "{\"properties\":{\"a\":[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]}}"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i) {
    FAILS(BASALT_INVALID_ARGUMENT,
          basalt_graph_put_node(graph, NULL, S("x"), S(refused[i]), &error));
  }
  OK(basalt_graph_get_node(graph, NULL, S("x"), &json, &error));
  CHECK(json == NULL);
}

static void TestEdges(basalt_store* store, basalt_graph* graph) {
  char* json;
  bool found;
  OK(basalt_graph_put_node(graph, NULL, S("engine"), NULL, 0, &error));
  const basalt_edge_name wrote = Edge("ada", "wrote about", "engine");
  basalt_edge_name again = wrote;
  again.discriminator = "2";
  again.discriminator_size = 1;
  OK(basalt_graph_put_edge(graph, NULL, &wrote, S("{\"weight\":2,\"valid_from_ms\":5}"), &error));
  OK(basalt_graph_put_edge(graph, NULL, &again, NULL, 0, &error));
  const basalt_edge_name nowhere = Edge("ada", "t", "nowhere");
  FAILS(BASALT_NOT_FOUND, basalt_graph_put_edge(graph, NULL, &nowhere, NULL, 0, &error));
  OK(basalt_graph_get_edge(graph, NULL, &wrote, &json, &error));
  CHECK(Has(json, "{\"weight\":2.0,\"valid_from_ms\":5,\"properties\":{}}"));
  OK(basalt_graph_get_edge(graph, NULL, &nowhere, &json, &error));
  CHECK(json == NULL);

  const void* types[] = {"wrote about"};
  const size_t type_sizes[] = {11};
  basalt_edge_filter filter = {.struct_size = sizeof filter,
                               .types = types,
                               .type_sizes = type_sizes,
                               .type_count = 1,
                               .direction = BASALT_EDGES_IN};
  OK(basalt_graph_neighbors(graph, NULL, S("engine"), &filter, 1, NULL, &json, &error));
  CHECK(strstr(json,
               "[{\"id\":\"ada\",\"type\":\"wrote about\",\"direction\":\"in\",\"weight\":2.0}]"));
  char next[200];
  CHECK(sscanf(strstr(json, "\"next\":") + 7, "\"%199[0-9a-f]\"", next) == 1);
  basalt_free(json);
  OK(basalt_graph_neighbors(graph, NULL, S("engine"), &filter, 9, next, &json, &error));
  CHECK(strstr(json, "\"discriminator\":\"2\"") && Has(json, "\"next\":\"\""));
  FAILS(BASALT_INVALID_ARGUMENT,
        basalt_graph_neighbors(graph, NULL, S("engine"), &filter, 9, "zz", &json, &error));
  OK(basalt_graph_paths(graph, S("ada"), S("engine"), 2, 1, NULL, &json, &error));
  CHECK(Has(json, "\"nodes\":[\"ada\",\"engine\"]"));
  OK(basalt_graph_paths(graph, S("ada"), S("absent"), 2, 1, NULL, &json, &error));
  CHECK(Has(json, "{\"paths\":[],\"truncated\":false}"));
  const void* ids[] = {"ada", "absent"};
  const size_t id_sizes[] = {3, 6};
  OK(basalt_graph_page_rank(graph, 2, ids, id_sizes, NULL, 1, &json, &error));
  CHECK(Has(json, "{\"nodes\":[{\"id\":\"ada\",\"score\":"));

  basalt_transaction* tx;
  OK(basalt_begin(store, NULL, &tx, &error));
  OK(basalt_graph_remove_edge(graph, tx, &again, &found, &error));
  CHECK(found);
  OK(basalt_graph_remove_node(graph, tx, S("engine"), &found, &error));
  CHECK(found);
  OK(basalt_graph_get_node(graph, tx, S("engine"), &json, &error));
  CHECK(json == NULL);
  OK(basalt_graph_get_node(graph, NULL, S("engine"), &json, &error));
  CHECK(Has(json, "engine"));
  OK(basalt_transaction_commit(tx, NULL, NULL, &error));
  basalt_transaction_free(tx);
  OK(basalt_graph_finish_removals(graph, &error));
  OK(basalt_graph_stats(graph, &json, &error));
  CHECK(strstr(json, "\"nodes\":1,") && Has(json, "\"edges\":0,"));
  OK(basalt_graph_remove_edge(graph, NULL, &wrote, &found, &error));
  CHECK(!found);
}

static void TestCorpus(basalt_store* store) {
  basalt_corpus* corpus;
  char* json;
  bool found;
  const basalt_corpus_options options = {
      .struct_size = sizeof options, .name = "texts", .name_size = 5, .must_exist = true};
  FAILS(BASALT_NOT_FOUND, basalt_corpus_open(store, &options, &corpus, &error));
  OK(basalt_corpus_open(store, NULL, &corpus, &error));
  const char* text = "Ada Lovelace wrote about the Analytical Engine.";
  const basalt_document document = {S("notes/ada"), S("Ada"), S(text)};
  basalt_ingested ingested;
  OK(basalt_corpus_ingest(corpus, NULL, &document, &ingested, &error));
  CHECK(ingested.passages == 1);
  const basalt_retrieve_options retrieve = {
      .struct_size = sizeof retrieve, .k = 3, .explain = true};
  OK(basalt_corpus_retrieve(corpus, S("analytical"), &retrieve, &json, &error));
  CHECK(strstr(json, "\"source\":\"notes/ada\"") && strstr(json, "\"bm25\":"));
  CHECK(Has(json, "\"begin\":0,\"end\":47"));
  basalt_transaction* tx;
  OK(basalt_begin(store, NULL, &tx, &error));
  OK(basalt_corpus_forget(corpus, tx, S("notes/ada"), &found, &error));
  CHECK(found);
  OK(basalt_transaction_commit(tx, NULL, NULL, &error));
  basalt_transaction_free(tx);
  OK(basalt_corpus_finish(corpus, &error));
  OK(basalt_corpus_retrieve(corpus, S("analytical"), NULL, &json, &error));
  CHECK(Has(json, "{\"passages\":[],\"tokens\":0,\"truncated\":false}"));
  OK(basalt_corpus_forget(corpus, NULL, S("notes/ada"), NULL, &error));
  basalt_corpus_free(corpus);
}

/* A graph may outlive the handle of its store, which closes the store. */
static void TestLifetime(void) {
  basalt_store* store;
  basalt_graph* graph;
  char* json;
  for (int memtable = 0; memtable < 2; ++memtable) {
    if (memtable) {
      OK(basalt_memtable_create(NULL, &store, &error));
    } else {
      OK(basalt_open(":memory:", NULL, &store, &error));
    }
    OK(basalt_graph_open(store, NULL, &graph, &error));
    OK(basalt_graph_put_node(graph, NULL, S("a"), NULL, 0, &error));
    basalt_store_free(store);
    FAILS(BASALT_FAILED_PRECONDITION, basalt_graph_get_node(graph, NULL, S("a"), &json, &error));
    FAILS(BASALT_FAILED_PRECONDITION, basalt_graph_put_node(graph, NULL, S("b"), NULL, 0, &error));
    basalt_graph_free(graph);
  }
}

void TestGraph(void) {
  basalt_store* store;
  basalt_graph* graph;
  OK(basalt_open(":memory:", NULL, &store, &error));
  const basalt_graph_options options = {.struct_size = sizeof options, .must_exist = true};
  FAILS(BASALT_NOT_FOUND, basalt_graph_open(store, &options, &graph, &error));
  OK(basalt_graph_open(store, NULL, &graph, &error));
  TestContent(graph);
  TestEdges(store, graph);
  TestCorpus(store);
  basalt_graph_free(graph);
  basalt_store_free(store);
  TestLifetime();
}

void TestGraphNullArguments(void) {
  basalt_store* store;
  basalt_graph *graph, *none;
  basalt_corpus *corpus, *no_corpus;
  char* json;
  OK(basalt_memtable_create(NULL, &store, &error));
  OK(basalt_graph_open(store, NULL, &graph, &error));
  OK(basalt_corpus_open(store, NULL, &corpus, &error));
#define NULLS(call) FAILS(BASALT_INVALID_ARGUMENT, call)
  const basalt_edge_name edge = {NULL, 1, S("t"), S("b"), NULL, 0};
  const basalt_document document = {NULL, 1, NULL, 0, NULL, 0};
  NULLS(basalt_graph_open(NULL, NULL, &none, &error));
  NULLS(basalt_graph_open(store, NULL, NULL, &error));
  NULLS(basalt_graph_put_node(NULL, NULL, S("a"), NULL, 0, &error));
  NULLS(basalt_graph_put_node(graph, NULL, NULL, 1, NULL, 0, &error));
  NULLS(basalt_graph_put_node(graph, NULL, S("a"), NULL, 1, &error));
  NULLS(basalt_graph_remove_node(NULL, NULL, S("a"), NULL, &error));
  NULLS(basalt_graph_remove_node(graph, NULL, NULL, 1, NULL, &error));
  NULLS(basalt_graph_put_edge(graph, NULL, NULL, NULL, 0, &error));
  NULLS(basalt_graph_put_edge(graph, NULL, &edge, NULL, 0, &error));
  NULLS(basalt_graph_remove_edge(graph, NULL, &edge, NULL, &error));
  NULLS(basalt_graph_finish_removals(NULL, &error));
  NULLS(basalt_graph_get_node(graph, NULL, S("a"), NULL, &error));
  NULLS(basalt_graph_get_node(NULL, NULL, S("a"), &json, &error));
  NULLS(basalt_graph_get_edge(graph, NULL, NULL, &json, &error));
  NULLS(basalt_graph_neighbors(graph, NULL, NULL, 1, NULL, 1, NULL, &json, &error));
  NULLS(basalt_graph_neighbors(graph, NULL, S("a"), NULL, 1, NULL, NULL, &error));
  NULLS(basalt_graph_paths(graph, NULL, 1, S("a"), 1, 1, NULL, &json, &error));
  NULLS(basalt_graph_page_rank(graph, 1, NULL, NULL, NULL, 1, &json, &error));
  NULLS(basalt_graph_stats(graph, NULL, &error));
  NULLS(basalt_corpus_open(NULL, NULL, &no_corpus, &error));
  NULLS(basalt_corpus_open(store, NULL, NULL, &error));
  NULLS(basalt_corpus_ingest(corpus, NULL, NULL, NULL, &error));
  NULLS(basalt_corpus_ingest(corpus, NULL, &document, NULL, &error));
  NULLS(basalt_corpus_forget(corpus, NULL, NULL, 1, NULL, &error));
  NULLS(basalt_corpus_finish(NULL, &error));
  NULLS(basalt_corpus_retrieve(corpus, NULL, 1, NULL, &json, &error));
  NULLS(basalt_corpus_retrieve(corpus, S("q"), NULL, NULL, &error));
  const basalt_graph_options graph_options = {.struct_size = 1};
  const basalt_corpus_options corpus_options = {.struct_size = 1};
  const basalt_retrieve_options retrieve = {.struct_size = 1};
  const basalt_edge_filter filter = {.struct_size = sizeof filter, .direction = 3};
  const basalt_edge_filter no_types = {.struct_size = sizeof no_types, .type_count = 1};
  NULLS(basalt_graph_open(store, &graph_options, &none, &error));
  NULLS(basalt_corpus_open(store, &corpus_options, &no_corpus, &error));
  NULLS(basalt_corpus_retrieve(corpus, S("q"), &retrieve, &json, &error));
  NULLS(basalt_graph_neighbors(graph, NULL, S("a"), &filter, 1, NULL, &json, &error));
  NULLS(basalt_graph_neighbors(graph, NULL, S("a"), &no_types, 1, NULL, &json, &error));
#undef NULLS
  basalt_graph_free(graph);
  basalt_corpus_free(corpus);
  basalt_store_free(store);
  basalt_graph_free(NULL);
  basalt_corpus_free(NULL);
}
