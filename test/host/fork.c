/* fork() before the first call of the library is allowed: parent and child both use it. A child
 * that is forked later is told so by every call, and its parent goes on. Loading the library starts
 * nothing, and the environment is read at the first call. */
#include "host.h"

#include <dirent.h>
#include <sys/wait.h>

static void wait_for(pid_t child) {
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int threads(void) {
  int n = 0;
  DIR *list = opendir("/proc/self/task");
  CHECK(list != NULL);
  for (struct dirent *d; (d = readdir(list)) != NULL;)
    n += d->d_name[0] != '.';
  closedir(list);
  return n;
}

static void before_the_first_call(void) {
  CHECK(threads() == 1);
  CHECK(vpps_frontend("a test") == VPPS_OK); /* needs no thread either */
  CHECK(threads() == 1);
  pid_t child = fork();
  if (child == 0) {
    alarm(20); /* instead of hanging */
    all_is_well(open_model());
    CHECK(threads() > 1);
    _exit(0);
  }
  wait_for(child);
  child = fork();
  if (child == 0) {
    alarm(20); /* instead of hanging */
    vpps_engine *engine;
    setenv("VPPS_TRACE", "/no such folder/trace", 1);
    FAILS(VPPS_ERR_IO, "/no such folder/trace", vpps_engine_open(NULL, &engine));
    _exit(0);
  }
  wait_for(child);
}

static void after_it(Model m) {
  vpps_graph *graph;
  Loss l;
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
  record_loss(&l, m.w, 3, 4);
  pid_t child = fork();
  if (child == 0) {
    alarm(20); /* instead of hanging */
    float v;
    vpps_engine *engine;
    FAILS(VPPS_ERR_FORKED, "Fork before", vpps_value(graph, &l.words, 3, &v, 1));
    FAILS(VPPS_ERR_FORKED, "Fork before", vpps_engine_open(NULL, &engine));
    vpps_graph_destroy(graph);
    vpps_engine_close(m.engine);
    CHECK(strcmp(vpps_version(), "") != 0);
    _exit(0);
  }
  wait_for(child);
}

int main(void) {
  before_the_first_call();
  Model m = open_model();
  after_it(m);
  all_is_well(m);
  return 0;
}
