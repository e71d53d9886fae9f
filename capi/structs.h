/* Sizes of the structs that begin with struct_size. A program's struct may be that of an older or a
 * newer version: it has fewer members or more, but none of them in part. */
#ifndef VPPS_STRUCTS_H
#define VPPS_STRUCTS_H
#include <stddef.h>
#include <stdint.h>
#include "vpps.h"

typedef struct vpps_member {
  uint32_t at, end;
} vpps_member;

#define VPPS_MEMBER(type, name)                                                                    \
  { offsetof(type, name), offsetof(type, name) + sizeof(((type *)0)->name) }

#define M(name) VPPS_MEMBER(vpps_engine_options, name)
static const vpps_member vpps_engine_options_members[] = {
    M(device), M(threads), M(processors), M(seed),    M(snapshot_batches),
    M(plan),   M(trace),   M(times),      M(profile), M(data_parallel),
};
#undef M

#define M(name) VPPS_MEMBER(vpps_statistics, name)
static const vpps_member vpps_statistics_members[] = {
    M(batches),           M(launches),       M(copies_to_device), M(nodes),
    M(decode_ns),         M(plan_ns),        M(schedule_ns),      M(execute_ns),
    M(script_words),      M(updates),        M(failures),         M(snapshots),
    M(kernels_compiled),  M(kernels_cached), M(compile_ns),       M(bytes_to_device),
    M(bytes_from_device), M(templates),      M(instances),        M(loose_nodes),
};
#undef M

#define M(name) VPPS_MEMBER(vpps_trainer_options, name)
static const vpps_member vpps_trainer_options_members[] = {
    M(rule),     M(learning_rate), M(clipping), M(clip_threshold), M(sparse), M(collection),
    M(momentum), M(rho),           M(epsilon),  M(beta_1),         M(beta_2),
};
#undef M

#define M(name) VPPS_MEMBER(vpps_times, name)
static const vpps_member vpps_times_members[] = {
    M(processors),   M(record_ns),     M(decode_ns),      M(schedule_ns), M(launch_ns), M(wait_ns),
    M(copy_ns),      M(kernel_ns),     M(launches),       M(start),       M(forward),   M(backward),
    M(gradients),    M(update),        M(fetch),          M(waiting),     M(idle),      M(busy),
    M(loaded_bytes), M(updated_bytes), M(streamed_bytes),
};
#undef M

#define M(name) VPPS_MEMBER(vpps_checkpoint_contents, name)
static const vpps_member vpps_checkpoint_contents_members[] = {
    M(ids),     M(id_count),     M(trainers), M(trainer_count),
    M(handles), M(handle_count), M(blobs),    M(blob_count),
};
#undef M

/* Whether a size that a program has set may be that of a version's struct. */
static inline int vpps_size_set(uint32_t size) { return size >= sizeof(uint32_t) && size <= 4096; }

/* Whether each member lies in the first size bytes or behind them. */
static inline int vpps_size_whole(uint32_t size, const vpps_member *members, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (size > members[i].at && size < members[i].end)
      return 0;
  return 1;
}
#endif
