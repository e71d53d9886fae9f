/* The machine fails: no memory on the GPU, no compiler, no place for the cache, a device that is
 * lost. Each is a clear status, parameters are as before, and the process lives. The driver and
 * NVRTC are stand-ins (gpu/testdata/fakecuda) that fail when the environment says so. */
#include "../host/again.h"
#include "../host/host.h"

/* function:code makes the driver fail from now on, "" ends it. */
static void driver_fails(const char *how) { setenv("VPPS_FAKE_FAIL", how, 1); }

static void read_w(Model m, float w[2]) {
  CHECK(vpps_parameter_read(m.engine, m.w, VPPS_VALUES, 0, 2, w) == VPPS_OK);
}

/* A graph with an input of a million words: a script that no buffer has room for yet. */
static float many_inputs[1 << 20];
static void record_much(Loss *l, uint32_t w) {
  record_loss(l, w, 3, 4);
  many_inputs[0] = 3;
  many_inputs[1] = 4;
  l->words.inputs = (const uint32_t *)many_inputs;
  l->words.input_words = 1 << 20;
}

static void memory_is_exhausted(void) {
  static const vpps_dim big = {1, 1, {1 << 22}};
  Model m = open_model();
  vpps_handle *handle;
  vpps_graph *graph;
  Loss l;
  uint32_t id;
  float v, loss;
  for (int slot = 0; slot < 10; slot++) /* persist/cuda.Slots pinned buffers */
    all_is_well(m);
  CHECK(vpps_handle_create(m.engine, &m.w, 1, NULL, &handle) == VPPS_OK);
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);

  driver_fails("cuMemAlloc_v2:2");
  FAILS(VPPS_ERR_MEMORY, "parameter \"/big\"",
        vpps_parameter_create(m.engine, m.collection, "/big", &big, 0, NULL, &id));
  CHECK(strstr(vpps_last_error(), " bytes needed, 1000 of 1073741824 free") != NULL);
  CHECK(strstr(vpps_last_error(), "use smaller batches or a smaller model") != NULL);
  FAILS(VPPS_ERR_MEMORY, "",
        vpps_parameter_create(m.engine, m.collection, "/big", &big, VPPS_PARAMETER_LOOKUP, NULL,
                              &id));
  record_much(&l, m.w);
  FAILS(VPPS_ERR_MEMORY, "OUT_OF_MEMORY", vpps_forward(graph, &l.words, 3, 1));
  FAILS(VPPS_ERR_MEMORY, "OUT_OF_MEMORY", vpps_value(graph, &l.words, 3, &v, 1));
  FAILS(VPPS_ERR_MEMORY, "OUT_OF_MEMORY", vpps_backward(graph, &l.words, 3, 0));
  all_is_well(m);                   /* what needs no more goes on */
  driver_fails("cuMemHostAlloc:2"); /* pinned memory */
  FAILS(VPPS_ERR_MEMORY, "pinned", vpps_forward(graph, &l.words, 3, 1));
  all_is_well(m);

  /* fb tells of it by a later call, with the batch. */
  CHECK(vpps_fb(handle, graph, &l.words, 3, NULL) == VPPS_OK);
  FAILS(VPPS_ERR_MEMORY, "batch 1", vpps_sync_latest_loss(handle, &loss));
  all_is_well(m);
  driver_fails("");
  vpps_graph_destroy(graph);
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
  record_much(&l, m.w);
  CHECK(vpps_fb(handle, graph, &l.words, 3, NULL) == VPPS_OK);
  CHECK(vpps_sync_latest_loss(handle, &loss) == VPPS_OK && loss == 11);
}

static void launches_are_refused(void) {
  Model m = open_model();
  vpps_handle *handle;
  vpps_graph *graph;
  Loss l;
  float loss, v;
  CHECK(vpps_handle_create(m.engine, &m.w, 1, NULL, &handle) == VPPS_OK);
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
  record_loss(&l, m.w, 3, 4);
  driver_fails("cuLaunchCooperativeKernel:720");
  FAILS(VPPS_ERR_DEVICE, "use fewer blocks", vpps_value(graph, &l.words, 3, &v, 1));
  CHECK(vpps_fb(handle, graph, &l.words, 3, NULL) == VPPS_OK);
  FAILS(VPPS_ERR_DEVICE, "batch 1", vpps_sync_latest_loss(handle, &loss));
  driver_fails("");
  all_is_well(m);
}

/* A stand-in that was built with another instruction set would interpret a script as another one,
 * and leave a wrong value. */
static void scripts_are_of_another_instruction_set(void) {
  Model m = open_model();
  vpps_graph *graph;
  Loss l;
  float v;
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
  record_loss(&l, m.w, 3, 4);
  setenv("VPPS_FAKE_MAGIC", "0x31535056", 1);
  FAILS(VPPS_ERR_DEVICE, "another instruction set", vpps_value(graph, &l.words, 3, &v, 1));
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

/* Everything that a program may still call. */
static void every_call_says_so(Model m, vpps_handle *handle, vpps_graph *graph) {
  Loss l;
  float v[2], *where;
  uint64_t n;
  uint32_t id;
  vpps_handle *another;
  int all;
  record_loss(&l, m.w, 3, 4);
  l.words.dim_count = 0;
  FAILS(VPPS_ERR_DEVICE, "cannot go on", vpps_fb(handle, graph, &l.words, 3, v));
  FAILS(VPPS_ERR_DEVICE, "cannot go on", vpps_forward(graph, &l.words, 3, 1));
  FAILS(VPPS_ERR_DEVICE, "cannot go on", vpps_value(graph, &l.words, 3, v, 1));
  FAILS(VPPS_ERR_DEVICE, "cannot go on", vpps_backward(graph, &l.words, 3, 0));
  FAILS(VPPS_ERR_DEVICE, "cannot go on", vpps_sync_latest_loss(handle, v));
  FAILS(VPPS_ERR_DEVICE, "cannot go on", vpps_handle_clips(handle, &n));
  FAILS(VPPS_ERR_DEVICE, "cannot go on", vpps_update(vpps_handle_trainer(handle), NULL));
  FAILS(VPPS_ERR_DEVICE, "cannot go on", vpps_handle_create(m.engine, &m.w, 1, NULL, &another));
  FAILS(VPPS_ERR_DEVICE, "cannot go on",
        vpps_parameter_create(m.engine, m.collection, "/x", &model_dims[1], 0, NULL, &id));
  FAILS(VPPS_ERR_DEVICE, "cannot go on", vpps_parameter_write(m.engine, m.w, VPPS_VALUES, 0, 2, v));
  FAILS(VPPS_ERR_DEVICE, "cannot go on", vpps_parameter_scale(m.engine, m.w, VPPS_VALUES, 2));
  FAILS(VPPS_ERR_DEVICE, "cannot go on",
        vpps_parameter_read(m.engine, m.w, VPPS_GRADIENT, 0, 2, v));
  FAILS(VPPS_ERR_DEVICE, "cannot go on", vpps_parameter_expose(m.engine, m.w, VPPS_VALUES, &where));
  FAILS(VPPS_ERR_DEVICE, "cannot go on", vpps_parameter_touched(m.engine, m.w, NULL, 0, &n, &all));
}

static void the_device_is_lost(int snapshots) {
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  vpps_engine *cpu;
  vpps_handle *handle;
  vpps_graph *graph;
  Model m, other;
  Loss l;
  float w[2] = {0}, factor = 0, v;
  options.device = "cuda";
  options.snapshot_batches = snapshots ? 2 : 0;
  CHECK(vpps_engine_open(&options, &m.engine) == VPPS_OK);
  m = open_model(); /* the same engine */
  CHECK(vpps_handle_create(m.engine, &m.w, 1, NULL, &handle) == VPPS_OK);
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
  train(handle, graph, m, 5); /* the snapshot is of after 4 updates */
  options.device = "cpu";
  CHECK(vpps_engine_open(&options, &cpu) == VPPS_OK);

  driver_fails("cuLaunchCooperativeKernel:700!");
  record_loss(&l, m.w, 1, 1);
  l.words.dim_count = 0;
  FAILS(VPPS_ERR_DEVICE, snapshots ? "after update 4" : "VPPS_SNAPSHOT_BATCHES",
        vpps_value(graph, &l.words, 3, &v, 1));
  driver_fails("");
  every_call_says_so(m, handle, graph);
  if (snapshots) {
    read_w(m, w);
    CHECK(w[0] > 1 - 0.401f && w[0] < 1 - 0.399f && w[1] > 2 - 0.401f && w[1] < 2 - 0.399f);
    CHECK(vpps_collection_factor(m.engine, m.collection, &factor) == VPPS_OK && factor == 1);
  } else {
    FAILS(VPPS_ERR_DEVICE, "cannot go on",
          vpps_parameter_read(m.engine, m.w, VPPS_VALUES, 0, 2, w));
  }
  vpps_handle_destroy(handle);
  vpps_graph_destroy(graph);
  vpps_engine_close(m.engine);

  /* The process goes on, on another device. */
  setenv("VPPS_DEVICE", "cpu", 1);
  other = open_model();
  CHECK(other.engine == cpu);
  all_is_well(other);
}

/* A graph of one engine is no graph of another one's handle. */
static void engines_are_two(void) {
  Model gpu = open_model(), cpu;
  vpps_handle *handle, *another;
  vpps_graph *graph;
  Loss l;
  float v;
  setenv("VPPS_DEVICE", "cpu", 1);
  cpu = open_model();
  CHECK(gpu.engine != cpu.engine);
  CHECK(vpps_graph_create(cpu.engine, &graph) == VPPS_OK);
  CHECK(vpps_handle_create(gpu.engine, &gpu.w, 1, NULL, &handle) == VPPS_OK);
  record_loss(&l, cpu.w, 3, 4);
  FAILS(VPPS_ERR_ARGUMENT, "another engine", vpps_fb(handle, graph, &l.words, 3, &v));
  FAILS(VPPS_ERR_ARGUMENT, "another engine", vpps_handle_keep(handle, graph, NULL, 0));
  FAILS(VPPS_ERR_ARGUMENT, "another engine",
        vpps_handle_create(cpu.engine, &cpu.w, 1, vpps_handle_trainer(handle), &another));
  all_is_well(gpu);
  all_is_well(cpu);
}

/* The library finds no compiler: "cuda" is an error, "auto" the CPU, which says why. */
static void no_compiler(void) {
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  vpps_engine *engine;
  char text[1024];
  options.device = "cuda";
  FAILS(VPPS_ERR_UNSUPPORTED, "VPPS_NVRTC", vpps_engine_open(&options, &engine));
  CHECK(strstr(vpps_last_error(), "/nowhere/libnvrtc.so") != NULL);
  options.device = "auto";
  CHECK(vpps_engine_open(&options, &engine) == VPPS_OK);
  CHECK(vpps_engine_describe(engine, text, sizeof text) == VPPS_OK);
  CHECK(strncmp(text, "cpu: ", 5) == 0);
  CHECK(strstr(text, "; not device cuda:0: no usable NVRTC") != NULL);
  CHECK(strchr(text, '\n') == NULL);
  setenv("VPPS_DEVICE", "auto", 1);
  all_is_well(open_model());
}

static void no_driver(void) {
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  vpps_engine *engine;
  options.device = "cuda";
  FAILS(VPPS_ERR_UNSUPPORTED, "/nowhere/libcuda.so", vpps_engine_open(&options, &engine));
  CHECK(strstr(vpps_last_error(), "install the driver, or run on the CPU") != NULL);
  setenv("VPPS_DEVICE", "auto", 1);
  all_is_well(open_model());
}

static char *report(vpps_handle *handle) {
  size_t needed;
  char *text;
  CHECK(vpps_plan_report(handle, NULL, 0, &needed) == VPPS_OK);
  text = malloc(needed);
  CHECK(text != NULL && vpps_plan_report(handle, text, needed, NULL) == VPPS_OK);
  return text;
}

/* A program works without a cache, and can be told that it has none. */
static void no_cache(int works) {
  Model m = open_model();
  vpps_handle *handle;
  CHECK(vpps_handle_create(m.engine, &m.w, 1, NULL, &handle) == VPPS_OK);
  CHECK((strstr(report(handle), "set VPPS_CACHE_DIR to a folder that can be written") == NULL) ==
        works);
  all_is_well(m);
}

/* What the compiler refuses is an error of whoever needs the kernel, until it does not. */
static void the_kernel_does_not_compile(void) {
  Model m = open_model();
  vpps_handle *handle;
  float w[2];
  driver_fails("nvrtcCompileProgram:6");
  for (int k = 0; k < 2; k++)
    FAILS(VPPS_ERR_UNSUPPORTED, "the kernel does not compile",
          vpps_handle_create(m.engine, &m.w, 1, NULL, &handle));
  CHECK(strstr(vpps_last_error(), "as the fake compiler was told") != NULL);
  read_w(m, w);
  CHECK(w[0] == 1 && w[1] == 2);
  driver_fails("");
  CHECK(vpps_handle_create(m.engine, &m.w, 1, NULL, &handle) == VPPS_OK);
  all_is_well(m);
}

int main(int argc, char **argv) {
  const char *task = argc > 1 ? argv[1] : "";
  char folder[] = "/tmp/vpps-cache-XXXXXX", file[100];
  if (strcmp(task, "memory") == 0)
    memory_is_exhausted();
  else if (strcmp(task, "refused") == 0)
    launches_are_refused();
  else if (strcmp(task, "instructions") == 0)
    scripts_are_of_another_instruction_set();
  else if (strcmp(task, "lost") == 0)
    the_device_is_lost(0);
  else if (strcmp(task, "lost with snapshots") == 0)
    the_device_is_lost(1);
  else if (strcmp(task, "two") == 0)
    engines_are_two();
  else if (strcmp(task, "no compiler") == 0)
    no_compiler();
  else if (strcmp(task, "no driver") == 0)
    no_driver();
  else if (strcmp(task, "a cache") == 0)
    no_cache(1);
  else if (strcmp(task, "no cache") == 0)
    no_cache(0);
  else if (strcmp(task, "no kernel") == 0)
    the_kernel_does_not_compile();
  if (argc > 1)
    return 0;

  CHECK(mkdtemp(folder) != NULL);
  setenv("VPPS_DEVICE", "cuda", 1);
  setenv("VPPS_CACHE_DIR", folder, 1);
  again(argv[0], "no kernel", "VPPS_CACHE_DIR", folder);
  again(argv[0], "memory", "VPPS_CACHE_DIR", folder);
  again(argv[0], "refused", "VPPS_CACHE_DIR", folder);
  again(argv[0], "instructions", "VPPS_CACHE_DIR", folder);
  again(argv[0], "lost", "VPPS_CACHE_DIR", folder);
  again(argv[0], "lost with snapshots", "VPPS_CACHE_DIR", folder);
  again(argv[0], "two", "VPPS_CACHE_DIR", folder);
  again(argv[0], "a cache", "VPPS_CACHE_DIR", folder);
  again(argv[0], "no compiler", "VPPS_NVRTC", "/nowhere/libnvrtc.so.12");
  again(argv[0], "no driver", "VPPS_LIBCUDA", "/nowhere/libcuda.so.1");
  snprintf(file, sizeof file, "%s/file", folder);
  CHECK(fclose(fopen(file, "w")) == 0);
  strcat(file, "/below");
  again(argv[0], "no cache", "VPPS_CACHE_DIR", file);
  snprintf(file, sizeof file, "rm -r %s", folder);
  return system(file);
}
