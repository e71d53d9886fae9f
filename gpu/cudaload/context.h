/* Calls of libraries that work in the context that is current to the thread. */
#ifndef VPPS_CONTEXT_H
#define VPPS_CONTEXT_H
#include "cuda.h"

/* Puts the caller's context back behind calls with result r. */
static int vpps_leave(int r) {
  CUcontext mine;
  CUresult popped = cuCtxPopCurrent(&mine);
  return r ? r : -(int)popped;
}

/* Returns from the function with the result of a call in ctx or, below 0, the driver's, negated. */
#define IN_CONTEXT(ctx, call)                                                                      \
  do {                                                                                             \
    CUresult r_ = cuCtxPushCurrent(ctx);                                                           \
    return r_ ? -(int)r_ : vpps_leave(call);                                                       \
  } while (0)

#endif
