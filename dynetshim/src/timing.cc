// Stopwatches.
#include "dynet/timing.h"

#include <stdexcept>
#include <utility>
#include <vector>

namespace dynet {

namespace {
double milliseconds_since(std::chrono::high_resolution_clock::time_point start) {
  const auto now = std::chrono::high_resolution_clock::now();
  return std::chrono::duration<double, std::milli>(now - start).count();
}
} // namespace

Timer::~Timer() { std::cerr << '[' << msg << ' ' << milliseconds_since(start) << " ms]\n"; }

double Timing::stop() const { return milliseconds_since(_start); }

NamedTimer::~NamedTimer() {
  if (timers.empty())
    return;
  std::cout << "Timing Info:" << std::endl;
  show();
}

void NamedTimer::stop(std::string name) {
  const auto found = timers.find(name);
  if (found == timers.end())
    throw std::invalid_argument("NamedTimer: '" + name + "' was not started");
  cumtimes[name] += found->second.stop();
}

void NamedTimer::show() {
  std::vector<std::pair<double, std::string>> lines;
  double total = 0;
  for (const auto &each : cumtimes) {
    lines.emplace_back(each.second, each.first);
    total += each.second;
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const std::pair<double, std::string> &a,
                      const std::pair<double, std::string> &b) { return a.first < b.first; });
  std::cout << std::setprecision(4);
  for (const auto &line : lines)
    std::cout << std::setw(11) << line.first << '\t' << 100 * line.first / total << "%\t"
              << line.second << std::endl;
  std::cout << std::setw(11) << total << "\t100%\t(total time)" << std::endl;
}

} // namespace dynet
