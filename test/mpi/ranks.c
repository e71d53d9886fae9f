/* A rank of an MPI program (test/mpi/run). Each trains a shard; rank 0 compares with one engine
 * that trains with their batches joined. With an argument rank 1 aborts, sleeps or is killed
 * instead, and the others must be told in time. */
#include "host.h"

#include <math.h>

enum { STEPS = 4, MOST = 64 };

static vpps_engine *open_engine(const char *device, float first, uint32_t *w,
                                vpps_handle **handle) {
  const float values[] = {first, 2};
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  vpps_engine *engine;
  uint32_t collection;
  options.device = device;
  options.threads = options.processors = 1;
  CHECK(vpps_engine_open(&options, &engine) == VPPS_OK);
  CHECK(vpps_collection_create(engine, 0.01f, &collection) == VPPS_OK);
  CHECK(vpps_parameter_create(engine, collection, "/w", &model_dims[1], 0, values, w) == VPPS_OK);
  CHECK(vpps_handle_create(engine, w, 1, NULL, handle) == VPPS_OK);
  return engine;
}

static vpps_status train(vpps_engine *engine, vpps_handle *handle, uint32_t w, float a, float b) {
  Loss l;
  vpps_graph *graph;
  record_loss(&l, w, a, b);
  CHECK(vpps_graph_create(engine, &graph) == VPPS_OK);
  vpps_status s = vpps_fb(handle, graph, &l.words, 3, NULL);
  vpps_graph_destroy(graph);
  return s;
}

static float x_of(uint32_t rank, uint32_t step) {
  return 0.01f * (float)(1 + rank) - 0.003f * (float)step;
}
/* Later ranks have fewer batches. */
static uint32_t batches(uint32_t rank) { return STEPS - rank % 3; }

static void compare(uint32_t size, const float have[2]) {
  float want[2], x[2];
  uint32_t w;
  vpps_handle *handle;
  vpps_engine *engine = open_engine("cpu:1", 1, &w, &handle);
  for (uint32_t step = 0; step < STEPS; step++) {
    x[0] = x[1] = 0;
    for (uint32_t k = 0; k < size; k++)
      if (step < batches(k))
        x[0] += x_of(k, step), x[1] += 0.1f;
    CHECK(train(engine, handle, w, x[0], x[1]) == VPPS_OK);
  }
  CHECK(vpps_parameter_read(engine, w, VPPS_VALUES, 0, 2, want) == VPPS_OK);
  for (int i = 0; i < 2; i++)
    CHECK(fabsf(have[i] - want[i]) < 1e-5f);
  vpps_handle_destroy(handle);
  vpps_engine_close(engine);
}

int main(int argc, char **argv) {
  const char *fault = argc > 1 ? argv[1] : "";
  vpps_comm *comm;
  vpps_handle *handle;
  uint32_t rank, size, w;
  float values[2], loss;
  CHECK(vpps_comm_create_mpi(*fault ? 2 : 60, &comm) == VPPS_OK);
  CHECK(vpps_comm_rank(comm, &rank, &size) == VPPS_OK && size > 1 && size <= MOST);
  vpps_engine *engine = open_engine("cpu", 1 + (float)rank, &w, &handle);
  CHECK(vpps_comm_attach(comm, engine, VPPS_SUM) == VPPS_OK);
  for (uint32_t step = 0; step < batches(rank); step++) {
    CHECK(train(engine, handle, w, x_of(rank, step), 0.1f) == VPPS_OK);
    CHECK(vpps_global_loss(handle, &loss) == VPPS_OK);
  }
  CHECK(vpps_comm_join(engine) == VPPS_OK);
  CHECK(vpps_parameter_read(engine, w, VPPS_VALUES, 0, 2, values) == VPPS_OK);
  if (rank == 0)
    compare(size, values);
  CHECK(vpps_comm_barrier(comm) == VPPS_OK);

  if (*fault && rank == 1) {
    if (!strcmp(fault, "abort"))
      CHECK(vpps_comm_abort(comm, "out of data") == VPPS_OK);
    else if (!strcmp(fault, "kill"))
      _exit(7);
    sleep(5);
  } else if (*fault) {
    float after[2];
    FAILS(VPPS_ERR_RANK, strcmp(fault, "abort") ? "rank 1" : "rank 1 has aborted: out of data",
          train(engine, handle, w, 1, 1));
    CHECK(vpps_parameter_read(engine, w, VPPS_VALUES, 0, 2, after) == VPPS_OK);
    CHECK(memcmp(values, after, sizeof after) == 0);
    printf("rank %u was told: %s\n", rank, vpps_last_error());
    fflush(stdout);
    sleep(1); /* mpirun may kill the others as soon as one has ended */
  }
  vpps_handle_destroy(handle);
  vpps_comm_destroy(comm);
  if (!*fault)
    vpps_engine_close(engine);
  if (!*fault && rank == 0)
    printf("%u ranks train as one\n", size);
  return 0;
}
