/// \file
/// vpps::options: what a program chooses about the engine, instead of flags and variables.
#ifndef VPPS_OPTIONS_HPP
#define VPPS_OPTIONS_HPP

#include <stdexcept>
#include <string>

#include "vpps.h"

namespace vpps {

/// The settings of the engine. A member that is empty, 0 or false leaves the choice to the flag,
/// the variable or the default. In C: vpps_engine_options.
struct options {
  std::string device;            ///< "cpu", "cuda", "cuda:1" or "auto"; else --vpps-device
  unsigned threads = 0;          ///< CPU: threads, up to 1024; else VPPS_THREADS
  unsigned processors = 0;       ///< CPU: virtual processors, up to 1024; else one a thread
  unsigned snapshot_batches = 0; ///< updates between two snapshots; else VPPS_SNAPSHOT_BATCHES
  std::string plan;              ///< in the form of VPPS_PLAN; else that variable
  std::string trace;             ///< the file of a timeline; else VPPS_TRACE
  bool times = false;            ///< measure the device's time; else VPPS_TIMES
  bool profile = false;          ///< measure each kind of instruction; else VPPS_PROFILE
  /// train together with the launcher's other processes; else --vpps-data-parallel. It needs
  /// libvpps's own DyNet headers
  bool data_parallel = false;
};

/// What set_options() was given, and whether an engine was opened with it.
struct chosen_options {
  options given;      ///< as set last
  bool taken = false; ///< an engine has them
  /// The process's.
  static chosen_options &all() {
    static chosen_options c;
    return c;
  }
  /// Puts what was given in place of what c has. The texts live as long as the process, or until
  /// set_options() is called again.
  void into(vpps_engine_options &c) {
    taken = true;
    if (!given.device.empty())
      c.device = given.device.c_str();
    if (!given.plan.empty())
      c.plan = given.plan.c_str();
    if (!given.trace.empty())
      c.trace = given.trace.c_str();
    if (given.threads > 0)
      c.threads = given.threads;
    if (given.processors > 0)
      c.processors = given.processors;
    if (given.snapshot_batches > 0)
      c.snapshot_batches = given.snapshot_batches;
    if (given.times)
      c.times = 1;
    if (given.profile)
      c.profile = 1;
    if (given.data_parallel)
      c.data_parallel = 1;
  }
};

/// Chooses the settings of the engine. Call it before dynet::initialize() with libvpps's own DyNet
/// headers, and before the first graph, trainer or handle of libvpps with an installed DyNet.
/// Values are checked when the engine is opened. \throws std::logic_error if that has happened.
inline void set_options(const options &o) {
  if (chosen_options::all().taken)
    throw std::logic_error("vpps::set_options: the engine is open: set options before "
                           "dynet::initialize and before the first use of libvpps");
  chosen_options::all().given = o;
}

} // namespace vpps
#endif
