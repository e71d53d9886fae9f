// A recurrent builder driven through a recorded list of calls: states and outputs after
// each call, gradients of the last output.
#include <dynet/dynet.h>
#include <dynet/lstm.h>
#include <dynet/model.h>
#include <vpps/vpps.hpp>

#include <type_traits>

#include "cases.h"
#include "compare.h"
#include "functions.h"

using namespace dynet;

namespace {

static_assert(std::is_same<LSTMBuilder, VanillaLSTMBuilder>::value,
              "LSTMBuilder is another name of VanillaLSTMBuilder");

// The state after one call.
struct step {
  Expression output, back;
  int state;
  std::vector<Expression> h, s, final_h, final_s;
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

} // namespace

void run_builder(const record &r) {
  if (r.fn != "VanillaLSTMBuilder" || r.natural("ln_lstm"))
    throw not_implemented();
  ParameterCollection m;
  const unsigned layers = r.natural("layers");
  LSTMBuilder b(layers, r.natural("input_dim"), r.natural("hidden_dim"), m, false,
                r.number("forget_bias"));
  std::vector<Parameter> params;
  for (const std::vector<Parameter> &layer : b.params)
    params.insert(params.end(), layer.begin(), layer.end());
  const std::vector<const line *> recorded = r.all("param");
  if (params.size() != recorded.size())
    throw mismatch(std::to_string(params.size()) + " parameters");
  for (size_t k = 0; k < params.size(); k++) {
    if (params[k].get_fullname() != recorded[k]->words.at(0))
      throw mismatch("parameter " + params[k].get_fullname() + " instead of " +
                     recorded[k]->words.at(0));
    params[k].set_value(recorded[k]->as_tensor(1).values);
  }

  ComputationGraph cg;
  vpps::accelerate(cg);
  const std::vector<Expression> x = inputs(cg, r.all("x")), extra = inputs(cg, r.all("extra"));
  auto extras = [&](const line &l, size_t first) {
    std::vector<Expression> some;
    for (unsigned k : l.naturals(first))
      some.push_back(extra.at(k));
    return some;
  };
  b.new_graph(cg);
  b.start_new_sequence(extras(r.at("initial"), 0));
  std::vector<step> steps;
  for (const line *l : r.all("step")) {
    const std::string op = l->words.at(0);
    const int at = l->integer(1), prev = l->integer(2);
    step s;
    if (op == "add_input")
      s.output = b.add_input(x.at(size_t(at)));
    else if (op == "add_input_prev")
      s.output = b.add_input(RNNPointer(prev), x.at(size_t(at)));
    else if (op == "set_h")
      s.output = b.set_h(RNNPointer(prev), extras(*l, 3));
    else if (op == "set_s")
      s.output = b.set_s(RNNPointer(prev), extras(*l, 3));
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
    steps.push_back(s);
  }

  // The lines behind each "step" belong to it.
  size_t n = 0;
  record after;
  auto check = [&]() {
    if (n == 0)
      return;
    const step &s = steps[n - 1];
    const std::string at = "step " + std::to_string(n - 1) + ": ";
    if (s.state != after.at("state").integer(0))
      throw mismatch(at + "state " + std::to_string(s.state));
    if (after.find("output")) { // rewind_one_step makes nothing
      compare_all(at + "output", {s.output}, after.all("output"));
      compare_all(at + "h", s.h, after.all("h"));
      compare_all(at + "s", s.s, after.all("s"));
    }
    compare_all(at + "back", {s.back}, after.all("back"));
    compare_all(at + "final_h", s.final_h, after.all("final_h"));
    compare_all(at + "final_s", s.final_s, after.all("final_s"));
  };
  for (const line &l : r.lines) {
    if (l.key == "step" || l.key == "cotangent") {
      check();
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
            as_vector(params.at(size_t(l->integer(0))).get_storage().g), l->numbers(1), usual);
  compare_gradients("gradient of input", x, r.all("input_grad"));
  compare_gradients("gradient of extra", extra, r.all("extra_grad"));
}
