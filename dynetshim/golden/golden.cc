// Runs recorded results of DyNet through the C++ front-end and compares: single functions,
// builders, trainers, training traces. From the repository's root:
//
//   go run ./dynetshim/golden/convert DIR | build/golden --device cpu      all that is in DIR
//   gzip -dc dynetshim/golden/testdata/*.gz | build/golden --device cpu    the repository's own
//
// DIR is a folder of recorded results (ops.jsonl.gz, builders.jsonl,
// trainers.jsonl, treelstm_sst.json, bilstm_wikiner.json).
// Built from all *.cc of this folder, with dynetshim/include, include and libvpps_dynet.a, or
// against an installed DyNet with dynetshim/adapter.
//
//   --file F       reads F instead of the standard input (not compressed)
//   --device D     cpu (the default), cuda[:n] or auto
//   --args A       plain arguments as inputs, as parameters, or (the default) both
//   --only TEXT    only cases whose function or name contains TEXT
//
// Prints "FUNCTION: N passed, M failed, K not implemented" for each function, then the
// total; before that a line for each failed case with its first wrong entry. The exit
// status is 1 if a case failed, 2 if the text could not be read.
#include <dynet/init.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>

#include "cases.h"
#include "compare.h"
#include "functions.h"

namespace {

struct tally {
  int passed, failed, missing;
  tally() : passed(0), failed(0), missing(0) {}
};

class results {
public:
  // Does the work of one case and counts what comes of it.
  void add(const std::string &fn, const std::string &name, const std::function<void()> &work) {
    tally &t = tallies_[fn];
    try {
      work();
      t.passed++;
    } catch (const not_implemented &) {
      t.missing++;
    } catch (const std::exception &e) {
      t.failed++;
      std::printf("FAILED %s: %s\n", name.c_str(), e.what());
    }
  }

  bool empty() const { return tallies_.empty(); }

  // Prints the counts; whether no case failed.
  bool print() const {
    tally all;
    for (const auto &each : tallies_) {
      const tally &t = each.second;
      std::printf("%s: %d passed, %d failed, %d not implemented\n", each.first.c_str(), t.passed,
                  t.failed, t.missing);
      all.passed += t.passed;
      all.failed += t.failed;
      all.missing += t.missing;
    }
    std::printf("%d passed, %d failed, %d not implemented\n", all.passed, all.failed, all.missing);
    return all.failed == 0;
  }

private:
  std::map<std::string, tally> tallies_;
};

struct options {
  std::string file, device = "cpu", args = "both", only;
};

options parse(int argc, char **argv) {
  options o;
  const std::map<std::string, std::string *> flags = {
      {"--file", &o.file}, {"--device", &o.device}, {"--args", &o.args}, {"--only", &o.only}};
  for (int k = 1; k < argc; k++) {
    const auto flag = flags.find(argv[k]);
    if (flag == flags.end() || k + 1 == argc)
      throw std::runtime_error(std::string(argv[k]) +
                               " is unknown or lacks its value: --file F, --device D, "
                               "--args inputs|parameters|both, --only TEXT");
    *flag->second = argv[++k];
  }
  if (o.args != "both" && o.args != "inputs" && o.args != "parameters")
    throw std::runtime_error("--args " + o.args + " is unknown: inputs, parameters or both");
  return o;
}

// Whether an argument changes when it is given as a parameter.
bool has_plain_arguments(const record &r) {
  for (const line *l : r.all("arg"))
    if (l->words.at(0) == "input" && l->as_tensor(1).dim.bd == 1)
      return true;
  return false;
}

void run(const options &o, std::istream &in, results &all) {
  record_reader reader(in);
  for (record r; reader.next(r);) {
    auto wanted = [&](const std::string &name) {
      return r.fn.find(o.only) != std::string::npos || name.find(o.only) != std::string::npos;
    };
    if (r.kind == "trace") {
      run_trace(r, [&](const std::string &name, const std::function<void()> &work) {
        if (wanted(name))
          all.add(r.fn, name, work);
      });
    } else if (wanted(r.name)) {
      all.add(r.fn, r.name, [&] {
        if (r.kind == "builder") {
          run_builder(r);
        } else if (r.kind == "trainer") {
          run_trainer(r, training::calls);
          run_trainer(r, training::fb);
        } else if (r.kind == "op") {
          if (o.args != "parameters" || !has_plain_arguments(r))
            run_operation(r, arguments::inputs);
          if (o.args != "inputs" && has_plain_arguments(r))
            run_operation(r, arguments::parameters);
        } else {
          throw not_implemented();
        }
      });
    }
  }
}

} // namespace

int main(int argc, char **argv) {
  try {
    const options o = parse(argc, argv);
    dynet::DynetParams params;
    params.random_seed = 1;
    setenv("VPPS_DEVICE", o.device.c_str(), 1); // where libvpps runs
    dynet::initialize(params);
    results all;
    if (o.file.empty()) {
      run(o, std::cin, all);
    } else {
      std::ifstream in(o.file.c_str());
      if (!in)
        throw std::runtime_error(o.file + " cannot be opened: name a file written by convert");
      run(o, in, all);
    }
    if (all.empty())
      throw std::runtime_error("there was no case: give what dynetshim/golden/convert writes, "
                               "and with --only a part of a name");
    return all.print() ? 0 : 1;
  } catch (const std::exception &e) {
    std::fflush(stdout);
    std::cerr << "golden: " << e.what() << std::endl;
    return 2;
  }
}
