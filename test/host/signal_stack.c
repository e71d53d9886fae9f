/* The host turns the alternate signal stack of its threads off, as Boost.Test does between test
 * cases, while signals arrive: between calls, during calls, in handlers, in a log function, on
 * several threads. The library's garbage collector is at work all the time. */
#include "again.h"
#include "host.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

enum { THREADS = 4, ROUNDS = 625 }; /* of four calls: 10,000 in all */
static Model model;
static pthread_t threads[THREADS];
static int working = THREADS;
static volatile sig_atomic_t handled;

static void turn_off(void) {
  stack_t off;
  memset(&off, 0, sizeof off);
  off.ss_flags = SS_DISABLE;
  if (sigaltstack(&off, NULL) != 0 && errno != EPERM) /* EPERM: in a handler that runs on it */
    _exit(1);
}
static int is_off(void) {
  stack_t now;
  CHECK(sigaltstack(NULL, &now) == 0);
  return (now.ss_flags & SS_DISABLE) != 0;
}

static void handler(int signal) {
  int before = errno;
  (void)signal;
  handled++;
  turn_off();
  errno = before;
}
static void install(int signal, int flags) {
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_handler = handler;
  a.sa_flags = flags | SA_RESTART;
  CHECK(sigaction(signal, &a, NULL) == 0);
}

static void *rounds(void *unused) {
  for (int k = 0; k < ROUNDS; k++) {
    float w[2], loss = 0;
    vpps_graph *graph;
    Loss l;
    turn_off();
    CHECK(vpps_graph_create(model.engine, &graph) == VPPS_OK);
    turn_off();
    record_loss(&l, model.w, 3, 4);
    CHECK(vpps_value(graph, &l.words, 3, &loss, 1) == VPPS_OK && loss == 11);
    turn_off();
    CHECK(vpps_parameter_read(model.engine, model.w, VPPS_VALUES, 0, 2, w) == VPPS_OK);
    turn_off();
    vpps_graph_destroy(graph);
    CHECK(w[0] == 1 && w[1] == 2 && !is_off());
  }
  __atomic_fetch_sub(&working, 1, __ATOMIC_RELEASE);
  return unused;
}

/* SIGURG is the signal that Go's runtime sends to threads which are to stop. */
static void press(void) {
  const struct timespec pause = {0, 20000};
  for (int k = 0; __atomic_load_n(&working, __ATOMIC_ACQUIRE) > 0; k++) {
    pthread_kill(threads[k % THREADS], k / THREADS % 4 ? SIGURG : SIGUSR1);
    nanosleep(&pause, NULL);
  }
}

/* A stack of the host's own stays where it is; a thread that has none gets one with its next call.
 */
static void whose_stack(void) {
  static char mine[1 << 16];
  stack_t own, now;
  memset(&own, 0, sizeof own);
  own.ss_sp = mine;
  own.ss_size = sizeof mine;
  CHECK(sigaltstack(&own, NULL) == 0);
  all_is_well(model);
  CHECK(sigaltstack(NULL, &now) == 0 && now.ss_sp == mine && now.ss_flags == 0);
  turn_off();
  CHECK(is_off());
  all_is_well(model);
  CHECK(!is_off());
}

/* A log function runs on the calling thread in the middle of a call, which goes on after it. */
static int heard;
static void hear(void *unused, vpps_log_level level, const char *line) {
  (void)unused, (void)level, (void)line;
  heard++;
  turn_off();
}
static void while_logging(void) {
  CHECK(vpps_set_log(VPPS_LOG_DEBUG, hear, NULL) == VPPS_OK);
  for (int k = 0; k < 20; k++) {
    Model other = open_model();
    all_is_well(other);
    vpps_engine_close(other.engine); /* reports its memory: the last line is after all work */
    CHECK(!is_off());
  }
  CHECK(heard >= 20);
  CHECK(vpps_set_log(VPPS_LOG_OFF, NULL, NULL) == VPPS_OK);
}

static void task(void) {
  const struct itimerval often = {{0, 1000}, {0, 1000}};
  struct sigaction a;
  install(SIGUSR1, 0); /* before the first call: SA_ONSTACK is not needed */
  while_logging();
  model = open_model();
  CHECK(sigaction(SIGUSR1, NULL, &a) == 0 && (a.sa_flags & SA_ONSTACK) != 0);
  install(SIGALRM, SA_ONSTACK);
  whose_stack();
  for (int k = 0; k < THREADS; k++)
    CHECK(pthread_create(&threads[k], NULL, rounds, NULL) == 0);
  CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
  press();
  for (int k = 0; k < THREADS; k++)
    CHECK(pthread_join(threads[k], NULL) == 0);
  CHECK(handled > 0);
  all_is_well(model);
}

int main(int argc, char **argv) {
  if (argc > 1)
    task();
  else
    again(argv[0], "task", "GOGC", "1");
  return 0;
}
