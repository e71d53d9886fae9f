// What the applications have in common: training with progress, answering without training,
// saving and loading. An application is a class with
//
//	typedef ... corpus;                    of trees.h or tags.h
//	Model(ParameterCollection &, const corpus &, const options &);
//	void start(ComputationGraph &);        brings the parameters into a new graph
//	void add_losses(const sentence &, std::vector<Expression> &);
//	void add_answers(const sentence &, std::vector<answer> &);
//
// The few lines that differ from a program for DyNet alone are marked "libvpps".
#ifndef VPPS_EXAMPLES_APPLICATION_H
#define VPPS_EXAMPLES_APPLICATION_H

#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/io.h>
#include <dynet/training.h>
#include <vpps/vpps.hpp> // libvpps

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>

#include "options.h"
#include "progress.h"

// The scores of the labels that a sentence, or one of its words, may have; and the right one.
struct answer {
  dynet::Expression scores;
  unsigned right;
};

struct answers {
  std::vector<std::vector<float>> scores;
  std::vector<unsigned> right;
  std::vector<double> seconds; // of each graph, from its first node to its scores

  unsigned best(size_t k) const {
    return unsigned(std::max_element(scores[k].begin(), scores[k].end()) - scores[k].begin());
  }
  double accuracy() const {
    size_t count = 0;
    for (size_t k = 0; k < right.size(); k++)
      count += best(k) == right[k];
    return double(count) / double(right.size());
  }
};

// Answers the first count sentences, several in one graph: forward only.
template <class Model, class Sentence>
answers ask(Model &model, const std::vector<Sentence> &sentences, size_t count,
            size_t together = 16) {
  answers all;
  for (size_t first = 0; first < count; first += together) {
    const stopwatch clock;
    dynet::ComputationGraph cg;
    model.start(cg);
    std::vector<answer> asked;
    for (size_t k = first; k < std::min(count, first + together); k++)
      model.add_answers(sentences[k], asked);
    cg.forward(asked.back().scores); // and with it all nodes before
    for (const answer &a : asked) {
      all.scores.push_back(dynet::as_vector(a.scores.value()));
      all.right.push_back(a.right);
    }
    all.seconds.push_back(clock.seconds());
  }
  return all;
}

// How long an answer to one sentence takes.
template <class Model, class Sentence>
void print_latency(Model &model, const std::vector<Sentence> &sentences) {
  std::vector<double> seconds =
      ask(model, sentences, std::min<size_t>(sentences.size(), 500), 1).seconds;
  std::sort(seconds.begin(), seconds.end());
  std::printf("answers to one sentence at a time: median %.2f ms, 99 %% within %.2f ms\n",
              1e3 * seconds[seconds.size() / 2], 1e3 * seconds[seconds.size() * 99 / 100]);
}

template <class Model> class training {
public:
  typedef typename Model::corpus corpus;

  training(const options &o, dynet::ParameterCollection &m, Model &model, const corpus &data)
      : o(o), m(m), model(model), data(data), trainer(m, float(o.learning_rate)),
        order(data.train.size()) {
    if (o.mode == "vpps")
      hndl.reset(new vpps::handle(m, trainer)); // libvpps
    if (!o.losses.empty()) {
      trace.open(o.losses.c_str());
      if (!trace)
        throw std::runtime_error(o.losses + ": cannot be written: name another with --losses");
      trace.precision(9);
    }
    for (size_t k = 0; k < order.size(); k++)
      order[k] = k;
  }

  // Trains until the epochs or the seconds are over.
  void run() {
    std::mt19937 random(o.seed);
    double done = 0, next_look = 0.1;
    for (unsigned epoch = 0; done < 1; epoch++) {
      std::shuffle(order.begin(), order.end(), random);
      for (size_t first = 0; first < order.size() && done < 1; first += o.batch_size) {
        const size_t last = std::min(order.size(), first + o.batch_size);
        step(first, last);
        done = finished(epoch + double(last) / double(order.size()));
        if (!data.dev.empty() && done >= next_look && done < 1) {
          look();
          next_look = done + 0.1;
        }
        bar.show(done, status());
      }
    }
    if (hndl) // libvpps: waits for the batches under way
      count_loss(batch - 1, hndl->sync_get_latest_loss());
    bar.finish(status());
    std::printf("%zu sentences in %.1f s\n", sentences, bar.seconds());
  }

private:
  // One batch: a new graph with the shape of its sentences.
  void step(size_t first, size_t last) {
    dynet::ComputationGraph cg;
    model.start(cg);
    std::vector<dynet::Expression> losses;
    for (size_t k = first; k < last; k++)
      model.add_losses(data.train[order[k]], losses);
    const dynet::Expression total = dynet::sum(losses);
    terms[batch % 3] = losses.size();
    if (hndl) {
      // The loss comes two batches late: that one may still be under way.
      const float late = hndl->fb(m, cg, total); // libvpps
      if (batch >= 2)
        count_loss(batch - 2, late);
    } else {
      count_loss(batch, dynet::as_scalar(cg.forward(total)));
      cg.backward(total);
      trainer.update();
    }
    batch++;
    sentences += last - first;
  }

  void count_loss(size_t of_batch, float value) {
    const double mean = value / double(terms[of_batch % 3]);
    loss += loss < 0 ? mean - loss : 0.02 * (mean - loss);
    if (trace.is_open())
      trace << of_batch << ' ' << value << '\n';
  }

  // A quick look at held-out sentences.
  void look() {
    const stopwatch clock;
    if (hndl)
      hndl->pull(m); // libvpps, if DyNet's own execution is to see the trained values
    held_out = ask(model, data.dev, std::min<size_t>(data.dev.size(), 200)).accuracy();
    looking += clock.seconds();
  }

  double finished(double epochs) const {
    const double by_epochs = o.epochs ? epochs / o.epochs : 0;
    return std::min(1.0, std::max(by_epochs, o.seconds > 0 ? bar.seconds() / o.seconds : 0));
  }

  std::string status() const {
    char text[128];
    int n = 0;
    if (loss >= 0) // it comes late
      n = std::snprintf(text, sizeof text, "loss %.3f  ", loss);
    if (held_out >= 0)
      n += std::snprintf(text + n, sizeof text - size_t(n), "accuracy %.1f %%  ", 100 * held_out);
    std::snprintf(text + n, sizeof text - size_t(n), "%.0f sentences/s",
                  double(sentences) / std::max(bar.seconds() - looking, 1e-9));
    return text;
  }

  const options &o;
  dynet::ParameterCollection &m;
  Model &model;
  const corpus &data;
  dynet::SimpleSGDTrainer trainer;
  std::unique_ptr<vpps::handle> hndl;
  std::ofstream trace;
  std::vector<size_t> order;
  progress_bar bar;
  double loss = -1, held_out = -1; // loss: of a label, smoothed
  double looking = 0;              // seconds
  size_t sentences = 0, batch = 0, terms[3] = {1, 1, 1};
};

// Loads the file into a model of its own and compares what the two predict.
template <class Model>
bool loads_back(const options &o, Model &model, const typename Model::corpus &data) {
  dynet::ParameterCollection fresh;
  Model loaded(fresh, data, o);
  dynet::TextFileLoader(o.save).populate(fresh);
  const answers before = ask(model, data.dev, data.dev.size());
  const answers after = ask(loaded, data.dev, data.dev.size());
  size_t same = 0, identical = 0;
  const size_t count = before.scores.size();
  for (size_t k = 0; k < count; k++) {
    same += before.best(k) == after.best(k);
    identical += before.scores[k] == after.scores[k];
  }
  std::printf(
      "loaded into a new model: %zu of %zu predictions are the same, %zu with identical scores\n",
      same, count, identical);
  return same == count;
}

template <class Model>
void print_accuracy(Model &model, const typename Model::corpus &data, const std::string &what) {
  if (!data.dev.empty())
    std::printf("held-out accuracy: %5.1f %% %s\n",
                100 * ask(model, data.dev, data.dev.size()).accuracy(), what.c_str());
}

template <class Model>
int train_or_load(const application &a, const options &o, const typename Model::corpus &data) {
  const std::string name = a.name;
  dynet::ParameterCollection m;
  Model model(m, data, o);
  std::printf("%s: embeddings of %u, hidden states of %u, batches of %u\n", a.name, o.embed,
              o.hidden, o.batch_size);
  std::printf("running on %s\n", vpps::device().c_str()); // libvpps
  if (!o.load.empty()) {
    dynet::TextFileLoader(o.load).populate(m);
    print_accuracy(model, data, name + " of " + o.load);
    print_latency(model, data.dev);
    return 0;
  }
  print_accuracy(model, data, name + " before training");
  training<Model>(o, m, model, data).run();
  print_accuracy(model, data, name + " after training");
  if (!data.dev.empty())
    print_latency(model, data.dev);
  if (o.save.empty())
    return 0;
  dynet::TextFileSaver(o.save).save(m);
  std::printf("saved as %s\n", o.save.c_str());
  return data.dev.empty() || loads_back(o, model, data) ? 0 : 1;
}

// The whole program; baseline, if any, prints what a simpler model reaches.
template <class Model>
int run(const application &a, int argc, char **argv,
        void (*baseline)(const typename Model::corpus &, const options &) = nullptr) {
  try {
    dynet::DynetParams params = dynet::extract_dynet_params(argc, argv); // takes its flags away
    const options o = parse(a, argc, argv);
    if (params.random_seed == 0)
      params.random_seed = o.seed;
    if (!o.device.empty())
      setenv("VPPS_DEVICE", o.device.c_str(), 1); // libvpps
    dynet::initialize(params);
    typename Model::corpus data;
    data.read(o.train, o.dev);
    std::printf("%zu sentences of %s, %zu held out, %u words\n", data.train.size(), o.train.c_str(),
                data.dev.size(), data.words.size());
    if (baseline && !data.dev.empty() && o.load.empty())
      baseline(data, o);
    return train_or_load<Model>(a, o, data);
  } catch (const std::exception &e) {
    std::cerr << a.name << ": " << e.what() << std::endl;
    return 1;
  }
}

#endif
