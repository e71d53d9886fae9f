// A progress bar for training loops: one line that is redrawn on a terminal, as wide as that is
// now, and a plain line every few seconds anywhere else.
#ifndef VPPS_EXAMPLES_PROGRESS_H
#define VPPS_EXAMPLES_PROGRESS_H

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>

#include "terminal.h"

// Seconds since its construction.
class stopwatch {
public:
  stopwatch() : start(std::chrono::steady_clock::now()) {}
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

private:
  std::chrono::steady_clock::time_point start;
};

class progress_bar {
public:
  progress_bar() : terminal(output_is_terminal()), drawn(-1e9) {}

  // done is the finished fraction; the time left follows from it. Cheap to call often.
  void show(double done, const std::string &text) {
    const double now = clock.seconds();
    if (now - drawn < (terminal ? 0.1 : 5.0))
      return;
    drawn = now;
    print(done, text, done > 0.005 ? now * (1 - done) / done : -1);
  }

  void finish(double done, const std::string &text) {
    print(done, text, done < 1 ? -1 : 0);
    if (terminal)
      std::putchar('\n');
    std::fflush(stdout);
  }

  double seconds() const { return clock.seconds(); }

private:
  void print(double done, const std::string &text, double left) {
    char percent[16], tail[32] = "";
    std::snprintf(percent, sizeof percent, "%3.0f %%", 100 * done);
    if (left >= 0)
      std::snprintf(tail, sizeof tail, "  ETA %d:%02d", int(left) / 60, int(left) % 60);
    const std::string line = percent + ("  " + text) + tail;
    if (terminal) // the escape sequence wipes what a longer line has left
      std::printf("\r%s\033[K", bar_before(line, done, terminal_width() - 1).c_str());
    else
      std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }

  // A bar where the line leaves room for one, and no more than the width.
  static std::string bar_before(const std::string &line, double done, size_t width) {
    const size_t most = 24, least = 5, around = 3; // cells, and "[] "
    if (line.size() + around + least > width)
      return line.substr(0, width);
    const size_t cells = std::min(most, width - line.size() - around);
    const size_t full = size_t(std::lround(done * double(cells)));
    return "[" + std::string(full, '#') + std::string(cells - full, '.') + "] " + line;
  }

  stopwatch clock;
  bool terminal;
  double drawn;
};

#endif
