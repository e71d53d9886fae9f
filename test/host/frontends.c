/* A process uses one front-end: a second one is an error that names both and says what to do. */
#include "host.h"

#include <pthread.h>

enum { THREADS = 8 };

static void *say(void *kind) { return (void *)(intptr_t)vpps_frontend(kind); }

int main(void) {
  char long_name[102];
  pthread_t threads[THREADS];
  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_frontend(NULL));
  FAILS(VPPS_ERR_ARGUMENT, "1 to 100 bytes", vpps_frontend(""));
  memset(long_name, 'x', sizeof long_name);
  long_name[101] = 0;
  FAILS(VPPS_ERR_ARGUMENT, "1 to 100 bytes", vpps_frontend(long_name));

  /* None of these counted. Parts of a program may say it one by one, or at once. */
  for (int k = 0; k < THREADS; k++)
    CHECK(pthread_create(&threads[k], NULL, say, (void *)VPPS_FRONTEND_INSTALLED) == 0);
  for (int k = 0; k < THREADS; k++) {
    void *status = NULL;
    CHECK(pthread_join(threads[k], &status) == 0);
    CHECK(status == (void *)VPPS_OK);
  }
  for (int round = 0; round < 2; round++) {
    FAILS(VPPS_ERR_STATE, "first an installed DyNet, now libvpps's own DyNet headers",
          vpps_frontend(VPPS_FRONTEND_BUNDLED));
    CHECK(strstr(vpps_last_error(), "with one of them") != NULL);
    CHECK(vpps_frontend(VPPS_FRONTEND_INSTALLED) == VPPS_OK);
  }
  all_is_well(open_model()); /* the one that was first goes on */
  return 0;
}
