/* Processes that a launcher has started, here this test by torchrun's variables: they find each
 * other, and each says what is missing. None waits for ever. */
#include "host.h"

#include <sys/wait.h>

static vpps_engine *open_engine(uint32_t threads) {
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  vpps_engine *engine;
  options.device = "cpu";
  options.threads = threads;
  options.data_parallel = 1;
  CHECK(vpps_engine_open(&options, &engine) == VPPS_OK);
  return engine;
}

/* No launcher: the only rank. */
static void alone(void) {
  vpps_engine *engine = open_engine(0);
  vpps_comm *comm;
  uint32_t rank, size;
  char bytes[] = "as it is";
  CHECK(vpps_comm_create_launched(engine, 0, &comm) == VPPS_OK);
  CHECK(vpps_comm_rank(comm, &rank, &size) == VPPS_OK && rank == 0 && size == 1);
  CHECK(vpps_comm_attach(comm, engine, VPPS_SUM) == VPPS_OK);
  CHECK(vpps_comm_broadcast(comm, bytes, sizeof bytes, 0) == VPPS_OK);
  CHECK(!strcmp(bytes, "as it is"));
  FAILS(VPPS_ERR_ARGUMENT, "rank 1 of 1", vpps_comm_broadcast(comm, bytes, sizeof bytes, 1));
  FAILS(VPPS_ERR_ARGUMENT, "at most", vpps_comm_broadcast(comm, bytes, SIZE_MAX, 0));
  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_comm_broadcast(comm, NULL, 1, 0));
  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_comm_create_launched(engine, 0, NULL));
  vpps_comm_destroy(comm);
  vpps_engine_close(engine);
}

/* Ranks on CPUs, which torchrun does not connect: all are told. */
static void without_mpi(void) {
  vpps_engine *engine = open_engine(0);
  vpps_comm *comm = NULL;
  FAILS(VPPS_ERR_UNSUPPORTED, "rank 0: its device is a CPU; ranks on CPUs need MPI",
        vpps_comm_create_launched(engine, 0, &comm));
  CHECK(!comm);
  vpps_engine_close(engine);
}

/* The other rank does not come. */
static void lonely(void) {
  vpps_engine *engine = open_engine(1);
  vpps_comm *comm;
  FAILS(VPPS_ERR_RANK, "rank 1 did not arrive within 300ms",
        vpps_comm_create_launched(engine, 0.05, &comm));
  vpps_engine_close(engine);
}

static void malformed(void) {
  vpps_engine *engine;
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  options.device = "cpu";
  options.data_parallel = 1;
  FAILS(VPPS_ERR_ARGUMENT, "started by torchrun: RANK=7: needs a whole number from 0 to 1",
        vpps_engine_open(&options, &engine));
}

/* A process of its own, with the variables of a rank: they are read once. */
static pid_t start(void (*what)(void), const char *rank, const char *file) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child)
    return child;
  setenv("RANK", rank, 1);
  setenv("WORLD_SIZE", "2", 1);
  setenv("LOCAL_RANK", rank, 1);
  setenv("LOCAL_WORLD_SIZE", "2", 1);
  setenv("VPPS_COMM_FILE", file, 1);
  what();
  exit(0);
}

static void ends_well(pid_t child) {
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
  char folder[] = "/tmp/launched-XXXXXX", file[64];
  CHECK(mkdtemp(folder));
  snprintf(file, sizeof file, "%s/ranks", folder);
  unsetenv("VPPS_THREADS");
  const pid_t ranks[] = {start(without_mpi, "0", file), start(without_mpi, "1", file)};
  ends_well(ranks[0]);
  ends_well(ranks[1]);
  ends_well(start(lonely, "0", file));
  ends_well(start(malformed, "7", file));
  unlink(file);
  CHECK(rmdir(folder) == 0);
  unsetenv("RANK");
  alone();
  return 0;
}
