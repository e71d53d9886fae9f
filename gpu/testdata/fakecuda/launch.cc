// Launches on the stand-in for libcuda.so.1: scripts are interpreted by the CPU's virtual
// processors. Nothing else of the library knows that there is no GPU.
#include "host.h"
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

extern "C" {
// All variants are one source; here is only the first.
#if defined(__x86_64__)
uint32_t vpps_pass_v2(vpps_launch *, uint32_t, uint32_t, bool *);
uint32_t vpps_pass_v3(vpps_launch *run, uint32_t thread, uint32_t threads, bool *moved) {
  return vpps_pass_v2(run, thread, threads, moved);
}
uint32_t vpps_pass_v4(vpps_launch *run, uint32_t thread, uint32_t threads, bool *moved) {
  return vpps_pass_v2(run, thread, threads, moved);
}
#endif

void vpps_fake_run(const Arguments *a) {
  static const uint32_t first[2] = {0, 0};
  const uint32_t n = a->script[HEAD_PROCESSORS];
  const vpps_residency none = {n, 0, NULL, first, NULL, NULL, NULL};
  vpps_launch run;
  memset(&run, 0, sizeof run);
  memcpy(run.segment, a->segment, sizeof a->segment);
  run.segment[SEG_INPUT] = (float *)(a->script + a->script[HEAD_INPUTS]);
  run.script = a->script;
  run.status = a->status;
  run.batch = a->batch;
  run.wait_seconds = 1e-9 * (double)a->wait_ns;
  run.residency = &none;
  run.clocks = a->clocks;
  run.processors = calloc(n, vpps_cpu_state_bytes());
  vpps_cpu_begin(&run);
  if (vpps_cpu_run(&run, 0, 1) != 0)
    a->error[0] = 1;
  free(run.processors);
}
}
