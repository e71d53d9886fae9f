// The virtual processor for x86-64-v4.
#if defined(__x86_64__) && !defined(VPPS_V2_ONLY)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("arch=x86-64-v4"))), apply_to = function)
#pragma clang fp contract(off)
#else
#pragma GCC target("arch=x86-64-v4")
#pragma GCC optimize("O3,fp-contract=off,no-math-errno,no-trapping-math")
#endif
#include "host.h"
#define VW 16
namespace vpps_v4 {
#include "cpu.h"
}
extern "C" uint32_t vpps_pass_v4(vpps_launch *run, uint32_t thread, uint32_t threads, bool *moved) {
  return vpps_v4::pass(run, thread, threads, moved);
}
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
