/// \file
/// Timer: prints to std::cerr how long it lived.
#ifndef DYNET_TIMING_H
#define DYNET_TIMING_H

#include <chrono>
#include <iostream>
#include <string>

namespace dynet {

/// A stopwatch.
struct Timing {
  /// Starts.
  Timing() : start(std::chrono::steady_clock::now()) {}
  /// Milliseconds since the start; the stopwatch goes on.
  double stop() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
        .count();
  }
  std::chrono::steady_clock::time_point start; ///< when it was started
};

/// Prints "[what N ms]" to std::cerr when it is destroyed.
struct Timer {
  /// Starts. name: what the line calls it.
  Timer(const std::string &name) : what(name) {}
  /// Prints the line.
  ~Timer() { std::cerr << '[' << what << ' ' << timing.stop() << " ms]\n"; }
  std::string what; ///< the name in the line
  Timing timing;    ///< the stopwatch
};

} // namespace dynet
#endif
