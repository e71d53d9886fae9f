// One call of an expression function: value, gradients, or that it is refused.
//
// The loss is the sum over all elements and batches of cotangent*value, made with
// dot_product and sum_batches, or, where some elements are infinite, over the others. The plain
// arguments are given twice: as input nodes, whose gradients backward(full) forms, as when the
// cases were recorded; and, where they have no batch, as parameters, because a product with a
// parameter is the one that runs where the weights live.
#include <dynet/dynet.h>
#include <dynet/model.h>
#include <dynet/param-init.h>
#include <vpps/vpps.hpp>

#include <cmath>
#include <sstream>

#include "cases.h"
#include "compare.h"
#include "functions.h"

using namespace dynet;

namespace {

struct argument {
  bool is_node = false, is_parameter = false;
  Expression node;
  Parameter parameter;
};

Dim row_dim(const Dim &table) {
  std::vector<long> d(table.d, table.d + table.nd - 1);
  return Dim(d);
}

// Makes the arguments and gives them to the call.
std::vector<argument> make_arguments(call &c, ParameterCollection &m, arguments as) {
  std::vector<argument> made;
  for (const line *l : c.r.all("arg")) {
    const std::string kind = l->words.at(0);
    const tensor t = l->as_tensor(1);
    argument a;
    if (kind == "lookup_parameter") {
      const unsigned rows = t.dim.d[t.dim.nd - 1];
      const Dim row = row_dim(t.dim);
      c.table = m.add_lookup_parameters(rows, row);
      for (unsigned k = 0; k < rows; k++)
        c.table.initialize(k, std::vector<float>(t.values.begin() + k * row.size(),
                                                 t.values.begin() + (k + 1) * row.size()));
      c.takes_table = true;
    } else {
      const bool taken_as_such = c.r.fn == "parameter" || c.r.fn == "const_parameter";
      a.is_parameter =
          kind == "parameter" || (as == arguments::parameters && t.dim.bd == 1 && t.dim.nd > 0);
      a.is_node = !taken_as_such;
      if (a.is_parameter)
        a.parameter = m.add_parameters(t.dim, ParameterInitFromVector(t.values));
      if (taken_as_such)
        c.parameter = a.parameter;
      else if (a.is_parameter)
        a.node = parameter(c.cg, a.parameter);
      else
        a.node = input(c.cg, t.dim, t.values);
      if (a.is_node)
        c.x.push_back(a.node);
    }
    made.push_back(a);
  }
  return made;
}

Expression loss_of(const Expression &value, const std::vector<float> &cotangent) {
  return sum_batches(dot_product(value, input(*value.pg, value.dim(), cotangent)));
}

// From an infinite loss there is no backward.
Expression loss_of(const Expression &value, const std::vector<float> &cotangent,
                   const std::vector<float> &values) {
  bool finite = true;
  for (float v : values)
    finite = finite && std::isfinite(v);
  if (finite)
    return loss_of(value, cotangent);
  const Expression all = reshape(value, {unsigned(values.size())});
  std::vector<Expression> terms;
  for (unsigned i = 0; i < values.size(); i++)
    if (std::isfinite(values[i]))
      terms.push_back(pick(all, i) * cotangent[i]);
  return sum(terms);
}

std::string text(const Dim &d) {
  std::ostringstream s;
  s << d;
  return s.str();
}

// Whether the call is refused, at whatever moment.
bool is_refused(function f, call &c) {
  try {
    const Expression e = f(c);
    c.settle();
    c.cg.forward(e);
    c.cg.backward(loss_of(e, std::vector<float>(e.dim().size(), 1)), true);
  } catch (const std::exception &e) {
    if (std::string(e.what()).find("internal error") != std::string::npos)
      throw; // a defect, no refusal
    return true;
  }
  return false;
}

} // namespace

void run_operation(const record &r, arguments as) {
  const function f = find_function(r);
  if (!f)
    throw not_implemented();
  ParameterCollection m;
  ComputationGraph cg;
  vpps::accelerate(cg);
  call c(r, cg);
  const std::vector<argument> args = make_arguments(c, m, as);
  if (const line *error = r.find("error")) {
    const bool limitation = error->integer(1) != 0; // accepting it is no error
    if (!is_refused(f, c) && !limitation)
      throw mismatch("was accepted, but must be refused");
    return;
  }

  const tensor value = r.at("value").as_tensor();
  const std::vector<float> cotangent = r.at("cotangent").numbers();
  const Expression e = f(c);
  if (e.dim() != value.dim)
    throw mismatch("dim is " + text(e.dim()) + " instead of " + text(value.dim));
  c.settle();
  compare("value", as_vector(cg.forward(e)), value.values, usual);
  const std::vector<const line *> grads = r.all("grad");
  if (grads.empty())
    return;

  cg.backward(loss_of(e, cotangent, value.values), true);
  // Cases whose exact gradient is 0.
  const bool saturated = r.name.find("/saturated") != std::string::npos ||
                         r.name == "layer_norm/len2" || r.name == "weight_norm/len1";
  for (const line *l : grads) {
    const size_t k = size_t(l->integer(0));
    std::vector<float> got;
    if (args.at(k).is_parameter)
      got = as_vector(args[k].parameter.get_storage().g);
    else if (args[k].is_node)
      got = as_vector(args[k].node.gradient());
    else
      got = as_vector(c.table.get_storage().all_grads);
    compare("gradient of argument " + std::to_string(k), got, l->numbers(1),
            saturated ? rounding_only : usual);
  }
}
