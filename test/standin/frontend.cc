// The machine fails under a DyNet program: each failure is an exception that says what is wrong,
// parameters are as before, and the program goes on. The driver and NVRTC are stand-ins
// (gpu/testdata/fakecuda) that fail when the environment says so.
#include "../../dynetshim/tests/check.h"
#include "../host/again.h"
#include "dynet/dynet.h"
#include "dynet/except.h"
#include "dynet/expr.h"
#include "dynet/io.h"
#include "dynet/training.h"
#include "vpps/vpps.hpp"

#include <cstring>

using namespace dynet;

static void fails(const char *how) { setenv("VPPS_FAKE_FAIL", how, 1); }

typedef std::vector<float> Floats;

// A model that loses 0.1 of every weight with each step.
struct Program {
  ParameterCollection model;
  Parameter w;
  SimpleSGDTrainer trainer;
  Program() : w(model.add_parameters({2}, ParameterInitConst(1))), trainer(model, 0.1f) {
    trainer.clipping_enabled = false;
  }
  void step(vpps::handle &hndl) {
    ComputationGraph cg;
    hndl.fb(model, cg, sum_elems(parameter(cg, w)));
  }
  Floats weights() {
    Floats now;
    for (float x : as_vector(w.get_storage().values))
      now.push_back(x);
    return now;
  }
};

static void start() {
  int argc = 1;
  char name[] = "frontend", *arguments[] = {name, nullptr}, **argv = arguments;
  initialize(argc, argv);
}

static void memory() {
  start();
  Program p;
  vpps::handle hndl(p.model, p.trainer);
  std::vector<float> much(1 << 20, 1.f);
  for (int k = 0; k < 4; ++k)
    p.step(hndl);
  hndl.sync_get_latest_loss();
  fails("cuMemAlloc_v2:2");
  THROWS(dynet::out_of_memory, "use smaller batches or a smaller model",
         p.model.add_parameters({1 << 22}));
  {
    ComputationGraph cg;
    Expression loss = sum_elems(input(cg, {1 << 20}, much)) + sum_elems(parameter(cg, p.w));
    THROWS(dynet::out_of_memory, "OUT_OF_MEMORY", cg.forward(loss));
    THROWS(dynet::out_of_memory, "OUT_OF_MEMORY", loss.value());
    hndl.fb(p.model, cg, loss);
    THROWS(dynet::out_of_memory, "batch 5", hndl.sync_get_latest_loss());
  }
  p.step(hndl); // what needs no more goes on
  fails("");
  EQUAL(hndl.sync_get_latest_loss(), 2 - 4 * 0.2f);
  ComputationGraph cg;
  CHECK(as_scalar(sum_elems(input(cg, {1 << 20}, much)).value()) == 1 << 20);
}

static void lost() {
  start();
  const char *file = getenv("MODEL_FILE");
  Program p;
  vpps::handle hndl(p.model, p.trainer);
  for (int k = 0; k < 5; ++k)
    p.step(hndl);
  hndl.sync_get_latest_loss();
  fails("cuLaunchCooperativeKernel:700!");
  {
    ComputationGraph cg;
    THROWS(std::runtime_error, "after update 4, the last snapshot",
           sum_elems(parameter(cg, p.w)).value());
    THROWS(std::runtime_error, "cannot go on", hndl.sync_get_latest_loss());
    THROWS(std::runtime_error, "cannot go on", p.trainer.update());
  }
  {
    TextFileSaver saver(file);
    saver.save(p.model);
  }
  cleanup();
  setenv("VPPS_DEVICE", "cpu", 1); // the program goes on
  start();
  Program q;
  TextFileLoader(file).populate(q.model);
  for (float x : q.weights())
    CHECK(x > 0.599f && x < 0.601f);
}

static void no_compiler() {
  THROWS(std::runtime_error, "VPPS_NVRTC", start());
  setenv("VPPS_DEVICE", "auto", 1);
  start();
  CHECK(vpps::device().find("; not device cuda:0: no usable NVRTC") != std::string::npos);
  Program p;
  vpps::handle hndl(p.model, p.trainer);
  p.step(hndl);
  EQUAL(hndl.sync_get_latest_loss(), 2);
}

static void no_kernel() {
  start();
  Program p;
  fails("nvrtcCompileProgram:6");
  THROWS(std::runtime_error, "the kernel does not compile", vpps::handle(p.model, p.trainer));
  fails("");
  vpps::handle hndl(p.model, p.trainer);
  p.step(hndl);
  EQUAL(hndl.sync_get_latest_loss(), 2);
}

static void no_cache() {
  start();
  Program p;
  vpps::handle hndl(p.model, p.trainer);
  CHECK(hndl.plan_report().find("set VPPS_CACHE_DIR to a folder that can be written") !=
        std::string::npos);
  p.step(hndl);
  EQUAL(hndl.sync_get_latest_loss(), 2);
}

static const struct {
  const char *name;
  void (*run)();
} tasks[] = {{"memory", memory},
             {"lost", lost},
             {"no compiler", no_compiler},
             {"no kernel", no_kernel},
             {"no cache", no_cache}};

static const char *task;
TEST(the_task) {
  for (const auto &t : tasks)
    if (std::strcmp(t.name, task) == 0)
      return t.run();
  CHECK(!"a task of this name");
}

int main(int argc, char **argv) {
  if (argc > 1) {
    task = argv[1];
    return tests::run_tests();
  }
  char folder[] = "/tmp/vpps-cache-XXXXXX";
  if (mkdtemp(folder) == nullptr)
    return 1;
  const std::string in = folder;
  setenv("VPPS_DEVICE", "cuda", 1);
  setenv("VPPS_CACHE_DIR", folder, 1);
  setenv("VPPS_SNAPSHOT_BATCHES", "4", 1);
  setenv("MODEL_FILE", (in + "/model").c_str(), 1);
  again(argv[0], "memory", "VPPS_CACHE_DIR", folder);
  again(argv[0], "lost", "VPPS_CACHE_DIR", folder);
  again(argv[0], "no compiler", "VPPS_NVRTC", "/nowhere/libnvrtc.so.12");
  again(argv[0], "no kernel", "VPPS_CACHE_DIR", (in + "/other").c_str());
  again(argv[0], "no cache", "VPPS_CACHE_DIR", (in + "/model/below").c_str());
  return system(("rm -r " + in).c_str());
}
