/* Wrong arguments and wrong graphs: each is a status and one line that says what is wrong, the
 * parameters stay as they are and the next call works. */
#include "host.h"

#include <math.h>

static void of_arguments(Model m) {
  vpps_engine *engine;
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  vpps_trainer_options rule = VPPS_TRAINER_OPTIONS_INIT;
  vpps_statistics statistics = VPPS_STATISTICS_INIT;
  vpps_times times = VPPS_TIMES_INIT;
  vpps_trainer *trainer;
  vpps_handle *handle;
  vpps_graph *graph;
  float v[2], *where;
  uint32_t id, no_id = 77;
  uint64_t count;
  int all;

  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_engine_open(&options, NULL));
  options.device = "abacus";
  FAILS(VPPS_ERR_ARGUMENT, "abacus", vpps_engine_open(&options, &engine));
  options.struct_size = 0;
  FAILS(VPPS_ERR_ARGUMENT, "VPPS_ENGINE_OPTIONS_INIT", vpps_engine_open(&options, &engine));
  options.struct_size = 1 << 20;
  FAILS(VPPS_ERR_ARGUMENT, "struct_size", vpps_engine_open(&options, &engine));
  statistics.struct_size = 0;
  FAILS(VPPS_ERR_ARGUMENT, "VPPS_STATISTICS_INIT", vpps_engine_statistics(m.engine, &statistics));
  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_engine_statistics(m.engine, NULL));
  times.struct_size = 0;
  FAILS(VPPS_ERR_ARGUMENT, "VPPS_TIMES_INIT", vpps_engine_times(m.engine, &times));
  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_clock_table(NULL, NULL, 0, NULL));
  rule.struct_size = 0;
  FAILS(VPPS_ERR_ARGUMENT, "VPPS_TRAINER_OPTIONS_INIT",
        vpps_trainer_create(m.engine, &rule, &m.w, 1, &trainer));
  rule.struct_size = sizeof rule;
  rule.rule = 99;
  FAILS(VPPS_ERR_ARGUMENT, "rule 99", vpps_trainer_create(m.engine, &rule, &m.w, 1, &trainer));
  rule.rule = VPPS_RULE_SGD;
  rule.collection = 99;
  FAILS(VPPS_ERR_ARGUMENT, "collection 99",
        vpps_trainer_create(m.engine, &rule, &m.w, 1, &trainer));
  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_handle_create(m.engine, NULL, 3, NULL, &handle));
  FAILS(VPPS_ERR_ARGUMENT, "parameter 77", vpps_handle_create(m.engine, &no_id, 1, NULL, &handle));

  FAILS(VPPS_ERR_ARGUMENT, "collection 99",
        vpps_parameter_create(m.engine, 99, "/x", &model_dims[1], 0, NULL, &id));
  FAILS(VPPS_ERR_ARGUMENT, "NULL",
        vpps_parameter_create(m.engine, m.collection, "/x", NULL, 0, NULL, &id));
  static const vpps_dim bad[] = {{8, 1, {1}}, {1, 0, {1}},    {1, 2, {1}},
                                 {0, 1, {0}}, {2, 1, {3, 0}}, {3, 1, {1 << 16, 1 << 16, 1 << 16}}};
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
    CHECK(vpps_parameter_create(m.engine, m.collection, "/x", &bad[k], 0, NULL, &id) ==
          VPPS_ERR_ARGUMENT);
  FAILS(VPPS_ERR_ARGUMENT, "of 2", vpps_parameter_read(m.engine, m.w, VPPS_VALUES, 1, 2, v));
  FAILS(VPPS_ERR_ARGUMENT, "too many",
        vpps_parameter_read(m.engine, m.w, VPPS_VALUES, 0, UINT64_MAX, v));
  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_parameter_read(m.engine, m.w, VPPS_VALUES, 0, 2, NULL));
  FAILS(VPPS_ERR_ARGUMENT, "part 5", vpps_parameter_read(m.engine, m.w, (vpps_part)5, 0, 2, v));
  FAILS(VPPS_ERR_ARGUMENT, "parameter 77", vpps_parameter_scale(m.engine, 77, VPPS_VALUES, 2));
  FAILS(VPPS_ERR_ARGUMENT, "parameter 77",
        vpps_parameter_expose(m.engine, 77, VPPS_VALUES, &where));
  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_parameter_touched(m.engine, m.w, NULL, 0, NULL, &all));
  CHECK(vpps_parameter_touched(m.engine, m.w, NULL, 0, &count, &all) == VPPS_OK && count == 0);
  FAILS(VPPS_ERR_ARGUMENT, "weight decay", vpps_collection_create(m.engine, 1.5f, &id));

  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_graph_create(NULL, &graph));
  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_forward(NULL, NULL, 0, 1));
  FAILS(VPPS_ERR_ARGUMENT, "no graph", vpps_forward((vpps_graph *)m.engine, NULL, 0, 1));
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
  vpps_graph_destroy(graph);
  FAILS(VPPS_ERR_ARGUMENT, "no graph", vpps_forward(graph, NULL, 0, 1));
  vpps_graph_destroy(NULL);
  vpps_trainer_destroy(NULL);
  vpps_handle_destroy(NULL);
  vpps_engine_close(NULL);
}

/* One word of a good graph is wrong. */
static void of_graphs(Model m) {
  static const struct {
    int at;
    uint32_t word;
    vpps_status status;
    const char *words;
  } cases[] = {
      {0, NODE(250, 1), VPPS_ERR_GRAPH, "node 0"},
      {0, NODE(PARAMETER, 9), VPPS_ERR_GRAPH, "node 0 (ParameterNode): dim 9 of 2"},
      {0, NODE(PARAMETER, 0), VPPS_ERR_GRAPH, "node 0 (ParameterNode)"},
      {1, 77, VPPS_ERR_GRAPH, "there is no parameter 77"},
      {3, 1, VPPS_ERR_GRAPH, "node 1 (InputNode): input words 1..3 of 2"},
      {3, UINT32_MAX, VPPS_ERR_GRAPH, "node 1 (InputNode)"},
      {5, 7, VPPS_ERR_GRAPH, "node 2 (CwiseMultiply): argument 7"},
      {5, 2, VPPS_ERR_GRAPH, "node 2 (CwiseMultiply): argument 2"},
      {7, NODE(SUM_ELEMENTS, 1), VPPS_ERR_GRAPH, "node 3 (SumElements)"},
  };
  vpps_graph *graph;
  Loss l;
  float v[2];
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    record_loss(&l, m.w, 3, 4);
    l.nodes[cases[k].at] = cases[k].word;
    FAILS(cases[k].status, cases[k].words, vpps_value(graph, &l.words, 3, v, 1));
    FAILS(cases[k].status, cases[k].words, vpps_forward(graph, &l.words, 3, 1));
  }
  record_loss(&l, m.w, 3, 4);
  l.words.node_words = 8;
  FAILS(VPPS_ERR_GRAPH, "node 3", vpps_forward(graph, &l.words, 3, 1));
  l.words.node_words = 9;
  l.words.node_count = 3;
  FAILS(VPPS_ERR_GRAPH, "words behind", vpps_forward(graph, &l.words, 2, 1));
  l.words.node_count = UINT32_MAX;
  FAILS(VPPS_ERR_GRAPH, "at most", vpps_forward(graph, &l.words, 2, 1));
  l.words.node_count = 4;
  l.words.version = 9;
  FAILS(VPPS_ERR_ARGUMENT, "wire format 9", vpps_forward(graph, &l.words, 3, 1));
  l.words.version = VPPS_WIRE_VERSION;
  l.words.inputs = NULL;
  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_forward(graph, &l.words, 3, 1));
  l.words.inputs = l.x;
  l.words.nodes = NULL;
  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_forward(graph, &l.words, 3, 1));
  l.words.nodes = l.nodes;
  l.words.node_words = SIZE_MAX / 8;
  FAILS(VPPS_ERR_ARGUMENT, "too many", vpps_forward(graph, &l.words, 3, 1));
  l.words.node_words = 9;
  FAILS(VPPS_ERR_ARGUMENT, "node 4 of a graph of 4", vpps_forward(graph, &l.words, 4, 1));
  FAILS(VPPS_ERR_ARGUMENT, "1 elements, room for 2", vpps_value(graph, &l.words, 3, v, 2));
  FAILS(VPPS_ERR_ARGUMENT, "scalar", vpps_backward(graph, &l.words, 2, 0));
  FAILS(VPPS_ERR_ARGUMENT, "scalar", vpps_node_gradients(graph, &l.words, 2));
  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_node_gradients(NULL, &l.words, 3));
  /* All of these left the graph empty: its words may still be sent. */
  CHECK(vpps_value(graph, &l.words, 3, v, 1) == VPPS_OK && v[0] == 11);
  FAILS(VPPS_ERR_STATE, "no backward", vpps_gradient(graph, 0, v, 2));
  vpps_graph_destroy(graph);
}

static void of_numbers(Model m) {
  vpps_handle *handle;
  vpps_graph *graph;
  vpps_trainer *trainer;
  Loss l;
  float loss, stale, gradient[2];
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
  CHECK(vpps_handle_create(m.engine, &m.w, 1, NULL, &handle) == VPPS_OK);
  trainer = vpps_handle_trainer(handle);
  CHECK(trainer != NULL);
  FAILS(VPPS_ERR_STATE, "no latest loss", vpps_sync_latest_loss(handle, &loss));
  record_loss(&l, m.w, NAN, 4);
  CHECK(vpps_fb(handle, graph, &l.words, 3, &stale) == VPPS_OK);
  FAILS(VPPS_ERR_NUMERIC,
        "batch 1: its loss is not finite (NaN): the first value that is not finite is that of node "
        "1 (InputNode)",
        vpps_sync_latest_loss(handle, &loss));
  all_is_well(m);
  l.words.node_words = l.words.node_count = 0;
  l.words.dim_count = 0;
  FAILS(VPPS_ERR_NUMERIC, "backward from node 3: its value is not finite",
        vpps_backward(graph, &l.words, 3, 0));
  CHECK(vpps_parameter_read(m.engine, m.w, VPPS_GRADIENT, 0, 2, gradient) == VPPS_OK);
  CHECK(gradient[0] == 0 && gradient[1] == 0);
  gradient[0] = INFINITY;
  CHECK(vpps_parameter_write(m.engine, m.w, VPPS_GRADIENT, 0, 2, gradient) == VPPS_OK);
  FAILS(VPPS_ERR_NUMERIC, "the gradient of parameter \"/w\" is not finite",
        vpps_update(trainer, NULL));
  CHECK(vpps_parameter_scale(m.engine, m.w, VPPS_GRADIENT, 0) == VPPS_OK);
  vpps_handle_destroy(handle);
  vpps_graph_destroy(graph);
}

int main(void) {
  Model m = open_model(), again;
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  of_arguments(m);
  all_is_well(m);
  of_graphs(m);
  all_is_well(m);
  of_numbers(m);
  all_is_well(m);

  /* The same device is the same engine; it lives as long as somebody has it open. */
  options.device = getenv("VPPS_DEVICE");
  again = m;
  CHECK(vpps_engine_open(&options, &again.engine) == VPPS_OK);
  CHECK(again.engine == m.engine);
  vpps_engine_close(again.engine);
  all_is_well(m);
  vpps_engine_close(m.engine);
  vpps_engine_close(m.engine); /* once too often: nothing happens */
  FAILS(VPPS_ERR_ARGUMENT, "no engine", vpps_engine_seed(m.engine, 1));
  all_is_well(open_model());
  return 0;
}
