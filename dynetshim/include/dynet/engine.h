/// \file
/// The engine under the front-end: dynet::initialize opens it, all graphs, parameters and trainers
/// share it, and it is closed with the last of them. Ordinary programs do not need this header. It
/// has no counterpart in DyNet.
#ifndef DYNET_ENGINE_H
#define DYNET_ENGINE_H

#include <cstdint>
#include <memory>

#include "vpps.h"

namespace dynet {

/// Owns an engine of the C interface.
class Engine {
public:
  /// Takes opened, which vpps_engine_open() gave.
  explicit Engine(vpps_engine *opened) : raw(opened), updates(0) {}
  /// Closes the engine.
  ~Engine() {
    vpps_comm_destroy(comm);
    vpps_engine_close(raw);
  }
  /// Connects this process with the others that its launcher has started: comm, rank and ranks.
  /// All of them call it. Once is enough. Failures: check().
  void connect();
  vpps_engine *const raw; ///< the engine of the C interface, owned by this object
  /// How often parameters were updated. Values that a graph has from before an update are stale for
  /// vpps::handle::fb.
  uint64_t updates;
  vpps_comm *comm = nullptr; ///< what connect() has made, owned by this object
  unsigned rank = 0;         ///< this process's number, from 0
  unsigned ranks = 1;        ///< how many processes train together

private:
  Engine(const Engine &);
  Engine &operator=(const Engine &);
};

/// The engine that initialize() opened. Before initialize(): std::invalid_argument, whose text says
/// that needed_by needed it.
const std::shared_ptr<Engine> &engine(const char *needed_by);

/// Whether initialize() has opened it.
bool has_engine();

/// Throws a failure of the C interface, with the engine's text: VPPS_ERR_GRAPH and
/// VPPS_ERR_ARGUMENT as std::invalid_argument, VPPS_ERR_MEMORY as dynet::out_of_memory, others as
/// std::runtime_error.
void throw_failure(vpps_status status);
/// Calls throw_failure() unless status is VPPS_OK.
inline void check(vpps_status status) {
  if (status != VPPS_OK)
    throw_failure(status);
}

} // namespace dynet
#endif
