// The virtual processor for other machines (arm64: NEON is part of its base).
#if !defined(__x86_64__)
#if defined(__clang__)
#pragma clang fp contract(off)
#else
#pragma GCC optimize("O3,fp-contract=off,no-math-errno,no-trapping-math")
#endif
#include "host.h"
#define VW 4
namespace vpps_generic {
#include "cpu.h"
}
extern "C" uint32_t vpps_pass_generic(vpps_launch *run, uint32_t thread, uint32_t threads,
                                      bool *moved) {
  return vpps_generic::pass(run, thread, threads, moved);
}
#endif
