/* A failed call changes nothing: all that can be read, before and after it. */
#ifndef VPPS_TORTURE_EVERYTHING_H
#define VPPS_TORTURE_EVERYTHING_H

#include "arguments.h"

/* All that can be read: of each thing what it is, a status and bytes. */
enum { MOST_THINGS = 2048 };
typedef struct Everything {
  struct {
    const char *what;
    int a, b;
    vpps_status status;
    size_t at, size;
  } things[MOST_THINGS];
  int count;
  size_t used;
  char bytes[1 << 17];
} Everything;
static Everything before, after;

static void note(Everything *e, const char *what, int a, int b, vpps_status status,
                 const void *bytes, size_t size) {
  CHECK(e->count < MOST_THINGS && e->used + size <= sizeof e->bytes);
  if (status != VPPS_OK)
    size = 0;
  e->things[e->count].what = what;
  e->things[e->count].a = a, e->things[e->count].b = b;
  e->things[e->count].status = status;
  e->things[e->count].at = e->used, e->things[e->count].size = size;
  memcpy(e->bytes + e->used, bytes, size);
  e->used += size;
  e->count++;
}

/* Waits for all batches; 1: one of them failed. */
static int settle(void) {
  float v[2];
  int failed = 0;
  vpps_status s;
  while ((s = vpps_parameter_read(engine, quiet, VPPS_VALUES, 0, 2, v)) == VPPS_ERR_NUMERIC)
    failed = 1;
  CHECK(s == VPPS_OK && v[0] == 1 && v[1] == 2);
  return failed;
}

static void read_parameters(Everything *e) {
  float v[64];
  for (int p = 0; p < PARAMETERS; p++) {
    struct {
      uint64_t count;
      uint32_t rows[8];
      int all;
    } touched;
    const uint32_t id = parameters[p], size = size_of[p];
    memset(&touched, 0, sizeof touched);
    note(e, "values", p, 0, vpps_parameter_read(engine, id, VPPS_VALUES, 0, size, v), v, 4 * size);
    note(e, "gradient", p, 0, vpps_parameter_read(engine, id, VPPS_GRADIENT, 0, size, v), v,
         4 * size);
    note(e, "rows with a gradient", p, 0,
         vpps_parameter_touched(engine, id, touched.rows, 8, &touched.count, &touched.all),
         &touched, sizeof touched);
  }
  for (uint32_t c = 1; c < 4; c++)
    note(e, "factor", (int)c, 0, vpps_collection_factor(engine, c, v), v, 4);
}

static void read_trainers(Everything *e) {
  float v[64];
  for (int k = 0; k < POOL; k++) {
    vpps_trainer *trainer = pool[TRAINER][k];
    uint64_t n = 0;
    if (trainer == NULL)
      continue;
    note(e, "updates", k, 0, vpps_trainer_updates(trainer, &n), &n, sizeof n);
    for (int p = 0; p < PARAMETERS; p++) {
      if (!(parameters_of[k] >> p & 1))
        continue;
      const uint32_t size = vectors_of[rule_of[k] & 7] * size_of[p];
      note(e, "state", k, p, vpps_trainer_read_state(trainer, parameters[p], size, v), v, 4 * size);
    }
  }
}

static void read_graphs(Everything *e, Thread *t) {
  float v[64];
  for (int k = 0; k < GRAPHS; k++) {
    Shadow *s = &t->own[k];
    if (vpps_gradient(s->graph, UINT32_MAX, v, 1) == VPPS_ERR_ARGUMENT) /* tells how many nodes */
      note(e, "nodes", k, 0, VPPS_OK, vpps_last_error(), strlen(vpps_last_error()));
    for (int n = 0; n < s->nodes; n += 3) {
      const uint32_t size = sizes[s->dim[n]];
      note(e, "gradient of node", k, n, vpps_gradient(s->graph, (uint32_t)n, v, size), v, 4 * size);
      if (n < s->evaluated)
        note(e, "value of node", k, n, vpps_value(s->graph, NULL, (uint32_t)n, v, size), v,
             4 * size);
    }
  }
}

static void read_everything(Everything *e, Thread *t) {
  e->count = 0, e->used = 0;
  read_parameters(e);
  read_trainers(e);
  read_graphs(e, t);
}

/* Compares before and after; trained: only what belongs to parameters and trainers. */
static void compare(const char *function, int trained) {
  for (int k = 0; k < before.count || k < after.count; k++) {
    const char *what = k < before.count ? before.things[k].what : after.things[k].what;
    if (trained && strcmp(what, "values") != 0 && strcmp(what, "factor") != 0 &&
        strcmp(what, "updates") != 0 && strcmp(what, "state") != 0)
      continue;
    if (k >= before.count || k >= after.count || before.things[k].what != after.things[k].what ||
        before.things[k].status != after.things[k].status ||
        before.things[k].size != after.things[k].size ||
        memcmp(before.bytes + before.things[k].at, after.bytes + after.things[k].at,
               after.things[k].size) != 0)
      fail("vpps_%s failed and changed: %s %d %d (status %d, then %d)", function, what,
           before.things[k].a, before.things[k].b, before.things[k].status, after.things[k].status);
  }
}

#endif
