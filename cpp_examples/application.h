// What the applications have in common: the program around a model, which trains it, answers with
// it, saves, loads and measures it. An application is a class with
//
//	typedef ... corpus;                    of trees.h or tags.h
//	Model(ParameterCollection &, const corpus &, const options &);
//	void start(ComputationGraph &);        brings the parameters into a new graph
//	void add_losses(const sentence &, std::vector<Expression> &);
//	void add_answers(const sentence &, std::vector<answer> &);   what counts as right or wrong
//	scores(const sentence &);              all that may be shown: Expressions, or one
//
// The few lines that differ from a program for DyNet alone are marked "libvpps".
#ifndef VPPS_EXAMPLES_APPLICATION_H
#define VPPS_EXAMPLES_APPLICATION_H

#include <dynet/dynet.h>
#include <vpps/c_numbers.hpp> // libvpps
#include <vpps/vpps.hpp>      // libvpps

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "answers.h"
#include "measure.h"
#include "model_file.h"
#include "options.h"
#include "predict.h"
#include "ranks.h"
#include "training.h"

template <class Model>
void print_accuracy(Model &model, vpps::handle *hndl, const typename Model::corpus &data,
                    const std::string &what) {
  if (!data.dev.empty())
    std::printf("held-out accuracy: %5.1f %% %s\n",
                100 * ask(model, hndl, data.dev, data.dev.size()).accuracy(), what.c_str());
}

inline void print_model(const application &a, const options &o) {
  std::printf("%s: embeddings of %u, hidden states of %u\n", a.name, o.embed, o.hidden);
  std::printf("running on %s\n", vpps::device().c_str()); // libvpps
  std::fflush(stdout);
}

// Sentences without right answers: those of a file, and those that are typed.
template <class Model>
void answer_others(const options &o, Model &model, vpps::handle *hndl,
                   typename Model::corpus &data) {
  if (!o.predict.empty())
    predict_file(model, hndl, data, o.predict);
  if (o.interactive)
    answer_typed(model, hndl, data);
}

// Loads what was saved into a model of its own and compares what the two predict.
template <class Model>
bool loads_back(const application &a, options o, Model &model, const typename Model::corpus &data) {
  o.load = o.save;
  dynet::ParameterCollection m;
  typename Model::corpus fresh;
  saved_model saved(a, o, fresh);
  Model loaded(m, fresh, o);
  saved.read_parameters(m);
  fresh.read_held_out(o.dev);
  const answers before = ask(model, nullptr, data.dev, data.dev.size());
  const answers after = ask(loaded, nullptr, fresh.dev, fresh.dev.size());
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

// Answers with a model that was saved; the exit status.
template <class Model> int use(const application &a, options o) {
  dynet::ParameterCollection m;
  typename Model::corpus data;
  saved_model saved(a, o, data);
  Model model(m, data, o);
  saved.read_parameters(m);
  std::unique_ptr<vpps::handle> hndl;
  if (o.mode == "vpps")
    hndl.reset(new vpps::handle(m)); // libvpps
  o.interactive |= o.predict.empty() && o.dev.empty();
  if (!o.dev.empty() || (o.interactive && isatty(STDIN_FILENO)))
    print_model(a, o);
  if (!o.dev.empty()) {
    data.read_held_out(o.dev);
    print_accuracy(model, hndl.get(), data, a.name + (" of " + o.load));
    print_latency(model, hndl.get(), data.dev);
  }
  answer_others(o, model, hndl.get(), data);
  return 0;
}

// Trains a new model; the exit status.
template <class Model>
int train(const application &a, const options &o, typename Model::corpus &data) {
  const std::string name = a.name;
  dynet::ParameterCollection m;
  Model model(m, data, o);
  print_model(a, o);
  print_accuracy(model, nullptr, data, name + " before training");
  const int signal = training<Model>(o, m, model, data).run();
  if (this_rank() > 0)
    return signal ? 128 + signal : 0;
  if (!signal) {
    print_accuracy(model, nullptr, data, name + " after training");
    if (!data.dev.empty())
      print_latency(model, nullptr, data.dev);
  }
  if (!o.save.empty()) {
    save_model(a, o, m, data);
    std::printf("saved as %s; to type sentences: %s --load %s\n", o.save.c_str(), o.called.c_str(),
                o.save.c_str());
  }
  if (signal)
    return 128 + signal; // as a shell says it
  if (!o.save.empty() && !data.dev.empty() && !loads_back(a, o, model, data))
    return 1;
  answer_others(o, model, nullptr, data);
  return 0;
}

template <class Model> int measure(const options &o, const typename Model::corpus &data) {
  dynet::ParameterCollection m;
  Model model(m, data, o);
  measurement<Model>(o, m, model, data).run();
  return 0;
}

// What the options say; the exit status.
template <class Model>
int run(const application &a, const options &o,
        void (*baseline)(const typename Model::corpus &, const options &)) {
  if (!o.load.empty())
    return this_rank() > 0 ? 0 : use<Model>(a, o);
  typename Model::corpus data;
  data.read(o.train, o.dev);
  if (o.measure > 0)
    return measure<Model>(o, data);
  std::printf("%zu sentences of %s, %zu held out, %u words\n", data.train.size(), o.train.c_str(),
              data.dev.size(), data.words.size());
  if (baseline && !data.dev.empty())
    baseline(data, o);
  return train<Model>(a, o, data);
}

// The whole program; baseline, if any, prints what a simpler model reaches.
template <class Model>
int run(const application &a, int argc, char **argv,
        void (*baseline)(const typename Model::corpus &, const options &) = nullptr) {
  const std::string program = argv[0];
  try {
    const vpps::c_numbers in_c; // libvpps: flags and files do not depend on the locale
    dynet::DynetParams params = dynet::extract_dynet_params(argc, argv); // takes its flags away
    const options o = parse(a, argc, argv);
    if (o.help)
      return 0;
    if (params.random_seed == 0)
      params.random_seed = o.seed;
    vpps::options chosen; // libvpps
    chosen.device = o.device;
    chosen.plan = o.profile ? "profile=1" : "";
    chosen.times = o.measure > 0; // of the device
    chosen.trace = o.trace;       // a timeline
#ifdef VPPS_BUNDLED_DYNET
    chosen.data_parallel = true; // with the processes of its launcher, if it has one
#endif
    vpps::set_options(chosen);
    dynet::initialize(params);
    print_on_rank_0();
    const int status = run<Model>(a, o, baseline);
    vpps::flush_timeline(); // libvpps: says so if it could not be written
    return status;
  } catch (const usage_error &e) {
    std::cerr << program.substr(program.rfind('/') + 1) << ": " << e.what() << std::endl;
    return 2;
  } catch (const std::exception &e) {
    std::cerr << a.name << ": " << e.what() << std::endl;
    return 1;
  }
}

#endif
