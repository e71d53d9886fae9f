/* A random call of each function of vpps.h. */
#ifndef VPPS_TORTURE_FUNCTIONS_H
#define VPPS_TORTURE_FUNCTIONS_H

#include "arguments.h"

static void destroy(Thread *t, enum kind kind, void *x) {
  switch (kind) {
  case ENGINE:
    vpps_engine_close(x);
    break;
  case GRAPH:
    vpps_graph_destroy(x);
    break;
  case TRAINER:
    vpps_trainer_destroy(x);
    break;
  case HANDLE:
    vpps_handle_destroy(x);
    break;
  case COMM:
    vpps_comm_destroy(x);
    break;
  default:
    vpps_checkpoint_close(x);
  }
  if (x != NULL && !alone && strstr(vpps_last_error(), "another thread") != NULL &&
      t->lefts[kind] < 64)
    t->left[kind][t->lefts[kind]++] = x;
}
static void destroyed(Thread *t, enum kind kind, void *x) {
  __atomic_store_n(&old[kind][below(t, OLD)], x, __ATOMIC_RELAXED);
}

/* A new object takes the place of another, which is destroyed. */
static void put(Thread *t, enum kind kind, uint32_t at, void *x) {
  void *before = __atomic_exchange_n(&pool[kind][at], x, __ATOMIC_ACQ_REL);
  destroy(t, kind, before);
  destroyed(t, kind, before);
}

/* Destroys an object of the pool, or what is none of it or none any more. */
static int call_destroy(Thread *t, enum kind kind) {
  void *x;
  if (one_in(t, 4))
    x = __atomic_exchange_n(&pool[kind][below(t, POOL)], NULL, __ATOMIC_ACQ_REL);
  else if (one_in(t, 2))
    x = __atomic_load_n(&old[kind][below(t, OLD)], __ATOMIC_RELAXED);
  else
    do
      x = any(t, kind);
    while (x == engine && kind == ENGINE);
  destroy(t, kind, x);
  destroyed(t, kind, x);
  for (int k = 0; k < GRAPHS; k++)
    if (kind == GRAPH && t->own[k].graph == x)
      __atomic_store_n(&t->own[k].graph, NULL, __ATOMIC_RELAXED);
  return VPPS_OK;
}

static int call_version(Thread *t) {
  CHECK(t != NULL && strcmp(vpps_version(), "") != 0);
  return VPPS_OK;
}
static int call_build_info(Thread *t) {
  CHECK(t != NULL && strncmp(vpps_build_info(), "libvpps", 7) == 0);
  return VPPS_OK;
}
static int call_last_error(Thread *t) {
  CHECK(t != NULL && strchr(vpps_last_error(), '\n') == NULL);
  return VPPS_OK;
}
static int call_frontend(Thread *t) {
  static const char *const kinds[] = {"random calls", VPPS_FRONTEND_BUNDLED, "", NULL};
  return vpps_frontend(kinds[below(t, 4)]);
}

static int call_engine_open(Thread *t) {
  static const char *const devices[] = {"abacus", "cuda:", "cuda:99999", "cpu "};
  vpps_engine_options o = VPPS_ENGINE_OPTIONS_INIT;
  vpps_engine *e = NULL;
  o.device = one_in(t, 2) ? options.device : devices[below(t, 4)];
  o.threads = any_number(t), o.processors = any_number(t), o.seed = any_number(t);
  if (one_in(t, 4))
    o.struct_size = any_number(t);
  if (o.struct_size < sizeof o && o.struct_size >= 4)
    o.device = "abacus", o.struct_size |= 1; /* without a device: any */
  const int status = vpps_engine_open(one_in(t, 20) ? NULL : &o, one_in(t, 20) ? NULL : &e);
  if (status == VPPS_OK && e != engine)
    fail("opening %s gave another engine", options.device);
  vpps_engine_close(e); /* which others have open still */
  return status;
}
static int call_engine_close(Thread *t) { return call_destroy(t, ENGINE); }
static int call_engine_describe(Thread *t) {
  return vpps_engine_describe(any(t, ENGINE), one_in(t, 9) ? NULL : t->text, below(t, ROOM));
}
static int call_engine_seed(Thread *t) { return vpps_engine_seed(any(t, ENGINE), draw(t)); }
static int call_engine_statistics(Thread *t) {
  union {
    vpps_statistics s;
    char room[4096];
  } u = {.s = VPPS_STATISTICS_INIT};
  if (one_in(t, 4))
    u.s.struct_size = any_number(t);
  return vpps_engine_statistics(any(t, ENGINE), one_in(t, 9) ? NULL : &u.s);
}
static int call_engine_times(Thread *t) {
  union {
    vpps_times s;
    char room[4096];
  } u = {.s = VPPS_TIMES_INIT};
  if (one_in(t, 4))
    u.s.struct_size = any_number(t);
  return vpps_engine_times(any(t, ENGINE), one_in(t, 9) ? NULL : &u.s);
}
static int call_clock_table(Thread *t) {
  size_t n;
  return vpps_clock_table(any(t, ENGINE), one_in(t, 4) ? NULL : t->text, below(t, ROOM),
                          one_in(t, 2) ? NULL : &n);
}
static int call_memory_report(Thread *t) {
  size_t n;
  return vpps_memory_report(any(t, ENGINE), one_in(t, 4) ? NULL : t->text, below(t, ROOM),
                            one_in(t, 2) ? NULL : &n);
}
static int call_system_report(Thread *t) {
  size_t n;
  return vpps_system_report(one_in(t, 4) ? NULL : t->text, below(t, ROOM),
                            one_in(t, 2) ? NULL : &n);
}
/* Gets lines of all threads, while others set it anew. */
static void log_line(void *data, vpps_log_level level, const char *line) {
  if (data != &options || level < VPPS_LOG_INFO || !strstr(line, ": ") || strchr(line, '\n'))
    fail("the log has the line %s", line);
  if (vpps_engine_seed(engine, 1) != VPPS_ERR_STATE)
    fail("a call from the function of %s is let in", "vpps_set_log");
}
static int call_set_log(Thread *t) {
  return vpps_set_log((vpps_log_level)(below(t, 5) - 1), log_line, &options);
}
static int call_flush_timeline(Thread *t) { return vpps_flush_timeline(any(t, ENGINE)); }
static int call_script_dump(Thread *t) {
  size_t n;
  return vpps_script_dump(any(t, ENGINE), one_in(t, 4) ? NULL : t->text, below(t, ROOM),
                          one_in(t, 2) ? NULL : &n);
}

static int call_collection_create(Thread *t) {
  uint32_t c;
  return vpps_collection_create(any(t, ENGINE), one_in(t, 50) ? 0.01f : NAN,
                                one_in(t, 9) ? NULL : &c);
}
static int call_collection_set_lambda(Thread *t) {
  return vpps_collection_set_lambda(any(t, ENGINE), any_collection(t), any_float(t) * 0.01f);
}
static int call_collection_factor(Thread *t) {
  float f;
  return vpps_collection_factor(any(t, ENGINE), any_collection(t), one_in(t, 9) ? NULL : &f);
}
static int call_collection_set_factor(Thread *t) {
  return vpps_collection_set_factor(any(t, ENGINE), any_collection(t), any_float(t) + 0.25f);
}

static int call_parameter_create(Thread *t) {
  vpps_dim d = {1, 1, {1 + below(t, 4)}};
  uint32_t id = 0;
  const uint32_t at = FIXED_PARAMETERS + below(t, PARAMETERS - FIXED_PARAMETERS);
  if (one_in(t, 2)) /* no dim, or a dim of none */
    ((uint32_t *)&d)[below(t, 9)] = one_in(t, 2) ? 0 : UINT32_MAX - below(t, 3);
  if (d.nd > 1 || d.bd > 1 || __atomic_load_n(&made_parameters, __ATOMIC_RELAXED) > MOST_PARAMETERS)
    d.d[0] = 0;
  const int status = vpps_parameter_create(
      any(t, ENGINE), any_collection(t), one_in(t, 4) ? NULL : "/x", one_in(t, 9) ? NULL : &d,
      below(t, 3), one_in(t, 2) ? NULL : t->floats, one_in(t, 9) ? NULL : &id);
  if (status == VPPS_OK) {
    __atomic_add_fetch(&made_parameters, 1, __ATOMIC_RELAXED);
    vpps_parameter_destroy(engine, __atomic_exchange_n(&parameters[at], id, __ATOMIC_RELAXED));
    size_of[at] = d.d[0];
  }
  return status;
}
static int call_parameter_destroy(Thread *t) {
  const uint32_t at = FIXED_PARAMETERS + below(t, PARAMETERS - FIXED_PARAMETERS);
  if (one_in(t, 3))
    return vpps_parameter_destroy(any(t, ENGINE), UINT32_MAX - below(t, 9));
  const int status = vpps_parameter_destroy(any(t, ENGINE), parameters[at]);
  if (status == VPPS_OK)
    size_of[at] = 0;
  return status;
}
static vpps_part any_part(Thread *t) {
  return (vpps_part)(one_in(t, 9) ? any_number(t) : below(t, 2));
}
static int call_parameter_read(Thread *t) {
  return vpps_parameter_read(any(t, ENGINE), any_id(t), any_part(t), any_count(t, below(t, 3)),
                             any_count(t, below(t, 4)), one_in(t, 9) ? NULL : t->floats);
}
static int call_parameter_write(Thread *t) {
  for (int k = 0; k < 16; k++)
    t->floats[k] = (float)below(t, 100) * 0.01f;
  t->floats[below(t, 16)] = any_float(t);
  return vpps_parameter_write(any(t, ENGINE), any_id(t), any_part(t), any_count(t, below(t, 3)),
                              any_count(t, below(t, 4)), one_in(t, 9) ? NULL : t->floats);
}
static int call_parameter_scale(Thread *t) {
  return vpps_parameter_scale(any(t, ENGINE), any_id(t), any_part(t),
                              one_in(t, 2) ? 0 : any_float(t));
}
static int call_parameter_expose(Thread *t) {
  float *values; /* those of new parameters only: calls are slower while something is exposed */
  return vpps_parameter_expose(any(t, ENGINE), parameters[15], any_part(t),
                               one_in(t, 9) ? NULL : &values);
}
static int call_parameter_set_updated(Thread *t) {
  return vpps_parameter_set_updated(any(t, ENGINE), any_id(t), !one_in(t, 4));
}
static int call_parameter_touched(Thread *t) {
  uint64_t n;
  int all;
  return vpps_parameter_touched(any(t, ENGINE), any_id(t), one_in(t, 4) ? NULL : t->words,
                                any_count(t, 8), one_in(t, 9) ? NULL : &n, &all);
}
static int call_parameter_memory(Thread *t) {
  float *values;
  return vpps_parameter_memory(any(t, ENGINE), any_id(t), one_in(t, 9) ? NULL : &values);
}
static int call_parameter_gradient_memory(Thread *t) {
  float *gradient; /* mostly given back: there is no fb meanwhile */
  return vpps_parameter_gradient_memory(any(t, ENGINE), parameters[14], one_in(t, 6),
                                        one_in(t, 9) ? NULL : &gradient);
}
static int call_parameter_set_touched(Thread *t) {
  return vpps_parameter_set_touched(any(t, ENGINE), one_in(t, 2) ? parameters[14] : any_id(t),
                                    one_in(t, 9) ? NULL : t->ids, any_count(t, IDS), one_in(t, 4));
}

static int call_graph_create(Thread *t) {
  vpps_graph *g = NULL;
  const int status = vpps_graph_create(any(t, ENGINE), one_in(t, 9) ? NULL : &g);
  if (status == VPPS_OK)
    put(t, GRAPH, below(t, POOL), g); /* one that nobody records */
  return status;
}
static int call_graph_destroy(Thread *t) {
  if (!one_in(t, 8))
    return call_destroy(t, GRAPH);
  Shadow *s = any_own(t);
  destroy(t, GRAPH, s->graph);
  destroyed(t, GRAPH, s->graph);
  __atomic_store_n(&s->graph, NULL, __ATOMIC_RELAXED);
  return VPPS_OK;
}

static vpps_status forward(Thread *t, vpps_graph *g, const vpps_words *w, uint32_t node) {
  return vpps_forward(g, w, node, (int)below(t, 2));
}
static vpps_status value(Thread *t, vpps_graph *g, const vpps_words *w, uint32_t node) {
  return vpps_value(g, w, node, one_in(t, 9) ? NULL : t->floats, (size_t)any_count(t, 1));
}
static vpps_status backward(Thread *t, vpps_graph *g, const vpps_words *w, uint32_t node) {
  return vpps_backward(g, w, node, (int)below(t, 2));
}
static vpps_status node_gradients(Thread *t, vpps_graph *g, const vpps_words *w, uint32_t node) {
  (void)t;
  return vpps_node_gradients(g, w, node);
}
static vpps_status fb(Thread *t, vpps_graph *g, const vpps_words *w, uint32_t node) {
  float stale;
  return vpps_fb(any(t, HANDLE), g, w, node, one_in(t, 4) ? NULL : &stale);
}
static vpps_status infer(Thread *t, vpps_graph *g, const vpps_words *w, uint32_t node) {
  uint32_t nodes[3] = {node, 0, node}, *own = one_in(t, 9) ? NULL : nodes;
  uint64_t ticket;
  const size_t count = one_in(t, 16) ? (size_t)any_count(t, 0) : 1 + below(t, 3);
  const vpps_status status =
      vpps_infer(g, w, own, own == NULL && one_in(t, 2) ? 0 : count, one_in(t, 9) ? NULL : &ticket);
  if (status == VPPS_OK) {
    t->tickets[t->asked % TICKETS] = ticket;
    t->elements[t->asked++ % TICKETS] = below(t, 20); /* which may be right */
  }
  return status;
}
static uint64_t any_ticket(Thread *t, size_t *elements) {
  const uint32_t k = below(t, TICKETS);
  *elements = t->elements[k];
  return one_in(t, 9) ? any_number(t) : t->tickets[k];
}
static int call_infer(Thread *t) { return with_words(t, 0, infer); }
static int call_infer_result(Thread *t) {
  size_t n;
  const uint64_t ticket = any_ticket(t, &n);
  return vpps_infer_result(any(t, ENGINE), ticket, one_in(t, 9) ? NULL : t->floats,
                           (size_t)any_count(t, n));
}
static int call_infer_drop(Thread *t) {
  size_t n;
  const uint64_t ticket = any_ticket(t, &n);
  return vpps_infer_drop(any(t, ENGINE), ticket);
}
static int call_forward(Thread *t) { return with_words(t, 1, forward); }
static int call_value(Thread *t) { return with_words(t, 1, value); }
static int call_backward(Thread *t) { return with_words(t, 1, backward); }
static int call_node_gradients(Thread *t) { return with_words(t, 1, node_gradients); }
static int call_fb(Thread *t) { return with_words(t, 0, fb); }
static int call_gradient(Thread *t) {
  Shadow *s = any_own(t);
  const uint32_t node =
      one_in(t, 9) || s->nodes == 0 ? any_number(t) : below(t, (uint32_t)s->nodes);
  return vpps_gradient(one_in(t, 4) ? any(t, GRAPH) : s->graph, node,
                       one_in(t, 9) ? NULL : t->floats,
                       (size_t)any_count(t, node < (uint32_t)s->nodes ? sizes[s->dim[node]] : 1));
}
static int call_graph_truncate(Thread *t) {
  Shadow *s = any_own(t);
  const uint32_t node = one_in(t, 4) ? any_number(t) : below(t, NODES);
  if (one_in(t, 4))
    return vpps_graph_truncate(!alone || s->graph == NULL ? any(t, GRAPH) : s->graph, UINT32_MAX);
  const int status = vpps_graph_truncate(s->graph, node);
  if (status == VPPS_OK && (int64_t)node < s->nodes) {
    s->nodes = (int)node;
    s->evaluated = s->evaluated < s->nodes ? s->evaluated : s->nodes;
  }
  return status;
}
static int call_graph_invalidate(Thread *t) {
  Shadow *s = any_own(t);
  vpps_graph *g = one_in(t, 4) ? any(t, GRAPH) : s->graph;
  const int status = vpps_graph_invalidate(g, below(t, NODES));
  if (g == s->graph && status == VPPS_OK)
    s->evaluated = 0;
  return status;
}

static vpps_trainer_options any_options(Thread *t, uint32_t rule) {
  vpps_trainer_options o = VPPS_TRAINER_OPTIONS_INIT;
  float *const floats[] = {&o.learning_rate, &o.clip_threshold, &o.momentum, &o.rho,
                           &o.epsilon,       &o.beta_1,         &o.beta_2};
  o.rule = rule;
  o.learning_rate = 0.01f;
  o.collection = any_collection(t);
  o.clipping = !one_in(t, 3), o.sparse = !one_in(t, 3);
  if (one_in(t, 2))
    *floats[below(t, 7)] = any_float(t);
  if (one_in(t, 8))
    o.struct_size = any_number(t) & 0xFFF;
  if (o.struct_size > sizeof o)
    o.struct_size = sizeof o;
  return o;
}
static int call_trainer_create(Thread *t) {
  const uint32_t rule = one_in(t, 16) ? any_number(t) : below(t, 7), at = below(t, POOL);
  const vpps_trainer_options o = any_options(t, rule);
  vpps_trainer *trainer = NULL;
  const size_t n = any_ids(t);
  const int status =
      vpps_trainer_create(any(t, ENGINE), one_in(t, 20) ? NULL : &o, one_in(t, 20) ? NULL : t->ids,
                          n, one_in(t, 20) ? NULL : &trainer);
  if (status == VPPS_OK) {
    put(t, TRAINER, at, trainer);
    rule_of[at] = o.struct_size >= 8 ? rule : 0;
    parameters_of[at] = 0;
    has(t, at, n);
  }
  return status;
}
static int call_trainer_set(Thread *t) {
  const uint32_t at = below(t, POOL);
  const vpps_trainer_options o = any_options(t, rule_of[at]);
  return vpps_trainer_set(one_in(t, 2) ? any(t, TRAINER) : pool[TRAINER][at],
                          one_in(t, 20) ? NULL : &o);
}
static int call_trainer_add(Thread *t) {
  const size_t n = any_ids(t);
  const uint32_t at = below(t, POOL);
  const int status = vpps_trainer_add(one_in(t, 2) ? any(t, TRAINER) : pool[TRAINER][at],
                                      one_in(t, 9) ? NULL : t->ids, n);
  for (uint32_t k = 0; status == VPPS_OK && k < POOL; k++)
    has(t, k, n); /* of one of them */
  return status;
}
static int call_trainer_restart(Thread *t) { return vpps_trainer_restart(any(t, TRAINER)); }
static int call_trainer_read_state(Thread *t) {
  const uint32_t k = below(t, POOL), p = below(t, PARAMETERS);
  return vpps_trainer_read_state(one_in(t, 4) ? any(t, TRAINER) : pool[TRAINER][k], parameters[p],
                                 any_count(t, vectors_of[rule_of[k] & 7] * size_of[p]),
                                 one_in(t, 9) ? NULL : t->floats);
}
static int call_trainer_write_state(Thread *t) {
  const uint32_t k = below(t, POOL), p = below(t, PARAMETERS);
  for (int i = 0; i < 32; i++)
    t->floats[i] = (float)below(t, 100) * 0.01f;
  return vpps_trainer_write_state(one_in(t, 4) ? any(t, TRAINER) : pool[TRAINER][k], parameters[p],
                                  any_count(t, vectors_of[rule_of[k] & 7] * size_of[p]),
                                  one_in(t, 9) ? NULL : t->floats);
}
static int call_trainer_updates(Thread *t) {
  uint64_t n;
  return vpps_trainer_updates(any(t, TRAINER), one_in(t, 9) ? NULL : &n);
}
static int call_trainer_set_updates(Thread *t) {
  return vpps_trainer_set_updates(any(t, TRAINER), any_count(t, below(t, 100)));
}
static int call_update(Thread *t) {
  int clipped;
  return vpps_update(any(t, TRAINER), one_in(t, 4) ? NULL : &clipped);
}
static int call_trainer_destroy(Thread *t) { return call_destroy(t, TRAINER); }

static int call_handle_create(Thread *t) {
  vpps_handle *h = NULL;
  const size_t n = any_ids(t);
  const int status =
      vpps_handle_create(any(t, ENGINE), one_in(t, 20) ? NULL : t->ids, n,
                         one_in(t, 4) ? NULL : any(t, TRAINER), one_in(t, 20) ? NULL : &h);
  if (status == VPPS_OK)
    put(t, HANDLE, below(t, POOL), h);
  return status;
}
static int call_handle_destroy(Thread *t) { return call_destroy(t, HANDLE); }
static int call_handle_trainer(Thread *t) {
  vpps_trainer *trainer = vpps_handle_trainer(any(t, HANDLE));
  if (trainer == NULL)
    return VPPS_ERR_ARGUMENT;
  if (one_in(t, 8)) /* refused, if it is the handle's */
    destroyed(t, TRAINER, trainer);
  return VPPS_OK;
}
static int call_handle_keep(Thread *t) {
  const uint32_t n = below(t, 3);
  for (uint32_t k = 0; k < n; k++)
    t->words[k] = below(t, NODES);
  return vpps_handle_keep(any(t, HANDLE), one_in(t, 2) ? any_own(t)->graph : any(t, GRAPH),
                          one_in(t, 9) ? NULL : t->words, one_in(t, 9) ? (size_t)1 << 50 : n);
}
static int call_sync_latest_loss(Thread *t) {
  float loss;
  return vpps_sync_latest_loss(any(t, HANDLE), one_in(t, 9) ? NULL : &loss);
}
static int call_handle_clips(Thread *t) {
  uint64_t n;
  return vpps_handle_clips(any(t, HANDLE), one_in(t, 9) ? NULL : &n);
}
/* Groups of one rank: those of more would wait for calls that come by chance. */
static int call_comm_create_local(Thread *t) {
  vpps_comm *comm = NULL;
  const uint32_t size = one_in(t, 4) ? one_in(t, 2) ? 0 : UINT32_MAX : 1;
  const int status = vpps_comm_create_local(size, one_in(t, 4) ? (double)any_float(t) : 0,
                                            one_in(t, 9) ? NULL : &comm);
  if (status == VPPS_OK)
    put(t, COMM, below(t, POOL), comm);
  return status;
}
static int call_comm_create_mpi(Thread *t) { /* would start MPI, if its arguments were right */
  vpps_comm *comm;
  return vpps_comm_create_mpi(-1, one_in(t, 2) ? NULL : &comm);
}
static int call_comm_nccl_id(Thread *t) { /* would leave a thread, if its argument were right */
  (void)t;
  return vpps_comm_nccl_id(NULL);
}
static int call_comm_create_nccl(Thread *t) { /* would wait for others, likewise */
  const char id[VPPS_NCCL_ID_BYTES] = {0};
  vpps_comm *comm;
  return vpps_comm_create_nccl(one_in(t, 4) ? NULL : "cuda", below(t, 3), below(t, 3),
                               one_in(t, 4) ? NULL : id, -1, one_in(t, 2) ? NULL : &comm);
}
/* No launcher has started this program: it is the only rank. */
static int call_comm_create_launched(Thread *t) {
  vpps_comm *comm = NULL;
  const int status = vpps_comm_create_launched(
      any(t, ENGINE), one_in(t, 4) ? (double)any_float(t) : 0, one_in(t, 9) ? NULL : &comm);
  if (status == VPPS_OK)
    put(t, COMM, below(t, POOL), comm);
  return status;
}
static int call_comm_broadcast(Thread *t) {
  char bytes[9] = "as it is";
  const int status =
      vpps_comm_broadcast(any(t, COMM), one_in(t, 9) ? NULL : bytes,
                          one_in(t, 9) ? SIZE_MAX : below(t, sizeof bytes), one_in(t, 9));
  CHECK(!strcmp(bytes, "as it is"));
  return status;
}
static int call_comm_rank(Thread *t) {
  uint32_t rank = 0, size = 1;
  const int status =
      vpps_comm_rank(any(t, COMM), one_in(t, 9) ? NULL : &rank, one_in(t, 9) ? NULL : &size);
  CHECK(rank == 0 && size == 1);
  return status;
}
static int call_comm_barrier(Thread *t) { return vpps_comm_barrier(any(t, COMM)); }
static int call_comm_abort(Thread *t) {
  return vpps_comm_abort(any(t, COMM), one_in(t, 9) ? NULL : "by chance");
}
static int call_comm_destroy(Thread *t) { return call_destroy(t, COMM); }
static int call_comm_attach(Thread *t) {
  return vpps_comm_attach(any(t, COMM), any(t, ENGINE), (vpps_reduction)below(t, 5));
}
static int call_comm_detach(Thread *t) { return vpps_comm_detach(any(t, ENGINE)); }
static int call_comm_count(Thread *t) { return vpps_comm_count(any(t, ENGINE), any_float(t)); }
static int call_comm_join(Thread *t) { return vpps_comm_join(any(t, ENGINE)); }
static int call_global_loss(Thread *t) {
  float loss;
  return vpps_global_loss(any(t, HANDLE), one_in(t, 9) ? NULL : &loss);
}
static int call_plan_report(Thread *t) {
  size_t n;
  return vpps_plan_report(any(t, HANDLE), one_in(t, 4) ? NULL : t->text, below(t, ROOM),
                          one_in(t, 2) ? NULL : &n);
}

/* Contents of a checkpoint: parameters, trainers and handles as they are, most of the time. */
typedef struct Contents {
  vpps_checkpoint_contents c;
  vpps_trainer *trainers[POOL];
  vpps_handle *handles[POOL];
  vpps_blob blobs[2];
} Contents;
static const vpps_checkpoint_contents *any_contents(Thread *t, Contents *room) {
  static const char bytes[] = "blob";
  const vpps_checkpoint_contents init = VPPS_CHECKPOINT_CONTENTS_INIT;
  room->c = init;
  size_t n = 0;
  for (int p = 0; p < PARAMETERS; p++)
    if (size_of[p] != 0)
      t->ids[n++] = __atomic_load_n(&parameters[p], __ATOMIC_RELAXED);
  room->c.ids = t->ids;
  room->c.id_count = (size_t)any_count(t, n);
  for (int k = 0; k < 2; k++) {
    room->trainers[k] = one_in(t, 20) ? any(t, TRAINER) : pool[TRAINER][k];
    room->handles[k] = one_in(t, 20) ? any(t, HANDLE) : pool[HANDLE][k];
    room->blobs[k].name = one_in(t, 20) ? NULL : k ? "first" : "second";
    room->blobs[k].data = one_in(t, 20) ? NULL : bytes;
    room->blobs[k].size = below(t, sizeof bytes);
  }
  room->c.trainers = room->trainers;
  room->c.trainer_count = room->trainers[0] == NULL ? 0 : below(t, 2);
  room->c.handles = room->handles;
  room->c.handle_count = room->handles[0] == NULL || !one_in(t, 4) ? 0 : below(t, 2);
  if (one_in(t, 2)) { /* what there always is */
    n = FIXED_PARAMETERS;
    room->c.id_count = n;
    room->c.trainer_count = room->c.handle_count = 0;
  }
  room->c.blobs = one_in(t, 20) ? NULL : room->blobs;
  room->c.blob_count = below(t, 3);
  if (one_in(t, 9))
    room->c.struct_size = below(t, sizeof room->c);
  return one_in(t, 20) ? NULL : &room->c;
}
/* A file that there may be, or none that can be. */
static const char *any_path(Thread *t) {
  if (one_in(t, 4))
    return one_in(t, 4) ? NULL : one_in(t, 2) ? folder : "/nowhere/checkpoint";
  snprintf(t->text, ROOM, "%s/%u", folder, (unsigned)below(t, 3));
  return t->text;
}
static int call_checkpoint_save(Thread *t) {
  Contents room;
  const vpps_checkpoint_contents *c = any_contents(t, &room);
  const char *path = one_in(t, alone ? 1 : 8)
                         ? any_path(t)
                         : "/nowhere/checkpoint"; /* a file takes long to be stored */
  return vpps_checkpoint_save(any(t, ENGINE), path, c);
}
static int call_checkpoint_open(Thread *t) {
  vpps_checkpoint *checkpoint = NULL;
  const int status = vpps_checkpoint_open(any_path(t), one_in(t, 9) ? NULL : &checkpoint);
  if (status == VPPS_OK)
    put(t, CHECKPOINT, below(t, POOL), checkpoint);
  return status;
}
static int call_checkpoint_blob(Thread *t) {
  static const char *const blobs[] = {"first", "second", "third", NULL};
  uint64_t n;
  return vpps_checkpoint_blob(any(t, CHECKPOINT), blobs[below(t, 4)], one_in(t, 4) ? NULL : t->text,
                              one_in(t, 4) ? 0 : ROOM, one_in(t, 9) ? NULL : &n);
}
static int call_checkpoint_load(Thread *t) {
  Contents room;
  const vpps_checkpoint_contents *c = any_contents(t, &room);
  return vpps_checkpoint_load(any(t, CHECKPOINT), any(t, ENGINE), c);
}
static int call_checkpoint_close(Thread *t) { return call_destroy(t, CHECKPOINT); }

#define CALL(name, weight) call_##name,
static int (*const calls[])(Thread *) = {FUNCTIONS(CALL)};

#endif
