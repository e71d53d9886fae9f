// Timer: says on std::cerr how long it lived.
#ifndef DYNET_TIMING_H
#define DYNET_TIMING_H

#include <chrono>
#include <iostream>
#include <string>

namespace dynet {

struct Timing {
  Timing() : start(std::chrono::steady_clock::now()) {}
  double stop() const { // milliseconds so far
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
        .count();
  }
  std::chrono::steady_clock::time_point start;
};

struct Timer {
  Timer(const std::string &what) : what(what) {}
  ~Timer() { std::cerr << '[' << what << ' ' << timing.stop() << " ms]\n"; }
  std::string what;
  Timing timing;
};

} // namespace dynet
#endif
