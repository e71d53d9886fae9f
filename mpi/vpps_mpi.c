/* The plug-in for MPI. Calls into MPI hold a lock, so that a library that allows one thread at a
 * time is enough. Nothing waits inside of MPI. */
#include "vpps_mpi.h"

#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

enum { DATA = 1, TELL = 2, MOST_TEXT = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static MPI_Comm world;
static int me, ranks, broken;
static char why[MOST_TEXT]; /* what another rank has told of the present group's end */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int failed(int code, const char *call, char *text, size_t size) {
  char why[MPI_MAX_ERROR_STRING] = "";
  int n = 0;
  MPI_Error_string(code, why, &n);
  snprintf(text, size, "%s: %s", call, why);
  broken = 1;
  return VPPS_MPI_FAILED;
}

/* Engines may be closed after the program has ended MPI, or exit() has. */
static int ended(void) {
  int over = 0;
  return MPI_Finalized(&over) || over;
}

/* The world ends in order, unless an exchange was not done: then others may be gone, and mpirun
 * ends the program. */
static void finish(void) {
  if (!broken && !ended())
    MPI_Finalize();
}

EXPORT int vpps_mpi_version(void) { return VPPS_MPI_VERSION; }

static int start(char *text, size_t size) {
  int started = 0, level = 0, code;
  MPI_Initialized(&started);
  if (!started) {
    if ((code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level)))
      return failed(code, "MPI_Init_thread", text, size);
    atexit(finish);
  }
  MPI_Query_thread(&level);
  if (level < MPI_THREAD_SERIALIZED) {
    snprintf(text, size,
             "MPI was started for one thread: call MPI_Init_thread with MPI_THREAD_SERIALIZED");
    return VPPS_MPI_FAILED;
  }
  if ((code = MPI_Comm_dup(MPI_COMM_WORLD, &world)))
    return failed(code, "MPI_Comm_dup", text, size);
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  MPI_Comm_rank(world, &me);
  MPI_Comm_size(world, &ranks);
  return VPPS_MPI_DONE;
}

EXPORT int vpps_mpi_start(int *rank, int *size, char *text, size_t size_of_text) {
  static int done;
  int result = VPPS_MPI_DONE;
  pthread_mutex_lock(&lock);
  if (!done && !(result = start(text, size_of_text)))
    done = 1;
  *rank = me, *size = ranks, *why = 0;
  pthread_mutex_unlock(&lock);
  return result;
}

/* Why the group ends, once another rank has told it. Else "". */
static const char *told(void) {
  MPI_Status status;
  int there = 0;
  if (!*why && !MPI_Iprobe(MPI_ANY_SOURCE, TELL, world, &there, &status) && there)
    MPI_Recv(why, MOST_TEXT - 1, MPI_CHAR, status.MPI_SOURCE, TELL, world, &status);
  return why;
}

/* Looks which messages are done. Returns 1 if all are, 0 if not, or -code of an error. */
static int look(vpps_mpi_message *m, MPI_Request *requests, size_t n) {
  int all = 1;
  for (size_t i = 0; i < n; i++) {
    int code = m[i].done ? MPI_SUCCESS : MPI_Test(&requests[i], &m[i].done, MPI_STATUS_IGNORE);
    if (code)
      return -code;
    all = all && m[i].done;
  }
  return all;
}

static int begin(vpps_mpi_message *m, MPI_Request *requests, size_t n) {
  for (size_t i = 0; i < n; i++) {
    int code =
        m[i].receive
            ? MPI_Irecv(m[i].words, m[i].count, MPI_UINT32_T, m[i].peer, DATA, world, &requests[i])
            : MPI_Isend(m[i].words, m[i].count, MPI_UINT32_T, m[i].peer, DATA, world, &requests[i]);
    if (code)
      return code;
    m[i].done = 0;
  }
  return MPI_SUCCESS;
}

/* A rank that is awaited for long leaves its core to others. */
static void rest(double waited) {
  const struct timespec little = {0, 50000};
  if (waited < 1e-3)
    sched_yield();
  else
    nanosleep(&little, NULL);
}

/* Seconds after another rank has told why the group ends. A rank may leave a barrier and the group
 * while messages of that barrier are under way to others. */
static const double grace = 0.1;

static int wait_for(vpps_mpi_message *m, MPI_Request *requests, size_t n, double seconds,
                    const int *stop, char *text, size_t size) {
  const double since = now();
  double told_at = 0;
  for (;;) {
    pthread_mutex_lock(&lock);
    const int all = look(m, requests, n);
    const char *reason = all == 0 ? told() : "";
    const int result = all < 0 ? failed(-all, "MPI_Test", text, size) : VPPS_MPI_DONE;
    pthread_mutex_unlock(&lock);
    if (all)
      return result;
    if (*reason && !told_at)
      told_at = now();
    if (told_at && now() - told_at > grace) {
      snprintf(text, size, "%s", reason);
      return VPPS_MPI_TOLD;
    }
    if (__atomic_load_n(stop, __ATOMIC_RELAXED))
      return VPPS_MPI_STOPPED;
    const double waited = now() - since;
    if (waited > seconds)
      return VPPS_MPI_LATE;
    rest(waited);
  }
}

EXPORT int vpps_mpi_exchange(vpps_mpi_message *m, size_t n, double seconds, const int *stop,
                             char *text, size_t size) {
  MPI_Request *requests = malloc((n + 1) * sizeof *requests);
  if (!requests) {
    snprintf(text, size, "no memory for %zu requests", n);
    return VPPS_MPI_FAILED;
  }
  pthread_mutex_lock(&lock);
  int began = VPPS_MPI_DONE, code;
  if (ended()) {
    snprintf(text, size, "the program has called MPI_Finalize");
    began = VPPS_MPI_FAILED;
  } else if ((code = begin(m, requests, n))) {
    began = failed(code, "MPI_Isend or MPI_Irecv", text, size);
  }
  pthread_mutex_unlock(&lock);
  const int result = began ? began : wait_for(m, requests, n, seconds, stop, text, size);
  if (result == VPPS_MPI_DONE)
    free(requests); /* else messages are under way, and need them */
  else
    __atomic_store_n(&broken, 1, __ATOMIC_RELAXED);
  return result;
}

EXPORT void vpps_mpi_tell(const char *what) {
  char *text = calloc(1, MOST_TEXT); /* never freed: it is under way */
  if (!text)
    return;
  snprintf(text, MOST_TEXT - 1, "%s", what);
  pthread_mutex_lock(&lock);
  for (int rank = 0; rank < ranks && !ended(); rank++) {
    MPI_Request request;
    if (rank != me &&
        !MPI_Isend(text, (int)strlen(text) + 1, MPI_CHAR, rank, TELL, world, &request))
      MPI_Request_free(&request);
  }
  pthread_mutex_unlock(&lock);
}
