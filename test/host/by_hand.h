/* The functions that the programs of this folder use, found with dlsym: for one that is not
 * linked to the library. */
#ifndef BY_HAND_H
#define BY_HAND_H

#include <dlfcn.h>

#define FUNCTIONS(F)                                                                               \
  F(vpps_set_log)                                                                                  \
  F(vpps_last_error)                                                                               \
  F(vpps_engine_open)                                                                              \
  F(vpps_engine_close)                                                                             \
  F(vpps_collection_create)                                                                        \
  F(vpps_collection_factor)                                                                        \
  F(vpps_parameter_create)                                                                         \
  F(vpps_parameter_read)                                                                           \
  F(vpps_parameter_scale)                                                                          \
  F(vpps_graph_create)                                                                             \
  F(vpps_graph_destroy)                                                                            \
  F(vpps_value)                                                                                    \
  F(vpps_backward)                                                                                 \
  F(vpps_trainer_create)                                                                           \
  F(vpps_trainer_destroy)                                                                          \
  F(vpps_trainer_read_state)                                                                       \
  F(vpps_update)                                                                                   \
  F(vpps_handle_create)                                                                            \
  F(vpps_handle_destroy)                                                                           \
  F(vpps_fb)                                                                                       \
  F(vpps_sync_latest_loss)

#define POINTER(name) __typeof__(&name) name;
static struct { FUNCTIONS(POINTER) } api;

/* 1 if the library and all functions are there. */
static inline int find_functions(void *library) {
#define FIND(name)                                                                                 \
  *(void **)&api.name = dlsym(library, #name);                                                     \
  if (api.name == NULL)                                                                            \
    return 0;
  FUNCTIONS(FIND)
  return 1;
}

#define vpps_set_log api.vpps_set_log
#define vpps_last_error api.vpps_last_error
#define vpps_engine_open api.vpps_engine_open
#define vpps_engine_close api.vpps_engine_close
#define vpps_collection_create api.vpps_collection_create
#define vpps_collection_factor api.vpps_collection_factor
#define vpps_parameter_create api.vpps_parameter_create
#define vpps_parameter_read api.vpps_parameter_read
#define vpps_parameter_scale api.vpps_parameter_scale
#define vpps_graph_create api.vpps_graph_create
#define vpps_graph_destroy api.vpps_graph_destroy
#define vpps_value api.vpps_value
#define vpps_backward api.vpps_backward
#define vpps_trainer_create api.vpps_trainer_create
#define vpps_trainer_destroy api.vpps_trainer_destroy
#define vpps_trainer_read_state api.vpps_trainer_read_state
#define vpps_update api.vpps_update
#define vpps_handle_create api.vpps_handle_create
#define vpps_handle_destroy api.vpps_handle_destroy
#define vpps_fb api.vpps_fb
#define vpps_sync_latest_loss api.vpps_sync_latest_loss

#endif
