// Files are the same whatever locale the program has chosen: for C by setlocale, for streams by
// std::locale::global, and for a stream of its own.
#include "check.h"

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <locale>

#include <unistd.h>

#include "dynet/dict.h"
#include "dynet/dynet.h"
#include "dynet/init.h"
#include "dynet/io.h"
#include "dynet/param-init.h"
#include "dynet/training.h"

using namespace dynet;

namespace {

// 1234.5 is "1.234,5".
struct german : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

bool has_comma() { return *std::localeconv()->decimal_point == ','; }

// A locale of C with a comma: one that is installed, or one that localedef makes in a folder.
bool choose_comma(const std::string &folder) {
  for (const char *name : {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "nl_NL.UTF-8", "ru_RU.UTF-8"})
    if (std::setlocale(LC_ALL, name) && has_comma())
      return true;
  const std::string made = folder + "/de_DE.UTF-8";
  if (std::system(("localedef -i de_DE -f UTF-8 " + made + " >/dev/null 2>&1").c_str()) != 0)
    return false;
  setenv("LOCPATH", folder.c_str(), 1);
  return std::setlocale(LC_ALL, "de_DE.UTF-8") && has_comma();
}

struct temporary {
  std::string name;
  temporary() {
    const char *dir = std::getenv("TMPDIR");
    std::string pattern = std::string(dir ? dir : "/tmp") + "/locales_XXXXXX";
    name = mkdtemp(&pattern[0]);
  }
  ~temporary() {
    if (std::system(("rm -r " + name).c_str()) != 0)
      std::perror("rm");
  }
};

std::string contents(const std::string &file) {
  std::ifstream in(file);
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

// A model whose sizes have more than three digits, after an update.
struct model {
  ParameterCollection m;
  Parameter p = m.add_parameters({1234, 2}, ParameterInitConst(0.5f));
  LookupParameter e = m.add_lookup_parameters(1234, {2}, ParameterInitConst(-1234.5f));
  AdamTrainer trainer{m, 0.25f};
  model() {
    ComputationGraph cg;
    Expression loss = sum_elems(parameter(cg, p)) + sum_elems(lookup(cg, e, 1u)) * 0.3f;
    cg.forward(loss);
    cg.backward(loss);
    trainer.update();
    trainer.updates = 4321;
  }
};

struct files {
  std::string model, trainer;
};

files save(model &x, const std::string &file) {
  TextFileSaver(file).save(x.m);
  std::ostringstream text;
  x.trainer.save(text);
  return {contents(file), text.str()};
}

// They are read into another model, which then writes the same.
void read_back(const files &written, const std::string &file) {
  std::ofstream(file) << written.model;
  model y;
  y.p.zero();
  y.e.zero();
  y.trainer.restart(1);
  TextFileLoader(file).populate(y.m);
  std::istringstream in(written.trainer);
  y.trainer.populate(in);
  const files again = save(y, file);
  EQUAL(again.model, written.model);
  EQUAL(again.trainer, written.trainer);
}

void flags() {
  std::string flag = "--dynet-weight-decay=0.25";
  char *argv[] = {&flag[0], &flag[0], nullptr}, **p = argv;
  int argc = 2;
  EQUAL(int(extract_dynet_params(argc, p).weight_decay * 100), 25);
}

void values_of_a_file(const std::string &file) {
  std::ofstream(file) << "1.5 -2.25\n1e3";
  ParameterCollection m;
  Parameter p = m.add_parameters({3}, ParameterInitFromFile(file));
  CHECK(p.p->read(VPPS_VALUES) == std::vector<float>({1.5f, -2.25f, 1000.f}));
}

void all_as_in(const files &want, const std::string &file) {
  model x;
  const files got = save(x, file);
  CHECK(got.model == want.model);
  EQUAL(got.trainer, want.trainer);
  read_back(want, file);
  flags();
  values_of_a_file(file);
}

} // namespace

TEST(files_do_not_depend_on_the_locale) {
  const temporary t;
  const std::string file = t.name + "/file";
  model x;
  const files want = save(x, file);
  CHECK(want.model.find("{1234,2} 39489 ZERO_GRAD\n") != std::string::npos);
  all_as_in(want, file);

  std::locale before = std::locale::global(std::locale(std::locale::classic(), new german));
  std::ostringstream grouped;
  grouped << 1234.5;
  EQUAL(grouped.str(), "1.234,5"); // so it has an effect
  all_as_in(want, file);
  std::locale::global(before);

  if (choose_comma(t.name)) {
    EQUAL(int(std::strtod("1.5", nullptr)), 1);
    CHECK(std::strtod("1,5", nullptr) == 1.5);
    all_as_in(want, file);
    CHECK(std::strtod("1,5", nullptr) == 1.5); // the program's locale stays
    std::locale::global(std::locale(std::locale::classic(), new german));
    all_as_in(want, file);
    std::locale::global(before);
  } else {
    std::cout << "no locale with a comma and no localedef: only streams were tried\n";
  }
  std::setlocale(LC_ALL, "C");
}

TEST(a_stream_may_have_a_locale) {
  model x, y;
  std::ostringstream plain, text;
  x.trainer.save(plain);
  text.imbue(std::locale(std::locale::classic(), new german));
  x.trainer.save(text);
  EQUAL(text.str(), plain.str());
  std::istringstream in(plain.str());
  in.imbue(text.getloc());
  y.trainer.restart(1);
  y.trainer.populate(in);
  std::ostringstream again;
  y.trainer.save(again);
  EQUAL(again.str(), plain.str());
}

int main(int argc, char **argv) {
  initialize(argc, argv);
  return tests::run_tests();
}
