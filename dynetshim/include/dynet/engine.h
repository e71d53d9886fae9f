// The engine under the front-end: opened once by dynet::initialize, shared by all
// graphs, parameters and trainers, and closed with the last of them. Ordinary
// programs do not need this header.
#ifndef DYNET_ENGINE_H
#define DYNET_ENGINE_H

#include <cstdint>
#include <memory>

#include "vpps.h"

namespace dynet {

class Engine {
public:
  explicit Engine(vpps_engine *raw) : raw(raw), updates(0) {}
  ~Engine() { vpps_engine_close(raw); }
  vpps_engine *const raw;
  // Counts updates of parameters: what a graph evaluated before one is stale for fb.
  uint64_t updates;

private:
  Engine(const Engine &);
  Engine &operator=(const Engine &);
};

// The engine; before initialize: std::invalid_argument saying what needed it.
const std::shared_ptr<Engine> &engine(const char *needed_by);

// Turns a failure into an exception with the engine's text: VPPS_ERR_GRAPH and
// VPPS_ERR_ARGUMENT into std::invalid_argument, VPPS_ERR_MEMORY into
// dynet::out_of_memory, others into std::runtime_error.
void throw_failure(vpps_status status);
inline void check(vpps_status status) {
  if (status != VPPS_OK)
    throw_failure(status);
}

} // namespace dynet
#endif
