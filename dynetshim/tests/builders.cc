// Recurrent builders: what no recording of DyNet has. Recordings are compared by build/golden.
#include <dynet/deep-lstm.h>
#include <dynet/dynet.h>
#include <dynet/fast-lstm.h>
#include <dynet/gru.h>
#include <dynet/lstm.h>
#include <dynet/treelstm.h>

#include <algorithm>
#include <cmath>

#include "check.h"

using namespace dynet;

namespace {

const std::vector<float> some = {.3f, -.7f, 1.1f}, others = {-.2f, .4f, .9f};

// The values of the last of two steps.
std::vector<float> two_steps(RNNBuilder &b) {
  ComputationGraph cg;
  b.new_graph(cg);
  b.start_new_sequence();
  b.add_input(input(cg, {3}, some));
  return as_vector(b.add_input(input(cg, {3}, others)).value());
}

double distance(const std::vector<float> &a, const std::vector<float> &b) {
  double d = a.size() == b.size() ? 0 : 1e9;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    d = std::max(d, std::abs(double(a[i]) - b[i]));
  return d;
}

// Gives b the parameters of a, in order.
void same_values(const ParameterCollection &a, const ParameterCollection &b) {
  for (size_t i = 0; i < a.parameters_list().size(); ++i)
    b.parameters_list().at(i)->set_value(as_vector(a.parameters_list()[i]->values));
}

} // namespace

TEST(calls_out_of_order_name_the_cure) {
  ParameterCollection m;
  GRUBuilder gru(1, 3, 4, m);
  THROWS(std::invalid_argument, "call new_graph first", gru.start_new_sequence());
  ComputationGraph cg;
  Expression x = input(cg, {3}, some);
  THROWS(std::invalid_argument, "call new_graph first", gru.add_input(x));
  gru.new_graph(cg);
  THROWS(std::invalid_argument, "call start_new_sequence first", gru.add_input(x));
  THROWS(std::invalid_argument, "needs 0 or 1 expressions", gru.start_new_sequence({x, x}));
  THROWS(std::invalid_argument, "call start_new_sequence first", gru.add_input(x));
  gru.start_new_sequence();
  THROWS(std::invalid_argument, "empty", gru.back());
  THROWS(std::invalid_argument, "needs 1 expressions", gru.set_h(RNNPointer(-1), {}));
  RNNStateMachine machine;
  machine.transition(RNNOp::new_graph);
  THROWS(std::invalid_argument, "GRAPH_READY", machine.transition(RNNOp::add_input));
}

TEST(a_copy_shares_parameters) {
  ParameterCollection m;
  GRUBuilder gru(2, 3, 4, m), other(2, 3, 4, m), small(1, 3, 4, m);
  LSTMBuilder lstm(2, 3, 4, m);
  CHECK(distance(two_steps(gru), two_steps(other)) > 1e-3);
  other.copy(gru);
  CHECK(other.params[1][4].p == gru.params[1][4].p);
  CHECK(distance(two_steps(gru), two_steps(other)) == 0);
  THROWS(std::invalid_argument, "2 layers, this one 1", small.copy(gru));
  THROWS(std::invalid_argument, "another kind", gru.copy(lstm));
}

TEST(what_the_first_step_is_not_given_is_zero) {
  ParameterCollection m;
  LSTMBuilder lstm(1, 3, 4, m);
  ComputationGraph cg;
  lstm.new_graph(cg);
  Expression c = constant(cg, {4}, .5f), h = constant(cg, {4}, -.25f);
  for (bool hidden : {true, false}) { // also after an initial state, as in DyNet
    lstm.start_new_sequence({c, h});
    if (hidden)
      lstm.set_h(RNNPointer(-1), {h});
    else
      lstm.set_s(RNNPointer(-1), {c});
    const std::vector<Expression> state = lstm.get_s(0);
    EQUAL(as_vector(state.at(0).value())[3], hidden ? 0 : .5f);
    EQUAL(as_vector(state.at(1).value())[3], hidden ? -.25f : 0);
  }
}

TEST(dropout_draws_masks_once_for_a_sequence) {
  ParameterCollection m;
  CoupledLSTMBuilder coupled(1, 3, 4, m);
  SimpleRNNBuilder simple(1, 3, 4, m);
  const std::vector<float> whole = two_steps(coupled), whole_simple = two_steps(simple);
  THROWS(std::invalid_argument, "from 0 to 1", coupled.set_dropout(.5f, 1.5f, 0));
  coupled.set_dropout(0, 0, .9f);
  simple.set_dropout(.9f);
  CHECK(distance(two_steps(coupled), whole) > 0);
  CHECK(distance(two_steps(simple), whole_simple) > 0);
  {
    ComputationGraph cg;
    coupled.set_dropout(.5f);
    coupled.new_graph(cg);
    coupled.start_new_sequence();
    coupled.add_input(input(cg, {3}, some));
    const unsigned first = coupled.masks.at(0).at(2).i;
    coupled.add_input(input(cg, {3}, others));
    CHECK(coupled.masks.at(0).at(2).i == first);
    CHECK(coupled.masks.at(0).size() == 3);
  }
  coupled.disable_dropout();
  simple.disable_dropout();
  CHECK(distance(two_steps(coupled), whole) == 0);
  CHECK(distance(two_steps(simple), whole_simple) == 0);
  // A GRU draws anew at each step, and drops what it returns too.
  GRUBuilder gru(1, 3, 4, m);
  gru.set_dropout(1);
  for (float x : two_steps(gru))
    CHECK(x == 0);
}

TEST(a_sparse_lstm_without_zeros_is_a_vanilla_one) {
  ParameterCollection dense, sparse;
  LSTMBuilder lstm(2, 3, 4, dense, true);
  SparseLSTMBuilder builder(2, 3, 4, sparse, true);
  for (size_t l = 0; l < 2; ++l) {
    for (size_t k = 0; k < 3; ++k)
      builder.params[l][k].set_value(as_vector(*lstm.params[l][k].values()));
    for (size_t k = 0; k < 6; ++k)
      builder.ln_params[l][k].set_value(as_vector(*lstm.ln_params[l][k].values()));
  }
  CHECK(builder.params[0].size() == 5);
  CHECK(builder.params[0][3].get_fullname() == "/vanilla-lstm-builder/_2");
  CHECK(builder.ln_params[0][0].get_fullname() == "/_0");
  CHECK(distance(two_steps(lstm), two_steps(builder)) < 1e-6);

  // A quarter of all weights goes: those nearest to zero, whatever their layer.
  builder.set_sparsity(.25f);
  float largest_dropped = 0, smallest_kept = 1e9f;
  int dropped = 0, all = 0;
  for (size_t l = 0; l < 2; ++l)
    for (size_t k = 0; k < 2; ++k) {
      const std::vector<float> w = as_vector(*builder.params[l][k].values());
      const std::vector<float> kept = as_vector(*builder.params[l][3 + k].values());
      for (size_t i = 0; i < w.size(); ++i, ++all) {
        CHECK(kept[i] == 0 || kept[i] == 1);
        if (kept[i] == 0) {
          largest_dropped = std::max(largest_dropped, std::abs(w[i]));
          dropped++;
        } else {
          smallest_kept = std::min(smallest_kept, std::abs(w[i]));
        }
      }
    }
  CHECK(dropped == all / 4);
  CHECK(largest_dropped <= smallest_kept);
  CHECK(distance(two_steps(lstm), two_steps(builder)) > 1e-6);

  // Masks do not train.
  ComputationGraph cg;
  builder.new_graph(cg);
  builder.start_new_sequence();
  cg.backward(sum_elems(builder.add_input(input(cg, {3}, some))));
  CHECK(builder.params[0][0].get_storage().has_grad());
  CHECK(!builder.params[0][3].get_storage().has_grad());
  THROWS(std::invalid_argument, "fraction", builder.set_sparsity(30));
}

TEST(one_deep_layer_with_a_state_is_a_coupled_layer) {
  ParameterCollection of_deep, of_coupled;
  DeepLSTMBuilder deep(1, 3, 4, of_deep);
  CoupledLSTMBuilder coupled(1, 3, 4, of_coupled);
  same_values(of_deep, of_coupled);
  std::vector<std::vector<float>> results;
  for (RNNBuilder *b : {static_cast<RNNBuilder *>(&deep), static_cast<RNNBuilder *>(&coupled)}) {
    ComputationGraph cg;
    b->new_graph(cg);
    b->start_new_sequence({constant(cg, {4}, .5f), constant(cg, {4}, -.25f)});
    b->add_input(input(cg, {3}, some));
    results.push_back(as_vector(b->add_input(input(cg, {3}, others)).value()));
  }
  CHECK(distance(results[0], results[1]) < 1e-6);
}

TEST(a_deep_lstm_returns_the_outputs_of_all_layers) {
  ParameterCollection m;
  DeepLSTMBuilder deep(3, 3, 4, m);
  CHECK(deep.params[1][0].dim() == Dim({4, 7}));
  ComputationGraph cg;
  deep.new_graph(cg);
  deep.start_new_sequence();
  Expression y = deep.add_input(input(cg, {3}, some));
  CHECK(y.dim() == Dim({12}));
  CHECK(deep.o.size() == 1);
  std::vector<float> layers;
  for (const Expression &h : deep.final_h()) {
    const std::vector<float> v = as_vector(h.value());
    layers.insert(layers.end(), v.begin(), v.end());
  }
  CHECK(distance(as_vector(y.value()), layers) == 0);
  CHECK(distance(as_vector(deep.back().value()),
                 std::vector<float>(layers.begin() + 8, layers.end())) == 0);
}

TEST(weight_noise_changes_weights_around_their_values) {
  ParameterCollection m;
  CompactVanillaLSTMBuilder lstm(1, 3, 4, m);
  const std::vector<float> quiet = two_steps(lstm);
  lstm.set_weightnoise(1e-3f);
  const std::vector<float> a = two_steps(lstm), b = two_steps(lstm);
  CHECK(distance(a, b) > 0);
  CHECK(distance(a, quiet) > 0);
  CHECK(distance(a, quiet) < 2e-2);
  lstm.set_weightnoise(0);
  CHECK(distance(two_steps(lstm), quiet) == 0);
  THROWS(std::invalid_argument, "0 or more", lstm.set_weightnoise(-1));
  ComputationGraph cg;
  Expression x = input(cg, {1}, {1}), zero = zeros(cg, {4, 1}), bias = zeros(cg, {4});
  Expression noisy = vanilla_lstm_gates(x, x, zero, zero, bias, 1e-3f);
  const float moved = std::fabs(as_vector(noisy.value())[3]); // tanh of noise
  CHECK(moved > 0 && moved < 1e-2f);
  const size_t nodes = cg.nodes.size();
  THROWS(std::invalid_argument, "0 or more", vanilla_lstm_gates(x, x, zero, zero, bias, -1));
  THROWS(std::invalid_argument, "", vanilla_lstm_gates(bias, x, zero, zero, bias, 1));
  EQUAL(cg.nodes.size(), nodes);
}

TEST(trees_are_added_children_first) {
  ParameterCollection m;
  NaryTreeLSTMBuilder nary(2, 1, 3, 3, m);
  UnidirectionalTreeLSTMBuilder one(1, 3, 3, m);
  THROWS(std::invalid_argument, "even", BidirectionalTreeLSTMBuilder(1, 3, 3, m));
  ComputationGraph cg;
  Expression x = input(cg, {3}, some);
  for (TreeLSTMBuilder *t :
       {static_cast<TreeLSTMBuilder *>(&nary), static_cast<TreeLSTMBuilder *>(&one)}) {
    t->new_graph(cg);
    t->start_new_sequence();
    t->add_input(0, {}, x);
    THROWS(std::invalid_argument, "child 1 was not added", t->add_input(2, {0, 1}, x));
    THROWS(std::invalid_argument, "begin with 0", t->add_input(-1, {}, x));
    THROWS(std::runtime_error, "not for trees", t->back());
    THROWS(std::runtime_error, "not for trees", t->final_s());
    // In any order, once there is room.
    t->start_new_sequence();
    t->set_num_elements(3);
    t->add_input(2, {}, x);
    THROWS(std::invalid_argument, "child 1 was not added", t->add_input(0, {1, 2}, x));
    Expression y = t->add_input(0, {2}, x);
    CHECK(y.dim() == Dim({3}));
  }
  NaryTreeLSTMBuilder twin(2, 1, 3, 3, m), wide(3, 1, 3, 3, m);
  twin.copy(nary);
  CHECK(twin.lparams[0][6].p == nary.lparams[0][6].p);
  THROWS(std::invalid_argument, "for 2 children", wide.copy(nary));
}

int main(int argc, char **argv) {
  initialize(argc, argv);
  return tests::run_tests();
}
