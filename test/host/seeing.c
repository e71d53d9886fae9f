/* A program sees what the library does: its function gets the log, cannot call back, and is let go
 * of; counters, memory and the machine are told as vpps.h says. */
#include "host.h"

#include <pthread.h>
#include <stdatomic.h>

static struct {
  atomic_int calls, inside;
  vpps_engine *engine;
  char text[1 << 20];
  size_t n;
} heard;

static void hear(void *data, vpps_log_level level, const char *line) {
  size_t n = strlen(line);
  CHECK(atomic_fetch_add(&heard.inside, 1) == 0); /* one line at a time */
  CHECK(data == &heard && (level == VPPS_LOG_INFO || level == VPPS_LOG_DEBUG));
  CHECK(n > 0 && strchr(line, '\n') == NULL);
  if (heard.engine) {
    vpps_statistics s = VPPS_STATISTICS_INIT;
    FAILS(VPPS_ERR_STATE, "vpps_set_log", vpps_engine_statistics(heard.engine, &s));
    FAILS(VPPS_ERR_STATE, "vpps_set_log", vpps_set_log(VPPS_LOG_OFF, NULL, NULL));
    vpps_engine_close(heard.engine); /* does nothing */
    CHECK(strstr(vpps_last_error(), "vpps_set_log") != NULL);
    CHECK(strcmp(vpps_version(), "0.1.0") == 0);
  }
  if (heard.n + n + 2 < sizeof heard.text) {
    memcpy(heard.text + heard.n, line, n);
    heard.n += n;
    heard.text[heard.n++] = '\n';
  }
  heard.calls++;
  heard.inside--;
}

static const char *report_of(vpps_engine *engine) {
  static char text[1 << 14];
  size_t needed = 0;
  CHECK(vpps_memory_report(engine, NULL, 0, &needed) == VPPS_OK);
  CHECK(needed > 100 && needed < sizeof text);
  CHECK(vpps_memory_report(engine, text, sizeof text, NULL) == VPPS_OK);
  return text;
}

static void train(vpps_handle *handle, vpps_graph *graph, Model m, int batches) {
  Loss l;
  float loss;
  for (int k = 0; k < batches; k++) {
    record_loss(&l, m.w, 1, 1);
    l.words.dim_count = k == 0 ? 2 : 0;
    CHECK(vpps_fb(handle, graph, &l.words, 3, NULL) == VPPS_OK);
    CHECK(vpps_graph_truncate(graph, 0) == VPPS_OK);
  }
  CHECK(vpps_sync_latest_loss(handle, &loss) == VPPS_OK);
}

static void counters(Model m, int on_gpu) {
  struct {
    vpps_statistics s;
    char room[64];
  } newer = {VPPS_STATISTICS_INIT, {0}};
  vpps_statistics s = VPPS_STATISTICS_INIT;
  CHECK(vpps_engine_statistics(m.engine, &s) == VPPS_OK);
  CHECK(s.batches == 5 && s.updates == 5 && s.failures == 0 && s.snapshots >= 2 && s.nodes >= 20);
  CHECK((s.kernels_compiled + s.kernels_cached > 0) == on_gpu);
  CHECK((s.compile_ns > 0) == (s.kernels_compiled > 0));
  CHECK((s.bytes_to_device > 0) == on_gpu && (s.bytes_from_device > 0) == on_gpu);
  CHECK(s.templates > 0 && s.instances > 0); // on a GPU, too: the profile names cells
  CHECK(s.loose_nodes <= s.instances && s.instances <= s.nodes * s.batches);
  /* A program of before these members. */
  memset(&s, 0xAB, sizeof s);
  s.struct_size = offsetof(vpps_statistics, updates);
  CHECK(vpps_engine_statistics(m.engine, &s) == VPPS_OK);
  CHECK(s.batches == 5 && s.updates == 0xABABABABABABABAB);
  newer.s.struct_size = sizeof newer;
  CHECK(vpps_engine_statistics(m.engine, &newer.s) == VPPS_OK && newer.s.updates == 5);
}

static void machine(int on_gpu) {
  char text[1 << 14], begin[20];
  size_t needed = 0;
  CHECK(vpps_system_report(NULL, 0, &needed) == VPPS_OK && needed > 100);
  CHECK(vpps_system_report(begin, sizeof begin, NULL) == VPPS_OK && strlen(begin) == 19);
  CHECK(vpps_system_report(text, sizeof text, NULL) == VPPS_OK);
  CHECK(strncmp(text, begin, 19) == 0);
  CHECK(strstr(text, "\ndriver: ") && strstr(text, "\nNVRTC: ") && strstr(text, "\ncache: ") &&
        strstr(text, "\ndevice: "));
  CHECK(!on_gpu || strstr(text, "\nGPU 0: "));
}

static void *set_often(void *data) {
  (void)data;
  for (int k = 0; k < 200; k++)
    CHECK(vpps_set_log((vpps_log_level)(k % 3), hear, &heard) == VPPS_OK);
  return NULL;
}

int main(void) {
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  vpps_handle *handle;
  vpps_graph *graph;
  pthread_t thread;
  char what[256];
  Model m;
  int on_gpu, calls;
  alarm(60); /* a call that is let in waits for itself */
  FAILS(VPPS_ERR_ARGUMENT, "VPPS_LOG_OFF", vpps_set_log((vpps_log_level)3, NULL, NULL));
  FAILS(VPPS_ERR_ARGUMENT, "VPPS_LOG_OFF", vpps_set_log((vpps_log_level)-1, NULL, NULL));
  CHECK(vpps_set_log(VPPS_LOG_INFO, hear, &heard) == VPPS_OK);

  options.device = getenv("VPPS_DEVICE");
  options.snapshot_batches = 2;
  options.profile = 1;
  CHECK(vpps_engine_open(&options, &m.engine) == VPPS_OK);
  heard.engine = m.engine;
  m = open_model(); /* the same engine */
  CHECK(vpps_engine_describe(m.engine, what, sizeof what) == VPPS_OK);
  on_gpu = strncmp(what, "cuda", 4) == 0;
  CHECK(vpps_handle_create(m.engine, &m.w, 1, NULL, &handle) == VPPS_OK);
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
  train(handle, graph, m, 5);
  CHECK(strstr(heard.text, "plan: 0 matrices") != NULL);
  CHECK(strstr(heard.text, "snapshot: after update 2: 8 bytes") != NULL);
  CHECK(!on_gpu || strstr(heard.text, "compile: a kernel without matrices: "));
  counters(m, on_gpu);
  CHECK(strstr(report_of(m.engine), on_gpu ? "\ndevice  parameters" : "\nhost    parameters"));
  CHECK(strstr(report_of(m.engine), "the snapshot of the parameters") != NULL);

  /* Nobody is called after the function was taken away; the engine knows no more of it. */
  CHECK(vpps_set_log(VPPS_LOG_OFF, NULL, NULL) == VPPS_OK);
  calls = heard.calls;
  train(handle, graph, m, 4);
  CHECK(heard.calls == calls);

  /* Set by one thread while another one trains. */
  heard.engine = NULL;
  CHECK(pthread_create(&thread, NULL, set_often, NULL) == 0);
  train(handle, graph, m, 50);
  CHECK(pthread_join(thread, NULL) == 0);

  /* At the end, at level debug, the profile and the memory. */
  CHECK(vpps_set_log(VPPS_LOG_DEBUG, hear, &heard) == VPPS_OK);
  machine(on_gpu);
  heard.n = 0;
  vpps_graph_destroy(graph);
  vpps_handle_destroy(handle);
  vpps_engine_close(m.engine);
  CHECK(strstr(heard.text, "memory: ") == NULL);
  vpps_engine_close(m.engine);
  CHECK(strstr(heard.text, "memory: ") != NULL && strstr(heard.text, "profile: ") != NULL);
  return 0;
}
