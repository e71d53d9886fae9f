// Devices as DyNet names them: the list, where nodes and parameters are, copies between devices,
// and the error of operations on nodes of different devices. All run on the engine's one device.
#include "fake_engine.h"

#include "check.h"

#include <cstdlib>
#include <functional>

#include "dynet/devices.h"
#include "dynet/expr.h"
#include "dynet/nodes.h"
#include "dynet/training.h"
#include "ops.h"
#include "vpps/vpps.hpp"

using namespace dynet;

static void start(const char *description) {
  cleanup();
  state.description = description;
  DynetParams params;
  params.random_seed = 1;
  initialize(params);
}

static Device *named(const char *name) { return get_device_manager()->get_global_device(name); }

TEST(a_cpu_is_alone) {
  start("cpu: fake");
  EQUAL(get_device_manager()->num_devices(), 1u);
  EQUAL(default_device->name, "CPU");
  CHECK(named("") == default_device && named("CPU") == default_device);
  CHECK(default_device->type == DeviceType::CPU);
  THROWS(std::runtime_error, "Invalid device name: GPU:0", named("GPU:0"));
  THROWS(std::runtime_error, "has only CPU", named("GPU:0"));
}

TEST(a_gpu_comes_first_and_has_a_cpu_next_to_it) {
  start("cuda:3: fake");
  EQUAL(get_device_manager()->num_devices(), 2u);
  EQUAL(default_device->name, "GPU:3");
  CHECK(default_device->type == DeviceType::GPU);
  CHECK(named("") == default_device && named("GPU:3") == default_device);
  CHECK(get_device_manager()->get(1) == named("CPU"));
  EQUAL(named("CPU")->device_id, 1);
  CHECK(named("CPU")->type == DeviceType::CPU);
  THROWS(std::runtime_error, "has only GPU:3, CPU", named("GPU:0"));
}

TEST(there_is_none_before_initialize) {
  cleanup();
  EQUAL(get_device_manager()->num_devices(), 0u);
  THROWS(std::runtime_error, "initialize", named("CPU"));
  THROWS(std::runtime_error, "Default device does not exist", named(""));
}

TEST(nodes_are_where_their_first_argument_is) {
  start("cuda:0: fake");
  Device *cpu = named("CPU");
  ParameterCollection m;
  Parameter here = m.add_parameters({2}), there = m.add_parameters({2}, cpu);
  LookupParameter rows = m.add_lookup_parameters(3, {2}, ParameterInitGlorot(true), "rows", cpu);
  ComputationGraph cg;
  Expression a = parameter(cg, here), b = parameter(cg, there), r = lookup(cg, rows, 1u);
  Expression x = input(cg, {2}, {1, 2}, cpu), y = input(cg, 1.f), z = zeros(cg, {2}, cpu);
  Expression n = random_normal(cg, {2}, 0.f, 1.f, cpu), o = one_hot(cg, 2, 1u, cpu);
  EQUAL(a.get_device_name(), "GPU:0");
  for (const Expression &e : {b, r, x, z, n, o, tanh(x), x + b, concatenate({z, x})})
    EQUAL(e.get_device_name(), "CPU");
  for (const Expression &e : {y, tanh(a), a * y})
    EQUAL(e.get_device_name(), "GPU:0");
  CHECK(cg.nodes[b.i]->device == cpu && cg.nodes[a.i]->device == default_device);
  EQUAL(to_device(x, default_device).get_device_name(), "GPU:0");
  EQUAL(tanh(to_device(a, cpu)).get_device_name(), "CPU");
  CHECK(there.get_storage().device == cpu);
}

TEST(different_devices_in_one_operation_are_refused_by_the_call_that_evaluates_it) {
  start("cuda:0: fake");
  Device *cpu = named("CPU");
  ParameterCollection m;
  Parameter p = m.add_parameters({2});
  ComputationGraph cg;
  Expression x = input(cg, {2}, {1, 2}, cpu), w = parameter(cg, p), fine = tanh(w);
  Expression sum = x + w, loss = sum_elems(sum);
  cg.forward(fine);
  const char *said = "different devices (nodes 3 and 1)";
  THROWS(std::invalid_argument, said, cg.forward(loss));
  THROWS(std::invalid_argument, said, cg.incremental_forward(loss));
  THROWS(std::invalid_argument, "to_device", loss.value());
  THROWS(std::invalid_argument, said, cg.backward(loss));
  SimpleSGDTrainer trainer(m);
  vpps::handle hndl(m, trainer);
  THROWS(std::invalid_argument, said, hndl.fb(m, cg, loss));
  fine.value(); // nodes before it have values still
}

TEST(a_copy_makes_it_one_device) {
  start("cuda:0: fake");
  Device *cpu = named("CPU");
  ParameterCollection m;
  Parameter p = m.add_parameters({2});
  ComputationGraph cg;
  Expression x = input(cg, {2}, {1, 2}, cpu), w = parameter(cg, p);
  Expression loss = sum_elems(to_device(x, default_device) + w);
  Expression back = to_device(loss, cpu);
  cg.backward(back);
  EQUAL(back.get_device_name(), "CPU");
  CHECK(dynamic_cast<ToDevice *>(cg.nodes[2]) != nullptr);
  EQUAL(cg.nodes[2]->as_string({"v0"}), "copy v0 between devices");
  EQUAL(cg.nodes[2]->name, "ToDevice");
  CHECK(cg.nodes[2]->device == default_device);
}

TEST(reverted_nodes_leave_no_place) {
  start("cuda:0: fake");
  Device *cpu = named("CPU");
  ComputationGraph cg;
  Expression x = input(cg, {2}, {1, 2});
  cg.checkpoint();
  Expression y = input(cg, {2}, {1, 2}, cpu);
  THROWS(std::invalid_argument, "different devices", (x + y).value());
  EQUAL(y.get_device_name(), "CPU");
  cg.revert();
  y = input(cg, {2}, {1, 2});
  (x + y).value();
  EQUAL(y.get_device_name(), "GPU:0");
  cg.clear();
  x = input(cg, {2}, {1, 2}, cpu), y = input(cg, {2}, {1, 2}, cpu);
  (x + y).value();
}

TEST(nodes_evaluated_at_once_are_checked) {
  start("cuda:0: fake");
  ComputationGraph cg;
  cg.set_immediate_compute(true);
  Expression x = input(cg, {2}, {1, 2}, named("CPU")), y = input(cg, {2}, {1, 2});
  EQUAL((to_device(x, default_device) + y).get_device_name(), "GPU:0");
  THROWS(std::invalid_argument, "different devices", x + y);
}

namespace {
// A node of the program's own class, which may take arguments of several devices.
struct Take : Node {
  Take(const std::initializer_list<VariableIndex> &a, bool several, Device *where = nullptr)
      : Node(a, where), several_(several) {}
  Dim dim_forward(const std::vector<Dim> &) const override { return Dim({2}); }
  std::string as_string(const std::vector<std::string> &) const override { return "take"; }
  void forward_impl(const std::vector<const Tensor *> &xs, Tensor &fx) const override {
    for (const Tensor *x : xs)
      CHECK(x->device == named("CPU"));
    CHECK(fx.device == named("CPU"));
    CHECK(static_cast<Device_CPU *>(fx.device)->edevice != nullptr);
    fx.v[0] = fx.v[1] = 1;
  }
  void backward_impl(const std::vector<const Tensor *> &, const Tensor &, const Tensor &, unsigned,
                     Tensor &) const override {}
  bool supports_multidevice() const override { return several_; }
  bool several_;
};
} // namespace

TEST(own_nodes_say_whether_they_take_several_devices) {
  start("cuda:0: fake");
  Device *cpu = named("CPU");
  ComputationGraph cg;
  const Expression x = input(cg, {2}, {1, 2}, cpu), y = input(cg, {2}, {1, 2});
  auto device = [&](VariableIndex i) { return cg.nodes[i]->device; };
  CHECK(device(cg.add_function<Take>({x.i}, false)) == cpu);
  CHECK(device(cg.add_function<Take>({y.i}, false)) == default_device);
  CHECK(device(cg.add_function<Take>(cpu, {}, false)) == cpu);
  const VariableIndex both = cg.add_function<Take>({x.i, y.i}, true, default_device);
  CHECK(device(both) == default_device);
  EQUAL((Expression(&cg, both) + y).get_device_name(), "GPU:0");
  cg.forward(both);
  THROWS(std::invalid_argument, "different devices",
         cg.forward(cg.add_function<Take>({x.i, y.i}, false)));
}

// The engine's device after extract_dynet_params has read --dynet-devices.
static std::string opened(const std::string &list) {
  std::string flag = "--dynet-devices=" + list, program = "program";
  char *words[] = {&program[0], &flag[0], nullptr}, **argv = words;
  int argc = 2;
  return extract_dynet_params(argc, argv).vpps_device;
}

TEST(a_listed_gpu_is_the_device) {
  EQUAL(opened("CPU"), "cpu");
  EQUAL(opened("GPU:1"), "cuda:1");
  EQUAL(opened("CPU,GPU:1"), "cuda:1");
  EQUAL(opened("GPU:2,CPU,GPU:0"), "cuda:2");
  THROWS(std::invalid_argument, "CPU id", opened("CPU:0"));
  THROWS(std::invalid_argument, "needs CPU or GPU:k", opened("CPU,TPU"));
  THROWS(std::invalid_argument, "needs CPU or GPU:k", opened("GPU:1x"));
  THROWS(std::invalid_argument, "needs CPU or GPU:k", opened(""));
  THROWS(std::invalid_argument, "below 256", opened("GPU:256"));
  THROWS(std::invalid_argument, "below 256", opened("GPU:99999999999999999999"));
  THROWS(std::invalid_argument, "twice", opened("CPU,CPU"));
  THROWS(std::invalid_argument, "twice", opened("GPU:1,GPU:1"));
}

// The device that initialize asks the engine for.
static std::string asked_for(const std::function<void(DynetParams &)> &change) {
  DynetParams params;
  change(params);
  cleanup();
  initialize(params);
  CHECK(params.random_seed != 0);
  return state.device;
}

TEST(a_program_may_ask_by_dynets_members) {
  setenv("VPPS_DEVICE", "cuda:7", 1);
  EQUAL(asked_for([](DynetParams &) {}), "cuda:7");
  EQUAL(asked_for([](DynetParams &p) { p.cpu_requested = true; }), "cpu");
  EQUAL(asked_for([](DynetParams &p) { p.ids_requested = true, p.gpu_mask[2] = 1; }), "cuda:2");
  EQUAL(asked_for([](DynetParams &p) { p.ngpus_requested = true, p.requested_gpus = 1; }), "cuda");
  EQUAL(asked_for([](DynetParams &p) { p.ngpus_requested = true, p.requested_gpus = 0; }), "cpu");
  EQUAL(asked_for([](DynetParams &p) { p.cpu_requested = true, p.vpps_device = "auto"; }), "auto");
  unsetenv("VPPS_DEVICE");
}

TEST(the_flag_sets_dynets_members) {
  std::string flag = "--dynet-devices=CPU,GPU:3,GPU:1", program = "program",
              again = "--dynet-devices=CPU";
  char *words[] = {&program[0], &flag[0], &again[0], nullptr}, **argv = words;
  int argc = 2;
  const DynetParams p = extract_dynet_params(argc, argv);
  CHECK(p.ids_requested && p.cpu_requested && !p.ngpus_requested && p.requested_gpus == 1);
  CHECK(p.gpu_mask.size() == 256 && p.gpu_mask[1] == 1 && p.gpu_mask[3] == 1 && p.gpu_mask[0] == 0);
  char *twice[] = {&program[0], &flag[0], &again[0], nullptr};
  argv = twice, argc = 3;
  THROWS(std::invalid_argument, "twice", extract_dynet_params(argc, argv));
}

static std::string used(const DeviceMempoolSizes &s) {
  std::string text;
  for (size_t n : s.used)
    text += std::to_string(n) + " ";
  return text;
}

TEST(sizes_of_pools) {
  EQUAL(used(DeviceMempoolSizes()), "0 0 0 0 ");
  EQUAL(used(DeviceMempoolSizes(400)), "100 100 100 100 ");
  EQUAL(used(DeviceMempoolSizes(3)), "1 1 1 1 ");
  EQUAL(used(DeviceMempoolSizes("800")), "200 200 200 200 ");
  EQUAL(used(DeviceMempoolSizes("1,2,3,4")), "1 2 3 4 ");
  THROWS(std::invalid_argument, "no bytes", DeviceMempoolSizes(size_t(0)));
  for (const char *wrong : {"", "1,2", "1,2,3,4,5", "1,2,3,x", "-1", "99999999999999999999"})
    THROWS(std::invalid_argument, "DeviceMempoolSizes", DeviceMempoolSizes{std::string(wrong)});
}

TEST(a_device_gives_memory_from_its_pools) {
  start("cpu: fake");
  Device &d = *default_device;
  EQUAL(*d.kSCALAR_MINUSONE + 10 * *d.kSCALAR_ONE + *d.kSCALAR_ZERO, 9.f);
  CHECK(d.mem != nullptr);
  ComputationGraph cg;
  const DeviceMempoolSizes before = d.mark(&cg);
  Tensor t;
  t.d = Dim({3, 5});
  d.allocate_tensor(DeviceMempool::SCS, t);
  std::fill_n(t.v, 15, 1.f);
  CHECK(t.mem_pool == DeviceMempool::SCS && d.mark(&cg).used[3] >= before.used[3] + 60);
  THROWS(std::invalid_argument, "NONE", d.allocate_tensor(DeviceMempool::NONE, t));
  d.revert(before);
  THROWS(std::invalid_argument, "pool 0", d.revert(DeviceMempoolSizes(1 << 30, 0, 0, 0)));
}

int main(int argc, char **argv) {
  dynet::initialize(argc, argv);
  return tests::run_tests();
}
