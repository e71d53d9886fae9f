/* Engines of one process train one model, a thread each: losses and values are those of one engine
 * with their batches joined. Whatever goes wrong is an error on each of them. */
#include "host.h"

#include <math.h>
#include <pthread.h>

enum { RANKS = 3, STEPS = 4 };

typedef struct Rank {
  Model model;
  vpps_comm *comm;
  vpps_handle *handle;
  float w[2], global;
  vpps_status status;
  char text[1024];
} Rank;

/* An engine of its own on the CPU. */
static void open_rank(Rank *r, uint32_t number) {
  const float values[] = {1 + (float)number, 2};
  char device[16];
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  snprintf(device, sizeof device, "cpu:%u", number);
  options.device = device;
  options.threads = options.processors = 1;
  CHECK(vpps_engine_open(&options, &r->model.engine) == VPPS_OK);
  CHECK(vpps_collection_create(r->model.engine, 0, &r->model.collection) == VPPS_OK);
  CHECK(vpps_parameter_create(r->model.engine, r->model.collection, "/w", &model_dims[1], 0, values,
                              &r->model.w) == VPPS_OK);
  CHECK(vpps_handle_create(r->model.engine, &r->model.w, 1, NULL, &r->handle) == VPPS_OK);
}

static void close_rank(Rank *r) {
  vpps_handle_destroy(r->handle);
  vpps_comm_destroy(r->comm);
  vpps_engine_close(r->model.engine);
}

static vpps_status train(Rank *r, float a, float b) {
  Loss l;
  vpps_graph *graph;
  record_loss(&l, r->model.w, a, b);
  CHECK(vpps_graph_create(r->model.engine, &graph) == VPPS_OK);
  vpps_status s = vpps_fb(r->handle, graph, &l.words, 3, NULL);
  vpps_graph_destroy(graph);
  return s;
}

static float x_of(int rank, int step) { return 0.1f * (float)(1 + rank) - 0.03f * (float)step; }

/* Rank k has STEPS - k batches. */
static void *work(void *p) {
  Rank *r = p;
  uint32_t rank, size;
  CHECK(vpps_comm_rank(r->comm, &rank, &size) == VPPS_OK && size == RANKS);
  CHECK(vpps_comm_attach(r->comm, r->model.engine, VPPS_SUM) == VPPS_OK);
  for (int step = 0; step < STEPS - (int)rank; step++) {
    CHECK(train(r, x_of((int)rank, step), 1) == VPPS_OK);
    CHECK(vpps_global_loss(r->handle, &r->global) == VPPS_OK);
  }
  CHECK(vpps_comm_join(r->model.engine) == VPPS_OK);
  CHECK(vpps_comm_barrier(r->comm) == VPPS_OK);
  CHECK(vpps_parameter_read(r->model.engine, r->model.w, VPPS_VALUES, 0, 2, r->w) == VPPS_OK);
  return NULL;
}

static void *leave_or_train(void *p) {
  Rank *r = p;
  uint32_t rank;
  CHECK(vpps_comm_rank(r->comm, &rank, NULL) == VPPS_OK);
  CHECK(vpps_comm_attach(r->comm, r->model.engine, VPPS_AVERAGE_BF16) == VPPS_OK);
  if (rank == 1) {
    CHECK(vpps_comm_abort(r->comm, "out of data") == VPPS_OK);
    return NULL;
  }
  r->status = train(r, 1, 1);
  snprintf(r->text, sizeof r->text, "%s", vpps_last_error());
  return NULL;
}

static void run(Rank *ranks, void *(*f)(void *)) {
  pthread_t threads[RANKS];
  for (int k = 0; k < RANKS; k++)
    CHECK(pthread_create(&threads[k], NULL, f, &ranks[k]) == 0);
  for (int k = 0; k < RANKS; k++)
    CHECK(pthread_join(threads[k], NULL) == 0);
}

static void connect_ranks(Rank *ranks) {
  vpps_comm *comms[RANKS];
  CHECK(vpps_comm_create_local(RANKS, 60, comms) == VPPS_OK);
  for (int k = 0; k < RANKS; k++)
    ranks[k].comm = comms[k];
}

int main(void) {
  Rank ranks[RANKS], alone;
  float loss = 0, w[2];
  connect_ranks(ranks);
  for (int k = 0; k < RANKS; k++)
    open_rank(&ranks[k], (uint32_t)k);
  CHECK(ranks[0].model.engine != ranks[1].model.engine);
  run(ranks, work);

  /* The same by one engine. The gradient of a loss is its x, so gradients add up as x does. */
  alone.comm = NULL;
  open_rank(&alone, RANKS);
  w[0] = 1, w[1] = 2; /* as rank 0 begins */
  CHECK(vpps_parameter_write(alone.model.engine, alone.model.w, VPPS_VALUES, 0, 2, w) == VPPS_OK);
  for (int step = 0; step < STEPS; step++) {
    float a = 0, b = 0;
    for (int k = 0; k < RANKS; k++)
      if (step < STEPS - k)
        a += x_of(k, step), b += 1;
    CHECK(train(&alone, a, b) == VPPS_OK);
    CHECK(vpps_sync_latest_loss(alone.handle, &loss) == VPPS_OK);
  }
  CHECK(vpps_parameter_read(alone.model.engine, alone.model.w, VPPS_VALUES, 0, 2, w) == VPPS_OK);
  for (int k = 0; k < RANKS; k++) {
    CHECK(memcmp(ranks[k].w, ranks[0].w, sizeof w) == 0);
    CHECK(fabsf(ranks[k].w[0] - w[0]) < 1e-5f && fabsf(ranks[k].w[1] - w[1]) < 1e-5f);
  }
  CHECK(fabsf(ranks[0].global - loss) < 1e-5f); /* the last step was rank 0's alone */

  /* One of them aborts. */
  FAILS(VPPS_ERR_STATE, "rank 0 of a group already",
        vpps_comm_attach(ranks[0].comm, ranks[0].model.engine, VPPS_SUM));
  for (int k = 0; k < RANKS; k++) {
    CHECK(vpps_comm_detach(ranks[k].model.engine) == VPPS_OK);
    vpps_comm_destroy(ranks[k].comm);
  }
  connect_ranks(ranks);
  run(ranks, leave_or_train);
  for (int k = 0; k < RANKS; k += 2) {
    CHECK(ranks[k].status == VPPS_ERR_RANK);
    CHECK(strstr(ranks[k].text, "rank 1 has aborted: out of data") != NULL);
    CHECK(vpps_parameter_read(ranks[k].model.engine, ranks[k].model.w, VPPS_VALUES, 0, 2, w) ==
          VPPS_OK);
    CHECK(memcmp(w, ranks[0].w, sizeof w) == 0);
  }
  FAILS(VPPS_ERR_RANK, "rank 1 has aborted", vpps_comm_barrier(ranks[2].comm));

  /* Bad arguments. */
  vpps_comm *none[1];
  FAILS(VPPS_ERR_ARGUMENT, "1 to 1024", vpps_comm_create_local(0, 1, none));
  FAILS(VPPS_ERR_ARGUMENT, "1 to 1024", vpps_comm_create_local(UINT32_MAX, 1, none));
  FAILS(VPPS_ERR_ARGUMENT, "above 0", vpps_comm_create_local(1, -1, none));
  FAILS(VPPS_ERR_ARGUMENT, "above 0", vpps_comm_create_local(1, (double)NAN, none));
  FAILS(VPPS_ERR_ARGUMENT, "must not be NULL", vpps_comm_create_local(1, 1, NULL));
  FAILS(VPPS_ERR_ARGUMENT, "must not be NULL", vpps_comm_barrier(NULL));
  FAILS(VPPS_ERR_ARGUMENT, "reduction 7",
        vpps_comm_attach(ranks[0].comm, ranks[0].model.engine, (vpps_reduction)7));
  FAILS(VPPS_ERR_ARGUMENT, "no communicator but another object",
        vpps_comm_barrier((vpps_comm *)ranks[0].model.engine));
  FAILS(VPPS_ERR_ARGUMENT, "not negative", vpps_comm_count(ranks[0].model.engine, -1));
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  vpps_engine *engine;
  options.device = "cpu:x";
  FAILS(VPPS_ERR_ARGUMENT, "write cpu, cpu:N, cuda", vpps_engine_open(&options, &engine));
  vpps_comm_destroy(NULL);

  /* A group of one changes nothing. */
  CHECK(vpps_comm_create_local(1, 0, none) == VPPS_OK);
  CHECK(vpps_comm_attach(none[0], alone.model.engine, VPPS_AVERAGE) == VPPS_OK);
  CHECK(train(&alone, 1, 1) == VPPS_OK);
  CHECK(vpps_comm_join(alone.model.engine) == VPPS_OK);
  CHECK(vpps_comm_barrier(none[0]) == VPPS_OK);
  CHECK(vpps_global_loss(alone.handle, &loss) == VPPS_OK);
  vpps_comm_destroy(none[0]);
  FAILS(VPPS_ERR_ARGUMENT, "destroyed", vpps_comm_barrier(none[0]));
  close_rank(&alone);
  for (int k = 0; k < RANKS; k++)
    close_rank(&ranks[k]);
  return 0;
}
