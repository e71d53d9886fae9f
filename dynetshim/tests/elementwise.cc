// vpps::elementwise: values and gradients against built-in functions and differences, shapes, and
// formulas with faults.
#include <dynet/grad-check.h>
#include <vpps/elementwise.hpp>
#include <vpps/vpps.hpp>

#include <clocale>
#include <functional>

#include "check.h"

using namespace dynet;
using vpps::elementwise;

namespace {

const std::vector<float> three = {.5f, 1.25f, 2.f}, signs = {-1.5f, .25f, 3.f};

bool near(const std::vector<float> &a, const std::vector<float> &b) {
  if (a.size() != b.size())
    return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= 1e-5f * (1 + std::abs(b[i]))))
      return false;
  return true;
}

// What a formula of x gives, element by element, beside what C gives.
void compare(const std::string &formula, const std::vector<float> &x,
             const std::function<double(double)> &f) {
  ParameterCollection m;
  Parameter p = m.add_parameters({3}, ParameterInitFromVector(x));
  ComputationGraph cg;
  Expression y = elementwise("f", formula)(parameter(cg, p));
  std::vector<float> want, slope;
  for (float v : x) {
    want.push_back(static_cast<float>(f(v)));
    slope.push_back(static_cast<float>((f(v + 1e-4) - f(v - 1e-4)) / 2e-4));
  }
  if (!near(as_vector(y.value()), want))
    tests::fail(__FILE__, __LINE__, "the values of " + formula);
  cg.backward(sum_elems(y));
  std::vector<float> got = as_vector(p.get_storage().g);
  for (size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - slope[i]) < 1e-3f * (1 + std::abs(slope[i]))))
      tests::fail(__FILE__, __LINE__, "the gradient of " + formula);
}

} // namespace

TEST(formulas_of_one_argument) {
  compare("x / (1 + exp(-x))", signs, [](double x) { return x / (1 + std::exp(-x)); });
  compare("x", signs, [](double x) { return x; });
  compare("+ -x", signs, [](double x) { return -x; });
  compare("2 * 3 - x", signs, [](double x) { return 6 - x; });
  compare("x - 2 - 3", signs, [](double x) { return x - 5; });
  compare("x-2*-3", signs, [](double x) { return x + 6; });
  compare("2/x/4", signs, [](double x) { return .5 / x; });
  compare("8/(2/x)", signs, [](double x) { return 4 * x; });
  compare("-(x + 1) * (x - 1)", signs, [](double x) { return 1 - x * x; });
  compare("1.5e-1 * x + .5", signs, [](double x) { return .15 * x + .5; });
  compare("pow(x, 2) + pow(x, 3) + pow(x, -1)", signs,
          [](double x) { return x * x + x * x * x + 1 / x; });
  compare("pow(x, .5) + pow(x, 1.5)", three,
          [](double x) { return std::sqrt(x) + std::pow(x, 1.5); });
  compare("pow(2, x) + pow(x, x)", three, [](double x) { return std::exp2(x) + std::pow(x, x); });
  compare("min(x, 1) + max(x, 1) * max(0, x)", signs,
          [](double x) { return std::min(x, 1.) + std::max(x, 1.) * std::max(0., x); });
  compare("min(1, x) * min(2, 3)", signs, [](double x) { return 2 * std::min(1., x); });
  compare("exp(x * log(2))", signs, [](double x) { return std::exp2(x); });
  compare("abs(x) + relu(x) + rectify(x)", signs,
          [](double x) { return std::abs(x) + 2 * std::max(0., x); });
  compare("sigmoid(x) * logistic(x) + log_sigmoid(x)", signs, [](double x) {
    const double s = 1 / (1 + std::exp(-x));
    return s * s + std::log(s);
  });
  compare("tanh(x) + erf(x) + silu(x)", signs,
          [](double x) { return std::tanh(x) + std::erf(x) + x / (1 + std::exp(-x)); });
  compare("sin(x) + cos(x) + atan(x) + sinh(x) + cosh(x) + asinh(x)", signs, [](double x) {
    return std::sin(x) + std::cos(x) + std::atan(x) + std::sinh(x) + std::cosh(x) + std::asinh(x);
  });
  compare("asin(x/9) + acos(x/9) + atanh(x/9) + tan(x/9) + acosh(x + 4)", signs, [](double x) {
    return std::asin(x / 9) + std::acos(x / 9) + std::atanh(x / 9) + std::tan(x / 9) +
           std::acosh(x + 4);
  });
  compare("log(x) + sqrt(x) + square(x) + cube(x) + lgamma(x)", three,
          [](double x) { return std::log(x) + std::sqrt(x) + x * x + x * x * x + std::lgamma(x); });
  compare("elu(x) + softsign(x)", signs,
          [](double x) { return (x > 0 ? x : std::exp(x) - 1) + x / (1 + std::abs(x)); });
  compare("selu(x)", signs, [](double x) {
    return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * (std::exp(x) - 1));
  });
  std::string deep = "x";
  for (int i = 0; i < 150; ++i)
    deep.insert(0, "(").append(")");
  compare(deep, signs, [](double x) { return x; });
}

TEST(a_formula_is_what_built_in_functions_are) {
  ParameterCollection m;
  Parameter p = m.add_parameters({4, 3});
  ComputationGraph cg;
  Expression x = parameter(cg, p);
  const size_t before = cg.nodes.size();
  Expression a = elementwise("swish", "x / (1 + exp(-x))")(x);
  EQUAL(cg.nodes.size() - before, 4u); // a negation, exp, a sum and a quotient
  CHECK(near(as_vector(a.value()), as_vector(silu(x).value())));
}

TEST(several_arguments_of_several_shapes) {
  ParameterCollection m;
  Parameter p = m.add_parameters({3}, ParameterInitFromVector(three));
  Parameter q = m.add_parameters({1}, ParameterInitConst(2));
  LookupParameter l = m.add_lookup_parameters(4, {3}, ParameterInitUniform(1));
  ComputationGraph cg;
  Expression x = parameter(cg, p), s = parameter(cg, q);
  Expression batch = exp(lookup(cg, l, std::vector<unsigned>{0, 3, 2}));
  elementwise f("f", "x * y - y / x + pow(x, y) + min(x, y) * max(x, y) * z");
  EQUAL(f.arguments(), 3u);
  std::vector<float> want;
  want.reserve(three.size());
  for (float v : three)
    want.push_back(v * 2 - 2 / v + v * v + v * 2 * v);
  CHECK(near(as_vector(f(x, s, x).value()), want));
  EQUAL(f(x, s, batch).dim(), "{3X3}");
  // All orders of shapes: the value is that of the arguments repeated to one shape.
  const std::vector<Expression> shapes = {x, s, batch};
  Expression loss = input(cg, 0.f);
  for (const Expression &a : shapes)
    for (const Expression &b : shapes)
      for (const Expression &c : shapes) {
        Expression zero = (x + s + batch) * 0.f;
        Expression y = f(a, b, c);
        CHECK(near(as_vector((y + zero).value()),
                   as_vector(f(a + zero, b + zero, c + zero).value())));
        loss = loss + sum_batches(sum_elems(y + zero));
      }
  CHECK(check_grad(m, loss, 0));
  CHECK(f({x, s, x}).dim() == x.dim());
}

// {2} and {2,1} are one shape.
TEST(shapes_with_axes_of_1_at_the_end) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2, 1}, ParameterInitFromVector({1.75f, 2.5f}));
  ComputationGraph cg;
  Expression x = parameter(cg, p), s = input(cg, {1, 1}, {2.25f});
  Expression batch = input(cg, Dim({2}, 2), {1, 2, 3, 4});
  Expression loss = input(cg, 0.f);
  for (const char *formula : {"x+y", "x-y", "x*y", "x/y", "pow(x, y)", "min(x, y)", "max(x, y)"}) {
    const elementwise f("f", formula);
    for (const auto &xy : {std::make_pair(x, batch), std::make_pair(s, batch)}) {
      Expression one = reshape(xy.first, {xy.first.dim()[0]}), zero = one * 0.f + batch * 0.f;
      Expression ab = f(xy.first, batch), ba = f(batch, xy.first);
      CHECK(near(as_vector(ab.value()), as_vector(f(one + zero, batch).value())));
      CHECK(near(as_vector(ba.value()), as_vector(f(batch, one + zero).value())));
      loss = loss + sum_batches(sum_elems(ab)) + sum_batches(sum_elems(ba));
    }
  }
  CHECK(check_grad(m, loss, 0));
}

TEST(a_formula_trains) {
  ParameterCollection m;
  Parameter w = m.add_parameters({1, 3}, ParameterInitConst(.1f));
  Parameter b = m.add_parameters({1}, ParameterInitConst(0));
  SimpleSGDTrainer t(m, .02f);
  vpps::handle hndl(m, t);
  elementwise swish("swish", "x / (1 + exp(-x))");
  float first = 0, last = 0;
  for (int i = 0; i < 200; ++i) {
    ComputationGraph cg;
    Expression h =
        swish(affine_transform({parameter(cg, b), parameter(cg, w), input(cg, {3}, three)}));
    hndl.fb(m, cg, squared_distance(h, input(cg, 1.5f)));
    last = hndl.sync_get_latest_loss();
    first = i ? first : last;
  }
  CHECK(last < 1e-4f && first > last);
}

TEST(formulas_with_faults) {
  const auto fails = [](const char *formula, const std::string &words) {
    THROWS(std::invalid_argument, words, elementwise("f", formula));
  };
  fails("", "elementwise f, column 1 of \"\": a number, an argument, a function or '(' is missing");
  fails("x +", "column 4 of \"x +\": a number");
  fails("x x", "column 3 of \"x x\": an operator is missing before 'x'");
  fails("(x", "column 3 of \"(x\": ')' is missing");
  fails("x)", "column 2 of \"x)\": an operator is missing before ')'");
  fails("x ^ 2", "column 3 of \"x ^ 2\": an operator is missing before '^'");
  fails("2 + swish(x)", "column 5 of \"2 + swish(x)\": swish is neither an argument");
  fails("w", "these are abs acos");
  fails("exp", "column 4 of \"exp\": '(' is missing");
  fails("exp(x, x)", "column 6 of \"exp(x, x)\": ')' is missing");
  fails("pow(x)", "column 6 of \"pow(x)\": ',' is missing");
  fails("pow(-2, x)", "column 1 of \"pow(-2, x)\": the base of pow must be above 0");
  fails("3", "it has no argument: the first is x");
  fails("log(2)", "it has no argument: the first is x");
  fails("y", "its first argument must be x");
  fails("x + z", "it uses z, but not y");
  fails("x + .", "column 5 of \"x + .\": this is not a number");
  fails("\xff", "column 1");
  THROWS(std::invalid_argument, "column 2 of", elementwise("f", std::string("x\0+", 3)));
  fails((std::string(100000, '(') + "x").c_str(), "nested more than 200 times");
  fails((std::string(100000, '-') + "x").c_str(), "nested more than 200 times");
}

TEST(calls_with_faults) {
  ComputationGraph cg;
  Expression x = input(cg, {3}, three), y = input(cg, {2}, {1, 2});
  Expression a = input(cg, Dim({3}, 2), {1, 2, 3, 4, 5, 6});
  Expression b = concatenate_to_batch({x, x, x});
  const elementwise one("one", "exp(x)"), two("two", "exp(x) * y");
  const size_t nodes = cg.nodes.size();
  THROWS(std::invalid_argument, "elementwise one takes 1 argument, not 2", one(x, x));
  THROWS(std::invalid_argument, "elementwise two takes 2 arguments, not 1", two(x));
  THROWS(std::invalid_argument, "takes 2 arguments, not 0", two(std::vector<Expression>()));
  THROWS(std::invalid_argument, "elementwise two: the shapes {3} and {2} do not fit", two(x, y));
  THROWS(std::invalid_argument, "the shapes {3X2} and {3X3} do not fit", two(a, b));
  THROWS(std::invalid_argument, "elementwise one: argument 1 is an empty Expression",
         one(Expression()));
  THROWS(std::invalid_argument, "elementwise two: argument 2 is an empty Expression",
         two(x, Expression()));
  EQUAL(cg.nodes.size(), nodes);
}

TEST(numbers_have_a_point_in_every_locale) {
  if (std::setlocale(LC_ALL, "de_DE.UTF-8") == nullptr)
    std::setlocale(LC_ALL, "");
  compare("x * 1.5", signs, [](double x) { return 1.5 * x; });
  std::setlocale(LC_ALL, "C");
}

int main(int argc, char **argv) {
  initialize(argc, argv);
  return tests::run_tests();
}
