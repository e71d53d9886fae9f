// hndl.infer: a stream of answers, on the engine itself, held to what forward says.
#include "check.h"
#include "dynet/dynet.h"
#include "dynet/expr.h"
#include "dynet/lstm.h"
#include "dynet/training.h"
#include "vpps/vpps.hpp"

using namespace dynet;

namespace {
typedef std::vector<float> floats;

// A tagger of words, whose sentences differ in length.
struct tagger {
  ParameterCollection m;
  LookupParameter words = m.add_lookup_parameters(50, {8});
  VanillaLSTMBuilder lstm{1, 8, 16, m};
  Parameter W = m.add_parameters({5, 16}), b = m.add_parameters({5});

  std::vector<Expression> scores(ComputationGraph &cg, unsigned sentence) {
    lstm.new_graph(cg);
    lstm.start_new_sequence();
    const Expression w = parameter(cg, W), c = parameter(cg, b);
    std::vector<Expression> all;
    for (unsigned k = 0; k <= sentence % 7; k++)
      all.push_back(
          affine_transform({c, w, lstm.add_input(lookup(cg, words, (sentence * 5 + k * 3) % 50))}));
    return all;
  }
  Expression loss(ComputationGraph &cg, unsigned sentence) {
    std::vector<Expression> losses;
    for (const Expression &s : scores(cg, sentence))
      losses.push_back(pickneglogsoftmax(s, sentence % 5));
    return sum(losses);
  }
  floats forward(unsigned sentence) {
    ComputationGraph cg;
    return as_vector(cg.forward(concatenate(scores(cg, sentence))));
  }
};
} // namespace

TEST(answers_are_what_forward_says) {
  tagger t;
  vpps::handle hndl(t.m);
  std::vector<vpps::ticket> tickets;
  ComputationGraph cg;
  for (unsigned k = 0; k < 30; k++) {
    cg.clear();
    tickets.push_back(k % 2 ? hndl.infer(cg, t.scores(cg, k))
                            : hndl.infer(cg, concatenate(t.scores(cg, k))));
  }
  std::vector<floats> have;
  for (unsigned k = 0; k < 30; k++) // in another order
    have.push_back(hndl.result(tickets[k * 7 % 30]));
  tickets.clear();
  for (unsigned k = 0; k < 30; k++) {
    cg.clear();
    const floats want = as_vector(cg.forward(concatenate(t.scores(cg, k * 7 % 30))));
    CHECK(want == have[k]);
  }
}

TEST(several_expressions_have_a_vector_each) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(3));
  vpps::handle hndl(m);
  ComputationGraph cg;
  Expression x = parameter(cg, p), y = sum_elems(x), z = x * y;
  const vpps::ticket t = hndl.infer(cg, {z, y, x, y});
  CHECK((hndl.results(t) == std::vector<floats>{{18, 18}, {6}, {3, 3}, {6}}));
  CHECK((hndl.result(hndl.infer(cg, {z, y})) == floats{18, 18, 6}));
}

TEST(answers_come_between_batches) {
  std::vector<floats> answers[2];
  for (bool by_infer : {false, true}) {
    reset_rng(5);
    tagger t;
    SimpleSGDTrainer trainer(t.m, 0.1f);
    vpps::handle hndl(t.m, trainer);
    std::vector<vpps::ticket> tickets;
    for (unsigned k = 0; k < 20; k++) {
      {
        ComputationGraph cg;
        hndl.fb(t.m, cg, t.loss(cg, k));
      }
      if (by_infer) {
        ComputationGraph cg;
        tickets.push_back(hndl.infer(cg, concatenate(t.scores(cg, k))));
      } else {
        answers[0].push_back(t.forward(k));
      }
    }
    for (const vpps::ticket &ticket : tickets)
      answers[1].push_back(hndl.result(ticket));
  }
  CHECK(answers[0] == answers[1]);
}

TEST(a_graph_goes_on_after_infer) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(3));
  vpps::handle hndl(m);
  ComputationGraph cg;
  float n = 1;
  Expression x = input(cg, &n), y = parameter(cg, p) * x;
  const vpps::ticket before = hndl.infer(cg, y);
  n = 2; // pointers are read when infer is called
  cg.checkpoint();
  const vpps::ticket square_of_it = hndl.infer(cg, square(y));
  cg.revert();
  CHECK((as_vector(y.value()) == floats{6, 6}));
  const vpps::ticket exponential = hndl.infer(cg, exp(y - y));
  CHECK((hndl.result(square_of_it) == floats{36, 36}));
  CHECK((hndl.result(before) == floats{3, 3}));
  CHECK((hndl.result(exponential) == floats{1, 1}));
  hndl.fb(m, cg, sum_elems(y));
  CHECK((hndl.result(hndl.infer(cg, x)) == floats{2}));
}

TEST(exposed_parameters_and_immediate_computation) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(3));
  vpps::handle hndl(m);
  ComputationGraph cg;
  cg.set_immediate_compute(true);
  cg.set_check_validity(true);
  Expression y = parameter(cg, p) * 2.f;
  const vpps::ticket first = hndl.infer(cg, y);
  float *values = p.get_storage().values.v;
  values[0] = 5;
  const vpps::ticket second = hndl.infer(cg, y);
  values[0] = 7;
  CHECK((hndl.result(first) == floats{6, 6}));
  CHECK((hndl.result(second) == floats{10, 6}));
}

TEST(random_nodes_draw_as_in_forward) {
  floats drawn[2];
  for (bool by_infer : {false, true}) {
    ParameterCollection m;
    Parameter p = m.add_parameters({64}, ParameterInitConst(1));
    vpps::handle hndl(m);
    reset_rng(3);
    for (unsigned k = 0; k < 3; k++) {
      ComputationGraph cg;
      Expression y = dropout(parameter(cg, p), 0.5f);
      const floats v = by_infer ? hndl.result(hndl.infer(cg, y)) : as_vector(cg.forward(y));
      drawn[by_infer].insert(drawn[by_infer].end(), v.begin(), v.end());
    }
  }
  CHECK(drawn[0] == drawn[1]);
}

namespace {
// A node of a program's own class: three times its argument.
struct Threefold : public Node {
  explicit Threefold(const std::initializer_list<VariableIndex> &a) : Node(a) {}
  Dim dim_forward(const std::vector<Dim> &xs) const override { return xs[0]; }
  std::string as_string(const std::vector<std::string> &a) const override { return "3 " + a[0]; }
  void forward_impl(const std::vector<const Tensor *> &xs, Tensor &fx) const override {
    for (unsigned i = 0; i < fx.d.size(); i++)
      fx.v[i] = 3 * xs[0]->v[i];
  }
  void backward_impl(const std::vector<const Tensor *> &, const Tensor &, const Tensor &, unsigned,
                     Tensor &) const override {}
};
} // namespace

TEST(a_graph_with_nodes_of_own_classes_is_evaluated_at_once) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(3));
  vpps::handle hndl(m);
  vpps::ticket t;
  {
    ComputationGraph cg;
    Expression x = parameter(cg, p), y(&cg, cg.add_function<Threefold>({x.i})), z = y + 1.f;
    t = hndl.infer(cg, {z, x});
  }
  CHECK((hndl.results(t) == std::vector<floats>{{10, 10}, {3, 3}}));
}

TEST(what_is_wrong_is_said) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(3));
  vpps::handle hndl(m);
  THROWS(std::invalid_argument, "ticket 0", hndl.result(vpps::ticket()));
  Expression old;
  {
    ComputationGraph cg;
    old = parameter(cg, p);
    const vpps::ticket t = hndl.infer(cg, old);
    CHECK((hndl.result(t) == floats{3, 3}));
    THROWS(std::invalid_argument, "before", hndl.result(t));
    THROWS(std::invalid_argument, "no expression", hndl.infer(cg, std::vector<Expression>()));
    const vpps::ticket dropped = hndl.infer(cg, old);
    hndl.drop(dropped);
    THROWS(std::invalid_argument, "before", hndl.result(dropped));
  }
  ComputationGraph cg;
  THROWS(std::invalid_argument, "another graph", hndl.infer(cg, old));
  // A batch that fails is told by a later infer, and the answer after it is as before the batch.
  Expression x = parameter(cg, p);
  hndl.fb(m, cg, sum_elems(log(x - x) * 0.f));
  const vpps::ticket t = hndl.infer(cg, x);
  CHECK((hndl.result(t) == floats{3, 3}));
  THROWS(std::runtime_error, "not finite", hndl.sync_get_latest_loss());
}

int main(int argc, char **argv) {
  dynet::initialize(argc, argv);
  return tests::run_tests();
}
