/// \file
/// Processes that a launcher has started train one model, each with batches of its own: torchrun,
/// mpirun or srun. A program that none has started is the only one, and trains as ever.
///
///     vpps::data_parallel ranks(model);          // all have rank 0's parameters now
///     for (size_t i = ranks.rank(); i < data.size(); i += ranks.size())
///       hndl.fb(model, cg, loss(data[i]));       // gradients are summed over all ranks
///     ranks.join();                              // no batch is left
///
/// Or without that object, in a program that is given --vpps-data-parallel:
///
///     for (size_t i = vpps::rank(); i < data.size(); i += vpps::ranks()) ...
///     vpps::join();
///
/// Each process must take its own part of the data: nobody else knows what the data are. Programs
/// include vpps/vpps.hpp, compiled against libvpps's own DyNet headers.
#ifndef VPPS_PARALLEL_HPP
#define VPPS_PARALLEL_HPP

#include <dynet/dynet.h>
#include <dynet/engine.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "vpps.h"
#include <vpps/bundled.hpp>

namespace vpps {

/// This process's number, from 0. It is 0 before --vpps-data-parallel or a data_parallel has
/// connected it with others.
inline unsigned rank() { return dynet::engine("vpps::rank")->rank; }
/// How many processes train together.
inline unsigned ranks() { return dynet::engine("vpps::ranks")->ranks; }
/// Takes part in the others' batches with nothing, until all ranks have called it.
inline void join() {
  const std::shared_ptr<dynet::Engine> &e = dynet::engine("vpps::join");
  dynet::check(vpps_comm_join(e->raw));
  e->updates++;
}
/// The sum of the ranks' latest losses. All ranks call it, but those in join().
inline float global_loss(const handle &hndl) {
  float loss = 0;
  dynet::check(vpps_global_loss(hndl.get(), &loss));
  return loss;
}
/// Gives all ranks the bytes of rank from's value. All ranks call it. A rank that is not there is
/// std::invalid_argument. What holds pointers does not compile: call it for each element of a
/// container.
template <class T> void broadcast(T &value, unsigned from = 0) {
  static_assert(std::is_trivially_copyable<T>::value && !std::is_pointer<T>::value,
                "vpps::broadcast gives the bytes of a value, not what its pointers point to");
  const std::shared_ptr<dynet::Engine> &e = dynet::engine("vpps::broadcast");
  if (from >= e->ranks)
    throw std::invalid_argument("a broadcast from rank " + std::to_string(from) + " of " +
                                std::to_string(e->ranks));
  if (e->ranks > 1)
    dynet::check(vpps_comm_broadcast(e->comm, &value, sizeof value, from));
}

/// This process as a rank, from the object's construction to its end. Then fb() and
/// trainer.update() are calls of all ranks, in the same order: see vpps_comm_attach(). Without a
/// launcher this process is the only rank, and trains as if the object were not there. Where each
/// rank is to have a GPU of its own, give --vpps-data-parallel, too: the device is opened before
/// this object is made. Failures are std::runtime_error on all ranks; parameters are as before the
/// batch.
class data_parallel {
public:
  /// Joins the ranks, which all have the same model and trainers. It waits for them. Then all have
  /// the parameters of rank 0. average: gradients are averaged by count(), else summed.
  explicit data_parallel(dynet::ParameterCollection &model, bool average = false)
      : engine_(dynet::engine("vpps::data_parallel")) {
    (void)model.engine_ids(); // are in the engine now
    engine_->connect();
    dynet::check(vpps_comm_detach(engine_->raw)); // --vpps-data-parallel has attached it
    dynet::check(vpps_comm_attach(engine_->comm, engine_->raw, average ? VPPS_AVERAGE : VPPS_SUM));
    engine_->updates++; // values that graphs have are stale
  }
  /// Leaves the ranks. While an exception is thrown the others are told that this one is gone.
  ~data_parallel() {
    if (size() > 1 && throwing())
      vpps_comm_abort(engine_->comm, "an exception has ended its training");
    vpps_comm_detach(engine_->raw);
  }

  /// This process's number, from 0.
  unsigned rank() const { return engine_->rank; }
  /// How many ranks there are.
  unsigned size() const { return engine_->ranks; }
  /// How many examples this rank's batches have from now on, if gradients are averaged; 1 at first.
  void count(float examples) { dynet::check(vpps_comm_count(engine_->raw, examples)); }
  /// Takes part in the others' batches with nothing, until all ranks have called it.
  void join() { vpps::join(); }
  /// The sum of the ranks' latest losses. All ranks call it, but those in join().
  float global_loss(const handle &hndl) const { return vpps::global_loss(hndl); }

private:
  data_parallel(const data_parallel &);
  data_parallel &operator=(const data_parallel &);

  static bool throwing() {
#ifdef __cpp_lib_uncaught_exceptions
    return std::uncaught_exceptions() > 0;
#else
    return std::uncaught_exception();
#endif
  }

  std::shared_ptr<dynet::Engine> engine_;
};

} // namespace vpps
#endif
