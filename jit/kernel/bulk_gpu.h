// Copies of whole vectors from memory into shared memory by a GPU's copy engine, which takes no
// turns of the threads' load units: of sm_90 and later. A barrier for each of three buffers counts
// what is still on its way.
#pragma once

VP u32 shared_at(const void *p) { return (u32)__cvta_generic_to_shared(p); }

struct BulkCopies {
  struct Shared {
    u64 barriers[3];
    u32 waits[THREADS]; // bit k: whether a thread has waited for buffer k an odd number of times
  };
  Shared &x;

#if __CUDA_ARCH__ >= 900
  static constexpr bool THERE = true;

  // begun: the barriers are there already.
  VP_MEMBER explicit BulkCopies(Shared &x, bool begun = false) : x(x) {
    if (begun)
      return;
    x.waits[THREAD] = 0;
    if (THREAD < 3)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_at(x.barriers + THREAD))
                   : "memory");
    __syncthreads();
  }
  // Before copies begin, behind all that wrote what they read. What threads wrote to where they go
  // is there when the threads have met; the fence for that would take as long as a small product.
  VP_MEMBER void fence() const {
    if (THREAD % 32 == 0)
      asm volatile("fence.proxy.async.global;" ::: "memory");
  }
  // Says how many bytes will arrive in buffer k: once, before they are waited for.
  VP_MEMBER void expect(u32 k, u32 bytes) const {
    if (THREAD == 0)
      asm volatile(
          "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_at(x.barriers + k)),
          "r"(bytes)
          : "memory");
  }
  // Starts copying bytes, a multiple of 16 as both addresses are.
  VP_MEMBER void copy(u32 k, float *to, const float *from, u32 bytes) const {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(shared_at(to)),
                 "l"(from), "r"(bytes), "r"(shared_at(x.barriers + k))
                 : "memory");
  }
  // Starts copying n vectors of so many floats, of which at(i) says where they are, into rows of
  // WIDTH floats of buffer k. All threads call it, behind expect.
  template <int WIDTH, class At>
  VP_MEMBER void copy_vectors(u32 k, float *to, u32 n, u32 floats, const At &at) const {
    if (THREAD % 32 == 0)
      for (u32 i = THREAD / 32; i < n; i += WARPS)
        copy(k, to + i * WIDTH, at(i), 4 * floats);
  }
  // Waits until all that is expected in buffer k is there.
  VP_MEMBER void wait(u32 k) const {
    const u32 waits = x.waits[THREAD];
    u32 arrived;
    do
      asm volatile("{\n.reg .pred p;\n"
                   "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                   "selp.u32 %0, 1, 0, p;\n}"
                   : "=r"(arrived)
                   : "r"(shared_at(x.barriers + k)), "r"(waits >> k & 1u)
                   : "memory");
    while (!arrived);
    x.waits[THREAD] = waits ^ 1u << k;
  }
#else // older devices have none
  static constexpr bool THERE = false;

  VP_MEMBER explicit BulkCopies(Shared &x, bool = false) : x(x) {}
  VP_MEMBER void fence() const {}
  VP_MEMBER void expect(u32, u32) const {}
  template <int WIDTH, class At>
  VP_MEMBER void copy_vectors(u32, float *, u32, u32, const At &) const {}
  VP_MEMBER void wait(u32) const {}
#endif
};
