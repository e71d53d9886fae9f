/* Another user of CUDA in the process: its current contexts stay as they are on every thread, its
 * memory keeps its contents, and closing the engine takes nothing of it away, though both use the
 * device's primary context. The other user is this program, by the driver alone. */
#include "cuda_user.h"
#include "host.h"

#include <pthread.h>

static Model model;
static CUcontext mine;

/* A call of every kind, with a context of the caller's or none. */
static void work_in(CUcontext c) {
  vpps_handle *handle;
  vpps_graph *graph;
  float loss;
  Loss l;
  CHECK(cuda.cuCtxSetCurrent(c) == 0);
  all_is_well(model);
  CHECK(current() == c);
  CHECK(vpps_handle_create(model.engine, &model.w, 1, NULL, &handle) == VPPS_OK);
  CHECK(vpps_graph_create(model.engine, &graph) == VPPS_OK);
  for (int k = 0; k < 5; k++) {
    record_loss(&l, model.w, 0, 0); /* a gradient of 0: the parameter stays */
    CHECK(vpps_fb(handle, graph, &l.words, 3, NULL) == VPPS_OK);
    CHECK(vpps_graph_truncate(graph, 0) == VPPS_OK);
    CHECK(current() == c);
  }
  CHECK(vpps_sync_latest_loss(handle, &loss) == VPPS_OK && loss == 0);
  vpps_graph_destroy(graph);
  vpps_handle_destroy(handle);
  CHECK(current() == c);
}

static void *on_a_thread(void *context) {
  CHECK(current() == NULL);
  work_in((CUcontext)context);
  return NULL;
}

int main(void) {
  CUcontext primary;
  CUdevice device;
  Memory in_mine, in_primary;
  pthread_t threads[3];
  find_cuda();
  CHECK(cuda.cuInit(0) == 0);
  CHECK(cuda.cuDeviceGet(&device, 0) == 0);
  CHECK(cuda.cuCtxCreate_v2(&mine, 0, device) == 0);
  in_mine = fill_memory(1000, 1);
  CHECK(cuda.cuDevicePrimaryCtxRetain(&primary, device) == 0);
  CHECK(cuda.cuCtxSetCurrent(primary) == 0);
  in_primary = fill_memory(1000, 2);

  CHECK(cuda.cuCtxSetCurrent(mine) == 0);
  model = open_model();
  CHECK(current() == mine);
  work_in(mine);
  work_in(primary);
  work_in(NULL);
  for (int k = 0; k < 3; k++)
    CHECK(pthread_create(&threads[k], NULL, on_a_thread,
                         k == 0   ? (void *)mine
                         : k == 1 ? (void *)primary
                                  : NULL) == 0);
  for (int k = 0; k < 3; k++)
    CHECK(pthread_join(threads[k], NULL) == 0);
  CHECK(cuda.cuCtxSetCurrent(mine) == 0);
  check_memory(in_mine);
  vpps_engine_close(model.engine);
  CHECK(current() == mine);
  check_memory(in_mine);
  CHECK(cuda.cuCtxSetCurrent(primary) == 0);
  check_memory(in_primary);
  model = open_model(); /* and again */
  work_in(primary);
  check_memory(in_primary);
  return 0;
}
