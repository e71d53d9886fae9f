// Keys of saved parameters, and what a loaded parameter is called: as in DyNet.
#include <dynet/dynet.h>
#include <dynet/io.h>

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#include "check.h"

using namespace dynet;

namespace {

// A file that goes with the object.
struct File {
  std::string name;
  File() {
    const char *dir = std::getenv("TMPDIR");
    name = std::string(dir ? dir : "/tmp") + "/keys_XXXXXX";
    close(mkstemp(&name[0]));
  }
  ~File() { std::remove(name.c_str()); }
};

std::string names(const std::string &file) {
  std::ifstream in(file.c_str());
  std::string all;
  for (std::string word; in >> word;)
    if (word[0] == '#' && in >> word)
      all += word + " ";
  return all;
}

float first(const Parameter &p) { return p.p.unexposed()->read(VPPS_VALUES)[0]; }

} // namespace

TEST(a_collections_own_name_is_a_key) {
  const File f;
  ParameterCollection m, fresh;
  ParameterCollection sub = m.add_subcollection("sub"), other = fresh.add_subcollection("other");
  Parameter a = sub.add_parameters({2}, ParameterInitConst(1), "a");
  Parameter b = other.add_parameters({2}, ParameterInitConst(2), "b");
  TextFileSaver(f.name).save(sub, sub.get_fullname());
  EQUAL(names(f.name), "/sub/a ");
  TextFileLoader(f.name).populate(other, sub.get_fullname());
  EQUAL(first(b), 1);
  TextFileSaver(f.name).save(sub, "/here/");
  EQUAL(names(f.name), "/here/a ");
  a.zero();
  TextFileLoader(f.name).populate(sub, "/here");
  EQUAL(first(a), 1);
  THROWS(std::invalid_argument, "must begin with '/'", TextFileSaver(f.name).save(sub, "here"));
}

TEST(a_parameters_key_needs_no_slash) {
  const File f;
  ParameterCollection m;
  Parameter a = m.add_parameters({2}, ParameterInitConst(1));
  LookupParameter l = m.add_lookup_parameters(2, {1}, ParameterInitConst(3));
  {
    TextFileSaver saver(f.name);
    saver.save(a, "weights");
    saver.save(l, "table");
  }
  EQUAL(names(f.name), "weights table ");
  a.zero();
  l.zero();
  TextFileLoader(f.name).populate(a, "weights");
  TextFileLoader(f.name).populate(l, "table");
  EQUAL(first(a), 1);
  EQUAL(l.p.unexposed()->read(VPPS_VALUES)[1], 3);
  TextFileSaver saver(f.name);
  THROWS(std::invalid_argument, "neither ' ' nor '#'", saver.save(a, "/a b"));
  THROWS(std::invalid_argument, "more than '/'", saver.save(a, "/"));
  THROWS(std::invalid_argument, "needs its key", TextFileLoader(f.name).populate(a, ""));
  THROWS(std::runtime_error, "no parameter", TextFileLoader(f.name).populate(a, "table"));
}

TEST(a_loaded_parameter_has_the_keys_name) {
  const File f, g;
  ParameterCollection m, fresh;
  {
    TextFileSaver saver(f.name);
    saver.save(m.add_parameters({2}, ParameterInitConst(1)), "/q");
    saver.save(m.add_lookup_parameters(2, {1}, ParameterInitConst(3)), "/deep/t");
  }
  ParameterCollection sub = fresh.add_subcollection("sub");
  Parameter q = TextFileLoader(f.name).load_param(fresh, "/q");
  LookupParameter t = TextFileLoader(f.name).load_lookup_param(sub, "/deep/t");
  EQUAL(q.get_fullname(), "/q");
  EQUAL(t.get_fullname(), "/deep/t");
  EQUAL(first(Parameter(fresh.get_parameter_storage("/q"))), 1);
  // Under the names that they have now, and under a key.
  TextFileSaver(g.name).save(fresh);
  EQUAL(names(g.name), "/q /deep/t ");
  TextFileSaver(g.name).save(sub, "/key");
  EQUAL(names(g.name), "/key/deep/t ");
  t.zero();
  TextFileLoader(g.name).populate(sub, "/key");
  EQUAL(t.p.unexposed()->read(VPPS_VALUES)[0], 3);
}

int main(int argc, char **argv) {
  initialize(argc, argv);
  return tests::run_tests();
}
