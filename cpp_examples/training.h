// Training with progress, over epochs or seconds, with looks at held-out sentences. It ends early
// if these tell that it has nothing more to learn, or if a signal comes.
#ifndef VPPS_EXAMPLES_TRAINING_H
#define VPPS_EXAMPLES_TRAINING_H

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <locale>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include <vpps/atomic_file.hpp> // libvpps

#include "answers.h"
#include "options.h"
#include "progress.h"
#include "ranks.h"
#include "signals.h"
#include "updates.h"

// The file --curve FILE writes: the held-out sentences' loss and score as training goes on. Looks
// are at the same numbers of updates on every machine and take no training time. The file is
// written anew with each row, so that it is whole at any time.
class curve {
public:
  explicit curve(const options &o) : o(o) {
    if (wanted() && this_rank() == 0)
      vpps::atomic_file::check(o.curve);
    rows = "app,mode,device,trainer,hidden,embed,batch,seed,updates,sentences,seconds,train_loss,"
           "dev_loss,dev_score\n";
  }

  bool wanted() const { return !o.curve.empty(); }
  // After no updates, after ten, and each time a fifth more.
  bool due(size_t updates) const { return wanted() && updates >= next; }
  void looked(size_t updates) { next = std::max<size_t>(10, updates + updates / 5); }

  void add(size_t updates, size_t sentences, double seconds, double train_loss,
           const answers &dev) {
    char row[512];
    std::snprintf(row, sizeof row, "%s,%s,\"%s\",%s,%u,%u,%u,%u,%zu,%zu,%.4f,%.6f,%.6f,%.5f\n",
                  o.program.c_str(), o.mode.c_str(), vpps::device().c_str(), o.trainer.c_str(),
                  o.hidden, o.embed, o.batch_size, o.seed, updates, sentences, seconds, train_loss,
                  dev.loss(), dev.accuracy());
    rows += row;
    vpps::atomic_file file(o.curve);
    file.write(rows);
    file.commit();
  }

  std::string rows; // all of the file
  size_t next = 0;  // after so many updates another is due

private:
  const options &o;
};

template <class Model> class training {
public:
  typedef typename Model::corpus corpus;

  training(const options &o, dynet::ParameterCollection &m, Model &model, const corpus &data)
      : o(o), m(m), model(model), data(data), update(o, m, model), ranks(m), shape(o),
        order(data.train.size()) {
    if (order.size() < ranks.size())
      throw std::runtime_error(std::to_string(order.size()) + " sentences are too few for " +
                               std::to_string(ranks.size()) + " ranks");
    for (size_t k = 0; k < order.size(); k++)
      order[k] = k;
    for (const std::string &file : {o.save, o.checkpoint})
      if (!file.empty() && ranks.rank() == 0) // rather than after hours of training
        vpps::atomic_file::check(file);
    if (o.resume && std::ifstream(o.checkpoint.c_str()))
      resume();
    else if (o.resume)
      std::printf("there is no %s yet: training begins\n", o.checkpoint.c_str());
    open_losses();
  }

  // Trains until the epochs, the seconds, the updates or the patience are over, or a signal ends
  // it, which is returned; 0: none did.
  int run() {
    const stop_signals signals;
    int signal = agree(passes(), signals);
    look_if_due();
    while (done < 1 && !signal && !saturated()) {
      if (at == 0)
        std::shuffle(order.begin(), order.end(), random);
      const size_t last = std::min(order.size(), at + o.batch_size * ranks.size());
      if (last - at >= ranks.size()) // each rank has a part of it
        step(at, last);
      signal = agree(epoch + double(last) / double(order.size()), signals);
      at = last < order.size() ? last : 0;
      epoch += at == 0;
      look_if_due();
      bar.show(done, status());
      if (!o.checkpoint.empty() && update.done() % o.checkpoint_every == 0)
        save_checkpoint();
    }
    if (!o.checkpoint.empty())
      save_checkpoint();
    batch_loss told;
    if (update.finish(told))
      count_loss(told);
    const double seconds = trained_seconds();
    if (shape.wanted() ? !signal : signal && !data.dev.empty())
      look();
    bar.finish(done, status());
    if (o.profile)
      std::printf("%s", update.plan().c_str());
    summarize(signal, seconds);
    compare_ranks(m);
    return signal;
  }

private:
  // How much is done, and a signal. All ranks end when rank 0 does, by its clock and its signals.
  // Ranks that agree wait for their batches, so they do it four times a second. What is counted
  // they agree on anyway.
  int agree(double epochs, const stop_signals &signals) {
    done = std::max(done, counted(epochs));
    if (ranks.size() > 1 && done < 1 && update.done() < next_agreement)
      return 0;
    struct {
      double done;
      size_t next;
      int signal;
    } now = {std::max(done, timed()), update.done() + 1, signals.caught()};
    if (trained_seconds() > 0)
      now.next += size_t(std::min(1.0, 0.25 / trained_seconds()) * double(update.done()));
    take_from_rank_0(now);
    done = now.done;
    next_agreement = now.next;
    return now.signal;
  }

  bool saturated() const { return o.patience && looks_since_best >= o.patience; }

  void summarize(int signal, double seconds) const {
    if (signal)
      std::printf("%s ended training after %zu batches: ", signal == SIGINT ? "Ctrl-C" : "SIGTERM",
                  update.done());
    else if (done < 1)
      std::printf("held-out accuracy has not improved for %u looks: stopping; --patience 0 goes "
                  "on\n",
                  o.patience);
    std::printf("%zu sentences in %.1f s", sentences, seconds);
    if (signal && held_out >= 0)
      std::printf(", held-out accuracy %.1f %%", 100 * held_out);
    std::printf("\n");
    if (signal && !o.checkpoint.empty())
      std::printf("to go on training, give --resume as well\n");
    else if (signal)
      std::printf("training goes on another time if --checkpoint FILE is given, then --resume\n");
  }

  void step(size_t first, size_t last) {
    batch.clear();
    const part mine(first, last, ranks);
    for (size_t k = mine.first; k < mine.last; k++)
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

  void look_if_due() {
    if (data.dev.empty() || done >= 1)
      return;
    if (shape.wanted() ? shape.due(update.done()) : done >= next_look) {
      look();
      next_look = done + 1.0 / o.looks;
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
    const answers dev =
        ask(model, update.handle(), data.dev, shape.wanted() ? all : std::min<size_t>(all, 200));
    held_out = dev.accuracy();
    take_from_rank_0(held_out); // other machines may round otherwise
    const bool better = held_out > best;
    if (better || passes() >= passes_at_count + 1) { // looks that patience counts
      looks_since_best = better ? 0 : looks_since_best + 1;
      passes_at_count = passes();
    }
    best = std::max(best, held_out);
    shape.looked(update.done());
    if (shape.wanted() && ranks.rank() == 0)
      shape.add(update.done(), sentences, seconds, loss, dev);
    looking += clock.seconds();
  }

  double passes() const { return epoch + double(at) / double(order.size()); }
  double trained_seconds() const { return earlier + bar.seconds() - looking; }

  // ---- checkpoints: where in the data training is, and what it shows -------------------------

  void save_checkpoint() {
    if (ranks.rank() > 0)
      return;
    if (trace.is_open())
      trace.flush();
    std::ostringstream text;
    text.imbue(std::locale::classic());
    text.precision(17);
    text << setup() << '\n'
         << epoch << ' ' << at << ' ' << done << ' ' << sentences << ' ' << loss << ' ' << held_out
         << ' ' << best << ' ' << looks_since_best << ' ' << passes_at_count << ' '
         << trained_seconds() << ' ' << next_look << ' ' << shape.next << ' '
         << (trace.is_open() ? long(trace.tellp()) : 0) << '\n'
         << random << '\n';
    for (size_t k : order)
      text << k << ' ';
    update.save_checkpoint(o.checkpoint, {{"training", text.str()}, {"curve", shape.rows}});
  }

  void resume() {
    std::map<std::string, std::string> own = update.load_checkpoint(o.checkpoint);
    std::istringstream text(own["training"]);
    text.imbue(std::locale::classic());
    std::string then;
    std::getline(text, then);
    if (then != setup())
      throw std::runtime_error("--resume: " + o.checkpoint + " is of a program with " + then +
                               ", this one has " + setup());
    text >> epoch >> at >> done >> sentences >> loss >> held_out >> best >> looks_since_best >>
        passes_at_count >> earlier >> next_look >> shape.next >> losses_written >> random;
    for (size_t &k : order)
      text >> k;
    if (!text)
      throw std::runtime_error("--resume: " + o.checkpoint + " is not of this program");
    shape.rows = own["curve"];
    done = std::max(counted(passes()), timed()); // there may be more to do now
    std::printf("going on from %s after %zu batches\n", o.checkpoint.c_str(), update.done());
  }

  // What must be as it was.
  std::string setup() const {
    std::ostringstream text;
    text.imbue(std::locale::classic());
    text << "--trainer " << o.trainer << " --mode " << o.mode << " --batch-size " << o.batch_size
         << " --learning-rate " << o.learning_rate << " and " << order.size() << " sentences";
    return text.str();
  }

  // The file of losses loses those of batches after the checkpoint.
  void open_losses() {
    if (o.losses.empty() || ranks.rank() > 0)
      return;
    if (losses_written > 0 && truncate(o.losses.c_str(), losses_written) != 0)
      losses_written = 0;
    trace.imbue(std::locale::classic());
    trace.open(o.losses.c_str(), losses_written > 0 ? std::ios::app : std::ios::trunc);
    if (!trace)
      throw std::runtime_error(o.losses + ": cannot be written: name another with --losses");
    trace.precision(9);
  }

  // How much is done, by the counts that the user gave and by the seconds.
  double counted(double epochs) const {
    double done = 0;
    if (o.epochs)
      done = epochs / o.epochs;
    if (o.updates)
      done = std::max(done, double(update.done()) / o.updates);
    return std::min(1.0, done);
  }
  double timed() const { return o.seconds > 0 ? std::min(1.0, trained_seconds() / o.seconds) : 0; }

  std::string status() const {
    char part[64];
    std::string text;
    const auto add = [&part, &text] { text += (text.empty() ? "" : "  ") + std::string(part); };
    if (loss >= 0) { // it comes late
      std::snprintf(part, sizeof part, "loss %.3f", loss);
      add();
    }
    if (held_out >= 0) {
      std::snprintf(part, sizeof part, "accuracy %.1f %%", 100 * held_out);
      add();
    }
    const double seconds = trained_seconds();
    if (seconds >= 1) { // before that a rate tells nothing
      std::snprintf(part, sizeof part, "%.0f sentences/s", double(sentences) / seconds);
      add();
    }
    return text;
  }

  const options &o;
  dynet::ParameterCollection &m;
  Model &model;
  const corpus &data;
  updates<Model> update;
  rank_of_all ranks;
  curve shape;
  std::ofstream trace;
  std::mt19937 random{o.seed}; // of the order
  std::vector<size_t> order;   // of the sentences in this epoch
  size_t at = 0;               // of these, where the next batch begins
  unsigned epoch = 0;
  std::vector<const typename corpus::sentence *> batch;
  progress_bar bar;
  double loss = -1, held_out = -1; // loss: of a label, smoothed
  double done = 0;                 // the part of training that is over
  size_t next_agreement = 0;       // of ranks, after so many updates
  double looking = 0, earlier = 0; // seconds: of looks, of training before it was resumed
  double next_look = 0;            // when so much is done
  double best = -1;                // held-out accuracy of all looks
  unsigned looks_since_best = 0;
  double passes_at_count = 0; // over the data
  size_t sentences = 0;
  long losses_written = 0; // bytes, when the checkpoint was saved
};

#endif
