// The virtual processor for x86-64-v2.
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("arch=x86-64-v2"))), apply_to = function)
#pragma clang fp contract(off)
#else
#pragma GCC target("arch=x86-64-v2")
#pragma GCC optimize("O3,fp-contract=off,no-math-errno,no-trapping-math")
#endif
#include "host.h"
#define VW 4
namespace vpps_v2 {
#include "cpu.h"
}
extern "C" uint32_t vpps_pass_v2(vpps_launch *run, uint32_t thread, uint32_t threads, bool *moved) {
  return vpps_v2::pass(run, thread, threads, moved);
}
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
