/* Signal handlers that the host installs after the library was loaded, with SA_ONSTACK, work.
 * Those installed before are in loading.c. */
#include "host.h"

#include <setjmp.h>
#include <signal.h>

static volatile sig_atomic_t usr1;
static sigjmp_buf back;
static int *volatile nowhere;

static void count(int signal) {
  (void)signal;
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

int main(void) {
  Model m = open_model();
  install();
  for (int round = 1; round <= 3; round++) {
    raise(SIGUSR1);
    CHECK(usr1 == round);
    fault();
    all_is_well(m);
  }
  return 0;
}
