/// \file
/// Training by several workers. In DyNet a worker is a process, and all of them share parameters
/// and gradients. Here the workers take turns in this process, which gives the same sums: the
/// engine uses all processors for each of them anyway. Nothing is forked, and boost is not needed.
#ifndef DYNET_MP_H
#define DYNET_MP_H

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "dynet/dict.h"
#include "dynet/dynet.h"
#include "dynet/expr.h"
#include "dynet/globals.h"
#include "dynet/lstm.h"
#include "dynet/training.h"

/// Names that programs open because DyNet's header brings boost with it. They are empty here.
namespace boost {
namespace interprocess {} // namespace interprocess
} // namespace boost

namespace dynet {

/// Training by several workers.
namespace mp {

/// A program sets it, in a signal handler for example, to end training after the present datum.
extern bool stop_requested;

/// What a program does with a datum of type D. S is what it returns, such as a loss: S() is none,
/// and
/// += adds up.
template <class D, class S> class ILearner {
public:
  virtual ~ILearner() {}
  /// Evaluates a datum. learn: adds to the gradients, too.
  virtual S LearnFromDatum(const D &datum, bool learn) = 0;
  /// Saves the model: the present one is the best so far.
  virtual void SaveModel() = 0;
};

/// The sum of the values.
real sum_values(const std::vector<real> &values);
/// The mean of the values. None: std::invalid_argument.
real mean(const std::vector<real> &values);
/// The time between two points: "2 seconds and 5nseconds".
std::string elapsed_time_string(const timespec &start, const timespec &end);

/// \cond
namespace inside {

// 0, 1, ...
std::vector<unsigned> indices(size_t count);
void shuffle(std::vector<unsigned> &order);
void needs_workers(unsigned num_children);

// Prints a line of a training's progress.
template <class S> void tell(double iteration, const char *what, const S &loss) {
  std::cerr << iteration << "\t" << what << " = " << loss;
}

// Adds up what the learner returns, and prints the sum of every so many of the first worker's data.
template <class S> class Report {
public:
  Report(bool training, unsigned frequency) : training_(training), frequency_(frequency) {}
  void add(const S &loss) {
    sum_ += loss;
    if (++count_ != frequency_)
      return;
    std::cerr << (training_ ? "train" : "dev") << " loss: " << sum_ << std::endl;
    sum_ = S();
    count_ = 0;
  }

private:
  bool training_;
  unsigned frequency_, count_ = 0;
  S sum_ = S();
};

// The data of [begin, end) by all workers in turn. The first one updates after each of its data, if
// there is a trainer.
template <class D, class S>
S turns(unsigned workers, ILearner<D, S> *learner, Trainer *trainer, const std::vector<D> &data,
        const unsigned *begin, const unsigned *end, bool learn, unsigned report_frequency) {
  S total = S();
  Report<S> report(learn, report_frequency);
  for (const unsigned *i = begin; i != end && !stop_requested; ++i) {
    const S loss = learner->LearnFromDatum(data[*i], learn);
    total += loss;
    if ((i - begin) % workers != 0)
      continue;
    report.add(loss);
    if (learn && trainer != nullptr)
      trainer->update();
  }
  return total;
}

// Notes the best loss, and saves the model of each new one.
template <class D, class S> class Best {
public:
  explicit Best(ILearner<D, S> *learner) : learner_(learner) {}
  void tell(double iteration, S loss) {
    const bool better = first_ || loss < best_;
    first_ = false;
    inside::tell(iteration, "dev loss", loss);
    std::cerr << (better ? " (New best!)" : "") << std::endl;
    if (stop_requested || !better)
      return;
    learner_->SaveModel();
    best_ = loss;
  }

private:
  ILearner<D, S> *learner_;
  S best_ = S();
  bool first_ = true;
};

} // namespace inside
/// \endcond

/// Trains for num_iterations passes over train_data, in random order, by num_children workers,
/// above 0. The first worker updates the parameters after each of its data, by the gradients of
/// all. After dev_frequency data, 0: each pass, dev_data are evaluated, and the model is saved if
/// its loss is the best so far; without dev_data always. Prints losses to std::cerr, those of the
/// first worker after each report_frequency of its data.
template <class D, class S>
void run_multi_process(unsigned num_children, ILearner<D, S> *learner, Trainer *trainer,
                       const std::vector<D> &train_data, const std::vector<D> &dev_data,
                       unsigned num_iterations, unsigned dev_frequency, unsigned report_frequency) {
  inside::needs_workers(num_children);
  std::vector<unsigned> train = inside::indices(train_data.size());
  const std::vector<unsigned> dev = inside::indices(dev_data.size());
  inside::Best<D, S> best(learner);
  const size_t step = dev_frequency > 0 ? dev_frequency : std::max<size_t>(train.size(), 1);
  for (unsigned pass = 0; pass < num_iterations && !stop_requested; ++pass) {
    inside::shuffle(train);
    for (size_t at = 0; at < train.size() && !stop_requested; at += step) {
      const size_t end = std::min(at + step, train.size());
      const double iteration = pass + static_cast<double>(end) / static_cast<double>(train.size());
      const auto start = std::chrono::steady_clock::now();
      const S loss = inside::turns(num_children, learner, trainer, train_data, train.data() + at,
                                   train.data() + end, true, report_frequency);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      inside::tell(iteration, "loss", loss);
      std::cerr << " (" << took.count() << "s)" << std::endl;
      if (stop_requested)
        return;
      if (dev.empty())
        learner->SaveModel();
      else
        best.tell(iteration,
                  inside::turns(num_children, learner, static_cast<Trainer *>(nullptr), dev_data,
                                dev.data(), dev.data() + dev.size(), false, report_frequency));
    }
  }
}

/// The same by one worker, which updates after each batch_size data. dev_frequency is above 0, and
/// dev_data are evaluated even if there are none, as in DyNet.
template <class D, class S>
void run_single_process(ILearner<D, S> *learner, Trainer *trainer, const std::vector<D> &train_data,
                        const std::vector<D> &dev_data, unsigned num_iterations,
                        unsigned dev_frequency, unsigned report_frequency, unsigned batch_size) {
  if (dev_frequency == 0)
    throw std::invalid_argument("run_single_process: dev_frequency must be above 0");
  std::vector<unsigned> train = inside::indices(train_data.size());
  inside::Best<D, S> best(learner);
  unsigned in_batch = 0;
  for (unsigned pass = 0; pass < num_iterations && !stop_requested; ++pass) {
    inside::shuffle(train);
    unsigned since_report = 0;
    for (size_t at = 0; at < train.size() && !stop_requested;) {
      const size_t end = std::min(at + dev_frequency, train.size());
      auto iteration = [&]() {
        return pass + static_cast<double>(at) / static_cast<double>(train.size());
      };
      S loss = S();
      while (at < end) {
        loss += learner->LearnFromDatum(train_data[train[at++]], true);
        if (++in_batch == batch_size) {
          trainer->update();
          in_batch = 0;
        }
        if (++since_report == report_frequency) {
          inside::tell(iteration(), "loss", loss);
          std::cerr << std::endl;
          since_report = 0;
          loss = S();
        }
      }
      if (stop_requested)
        return;
      S dev_loss = S();
      for (const D &datum : dev_data)
        dev_loss += learner->LearnFromDatum(datum, false);
      best.tell(iteration(), dev_loss);
    }
  }
}

///@{
/// One pass over the data in order, by num_children workers, above 0. Adds to the gradients
/// and returns the sum of what the learner returned. With a trainer the first worker updates after
/// each of its data.
template <class D, class S>
S run_mp_minibatch_trainer(unsigned num_children, ILearner<D, S> *learner, Trainer *trainer,
                           const std::vector<D> &data) {
  inside::needs_workers(num_children);
  const std::vector<unsigned> order = inside::indices(data.size());
  return inside::turns(num_children, learner, trainer, data, order.data(),
                       order.data() + order.size(), true, ~0u);
}
template <class D, class S>
S run_mp_minibatch(unsigned num_children, ILearner<D, S> *learner, const std::vector<D> &data) {
  return run_mp_minibatch_trainer(num_children, learner, static_cast<Trainer *>(nullptr), data);
}
///@}

/// One pass over the data in order. With a trainer it learns, and updates after each datum.
template <class D, class S>
S run_sp_minibatch_trainer(ILearner<D, S> *learner, Trainer *trainer, const std::vector<D> &data) {
  S total = S();
  for (const D &datum : data) {
    total += learner->LearnFromDatum(datum, trainer != nullptr);
    if (trainer != nullptr)
      trainer->update();
  }
  return total;
}

} // namespace mp
} // namespace dynet
#endif
