// Launches on the stand-in for libcuda.so.1: scripts are interpreted by the CPU's virtual
// processors. Nothing else of the library knows that there is no GPU.
#include "host.h"
#include "image.h"
#include "isa.h"
#include <stdlib.h>
#include <string.h>

// struct Arguments of jit/kernel/gpu.h
struct Arguments {
  float *segment[SEGMENTS];
  uint32_t *script, *status, *error;
  uint64_t wait_ns;
  uint32_t batch;
  uint64_t *clocks;
};

// The plan that the kernel's source was written for.
enum { MATRICES = 512, PROCESSORS = 132, SLOTS = 16 };
struct Plan {
  vpps_residency residency;
  vpps_matrix matrix[MATRICES];
  vpps_columns columns[MATRICES * PROCESSORS];
  uint32_t first[MATRICES * PROCESSORS + 1];
  vpps_rows parts[PROCESSORS * (MATRICES + SLOTS)];
  vpps_panels panels[2 * MATRICES * PROCESSORS];
  float *operands;
};

// The numbers of a table, n in all; a name is UINT32_MAX.
static uint32_t numbers(const char *text, const char *table, uint32_t *to, uint32_t room) {
  uint32_t n = 0;
  const char *at = strstr(text, table);
  for (at = at ? strchr(at, '{') : "}"; *at != '}' || (at[1] != ';' && at[1] != 0);) {
    char *end;
    const long v = strtol(at, &end, 10);
    if (end == at && *at != 'N') {
      at++;
      continue;
    }
    if (n == room)
      abort();
    to[n++] = end == at ? UINT32_MAX : (uint32_t)v;
    at = end == at ? at + strcspn(at, ",}") : end;
    at += strspn(at, "u");
  }
  return n;
}

// What part p of n of a run of so many rows or columns is.
static uint32_t part_of(uint32_t all, uint32_t each, uint32_t p, uint32_t *from) {
  *from = p * each < all ? p * each : all;
  return *from + each < all ? each : all - *from;
}

// What the processor that is k-th to hold a matrix forms of its gradient, by the first of its
// parts.
static void block_of(const uint32_t *b, uint32_t k, vpps_rows *part, vpps_rows *end) {
  const uint32_t rows = b[0], cols = b[1], unit = b[7], team = b[8];
  const uint32_t units = (rows + unit - 1) / unit, leader = k / team * team;
  for (vpps_rows *p = part; p < end; p++)
    p->outer_rows = p->outer_columns = 0;
  if (part == end || k >= units)
    return;
  const uint32_t members = leader + team < units ? team : units - leader;
  part->outer_row = leader * unit;
  part->outer_rows = rows - part->outer_row;
  if (part->outer_rows > members * unit)
    part->outer_rows = members * unit;
  part->outer_columns =
      part_of(cols, ((cols + members - 1) / members + 3) & ~3u, k - leader, &part->outer_column);
}

static Plan *read_plan(const char *tables, uint32_t processors) {
  enum { HELD = 9, BEYOND = 9 }; // numbers of an entry of each table
  static uint32_t held[HELD * PROCESSORS * SLOTS], beyond[BEYOND * MATRICES];
  Plan *plan = (Plan *)calloc(1, sizeof *plan);
  const uint32_t slots = numbers(tables, "residency[", held, sizeof held / 4) / HELD / processors;
  const uint32_t others = numbers(tables, "beyond[", beyond, sizeof beyond / 4) / BEYOND;
  uint32_t matrices = others, n = 0;
  for (uint32_t i = 0; i < slots * processors; i++)
    if (held[HELD * i] != UINT32_MAX && held[HELD * i] >= matrices)
      matrices = held[HELD * i] + 1;
  if (!plan || matrices > MATRICES || processors > PROCESSORS)
    abort();
  for (uint32_t m = 0; m < matrices; m++) {
    const uint32_t *b = beyond + BEYOND * m; // Residence
    for (uint32_t p = 0; p < processors; p++) {
      const uint32_t at = m * processors + p;
      plan->first[at] = n;
      plan->columns[at].column = VPPS_HELD;
      for (uint32_t s = 0; s < slots; s++) {
        const uint32_t *h = held + HELD * (p * slots + s); // Partition
        if (h[0] != m)
          continue;
        const uint32_t height = h[1], cols = h[2], copies = h[4], row = h[6];
        plan->matrix[m] = vpps_matrix{h[7], h[2], h[8]};
        const uint32_t each = 32 * (((cols + 31) / 32 + copies - 1) / copies); // columns of a copy
        uint32_t from;
        const uint32_t columns = part_of(cols, each, h[3], &from);
        plan->parts[n++] = vpps_rows{row, height, h[5], row, height, from, columns};
      }
      if (m >= others)
        continue;
      plan->matrix[m] = vpps_matrix{b[0], b[1], b[2]};
      const uint32_t k = (p + processors - b[3]) % processors;
      if (b[6] > 0)
        plan->columns[at].columns = part_of(b[1], b[6], k, &plan->columns[at].column);
      vpps_rows rows = {};
      rows.rows = b[4] > 0 ? part_of(b[0], b[4], k, &rows.row) : 0;
      if (rows.rows > 0)
        plan->parts[n++] = rows;
      if (b[7] > 0)
        block_of(b, k, plan->parts + plan->first[at], plan->parts + n);
    }
  }
  plan->first[matrices * processors] = n;
  plan->residency = vpps_residency{processors,  matrices,      plan->matrix, plan->first,
                                   plan->parts, plan->columns, plan->panels, nullptr};
  plan->operands =
      (float *)calloc(vpps_cpu_place_operands(&plan->residency, nullptr), sizeof(float));
  if (!plan->operands)
    abort();
  vpps_cpu_place_operands(&plan->residency, plan->operands);
  return plan;
}

// A module's plan. Its launches have the same number of processors.
static Plan *plan_of(Image *image, uint32_t processors) {
  if (!image->plan)
    image->plan = read_plan(image->code.tables, processors);
  return (Plan *)image->plan;
}

// The first word of the scripts that are understood: VPPS_FAKE_MAGIC, for tests, or what this file
// was compiled with.
static uint32_t magic() {
  const char *v = getenv("VPPS_FAKE_MAGIC");
  return v ? (uint32_t)strtoul(v, nullptr, 0) : SCRIPT_MAGIC;
}

extern "C" {
// Returns 0 for a script of another instruction set: the library was built from other sources.
int vpps_fake_run(Image *image, const Arguments *a) {
  if (a->script[HEAD_MAGIC] != magic())
    return 0;
  const uint32_t n = a->script[HEAD_PROCESSORS];
  Plan *plan = plan_of(image, n);
  vpps_launch run;
  memset(&run, 0, sizeof run);
  memcpy(run.segment, a->segment, sizeof a->segment);
  run.segment[SEG_INPUT] = (float *)(a->script + a->script[HEAD_INPUTS]);
  run.script = a->script;
  run.status = a->status;
  run.batch = a->batch;
  run.wait_seconds = 1e-9 * (double)a->wait_ns;
  run.residency = &plan->residency;
  run.clocks = a->clocks;
  run.processors = calloc(n, vpps_cpu_state_bytes());
  vpps_cpu_begin(&run);
  if (vpps_cpu_run(&run, 0, 1) != 0)
    a->error[0] = 1;
  free(run.processors);
  return 1;
}
void vpps_fake_unload(Image *image) {
  if (Plan *plan = (Plan *)image->plan) {
    free(plan->operands);
    free(plan);
  }
}
}
