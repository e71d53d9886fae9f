// What a program measures over several windows of time: the median and how far they spread.
#ifndef VPPS_EXAMPLES_WINDOWS_H
#define VPPS_EXAMPLES_WINDOWS_H

#include <algorithm>
#include <vector>

#include "progress.h"
#include "ranks.h"

struct spread {
  double median, least, most;
};

// Of at least one value.
inline spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

// Calls window(seconds) up to count times, which together take about the seconds, and fewer if each
// takes longer than its share; at least once. Window returns what it has seen.
template <class Window>
auto measure_windows(double seconds, size_t count, Window window)
    -> std::vector<decltype(window(seconds))> {
  const stopwatch clock;
  std::vector<decltype(window(seconds))> seen;
  for (bool more = true; more;) {
    seen.push_back(window(seconds / double(count)));
    more = seen.size() < count && clock.seconds() < seconds;
    take_from_rank_0(more);
  }
  return seen;
}

#endif
