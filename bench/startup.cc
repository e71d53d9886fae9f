// How long a program waits before its first batch, for the model of each application at the paper's
// sizes: once with an empty kernel cache (cold), then with a filled one (warm), in a process each.
// Prints CSV, milliseconds:
//
//   - context: dynet::initialize, so the driver, its context, NVRTC
//   - plan: the handle, without what follows
//   - source: the kernel's text
//   - cache: looking the kernel up and keeping it
//   - compiler: NVRTC
//   - load: the module
//   - handle: all from plan to load, from a handle's start until it can launch
//   - first_fb: the first batch, its result included
//
//   build/bench/startup [APP...]        on the device of VPPS_DEVICE
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <vpps/vpps.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

using namespace dynet;

namespace {

struct application {
  const char *name;
  unsigned hidden;
  std::vector<Dim> matrices;
};

std::vector<Dim> times(unsigned n, const Dim &d) { return std::vector<Dim>(n, d); }

std::vector<Dim> operator+(std::vector<Dim> a, const std::vector<Dim> &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<application> applications() {
  const std::vector<Dim> lstms = times(4, {1024, 256});
  const std::vector<Dim> spelling = {{512, 64}, {512, 128}, {512, 64}, {512, 128}};
  const std::vector<Dim> tags = {{256, 512}, {12, 256}};
  const std::vector<Dim> labels256 = {{256, 256}, {5, 256}}, labels512 = {{512, 512}, {5, 512}};
  return {{"treelstm", 256,
           times(1, {5, 256}) + times(3, {256, 256}) + times(3, {256, 512}) + times(2, {256, 256})},
          {"rvnn", 512, times(3, {512, 512}) + labels512},
          {"tdrnn", 512, times(2, {512, 512}) + labels512},
          {"tdlstm", 256, times(10, {256, 256}) + labels256},
          {"bilstm", 256, lstms + tags},
          {"bilstm_char", 256, lstms + spelling + tags}};
}

double now() {
  return 1e3 *
         std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// One start of one application, in this process.
void start(const application &a, const char *what) {
  const double t0 = now();
  DynetParams params;
  params.random_seed = 1;
  initialize(params);
  const double t1 = now();
  ParameterCollection m;
  std::vector<Parameter> p;
  for (const Dim &d : a.matrices)
    p.push_back(m.add_parameters(d));
  const double t2 = now();
  vpps::handle hndl(m);
  const double t3 = now();
  ComputationGraph cg;
  std::vector<Expression> losses;
  for (size_t k = 0; k < p.size(); k++) {
    const std::vector<float> x(a.matrices[k].cols(), 0.5f);
    losses.push_back(squared_norm(parameter(cg, p[k]) * input(cg, {a.matrices[k].cols()}, x)));
  }
  hndl.fb(m, cg, sum(losses));
  hndl.sync_get_latest_loss();
  const double t4 = now();
  double source = 0, cache = 0, compiler = 0, load = 0;
  const std::string report = hndl.plan_report();
  const size_t at = report.find("milliseconds: ");
  if (at != std::string::npos)
    std::sscanf(report.c_str() + at, "milliseconds: source %lf, cache %lf, compiler %lf, load %lf",
                &source, &cache, &compiler, &load);
  const double handle = t3 - t2;
  std::printf("%s,%u,%s,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f\n", a.name, a.hidden, what, t1 - t0,
              handle - source - cache - compiler - load, source, cache, compiler, load, handle,
              t4 - t3);
}

// Both starts of one application, in processes of their own with a cache of their own. NVRTC, which
// from CUDA 13 on keeps what it has compiled, too, is not to: it may know the kernel from before.
int both(const std::string &program, const char *name) {
  char folder[] = "/tmp/vpps-startup-XXXXXX";
  if (!mkdtemp(folder))
    throw std::runtime_error("/tmp: no folder can be made there");
  setenv("VPPS_CACHE_DIR", folder, 1);
  setenv("CUDA_CACHE_DISABLE", "1", 1);
  int failed = 0;
  for (const char *what : {"cold", "warm"})
    failed |= std::system((program + " " + name + " --" + what + " 2>/dev/null").c_str());
  if (std::system((std::string("rm -rf ") + folder).c_str()) != 0)
    std::fprintf(stderr, "startup: %s cannot be removed\n", folder);
  return failed;
}

} // namespace

int main(int argc, char **argv) {
  try {
    const std::string kind = argc > 2 ? argv[2] : "";
    const bool child = kind == "--cold" || kind == "--warm";
    if (!child)
      std::printf("app,hidden,start,context,plan,source,cache,compiler,load,handle,first_fb\n");
    std::fflush(stdout);
    int failed = 0, known = 0;
    for (const application &a : applications()) {
      bool wanted = argc == 1;
      for (int k = 1; k < argc; k++)
        wanted = wanted || !std::strcmp(argv[k], a.name);
      if (!wanted)
        continue;
      known++;
      if (child)
        start(a, kind.c_str() + 2);
      else if (both(argv[0], a.name))
        failed = 1, std::fprintf(stderr, "startup: %s failed\n", a.name);
    }
    if (!known)
      throw std::runtime_error("no such application");
    return failed;
  } catch (const std::exception &e) {
    std::fprintf(stderr, "startup: %s\n", e.what());
    return 1;
  }
}
