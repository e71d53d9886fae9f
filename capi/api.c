/* The functions of vpps.h: each checks that this process is not a forked child and that what
 * must not be NULL is not, and calls the Go export of the same name. */
#include "vpps.h"
#include "enter.h"
#include "errors.h"
#include "structs.h"
#include "float_environment.h"

#include "_cgo_export.h"
#include <stdint.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

/* The last error of a thread, allocated at its first. Not a __thread array: Go's runtime makes all
 * thread-local memory of the library static, of which dlopen grants little. */
enum { ERROR_SIZE = 2048 };
static pthread_key_t last_error,
    logging; /* logging: the thread is in the function of vpps_set_log */
__attribute__((constructor)) static void make_keys(void) {
  pthread_key_create(&last_error, free);
  pthread_key_create(&logging, NULL);
}

void vpps_set_error(const char *text, size_t n) {
  char *p = pthread_getspecific(last_error);
  if (!p) {
    p = calloc(1, ERROR_SIZE);
    if (!p || pthread_setspecific(last_error, p)) {
      free(p);
      return;
    }
  }
  if (n >= ERROR_SIZE)
    n = ERROR_SIZE - 1;
  memcpy(p, text, n);
  p[n] = 0;
  for (; *p; p++)
    if (*p == '\n')
      *p = ' ';
}

static vpps_status error(vpps_status status, const char *text) {
  vpps_set_error(text, strlen(text));
  return status;
}

static vpps_status check(const void *const *must, size_t n, const char *function) {
  if (vpps_forked())
    return error(
        VPPS_ERR_FORKED,
        "called in a forked child of a process that had used libvpps: its threads are not here. "
        "Fork before the first call of libvpps, or exec a new program");
  if (pthread_getspecific(logging))
    return error(VPPS_ERR_STATE, "called from the function of vpps_set_log: note the line there, "
                                 "and call libvpps when the function has returned");
  for (size_t i = 0; i < n; i++)
    if (!must[i]) {
      char text[160];
      snprintf(text, sizeof text, "%s: argument %zu that must not be NULL is", function, i + 1);
      return error(VPPS_ERR_ARGUMENT, text);
    }
  return VPPS_OK;
}
static vpps_status enter(const void *const *must, size_t n, const char *function) {
  vpps_status s = check(must, n, function);
  if (!s && (vpps_start_go() || vpps_signal_stack()))
    return error(VPPS_ERR_MEMORY,
                 "no memory to start Go or for this thread's signal stack: free some, call again");
  return s;
}
static int entered(const void *object) { return object && !enter(NULL, 0, ""); }

/* ENTER(pointers that must not be NULL): Go may be called after it. CHECK: without Go. */
#define UNLESS_OK(f, ...)                                                                          \
  do {                                                                                             \
    const void *must_[] = {__VA_ARGS__};                                                           \
    vpps_status s_ = f(must_, sizeof must_ / sizeof *must_, __func__);                             \
    if (s_)                                                                                        \
      return s_;                                                                                   \
  } while (0)
#define ENTER(...)                                                                                 \
  DEFAULT_FLOATS;                                                                                  \
  UNLESS_OK(enter, __VA_ARGS__)
#define CHECK(...) UNLESS_OK(check, __VA_ARGS__)

/* Checks a struct's size, which the macro init sets. */
static vpps_status check_size(uint32_t size, const vpps_member *members, size_t n,
                              const char *function, const char *init) {
  char text[200];
  if (vpps_size_set(size) && vpps_size_whole(size, members, n))
    return VPPS_OK;
  snprintf(text, sizeof text, "%s: struct_size %u %s: start from %s", function, (unsigned)size,
           vpps_size_set(size) ? "ends inside a member" : "is not set", init);
  return error(VPPS_ERR_ARGUMENT, text);
}
/* CHECK_SIZE(size, the struct's name, its macro) */
#define CHECK_SIZE(size, type, init)                                                               \
  do {                                                                                             \
    vpps_status s_ = check_size(size, type##_members, sizeof type##_members / sizeof(vpps_member), \
                                __func__, init);                                                   \
    if (s_)                                                                                        \
      return s_;                                                                                   \
  } while (0)

#define H(p) ((uintptr_t)(p))

PUBLIC const char *vpps_version(void) { return "0.1.0"; }
PUBLIC const char *vpps_last_error(void) {
  const char *p = pthread_getspecific(last_error);
  return p ? p : "";
}
PUBLIC const char *vpps_build_info(void) {
  DEFAULT_FLOATS;
  static char text[256];
  if (!text[0] && entered(text))
    goBuildInfo(text, sizeof text);
  return text;
}

PUBLIC vpps_status vpps_frontend(const char *kind) {
  static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
  static char mine[101];
  CHECK(kind);
  if (!*kind || strlen(kind) >= sizeof mine)
    return error(VPPS_ERR_ARGUMENT,
                 "vpps_frontend: kind has 1 to 100 bytes: pass VPPS_FRONTEND_BUNDLED");
  pthread_mutex_lock(&one_at_a_time);
  if (!*mine)
    strcpy(mine, kind);
  int same = !strcmp(mine, kind);
  pthread_mutex_unlock(&one_at_a_time);
  if (same)
    return VPPS_OK;
  char text[640];
  snprintf(text, sizeof text,
           "this process uses two front-ends: first %s, now %s. Their classes have the same names "
           "and are not the same: compile and link all of the program with one of them",
           mine, kind);
  return error(VPPS_ERR_STATE, text);
}

/* Called by Go for each line. The function is the host's: it may turn the thread's signal stack off
 * or round otherwise. Go goes on after it with what it had. */
void vpps_log_line(vpps_log_function function, void *data, int level, const char *line) {
  stack_t before, after;
  const int known = sigaltstack(NULL, &before) == 0;
  pthread_setspecific(logging, line);
  function(data, (vpps_log_level)level, line);
  pthread_setspecific(logging, NULL);
  if (known && sigaltstack(NULL, &after) == 0 &&
      (after.ss_sp != before.ss_sp || after.ss_flags != before.ss_flags))
    sigaltstack(&before, NULL);
  default_floats();
}
PUBLIC vpps_status vpps_set_log(vpps_log_level level, vpps_log_function function, void *data) {
  ENTER(&level);
  if ((int)level < VPPS_LOG_OFF || (int)level > VPPS_LOG_DEBUG)
    return error(VPPS_ERR_ARGUMENT,
                 "vpps_set_log: the level is VPPS_LOG_OFF, VPPS_LOG_INFO or VPPS_LOG_DEBUG");
  return goSetLog(level, function, data);
}
PUBLIC vpps_status vpps_system_report(char *text, size_t size, size_t *needed) {
  ENTER(&size);
  return goSystemReport(text, size, needed);
}
PUBLIC vpps_status vpps_engine_open(const vpps_engine_options *o, vpps_engine **out) {
  static const vpps_engine_options defaults = VPPS_ENGINE_OPTIONS_INIT;
  ENTER(out);
  vpps_engine_options mine = defaults;
  if (o) {
    CHECK_SIZE(o->struct_size, vpps_engine_options, "VPPS_ENGINE_OPTIONS_INIT");
    memcpy(&mine, o, o->struct_size < sizeof mine ? o->struct_size : sizeof mine);
  }
  uintptr_t h = 0;
  vpps_status s = goEngineOpen(&mine, &h);
  *out = (vpps_engine *)h;
  return s;
}
PUBLIC void vpps_engine_close(vpps_engine *e) {
  DEFAULT_FLOATS;
  if (entered(e))
    goEngineClose(H(e));
}
PUBLIC vpps_status vpps_engine_describe(vpps_engine *e, char *text, size_t size) {
  ENTER(e, text);
  return goEngineDescribe(H(e), text, size);
}
PUBLIC vpps_status vpps_engine_seed(vpps_engine *e, uint32_t seed) {
  ENTER(e);
  return goEngineSeed(H(e), seed);
}
PUBLIC vpps_status vpps_engine_statistics(vpps_engine *e, vpps_statistics *to) {
  ENTER(e, to);
  CHECK_SIZE(to->struct_size, vpps_statistics, "VPPS_STATISTICS_INIT");
  vpps_statistics s = VPPS_STATISTICS_INIT;
  vpps_status r = goEngineStatistics(H(e), &s);
  uint32_t size = to->struct_size;
  if (size > sizeof s)
    size = sizeof s;
  s.struct_size = to->struct_size;
  if (!r && size > sizeof(uint32_t))
    memcpy(to, &s, size);
  return r;
}

PUBLIC vpps_status vpps_engine_times(vpps_engine *e, vpps_times *to) {
  ENTER(e, to);
  CHECK_SIZE(to->struct_size, vpps_times, "VPPS_TIMES_INIT");
  vpps_times t = VPPS_TIMES_INIT;
  vpps_status r = goEngineTimes(H(e), &t);
  t.struct_size = to->struct_size;
  if (!r)
    memcpy(to, &t, to->struct_size < sizeof t ? to->struct_size : sizeof t);
  return r;
}
PUBLIC vpps_status vpps_clock_table(vpps_engine *e, char *text, size_t size, size_t *needed) {
  ENTER(e);
  return goClockTable(H(e), text, size, needed);
}

PUBLIC vpps_status vpps_collection_create(vpps_engine *e, float lambda, uint32_t *c) {
  ENTER(e, c);
  return goCollectionCreate(H(e), lambda, c);
}
PUBLIC vpps_status vpps_collection_set_lambda(vpps_engine *e, uint32_t c, float lambda) {
  ENTER(e);
  return goCollectionSetLambda(H(e), c, lambda);
}
PUBLIC vpps_status vpps_collection_factor(vpps_engine *e, uint32_t c, float *factor) {
  ENTER(e, factor);
  return goCollectionFactor(H(e), c, factor);
}
PUBLIC vpps_status vpps_collection_set_factor(vpps_engine *e, uint32_t c, float factor) {
  ENTER(e);
  return goCollectionSetFactor(H(e), c, factor);
}

PUBLIC vpps_status vpps_parameter_create(vpps_engine *e, uint32_t c, const char *name,
                                         const vpps_dim *dim, uint32_t flags, const float *values,
                                         uint32_t *id) {
  ENTER(e, dim, id);
  return goParameterCreate(H(e), c, name, dim, flags, values, id);
}
PUBLIC vpps_status vpps_parameter_destroy(vpps_engine *e, uint32_t id) {
  ENTER(e);
  return goParameterDestroy(H(e), id);
}
PUBLIC vpps_status vpps_parameter_read(vpps_engine *e, uint32_t id, vpps_part part, uint64_t offset,
                                       uint64_t count, float *to) {
  ENTER(e, to);
  return goParameterRead(H(e), id, part, offset, count, to);
}
PUBLIC vpps_status vpps_parameter_write(vpps_engine *e, uint32_t id, vpps_part part,
                                        uint64_t offset, uint64_t count, const float *from) {
  ENTER(e, from);
  return goParameterWrite(H(e), id, part, offset, count, from);
}
PUBLIC vpps_status vpps_parameter_scale(vpps_engine *e, uint32_t id, vpps_part part, float factor) {
  ENTER(e);
  return goParameterScale(H(e), id, part, factor);
}
PUBLIC vpps_status vpps_parameter_expose(vpps_engine *e, uint32_t id, vpps_part part,
                                         float **values) {
  ENTER(e, values);
  return goParameterExpose(H(e), id, part, values);
}
PUBLIC vpps_status vpps_parameter_set_updated(vpps_engine *e, uint32_t id, int updated) {
  ENTER(e);
  return goParameterSetUpdated(H(e), id, updated);
}
PUBLIC vpps_status vpps_parameter_touched(vpps_engine *e, uint32_t id, uint32_t *rows,
                                          uint64_t capacity, uint64_t *count, int *all) {
  ENTER(e, count, all);
  return goParameterTouched(H(e), id, rows, capacity, count, all);
}
PUBLIC vpps_status vpps_parameter_memory(vpps_engine *e, uint32_t id, float **values) {
  ENTER(e, values);
  return goParameterMemory(H(e), id, values);
}
PUBLIC vpps_status vpps_parameter_gradient_memory(vpps_engine *e, uint32_t id, int share,
                                                  float **gradient) {
  ENTER(e, gradient);
  return goParameterGradientMemory(H(e), id, share, gradient);
}
PUBLIC vpps_status vpps_parameter_set_touched(vpps_engine *e, uint32_t id, const uint32_t *rows,
                                              uint64_t count, int all) {
  ENTER(e);
  return goParameterSetTouched(H(e), id, rows, count, all);
}

PUBLIC vpps_status vpps_graph_create(vpps_engine *e, vpps_graph **out) {
  ENTER(e, out);
  uintptr_t h = 0;
  vpps_status s = goGraphCreate(H(e), &h);
  *out = (vpps_graph *)h;
  return s;
}
PUBLIC void vpps_graph_destroy(vpps_graph *g) {
  DEFAULT_FLOATS;
  if (entered(g))
    goGraphDestroy(H(g));
}
PUBLIC vpps_status vpps_forward(vpps_graph *g, const vpps_words *w, uint32_t node, int restart) {
  ENTER(g);
  return goForward(H(g), w, node, restart);
}
PUBLIC vpps_status vpps_value(vpps_graph *g, const vpps_words *w, uint32_t node, float *to,
                              size_t count) {
  ENTER(g, to);
  return goValue(H(g), w, node, to, count);
}
PUBLIC vpps_status vpps_backward(vpps_graph *g, const vpps_words *w, uint32_t node, int full) {
  ENTER(g);
  return goBackward(H(g), w, node, full);
}
PUBLIC vpps_status vpps_node_gradients(vpps_graph *g, const vpps_words *w, uint32_t node) {
  ENTER(g);
  return goNodeGradients(H(g), w, node);
}
PUBLIC vpps_status vpps_gradient(vpps_graph *g, uint32_t node, float *to, size_t count) {
  ENTER(g, to);
  return goGradient(H(g), node, to, count);
}
PUBLIC vpps_status vpps_infer(vpps_graph *g, const vpps_words *w, const uint32_t *nodes,
                              size_t count, uint64_t *ticket) {
  ENTER(g, ticket);
  if (count && !nodes)
    return error(VPPS_ERR_ARGUMENT, "vpps_infer: nodes is NULL");
  return goInfer(H(g), w, nodes, count, ticket);
}
PUBLIC vpps_status vpps_infer_result(vpps_engine *e, uint64_t ticket, float *to, size_t count) {
  ENTER(e, to);
  return goInferResult(H(e), ticket, to, count);
}
PUBLIC vpps_status vpps_infer_drop(vpps_engine *e, uint64_t ticket) {
  ENTER(e);
  return goInferDrop(H(e), ticket);
}
PUBLIC vpps_status vpps_graph_truncate(vpps_graph *g, uint32_t node) {
  ENTER(g);
  return goGraphTruncate(H(g), node);
}
PUBLIC vpps_status vpps_graph_invalidate(vpps_graph *g, uint32_t node) {
  ENTER(g);
  return goGraphInvalidate(H(g), node);
}

static vpps_status trainer_options(const vpps_trainer_options *o, vpps_trainer_options *mine) {
  static const vpps_trainer_options defaults = VPPS_TRAINER_OPTIONS_INIT;
  *mine = defaults;
  CHECK_SIZE(o->struct_size, vpps_trainer_options, "VPPS_TRAINER_OPTIONS_INIT");
  memcpy(mine, o, o->struct_size < sizeof *mine ? o->struct_size : sizeof *mine);
  return VPPS_OK;
}
PUBLIC vpps_status vpps_trainer_create(vpps_engine *e, const vpps_trainer_options *o,
                                       const uint32_t *ids, size_t count, vpps_trainer **out) {
  ENTER(e, o, out);
  vpps_trainer_options mine;
  vpps_status s = trainer_options(o, &mine);
  if (s)
    return s;
  if (count && !ids)
    return error(VPPS_ERR_ARGUMENT, "vpps_trainer_create: ids is NULL");
  uintptr_t h = 0;
  s = goTrainerCreate(H(e), &mine, ids, count, &h);
  *out = (vpps_trainer *)h;
  return s;
}
PUBLIC vpps_status vpps_trainer_set(vpps_trainer *t, const vpps_trainer_options *o) {
  ENTER(t, o);
  vpps_trainer_options mine;
  vpps_status s = trainer_options(o, &mine);
  return s ? s : (vpps_status)goTrainerSet(H(t), &mine);
}
PUBLIC vpps_status vpps_trainer_add(vpps_trainer *t, const uint32_t *ids, size_t count) {
  ENTER(t);
  if (count && !ids)
    return error(VPPS_ERR_ARGUMENT, "vpps_trainer_add: ids is NULL");
  return goTrainerAdd(H(t), ids, count);
}
PUBLIC vpps_status vpps_trainer_restart(vpps_trainer *t) {
  ENTER(t);
  return goTrainerRestart(H(t));
}
PUBLIC vpps_status vpps_trainer_read_state(vpps_trainer *t, uint32_t id, uint64_t count,
                                           float *to) {
  ENTER(t, to);
  return goTrainerReadState(H(t), id, count, to);
}
PUBLIC vpps_status vpps_trainer_write_state(vpps_trainer *t, uint32_t id, uint64_t count,
                                            const float *from) {
  ENTER(t, from);
  return goTrainerWriteState(H(t), id, count, from);
}
PUBLIC vpps_status vpps_trainer_updates(vpps_trainer *t, uint64_t *updates) {
  ENTER(t, updates);
  return goTrainerUpdates(H(t), updates);
}
PUBLIC vpps_status vpps_trainer_set_updates(vpps_trainer *t, uint64_t updates) {
  ENTER(t);
  return goTrainerSetUpdates(H(t), updates);
}
PUBLIC vpps_status vpps_update(vpps_trainer *t, int *clipped) {
  ENTER(t);
  return goUpdate(H(t), clipped);
}
PUBLIC void vpps_trainer_destroy(vpps_trainer *t) {
  DEFAULT_FLOATS;
  if (entered(t))
    goTrainerDestroy(H(t));
}

PUBLIC vpps_status vpps_handle_create(vpps_engine *e, const uint32_t *ids, size_t count,
                                      vpps_trainer *t, vpps_handle **out) {
  ENTER(e, out);
  if (count && !ids)
    return error(VPPS_ERR_ARGUMENT, "vpps_handle_create: ids is NULL");
  uintptr_t h = 0;
  vpps_status s = goHandleCreate(H(e), ids, count, H(t), &h);
  *out = (vpps_handle *)h;
  return s;
}
PUBLIC void vpps_handle_destroy(vpps_handle *h) {
  DEFAULT_FLOATS;
  if (entered(h))
    goHandleDestroy(H(h));
}
PUBLIC vpps_trainer *vpps_handle_trainer(vpps_handle *h) {
  DEFAULT_FLOATS;
  uintptr_t t = 0;
  if (!enter((const void *[]){h}, 1, __func__))
    goHandleTrainer(H(h), &t);
  return (vpps_trainer *)t;
}
PUBLIC vpps_status vpps_fb(vpps_handle *h, vpps_graph *g, const vpps_words *w, uint32_t node,
                           float *stale) {
  ENTER(h, g);
  float loss = 0;
  vpps_status s = goFB(H(h), H(g), w, node, &loss);
  if (!s && stale)
    *stale = loss;
  return s;
}
PUBLIC vpps_status vpps_handle_keep(vpps_handle *h, vpps_graph *g, const uint32_t *nodes,
                                    size_t count) {
  ENTER(h, g);
  if (count && !nodes)
    return error(VPPS_ERR_ARGUMENT, "vpps_handle_keep: nodes is NULL");
  return goHandleKeep(H(h), H(g), nodes, count);
}
PUBLIC vpps_status vpps_sync_latest_loss(vpps_handle *h, float *loss) {
  ENTER(h, loss);
  return goSyncLatestLoss(H(h), loss);
}
PUBLIC vpps_status vpps_handle_clips(vpps_handle *h, uint64_t *clips) {
  ENTER(h, clips);
  return goHandleClips(H(h), clips);
}

PUBLIC vpps_status vpps_comm_create_local(uint32_t size, double seconds, vpps_comm **comms) {
  ENTER(comms);
  return goCommCreateLocal(size, seconds, (uintptr_t *)comms);
}
PUBLIC vpps_status vpps_comm_create_mpi(double seconds, vpps_comm **comm) {
  ENTER(comm);
  uintptr_t h = 0;
  vpps_status s = goCommCreateMPI(seconds, &h);
  *comm = (vpps_comm *)h;
  return s;
}
PUBLIC vpps_status vpps_comm_nccl_id(void *id) {
  ENTER(id);
  return goCommNCCLID(id);
}
PUBLIC vpps_status vpps_comm_create_nccl(const char *device, uint32_t rank, uint32_t size,
                                         const void *id, double seconds, vpps_comm **comm) {
  ENTER(device, id, comm);
  uintptr_t h = 0;
  vpps_status s = goCommCreateNCCL(device, rank, size, (void *)id, seconds, &h);
  *comm = (vpps_comm *)h;
  return s;
}
PUBLIC vpps_status vpps_comm_create_launched(vpps_engine *e, double seconds, vpps_comm **comm) {
  ENTER(e, comm);
  uintptr_t h = 0;
  vpps_status s = goCommCreateLaunched(H(e), seconds, &h);
  *comm = (vpps_comm *)h;
  return s;
}
PUBLIC vpps_status vpps_comm_rank(vpps_comm *c, uint32_t *rank, uint32_t *size) {
  ENTER(c);
  return goCommRank(H(c), rank, size);
}
PUBLIC vpps_status vpps_comm_barrier(vpps_comm *c) {
  ENTER(c);
  return goCommBarrier(H(c));
}
PUBLIC vpps_status vpps_comm_broadcast(vpps_comm *c, void *data, size_t size, uint32_t from) {
  ENTER(c, data);
  return goCommBroadcast(H(c), data, size, from);
}
PUBLIC vpps_status vpps_comm_abort(vpps_comm *c, const char *why) {
  ENTER(c, why);
  return goCommAbort(H(c), why);
}
PUBLIC void vpps_comm_destroy(vpps_comm *c) {
  DEFAULT_FLOATS;
  if (entered(c))
    goCommDestroy(H(c));
}
PUBLIC vpps_status vpps_comm_attach(vpps_comm *c, vpps_engine *e, vpps_reduction reduction) {
  ENTER(c, e);
  return goCommAttach(H(c), H(e), reduction);
}
PUBLIC vpps_status vpps_comm_detach(vpps_engine *e) {
  ENTER(e);
  return goCommDetach(H(e));
}
PUBLIC vpps_status vpps_comm_count(vpps_engine *e, float examples) {
  ENTER(e);
  return goCommCount(H(e), examples);
}
PUBLIC vpps_status vpps_comm_join(vpps_engine *e) {
  ENTER(e);
  return goCommJoin(H(e));
}
PUBLIC vpps_status vpps_global_loss(vpps_handle *h, float *loss) {
  ENTER(h, loss);
  return goGlobalLoss(H(h), loss);
}

static vpps_status checkpoint_contents(const vpps_checkpoint_contents *c,
                                       vpps_checkpoint_contents *mine) {
  static const vpps_checkpoint_contents defaults = VPPS_CHECKPOINT_CONTENTS_INIT;
  *mine = defaults;
  CHECK_SIZE(c->struct_size, vpps_checkpoint_contents, "VPPS_CHECKPOINT_CONTENTS_INIT");
  memcpy(mine, c, c->struct_size < sizeof *mine ? c->struct_size : sizeof *mine);
  return VPPS_OK;
}
PUBLIC vpps_status vpps_checkpoint_save(vpps_engine *e, const char *path,
                                        const vpps_checkpoint_contents *contents) {
  ENTER(e, path, contents);
  vpps_checkpoint_contents mine;
  vpps_status s = checkpoint_contents(contents, &mine);
  return s ? s : (vpps_status)goCheckpointSave(H(e), path, &mine);
}
PUBLIC vpps_status vpps_checkpoint_open(const char *path, vpps_checkpoint **out) {
  ENTER(path, out);
  uintptr_t h = 0;
  vpps_status s = goCheckpointOpen(path, &h);
  *out = (vpps_checkpoint *)h;
  return s;
}
PUBLIC vpps_status vpps_checkpoint_blob(vpps_checkpoint *c, const char *name, void *data,
                                        uint64_t capacity, uint64_t *size) {
  ENTER(c, name, size);
  return goCheckpointBlob(H(c), name, data, capacity, size);
}
PUBLIC vpps_status vpps_checkpoint_load(vpps_checkpoint *c, vpps_engine *e,
                                        const vpps_checkpoint_contents *contents) {
  ENTER(c, e, contents);
  vpps_checkpoint_contents mine;
  vpps_status s = checkpoint_contents(contents, &mine);
  return s ? s : (vpps_status)goCheckpointLoad(H(c), H(e), &mine);
}
PUBLIC void vpps_checkpoint_close(vpps_checkpoint *c) {
  if (entered(c))
    goCheckpointClose(H(c));
}

PUBLIC vpps_status vpps_plan_report(vpps_handle *h, char *text, size_t size, size_t *needed) {
  ENTER(h);
  return goPlanReport(H(h), text, size, needed);
}
PUBLIC vpps_status vpps_memory_report(vpps_engine *e, char *text, size_t size, size_t *needed) {
  ENTER(e);
  return goMemoryReport(H(e), text, size, needed);
}
PUBLIC vpps_status vpps_flush_timeline(vpps_engine *e) {
  ENTER(e);
  return goFlushTimeline(H(e));
}
PUBLIC vpps_status vpps_script_dump(vpps_engine *e, char *text, size_t size, size_t *needed) {
  ENTER(e);
  return goScriptDump(H(e), text, size, needed);
}
