/* What the programs in this folder share: a tiny model, loss = sum(w * x) with w {2} and an
 * input x, made by hand through the C ABI. Each program exits with 0 if all is well. */
#ifndef HOST_H
#define HOST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vpps.h>

#ifdef LOADED_BY_HAND
#include "by_hand.h"
#endif

/* Operation codes of the wire format. */
enum { INPUT = 1, PARAMETER = 5, TANH = 16, LOG = 20, CWISE_MULTIPLY = 49, SUM_ELEMENTS = 57 };

#define NODE(op, dim) (uint32_t)(op) | (uint32_t)(dim) << 8
#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: not: %s (last error: %s)\n", __FILE__, __LINE__, #condition,         \
              vpps_last_error());                                                                  \
      _exit(1);                                                                                    \
    }                                                                                              \
  } while (0)
/* The call fails with the status, and its text holds the words. */
#define FAILS(status, words, ...)                                                                  \
  do {                                                                                             \
    CHECK((__VA_ARGS__) == (status));                                                              \
    CHECK(strstr(vpps_last_error(), words) != NULL);                                               \
    CHECK(strchr(vpps_last_error(), '\n') == NULL);                                                \
  } while (0)

static const vpps_dim model_dims[] = {{1, 1, {1}}, {1, 1, {2}}};

typedef struct Model {
  vpps_engine *engine;
  uint32_t collection, w;
} Model;

static inline Model open_model(void) {
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  const float values[] = {1, 2};
  Model m;
  options.device = getenv("VPPS_DEVICE"); /* unset: the first GPU, else the CPU */
  CHECK(vpps_engine_open(&options, &m.engine) == VPPS_OK);
  CHECK(vpps_collection_create(m.engine, 0, &m.collection) == VPPS_OK);
  CHECK(vpps_parameter_create(m.engine, m.collection, "/w", &model_dims[1], 0, values, &m.w) ==
        VPPS_OK);
  return m;
}

/* The words of the loss, node 3; x is read when the words are handed over. */
typedef struct Loss {
  uint32_t nodes[10];
  uint32_t x[2];
  vpps_words words;
} Loss;

static inline void record_loss(Loss *l, uint32_t w, float x0, float x1) {
  const uint32_t nodes[10] = {
      NODE(PARAMETER, 1),    w, NODE(INPUT, 1), 0, NODE(CWISE_MULTIPLY, 1), 0, 1,
      NODE(SUM_ELEMENTS, 0), 2};
  const float x[2] = {x0, x1};
  memset(l, 0, sizeof *l);
  memcpy(l->nodes, nodes, sizeof nodes);
  memcpy(l->x, x, sizeof x);
  l->words.version = VPPS_WIRE_VERSION;
  l->words.nodes = l->nodes;
  l->words.node_words = 9;
  l->words.node_count = 4;
  l->words.dims = model_dims;
  l->words.dim_count = 2;
  l->words.inputs = l->x;
  l->words.input_words = 2;
}

/* The parameter is as it was made, and a new graph over it gives 1*3 + 2*4. */
static inline void all_is_well(Model m) {
  float w[2] = {0}, loss = 0;
  Loss l;
  vpps_graph *graph;
  CHECK(vpps_parameter_read(m.engine, m.w, VPPS_VALUES, 0, 2, w) == VPPS_OK);
  CHECK(w[0] == 1 && w[1] == 2);
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
  record_loss(&l, m.w, 3, 4);
  CHECK(vpps_value(graph, &l.words, 3, &loss, 1) == VPPS_OK);
  CHECK(loss == 11);
  vpps_graph_destroy(graph);
}

#endif
