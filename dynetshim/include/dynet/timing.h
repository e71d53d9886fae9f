/// \file
/// Stopwatches: Timer prints how long it lived, Timing tells, NamedTimer adds up by name.
#ifndef DYNET_TIMING_H
#define DYNET_TIMING_H

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <map>
#include <string>

namespace dynet {

/// Prints "[msg N ms]" to std::cerr when it is destroyed.
struct Timer {
  /// Starts. text: what the line calls it.
  Timer(const std::string &text) : msg(text), start(std::chrono::high_resolution_clock::now()) {}
  /// Prints the line.
  ~Timer();
  std::string msg;                                      ///< the name in the line
  std::chrono::high_resolution_clock::time_point start; ///< when it was made
};

/// A stopwatch.
struct Timing {
  /// Starts.
  Timing() : _start(std::chrono::high_resolution_clock::now()) {}
  /// Milliseconds since the start; the stopwatch goes on.
  double stop() const;
  /// Starts anew.
  void start() { _start = std::chrono::high_resolution_clock::now(); }
  std::chrono::high_resolution_clock::time_point _start; ///< when it was started
};

/// Adds up times by name, and prints them to std::cout when it is destroyed, if there are any.
class NamedTimer {
public:
  /// Prints "Timing Info:" and show(), if something was timed.
  ~NamedTimer();
  /// Starts a name's stopwatch.
  void start(std::string name) { timers[name].start(); }
  /// Adds the time since the name's start. A name that was not started: std::invalid_argument.
  void stop(std::string name);
  /// Prints a line for each name, the shortest time first, with its share of all times, and a line
  /// for the total.
  void show();
  std::map<std::string, double> cumtimes; ///< milliseconds by name
  std::map<std::string, Timing> timers;   ///< stopwatches by name
};

} // namespace dynet
#endif
