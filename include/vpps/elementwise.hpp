/// \file
/// vpps::elementwise: an element-wise function of a program's own, written as a formula. It records
/// built-in operations, so it runs on every device and has its gradient from them. The engine
/// evaluates such a run of operations in one instruction, element by element. It works with the
/// bundled headers and with an installed DyNet.
#ifndef VPPS_ELEMENTWISE_HPP
#define VPPS_ELEMENTWISE_HPP

#include <dynet/dynet.h>
#include <dynet/expr.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "c_numbers.hpp"

namespace vpps {

/// \cond
namespace formula {

typedef dynet::Expression expression;
typedef std::vector<expression> list;

// A step takes what it works on from the end of the stack and leaves its result there. number: a
// constant of the formula, or which argument.
struct step {
  void (*run)(list &stack, const list &arguments, float number);
  float number;
};

inline expression filled(const expression &like, float value) {
  return dynet::constant(*like.pg, like.dim(), value);
}

// Whether a result of both has x's shape.
inline bool covers(const expression &x, const expression &y) {
  const dynet::Dim a = x.dim(), b = y.dim();
  for (unsigned i = 0; i < b.nd; ++i)
    if (a[i] < b[i])
      return false;
  return a.bd >= b.bd;
}

inline expression divide(const expression &x, const expression &y) {
  if (covers(x, y))
    return dynet::cdiv(x, y);
  return dynet::cmult(x, dynet::cdiv(filled(y, 1), y));
}

inline expression power(const expression &x, const expression &y) {
  if (y.dim().size() == 1)
    return dynet::pow(x, y);
  return dynet::exp(dynet::cmult(y, dynet::log(x)));
}

inline expression power_of(const expression &x, float c) {
  if (c == 2)
    return dynet::square(x);
  if (c == 3)
    return dynet::cube(x);
  if (c == .5f)
    return dynet::sqrt(x);
  if (c == -1)
    return dynet::cdiv(filled(x, 1), x);
  return dynet::pow(x, dynet::constant(*x.pg, {1}, c));
}

// x in the shape of a result of both: also with as many axes, of which the last may be 1.
inline expression widened(const expression &x, const expression &y) {
  const expression wide = covers(x, y) ? x : x + filled(y, 0);
  dynet::Dim d = wide.dim();
  const unsigned axes = std::max(x.dim().nd, y.dim().nd);
  if (d.nd == axes)
    return wide;
  d.resize(axes);
  for (unsigned i = wide.dim().nd; i < axes; ++i)
    d.set(i, 1);
  return dynet::reshape(wide, d);
}

#define VPPS_ONE(f) [](list &s, const list &, float) { s.back() = dynet::f(s.back()); }
#define VPPS_NUMBER(result)                                                                        \
  [](list &s, const list &, float c) {                                                             \
    const expression x = s.back();                                                                 \
    s.back() = result;                                                                             \
  }
#define VPPS_TWO(result)                                                                           \
  [](list &s, const list &, float) {                                                               \
    const expression y = s.back();                                                                 \
    s.pop_back();                                                                                  \
    const expression x = s.back();                                                                 \
    s.back() = result;                                                                             \
  }

typedef void (*run)(list &, const list &, float);

struct unary {
  const char *name;
  run of;
};
// Functions of one argument.
inline const std::vector<unary> &unaries() {
  static const std::vector<unary> all = {
      {"abs", VPPS_ONE(abs)},           {"acos", VPPS_ONE(acos)},
      {"acosh", VPPS_ONE(acosh)},       {"asin", VPPS_ONE(asin)},
      {"asinh", VPPS_ONE(asinh)},       {"atan", VPPS_ONE(atan)},
      {"atanh", VPPS_ONE(atanh)},       {"cos", VPPS_ONE(cos)},
      {"cosh", VPPS_ONE(cosh)},         {"cube", VPPS_ONE(cube)},
      {"elu", VPPS_ONE(elu)},           {"erf", VPPS_ONE(erf)},
      {"exp", VPPS_ONE(exp)},           {"lgamma", VPPS_ONE(lgamma)},
      {"log", VPPS_ONE(log)},           {"log_sigmoid", VPPS_ONE(log_sigmoid)},
      {"logistic", VPPS_ONE(logistic)}, {"rectify", VPPS_ONE(rectify)},
      {"relu", VPPS_ONE(rectify)},      {"selu", VPPS_ONE(selu)},
      {"sigmoid", VPPS_ONE(logistic)},  {"silu", VPPS_ONE(silu)},
      {"sin", VPPS_ONE(sin)},           {"sinh", VPPS_ONE(sinh)},
      {"softsign", VPPS_ONE(softsign)}, {"sqrt", VPPS_ONE(sqrt)},
      {"square", VPPS_ONE(square)},     {"tan", VPPS_ONE(tan)},
      {"tanh", VPPS_ONE(tanh)},
  };
  return all;
}

struct binary {
  std::string name; // one character: an operator
  double (*fold)(double, double);
  run left, right, both; // c op x, x op c, x op y
};
// Operators, and functions of two arguments.
inline const std::vector<binary> &binaries() {
  static const std::vector<binary> all = {
      {"+", [](double a, double b) { return a + b; }, VPPS_NUMBER(c + x), VPPS_NUMBER(x + c),
       VPPS_TWO(x + y)},
      {"-", [](double a, double b) { return a - b; }, VPPS_NUMBER(c - x), VPPS_NUMBER(x + -c),
       VPPS_TWO(x - y)},
      {"*", [](double a, double b) { return a * b; }, VPPS_NUMBER(x * c), VPPS_NUMBER(x * c),
       VPPS_TWO(dynet::cmult(x, y))},
      {"/", [](double a, double b) { return a / b; }, VPPS_NUMBER(dynet::cdiv(filled(x, c), x)),
       VPPS_NUMBER(x * (1 / c)), VPPS_TWO(divide(x, y))},
      {"pow", [](double a, double b) { return std::pow(a, b); },
       VPPS_NUMBER(dynet::exp(x * std::log(c))), VPPS_NUMBER(power_of(x, c)),
       VPPS_TWO(power(x, y))},
      {"min", [](double a, double b) { return a < b ? a : b; },
       VPPS_NUMBER(dynet::min(filled(x, c), x)), VPPS_NUMBER(dynet::min(x, filled(x, c))),
       VPPS_TWO(dynet::min(widened(x, y), widened(y, x)))},
      {"max", [](double a, double b) { return a > b ? a : b; },
       VPPS_NUMBER(dynet::max(filled(x, c), x)), VPPS_NUMBER(dynet::max(x, filled(x, c))),
       VPPS_TWO(dynet::max(widened(x, y), widened(y, x)))},
  };
  return all;
}
#undef VPPS_TWO
#undef VPPS_NUMBER
#undef VPPS_ONE

// Reads a formula by recursive descent and writes its steps. Numbers become steps where they meet
// an expression.
class parser {
public:
  parser(const std::string &name, const std::string &text)
      : steps(), used(0), name_(name), text_(text), at_(0), depth_(0) {}

  void parse() {
    sum();
    if (peek() != 0 || at_ < text_.size())
      fail(at_, std::string("an operator is missing before '") + peek() + "'");
    if (used == 0)
      fail(0, "it has no argument: the first is x");
    if (used & (used + 1)) // arguments are x, y, z, from x on
      fail(0, used & 1 ? "it uses z, but not y" : "its first argument must be x");
  }

  std::vector<step> steps;
  unsigned used; // bit k: argument k

private:
  struct value {
    bool number; // else what is last on the stack
    double c;
  };

  [[noreturn]] void fail(size_t at, const std::string &why) const {
    throw std::invalid_argument("elementwise " + name_ + ", column " + std::to_string(at + 1) +
                                " of \"" + text_ + "\": " + why);
  }
  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])))
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void expect(char c) {
    if (peek() != c)
      fail(at_, std::string("'") + c + "' is missing");
    ++at_;
  }
  value emit(run f, double number) {
    const step s = {f, static_cast<float>(number)};
    steps.push_back(s);
    return value{false, 0};
  }
  value combine(const std::string &operation, const value &a, const value &b, size_t at) {
    for (const binary &o : binaries()) {
      if (o.name != operation)
        continue;
      if (a.number && b.number)
        return value{true, o.fold(a.c, b.c)};
      if (operation == "pow" && a.number && !(a.c > 0))
        fail(at, "the base of pow must be above 0 if it is a number");
      return a.number ? emit(o.left, a.c) : b.number ? emit(o.right, b.c) : emit(o.both, 0);
    }
    fail(at, "unknown operator " + operation);
  }

  value sum() {
    value a = product();
    for (char c = peek(); c == '+' || c == '-'; c = peek()) {
      const size_t at = at_++;
      const value b = product();
      a = combine(std::string(1, c), a, b, at);
    }
    return a;
  }
  value product() {
    value a = factor();
    for (char c = peek(); c == '*' || c == '/'; c = peek()) {
      const size_t at = at_++;
      const value b = factor();
      a = combine(std::string(1, c), a, b, at);
    }
    return a;
  }
  // Every way into something nested passes here.
  value factor() {
    if (++depth_ > 200)
      fail(at_, "it is nested more than 200 times");
    value a = value{true, 0};
    const char c = peek();
    if (c == '-' || c == '+') {
      ++at_;
      a = factor();
      if (c == '-')
        a = a.number ? value{true, -a.c}
                     : emit([](list &l, const list &, float) { l.back() = -l.back(); }, 0);
    } else if (c == '(') {
      ++at_;
      a = sum();
      expect(')');
    } else if (std::isdigit(static_cast<unsigned char>(c)) || c == '.') {
      a.c = number();
    } else if (std::isalpha(static_cast<unsigned char>(c))) {
      a = named();
    } else {
      fail(at_, "a number, an argument, a function or '(' is missing");
    }
    --depth_;
    return a;
  }
  double number() {
    const c_numbers with_a_point;
    char *end = nullptr;
    const double c = std::strtod(text_.c_str() + at_, &end);
    if (end == text_.c_str() + at_)
      fail(at_, "this is not a number");
    at_ = static_cast<size_t>(end - text_.c_str());
    return c;
  }
  value named() {
    const size_t at = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    const std::string word = text_.substr(at, at_ - at);
    if (word == "x" || word == "y" || word == "z") {
      used |= 1u << (word[0] - 'x');
      return emit([](list &s, const list &xs, float k) { s.push_back(xs[static_cast<size_t>(k)]); },
                  word[0] - 'x');
    }
    return call(word, at);
  }
  value call(const std::string &word, size_t at) {
    for (const unary &f : unaries())
      if (word == f.name) {
        expect('(');
        materialise(sum());
        expect(')');
        return emit(f.of, 0);
      }
    for (const binary &f : binaries())
      if (word == f.name) {
        expect('(');
        const value a = sum();
        expect(',');
        const value b = sum();
        expect(')');
        return combine(word, a, b, at);
      }
    fail(at, word + " is neither an argument, which are x, y and z, nor a function: these are " +
                 functions());
  }
  // A function of a number is evaluated where all others are.
  void materialise(const value &a) {
    if (a.number)
      emit(
          [](list &s, const list &xs, float c) { s.push_back(dynet::constant(*xs[0].pg, {1}, c)); },
          a.c);
  }
  static std::string functions() {
    std::string all;
    for (const unary &f : unaries())
      all += std::string(f.name) + ' ';
    return all + "pow min max";
  }

  const std::string name_, text_;
  size_t at_;
  unsigned depth_;
};

} // namespace formula
/// \endcond

/// A function made from a formula, to be called with expressions:
/// `vpps::elementwise swish("swish", "x / (1 + exp(-x))"); h = swish(a);`
///
/// Arguments are x, or x and y, or x, y and z. There are numbers, + - * / and parentheses;
/// pow(a, b), min(a, b), max(a, b); and the functions of DyNet that go element by element: abs,
/// exp, log, log_sigmoid, sqrt, square, cube, tanh, sigmoid or logistic, relu or rectify, elu,
/// selu, silu, softsign, erf, lgamma, and sin to atanh. pow with an exponent that is no number or
/// scalar is exp(b * log(a)), which is NaN where a is below 0.
class elementwise {
public:
  /// Reads the formula. name is for error messages. A formula with a fault is
  /// std::invalid_argument, which names the column.
  elementwise(const std::string &name, const std::string &formula) : name_(name), arguments_(0) {
    formula::parser p(name, formula);
    p.parse();
    steps_ = p.steps;
    for (; p.used; p.used >>= 1)
      ++arguments_;
  }

  ///@{
  /// The function's value for each element. Along every axis and the batch the arguments have one
  /// size, or 1 and are repeated. Another number of arguments and other shapes are
  /// std::invalid_argument, and the graph is as before.
  dynet::Expression operator()(const std::vector<dynet::Expression> &arguments) const {
    check(arguments);
    std::vector<dynet::Expression> stack;
    for (const formula::step &s : steps_)
      s.run(stack, arguments, s.number);
    return stack.back();
  }
  template <class... More>
  dynet::Expression operator()(const dynet::Expression &x, const More &...more) const {
    return (*this)(std::vector<dynet::Expression>{x, more...});
  }
  ///@}

  /// How many arguments the formula has: 1 to 3.
  unsigned arguments() const { return arguments_; }

private:
  void check(const std::vector<dynet::Expression> &xs) const {
    if (xs.size() != arguments_)
      throw std::invalid_argument("elementwise " + name_ + " takes " + std::to_string(arguments_) +
                                  (arguments_ == 1 ? " argument, not " : " arguments, not ") +
                                  std::to_string(xs.size()));
    for (size_t k = 0; k < xs.size(); ++k)
      if (!xs[k].pg)
        throw std::invalid_argument("elementwise " + name_ + ": argument " + std::to_string(k + 1) +
                                    " is an empty Expression: it was never given a value");
    for (size_t k = 1; k < xs.size(); ++k)
      for (size_t j = 0; j < k; ++j)
        check(xs[j].dim(), xs[k].dim());
  }
  void check(const dynet::Dim &a, const dynet::Dim &b) const {
    bool fit = a.bd == b.bd || a.bd == 1 || b.bd == 1;
    for (unsigned i = 0; i < a.nd && i < b.nd; ++i)
      fit = fit && (a.d[i] == b.d[i] || a.d[i] == 1 || b.d[i] == 1);
    if (fit)
      return;
    std::ostringstream text;
    text << "elementwise " << name_ << ": the shapes " << a << " and " << b
         << " do not fit: along each axis and the batch they must be equal, or one of them 1";
    throw std::invalid_argument(text.str());
  }

  std::string name_;
  std::vector<formula::step> steps_;
  unsigned arguments_;
};

} // namespace vpps
#endif
