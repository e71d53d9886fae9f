/* Options that make no sense, and structs of a size that no version has: refused, nothing changed.
 */
#include "host.h"

#include <math.h>
#include <stddef.h>

static void of_trainers(Model m) {
  vpps_trainer_options good = VPPS_TRAINER_OPTIONS_INIT;
  vpps_trainer *trainer, *none;
  vpps_handle *handle;
  uint32_t twice[2];
  uint64_t n;
  good.rule = VPPS_RULE_ADAM;
  CHECK(vpps_trainer_create(m.engine, &good, &m.w, 1, &trainer) == VPPS_OK);
#define REFUSED(member, value, words)                                                              \
  do {                                                                                             \
    vpps_trainer_options o = good;                                                                 \
    o.member = value;                                                                              \
    none = trainer;                                                                                \
    FAILS(VPPS_ERR_ARGUMENT, words, vpps_trainer_create(m.engine, &o, &m.w, 1, &none));            \
    CHECK(none == NULL);                                                                           \
    FAILS(VPPS_ERR_ARGUMENT, words, vpps_trainer_set(trainer, &o));                                \
  } while (0)
  REFUSED(learning_rate, NAN, "learning rate");
  REFUSED(learning_rate, INFINITY, "learning rate");
  REFUSED(learning_rate, -0.1f, "learning rate");
  REFUSED(beta_1, 1, "beta_1");
  REFUSED(beta_2, -0.5f, "beta_2");
  REFUSED(epsilon, NAN, "epsilon");
  REFUSED(clip_threshold, 0, "clip threshold");
  REFUSED(collection, 99, "collection 99");
  REFUSED(rule, 99, "rule 99");

  twice[0] = twice[1] = m.w;
  FAILS(VPPS_ERR_ARGUMENT, "twice", vpps_trainer_add(trainer, &m.w, 1));
  CHECK(vpps_trainer_add(trainer, NULL, 0) == VPPS_OK);
  FAILS(VPPS_ERR_ARGUMENT, "once", vpps_trainer_create(m.engine, &good, twice, 2, &none));
  FAILS(VPPS_ERR_ARGUMENT, "once", vpps_handle_create(m.engine, twice, 2, NULL, &handle));
  FAILS(VPPS_ERR_ARGUMENT, "once", vpps_handle_create(m.engine, twice, 2, trainer, &handle));
  FAILS(VPPS_ERR_ARGUMENT, "updates", vpps_trainer_set_updates(trainer, (uint64_t)-1));
  CHECK(vpps_trainer_updates(trainer, &n) == VPPS_OK && n == 0);
  vpps_trainer_destroy(trainer);
}

static void of_weight_decay(Model m) {
  static const float factors[] = {0, -0.5f, 1.5f, NAN};
  vpps_graph *graph;
  Loss l;
  float v = 0;
  FAILS(VPPS_ERR_ARGUMENT, "[0, 1)", vpps_collection_set_lambda(m.engine, m.collection, NAN));
  FAILS(VPPS_ERR_ARGUMENT, "[0, 1)", vpps_collection_set_lambda(m.engine, m.collection, -0.1f));
  CHECK(vpps_collection_set_factor(m.engine, m.collection, 0.5f) == VPPS_OK);
  for (size_t k = 0; k < sizeof factors / sizeof *factors; k++)
    FAILS(VPPS_ERR_ARGUMENT, "(0, 1]",
          vpps_collection_set_factor(m.engine, m.collection, factors[k]));
  FAILS(VPPS_ERR_ARGUMENT, "collection 99", vpps_collection_set_factor(m.engine, 99, 0.5f));
  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_collection_set_factor(NULL, m.collection, 0.5f));
  CHECK(vpps_collection_factor(m.engine, m.collection, &v) == VPPS_OK && v == 0.5f);
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
  record_loss(&l, m.w, 3, 4);
  CHECK(vpps_value(graph, &l.words, 3, &v, 1) == VPPS_OK && v == 5.5f); /* w is {1, 2} */
  vpps_graph_destroy(graph);
  CHECK(vpps_collection_set_factor(m.engine, m.collection, 1) == VPPS_OK);
}

static void of_dropout(Model m) {
  static const float rates[] = {-0.1f, 1.5f, NAN, INFINITY};
  uint32_t nodes[] = {NODE(PARAMETER, 1), m.w, NODE(28, 1), 0, 0};
  vpps_words words = {VPPS_WIRE_VERSION, nodes, 5, 2, model_dims, 2, NULL, 0};
  vpps_graph *graph;
  float v[2];
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
  for (size_t k = 0; k < sizeof rates / sizeof *rates; k++) {
    memcpy(&nodes[4], &rates[k], 4);
    FAILS(VPPS_ERR_GRAPH, "node 1 (Dropout)", vpps_value(graph, &words, 1, v, 2));
  }
  nodes[4] = 0;
  CHECK(vpps_value(graph, &words, 1, v, 2) == VPPS_OK && v[0] == 1 && v[1] == 2);
  vpps_graph_destroy(graph);
}

/* A struct's size is that of some members, all of them whole. */
#define ENDS(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))
static void of_sizes(Model m) {
  enum { ROOM = 4096 };
  static union {
    char bytes[ROOM];
    vpps_engine_options engine;
    vpps_trainer_options trainer;
    vpps_statistics statistics;
    vpps_times times;
  } u;
  for (uint32_t size = 0; size < 400; size++) {
    vpps_trainer *trainer = NULL;
    vpps_engine *engine = NULL;
    memset(&u, 0, sizeof u);
    u.trainer = (vpps_trainer_options)VPPS_TRAINER_OPTIONS_INIT;
    u.trainer.struct_size = size;
    int whole = size >= 4 && (size % 4 == 0 || size >= sizeof u.trainer);
    CHECK(vpps_trainer_create(m.engine, &u.trainer, &m.w, 1, &trainer) ==
          (whole ? VPPS_OK : VPPS_ERR_ARGUMENT));
    CHECK(whole || strstr(vpps_last_error(), "VPPS_TRAINER_OPTIONS_INIT") != NULL);
    vpps_trainer_destroy(trainer);

    memset(&u, 0, sizeof u);
    u.engine = (vpps_engine_options)VPPS_ENGINE_OPTIONS_INIT;
    u.engine.struct_size = size;
    whole = size >= ENDS(vpps_engine_options, profile) ||
            (size >= ENDS(vpps_engine_options, times) &&
             size <= offsetof(vpps_engine_options, profile)) ||
            (size >= 4 && size <= 8) || size == ENDS(vpps_engine_options, device) ||
            size == ENDS(vpps_engine_options, threads) ||
            size == ENDS(vpps_engine_options, processors) ||
            size == ENDS(vpps_engine_options, seed) ||
            (size >= ENDS(vpps_engine_options, snapshot_batches) &&
             size <= offsetof(vpps_engine_options, plan)) ||
            size == ENDS(vpps_engine_options, plan) || size == ENDS(vpps_engine_options, trace);
    if (!whole) {
      FAILS(VPPS_ERR_ARGUMENT, "VPPS_ENGINE_OPTIONS_INIT", vpps_engine_open(&u.engine, &engine));
    }

    memset(&u, 0xAB, sizeof u);
    u.statistics.struct_size = size;
    whole = size >= sizeof u.statistics || (size >= 4 && size % 8 == 0) || (size >= 4 && size < 8);
    CHECK(vpps_engine_statistics(m.engine, &u.statistics) == (whole ? VPPS_OK : VPPS_ERR_ARGUMENT));
    CHECK(u.statistics.struct_size == size);
    for (size_t k = size < 4 || !whole ? 4 : size; k < ROOM; k++)
      CHECK((unsigned char)u.bytes[k] == 0xAB);

    memset(&u, 0xAB, sizeof u);
    u.times.struct_size = size;
    whole = size >= sizeof u.times || size == 4 ||
            (size >= 8 && size % 8 == 0 &&
             (size <= offsetof(vpps_times, start) || size >= offsetof(vpps_times, loaded_bytes) ||
              (size - offsetof(vpps_times, start)) % sizeof(vpps_part_time) == 0));
    CHECK(vpps_engine_times(m.engine, &u.times) == (whole ? VPPS_OK : VPPS_ERR_ARGUMENT));
    CHECK(u.times.struct_size == size);
    for (size_t k = size < 4 || !whole ? 4 : size; k < ROOM; k++)
      CHECK((unsigned char)u.bytes[k] == 0xAB);
  }
}

int main(void) {
  Model m = open_model();
  of_trainers(m);
  of_weight_decay(m);
  of_dropout(m);
  of_sizes(m);
  all_is_well(m);
  return 0;
}
