// initialize: flags, seed and the engine; and the globals.
#include "dynet/init.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <iostream>
#include <set>
#include <stdexcept>

#include "devices_of_engine.h"
#include "dynet/engine.h"
#include "dynet/except.h"
#include "dynet/str-util.h"
#include "dynet/timing.h"
#include "recorder.h"
#include "vpps/c_numbers.hpp"
#include "vpps/options.hpp"

namespace dynet {

std::mt19937 *rndeng = nullptr;
Device *default_device = nullptr;
float default_weight_decay_lambda = 0;
int autobatch_flag = 0;
int profiling_flag = 0;
NamedTimer timer;

namespace {

const size_t most_gpus = 256; // as in DyNet

std::shared_ptr<Engine> the_engine;

// The flag's name with '_' as '-', or "" if the argument is no flag; value: after '='.
std::string flag_name(const std::string &argument, std::string &value, bool &has_value) {
  if (argument.compare(0, 2, "--") != 0)
    return "";
  size_t equals = argument.find('=');
  has_value = equals != std::string::npos;
  value = has_value ? argument.substr(equals + 1) : "";
  std::string name = argument.substr(2, has_value ? equals - 2 : std::string::npos);
  for (char &c : name)
    if (c == '_')
      c = '-';
  return name;
}

long long integer(const std::string &flag, const std::string &value, long long most) {
  char *end = nullptr;
  errno = 0;
  long long n = std::strtoll(value.c_str(), &end, 10);
  if (value.empty() || *end != 0 || errno != 0 || n < 0 || n > most)
    throw std::invalid_argument("--" + flag + "=" + value + ": needs a number from 0 to " +
                                std::to_string(most));
  return n;
}

float decay(const std::string &flag, const std::string &value) {
  const vpps::c_numbers in_c;
  char *end = nullptr;
  float x = std::strtof(value.c_str(), &end);
  if (value.empty() || *end != 0 || !(x >= 0 && x < 1))
    throw std::invalid_argument("--" + flag + "=" + value + ": needs a number from 0 to below 1");
  return x;
}

// The number of the GPU that a list names, "" for the CPU; again: it was named before.
std::string gpu_of_name(const std::string &list, const std::string &name, bool again) {
  std::string gpu = name.compare(0, 4, "GPU:") == 0 ? name.substr(4) : "";
  const std::string what = "--dynet-devices=" + list;
  if (name.compare(0, 4, "CPU:") == 0)
    throw std::invalid_argument(what + ": a CPU id cannot be given");
  if (name != "CPU" && (gpu.empty() || gpu.find_first_not_of("0123456789") != std::string::npos))
    throw std::invalid_argument(what + ": needs CPU or GPU:k, not '" + name + "'");
  if (again)
    throw std::invalid_argument(what + ": has " + name + " twice");
  return gpu;
}

// Reads a list of DyNet's names into the members that DyNet has for it: requested_gpus is one less
// than their number. The engine's device is the first GPU, else the CPU.
void read_devices(const std::string &list, DynetParams &p) {
  std::set<std::string> seen;
  p.ids_requested = p.cpu_requested = true;
  p.vpps_device = "cpu";
  for (const std::string &name : str_split(list, ',')) {
    const std::string gpu = gpu_of_name(list, name, !seen.insert(name).second);
    if (gpu.empty())
      continue;
    const size_t k = gpu.size() > 3 ? most_gpus : std::stoul(gpu);
    if (k >= most_gpus)
      throw std::invalid_argument("--dynet-devices=" + list + ": GPUs have numbers below " +
                                  std::to_string(most_gpus));
    p.gpu_mask[k] = 1;
    if (++p.requested_gpus == 0)
      p.vpps_device = "cuda:" + gpu;
  }
  if (seen.empty())
    throw std::invalid_argument("--dynet-devices=: needs CPU or GPU:k");
}

// The device that a program has asked for by DyNet's members, "" if by none.
std::string device_of_members(const DynetParams &p) {
  if (p.ngpus_requested)
    return p.requested_gpus > 0 ? "cuda" : "cpu";
  for (size_t k = 0; k < p.gpu_mask.size() && p.ids_requested; ++k)
    if (p.gpu_mask[k] != 0)
      return "cuda:" + std::to_string(k);
  return p.cpu_requested ? "cpu" : "";
}

// A vpps_log_level by its name.
int log_level(const std::string &name) {
  const char *const names[] = {"off", "info", "debug"};
  for (int level = VPPS_LOG_OFF; level <= VPPS_LOG_DEBUG; level++)
    if (name == names[level])
      return level;
  throw std::invalid_argument("--vpps-log=" + name + ": needs off, info or debug");
}

// A variable of the environment, NULL in a process that has more rights than its user.
const char *variable(const char *name) { return secure_getenv(name); }

// Makes the engine a rank, and returns rank 0's seed: ranks draw the same numbers in the program,
// for the order of the data for example.
unsigned rank_0s(unsigned seed, Engine &e) {
  e.connect();
  check(vpps_comm_broadcast(e.comm, &seed, sizeof seed, 0));
  check(vpps_comm_attach(e.comm, e.raw, VPPS_SUM));
  return seed;
}

} // namespace

void Engine::connect() {
  if (comm)
    return;
  check(vpps_comm_create_launched(raw, 0, &comm));
  check(vpps_comm_rank(comm, &rank, &ranks));
}

DynetParams::DynetParams()
    : random_seed(0), mem_descriptor("512"), weight_decay(0), autobatch(0), profiling(0),
      shared_parameters(false), ngpus_requested(false), ids_requested(false), cpu_requested(false),
      requested_gpus(-1), gpu_mask(most_gpus), vpps_log(-1), vpps_profile(false),
      vpps_data_parallel(false) {}

DynetParams extract_dynet_params(int &argc, char **&argv, bool shared_parameters) {
  DynetParams p;
  p.shared_parameters = shared_parameters;
  int kept = argc > 0 ? 1 : 0;
  for (int i = kept; i < argc; ++i) {
    std::string value;
    bool has_value = false;
    std::string flag = flag_name(argv[i], value, has_value);
    bool known = flag == "dynet-mem" || flag == "dynet-weight-decay" || flag == "dynet-seed" ||
                 flag == "dynet-autobatch" || flag == "dynet-autobatch-debug" ||
                 flag == "dynet-profiling" || flag == "dynet-devices" || flag == "dynet-gpus" ||
                 flag == "vpps-device" || flag == "vpps-log" || flag == "vpps-profile" ||
                 flag == "vpps-data-parallel";
    if (!known) {
      if (flag.compare(0, 6, "dynet-") == 0 || flag.compare(0, 5, "vpps-") == 0)
        std::cerr << "libvpps: there is no flag --" << flag << ": it is left to the program. "
                  << "There are --vpps-device, --vpps-log, --vpps-profile, --vpps-data-parallel, "
                     "--dynet-devices, --dynet-gpus, --dynet-seed, "
                  << "--dynet-weight-decay, --dynet-mem, --dynet-autobatch and --dynet-profiling\n";
      argv[kept++] = argv[i];
      continue;
    }
    if (flag == "vpps-data-parallel") { // alone, or with =0 or =1
      p.vpps_data_parallel = !has_value || integer(flag, value, 1) == 1;
      continue;
    }
    if (!has_value) {
      if (i + 1 >= argc)
        throw std::invalid_argument("--" + flag + " needs a value");
      value = argv[++i];
    }
    if (flag == "dynet-mem") {
      p.mem_descriptor = value;
    } else if (flag == "dynet-weight-decay") {
      p.weight_decay = decay(flag, value);
    } else if (flag == "dynet-seed") {
      p.random_seed = static_cast<unsigned>(integer(flag, value, UINT_MAX));
    } else if (flag == "dynet-autobatch") {
      p.autobatch = static_cast<int>(integer(flag, value, INT_MAX));
    } else if (flag == "dynet-autobatch-debug") {
      integer(flag, value, INT_MAX);
    } else if (flag == "dynet-profiling") {
      p.profiling = static_cast<int>(integer(flag, value, INT_MAX));
    } else if (flag == "dynet-gpus") {
      p.ngpus_requested = true;
      p.requested_gpus = static_cast<int>(integer(flag, value, INT_MAX));
      p.vpps_device = device_of_members(p);
    } else if (flag == "dynet-devices") {
      if (p.ids_requested)
        throw std::invalid_argument("--dynet-devices is given twice: give one list");
      read_devices(value, p);
    } else if (flag == "vpps-log") {
      p.vpps_log = log_level(value);
    } else if (flag == "vpps-profile") {
      p.vpps_profile = integer(flag, value, 1) == 1;
    } else {
      p.vpps_device = value;
    }
  }
  if (p.ngpus_requested && p.ids_requested)
    throw std::invalid_argument("--dynet-gpus and --dynet-devices are two ways to name devices: "
                                "give one of them");
  if (kept < argc)
    argv[kept] = nullptr;
  argc = kept;
  return p;
}

void initialize(DynetParams &params) {
  if (the_engine) {
    std::cerr << "WARNING: dynet::initialize was called before; this call does nothing.\n";
    return;
  }
  if (!(params.weight_decay >= 0 && params.weight_decay < 1))
    throw std::invalid_argument("weight_decay must be from 0 to below 1");
  unsigned seed = params.random_seed;
  while (seed == 0)
    seed = std::random_device()();

  std::string device = params.vpps_device;
  if (device.empty())
    device = device_of_members(params);
  if (device.empty() && variable("VPPS_DEVICE"))
    device = variable("VPPS_DEVICE");
  if (device.empty())
    device = "auto";
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  options.device = device.c_str();
  options.plan = variable("VPPS_PLAN");
  options.trace = variable("VPPS_TRACE");
  if (const char *times = variable("VPPS_TIMES"))
    options.times = std::string(times) == "1";
  options.profile = params.vpps_profile; // else the library reads the variable
  options.seed = seed;
  options.data_parallel = params.vpps_data_parallel;
  vpps::chosen_options::all().into(options);
  if (params.vpps_log >= 0)
    check(vpps_set_log(static_cast<vpps_log_level>(params.vpps_log), nullptr, nullptr));
  vpps_engine *raw = nullptr;
  check(vpps_frontend(VPPS_FRONTEND_BUNDLED));
  check(vpps_engine_open(&options, &raw));
  const std::shared_ptr<Engine> opened = std::make_shared<Engine>(raw);
  if (options.data_parallel)
    seed = rank_0s(seed, *opened);
  // Another user of the library may have opened the engine first. Each rank has dropout of its own.
  check(vpps_engine_seed(raw, seed + opened->rank));
  char description[256] = "";
  check(vpps_engine_describe(raw, description, sizeof description));

  if (params.random_seed == 0)
    params.random_seed = seed;
  rndeng = new std::mt19937(seed);
  default_weight_decay_lambda = params.weight_decay;
  autobatch_flag = params.autobatch;
  profiling_flag = params.profiling;
  the_engine = opened;
  list_devices(description);
  if (recorder.graph)
    recorder.graph->join();
  const std::string who = opened->ranks == 1 ? ""
                                             : "rank " + std::to_string(opened->rank) + " of " +
                                                   std::to_string(opened->ranks) + ": ";
  std::cerr << "[dynet] random seed: " << seed << "\n[vpps] " << who << description << "\n";
}

void initialize(int &argc, char **&argv, bool shared_parameters) {
  DynetParams params = extract_dynet_params(argc, argv, shared_parameters);
  initialize(params);
}

void cleanup() {
  delete rndeng;
  rndeng = nullptr;
  drop_devices();
  the_engine.reset();
}

void reset_rng(unsigned seed) {
  if (rndeng == nullptr)
    throw std::invalid_argument("reset_rng before dynet::initialize");
  while (seed == 0)
    seed = std::random_device()();
  recorder.settle();
  rndeng->seed(seed);
  check(vpps_engine_seed(the_engine->raw, seed));
}

bool has_engine() { return the_engine != nullptr; }

const std::shared_ptr<Engine> &engine(const char *needed_by) {
  if (!the_engine)
    throw std::invalid_argument(std::string("dynet::initialize must be called before ") +
                                needed_by);
  return the_engine;
}

void throw_failure(vpps_status status) {
  std::string text = vpps_last_error();
  if (text.empty())
    text = "libvpps: failure " + std::to_string(static_cast<int>(status));
  switch (status) {
  case VPPS_ERR_ARGUMENT:
  case VPPS_ERR_GRAPH:
    throw std::invalid_argument(text);
  case VPPS_ERR_MEMORY:
    throw out_of_memory(text);
  default:
    throw std::runtime_error(text);
  }
}

void show_pool_mem_info() {
  if (!the_engine)
    return;
  size_t needed = 0;
  check(vpps_memory_report(the_engine->raw, nullptr, 0, &needed));
  std::string text(needed + 64, 0); // it may grow meanwhile
  check(vpps_memory_report(the_engine->raw, &text[0], text.size(), &needed));
  std::cerr << text.c_str();
}

} // namespace dynet
