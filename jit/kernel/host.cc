// Runs scripts on the CPU's virtual processors: picks the variant for this machine, steps
// processors and decides how a thread waits.
#include "host.h"
#include "device.h"
#include "isa.h"
#include "processor.h"
#include "launch_cpu.h"
#include <sched.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

extern "C" {
uint32_t vpps_pass_v2(vpps_launch *, uint32_t, uint32_t, bool *);
uint32_t vpps_pass_v3(vpps_launch *, uint32_t, uint32_t, bool *);
uint32_t vpps_pass_v4(vpps_launch *, uint32_t, uint32_t, bool *);
uint32_t vpps_pass_generic(vpps_launch *, uint32_t, uint32_t, bool *);
}

namespace {

typedef uint32_t (*Pass)(vpps_launch *, uint32_t, uint32_t, bool *);
struct Variant {
  Pass pass;
  const char *name;
};

// VPPS_V2_ONLY: compiles in a third of the time, for the race detector, sanitizers and stand-ins.
#if defined(VPPS_V2_ONLY)
const Variant variants[] = {{vpps_pass_v2, "x86-64-v2"}};
#elif defined(__x86_64__)
const Variant variants[] = {
    {vpps_pass_v2, "x86-64-v2"}, {vpps_pass_v3, "x86-64-v3"}, {vpps_pass_v4, "x86-64-v4"}};
#else
const Variant variants[] = {{vpps_pass_generic, "generic"}};
#endif

#if defined(__x86_64__) && !defined(VPPS_V2_ONLY)
// The levels by their features, since compilers before GCC 12 and Clang 19 do not know levels by
// name. Those of AVX are asked of the compiler, which also asks if the system saves the registers.
bool has_v3() {
  unsigned a, b, c, d;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2"))
    return false;
  const unsigned movbe = 1u << 22, f16c = 1u << 29, lzcnt = 1u << 5;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & movbe) && (c & f16c) &&
         __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & lzcnt);
}
bool has_v4() {
  return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
#endif

const Variant *choose() {
#if defined(__x86_64__) && !defined(VPPS_V2_ONLY)
  __builtin_cpu_init();
  if (has_v4())
    return &variants[2];
  if (has_v3())
    return &variants[1];
#endif
  return &variants[0];
}

// A pointer instead of a function's static variable: that would need libstdc++'s locks.
// Threads that come first at the same time store the same.
const Variant &variant() {
  static const Variant *chosen;
  const Variant *v = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
  if (!v)
    __atomic_store_n(&chosen, v = choose(), __ATOMIC_RELAXED);
  return *v;
}

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Denormals count as zero while a thread interprets, as on the GPU. Nothing else of the environment
// is the thread's own: it rounds to nearest and traps nothing.
class FlushDenormals {
public:
#if defined(__x86_64__)
  FlushDenormals() : saved(_mm_getcsr()) { _mm_setcsr(0x1F80 | 0x8040); }
  ~FlushDenormals() { _mm_setcsr(saved); }

private:
  unsigned saved;
#else
  FlushDenormals() {}
#endif
};

const unsigned SPINS = 200, YIELDS = 2000; // before a waiting thread sleeps

// A thread that sleeps looks again after some 70 us. What it sleeps longer than this it was not
// run: the process was stopped, or others have the cores. That is no time that it waited for a
// processor.
const double LONGEST_LOOK = 0.01;

// Names the barrier that the thread's first unfinished processor waits for.
void time_out(vpps_launch *run, uint32_t thread, uint32_t threads) {
  const Launch l = launch_of(run);
  const Processor *all = (const Processor *)run->processors;
  for (uint32_t i = thread; i < l.processors; i += threads) {
    const Processor &p = all[i];
    if (p.pc == 0)
      continue;
    const uint32_t *w = l.script + p.pc;
    const uint32_t have = __atomic_load_n(counter(l, w[WAIT_BARRIER]), __ATOMIC_RELAXED);
    const uint32_t detail[5] = {w[WAIT_BARRIER], have, w[WAIT_EXPECTED], 0, 0};
    return vpps_cpu_give_up(run, STOPPED_LOST_SIGNAL, i, p.pc, detail);
  }
}

} // namespace

uint64_t vpps_cpu_ns(void) { return (uint64_t)(1e9 * now()); }

size_t vpps_cpu_state_bytes(void) { return sizeof(Processor); }

size_t vpps_cpu_place_operands(vpps_residency *res, float *memory) {
  size_t floats = 0;
  const auto here = [&] { return memory ? memory + floats : nullptr; };
  const auto count = [&](uint32_t rows, uint32_t cols) {
    floats += (size_t)((rows + VPPS_PANEL - 1) / VPPS_PANEL * VPPS_PANEL) * cols;
  };
  for (uint32_t at = 0; at < res->matrices * res->processors; at++) {
    const vpps_matrix &m = res->matrix[at / res->processors];
    const bool held = !res->columns || res->columns[at].column == VPPS_HELD;
    res->panels[2 * at].floats = here();
    for (uint32_t k = res->first[at]; k < res->first[at + 1]; k++)
      count(res->parts[k].rows, m.cols);
    res->panels[2 * at + 1].floats = here();
    if (!held)
      count(res->columns[at].columns, m.rows);
    for (uint32_t k = res->first[at]; held && k < res->first[at + 1]; k++)
      count(m.cols, res->parts[k].rows);
  }
  res->pairs = here();
  return floats + (size_t)res->processors * VPPS_PAIR_FLOATS;
}

void vpps_cpu_begin(vpps_launch *run) {
  const uint32_t *s = run->script;
  Processor *all = (Processor *)run->processors;
  for (uint32_t i = 0; i < s[HEAD_PROCESSORS]; i++) {
    const uint32_t *row = s + HEAD_WORDS + i * PROC_WORDS;
    all[i].id = i;
    all[i].pc = run->status[0] ? 0 : row[PROC_START];
    all[i].scale = 1.0f;
    all[i].commit = 0;
  }
  const vpps_residency *res = run->residency;
  for (uint32_t i = 0; i < 2 * res->matrices * res->processors; i++)
    res->panels[i].vectors = res->panels[i].packed = 0;
  for (uint32_t i = 0; run->clocks && i < s[HEAD_PROCESSORS]; i++)
    memset(run->clocks + (size_t)i * CLOCK_WORDS, 0, CLOCK_LEVELS * sizeof *run->clocks);
  run->stop = 0;
  memset(run->stopped, 0, sizeof run->stopped);
}

void vpps_cpu_give_up(vpps_launch *run, uint32_t code, uint32_t processor, uint32_t pc,
                      const uint32_t detail[5]) {
  uint32_t none = STOPPED_NONE;
  if (!__atomic_compare_exchange_n(&run->stopped[STOP_CODE], &none, code, false, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED))
    return;
  run->stopped[STOP_PROCESSOR] = processor;
  const uint32_t *row = run->script + HEAD_WORDS + processor * PROC_WORDS;
  run->stopped[STOP_WORD] = pc - row[PROC_START];
  run->stopped[STOP_BATCH] = run->batch;
  memcpy(run->stopped + STOP_DETAIL, detail, 5 * sizeof *detail);
  __atomic_store_n(&run->stop, 1u, __ATOMIC_RELEASE);
}

int vpps_cpu_run(vpps_launch *run, uint32_t thread, uint32_t threads) {
  FlushDenormals mode;
  Pass pass = variant().pass;
  double looked = 0, waited = 0;
  for (unsigned idle = 0;;) {
    bool moved = false;
    if (pass(run, thread, threads, &moved) == 0)
      return STOPPED_NONE;
    if (__atomic_load_n(&run->stop, __ATOMIC_ACQUIRE))
      return (int)__atomic_load_n(&run->stopped[STOP_CODE], __ATOMIC_RELAXED);
    if (moved) {
      idle = 0;
      continue;
    }
    // A few microseconds of spinning, as long as most waits are; then the core is left to
    // whoever else wants it, who may be the thread that this one waits for.
    if (++idle < SPINS) {
      relax();
      continue;
    }
    if (idle < SPINS + YIELDS) {
      sched_yield();
      continue;
    }
    if (idle == SPINS + YIELDS) {
      looked = now();
      waited = 0;
    }
    timespec nap = {0, 20000};
    nanosleep(&nap, 0);
    const double last = looked;
    looked = now();
    waited += looked - last < LONGEST_LOOK ? looked - last : LONGEST_LOOK;
    if (waited > run->wait_seconds) {
      time_out(run, thread, threads);
      return (int)__atomic_load_n(&run->stopped[STOP_CODE], __ATOMIC_RELAXED);
    }
  }
}

const char *vpps_cpu_variant(void) { return variant().name; }
