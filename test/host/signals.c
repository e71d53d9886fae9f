/* Signal handlers that the host installs after the first call, with SA_ONSTACK, work. Those
 * installed before are in loading.c. The library's own threads take no signal of the host's.
 * NOT_SANITIZED: it faults. */
#include "host.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

static volatile sig_atomic_t usr1, urgent;
static sigjmp_buf back;
static int *volatile nowhere;

static void count(int signal) {
  if (signal == SIGURG)
    urgent++;
  else
    usr1++;
}
static void jump(int signal) {
  (void)signal;
  siglongjmp(back, 1);
}

static void install(void) {
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_flags = SA_ONSTACK;
  a.sa_handler = count;
  CHECK(sigaction(SIGUSR1, &a, NULL) == 0);
  a.sa_handler = jump;
  CHECK(sigaction(SIGSEGV, &a, NULL) == 0);
}

static void fault(void) {
  if (sigsetjmp(back, 1) == 0) {
    *nowhere = 1;
    CHECK(!"the fault was not noticed");
  }
}

/* Go's runtime takes SIGURG for itself; what it has not sent is still the host's. */
static void urgent_is_shared(void) {
  CHECK(urgent == 0 && kill(getpid(), SIGURG) == 0);
  CHECK(urgent == 1 && pthread_kill(pthread_self(), SIGURG) == 0); /* as Go's runtime sends it */
  CHECK(urgent == 1);
}

/* A signal for the process waits for a thread of the host's that takes it. */
static void own_threads_take_none(void) {
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  vpps_engine *engine;
  sigset_t one, waiting;
  options.device = "cpu";
  options.threads = 2;
  CHECK(vpps_engine_open(&options, &engine) == VPPS_OK);
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  CHECK(sigprocmask(SIG_BLOCK, &one, NULL) == 0);
  CHECK(kill(getpid(), SIGUSR1) == 0);
  usleep(1000);
  CHECK(usr1 == 0 && sigpending(&waiting) == 0 && sigismember(&waiting, SIGUSR1));
  CHECK(sigprocmask(SIG_UNBLOCK, &one, NULL) == 0);
  CHECK(usr1 == 1);
  usr1 = 0;
  vpps_engine_close(engine);
}

int main(void) {
  install();
  signal(SIGURG, count);
  own_threads_take_none();
  Model m = open_model();
  urgent_is_shared();
  install();
  for (int round = 1; round <= 3; round++) {
    raise(SIGUSR1);
    CHECK(usr1 == round);
    fault();
    all_is_well(m);
  }
  return 0;
}
