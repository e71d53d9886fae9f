/* libvpps from plain C, without the C++ front-end: a graph is written down word by word,
 * trained for some steps, and asked what it has learned (exclusive or). vpps.h explains
 * every call; the operations and their words are listed in bridge/ops/ops.go. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vpps.h>

enum { INPUTS = 2, HIDDEN = 8, CLASSES = 2, POINTS = 4, STEPS = 300 };

/* Operation codes of the wire format. */
enum {
  INPUT = 1,
  PARAMETER = 5,
  TANH = 16,
  SUM_DIMENSION = 58,
  AFFINE = 80,
  PICK_NEG_LOG_SOFTMAX = 114
};

/* The dims of the nodes: an index into this table goes with every operation. */
enum { D_X, D_W1, D_B1, D_H, D_W2, D_B2, D_SCORES, D_LOSSES, D_LOSS, DIMS };
static const vpps_dim dims[DIMS] = {
    [D_X] = {1, POINTS, {INPUTS}}, /* a batch: one point an element */
    [D_W1] = {2, 1, {HIDDEN, INPUTS}}, [D_B1] = {1, 1, {HIDDEN}},
    [D_H] = {1, POINTS, {HIDDEN}},     [D_W2] = {2, 1, {CLASSES, HIDDEN}},
    [D_B2] = {1, 1, {CLASSES}},        [D_SCORES] = {1, POINTS, {CLASSES}},
    [D_LOSSES] = {1, POINTS, {1}},     [D_LOSS] = {1, 1, {1}},
};

static void check(vpps_status status) {
  if (status == VPPS_OK)
    return;
  fprintf(stderr, "handmade: %s\n", vpps_last_error());
  exit(1);
}

/* A parameter with small random values (zeros for a bias). */
static uint32_t parameter(vpps_engine *engine, uint32_t collection, const char *name,
                          const vpps_dim *dim, float scale) {
  static uint32_t random = 12345;
  float values[HIDDEN * HIDDEN];
  uint32_t id, size = dim->d[0] * (dim->nd > 1 ? dim->d[1] : 1);
  for (uint32_t k = 0; k < size; k++) {
    random = random * 1664525u + 1013904223u;
    values[k] = scale * ((float)(random >> 8) / 8388608.0f - 1.0f);
  }
  check(vpps_parameter_create(engine, collection, name, dim, 0, values, &id));
  return id;
}

int main(void) {
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  vpps_engine *engine;
  char device[256];
  options.device = getenv("VPPS_DEVICE"); /* unset: the first GPU, else the CPU */
  check(vpps_engine_open(&options, &engine));
  check(vpps_engine_describe(engine, device, sizeof device));
  printf("libvpps %s on %s\n", vpps_version(), device);

  uint32_t collection, ids[4];
  check(vpps_collection_create(engine, 0, &collection));
  ids[0] = parameter(engine, collection, "/W1", &dims[D_W1], 1.0f);
  ids[1] = parameter(engine, collection, "/b1", &dims[D_B1], 0);
  ids[2] = parameter(engine, collection, "/W2", &dims[D_W2], 0.5f);
  ids[3] = parameter(engine, collection, "/b2", &dims[D_B2], 0);

  /* What nodes read when they are evaluated: the points' coordinates, then their labels. */
  const float points[POINTS][INPUTS] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
  uint32_t inputs[POINTS * INPUTS + POINTS] = {[POINTS * INPUTS] = 0, 1, 1, 0};
  memcpy(inputs, points, sizeof points);

/* A node's first word is its operation and its dim; then come the number of its arguments,
 * if that may vary, the arguments (numbers of earlier nodes), and its attributes. */
#define NODE(op, dim) (uint32_t)(op) | (uint32_t)(dim) << 8
  /* clang-format off */
  const uint32_t nodes[] = {
      /* 0 */ NODE(INPUT, D_X), 0,                    /* x: data from inputs[0] on */
      /* 1 */ NODE(PARAMETER, D_W1), ids[0],
      /* 2 */ NODE(PARAMETER, D_B1), ids[1],
      /* 3 */ NODE(PARAMETER, D_W2), ids[2],
      /* 4 */ NODE(PARAMETER, D_B2), ids[3],
      /* 5 */ NODE(AFFINE, D_H), 3, 2, 1, 0,          /* b1 + W1*x */
      /* 6 */ NODE(TANH, D_H), 5,
      /* 7 */ NODE(AFFINE, D_SCORES), 3, 4, 3, 6,     /* b2 + W2*h */
      /* 8 */ NODE(PICK_NEG_LOG_SOFTMAX, D_LOSSES), 7, POINTS * INPUTS, /* labels from there */
      /* 9 */ NODE(SUM_DIMENSION, D_LOSS), 8, 0, 1,   /* no axes, but the batch */
  };
  /* clang-format on */
  enum { SCORES = 7, LOSS = 9, NODES = 10 };
  const vpps_words words = {
      .version = VPPS_WIRE_VERSION,
      .nodes = nodes,
      .node_words = sizeof nodes / sizeof *nodes,
      .node_count = NODES,
      .dims = dims,
      .dim_count = DIMS,
      .inputs = inputs,
      .input_words = sizeof inputs / sizeof *inputs,
  };

  vpps_trainer_options rule = VPPS_TRAINER_OPTIONS_INIT;
  rule.learning_rate = 0.2f;
  rule.collection = collection;
  vpps_trainer *trainer;
  vpps_handle *handle;
  vpps_graph *graph;
  check(vpps_trainer_create(engine, &rule, ids, 4, &trainer));
  check(vpps_handle_create(engine, ids, 4, trainer, &handle));
  check(vpps_graph_create(engine, &graph));

  /* The words are handed over once; later steps add none, and run the same graph. */
  float loss = 0, first = 0;
  for (int step = 0; step < STEPS; step++) {
    check(vpps_fb(handle, graph, step == 0 ? &words : NULL, LOSS, &loss));
    if (step % 50 == 0 || step == STEPS - 1) {
      check(vpps_sync_latest_loss(handle, &loss));
      printf("step %3d  loss %.4f\n", step, loss);
      if (step == 0)
        first = loss;
    }
  }

  int right = 0;
  float scores[POINTS][CLASSES];
  check(vpps_forward(graph, NULL, SCORES, 1)); /* with the parameters as they are now */
  check(vpps_value(graph, NULL, SCORES, &scores[0][0], POINTS * CLASSES));
  for (int k = 0; k < POINTS; k++) {
    const uint32_t guess = scores[k][1] > scores[k][0];
    printf("%g xor %g = %u\n", points[k][0], points[k][1], guess);
    right += guess == inputs[POINTS * INPUTS + k];
  }

  vpps_graph_destroy(graph);
  vpps_handle_destroy(handle);
  vpps_trainer_destroy(trainer);
  vpps_engine_close(engine);
  return right == POINTS && loss < first / 4 ? 0 : 1;
}
