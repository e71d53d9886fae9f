// A model small enough for DyNet and libvpps to agree over many steps, and what tests ask of it.
#ifndef VPPS_ADAPTER_TAGGER_H
#define VPPS_ADAPTER_TAGGER_H

#include "check.h"

#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/io.h>
#include <dynet/lstm.h>
#include <dynet/training.h>

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

typedef std::vector<float> floats;

// Reads words, tags each; the graph has lookups, parameters and an LSTM.
struct tagger {
  dynet::ParameterCollection m;
  dynet::LookupParameter E;
  dynet::Parameter W, b;
  dynet::VanillaLSTMBuilder rnn;
  tagger()
      : E(m.add_lookup_parameters(20, {6})), W(m.add_parameters({4, 5})), b(m.add_parameters({4})),
        rnn(1, 6, 5, m) {
    dynet::reset_rng(7);
    set(W.p->values);
    set(b.p->values);
    set(E.p->all_values);
    for (dynet::Parameter &p : rnn.params[0])
      set(p.p->values);
  }
  static void set(dynet::Tensor &t) { dynet::TensorTools::randomize_uniform(t, -0.4f, 0.4f); }
  dynet::Expression loss(dynet::ComputationGraph &cg, unsigned step) {
    rnn.new_graph(cg);
    rnn.start_new_sequence();
    dynet::Expression w = parameter(cg, W), bias = parameter(cg, b);
    std::vector<dynet::Expression> losses;
    for (unsigned i = 0; i < 6; i++)
      losses.push_back(dynet::pickneglogsoftmax(
          dynet::affine_transform({bias, w, rnn.add_input(lookup(cg, E, (step * 5 + i * i) % 20))}),
          (step + i) % 4));
    return dynet::sum(losses);
  }
};

inline void close(const floats &a, const floats &b, float tolerance) {
  EQUAL(a.size(), b.size());
  for (size_t i = 0; i < a.size(); i++)
    if (!(std::fabs(a[i] - b[i]) <= tolerance * (1 + std::fabs(b[i]))))
      tests::fail(__FILE__, __LINE__,
                  "value " + std::to_string(i) + " is " + std::to_string(a[i]) + ", not " +
                      std::to_string(b[i]));
}

// What DyNet's user finds in a file saved now.
inline floats saved(tagger &t) {
  floats all;
  char name[] = "/tmp/vpps-adapter-XXXXXX";
  ::close(mkstemp(name));
  { dynet::TextFileSaver(name).save(t.m); }
  std::ifstream in(name);
  std::string word;
  while (in >> word)
    if (word[0] == '+' || word[0] == '-')
      all.push_back(std::stof(word));
  std::remove(name);
  return all;
}

inline dynet::Trainer *sgd(dynet::ParameterCollection &m) {
  return new dynet::SimpleSGDTrainer(m, 0.2f);
}
inline dynet::Trainer *adam(dynet::ParameterCollection &m) { return new dynet::AdamTrainer(m); }
inline dynet::Trainer *momentum(dynet::ParameterCollection &m) {
  return new dynet::MomentumSGDTrainer(m);
}
inline dynet::Trainer *adagrad(dynet::ParameterCollection &m) {
  return new dynet::AdagradTrainer(m);
}
inline dynet::Trainer *adadelta(dynet::ParameterCollection &m) {
  return new dynet::AdadeltaTrainer(m);
}
inline dynet::Trainer *rmsprop(dynet::ParameterCollection &m) {
  return new dynet::RMSPropTrainer(m, 0.01f, 1e-8f);
}
inline dynet::Trainer *cyclical(dynet::ParameterCollection &m) {
  return new dynet::CyclicalSGDTrainer(m, 0.05f, 0.3f, 4, 0.98f);
}
inline dynet::Trainer *amsgrad(dynet::ParameterCollection &m) {
  return new dynet::AmsgradTrainer(m);
}

#endif
