// libvpps under DyNet's Python module, which is made of two shared libraries: DyNet's own and an
// extension that calls it. This one is loaded before both. Its definitions of some of DyNet's
// functions then go before DyNet's own (vpps/installed/everywhere.hpp). It knows no Python object:
// vpps_dynet.py calls the functions at the end, and DyNet's module all others.
#include <cxxabi.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <vpps/vpps.hpp>

using namespace vpps::installed;

namespace {

// Python's functions, of the interpreter that has loaded this library. No header of it is needed.
struct python {
  int (*has_lock)();
  void *(*unlock)();
  void (*lock)(void *);
  static const python &the() {
    static const python p = {of<int()>("PyGILState_Check"), of<void *()>("PyEval_SaveThread"),
                             of<void(void *)>("PyEval_RestoreThread")};
    return p;
  }

private:
  template <class Function> static Function *of(const char *name) {
    void *const f = dlsym(RTLD_DEFAULT, name);
    if (f == nullptr)
      throw std::runtime_error(std::string("this process has no Python function ") + name);
    return reinterpret_cast<Function *>(f);
  }
};

void *unlock() { return python::the().has_lock() ? python::the().unlock() : nullptr; }
// An interpreter that ends stops its other threads here, by unwinding them. Through DyNet's module
// that would end the process.
void lock(void *state) {
  try {
    python::the().lock(state);
  } catch (abi::__forced_unwind &) {
    for (;;)
      pause();
  }
}

// DyNet's Python objects show neither their trainer nor their node. But what they call is seen
// here: while vpps_dynet.py asks, restart(rate) and backward() tell whom they are called for, and
// do nothing else.
struct answer {
  bool asked;
  dynet::Trainer *trainer;
  dynet::ComputationGraph *graph;
  dynet::VariableIndex node;
};
thread_local answer told = {false, nullptr, nullptr, 0};

dynet::Expression told_expression() {
  if (told.graph == nullptr)
    throw std::invalid_argument("not an expression of DyNet's present graph");
  return dynet::Expression(told.graph, told.node);
}

dynet::Trainer &told_trainer() {
  if (told.trainer == nullptr)
    throw std::invalid_argument("not a trainer of DyNet's");
  return *told.trainer;
}

std::string &last_error() {
  thread_local std::string text;
  return text;
}

// A handle with its model, which Python may have destroyed although it was asked not to.
class trained {
public:
  explicit trained(dynet::Trainer &t) : model_(*t.model), handle_(*t.model, t) {
    const turn mine;
    parameters::all().refuses =
        false; // DyNet's module takes no exceptions from functions that read
  }
  float fb(const dynet::Expression &loss) {
    return handle_.fb(model_.get("its handle"), *loss.pg, loss);
  }
  void pull() { handle_.pull(model_.get("its handle")); }
  vpps::handle &handle() { return handle_; }

  // Infers the expressions that were listed; the number of its ticket.
  uint64_t infer() {
    std::vector<dynet::Expression> xs;
    xs.swap(listed);
    if (xs.empty())
      throw std::invalid_argument("infer: no expression was given");
    model_.get("its handle");
    tickets_[++asked_] = handle_.infer(*xs[0].pg, xs);
    return asked_;
  }
  const vpps::ticket &ticket(uint64_t number) const {
    const auto t = tickets_.find(number);
    if (t == tickets_.end())
      throw std::invalid_argument(
          "ticket " + std::to_string(number) +
          ": the handle has given none, or its result was fetched or dropped");
    return t->second;
  }
  void forget(uint64_t number) { tickets_.erase(number); }

  std::vector<dynet::Expression> listed; // for the next infer()

private:
  kept_model model_;
  vpps::handle handle_;
  std::map<uint64_t, vpps::ticket> tickets_;
  uint64_t asked_ = 0;
};

// What went wrong where DyNet's module takes no exception. The next call of vpps_dynet.py tells it.
std::string &untold_error() {
  static std::string text;
  return text;
}

// Before DyNet reads a tensor, whose values the engine may have: false if it does not.
bool bring(const dynet::Tensor &t) {
  if (t.v == nullptr || t.d.size() == 0 || !begins_marked(t.v))
    return false;
  const turn mine;
  for (int attempts = 0; attempts < 2; ++attempts) // a batch that failed is told of once
    try {
      parameters::all().refresh();
      break;
    } catch (const std::exception &e) {
      untold_error() = e.what();
    }
  return true;
}

// What went wrong is a status: 0 nothing, 1 a bad argument, 2 anything else.
template <class Do> int guarded(const Do &something) {
  try {
    if (!untold_error().empty()) {
      std::string text;
      text.swap(untold_error());
      throw std::runtime_error(text);
    }
    something();
    return 0;
  } catch (const std::invalid_argument &e) {
    last_error() = e.what();
    return 1;
  } catch (const std::exception &e) {
    last_error() = e.what();
    return 2;
  }
}

} // namespace

// DyNet's functions that this library replaces beside those of everywhere.hpp.
std::vector<float>
vpps_python_as_vector(const dynet::Tensor &t) __asm__("_ZN5dynet9as_vectorERKNS_6TensorE");
std::vector<float>
vpps_python_as_scaled(const dynet::Tensor &t,
                      float factor) __asm__("_ZN5dynet15as_scale_vectorERKNS_6TensorEf");

std::vector<float> vpps_python_as_vector(const dynet::Tensor &t) {
  static auto *const dynets =
      replaced<std::vector<float>(const dynet::Tensor &)>("_ZN5dynet9as_vectorERKNS_6TensorE");
  bring(t);
  return dynets(t);
}
std::vector<float> vpps_python_as_scaled(const dynet::Tensor &t, float factor) {
  static auto *const dynets = replaced<std::vector<float>(const dynet::Tensor &, float)>(
      "_ZN5dynet15as_scale_vectorERKNS_6TensorEf");
  if (bring(t)) { // the factor is of before
    const turn mine;
    factor = parameters::all().decay_of(t.v);
  }
  return dynets(t, factor);
}

extern "C" {
void vpps_python_backward(dynet::ComputationGraph *cg, dynet::VariableIndex node,
                          bool full) __asm__("_ZN5dynet16ComputationGraph8backwardEjb");
void vpps_python_restart(dynet::Trainer *t, float rate) __asm__("_ZN5dynet7Trainer7restartEf");

void vpps_python_backward(dynet::ComputationGraph *cg, dynet::VariableIndex node, bool full) {
  static auto *const dynets = replaced<void(dynet::ComputationGraph *, dynet::VariableIndex, bool)>(
      "_ZN5dynet16ComputationGraph8backwardEjb");
  if (!told.asked)
    return dynets(cg, node, full);
  told.graph = cg;
  told.node = node;
}
void vpps_python_restart(dynet::Trainer *t, float rate) {
  static auto *const dynets =
      replaced<void(dynet::Trainer *, float)>("_ZN5dynet7Trainer7restartEf");
  if (!told.asked)
    return dynets(t, rate);
  told.trainer = t;
}

// ---- for vpps_dynet.py, which has Python's lock in each of them ------------------------------

// The text of the last failure in this thread; it lasts until the next.
const char *vpps_python_error() { return last_error().c_str(); }

// Libvpps runs all graphs made from now on, and does the updates. Graphs with nodes that it does
// not know are DyNet's; with all != 0 such a node is an error.
int vpps_python_accelerate(int all) {
  return guarded([all] {
    language_lock::the() = {unlock, lock};
    (void)python::the();
    vpps::accelerate(all ? vpps::only_vpps : vpps::or_dynet);
  });
}

// The interpreter ends: its lock is not given up any more. Waits for calls of other threads.
void vpps_python_end() {
  const turn mine;
  language_lock::the() = {nullptr, nullptr};
}

// From ask(1) to ask(0) calls of this thread are taken for answers.
void vpps_python_ask(int on) {
  if (on)
    told = {true, nullptr, nullptr, 0};
  told.asked = on != 0;
}

// After rows of tables were written: the model of the trainer that has been told.
int vpps_python_push() {
  return guarded([] { vpps::push(*told_trainer().model); });
}

// A handle for the trainer that has been told, and its model. Both must outlive it.
int vpps_python_handle(trained **made) {
  return guarded([made] { *made = new trained(told_trainer()); });
}
void vpps_python_handle_end(trained *h) { delete h; }

// Trains by the expression that has been told.
int vpps_python_fb(trained *h, float *stale) {
  return guarded([h, stale] {
    const graph_turn mine;
    const dynet::Expression loss = told_expression();
    *stale = h->fb(loss);
  });
}
int vpps_python_keep(trained *h) {
  return guarded([h] {
    const graph_turn mine;
    h->handle().keep(told_expression());
  });
}
int vpps_python_latest_loss(trained *h, float *loss) {
  return guarded([h, loss] { *loss = h->handle().sync_get_latest_loss(); });
}
// Lists the expression that has been told for the next infer, after those before or, with first !=
// 0, alone.
int vpps_python_list(trained *h, int first) {
  return guarded([h, first] {
    const graph_turn mine;
    if (first)
      h->listed.clear();
    h->listed.push_back(told_expression());
  });
}
int vpps_python_infer(trained *h, uint64_t *ticket) {
  return guarded([h, ticket] {
    const graph_turn mine;
    *ticket = h->infer();
  });
}
// Waits, and copies the values of all its expressions one after the other, n floats. The ticket is
// used up.
int vpps_python_result(trained *h, uint64_t ticket, float *values, size_t n) {
  return guarded([h, ticket, values, n] {
    const vpps::ticket t = h->ticket(ticket);
    if (t.size() != n)
      throw std::invalid_argument("ticket " + std::to_string(ticket) + " has " +
                                  std::to_string(t.size()) + " numbers, room for " +
                                  std::to_string(n));
    h->forget(ticket);
    const std::vector<float> all = h->handle().result(t);
    std::copy(all.begin(), all.end(), values);
  });
}
int vpps_python_drop(trained *h, uint64_t ticket) {
  return guarded([h, ticket] {
    const vpps::ticket t = h->ticket(ticket);
    h->forget(ticket);
    h->handle().drop(t);
  });
}
int vpps_python_pull(trained *h) {
  return guarded([h] { h->pull(); });
}

// What runs, as text of at most size bytes with its end.
int vpps_python_device(char *text, size_t size) {
  return guarded([text, size] {
    const turn mine;
    const std::string device = vpps::device();
    std::strncpy(text, device.c_str(), size - 1);
    text[size - 1] = 0;
  });
}
}
