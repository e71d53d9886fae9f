/* Answers by ticket: those of vpps_forward(), in any order, between batches of vpps_fb(), of graphs
 * that are gone; and what is refused. */
#include "host.h"

enum { ANSWERS = 12 };

/* Asks for the product, node 2, and its sum, node 3, of a graph that is destroyed at once. */
static uint64_t ask(Model m, float x0, float x1) {
  const uint32_t nodes[] = {3, 2};
  uint64_t ticket = 0;
  vpps_graph *graph;
  Loss l;
  record_loss(&l, m.w, x0, x1);
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
  CHECK(vpps_infer(graph, &l.words, nodes, 2, &ticket) == VPPS_OK);
  vpps_graph_destroy(graph);
  return ticket;
}

static void is(Model m, uint64_t ticket, float a, float b) {
  float v[3] = {0};
  CHECK(vpps_infer_result(m.engine, ticket, v, 3) == VPPS_OK);
  CHECK(v[0] == a + b && v[1] == a && v[2] == b);
}

static void in_any_order(Model m) {
  uint64_t tickets[ANSWERS];
  for (int k = 0; k < ANSWERS; k++)
    tickets[k] = ask(m, (float)k, 3);
  for (int k = 0; k < ANSWERS; k++) {
    const int n = 5 * k % ANSWERS;
    is(m, tickets[n], (float)n, 6);
  }
}

/* SGD takes 0.1 of each x off w, whose sum of products is the loss. */
static void between_batches(Model m) {
  vpps_handle *handle;
  vpps_graph *graph;
  Loss l;
  uint64_t tickets[ANSWERS];
  float loss;
  CHECK(vpps_handle_create(m.engine, &m.w, 1, NULL, &handle) == VPPS_OK);
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
  for (int k = 0; k < ANSWERS; k++) {
    tickets[k] = ask(m, 1, 0);
    record_loss(&l, m.w, 1, 0);
    l.words.dim_count = k == 0 ? 2 : 0;
    CHECK(vpps_fb(handle, graph, &l.words, 3, NULL) == VPPS_OK);
    CHECK(vpps_graph_truncate(graph, 0) == VPPS_OK);
  }
  float w = 1;
  for (int k = 0; k < ANSWERS; k++, w -= 0.1f) {
    float v[3];
    CHECK(vpps_infer_result(m.engine, tickets[k], v, 3) == VPPS_OK);
    CHECK(v[0] - w < 1e-5f && w - v[0] < 1e-5f && v[0] == v[1] && v[2] == 0);
  }
  CHECK(vpps_sync_latest_loss(handle, &loss) == VPPS_OK);
  const float values[] = {1, 2};
  CHECK(vpps_parameter_write(m.engine, m.w, VPPS_VALUES, 0, 2, values) == VPPS_OK);
  vpps_graph_destroy(graph);
  vpps_handle_destroy(handle);
}

static void refused(Model m) {
  uint32_t node = 3;
  uint64_t ticket = 0;
  float v[3];
  vpps_graph *graph;
  Loss l;
  record_loss(&l, m.w, 1, 1);
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
  FAILS(VPPS_ERR_ARGUMENT, "no node", vpps_infer(graph, &l.words, NULL, 0, &ticket));
  FAILS(VPPS_ERR_ARGUMENT, "nodes is NULL", vpps_infer(graph, &l.words, NULL, 1, &ticket));
  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_infer(graph, &l.words, &node, 1, NULL));
  node = 4;
  FAILS(VPPS_ERR_ARGUMENT, "node 4 of a graph of 4",
        vpps_infer(graph, &l.words, &node, 1, &ticket));
  CHECK(ticket == 0);
  node = 3;
  CHECK(vpps_infer(graph, &l.words, &node, 1, &ticket) == VPPS_OK);
  FAILS(VPPS_ERR_ARGUMENT, "1 elements, room for 3", vpps_infer_result(m.engine, ticket, v, 3));
  CHECK(vpps_infer_result(m.engine, ticket, v, 1) == VPPS_OK && v[0] == 3);
  FAILS(VPPS_ERR_ARGUMENT, "before", vpps_infer_result(m.engine, ticket, v, 1));
  FAILS(VPPS_ERR_ARGUMENT, "before", vpps_infer_drop(m.engine, ticket));
  FAILS(VPPS_ERR_ARGUMENT, "this engine has given none",
        vpps_infer_result(m.engine, ticket + 1, v, 1));
  CHECK(vpps_infer(graph, NULL, &node, 1, &ticket) == VPPS_OK);
  CHECK(vpps_infer_drop(m.engine, ticket) == VPPS_OK);
  vpps_graph_destroy(graph);
}

int main(void) {
  Model m = open_model();
  in_any_order(m);
  between_batches(m);
  refused(m);
  all_is_well(m);
  const uint64_t ticket = ask(m, 1, 1);
  float v[3];
  vpps_engine_close(m.engine);
  CHECK(vpps_infer_result(m.engine, ticket, v, 3) != VPPS_OK);
  return 0;
}
