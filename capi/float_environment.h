/* The floating-point environment of a call. A host may round otherwise, flush denormal numbers to
 * zero or trap exceptions. Each call switches to the default environment and back, so that results
 * do not depend on the host's. The library's own threads have the default environment from the
 * start: a thread inherits that of its creator, and whoever creates one is in the default, for Go
 * is started in a call. */
#ifndef VPPS_FLOAT_ENVIRONMENT_H
#define VPPS_FLOAT_ENVIRONMENT_H
#include <stdint.h>

#if defined(__x86_64__)
typedef struct float_environment {
  uint32_t sse;
  uint16_t x87;
} float_environment;
enum { DEFAULT_SSE = 0x1F80, DEFAULT_X87 = 0x37F, SSE_FLAGS = 0x3F };

static inline void set_floats(const float_environment *to) {
  __asm__ volatile("ldmxcsr %0" ::"m"(to->sse));
  __asm__ volatile("fldcw %0" ::"m"(to->x87));
}
static inline float_environment default_floats(void) {
  const float_environment ours = {DEFAULT_SSE, DEFAULT_X87};
  float_environment host;
  __asm__ volatile("stmxcsr %0" : "=m"(host.sse));
  __asm__ volatile("fnstcw %0" : "=m"(host.x87));
  if ((host.sse & ~(uint32_t)SSE_FLAGS) != DEFAULT_SSE || host.x87 != DEFAULT_X87)
    set_floats(&ours);
  return host;
}
/* Few hosts have another x87 environment, and to load one takes longer than to compare. */
static inline void restore_floats(const float_environment *host) {
  if (host->x87 == DEFAULT_X87)
    __asm__ volatile("ldmxcsr %0" ::"m"(host->sse));
  else
    set_floats(host);
}

#elif defined(__aarch64__)
typedef struct float_environment {
  uint64_t control, status;
} float_environment;

static inline float_environment default_floats(void) {
  float_environment host;
  __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(host.control), "=r"(host.status));
  if (host.control)
    __asm__ volatile("msr fpcr, xzr" ::: "memory");
  return host;
}
static inline void restore_floats(const float_environment *host) {
  if (host->control)
    __asm__ volatile("msr fpcr, %0" ::"r"(host->control) : "memory");
  __asm__ volatile("msr fpsr, %0" ::"r"(host->status) : "memory");
}

#else
#error "floating-point control of this architecture"
#endif

/* From here to the end of the function the environment is the default one. */
#define DEFAULT_FLOATS                                                                             \
  __attribute__((cleanup(restore_floats))) const float_environment host_floats = default_floats(); \
  (void)host_floats

#endif
