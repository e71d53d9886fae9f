/* Checkpoints through the C ABI: what is saved comes back with the program's blobs; wrong
 * arguments, a full disk and foreign files are errors that change nothing. */
#include "host.h"

#include <signal.h>
#include <sys/resource.h>

static char path[300], temporary[310];

/* The bytes of the file. */
static size_t bytes(char *to, size_t capacity) {
  FILE *f = fopen(path, "rb");
  CHECK(f != NULL);
  const size_t n = fread(to, 1, capacity, f);
  fclose(f);
  return n;
}

typedef struct Training {
  Model m;
  vpps_trainer *trainer;
  vpps_handle *handle;
  vpps_checkpoint_contents contents;
} Training;

static void begin(Training *t) {
  vpps_trainer_options options = VPPS_TRAINER_OPTIONS_INIT;
  const vpps_checkpoint_contents init = VPPS_CHECKPOINT_CONTENTS_INIT;
  options.rule = VPPS_RULE_ADAM;
  t->m = open_model();
  CHECK(vpps_trainer_create(t->m.engine, &options, &t->m.w, 1, &t->trainer) == VPPS_OK);
  CHECK(vpps_handle_create(t->m.engine, &t->m.w, 1, t->trainer, &t->handle) == VPPS_OK);
  t->contents = init;
  t->contents.ids = &t->m.w;
  t->contents.trainers = &t->trainer;
  t->contents.handles = &t->handle;
  t->contents.id_count = t->contents.trainer_count = t->contents.handle_count = 1;
}

static void train(Training *t, int batches, float values[2]) {
  for (int k = 0; k < batches; k++) {
    Loss loss;
    vpps_graph *graph;
    float stale;
    record_loss(&loss, t->m.w, 1, (float)k);
    CHECK(vpps_graph_create(t->m.engine, &graph) == VPPS_OK);
    CHECK(vpps_fb(t->handle, graph, &loss.words, 3, &stale) == VPPS_OK);
    vpps_graph_destroy(graph);
  }
  CHECK(vpps_parameter_read(t->m.engine, t->m.w, VPPS_VALUES, 0, 2, values) == VPPS_OK);
}

static void goes_on(Training *t) {
  static const vpps_blob blobs[] = {{"position", "17", 2}, {"none", NULL, 0}};
  vpps_checkpoint *c;
  float want[2], got[2];
  char text[8];
  uint64_t size;
  train(t, 3, want);
  t->contents.blobs = blobs;
  t->contents.blob_count = 2;
  CHECK(vpps_checkpoint_save(t->m.engine, path, &t->contents) == VPPS_OK);
  CHECK(access(temporary, F_OK) != 0);
  train(t, 4, want);
  CHECK(vpps_checkpoint_open(path, &c) == VPPS_OK);
  CHECK(vpps_checkpoint_blob(c, "position", text, sizeof text, &size) == VPPS_OK);
  CHECK(size == 2 && !memcmp(text, "17", 2));
  CHECK(vpps_checkpoint_blob(c, "position", NULL, 0, &size) == VPPS_OK && size == 2);
  CHECK(vpps_checkpoint_blob(c, "none", NULL, 0, &size) == VPPS_OK && size == 0);
  FAILS(VPPS_ERR_ARGUMENT, "no blob \"other\"", vpps_checkpoint_blob(c, "other", text, 8, &size));
  FAILS(VPPS_ERR_ARGUMENT, "pass a buffer", vpps_checkpoint_blob(c, "none", NULL, 8, &size));
  CHECK(vpps_checkpoint_load(c, t->m.engine, &t->contents) == VPPS_OK);
  train(t, 4, got);
  CHECK(!memcmp(want, got, sizeof want));
  CHECK(vpps_checkpoint_load(c, t->m.engine, &t->contents) == VPPS_OK); /* as often as one likes */
  vpps_checkpoint_close(c);
  vpps_checkpoint_close(NULL);
  FAILS(VPPS_ERR_ARGUMENT, "no checkpoint", vpps_checkpoint_load(c, t->m.engine, &t->contents));
}

static void a_full_disk(Training *t) {
  static char before[100000], after[100000];
  struct rlimit all, few;
  const size_t n = bytes(before, sizeof before);
  signal(SIGXFSZ, SIG_IGN);
  CHECK(getrlimit(RLIMIT_FSIZE, &all) == 0);
  few = all;
  few.rlim_cur = n / 2;
  CHECK(setrlimit(RLIMIT_FSIZE, &few) == 0);
  FAILS(VPPS_ERR_IO, "file too large", vpps_checkpoint_save(t->m.engine, path, &t->contents));
  CHECK(strstr(vpps_last_error(), path) != NULL);
  CHECK(setrlimit(RLIMIT_FSIZE, &all) == 0);
  CHECK(bytes(after, sizeof after) == n && !memcmp(before, after, n));
  CHECK(access(temporary, F_OK) != 0);
  CHECK(vpps_checkpoint_save(t->m.engine, path, &t->contents) == VPPS_OK);
}

static void wrong_arguments(Training *t) {
  vpps_engine *e = t->m.engine;
  vpps_checkpoint_contents bad = t->contents;
  const vpps_blob nameless = {NULL, "", 0};
  vpps_checkpoint *c;
  vpps_trainer *gone = (vpps_trainer *)t->handle;
  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_checkpoint_save(e, NULL, &bad));
  FAILS(VPPS_ERR_ARGUMENT, "NULL", vpps_checkpoint_save(e, path, NULL));
  FAILS(VPPS_ERR_IO, "/nowhere/x", vpps_checkpoint_save(e, "/nowhere/x", &bad));
  FAILS(VPPS_ERR_IO, "/nowhere/x", vpps_checkpoint_open("/nowhere/x", &c));
  FAILS(VPPS_ERR_IO, "no ordinary file", vpps_checkpoint_open("/dev/zero", &c));
  FAILS(VPPS_ERR_IO, "no checkpoint", vpps_checkpoint_open("/proc/self/exe", &c));
#define REFUSED(words, change)                                                                     \
  do {                                                                                             \
    bad = t->contents;                                                                             \
    change;                                                                                        \
    FAILS(VPPS_ERR_ARGUMENT, words, vpps_checkpoint_save(e, path, &bad));                          \
  } while (0)
  REFUSED("struct_size", bad.struct_size = 0);
  REFUSED("NULL", bad.ids = NULL);
  REFUSED("no parameter 99", bad.ids = (const uint32_t[]){99});
  REFUSED("not among those", bad.id_count = 0);
  REFUSED("no trainer", bad.trainers = &gone);
  REFUSED("too many", bad.trainer_count = (size_t)-1);
  REFUSED("blob 0", (bad.blobs = &nameless, bad.blob_count = 1));
}

int main(void) {
  Training t;
  const char *folder = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/host_checkpoint_%d", folder ? folder : "/tmp", (int)getpid());
  snprintf(temporary, sizeof temporary, "%s.tmp", path);
  begin(&t);
  goes_on(&t);
  a_full_disk(&t);
  wrong_arguments(&t);
  vpps_handle_destroy(t.handle);
  vpps_trainer_destroy(t.trainer);
  vpps_engine_close(t.m.engine);
  unlink(path);
  return 0;
}
