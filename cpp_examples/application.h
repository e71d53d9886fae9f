// What the applications have in common: the program around a model, which trains it, answers with
// it, saves, loads and measures it. An application is a class with
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
#include <dynet/io.h>
#include <vpps/c_numbers.hpp> // libvpps
#include <vpps/vpps.hpp>      // libvpps

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "answers.h"
#include "measure.h"
#include "options.h"
#include "training.h"

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
  const int signal = training<Model>(o, m, model, data).run();
  if (!signal) {
    print_accuracy(model, data, name + " after training");
    if (!data.dev.empty())
      print_latency(model, data.dev);
  }
  if (!o.save.empty()) {
    dynet::TextFileSaver(o.save).save(m);
    std::printf("saved as %s\n", o.save.c_str());
  }
  if (signal)
    return 128 + signal; // as a shell says it
  return o.save.empty() || data.dev.empty() || loads_back(o, model, data) ? 0 : 1;
}

template <class Model> int measure(const options &o, const typename Model::corpus &data) {
  dynet::ParameterCollection m;
  Model model(m, data, o);
  measurement<Model>(o, m, model, data).run();
  return 0;
}

// The whole program; baseline, if any, prints what a simpler model reaches.
template <class Model>
int run(const application &a, int argc, char **argv,
        void (*baseline)(const typename Model::corpus &, const options &) = nullptr) {
  try {
    const vpps::c_numbers in_c; // libvpps: flags and files do not depend on the locale
    dynet::DynetParams params = dynet::extract_dynet_params(argc, argv); // takes its flags away
    const options o = parse(a, argc, argv);
    if (params.random_seed == 0)
      params.random_seed = o.seed;
    if (!o.device.empty())
      setenv("VPPS_DEVICE", o.device.c_str(), 1); // libvpps
    if (o.profile)
      setenv("VPPS_PLAN", "profile=1", 1); // libvpps
    if (o.measure > 0)
      setenv("VPPS_TIMES", "1", 0); // libvpps: measures the device's time
    if (!o.trace.empty())
      setenv("VPPS_TRACE", o.trace.c_str(), 1); // libvpps: a timeline
    dynet::initialize(params);
    typename Model::corpus data;
    data.read(o.train, o.dev);
    if (o.measure <= 0)
      std::printf("%zu sentences of %s, %zu held out, %u words\n", data.train.size(),
                  o.train.c_str(), data.dev.size(), data.words.size());
    if (o.measure <= 0 && baseline && !data.dev.empty() && o.load.empty())
      baseline(data, o);
    const int status = o.measure > 0 ? measure<Model>(o, data) : train_or_load<Model>(a, o, data);
    vpps::flush_timeline(); // libvpps: says so if it could not be written
    return status;
  } catch (const std::exception &e) {
    std::cerr << a.name << ": " << e.what() << std::endl;
    return 1;
  }
}

#endif
