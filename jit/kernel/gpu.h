// The GPU's interpreter: one CTA of 256 threads is one virtual processor. Its matrices' rows are
// in registers from the start of the launch; its script comes through shared memory, fetched
// two pieces ahead. The matrix routines are called from code generated for the plan (jit).
#pragma once

struct Arguments {
  float *segment[SEGMENTS];
  u32 *script;
  u32 *status;
  u32 *
      stop; // the first processor that gave up, and why (persist/isa/stop.go); [0] set: all give up
  u64 wait_ns; // how long a wait may take
  u32 batch;
  u64 *clocks; // with VPPS_CLOCKS: CLOCK_WORDS for each processor
};

#define PIECE MAX_WORDS
#define PIECES 4

// The script's window: PIECES pieces in a ring, and a copy of the first behind the last, so that
// an instruction is always in one run; the lists of two instructions; and where pieces come from.
struct __align__(16) Window {
  u32 words[PIECE * (PIECES + 1)];
  u32 lists[2][PIECE];
  const u32 *stream;
};

#if __CUDA_ARCH__ >= 800
VP void copy_async(u32 *to, const u32 *from) {
  u32 s = (u32)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(s), "l"(from) : "memory");
}
VP void copy_word(float *to, const float *from) {
  u32 s = (u32)__cvta_generic_to_shared(to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(s), "l"(from) : "memory");
}
// The same, or a zero; from is an address either way.
VP void copy_word_or_zero(float *to, const float *from, bool there) {
  u32 s = (u32)__cvta_generic_to_shared(to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(s), "l"(from),
               "r"(there ? 4 : 0)
               : "memory");
}
// Up to four neighbours, of which count are copied and the others are 0.
VP void copy_some_or_zero(float *to, const float *from, u32 count) {
  u32 s = (u32)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(s), "l"(from), "r"(4 * count)
               : "memory");
}
VP void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for all of this thread's copies but those of its last N commits.
template <int N> VP void wait_for_all_but() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
#else // older devices copy at once
VP void copy_async(u32 *to, const u32 *from) { *(uint4 *)to = *(const uint4 *)from; }
VP void copy_word(float *to, const float *from) { *to = *from; }
VP void copy_word_or_zero(float *to, const float *from, bool there) { *to = there ? *from : 0.0f; }
VP void copy_some_or_zero(float *to, const float *from, u32 count) {
  for (u32 i = 0; i < 4; i++)
    to[i] = i < count ? from[i] : 0.0f;
}
VP void commit_copies() {}
template <int N> VP void wait_for_all_but() {}
#endif
#ifndef VPPS_EMULATED // which has addresses of its own
VP float load_shared_word(u32 at) {
  float v;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(at) : "memory");
  return v;
}
VP void store_shared_word(u32 at, float v) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(v) : "memory");
}
// Four neighbours, at an address that is a multiple of 16.
VP void load_shared_four(float *v, u32 at) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
               : "r"(at)
               : "memory");
}
VP void store_shared_four(u32 at, const float *v) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(v[0]), "f"(v[1]),
               "f"(v[2]), "f"(v[3])
               : "memory");
}
#endif
VP void wait_for_copies() { wait_for_all_but<1>(); }
VP void wait_for_all_copies() { wait_for_all_but<0>(); }

// Starts fetching piece k of the stream; 256 threads take 4 words each.
VP void fetch(Window &win, u32 k) {
  u32 slot = k % PIECES;
  const u32 *from = win.stream + k * PIECE + 4 * THREAD;
  copy_async(win.words + slot * PIECE + 4 * THREAD, from);
  if (slot == 0)
    copy_async(win.words + PIECES * PIECE + 4 * THREAD, from);
  commit_copies();
}

// Starts fetching words words of the script, beginning at from, in units of 4.
VP void fetch_list(u32 *to, const u32 *script, u32 from, u32 words) {
  if (4 * THREAD < from % 4 + words)
    copy_async(to + 4 * THREAD, script + (from - from % 4) + 4 * THREAD);
  commit_copies();
}

VP u32 load_acquire(const u32 *p) {
  u32 v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
VP u32 load_relaxed(const u32 *p) {
  u32 v;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
VP void add_release(u32 *p) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(p) : "memory");
}
VP u64 clock_ns() {
  u64 t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}

// Says where a processor gave up and makes the others follow.
VP void give_up(const Arguments &a, u32 code, u32 word, u32 d0, u32 d1, u32 d2, u32 d3 = 0,
                u32 d4 = 0) {
  if (atomicCAS(a.stop + STOP_CODE, (u32)STOPPED_NONE, code) == STOPPED_NONE) {
    a.stop[STOP_PROCESSOR] = blockIdx.x;
    a.stop[STOP_WORD] = word;
    a.stop[STOP_BATCH] = a.batch;
    a.stop[STOP_DETAIL] = d0;
    a.stop[STOP_DETAIL + 1] = d1;
    a.stop[STOP_DETAIL + 2] = d2;
    a.stop[STOP_DETAIL + 3] = d3;
    a.stop[STOP_DETAIL + 4] = d4;
    __threadfence_system();
  }
}

// Waits for a barrier; thread 0 looks. False: give up.
VP bool wait_for(const Arguments &a, const Launch &l, const u32 *w, u32 pc) {
  __shared__ u32 stop;
  if (THREAD == 0) {
    const u32 *at = counter(l, w[WAIT_BARRIER]);
    u32 want = w[WAIT_EXPECTED], spins = 0;
    u64 since = 0;
    stop = 0;
    while (load_acquire(at) < want) {
      if (++spins % 256)
        continue;
      if (load_relaxed(a.stop) != 0) {
        stop = 1;
        break;
      }
      u64 t = clock_ns();
      if (since == 0)
        since = t;
      if (t - since > a.wait_ns) {
        give_up(a, STOPPED_LOST_SIGNAL, pc, w[WAIT_BARRIER], load_relaxed(at), want);
        stop = 1;
        break;
      }
    }
  }
  __syncthreads();
  return stop == 0;
}
