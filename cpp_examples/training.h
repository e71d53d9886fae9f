// Training with progress, over epochs or seconds, with looks at held-out sentences.
#ifndef VPPS_EXAMPLES_TRAINING_H
#define VPPS_EXAMPLES_TRAINING_H

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "answers.h"
#include "options.h"
#include "progress.h"
#include "updates.h"

// The file --curve FILE writes: the held-out sentences' loss and score as training goes on. Looks
// are at the same numbers of updates on every machine and take no training time.
class curve {
public:
  explicit curve(const options &o) : o(o) {
    if (o.curve.empty())
      return;
    out.open(o.curve.c_str());
    if (!out)
      throw std::runtime_error(o.curve + ": cannot be written: name another with --curve");
    out << "app,mode,device,trainer,hidden,embed,batch,seed,updates,sentences,seconds,train_loss,"
           "dev_loss,dev_score\n";
  }

  bool wanted() const { return out.is_open(); }
  // After no updates, after ten, and each time a fifth more.
  bool due(size_t updates) const { return wanted() && updates >= next; }

  void add(size_t updates, size_t sentences, double seconds, double train_loss,
           const answers &dev) {
    char row[512];
    std::snprintf(row, sizeof row, "%s,%s,\"%s\",%s,%u,%u,%u,%u,%zu,%zu,%.4f,%.6f,%.6f,%.5f\n",
                  o.program.c_str(), o.mode.c_str(), vpps::device().c_str(), o.trainer.c_str(),
                  o.hidden, o.embed, o.batch_size, o.seed, updates, sentences, seconds, train_loss,
                  dev.loss(), dev.accuracy());
    out << row << std::flush;
    next = std::max<size_t>(10, updates + updates / 5);
  }

private:
  const options &o;
  std::ofstream out;
  size_t next = 0;
};

template <class Model> class training {
public:
  typedef typename Model::corpus corpus;

  training(const options &o, dynet::ParameterCollection &m, Model &model, const corpus &data)
      : o(o), model(model), data(data), update(o, m, model), shape(o), order(data.train.size()) {
    if (!o.losses.empty()) {
      trace.open(o.losses.c_str());
      if (!trace)
        throw std::runtime_error(o.losses + ": cannot be written: name another with --losses");
      trace.precision(9);
    }
    for (size_t k = 0; k < order.size(); k++)
      order[k] = k;
  }

  // Trains until the epochs, the seconds or the updates are over.
  void run() {
    std::mt19937 random(o.seed);
    double done = 0;
    look_if_due(done);
    for (unsigned epoch = 0; done < 1; epoch++) {
      std::shuffle(order.begin(), order.end(), random);
      for (size_t first = 0; first < order.size() && done < 1; first += o.batch_size) {
        const size_t last = std::min(order.size(), first + o.batch_size);
        step(first, last);
        done = finished(epoch + double(last) / double(order.size()));
        look_if_due(done);
        bar.show(done, status());
      }
    }
    batch_loss told;
    if (update.finish(told))
      count_loss(told);
    const double seconds = trained_seconds();
    if (shape.wanted())
      look();
    bar.finish(status());
    if (o.profile)
      std::printf("%s", update.plan().c_str());
    std::printf("%zu sentences in %.1f s\n", sentences, seconds);
  }

private:
  void step(size_t first, size_t last) {
    batch.clear();
    for (size_t k = first; k < last; k++)
      batch.push_back(&data.train[order[k]]);
    batch_loss told;
    if (update.train(batch, told))
      count_loss(told);
    sentences += last - first;
  }

  void count_loss(const batch_loss &told) {
    loss += loss < 0 ? told.mean - loss : 0.02 * (told.mean - loss);
    if (trace.is_open())
      trace << told.batch << ' ' << told.sum << '\n';
  }

  void look_if_due(double done) {
    if (data.dev.empty() || done >= 1)
      return;
    if (shape.wanted() ? shape.due(update.done()) : done >= next_look) {
      look();
      next_look = done + 0.1;
    }
  }

  // A look at held-out sentences: a quick one, or at all of them if a curve is drawn.
  void look() {
    batch_loss told;
    update.finish(told); // its loss comes with a later batch
    const stopwatch clock;
    const double seconds = trained_seconds();
    update.show_values();
    const size_t all = data.dev.size();
    const answers dev = ask(model, data.dev, shape.wanted() ? all : std::min<size_t>(all, 200));
    held_out = dev.accuracy();
    if (shape.wanted())
      shape.add(update.done(), sentences, seconds, loss, dev);
    looking += clock.seconds();
  }

  double trained_seconds() const { return bar.seconds() - looking; }

  double finished(double epochs) const {
    double done = 0;
    if (o.epochs)
      done = epochs / o.epochs;
    if (o.seconds > 0)
      done = std::max(done, trained_seconds() / o.seconds);
    if (o.updates)
      done = std::max(done, double(update.done()) / o.updates);
    return std::min(1.0, done);
  }

  std::string status() const {
    char text[128];
    int n = 0;
    if (loss >= 0) // it comes late
      n = std::snprintf(text, sizeof text, "loss %.3f  ", loss);
    if (held_out >= 0)
      n += std::snprintf(text + n, sizeof text - size_t(n), "accuracy %.1f %%  ", 100 * held_out);
    std::snprintf(text + n, sizeof text - size_t(n), "%.0f sentences/s",
                  double(sentences) / std::max(trained_seconds(), 1e-9));
    return text;
  }

  const options &o;
  Model &model;
  const corpus &data;
  updates<Model> update;
  curve shape;
  std::ofstream trace;
  std::vector<size_t> order;
  std::vector<const typename corpus::sentence *> batch;
  progress_bar bar;
  double loss = -1, held_out = -1; // loss: of a label, smoothed
  double looking = 0, next_look = 0.1;
  size_t sentences = 0;
};

#endif
