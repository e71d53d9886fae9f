/* After fork() the child is told so by every call; the parent goes on. */
#include "host.h"

#include <sys/wait.h>

int main(void) {
  Model m = open_model();
  vpps_graph *graph;
  Loss l;
  int status = -1;
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
  record_loss(&l, m.w, 3, 4);
  pid_t child = fork();
  if (child == 0) {
    float v;
    vpps_engine *engine;
    FAILS(VPPS_ERR_FORKED, "after fork", vpps_value(graph, &l.words, 3, &v, 1));
    FAILS(VPPS_ERR_FORKED, "after fork", vpps_engine_open(NULL, &engine));
    vpps_graph_destroy(graph);
    vpps_engine_close(m.engine);
    CHECK(strcmp(vpps_version(), "") != 0);
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  all_is_well(m);
  return 0;
}
