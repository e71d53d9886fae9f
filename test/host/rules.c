/* Update rules through the C interface: two steps each, restarts, options of an older program. */
#include "host.h"

#include <math.h>
#include <stddef.h>

/* The first weight, 1 at the start, after two steps with gradient 1: rate, momentum, rho and the
 * betas are 0.5. And what the rule remembers of it: its first vector's value. */
static const struct {
  uint32_t rule;
  float epsilon, after;
  uint64_t vectors;
  float first;
} rules[] = {
    {VPPS_RULE_SGD, 0, 0, 0, 0},
    {VPPS_RULE_MOMENTUM, 0, -0.25f, 1, -0.75f},
    {VPPS_RULE_ADAGRAD, 0, 0.146447f, 1, 2},
    {VPPS_RULE_ADADELTA, 1, -0.689368f, 2, 0.75f},
    {VPPS_RULE_RMSPROP, 0, -0.284457f, 1, 0.75f},
    {VPPS_RULE_ADAM, 0, 0, 2, 0.75f},
    {VPPS_RULE_AMSGRAD, 0, 0, 3, 0.75f},
};

static vpps_trainer_options options_of(Model m, uint32_t rule, float epsilon) {
  vpps_trainer_options o = VPPS_TRAINER_OPTIONS_INIT;
  o.rule = rule;
  o.learning_rate = o.momentum = o.rho = o.beta_1 = o.beta_2 = 0.5f;
  o.epsilon = epsilon;
  o.clipping = 0;
  o.collection = m.collection;
  return o;
}

static float first_weight(Model m) {
  float w = NAN;
  CHECK(vpps_parameter_read(m.engine, m.w, VPPS_VALUES, 0, 1, &w) == VPPS_OK);
  return w;
}

static void train(Model m, vpps_handle *handle, int batches) {
  for (int k = 0; k < batches; k++) {
    vpps_graph *graph;
    Loss l;
    float stale;
    CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
    record_loss(&l, m.w, 1, 2);
    CHECK(vpps_fb(handle, graph, &l.words, 3, &stale) == VPPS_OK);
    vpps_graph_destroy(graph);
  }
}

int main(void) {
  const float start[] = {1, 2};
  Model m = open_model();
  for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
    vpps_trainer_options o = options_of(m, rules[k].rule, rules[k].epsilon);
    vpps_trainer *trainer;
    vpps_handle *handle;
    CHECK(vpps_trainer_create(m.engine, &o, &m.w, 1, &trainer) == VPPS_OK);
    CHECK(vpps_handle_create(m.engine, &m.w, 1, trainer, &handle) == VPPS_OK);
    train(m, handle, 2);
    CHECK(fabsf(first_weight(m) - rules[k].after) < 1e-5f);
    float state[7] = {0};
    uint64_t updates = 0, vectors = rules[k].vectors;
    CHECK(vpps_trainer_read_state(trainer, m.w, 2 * vectors, state) == VPPS_OK);
    CHECK(fabsf(state[0] - rules[k].first) < 1e-6f);
    CHECK(vpps_trainer_write_state(trainer, m.w, 2 * vectors, state) == VPPS_OK);
    FAILS(VPPS_ERR_ARGUMENT, "floats of it, not 7",
          vpps_trainer_read_state(trainer, m.w, 7, state));
    FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_trainer_write_state(trainer, m.w, 2, NULL));
    CHECK(vpps_trainer_updates(trainer, &updates) == VPPS_OK && updates == 2);
    CHECK(vpps_trainer_set_updates(trainer, updates) == VPPS_OK);
    o.rule = (rules[k].rule + 1) % 7;
    FAILS(VPPS_ERR_ARGUMENT, "keeps its rule", vpps_trainer_set(trainer, &o));
    CHECK(vpps_trainer_restart(trainer) == VPPS_OK);
    CHECK(vpps_parameter_write(m.engine, m.w, VPPS_VALUES, 0, 2, start) == VPPS_OK);
    if (rules[k].rule < VPPS_RULE_ADAM) { /* whose correction goes on counting */
      train(m, handle, 2);
      CHECK(fabsf(first_weight(m) - rules[k].after) < 1e-5f);
      CHECK(vpps_parameter_write(m.engine, m.w, VPPS_VALUES, 0, 2, start) == VPPS_OK);
    }
    vpps_handle_destroy(handle);
    vpps_trainer_destroy(trainer);
  }
  /* Options that end before the hyper-parameters of other rules. */
  vpps_trainer_options old = options_of(m, VPPS_RULE_SGD, 0);
  vpps_trainer *trainer;
  old.struct_size = offsetof(vpps_trainer_options, momentum);
  old.momentum = NAN;
  CHECK(vpps_trainer_create(m.engine, &old, &m.w, 1, &trainer) == VPPS_OK);
  vpps_trainer_destroy(trainer);
  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_trainer_restart(NULL));
  return 0;
}
