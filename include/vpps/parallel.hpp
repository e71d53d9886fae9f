/// \file
/// vpps::data_parallel: the processes of an MPI program train one model, each with batches of its
/// own.
///
///     vpps::data_parallel ranks(model);          // all have rank 0's parameters now
///     for (size_t i = ranks.rank(); i < data.size(); i += ranks.size())
///       hndl.fb(model, cg, loss(data[i]));       // gradients are summed over all ranks
///     ranks.join();                              // no batch is left
///
/// Programs include vpps/vpps.hpp, compiled against libvpps's own DyNet headers.
#ifndef VPPS_PARALLEL_HPP
#define VPPS_PARALLEL_HPP

#include <dynet/dynet.h>
#include <dynet/engine.h>

#include <exception>
#include <memory>

#include "vpps.h"
#include <vpps/bundled.hpp>

namespace vpps {

/// This process as a rank of its MPI program, from its construction to its end. Then fb() and
/// trainer.update() are calls of all ranks, in the same order: see vpps_comm_attach(). A program
/// that mpirun has not started is the only rank, and trains as if this object were not there.
/// Failures are std::runtime_error on all ranks; parameters are as before the batch.
class data_parallel {
public:
  /// Joins the ranks, which all have the same model and trainers. It waits for them. Then all have
  /// the parameters of rank 0. average: gradients are averaged by count(), else summed.
  explicit data_parallel(dynet::ParameterCollection &model, bool average = false)
      : engine_(dynet::engine("vpps::data_parallel")) {
    (void)model.engine_ids(); // are in the engine now
    dynet::check(vpps_comm_create_mpi(0, &comm_));
    vpps_status s = vpps_comm_rank(comm_, &rank_, &size_);
    if (!s)
      s = vpps_comm_attach(comm_, engine_->raw, average ? VPPS_AVERAGE : VPPS_SUM);
    if (s) {
      vpps_comm_destroy(comm_); // keeps the text of the failure
      dynet::check(s);
    }
    engine_->updates++; // values that graphs have are stale
  }
  /// Leaves the ranks. While an exception is thrown the others are told that this one is gone.
  ~data_parallel() {
    if (size_ > 1 && throwing())
      vpps_comm_abort(comm_, "an exception has ended its training");
    vpps_comm_detach(engine_->raw);
    vpps_comm_destroy(comm_);
  }

  /// This process's number, from 0.
  unsigned rank() const { return rank_; }
  /// How many ranks there are.
  unsigned size() const { return size_; }
  /// How many examples this rank's batches have from now on, if gradients are averaged; 1 at first.
  void count(float examples) { dynet::check(vpps_comm_count(engine_->raw, examples)); }
  /// Takes part in the others' batches with nothing, until all ranks have called it.
  void join() {
    dynet::check(vpps_comm_join(engine_->raw));
    engine_->updates++;
  }
  /// The sum of the ranks' latest losses. All ranks call it, but those in join().
  float global_loss(const handle &hndl) const {
    float loss = 0;
    dynet::check(vpps_global_loss(hndl.get(), &loss));
    return loss;
  }

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
  vpps_comm *comm_ = nullptr;
  uint32_t rank_ = 0, size_ = 1;
};

} // namespace vpps
#endif
