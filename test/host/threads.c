/* Many short-lived threads of the host call the library at once; each sees its own last error. */
#include "host.h"

#include <pthread.h>

enum { THREADS = 300, TOGETHER = 20 };
static Model model;

static void *work(void *number) {
  char mine[32];
  float v[1];
  CHECK(strcmp(vpps_last_error(), "") == 0);
  snprintf(mine, sizeof mine, "parameter %d", 1000 + (int)(intptr_t)number);
  FAILS(VPPS_ERR_ARGUMENT, mine,
        vpps_parameter_read(model.engine, 1000 + (uint32_t)(intptr_t)number, VPPS_VALUES, 0, 1, v));
  all_is_well(model);
  CHECK(strstr(vpps_last_error(), mine) != NULL);
  return NULL;
}

int main(void) {
  model = open_model();
  for (int first = 0; first < THREADS; first += TOGETHER) {
    pthread_t threads[TOGETHER];
    for (int k = 0; k < TOGETHER; k++)
      CHECK(pthread_create(&threads[k], NULL, work, (void *)(intptr_t)(first + k)) == 0);
    for (int k = 0; k < TOGETHER; k++)
      CHECK(pthread_join(threads[k], NULL) == 0);
  }
  CHECK(strcmp(vpps_last_error(), "") == 0);
  all_is_well(model);
  return 0;
}
