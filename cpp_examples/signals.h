// SIGINT and SIGTERM end training after the batch at hand; a second one ends the program at once.
#ifndef VPPS_EXAMPLES_SIGNALS_H
#define VPPS_EXAMPLES_SIGNALS_H

#include <signal.h>

class stop_signals {
public:
  stop_signals() {
    caught() = 0;
    for (int k = 0; k < 2; k++) {
      struct sigaction mine = {};
      mine.sa_handler = came;
      mine.sa_flags = SA_ONSTACK | SA_RESTART; // libvpps: handlers need SA_ONSTACK
      sigaction(numbers[k], nullptr, &before[k]);
      if (before[k].sa_handler != SIG_IGN) // as under nohup
        sigaction(numbers[k], &mine, nullptr);
    }
  }
  ~stop_signals() {
    for (int k = 0; k < 2; k++)
      sigaction(numbers[k], &before[k], nullptr);
  }
  // The signal that came, 0: none.
  static volatile sig_atomic_t &caught() {
    static volatile sig_atomic_t signal;
    return signal;
  }

private:
  stop_signals(const stop_signals &);
  stop_signals &operator=(const stop_signals &);

  static void came(int number) {
    if (caught()) { // it ends the program when the handler returns
      signal(number, SIG_DFL);
      raise(number);
    }
    caught() = number;
  }

  const int numbers[2] = {SIGINT, SIGTERM};
  struct sigaction before[2];
};

#endif
