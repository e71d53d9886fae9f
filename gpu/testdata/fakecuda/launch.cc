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
enum { MATRICES = 512, PROCESSORS = 132, SLOTS = 16, BLOCKS = 1 << 16 };
struct Plan {
  vpps_residency residency;
  vpps_matrix matrix[MATRICES];
  vpps_columns columns[MATRICES * PROCESSORS];
  uint32_t first[MATRICES * PROCESSORS + 1];
  vpps_rows parts[PROCESSORS * (MATRICES + SLOTS)];
  uint32_t first_block[MATRICES * PROCESSORS + 1];
  vpps_block blocks[BLOCKS];
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

// Blocks of the gradient of matrix m, by processor (Grid).
static void deal_blocks(Plan *plan, uint32_t m, uint32_t processors, const uint32_t *grid,
                        uint32_t *n) {
  const uint32_t rows = grid[2] ? 64 : 32, columns = grid[2] ? 64 : 128;
  for (uint32_t p = 0; p < processors; p++) {
    plan->first_block[m * processors + p] = *n;
    for (uint32_t k = (p + processors - grid[5]) % processors; k < grid[4]; k += processors) {
      vpps_block b;
      b.rows = part_of(grid[0], rows, k % grid[3], &b.row);
      b.columns = part_of(grid[1], columns, k / grid[3], &b.column);
      if (*n == BLOCKS)
        abort();
      plan->blocks[(*n)++] = b;
    }
  }
  plan->first_block[(m + 1) * processors] = *n;
}

static Plan *read_plan(const char *tables, uint32_t processors) {
  enum { HELD = 9, BEYOND = 7, GRID = 6 }; // numbers of an entry of each table
  static uint32_t held[HELD * PROCESSORS * SLOTS], beyond[BEYOND * MATRICES],
      grids[GRID * MATRICES];
  Plan *plan = (Plan *)calloc(1, sizeof *plan);
  const uint32_t slots = numbers(tables, "residency[", held, sizeof held / 4) / HELD / processors;
  const uint32_t others = numbers(tables, "beyond[", beyond, sizeof beyond / 4) / BEYOND;
  const uint32_t matrices = numbers(tables, "grids[", grids, sizeof grids / 4) / GRID;
  uint32_t n = 0, blocks = 0;
  if (!plan || matrices > MATRICES || processors > PROCESSORS)
    abort();
  for (uint32_t m = 0; m < matrices; m++) {
    deal_blocks(plan, m, processors, grids + GRID * m, &blocks);
    const uint32_t *b = beyond + BEYOND * m; // Residence
    for (uint32_t p = 0; p < processors; p++) {
      const uint32_t at = m * processors + p;
      plan->first[at] = n;
      plan->columns[at].column = VPPS_HELD;
      for (uint32_t s = 0; s < slots; s++) {
        const uint32_t *h = held + HELD * (p * slots + s); // Partition
        if (h[0] != m)
          continue;
        plan->matrix[m] = vpps_matrix{h[7], h[2], h[8]};
        plan->parts[n++] = vpps_rows{h[6], h[1], h[5]};
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
    }
  }
  plan->first[matrices * processors] = n;
  plan->residency =
      vpps_residency{processors,  matrices,     plan->matrix,  plan->first,  plan->first_block,
                     plan->parts, plan->blocks, plan->columns, plan->panels, nullptr};
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
