/* Random arguments: numbers, objects and small graphs, right ones and others. */
#ifndef VPPS_TORTURE_ARGUMENTS_H
#define VPPS_TORTURE_ARGUMENTS_H

#include "state.h"

static uint32_t draw(Thread *t) { /* xorshift64* */
  t->random ^= t->random >> 12;
  t->random ^= t->random << 25;
  t->random ^= t->random >> 27;
  return (uint32_t)(t->random * 2685821657736338717u >> 32);
}
static uint32_t below(Thread *t, uint32_t n) { return draw(t) % n; }
static int one_in(Thread *t, uint32_t n) { return below(t, n) == 0; }

static uint32_t any_number(Thread *t) {
  static const uint32_t some[] = {0, 1, 2, 3, 7, 8, 100, 1u << 20, 1u << 31, UINT32_MAX};
  return one_in(t, 4) ? draw(t) : some[below(t, sizeof some / sizeof *some)];
}
static uint64_t any_count(Thread *t, uint64_t right) {
  static const uint64_t huge[] = {1ull << 33, 1ull << 40, 1ull << 62, UINT64_MAX};
  if (!one_in(t, 8))
    return right;
  return one_in(t, 2) ? below(t, 16) : huge[below(t, 4)];
}
static float any_float(Thread *t) {
  const float some[] = {0, 0.1f, 0.5f, 1, -1, 1e-30f, 1e30f, INFINITY, -INFINITY, NAN};
  return one_in(t, 6) ? some[below(t, 10)] : (float)below(t, 1000) * 0.001f - 0.25f;
}

static void *in_pool(Thread *t, enum kind kind) {
  if (kind == ENGINE)
    return engine;
  if (kind == GRAPH && one_in(t, 2)) {
    Thread *owner = &threads[alone ? 0 : below(t, (uint32_t)options.threads)];
    return __atomic_load_n(&owner->own[below(t, GRAPHS)].graph, __ATOMIC_RELAXED);
  }
  return __atomic_load_n(&pool[kind][below(t, POOL)], __ATOMIC_RELAXED);
}
static void *any(Thread *t, enum kind kind) {
  uint32_t r = below(t, 100);
  if (r < 82)
    return in_pool(t, kind);
  if (r < 88)
    return __atomic_load_n(&old[kind][below(t, OLD)], __ATOMIC_RELAXED);
  if (r < 91)
    return foreign[kind][below(t, 2)];
  if (r < 94) {
    enum kind other = (enum kind)((kind + 1 + below(t, KINDS - 1)) % KINDS);
    return in_pool(t, other);
  }
  if (r < 96)
    return NULL;
  if (r < 98) /* a number whose type or mark is spoilt */
    return (void *)((uintptr_t)in_pool(t, kind) ^ (uintptr_t)1 << (50 + below(t, 14)));
  return r == 98 ? (void *)t : (void *)((uintptr_t)draw(t) << 32 | draw(t));
}

static uint32_t any_id(Thread *t) {
  uint32_t r = below(t, 40);
  return r < 36 ? __atomic_load_n(&parameters[r % PARAMETERS], __ATOMIC_RELAXED) : any_number(t);
}
/* Notes which parameters a trainer of the pool has: those among the first n of t->ids. */
static void has(const Thread *t, uint32_t trainer, size_t n) {
  for (size_t k = 0; k < n; k++)
    for (int p = 0; p < PARAMETERS; p++)
      if (parameters[p] == t->ids[k])
        parameters_of[trainer] |= 1u << p;
}
/* Fills t->ids, and returns how many of them there are said to be. */
static size_t any_ids(Thread *t) {
  const uint32_t n = below(t, 6);
  for (uint32_t k = 0; k < IDS; k++)
    t->ids[k] = any_id(t);
  return (size_t)any_count(t, n);
}
static uint32_t any_collection(Thread *t) { return one_in(t, 6) ? any_number(t) : 1 + below(t, 3); }

/* ---- graphs ---------------------------------------------------------------------------------- */

enum { SCALAR, TWO, THREE, MATRIX, BATCH, DIMS };
static const vpps_dim dims[DIMS] = {
    {1, 1, {1}}, {1, 1, {2}}, {1, 1, {3}}, {2, 1, {3, 2}}, {1, 2, {2}}};
static const uint32_t sizes[DIMS] = {1, 2, 3, 6, 4};
enum {
  P_TWO,
  P_THREE,
  P_MATRIX,
  P_TABLE,
  FIXED_PARAMETERS
}; /* of dims TWO, THREE, MATRIX, rows of TWO */

static Shadow *any_own(Thread *t) { return &t->own[below(t, GRAPHS)]; }

/* A node that there is, of a dim; -1: none. */
static int some_node(Thread *t, const Shadow *s, int nodes, uint32_t dim) {
  const int from = nodes > 0 ? (int)below(t, (uint32_t)nodes) : 0;
  for (int k = 0; k < nodes; k++) {
    const int n = (from + k) % nodes;
    if ((n < s->nodes ? s->dim[n] : t->coming[n - s->nodes]) == dim)
      return n;
  }
  return -1;
}

/* Appends a node to the words at w and returns where they end. */
static uint32_t *some_words(Thread *t, const Shadow *s, int nodes, uint32_t *w, uint8_t *its_dim) {
  static const uint8_t unary[] = {
      VPPS_OP_TANH, VPPS_OP_LOGISTIC_SIGMOID, VPPS_OP_RECTIFY, VPPS_OP_SQUARE,
      VPPS_OP_ABS,  VPPS_OP_NEGATE,           VPPS_OP_EXP,     VPPS_OP_LOG,
      VPPS_OP_SQRT};
  uint32_t dim = below(t, DIMS);
  int x = some_node(t, s, nodes, dim), y = some_node(t, s, nodes, dim);
  *its_dim = (uint8_t)dim;
  switch (x < 0 ? below(t, 3) : below(t, 10)) {
  case 0:
    *w++ = VPPS_OP_INPUT_NODE | dim << 8, *w++ = below(t, INPUTS - 8);
    return w;
  case 1:
    dim = TWO + below(t, 3);
    *its_dim = (uint8_t)dim;
    *w++ = VPPS_OP_PARAMETER_NODE | dim << 8, *w++ = parameters[dim - TWO + P_TWO];
    return w;
  case 2:
    dim = one_in(t, 2) ? TWO : BATCH;
    *its_dim = (uint8_t)dim;
    *w++ = VPPS_OP_LOOKUP_NODE | dim << 8, *w++ = parameters[P_TABLE], *w++ = INPUTS - 2;
    return w;
  case 3:
  case 4:
    *w++ = unary[below(t, sizeof unary)] | dim << 8, *w++ = (uint32_t)x;
    return w;
  case 5:
    *w++ = (one_in(t, 2) ? VPPS_OP_CWISE_SUM : VPPS_OP_CWISE_MULTIPLY) | dim << 8;
    *w++ = (uint32_t)x, *w++ = (uint32_t)y;
    return w;
  case 6: {
    const float p = one_in(t, 10) ? any_float(t) : 0.5f;
    *w++ = VPPS_OP_DROPOUT | dim << 8, *w++ = (uint32_t)x;
    memcpy(w++, &p, 4);
    return w;
  }
  case 7:
    x = some_node(t, s, nodes, MATRIX), y = some_node(t, s, nodes, TWO);
    if (x >= 0 && y >= 0) {
      *its_dim = THREE;
      *w++ = VPPS_OP_MATRIX_MULTIPLY | THREE << 8, *w++ = (uint32_t)x, *w++ = (uint32_t)y;
      return w;
    }
    /* fall through */
  default:
    if (dim == BATCH)
      x = some_node(t, s, nodes, SCALAR);
    *its_dim = SCALAR;
    *w++ = VPPS_OP_SUM_ELEMENTS | SCALAR << 8, *w++ = (uint32_t)x;
    return w;
  }
}

/* Spoils one of the words, or how many there are said to be. */
static void spoil(Thread *t, vpps_words *w) {
  switch (below(t, 8)) {
  case 0:
    w->version = any_number(t);
    break;
  case 1:
    w->nodes = NULL;
    break;
  case 2:
    w->node_words =
        w->node_words > 0 && one_in(t, 2) ? below(t, (uint32_t)w->node_words) : (size_t)1 << 60;
    break;
  case 3:
    w->node_count = any_number(t);
    break;
  case 4:
    w->dims = NULL;
    break;
  case 5:
    w->input_words = below(t, INPUTS);
    break;
  default:
    if (w->node_words > 0)
      t->words[below(t, (uint32_t)w->node_words)] = any_number(t);
  }
}

/* Words that bring the graph up to four nodes and a scalar; how many is returned. */
static int some_graph(Thread *t, const Shadow *s, vpps_words *words) {
  uint32_t *w = t->words;
  int count = 0, nodes = s->nodes;
  for (int more = nodes + 5 > NODES ? 0 : (int)below(t, 5); count < more; count++, nodes++)
    w = some_words(t, s, nodes, w, &t->coming[count]);
  if (count > 0 && t->coming[count - 1] != BATCH) {
    *w++ = VPPS_OP_SUM_ELEMENTS | SCALAR << 8, *w++ = (uint32_t)nodes - 1;
    t->coming[count++] = SCALAR;
  }
  memset(words, 0, sizeof *words);
  words->version = VPPS_WIRE_VERSION;
  words->nodes = t->words;
  words->node_words = (size_t)(w - t->words);
  words->node_count = (uint32_t)count;
  words->dims = dims;
  words->dim_count = s->dims_sent ? 0 : DIMS;
  words->inputs = (const uint32_t *)s->inputs;
  words->input_words = INPUTS;
  return count;
}

typedef vpps_status (*graph_call)(Thread *t, vpps_graph *g, const vpps_words *w, uint32_t node);

/* A call that brings a graph words. */
static vpps_status with_words(Thread *t, int evaluates, graph_call call) {
  Shadow *s = any_own(t);
  vpps_words room, *w = &room;
  const int count = some_graph(t, s, w), nodes = s->nodes + count;
  const uint32_t node = one_in(t, 10) ? any_number(t) : nodes > 0 ? (uint32_t)nodes - 1 : 0;
  const int spoilt = one_in(t, 6);
  vpps_graph *g = one_in(t, 6) ? any(t, GRAPH) : s->graph;
  if (spoilt)
    spoil(t, w);
  if (count == 0 && one_in(t, 2))
    w = NULL;
  if (g != s->graph && alone)
    w = NULL; /* nobody notices that another graph has grown */
  const vpps_status status = call(t, g, w, node);
  if (g != s->graph)
    return status;
  if (status == VPPS_OK && w != NULL) {
    memcpy(s->dim + s->nodes, t->coming, (size_t)count);
    s->nodes = nodes;
    s->dims_sent = 1;
    s->suspect = spoilt;
  } else if (status == VPPS_ERR_GRAPH || status == VPPS_ERR_ARGUMENT)
    s->suspect |= !alone && one_in(t, 8); /* another thread may have shortened it */
  if (status == VPPS_OK)
    s->evaluated = evaluates ? (int)node + 1 > s->evaluated ? (int)node + 1 : s->evaluated : 0;
  return status;
}

#endif
