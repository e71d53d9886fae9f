// How threads of a program wait for each other. A language may hold a lock while a program calls
// DyNet: Python locks its interpreter. A call that waits gives this lock up meanwhile.
#ifndef VPPS_INSTALLED_WAITING_HPP
#define VPPS_INSTALLED_WAITING_HPP

#include <atomic>
#include <cstdint>
#include <mutex>
#include <stdexcept>

namespace vpps {
namespace installed {

// The language's lock; a C++ program has none. unlock returns null if this thread does not have it.
struct language_lock {
  void *(*unlock)();
  void (*lock)(void *);
  static language_lock &the() {
    static language_lock l = {nullptr, nullptr};
    return l;
  }
};

// A wait, from construction to destruction, without the language's lock.
class waiting {
public:
  waiting() : of_(language_lock::the()), state_(of_.unlock == nullptr ? nullptr : of_.unlock()) {}
  ~waiting() {
    if (state_ != nullptr)
      of_.lock(state_);
  }

private:
  waiting(const waiting &);
  waiting &operator=(const waiting &);
  const language_lock of_; // which may have ended by the time that this wait does
  void *const state_;
};

// Calls the engine, which may take long.
template <class Call> auto while_waiting(const Call &call) -> decltype(call()) {
  const waiting w;
  return call();
}

// The turn of a call of the adapter's: one thread at a time has it, as in the engine. A thread that
// waits for its turn gives up the language's lock, and takes that again before it has the turn.
class turn {
public:
  turn() : lock_(calls(), std::try_to_lock) {
    while (!lock_.owns_lock()) {
      {
        const waiting w;
        const std::lock_guard<std::recursive_mutex> others(calls());
      }
      (void)lock_.try_lock();
    }
  }

private:
  static std::recursive_mutex &calls() {
    static std::recursive_mutex *m = new std::recursive_mutex;
    return *m;
  }
  std::unique_lock<std::recursive_mutex> lock_;
};

// Another thread may clear or destroy a graph while a call of it waits. Then that call is an error,
// and touches nothing of the graph any more.
class graph_change {
public:
  graph_change() : seen_(count()) {}
  // Throws if a graph has changed since this object was made.
  void none() const {
    if (count() != seen_)
      throw std::runtime_error("another thread has cleared or replaced the graph during this call: "
                               "DyNet has one graph, which one thread at a time may use");
  }
  // A graph changes. If the engine has a call of it, that call's end comes first.
  static void now() {
    const std::lock_guard<std::mutex> between(engine());
    ++count();
  }
  // A call of the engine for a graph.
  template <class Call> static auto none_while(const Call &call) -> decltype(call()) {
    const graph_change change;
    const auto result = without_lock(call);
    change.none();
    return result;
  }

private:
  template <class Call> static auto without_lock(const Call &call) -> decltype(call()) {
    std::unique_lock<std::mutex> during(engine());
    const waiting w;
    const auto result = call();
    during.unlock(); // before the language's lock, which whoever changes the graph has
    return result;
  }
  static std::atomic<uint64_t> &count() {
    static std::atomic<uint64_t> n(0);
    return n;
  }
  static std::mutex &engine() {
    static std::mutex *m = new std::mutex;
    return *m;
  }
  const uint64_t seen_;
};

// The turn of a call of a graph.
class graph_turn {
public:
  graph_turn() { change_.none(); }

private:
  const graph_change change_; // before the turn, for which it may have to wait
  const turn mine_;
};

} // namespace installed
} // namespace vpps
#endif
