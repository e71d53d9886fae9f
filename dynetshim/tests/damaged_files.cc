// The loaders of models and trainers are given files that are damaged at random. Each one is read,
// or refused by an exception that leaves everything as it was; and no more memory is asked for than
// the file's size explains.
//
//	damaged_files                 a few thousand files
//	damaged_files --seconds 600   as many as fit
#include "check.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <new>
#include <random>

#include <sys/stat.h>
#include <unistd.h>

#include "dynet/dynet.h"
#include "dynet/io.h"
#include "dynet/param-init.h"
#include "dynet/training.h"

using namespace dynet;

// The largest piece of memory that was asked for.
static std::atomic<size_t> largest(0);
void *operator new(size_t size) {
  if (size > largest)
    largest = size;
  if (void *p = std::malloc(size ? size : 1))
    return p;
  throw std::bad_alloc();
}
void operator delete(void *p) noexcept { std::free(p); }
void operator delete(void *p, size_t) noexcept { std::free(p); }

namespace {

double seconds = 0; // 0: a few thousand files

std::string file;

std::string contents(const std::string &name) {
  std::ifstream in(name);
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

struct model {
  ParameterCollection m;
  Parameter p = m.add_parameters({3, 2}, "p");
  Parameter b = m.add_parameters({3}, "b");
  LookupParameter e = m.add_lookup_parameters(4, {2}, "e");
  AdamTrainer trainer{m};
  void step(bool update) {
    ComputationGraph cg;
    Expression loss = squared_norm(parameter(cg, p) * lookup(cg, e, 1u) + parameter(cg, b));
    cg.forward(loss);
    cg.backward(loss);
    if (update)
      trainer.update();
    else
      p.p->nonzero_grad = b.p->nonzero_grad = e.p->nonzero_grad = true;
  }
  std::string trainer_text() {
    std::ostringstream text;
    trainer.save(text);
    return text.str();
  }
  // All that a loader may change, bit by bit.
  std::string state() {
    std::string all = trainer_text();
    for (vpps_part part : {VPPS_VALUES, VPPS_GRADIENT})
      for (const std::vector<float> &v : {p.p->read(part), b.p->read(part), e.p->read(part)})
        all.append(reinterpret_cast<const char *>(v.data()), 4 * v.size());
    return all;
  }
};

struct damage {
  std::mt19937 random{1};
  size_t below(size_t n) { return random() % n; }
  void once(std::string &text) {
    static const char *const words[] = {"{4294967295,4294967295}",
                                        "{65536,65536}",
                                        "{2,3X4}",
                                        "{0}",
                                        "{}",
                                        "-1",
                                        "1e999",
                                        "nan",
                                        "99999999999",
                                        "FULL_GRAD",
                                        " ",
                                        "\n",
                                        "\r\n",
                                        "#",
                                        "#Parameter#",
                                        "+",
                                        "4294967296",
                                        "-0",
                                        "0x1p",
                                        "{3,2,1,1}"};
    const size_t at = below(text.size() + 1), rest = text.size() - at;
    switch (below(7)) {
    case 0: // any byte
      if (rest)
        text[at] = char(random());
      break;
    case 1:
      text.resize(at);
      break;
    case 2:
      text.erase(at, below(20));
      break;
    case 3:
      text.insert(at, words[below(sizeof words / sizeof *words)]);
      break;
    case 4: // in place of a word
      if (const size_t space = text.find(' ', at) + 1)
        text.replace(space, text.find_first_of(" \n", space) - space,
                     words[below(sizeof words / sizeof *words)]);
      break;
    case 5: // twice
      text.insert(at, text.substr(at, below(200)));
      break;
    default: // a digit
      if (const size_t digit = text.find_first_of("0123456789", at) + 1)
        text[digit - 1] = char('0' + below(10));
    }
  }
  std::string of(std::string text) {
    for (size_t n = 1 + below(3); n > 0; --n)
      once(text);
    return text;
  }
};

// Whether it was read. What is refused has changed nothing.
template <class F> bool read(model &x, size_t size, const F &load) {
  const std::string before = x.state();
  largest = 0;
  try {
    load();
    CHECK(largest <= 8 * size + 70000);
    return true;
  } catch (const std::runtime_error &e) {
    CHECK(std::string(e.what()).size() < 1000);
  }
  CHECK(largest <= 8 * size + 70000);
  CHECK(x.state() == before);
  return false;
}

// Runs once for each damaged text; tells how many were read and how many refused.
template <class F> void all_damaged(const std::string &good, const F &once) {
  damage d;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds / 3);
  size_t read = 0, refused = 0;
  while (read + refused < 2000 || std::chrono::steady_clock::now() < end)
    ++(once(d.of(good)) ? read : refused);
  std::cout << read << " read, " << refused << " refused\n";
  CHECK(read > 50 && refused > 500);
}

} // namespace

TEST(damaged_models) {
  model from, to;
  from.step(false);
  TextFileSaver(file).save(from.m);
  const std::string good = contents(file);
  CHECK(read(to, good.size(), [&] { TextFileLoader(file).populate(to.m); }));
  all_damaged(good, [&](const std::string &text) {
    std::ofstream(file) << text;
    return read(to, text.size(), [&] { TextFileLoader(file).populate(to.m); });
  });
}

TEST(damaged_models_of_which_one_parameter_is_read) {
  model from, to;
  TextFileSaver(file).save(from.m);
  all_damaged(contents(file), [&](const std::string &text) {
    std::ofstream(file) << text;
    ParameterCollection fresh;
    return read(to, text.size(), [&] { TextFileLoader(file).load_lookup_param(fresh, "/e"); });
  });
}

TEST(damaged_trainers) {
  model from, to;
  from.step(true);
  to.step(true);
  all_damaged(from.trainer_text(), [&](const std::string &text) {
    return read(to, text.size(), [&] {
      std::istringstream in(text);
      to.trainer.populate(in);
    });
  });
}

TEST(what_is_wrong_is_said_with_its_place) {
  model x;
  const auto load = [&](const std::string &text) {
    std::ofstream(file) << text;
    TextFileLoader(file).populate(x.m);
  };
  const std::string head = "#Parameter# /p ", p = "{3,2} 97 ZERO_GRAD\n";
  THROWS(std::runtime_error, file + ", line 1, byte 0: not a header", load("no model\n"));
  THROWS(std::runtime_error, "line 2, byte 41: 'x' is no number", load(head + p + "1 2 3 x 5 6\n"));
  THROWS(std::runtime_error, "line 2", load(head + p + "1 2 3 4 5\n"));
  THROWS(std::runtime_error, "needs 6 numbers, found more", load(head + p + "1 2 3 4 5 6 7\n"));
  THROWS(std::runtime_error, "does not end", load(head + p + "1 2 3 4 5 6"));
  THROWS(std::runtime_error, "bytes are left",
         load(head + "{4294967295,4294967295} 9 ZERO_GRAD\n1"));
  // 2^32 elements: none, in 32 bits.
  THROWS(std::runtime_error, "bytes are left", load(head + "{65536,65536} 9 ZERO_GRAD\n\n"));
}

TEST(only_ordinary_files_are_read) {
  model x;
  THROWS(std::runtime_error, "no ordinary file", TextFileLoader("/dev/zero").populate(x.m));
  THROWS(std::runtime_error, "no ordinary file", TextFileLoader("/tmp").populate(x.m));
  const std::string pipe = file + ".pipe";
  CHECK(mkfifo(pipe.c_str(), 0600) == 0);
  THROWS(std::runtime_error, "no ordinary file", TextFileLoader(pipe).populate(x.m));
  unlink(pipe.c_str());
}

// 64 GiB of nothing, without a line's end.
TEST(a_huge_file_takes_no_memory) {
  model x;
  std::ofstream(file) << "#Parameter# /p {4000000000} 9 ZERO_GRAD\n1 2 3 4 ";
  CHECK(truncate(file.c_str(), 64LL << 30) == 0);
  largest = 0;
  THROWS(std::runtime_error, "line 2", TextFileLoader(file).populate(x.m));
  CHECK(truncate(file.c_str(), 0) == 0 && truncate(file.c_str(), 64LL << 30) == 0);
  THROWS(std::runtime_error, "line 1", TextFileLoader(file).populate(x.m));
  CHECK(largest < 200000);
}

int main(int argc, char **argv) {
  initialize(argc, argv);
  if (argc == 3 && argv[1] == std::string("--seconds"))
    seconds = std::atof(argv[2]);
  const char *dir = std::getenv("TMPDIR");
  std::string name = std::string(dir ? dir : "/tmp") + "/damaged_files_XXXXXX";
  close(mkstemp(&name[0]));
  file = name;
  const int status = tests::run_tests();
  unlink(file.c_str());
  return status;
}
