// A recurrent builder driven through a recorded list of calls: states and outputs after
// each call, gradients of the last output.
#include <dynet/dynet.h>
#include <dynet/fast-lstm.h>
#include <dynet/gru.h>
#include <dynet/lstm.h>
#include <dynet/model.h>
#include <dynet/rnn.h>
#include <dynet/treelstm.h>
#include <vpps/vpps.hpp>

#include <memory>
#include <type_traits>

#include "cases.h"
#include "compare.h"
#include "functions.h"

using namespace dynet;

namespace {

static_assert(std::is_same<LSTMBuilder, VanillaLSTMBuilder>::value,
              "LSTMBuilder is another name of VanillaLSTMBuilder");

std::unique_ptr<RNNBuilder> make_builder(const record &r, ParameterCollection &m) {
  const unsigned layers = r.natural("layers"), in = r.natural("input_dim");
  const unsigned out = r.natural("hidden_dim");
  RNNBuilder *b = nullptr;
  if (r.fn == "SimpleRNNBuilder")
    b = new SimpleRNNBuilder(layers, in, out, m, r.natural("support_lags") != 0);
  else if (r.fn == "VanillaLSTMBuilder")
    b = new LSTMBuilder(layers, in, out, m, r.natural("ln_lstm") != 0, r.number("forget_bias"));
  else if (r.fn == "CompactVanillaLSTMBuilder")
    b = new CompactVanillaLSTMBuilder(layers, in, out, m);
  else if (r.fn == "CoupledLSTMBuilder")
    b = new CoupledLSTMBuilder(layers, in, out, m);
  else if (r.fn == "FastLSTMBuilder")
    b = new FastLSTMBuilder(layers, in, out, m);
  else if (r.fn == "GRUBuilder")
    b = new GRUBuilder(layers, in, out, m);
  else if (r.fn == "NaryTreeLSTMBuilder")
    b = new NaryTreeLSTMBuilder(r.natural("N"), layers, in, out, m);
  else if (r.fn == "UnidirectionalTreeLSTMBuilder")
    b = new UnidirectionalTreeLSTMBuilder(layers, in, out, m);
  else if (r.fn == "BidirectionalTreeLSTMBuilder")
    b = new BidirectionalTreeLSTMBuilder(layers, in, out, m);
  else
    throw not_implemented();
  return std::unique_ptr<RNNBuilder>(b);
}

// Sets the recorded values of parameters, or of tables. all: those of the model, in order.
template <class Storage>
void set_values(const std::vector<std::shared_ptr<Storage>> &all,
                const std::vector<const line *> &recorded,
                void (*set)(Storage &, const std::vector<float> &)) {
  if (all.size() != recorded.size())
    throw mismatch(std::to_string(all.size()) + " parameters or tables");
  for (size_t k = 0; k < all.size(); k++) {
    if (all[k]->name != recorded[k]->words.at(0))
      throw mismatch("parameter " + all[k]->name + " instead of " + recorded[k]->words.at(0));
    set(*all[k], recorded[k]->as_tensor(1).values);
  }
}

void set_parameter(ParameterStorage &p, const std::vector<float> &values) { p.set_value(values); }

void set_table(LookupParameterStorage &p, const std::vector<float> &values) {
  const size_t row = p.dim.size();
  for (size_t k = 0; k * row < values.size(); k++)
    p.initialize(unsigned(k), std::vector<float>(values.begin() + std::ptrdiff_t(k * row),
                                                 values.begin() + std::ptrdiff_t((k + 1) * row)));
}

// What a call left behind. Lists that the builder does not have, or the call does not make, are
// empty.
struct step {
  Expression output, back;
  int state = 0;
  std::vector<Expression> h, s, c, final_h, final_s;
};

void compare_all(const std::string &what, const std::vector<Expression> &got,
                 const std::vector<const line *> &wanted) {
  if (got.size() != wanted.size())
    throw mismatch(what + ": " + std::to_string(got.size()) + " tensors instead of " +
                   std::to_string(wanted.size()));
  for (size_t k = 0; k < got.size(); k++) {
    const tensor t = wanted[k]->as_tensor();
    if (got[k].dim() != t.dim)
      throw mismatch(what + ": another dim");
    compare(what + " " + std::to_string(k), as_vector(got[k].value()), t.values, usual);
  }
}

void compare_gradients(const std::string &what, const std::vector<Expression> &nodes,
                       const std::vector<const line *> &wanted) {
  for (const line *l : wanted)
    compare(what + " " + std::to_string(l->integer(0)),
            as_vector(nodes.at(size_t(l->integer(0))).gradient()), l->numbers(1), usual);
}

std::vector<Expression> inputs(ComputationGraph &cg, const std::vector<const line *> &lines) {
  std::vector<Expression> made;
  for (const line *l : lines) {
    const tensor t = l->as_tensor();
    made.push_back(input(cg, t.dim, t.values));
  }
  return made;
}

// Does one recorded call.
class driver {
public:
  driver(RNNBuilder &builder, const std::vector<Expression> &x,
         const std::vector<Expression> &extra)
      : b(builder), x_(x), extra_(extra) {}

  std::vector<Expression> extras(const line &l, size_t first) const {
    std::vector<Expression> some;
    for (unsigned k : l.naturals(first))
      some.push_back(extra_.at(k));
    return some;
  }

  step run(const line &l) {
    const std::string op = l.words.at(0);
    if (op == "add_input_tree")
      return tree(l);
    const int at = l.integer(1), prev = l.integer(2);
    step s;
    if (op == "add_auxiliary_input") { // state and back are not DyNet's to compare
      SimpleRNNBuilder &rnn = dynamic_cast<SimpleRNNBuilder &>(b);
      s.output = rnn.add_auxiliary_input(x_.at(size_t(at)), extras(l, 3).at(0));
      return s;
    }
    if (op == "add_input")
      s.output = b.add_input(x_.at(size_t(at)));
    else if (op == "add_input_prev")
      s.output = b.add_input(RNNPointer(prev), x_.at(size_t(at)));
    else if (op == "set_h")
      s.output = b.set_h(RNNPointer(prev), extras(l, 3));
    else if (op == "set_s")
      s.output = b.set_s(RNNPointer(prev), extras(l, 3));
    else if (op == "rewind_one_step")
      b.rewind_one_step();
    else
      throw not_implemented();
    s.back = b.back();
    s.state = b.state();
    s.h = b.get_h(b.state());
    s.s = b.get_s(b.state());
    s.final_h = b.final_h();
    s.final_s = b.final_s();
    return s;
  }

private:
  step tree(const line &l) {
    std::vector<int> children;
    for (unsigned child : l.naturals(3))
      children.push_back(int(child));
    step s;
    const int id = l.integer(2);
    s.output =
        dynamic_cast<TreeLSTMBuilder &>(b).add_input(id, children, x_.at(size_t(l.integer(1))));
    if (const NaryTreeLSTMBuilder *nary = dynamic_cast<NaryTreeLSTMBuilder *>(&b)) {
      s.h = nary->h.at(size_t(id));
      s.c = nary->c.at(size_t(id));
    }
    return s;
  }

  RNNBuilder &b;
  const std::vector<Expression> &x_, &extra_;
};

// Compares a step with the lines that follow its "step".
void compare_step(size_t n, const step &s, const record &after) {
  const std::string at = "step " + std::to_string(n) + ": ";
  if (after.find("state") && s.state != after.at("state").integer(0))
    throw mismatch(at + "state " + std::to_string(s.state));
  if (after.find("output")) { // rewind_one_step makes nothing
    compare_all(at + "output", {s.output}, after.all("output"));
    compare_all(at + "h", s.h, after.all("h"));
    compare_all(at + "s", s.s, after.all("s"));
    compare_all(at + "c", s.c, after.all("c"));
  }
  if (after.find("back"))
    compare_all(at + "back", {s.back}, after.all("back"));
  compare_all(at + "final_h", s.final_h, after.all("final_h"));
  compare_all(at + "final_s", s.final_s, after.all("final_s"));
}

} // namespace

void run_builder(const record &r) {
  ParameterCollection m;
  const std::unique_ptr<RNNBuilder> b = make_builder(r, m);
  set_values(m.parameters_list(), r.all("param"), set_parameter);
  set_values(m.lookup_parameters_list(), r.all("table"), set_table);

  ComputationGraph cg;
  vpps::accelerate(cg);
  const std::vector<Expression> x = inputs(cg, r.all("x")), extra = inputs(cg, r.all("extra"));
  driver calls(*b, x, extra);
  b->new_graph(cg);
  b->start_new_sequence(calls.extras(r.at("initial"), 0));
  std::vector<step> steps;
  for (const line *l : r.all("step"))
    steps.push_back(calls.run(*l));

  size_t n = 0;
  record after;
  for (const line &l : r.lines) {
    if (l.key == "step" || l.key == "cotangent") {
      if (n > 0)
        compare_step(n - 1, steps[n - 1], after);
      after = record();
      n++;
    } else {
      after.lines.push_back(l);
    }
  }

  const Expression last = steps.back().output;
  const Expression seed = input(cg, last.dim(), r.at("cotangent").numbers());
  cg.backward(sum_batches(dot_product(last, seed)), true);
  for (const line *l : r.all("param_grad"))
    compare("gradient of parameter " + std::to_string(l->integer(0)),
            as_vector(m.parameters_list().at(size_t(l->integer(0)))->g), l->numbers(1), usual);
  for (const line *l : r.all("table_grad"))
    compare("gradient of table " + std::to_string(l->integer(0)),
            as_vector(m.lookup_parameters_list().at(size_t(l->integer(0)))->all_grads),
            l->numbers(1), usual);
  compare_gradients("gradient of input", x, r.all("input_grad"));
  compare_gradients("gradient of extra", extra, r.all("extra_grad"));
}
