// A progress bar for training loops: one line that is redrawn on a terminal, a plain line
// every few seconds anywhere else.
#ifndef VPPS_EXAMPLES_PROGRESS_H
#define VPPS_EXAMPLES_PROGRESS_H

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>

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
  progress_bar() : terminal(isatty(STDOUT_FILENO)), drawn(-1e9), width(0) {}

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
    char head[96], tail[32] = "";
    const int cells = 24, full = int(std::lround(done * cells));
    if (terminal)
      std::snprintf(head, sizeof head, "[%s%s] %3.0f %%", std::string(size_t(full), '#').c_str(),
                    std::string(size_t(cells - full), '.').c_str(), 100 * done);
    else
      std::snprintf(head, sizeof head, "%3.0f %%", 100 * done);
    if (left >= 0)
      std::snprintf(tail, sizeof tail, "  ETA %d:%02d", int(left) / 60, int(left) % 60);
    std::string line = head + ("  " + text) + tail;
    const size_t length = line.size();
    if (terminal && length < width) // wipe what a longer line has left
      line.append(width - length, ' ');
    width = length;
    std::printf(terminal ? "\r%s" : "%s\n", line.c_str());
    std::fflush(stdout);
  }

  stopwatch clock;
  bool terminal;
  double drawn;
  size_t width;
};

#endif
