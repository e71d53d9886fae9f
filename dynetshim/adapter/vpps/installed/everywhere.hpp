// vpps::accelerate() without a graph: all graphs and trainers of the process. DyNet asks nobody
// when it makes a graph or updates. So functions of this header replace some of its methods: for
// the linker they have the methods' names, and a program's definitions go before those of a shared
// library. Each finds the library's method behind itself and leaves to it what it does not do.
// A program that does not call accelerate() has none of these functions.
#ifndef VPPS_INSTALLED_EVERYWHERE_HPP
#define VPPS_INSTALLED_EVERYWHERE_HPP

#include <dlfcn.h>

#include <istream>
#include <ostream>
#include <stdexcept>
#include <string>

#include "execution.hpp"
#include "trainer.hpp"

namespace vpps {
namespace installed {

// Whether all graphs and trainers are accelerated, and how.
struct everywhere {
  bool on = false;
  graph_policy policy = or_dynet;
  static everywhere &state() {
    static everywhere e;
    return e;
  }
};

// The method of the library that one of these functions replaces; null if there is none.
template <class Method> Method *replaced(const char *symbol) {
  return reinterpret_cast<Method *>(dlsym(RTLD_NEXT, symbol));
}

// A graph's constructor.
template <class... Arguments>
void construct(void (*dynets)(dynet::ComputationGraph *, Arguments...), dynet::ComputationGraph *cg,
               Arguments... arguments) {
  dynets(cg, arguments...);
  if (!everywhere::state().on)
    return;
  try {
    accelerate(*cg, everywhere::state().policy);
  } catch (...) {
    cg->~ComputationGraph();
    throw;
  }
}

// A call of one of DyNet's trainers, for which its vpps::trainer works. Calls that come back from
// there are DyNet's.
class trainer_call {
public:
  explicit trainer_call(dynet::Trainer &t, bool make = false) {
    if (everywhere::state().on && !working())
      deputy_ = make ? deputies::all().made_for(t) : deputies::all().of(t);
    working() |= deputy_ != nullptr;
  }
  ~trainer_call() { working() &= deputy_ == nullptr; }
  trainer *deputy() const { return deputy_; } // null: none works for it

private:
  trainer_call(const trainer_call &);
  trainer_call &operator=(const trainer_call &);
  static bool &working() {
    static bool w = false;
    return w;
  }
  const turn mine_;
  trainer *deputy_ = nullptr;
};

inline void update(void (*dynets)(dynet::Trainer *), dynet::Trainer *t) {
  const trainer_call call(*t, true);
  call.deputy() ? call.deputy()->update() : dynets(t);
}
inline void restart(void (*dynets)(dynet::Trainer *), dynet::Trainer *t) {
  const trainer_call call(*t);
  call.deputy() ? call.deputy()->restart() : dynets(t);
}
inline void destroy(void (*dynets)(dynet::Trainer *), dynet::Trainer *t) {
  {
    const turn mine;
    deputies::all().forget(*t);
  }
  dynets(t);
}
// The trainers of DyNet 2.1 have neither save nor populate.
template <class Trainer>
auto save(void (*dynets)(Trainer *, std::ostream *), Trainer *t, std::ostream *to)
    -> decltype(t->save(*to)) {
  const trainer_call call(*t);
  call.deputy() ? static_cast<Trainer *>(call.deputy())->save(*to) : dynets(t, to);
}
inline void save(...) {}
template <class Trainer>
auto populate(void (*dynets)(Trainer *, std::istream *), Trainer *t, std::istream *from)
    -> decltype(t->populate(*from)) {
  const trainer_call call(*t);
  call.deputy() ? static_cast<Trainer *>(call.deputy())->populate(*from) : dynets(t, from);
}
inline void populate(...) {}

// VPPS_REPLACES(function, symbol, action, Object) and, of methods with an argument, ..._WITH. A
// reference is a pointer for the linker.
#define VPPS_REPLACES(function, symbol, action, Object)                                            \
  inline __attribute__((visibility("default"))) void function(Object *) __asm__(symbol);           \
  inline void function(Object *o) {                                                                \
    static auto *const method = replaced<void(Object *)>(symbol);                                  \
    action(method, o);                                                                             \
  }
#define VPPS_REPLACES_WITH(function, symbol, action, Object, Argument)                             \
  inline __attribute__((visibility("default"))) void function(Object *, Argument) __asm__(symbol); \
  inline void function(Object *o, Argument a) {                                                    \
    static auto *const method = replaced<void(Object *, Argument)>(symbol);                        \
    action(method, o, a);                                                                          \
  }
VPPS_REPLACES(new_graph, "_ZN5dynet16ComputationGraphC1Ev", construct, dynet::ComputationGraph)
VPPS_REPLACES(new_base_graph, "_ZN5dynet16ComputationGraphC2Ev", construct, dynet::ComputationGraph)
VPPS_REPLACES_WITH(new_graph_batched, "_ZN5dynet16ComputationGraphC1Eb", construct,
                   dynet::ComputationGraph, bool)
VPPS_REPLACES_WITH(new_base_graph_batched, "_ZN5dynet16ComputationGraphC2Eb", construct,
                   dynet::ComputationGraph, bool)
VPPS_REPLACES(update_trainer, "_ZN5dynet7Trainer6updateEv", update, dynet::Trainer)
VPPS_REPLACES(destroy_trainer, "_ZN5dynet7TrainerD2Ev", destroy, dynet::Trainer)

// VPPS_EACH_RULE(Do): the classes that remember something, as the linker has their names.
#define VPPS_EACH_RULE(Do)                                                                         \
  Do(MomentumSGDTrainer, "18MomentumSGDTrainer") Do(AdagradTrainer, "14AdagradTrainer")            \
      Do(AdadeltaTrainer, "15AdadeltaTrainer") Do(RMSPropTrainer, "14RMSPropTrainer")              \
          Do(AdamTrainer, "11AdamTrainer") Do(AmsgradTrainer, "14AmsgradTrainer")                  \
              Do(EGTrainer, "9EGTrainer")
#define VPPS_RESTARTED(Class, symbol)                                                              \
  VPPS_REPLACES(restart_##Class, "_ZN5dynet" symbol "7restartEv", restart, dynet::Trainer)
#define VPPS_SAVED(Class, symbol)                                                                  \
  VPPS_REPLACES_WITH(save_##Class, "_ZN5dynet" symbol "4saveERSo", save, dynet::Trainer,           \
                     std::ostream *)                                                               \
  VPPS_REPLACES_WITH(populate_##Class, "_ZN5dynet" symbol "8populateERSi", populate,               \
                     dynet::Trainer, std::istream *)
VPPS_EACH_RULE(VPPS_RESTARTED)
VPPS_EACH_RULE(VPPS_SAVED)
VPPS_SAVED(Trainer, "7Trainer")

// Whether DyNet's callers find these functions. That it names them makes them part of the program.
inline bool replaces_dynets() {
  struct replacement {
    const char *symbol;
    void *function;
  };
#define VPPS_FUNCTION(symbol, name)                                                                \
  { symbol, reinterpret_cast<void *>(&name) }
#define VPPS_SAVING(Class, symbol)                                                                 \
  VPPS_FUNCTION("_ZN5dynet" symbol "4saveERSo", save_##Class),                                     \
      VPPS_FUNCTION("_ZN5dynet" symbol "8populateERSi", populate_##Class),
#define VPPS_OF_RULE(Class, symbol)                                                                \
  VPPS_FUNCTION("_ZN5dynet" symbol "7restartEv", restart_##Class), VPPS_SAVING(Class, symbol)
  const replacement all[] = {
      VPPS_EACH_RULE(VPPS_OF_RULE) VPPS_SAVING(Trainer, "7Trainer")
          VPPS_FUNCTION("_ZN5dynet7Trainer6updateEv", update_trainer),
      VPPS_FUNCTION("_ZN5dynet7TrainerD2Ev", destroy_trainer),
      VPPS_FUNCTION("_ZN5dynet16ComputationGraphC2Eb", new_base_graph_batched),
      VPPS_FUNCTION("_ZN5dynet16ComputationGraphC1Eb", new_graph_batched),
      VPPS_FUNCTION("_ZN5dynet16ComputationGraphC2Ev", new_base_graph),
      VPPS_FUNCTION("_ZN5dynet16ComputationGraphC1Ev", new_graph)};
#undef VPPS_OF_RULE
#undef VPPS_SAVING
#undef VPPS_FUNCTION
  bool dynet = false;
  for (const replacement &r : all) {
    dynet = dlsym(RTLD_NEXT, r.symbol) != nullptr; // DyNet 2.1 does not have all
    if (dynet && dlsym(RTLD_DEFAULT, r.symbol) != r.function)
      return false;
  }
  return dynet; // has a graph's constructor
}
#undef VPPS_REPLACES
#undef VPPS_REPLACES_WITH
#undef VPPS_EACH_RULE
#undef VPPS_RESTARTED
#undef VPPS_SAVED

} // namespace installed

// From now on libvpps runs all graphs, and does the updates of all of DyNet's trainers where the
// parameters live. It is called once, for example before dynet::initialize; graphs that are there
// already stay DyNet's. DyNet computes nodes that libvpps does not know; with only_vpps they are
// errors. DyNet must be a shared library.
inline void accelerate(graph_policy policy = or_dynet) {
  if (!installed::replaces_dynets())
    throw std::logic_error("vpps::accelerate() finds no shared library of DyNet: link libdynet.so, "
                           "or call vpps::accelerate(cg) after each graph's construction");
  const installed::turn mine;
  installed::everywhere::state().policy = policy;
  installed::everywhere::state().on = true;
}

} // namespace vpps
#endif
