// The tests' frame: TEST(name) { ... } bodies with CHECK and THROWS; run_tests prints
// "ok name" or "FAIL name reason" for each and returns the exit status.
#ifndef CHECK_H
#define CHECK_H

#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace tests {
struct Test {
  const char *name;
  void (*run)();
};
inline std::vector<Test> &all() {
  static std::vector<Test> tests;
  return tests;
}
struct Add {
  Add(const char *name, void (*run)()) { all().push_back(Test{name, run}); }
};
struct Failure {
  std::string reason;
};
inline void fail(const char *file, int line, const std::string &what) {
  std::ostringstream s;
  s << file << ':' << line << ' ' << what;
  throw Failure{s.str()};
}
// What a call prints to a stream, until it returns or throws.
template <class F> std::string printed(std::ostream &stream, F f) {
  struct Redirected {
    explicit Redirected(std::ostream &s) : stream(s), before(s.rdbuf(to.rdbuf())) {}
    ~Redirected() { stream.rdbuf(before); }
    std::ostringstream to;
    std::ostream &stream;
    std::streambuf *before;
  } redirected(stream);
  f();
  return redirected.to.str();
}
inline int run_tests() {
  int failed = 0;
  for (const Test &t : all()) {
    std::string reason;
    try {
      t.run();
    } catch (const Failure &f) {
      reason = f.reason;
    } catch (const std::exception &e) {
      reason = std::string("threw: ") + e.what();
    }
    if (reason.empty())
      std::cout << "ok " << t.name << "\n";
    else
      std::cout << "FAIL " << t.name << " " << reason << "\n";
    failed += !reason.empty();
  }
  return failed != 0;
}
} // namespace tests

#define TEST(name)                                                                                 \
  static void name();                                                                              \
  static tests::Add add_##name(#name, name);                                                       \
  static void name()
#define CHECK(...)                                                                                 \
  do {                                                                                             \
    if (!(__VA_ARGS__))                                                                            \
      tests::fail(__FILE__, __LINE__, "not: " #__VA_ARGS__);                                       \
  } while (0)
#define EQUAL(a, b)                                                                                \
  do {                                                                                             \
    std::ostringstream a_, b_;                                                                     \
    a_ << (a);                                                                                     \
    b_ << (b);                                                                                     \
    if (a_.str() != b_.str())                                                                      \
      tests::fail(__FILE__, __LINE__, #a " is '" + a_.str() + "', not '" + b_.str() + "'");        \
  } while (0)
// The text must hold the given words.
#define THROWS(type, words, ...)                                                                   \
  do {                                                                                             \
    std::string got_ = "nothing";                                                                  \
    bool right_ = false;                                                                           \
    try {                                                                                          \
      __VA_ARGS__;                                                                                 \
    } catch (const type &e) {                                                                      \
      got_ = e.what();                                                                             \
      right_ = got_.find(words) != std::string::npos;                                              \
    } catch (const std::exception &e) {                                                            \
      got_ = std::string("another exception: ") + e.what();                                        \
    }                                                                                              \
    if (!right_)                                                                                   \
      tests::fail(__FILE__, __LINE__, #__VA_ARGS__ " threw " + got_);                              \
  } while (0)
#endif
