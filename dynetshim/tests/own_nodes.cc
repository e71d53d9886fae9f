// Nodes of a program's own classes: values, gradients and training are those of the same
// expressions made of built-in functions, and what goes wrong reaches the caller.
#include "check.h"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "dynet/dynet.h"
#include "dynet/expr.h"
#include "dynet/grad-check.h"
#include "dynet/nodes-def-macros.h"
#include "dynet/nodes-impl-macros.h"
#include "dynet/tensor-eigen.h"
#include "dynet/training.h"
#include "vpps/vpps.hpp"

using namespace dynet;

typedef std::vector<float> Floats;
typedef std::vector<const Tensor *> Tensors;
typedef std::vector<std::string> Texts;

namespace {

int forwards = 0, backwards = 0, alive = 0; // calls of Swish, and how many there are

// x * logistic(beta * x); keeps the logistic for the gradient.
struct Swish : public Node {
  explicit Swish(const std::initializer_list<VariableIndex> &a, float its_beta = 1)
      : Node(a), beta(its_beta) {
    ++alive;
  }
  ~Swish() { --alive; }
  Dim dim_forward(const std::vector<Dim> &xs) const override {
    DYNET_ARG_CHECK(xs.size() == 1, "Swish of " << xs.size() << " arguments");
    return xs[0];
  }
  std::string as_string(const Texts &names) const override { return "swish(" + names[0] + ")"; }
  size_t aux_storage_size() const override { return dim.size() * sizeof(float); }
  bool supports_multibatch() const override { return true; }
  void forward_impl(const Tensors &xs, Tensor &fx) const override {
    ++forwards;
    float *sigma = static_cast<float *>(aux_mem);
    for (size_t k = 0; k < fx.d.size(); ++k) {
      sigma[k] = 1 / (1 + std::exp(-beta * xs[0]->v[k]));
      fx.v[k] = xs[0]->v[k] * sigma[k];
    }
  }
  void backward_impl(const Tensors &, const Tensor &fx, const Tensor &dEdf, unsigned,
                     Tensor &dEdxi) const override {
    ++backwards;
    const float *sigma = static_cast<const float *>(aux_mem);
    for (size_t k = 0; k < fx.d.size(); ++k)
      dEdxi.v[k] += dEdf.v[k] * (sigma[k] + beta * fx.v[k] * (1 - sigma[k]));
  }
  float beta;
};

// x * y + x, batch element by batch element; an argument without a batch counts for all.
struct Mixed : public Node {
  template <class T> explicit Mixed(const T &a) : Node(a) {}
  Dim dim_forward(const std::vector<Dim> &xs) const override {
    if (xs.size() != 2 || xs[0].single_batch() != xs[1].single_batch())
      throw std::invalid_argument("Mixed needs two arguments of one shape");
    Dim d = xs[0];
    d.bd = std::max(d.bd, xs[1].bd);
    return d;
  }
  std::string as_string(const Texts &n) const override { return n[0] + " (1 + " + n[1] + ")"; }
  bool supports_multibatch() const override { return true; }
  void forward_impl(const Tensors &xs, Tensor &fx) const override {
    for (unsigned b = 0; b < fx.d.bd; ++b)
      for (unsigned k = 0; k < fx.d.batch_size(); ++k)
        fx.batch_ptr(b)[k] = xs[0]->batch_ptr(b)[k] * (1 + xs[1]->batch_ptr(b)[k]);
  }
  void backward_impl(const Tensors &xs, const Tensor &fx, const Tensor &dEdf, unsigned i,
                     Tensor &dEdxi) const override {
    for (unsigned b = 0; b < fx.d.bd; ++b)
      for (unsigned k = 0; k < fx.d.batch_size(); ++k)
        dEdxi.batch_ptr(b)[k] +=
            dEdf.batch_ptr(b)[k] * (i == 0 ? 1 + xs[1]->batch_ptr(b)[k] : xs[0]->batch_ptr(b)[k]);
  }
};

// What it does is asked for in a test.
struct Odd : public Node {
  enum Kind { Fine, ForwardThrows, BackwardThrows, NotFinite, Points };
  Odd(const std::initializer_list<VariableIndex> &a, const Kind &its_kind)
      : Node(a), kind(its_kind) {}
  Dim dim_forward(const std::vector<Dim> &xs) const override { return xs[0]; }
  std::string as_string(const Texts &n) const override { return "odd(" + n[0] + ")"; }
  void forward_impl(const Tensors &xs, Tensor &fx) const override {
    if (kind == ForwardThrows)
      throw std::domain_error("no value today");
    if (kind == Points)
      fx.v = xs[0]->v;
    else
      TensorTools::copy_elements(fx, *xs[0]);
  }
  void backward_impl(const Tensors &, const Tensor &, const Tensor &dEdf, unsigned,
                     Tensor &dEdxi) const override {
    if (kind == BackwardThrows)
      throw std::domain_error("no gradient today");
    TensorTools::accumulate(dEdxi, dEdf);
    if (kind == NotFinite)
      dEdxi.v[0] = std::numeric_limits<float>::infinity();
  }
  const Kind &kind;
};

Expression own(const Expression &x, float beta = 1) {
  return Expression(x.pg, x.pg->add_function<Swish>({x.i}, beta));
}
Expression own(const Expression &x, const Expression &y) {
  return Expression(x.pg, x.pg->add_function<Mixed>({x.i, y.i}));
}
Expression odd(const Expression &x, const Odd::Kind &kind) {
  return Expression(x.pg, x.pg->add_function<Odd>({x.i}, kind));
}
Expression swish(const Expression &x, float beta, bool owns) {
  return owns ? own(x, beta) : cmult(x, logistic(x * beta));
}
Expression mixed(const Expression &x, const Expression &y, bool owns) {
  return owns ? own(x, y) : cmult(x, y) + x;
}

void near(const Floats &a, const Floats &b) {
  EQUAL(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k)
    if (!(std::fabs(a[k] - b[k]) <= 1e-5f * (1 + std::fabs(b[k]))))
      tests::fail(__FILE__, __LINE__,
                  "element " + std::to_string(k) + ": " + std::to_string(a[k]) + ", not " +
                      std::to_string(b[k]));
}
Floats values(const Expression &e) { return as_vector(e.value()); }
Floats gradient(const Expression &e) { return as_vector(e.gradient()); }

// A model, the same for the same number.
struct Learner {
  ParameterCollection m;
  Parameter w, b, v;
  LookupParameter words;

  Learner() {
    w = m.add_parameters({4, 3}, ParameterInitFromVector(numbers(12, 1)));
    b = m.add_parameters({4}, ParameterInitFromVector(numbers(4, 2)));
    v = m.add_parameters({2, 4}, ParameterInitFromVector(numbers(8, 3)));
    words = m.add_lookup_parameters(5, {3});
    for (unsigned k = 0; k < 5; ++k)
      words.initialize(k, numbers(3, 4 + k));
  }
  static Floats numbers(unsigned n, unsigned seed) {
    Floats x;
    for (unsigned k = 0; k < n; ++k)
      x.push_back(std::sin(static_cast<float>(7 * k + seed)));
    return x;
  }
  Floats gradients() const {
    Floats all;
    for (Parameter p : {w, b, v})
      for (float x : p.p.unexposed()->read(VPPS_GRADIENT))
        all.push_back(x);
    for (float x : words.p.unexposed()->read(VPPS_GRADIENT))
      all.push_back(x);
    return all;
  }
  Floats parameters() const {
    Floats all;
    for (Parameter p : {w, b, v})
      for (float x : p.p.unexposed()->read(VPPS_VALUES))
        all.push_back(x);
    for (float x : words.p.unexposed()->read(VPPS_VALUES))
      all.push_back(x);
    return all;
  }
};

// A network over a minibatch: own nodes in a chain, used twice, with arguments that own nodes and
// parameters feed, and one that nothing trainable feeds.
struct Net {
  std::vector<Expression> all; // the expressions that both kinds have
  Expression loss;

  Net(ComputationGraph &cg, Learner &m, bool owns, unsigned step = 0) {
    const std::vector<unsigned> rows = {step % 5, (step + 2) % 5, (step + 2) % 5};
    Expression x = lookup(cg, m.words, rows), w = parameter(cg, m.w), b = parameter(cg, m.b);
    Expression h = tanh(affine_transform({b, w, x}));
    Expression s = swish(h, 1.5f, owns);
    Expression p = mixed(s, b, owns);                               // a batch and none
    Expression q = swish(mixed(p, s, owns), 1, owns);               // chains; s twice and more
    Expression k = swish(input(cg, {4}, {1, -1, 2, .5f}), 1, owns); // no gradient wanted
    Expression r = mixed(cmult(q + s, k), p, owns);
    Expression o = parameter(cg, m.v) * r;
    loss = sum_batches(squared_norm(o - input(cg, {2}, {1, -1})));
    all = {x, w, b, h, s, p, q, k, r, o, loss};
  }
};

} // namespace

TEST(a_program_is_told_once) {
  ComputationGraph cg;
  Expression x = input(cg, 1.f);
  const std::string text = tests::printed(std::cerr, [&] { own(x); });
  CHECK(text.find("node 1 (Swish)") != std::string::npos && text.find("slow") != std::string::npos);
  EQUAL(tests::printed(std::cerr, [&] { own(x, x); }), "");
}

TEST(values_and_gradients_are_those_of_built_in_functions) {
  for (bool full : {false, true}) {
    Learner m, n;
    std::vector<Floats> value, grad;
    for (bool owns : {false, true}) {
      ComputationGraph cg;
      Learner &model = owns ? n : m;
      Net net(cg, model, owns);
      cg.backward(net.loss, full);
      for (size_t k = 0; k < net.all.size(); ++k)
        if (owns) {
          near(values(net.all[k]), value[k]);
          near(gradient(net.all[k]), grad[k]);
        } else {
          value.push_back(values(net.all[k]));
          grad.push_back(gradient(net.all[k]));
        }
    }
    near(n.gradients(), m.gradients());
    CHECK(n.w.p.unexposed()->nonzero_grad);
  }
}

TEST(gradients_add_up_and_hold_until_the_graph_changes) {
  Learner m;
  ComputationGraph cg;
  Net net(cg, m, true);
  cg.backward(net.loss);
  const Floats once = m.gradients();
  cg.backward(net.loss);
  Floats twice = once;
  for (float &x : twice)
    x *= 2;
  near(m.gradients(), twice);
  // Values that are there, and nodes that are not evaluated, leave gradients readable.
  const Floats g = gradient(net.all[4]);
  values(net.all[3]);
  Expression more = own(net.loss);
  values(net.all[4]);
  near(gradient(net.all[4]), g);
  THROWS(std::runtime_error, "comes before", gradient(more));
  // The next node is evaluated with the number that it has.
  const float l = as_scalar(net.loss.value());
  near(values(more), {l / (1 + std::exp(-l))});
  cg.backward(more);
  CHECK(cg.nodes.size() == more.i + 1);
}

TEST(nodes_behind_the_loss_are_left_alone) {
  Learner m, n;
  for (bool before : {false, true}) {
    ComputationGraph cg;
    Net net(cg, before ? m : n, true);
    Expression r = random_normal(cg, {3}), behind = own(r), wrong;
    if (before)
      values(behind);
    else
      wrong = lookup(cg, n.words, 99u);
    const Floats drawn = before ? values(r) : Floats();
    cg.backward(net.loss);
    if (before)
      near(values(r), drawn);
    else
      THROWS(std::invalid_argument, "99", values(wrong));
  }
  near(m.gradients(), n.gradients());
}

TEST(gradients_by_differences) {
  Learner m;
  ComputationGraph cg;
  Net net(cg, m, true);
  CHECK(check_grad(m.m, net.loss, 0));
}

TEST(a_loss_may_be_an_own_node) {
  Learner m;
  ComputationGraph cg;
  Expression x = sum_elems(parameter(cg, m.b)), loss = own(x);
  cg.backward(loss);
  const float v = as_scalar(x.value()), s = 1 / (1 + std::exp(-v));
  near(gradient(loss), {1});
  near(gradient(x), {s + v * s * (1 - s)});
  near(gradient(Expression(&cg, 0)), Floats(4, s + v * s * (1 - s)));
}

TEST(gradients_that_nobody_wants_are_not_computed) {
  Learner m;
  ComputationGraph cg;
  Expression x = input(cg, {4}, {1, 2, 3, 4}), y = own(x), w = parameter(cg, m.b);
  Expression loss = dot_product(y, w), other = own(w);
  backwards = 0;
  cg.backward(loss);
  EQUAL(backwards, 0);
  near(gradient(y), Floats(4, 0)); // as in DyNet
  near(gradient(w), values(y));
  cg.backward(loss, true);
  EQUAL(backwards, 1);
  near(gradient(y), values(w));
  CHECK(other.i > loss.i);
}

TEST(a_long_chain) {
  Learner m;
  for (bool owns : {false, true}) {
    ComputationGraph cg;
    Expression x = parameter(cg, m.b);
    for (int k = 0; k < 30; ++k)
      x = swish(x + 1.f, 1, owns);
    cg.backward(sum_elems(x));
  }
  const Floats both = m.b.p.unexposed()->read(VPPS_GRADIENT);
  Learner n;
  ComputationGraph cg;
  Expression x = parameter(cg, n.b);
  for (int k = 0; k < 30; ++k)
    x = swish(x + 1.f, 1, false);
  cg.backward(sum_elems(x));
  Floats twice = n.b.p.unexposed()->read(VPPS_GRADIENT);
  for (float &g : twice)
    g *= 2;
  near(both, twice);
}

TEST(an_own_node_waits_for_all_that_is_above_it) {
  Learner models[2];
  for (bool owns : {false, true}) {
    ComputationGraph cg;
    Expression a = swish(parameter(cg, models[owns].b), 1, owns), beside = a * 2.f;
    Expression deep = swish(swish(a, 1, owns), 1, owns);
    cg.backward(sum_elems(cmult(deep, beside)));
  }
  near(models[1].gradients(), models[0].gradients());
}

TEST(what_backward_leaves_is_taken_back) {
  Learner models[2];
  Floats seen[2];
  for (bool owns : {false, true}) {
    Learner &m = models[owns];
    SimpleSGDTrainer trainer(m.m, 0.1f);
    vpps::handle hndl(m.m, trainer);
    ComputationGraph cg;
    Expression x = parameter(cg, m.b), y = swish(x, 1, owns), loss = sum_elems(y);
    cg.checkpoint();
    Expression z = swish(y * 3.f, 1, owns);
    values(z);
    cg.invalidate();
    cg.backward(sum_elems(y)); // behind z
    cg.revert();
    cg.backward(loss);
    cg.invalidate();
    cg.checkpoint();
    tanh(z = swish(y, 2, owns));
    cg.invalidate();
    cg.backward(loss); // before all that the checkpoint has
    cg.revert();
    Expression kept = swish(y + 1.f, 1, owns), other = sum_elems(kept + y);
    cg.backward(loss);
    hndl.keep(kept);
    hndl.fb(m.m, cg, other);
    seen[owns] = values(kept);
    seen[owns].push_back(hndl.sync_get_latest_loss());
    cg.backward(other); // with the parameters of now
    for (float g : gradient(y))
      seen[owns].push_back(g);
  }
  near(seen[1], seen[0]);
  near(models[1].parameters(), models[0].parameters());
  near(models[1].gradients(), models[0].gradients());
}

TEST(training_is_that_of_built_in_functions) {
  for (bool fused : {false, true}) {
    Learner models[2];
    Floats losses[2];
    for (bool owns : {false, true}) {
      Learner &m = models[owns];
      AdamTrainer trainer(m.m, 0.01f);
      vpps::handle hndl(m.m, trainer);
      for (unsigned step = 0; step < 12; ++step) {
        ComputationGraph cg;
        Net net(cg, m, owns, step);
        if (fused) {
          hndl.keep(net.all[4]);
          hndl.fb(m.m, cg, net.loss);
          CHECK(net.all[4].value().is_valid());
          losses[owns].push_back(hndl.sync_get_latest_loss());
        } else {
          losses[owns].push_back(as_scalar(cg.forward(net.loss)));
          cg.backward(net.loss);
          trainer.update();
        }
      }
      CHECK(losses[owns].back() < losses[owns].front());
    }
    near(losses[1], losses[0]);
    const Floats a = models[1].parameters(), b = models[0].parameters();
    for (size_t k = 0; k < a.size(); ++k) // Adam divides by gradients that nearly vanish
      CHECK(std::fabs(a[k] - b[k]) < 1e-4f);
  }
}

TEST(clipping_and_pending_gradients_count_in_fb) {
  Learner models[2];
  for (bool owns : {false, true}) {
    Learner &m = models[owns];
    SimpleSGDTrainer trainer(m.m, 0.1f);
    trainer.clip_threshold = 0.5f;
    vpps::handle hndl(m.m, trainer);
    ComputationGraph cg;
    Net net(cg, m, owns);
    cg.backward(net.loss);
    hndl.fb(m.m, cg, net.loss);
    hndl.fb(m.m, cg, net.loss); // again, with the new parameters
    EQUAL(hndl.clips(), 2u);
    CHECK(std::isfinite(hndl.sync_get_latest_loss()));
  }
  near(models[1].parameters(), models[0].parameters());
}

TEST(a_graph_is_trained_again_with_new_parameters_and_inputs) {
  Floats now[2];
  for (bool owns : {false, true}) {
    Learner m;
    SimpleSGDTrainer trainer(m.m, 0.1f);
    vpps::handle hndl(m.m, trainer);
    Floats x = {1, 2, 3, 4};
    ComputationGraph cg;
    Expression y = swish(cmult(input(cg, {4}, &x), parameter(cg, m.b)), 1, owns);
    Expression loss = squared_norm(y - 1.f);
    for (int k = 0; k < 3; ++k) {
      x[0] += 1;
      hndl.fb(m.m, cg, loss);
      now[owns].push_back(hndl.sync_get_latest_loss());
    }
    for (float v : as_vector(cg.forward(y)))
      now[owns].push_back(v);
  }
  near(now[1], now[0]);
}

TEST(random_nodes_keep_what_they_drew) {
  ParameterCollection model;
  Parameter p = model.add_parameters({64}, ParameterInitConst(1));
  SimpleSGDTrainer trainer(model, 1);
  trainer.clipping_enabled = false;
  for (bool fused : {false, true}) {
    p.set_value(Floats(64, 1));
    vpps::handle hndl(model, trainer);
    ComputationGraph cg;
    Expression w = parameter(cg, p), d = dropout(w, 0.5f), loss = sum_elems(own(d));
    const Floats before = values(d);
    CHECK(before[0] == 0 || before[0] == 2);
    if (fused) {
      hndl.fb(model, cg, loss);
    } else {
      cg.backward(loss);
      trainer.update();
    }
    const Floats after = p.p.unexposed()->read(VPPS_VALUES);
    int dropped = 0;
    for (size_t k = 0; k < 64; ++k) {
      CHECK((after[k] == 1) == (before[k] == 0));
      dropped += before[k] == 0;
    }
    CHECK(dropped > 0 && dropped < 64);
  }
}

TEST(values_are_computed_when_they_are_asked_for) {
  Floats x = {1, 2};
  ComputationGraph cg;
  Expression in = input(cg, {2}, &x);
  forwards = 0;
  Expression a = own(in), b = own(a + 1.f), c = own(b);
  EQUAL(forwards, 0);
  values(a);
  EQUAL(forwards, 1);
  const Floats old = values(c);
  EQUAL(forwards, 3);
  values(b);
  x = {3, 4};
  near(as_vector(cg.incremental_forward(c)), old);
  EQUAL(forwards, 3);
  near(as_vector(cg.forward(c))[0] > old[0] ? Floats{1} : Floats{0}, {1});
  EQUAL(forwards, 6);
  cg.invalidate();
  values(a);
  EQUAL(forwards, 7);
}

TEST(a_graph_goes_back_and_is_cleared) {
  const int before = alive;
  {
    ComputationGraph cg;
    Expression x = input(cg, 2.f), y = own(x);
    EQUAL(alive, before + 1);
    cg.checkpoint();
    Expression z = own(y);
    cg.backward(sum_elems(z), true);
    cg.revert();
    EQUAL(alive, before + 1);
    EQUAL(cg.nodes.size(), 2u);
    z = own(y + 1.f);
    CHECK(std::isfinite(as_scalar(z.value())));
    cg.clear();
    EQUAL(alive, before);
    x = input(cg, 3.f);
    y = own(x);
    near(values(y), {3 / (1 + std::exp(-3.f))});
  }
  EQUAL(alive, before);
}

TEST(nodes_and_texts) {
  ComputationGraph cg;
  Expression x = input(cg, {2}, {1, 2}), y = own(x);
  Expression z(&cg, cg.add_function<Mixed>(std::vector<VariableIndex>{y.i, x.i}));
  EQUAL(cg.nodes[y.i]->name, "Swish");
  EQUAL(cg.nodes[z.i]->as_dummy_string(), "x0 (1 + x1)");
  EQUAL(cg.nodes[z.i]->dim, "{2}");
  CHECK(dynamic_cast<Swish *>(cg.nodes[y.i]) && cg.nodes[y.i]->get_cg() == &cg);
  CHECK(cg.nodes[y.i]->device == default_device);
  size_t arguments = 0;
  for (const Node *node : cg.nodes)
    arguments += node->arity();
  EQUAL(arguments, 3u);
  const std::string text = tests::printed(std::cerr, [&] { cg.print_graphviz(); });
  CHECK(text.find("v1 = swish(v0)") != std::string::npos);
  CHECK(text.find("v2 = v1 (1 + v0)") != std::string::npos);
  CHECK(text.find("N1 -> N2;") != std::string::npos);
  Tensor none;
  THROWS(std::runtime_error, "libvpps executes", cg.nodes[x.i]->forward({}, none));
  near(values(Expression(&cg, cg.add_function<Swish>(default_device, {x.i}))), values(y));
}

TEST(texts_of_lists_and_vectors) {
  EQUAL(print_vecs(std::vector<std::vector<int>>{{1, 2}, {3}}), "[[1,2],[3]]");
  CHECK(LooksLikeVector({3}) && LooksLikeVector({3, 1}) && !LooksLikeVector({1, 3}));
  CHECK(LooksLikeVector(Dim()));
}

TEST(nodes_are_computed_at_once_if_asked_to) {
  ComputationGraph cg;
  cg.set_immediate_compute(true);
  cg.set_check_validity(true);
  forwards = 0;
  Expression x = input(cg, {1}, {1});
  own(x);
  EQUAL(forwards, 1);
  THROWS(std::runtime_error, "NaN or Inf", own(input(cg, std::nanf(""))));
}

TEST(what_does_not_fit_leaves_the_graph_as_it_was) {
  const int before = alive;
  ComputationGraph cg;
  Expression x = input(cg, {2}, {1, 2}), y = input(cg, {3}, {1, 2, 3});
  THROWS(std::invalid_argument, "Swish of 2", cg.add_function<Swish>({x.i, y.i}));
  THROWS(std::invalid_argument, "one shape", own(x, y));
  THROWS(std::invalid_argument, "Swish: the graph has no node 9", cg.add_function<Swish>({9}));
  EQUAL(cg.nodes.size(), 2u);
  EQUAL(alive, before);
  near(values(y), {1, 2, 3});
}

TEST(a_class_without_batches_is_refused_one) {
  ComputationGraph cg;
  const Odd::Kind fine = Odd::Fine;
  Expression x = input(cg, Dim({2}, 2), {1, 2, 3, 4}), y = odd(x, fine);
  THROWS(std::runtime_error, "does not support batching", values(y));
  near(values(x), {1, 2, 3, 4});
}

TEST(a_value_may_be_an_argument_itself) {
  ComputationGraph cg;
  const Odd::Kind points = Odd::Points;
  Expression x = input(cg, {2}, {1, 2}), y = odd(x * 2.f, points);
  near(values(y + 1.f), {3, 5});
}

#ifdef DYNET_HAS_EIGEN
namespace {
// tanh, written as DyNet's own classes are.
struct EigenTanh : public Node {
  explicit EigenTanh(const std::initializer_list<VariableIndex> &a) : Node(a) {}
  bool supports_multibatch() const override { return true; }
  DYNET_NODE_DEFINE_DEV_IMPL()
};
Dim EigenTanh::dim_forward(const std::vector<Dim> &xs) const { return xs[0]; }
std::string EigenTanh::as_string(const Texts &n) const { return "tanh" + print_vec(n); }
template <class D>
void EigenTanh::forward_dev_impl(const D &dev, const Tensors &xs, Tensor &fx) const {
  tvec(fx).device(*dev.edevice) = tvec(*xs[0]).tanh();
}
template <class D>
void EigenTanh::backward_dev_impl(const D &dev, const Tensors &, const Tensor &fx,
                                  const Tensor &dEdf, unsigned, Tensor &dEdxi) const {
  const auto y = tb<1>(fx);
  tb<1>(dEdxi).device(*dev.edevice) += tb<1>(dEdf) * (y.constant(1) - y.square());
}
DYNET_NODE_INST_DEV_IMPL(EigenTanh)
} // namespace

TEST(a_class_computes_by_eigen) {
  Learner m, n;
  for (bool owns : {false, true}) {
    Learner &l = owns ? n : m;
    ComputationGraph cg;
    Expression x = lookup(cg, l.words, std::vector<unsigned>{1, 2});
    Expression y = owns ? Expression(&cg, cg.add_function<EigenTanh>({x.i})) : tanh(x);
    if (owns)
      EQUAL(cg.nodes[y.i]->as_dummy_string(), "tanh[x0]");
    cg.backward(sum_batches(squared_norm(y)));
  }
  near(n.gradients(), m.gradients());
}

TEST(eigen_sees_tensors) {
  Floats v = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  Tensor x(Dim({3, 2}, 2), v.data(), default_device, DeviceMempool::FXS);
  const Tensor c(Dim({3, 4}), v.data(), default_device, DeviceMempool::FXS);
  EQUAL(mat(c)(1, 3), 11);
  EQUAL(vec(x)(7), 8);
  EQUAL(tvec(c)(11), 12);
  EQUAL(tbvec(x)(1, 1), 8);
  EQUAL(t<2>(c)(0, 1), 4);
  EQUAL(t<3>(c)(0, 1, 0), 4);
  EQUAL(tb<2>(x)(2, 0, 1), 9);
  EQUAL(tb<3>(x)(2, 0, 0, 1), 9);
  EQUAL(batch_matrix(x, 1)(0, 1), 10);
  EQUAL(batch_matrix(c, 5)(0, 1), 4);
  EQUAL(rowcol_matrix(x)(5, 1), 12);
  EQUAL(colbatch_matrix(x)(0, 3), 10);
  t<2>(const_cast<Tensor &>(c))(0, 0) = 100;
  EQUAL(v[0], 100);
  THROWS(std::invalid_argument, "batch", mat(x));
  THROWS(std::invalid_argument, "batch", t<2>(x));
  THROWS(std::invalid_argument, "2 axes seen as one of 1", t<1>(c));
  THROWS(std::invalid_argument, "2 axes seen as one of 1", tb<1>(x));
  const Tensor one(Dim({1}), v.data(), default_device, DeviceMempool::FXS);
  EQUAL(t<0>(one)(), 100);
}
#endif

TEST(exceptions_of_a_class_reach_the_caller) {
  Learner m;
  SimpleSGDTrainer trainer(m.m, 0.1f);
  vpps::handle hndl(m.m, trainer);
  Odd::Kind kind = Odd::ForwardThrows;
  ComputationGraph cg;
  Expression w = parameter(cg, m.b), y = odd(w * 2.f, kind), loss = squared_norm(own(y) + w);
  const Floats was = m.parameters(), none = m.gradients();
  auto fails = [&](const char *text) {
    if (kind == Odd::NotFinite) {
      THROWS(std::runtime_error, text, cg.backward(loss));
      THROWS(std::runtime_error, text, hndl.fb(m.m, cg, loss));
    } else {
      THROWS(std::domain_error, text, cg.backward(loss));
      THROWS(std::domain_error, text, hndl.fb(m.m, cg, loss));
    }
    CHECK(m.gradients() == none && m.parameters() == was);
    THROWS(std::runtime_error, "call backward first", gradient(w));
  };
  fails("no value today");
  THROWS(std::domain_error, "no value today", cg.forward(loss));
  near(values(w), was.empty() ? Floats() : m.b.p.unexposed()->read(VPPS_VALUES));
  kind = Odd::BackwardThrows;
  fails("no gradient today");
  CHECK(std::isfinite(as_scalar(loss.value())));
  kind = Odd::NotFinite;
  fails(
      "node 2 (Odd): the gradient that backward_impl gave argument 0, node 1, is NaN or infinite");
  kind = Odd::Fine;
  cg.backward(loss);
  CHECK(m.gradients() != none);
  hndl.fb(m.m, cg, loss);
  CHECK(std::isfinite(hndl.sync_get_latest_loss()));
}

TEST(a_loss_that_is_no_number_is_refused_as_ever) {
  Learner m;
  SimpleSGDTrainer trainer(m.m, 0.1f);
  vpps::handle hndl(m.m, trainer);
  ComputationGraph cg;
  Expression loss = sum_elems(own(log(parameter(cg, m.b) * 0.f - 1.f)));
  const Floats was = m.parameters();
  THROWS(std::runtime_error, "not finite", cg.backward(loss));
  THROWS(std::runtime_error, "", {
    hndl.fb(m.m, cg, loss);
    hndl.sync_get_latest_loss();
  });
  CHECK(m.parameters() == was);
  THROWS(std::invalid_argument, "scalar", cg.backward(own(parameter(cg, m.b))));
}

int main(int argc, char **argv) {
  initialize(argc, argv);
  return tests::run_tests();
}
