// The C interface of the CPU's virtual processors: replays scripts on any number of
// threads. Used by persist/cpu through cgo and by the sanitizer harness directly.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include "isa.h"
#ifdef __cplusplus
extern "C" {
// Without side effects: by GCC's own declaration, which no pragma changes, they may set errno.
// Loops over them would go element by element, those of update rules 5 times as slow.
__attribute__((const)) float sqrtf(float) noexcept;
__attribute__((const)) double sqrt(double) noexcept;
#endif

// A matrix (column-major, at offset in segment param) and a run of its rows; results of transposed
// products are in order of rank.
struct vpps_matrix {
  uint32_t rows, cols, offset;
};
struct vpps_rows {
  uint32_t row, rows, rank;
};
// A part of a matrix's gradient.
struct vpps_block {
  uint32_t row, rows, column, columns;
};
// A run of columns, of which a processor forms a transposed product; HELD: instead every processor
// works with the rows that it holds.
enum { VPPS_HELD = 0xFFFFFFFF };
struct vpps_columns {
  uint32_t column, columns;
};
// Working memory for a launch's products: a processor's rows of a matrix, or its columns as rows of
// the transpose, in panels (panels_cpu.h).
enum { VPPS_PANEL = 32 }; // rows of a panel, at most
struct vpps_panels {
  float *floats;
  uint32_t vectors; // that products were formed of
  uint32_t packed;  // whether the panels are written
};
// Outer products copy up to VPPS_OUTER_PAIRS pairs of vectors at a time, of dy VPPS_OUTER_FLOATS
// floats in all, and up to VPPS_OUTER_COLUMNS columns of each x.
enum {
  VPPS_OUTER_PAIRS = 64,
  VPPS_OUTER_FLOATS = 32768,
  VPPS_OUTER_COLUMNS = 64,
  VPPS_PAIR_FLOATS = VPPS_OUTER_FLOATS + VPPS_OUTER_COLUMNS * VPPS_OUTER_PAIRS
};
// Which rows of which matrix each processor holds: those of matrix m and processor p are
// parts[first[m * processors + p]] up to parts[first[m * processors + p + 1]]. What it forms of the
// gradient are blocks[first_block[...]], likewise. Its columns are
// columns[m * processors + p]; NULL: all are held by rows. Its panels are
// panels[2 * (m * processors + p)], those of the transpose the next;
// pairs is room for VPPS_PAIR_FLOATS floats of each processor.
struct vpps_residency {
  uint32_t processors, matrices;
  const struct vpps_matrix *matrix;
  const uint32_t *first, *first_block;
  const struct vpps_rows *parts;
  const struct vpps_block *blocks;
  const struct vpps_columns *columns;
  struct vpps_panels *panels;
  float *pairs;
};

// One launch. All memory is the caller's and stays valid until every thread has returned.
struct vpps_launch {
  float *segment[SEGMENTS + 1]; // the last stays empty
  uint32_t *script;
  uint32_t *status; // [0] nonzero: an earlier batch failed, every processor halts at once
  uint32_t batch;
  double wait_seconds; // how long a wait may take before it is an error
  const struct vpps_residency *residency;
  uint32_t hold;  // stop before updates: they are last, and vpps_cpu_run goes on with them without
  uint32_t check; // hold every operand against the tensor table, which then must follow the script
  uint64_t *clocks; // CLOCK_WORDS for each processor (persist/isa/clocks.go); 0: no clocks
  // Working state, one entry a processor: zeroed by vpps_cpu_begin.
  void *processors;             // vpps_cpu_state_bytes() each
  uint32_t stop;                // set when a thread gives up; the others follow
  uint32_t stopped[STOP_WORDS]; // the first processor that gave up, and why (persist/isa/stop.go)
};

size_t vpps_cpu_state_bytes(void);
// Nanoseconds of a clock that only goes forward.
uint64_t vpps_cpu_ns(void);
// Has a residency's panels and pairs begin in memory, one behind the other; NULL: not yet. Returns
// how many floats they take. The memory has to be zeroed, and aligned to a line of the cache.
size_t vpps_cpu_place_operands(struct vpps_residency *residency, float *memory);
// Prepares a launch from its script's header.
void vpps_cpu_begin(struct vpps_launch *launch);
// Interprets the processors thread, thread+threads, ... until all have halted or are held. Every
// thread number below threads must be called, at the same time or one after another when threads
// is 1. Returns stopped[STOP_CODE], STOPPED_NONE if all went well.
int vpps_cpu_run(struct vpps_launch *launch, uint32_t thread, uint32_t threads);
// Stops the launch; the first one that calls this is told of.
void vpps_cpu_give_up(struct vpps_launch *launch, uint32_t code, uint32_t processor, uint32_t pc,
                      const uint32_t detail[5]);
// "x86-64-v3": the variant that vpps_cpu_run uses on this machine.
const char *vpps_cpu_variant(void);

#ifdef __cplusplus
}
#endif
