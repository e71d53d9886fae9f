/* A program that has a gradient's memory reads, writes and clears it there, as DyNet's programs do.
 */
#include "host.h"

static void backward(Model m, float x0, float x1) {
  vpps_graph *graph;
  Loss l;
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
  record_loss(&l, m.w, x0, x1);
  CHECK(vpps_backward(graph, &l.words, 3, 0) == VPPS_OK);
  vpps_graph_destroy(graph);
}

static void first_is(Model m, vpps_part part, float want) {
  float got = 0;
  CHECK(vpps_parameter_read(m.engine, m.w, part, 0, 1, &got) == VPPS_OK);
  CHECK(got == want);
}

int main(void) {
  const uint32_t row = 0;
  Model m = open_model();
  vpps_trainer_options o = VPPS_TRAINER_OPTIONS_INIT;
  vpps_trainer *trainer;
  vpps_handle *handle;
  vpps_graph *graph;
  Loss l;
  float *g = NULL, stale;
  o.learning_rate = 1;
  o.clipping = 0;
  o.collection = m.collection;
  CHECK(vpps_trainer_create(m.engine, &o, &m.w, 1, &trainer) == VPPS_OK);
  backward(m, 3, 4);
  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_parameter_gradient_memory(m.engine, m.w, 1, NULL));
  FAILS(VPPS_ERR_ARGUMENT, "no parameter 7", vpps_parameter_gradient_memory(m.engine, 7, 1, &g));
  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_parameter_set_touched(m.engine, m.w, NULL, 1, 0));
  FAILS(VPPS_ERR_ARGUMENT, "no rows", vpps_parameter_set_touched(m.engine, m.w, &row, 1, 0));
  CHECK(vpps_parameter_gradient_memory(m.engine, m.w, 1, &g) == VPPS_OK);
  if (g == NULL) { /* a GPU: the gradient stays where it is */
    first_is(m, VPPS_GRADIENT, 3);
    return 0;
  }
  CHECK(g[0] == 3 && g[1] == 4);
  g[0] = 0.5f;
  backward(m, 1, 0);
  CHECK(g[0] == 1.5f && g[1] == 4);
  first_is(m, VPPS_GRADIENT, 1.5f);
  g[0] /= 2;
  CHECK(vpps_update(trainer, NULL) == VPPS_OK);
  first_is(m, VPPS_VALUES, 0.25f);
  CHECK(g[0] == 0 && g[1] == 0);

  CHECK(vpps_handle_create(m.engine, &m.w, 1, trainer, &handle) == VPPS_OK);
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
  record_loss(&l, m.w, 1, 1);
  FAILS(VPPS_ERR_STATE, "gradient_memory", vpps_fb(handle, graph, &l.words, 3, &stale));
  first_is(m, VPPS_VALUES, 0.25f);
  CHECK(vpps_parameter_gradient_memory(m.engine, m.w, 0, &g) == VPPS_OK);
  CHECK(vpps_fb(handle, graph, &l.words, 3, &stale) == VPPS_OK);
  first_is(m, VPPS_VALUES, -0.75f);
  vpps_graph_destroy(graph);
  vpps_handle_destroy(handle);
  vpps_trainer_destroy(trainer);
  vpps_engine_close(m.engine);
  return 0;
}
