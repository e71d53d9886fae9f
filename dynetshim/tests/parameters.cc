// Parameters as programs use them beside graphs: losses that are a parameter, and the members of
// storages that programs read and write.
#include "check.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "dynet/dynet.h"
#include "dynet/expr.h"
#include "dynet/training.h"
#include "vpps/vpps.hpp"

using namespace dynet;

typedef std::vector<float> Floats;

// ---- a loss that is a parameter -----------------------------------------------------------

// A parameter, a table of three numbers and one of a single row.
struct Leaves {
  ParameterCollection model;
  Parameter p = model.add_parameters({1}, ParameterInitConst(2));
  LookupParameter rows = model.add_lookup_parameters(3, {1}, ParameterInitConst(3));
  LookupParameter table = model.add_lookup_parameters(1, {1}, ParameterInitConst(4));
};

typedef std::function<Expression(ComputationGraph &, Leaves &)> Leaf;
typedef std::function<Expression(const Expression &)> Passing;

static Expression of_parameter(ComputationGraph &cg, Leaves &l) { return parameter(cg, l.p); }
static Expression of_row(ComputationGraph &cg, Leaves &l) { return lookup(cg, l.rows, 1u); }
static Expression of_table(ComputationGraph &cg, Leaves &l) { return parameter(cg, l.table); }
static Expression of_row_in_table(ComputationGraph &cg, Leaves &l) {
  return lookup(cg, l.table, 0u);
}

static std::vector<Passing> passing() {
  return {[](const Expression &e) { return e; },
          [](const Expression &e) {
            return reshape(e, {1, 1});
          },
          [](const Expression &e) {
            return reshape(reshape(e, {1, 1}), {1});
          },
          [](const Expression &e) { return sum({e}); },
          [](const Expression &e) { return affine_transform({e}); },
          [](const Expression &e) { return concatenate({e}); },
          [](const Expression &e) { return e + 0.f; }};
}

// The gradient of what the leaf is made of, element by element.
static void is_one(const std::string &what, Leaf leaf, Floats p, Floats rows, Floats table) {
  size_t number = 0;
  for (const Passing &pass : passing()) {
    for (bool full : {false, true}) {
      Leaves l;
      ComputationGraph cg;
      Expression loss = pass(leaf(cg, l));
      cg.backward(loss, full);
      std::string where = what + ", function " + std::to_string(number) + (full ? ", full" : "");
      if (l.p.p.unexposed()->read(VPPS_GRADIENT) != p ||
          l.rows.p.unexposed()->read(VPPS_GRADIENT) != rows ||
          l.table.p.unexposed()->read(VPPS_GRADIENT) != table)
        tests::fail(__FILE__, __LINE__, where + ": another gradient than 1");
      CHECK(as_vector(loss.gradient()) == Floats{1});
      cg.backward(loss, full); // adds
      Floats twice = l.p.p.unexposed()->read(VPPS_GRADIENT);
      CHECK(twice[0] == 2 * p[0]);
    }
    ++number;
  }
}

TEST(a_loss_that_is_a_parameter_has_gradient_one) {
  is_one("parameter", of_parameter, {1}, {0, 0, 0}, {0});
  is_one("row", of_row, {0}, {0, 1, 0}, {0});
  is_one("table", of_table, {0}, {0, 0, 0}, {1});
  is_one("only row", of_row_in_table, {0}, {0, 0, 0}, {1});
}

TEST(a_loss_that_is_a_constant_parameter_has_no_gradient) {
  auto constant = [](ComputationGraph &cg, Leaves &l) { return const_parameter(cg, l.p); };
  auto stopped = [](ComputationGraph &cg, Leaves &l) { return nobackprop(parameter(cg, l.p)); };
  is_one("const_parameter", constant, {0}, {0, 0, 0}, {0});
  is_one("nobackprop", stopped, {0}, {0, 0, 0}, {0});
}

TEST(fb_of_a_parameter_moves_it) {
  for (const Passing &pass : passing()) {
    Leaves l;
    SimpleSGDTrainer trainer(l.model, 0.5f);
    vpps::handle hndl(l.model, trainer);
    float before[] = {2, 3, 4};
    Leaf leaves[] = {of_parameter, of_row, of_table};
    for (int step = 0; step < 2; ++step)
      for (int i = 0; i < 3; ++i) {
        ComputationGraph cg;
        Expression loss = pass(leaves[i](cg, l));
        hndl.fb(l.model, cg, loss);
        CHECK(hndl.sync_get_latest_loss() == before[i] - 0.5f * step);
      }
    CHECK(l.p.p.unexposed()->read(VPPS_VALUES) == Floats{1});
    CHECK(l.rows.p.unexposed()->read(VPPS_VALUES) == (Floats{3, 2, 3}));
    CHECK(l.table.p.unexposed()->read(VPPS_VALUES) == Floats{3});
  }
}

// The loss is the parameter that the graph used before, by another node.
TEST(a_parameter_recorded_again_as_the_loss_has_gradient_one) {
  Leaves l;
  ComputationGraph cg;
  Expression y = tanh(parameter(cg, l.p)), loss = parameter(cg, l.p);
  cg.forward(y);
  cg.backward(loss);
  CHECK(l.p.p.unexposed()->read(VPPS_GRADIENT) == Floats{1});
}

// A large graph is lowered in parts, this one all but the loss for nothing.
TEST(fb_of_a_parameter_behind_a_large_graph_moves_it) {
  Leaves l;
  SimpleSGDTrainer trainer(l.model, 0.5f);
  vpps::handle hndl(l.model, trainer);
  for (int step = 0; step < 2; ++step) {
    ComputationGraph cg;
    for (unsigned i = 0; i < 2000; ++i)
      tanh(lookup(cg, l.rows, i % 3));
    hndl.fb(l.model, cg, parameter(cg, l.p));
  }
  CHECK(hndl.sync_get_latest_loss() == 1.5f);
  CHECK(l.p.p.unexposed()->read(VPPS_VALUES) == Floats{1});
}

// ---- members of storages ------------------------------------------------------------------

TEST(members_are_there_when_they_are_read) {
  ParameterCollection model;
  Parameter w = model.add_parameters({2}, ParameterInitFromVector({1, 2}), "w");
  LookupParameter table = model.add_lookup_parameters(3, {2}, ParameterInitConst(4), "table");
  CHECK(table.p->values.size() == 3 && table.p->grads.size() == 3);
  CHECK(as_vector(table.p->values[2]) == (Floats{4, 4}));
  CHECK(as_vector(table.p->grads[2]) == (Floats{0, 0}));
  CHECK(table.p->all_values.v == table.p->values[0].v && table.p->all_grads.v[5] == 0);
  CHECK(table.p->all_dim == Dim({2, 3}) && table.p->dim == Dim({2}));
  CHECK(as_vector(w.p->values) == (Floats{1, 2}) && as_vector(w.p->g) == (Floats{0, 0}));
  CHECK(w.p->name == "/w" && w.p->owner == &model && table.p->owner == &model);
  std::shared_ptr<LookupParameterStorage> shared = table.p;
  CHECK(shared->values.size() == 3 && shared == table.p && table.p != nullptr);
  CHECK(model.lookup_parameters_list()[0]->values.size() == 3);
}

// As programs set pretrained embeddings, in three ways.
TEST(rows_that_a_program_writes_are_looked_up) {
  for (int way = 0; way < 3; ++way) {
    ParameterCollection model;
    LookupParameter table = model.add_lookup_parameters(3, {2}, ParameterInitConst(4));
    for (unsigned i = 0; i < table.p->values.size(); ++i) {
      Floats row{10.f * i, 10.f * i + 1};
      if (way == 0)
        table.p->initialize(i, row);
      else if (way == 1)
        TensorTools::set_elements(table.p->values[i], row);
      else
        std::copy(row.begin(), row.end(), table.get_storage().all_values.v + 2 * i);
    }
    ComputationGraph cg;
    CHECK(as_vector(lookup(cg, table, 2u).value()) == (Floats{20, 21}));
    CHECK(as_vector(table.p->values[1]) == (Floats{10, 11}));
    CHECK(table.p->read(VPPS_VALUES) == (Floats{0, 1, 10, 11, 20, 21}));
  }
}

// An update, in one call or by three, of rows 0 and 2 and of a dense parameter.
static void updates_are_seen(bool by_fb, bool sparse) {
  ParameterCollection model;
  Parameter w = model.add_parameters({2}, ParameterInitFromVector({1, 2}));
  LookupParameter table = model.add_lookup_parameters(20, {2}, ParameterInitConst(4));
  MomentumSGDTrainer trainer(model, 0.5f, 0.5f);
  trainer.sparse_updates_enabled = sparse;
  vpps::handle hndl(model, trainer);
  float *values = w.values()->v, *rows = table.p->all_values.v, *grads = table.p->all_grads.v;
  for (int step = 1; step <= 3; ++step) {
    ComputationGraph cg;
    unsigned row = step < 3 ? 2 : 0; // the third step leaves row 2 alone, unless updates are dense
    Expression loss = sum_elems(parameter(cg, w)) + sum_elems(lookup(cg, table, row));
    if (by_fb) {
      hndl.fb(model, cg, loss);
    } else {
      cg.backward(loss);
      CHECK(grads[2 * row] == 1 && grads[2 * row + 1] == 1 && grads[2 * 1] == 0);
      CHECK(as_vector(w.p->g) == (Floats{1, 1}));
      trainer.update();
    }
    float moved[] = {0.5f, 1.25f, 2.125f}; // by momentum
    CHECK(values[0] == 1 - moved[step - 1] && values[1] == 2 - moved[step - 1]);
    float row2 = step < 3 ? moved[step - 1] : sparse ? moved[1] : moved[1] + 0.375f;
    CHECK(rows[4] == 4 - row2 && rows[5] == 4 - row2);
    CHECK(rows[0] == (step < 3 ? 4 : 3.5f) && rows[39] == 4);
    CHECK(grads[2 * row] == 0 && grads[0] == 0);
    CHECK(table.p->read(VPPS_VALUES) == Floats(rows, rows + 40));
  }
  trainer.learning_rate = 0; // what a program writes holds for the next call
  values[1] = 7;
  rows[5] = 9;
  ComputationGraph cg;
  Expression loss = sum_elems(parameter(cg, w)) + sum_elems(lookup(cg, table, 2u));
  CHECK(as_scalar(loss.value()) == values[0] + 7 + rows[4] + 9);
}

TEST(updates_are_seen_through_pointers) {
  for (bool by_fb : {false, true})
    for (bool sparse : {false, true})
      updates_are_seen(by_fb, sparse);
}

TEST(gradients_that_a_program_writes_are_applied) {
  ParameterCollection model;
  Parameter w = model.add_parameters({2}, ParameterInitConst(1));
  LookupParameter table = model.add_lookup_parameters(4, {2}, ParameterInitConst(4));
  SimpleSGDTrainer trainer(model, 1);
  trainer.clipping_enabled = false;
  w.gradients()->v[0] = 3;
  table.p->grads[2].v[1] = 5;
  CHECK(table.p->non_zero_grads() == std::unordered_set<unsigned>{2});
  w.p->scale_gradient(2);
  CHECK(w.gradients()->v[0] == 6 && model.gradient_l2_norm() == std::sqrt(61.f));
  trainer.update();
  CHECK(as_vector(*w.values()) == (Floats{-5, 1}) && w.gradients()->v[0] == 0);
  CHECK(as_vector((*table.values())[2]) == (Floats{4, -1}) && table.p->grads[2].v[1] == 0);
  table.p->grads[0].v[0] = 1;
  model.reset_gradient();
  CHECK(table.p->grads[0].v[0] == 0 && table.p->non_zero_grads().empty());
}

// Programs make parameters of layers that they then leave out.
TEST(parameters_without_elements) {
  ParameterCollection model;
  Parameter rows = model.add_parameters({0, 3}), columns = model.add_parameters({3, 0});
  LookupParameter table = model.add_lookup_parameters(0, {4});
  LookupParameter numbers = model.add_lookup_parameters(0, {1});
  Parameter w = model.add_parameters({2}, ParameterInitConst(1));
  SimpleSGDTrainer trainer(model, 1);
  ComputationGraph cg;
  Expression loss = sum_elems(parameter(cg, w));
  cg.forward(loss);
  cg.backward(loss);
  trainer.update();
  CHECK(as_vector(*w.values()) == (Floats{0, 0}));
  CHECK(model.parameter_count() == 2 && rows.dim() == Dim({0, 3}));
  CHECK(as_vector(*rows.values()).empty() && as_vector(*columns.gradients()).empty());
  for (Parameter &p : std::vector<Parameter>{rows, columns}) {
    float norm = 1;
    p.p->g_squared_l2norm(&norm);
    CHECK(norm == 0);
    p.zero();
    p.scale(2);
    p.set_value({});
    p.p->clear();
    p.p->copy(*rows.p);
  }
  THROWS(std::invalid_argument, "empty or too large", parameter(cg, rows));
  THROWS(std::invalid_argument, "but a row of parameter", lookup(cg, table, 0u).value());
  cg.clear(); // of the node that is wrong
  THROWS(std::invalid_argument, "but a row of parameter", lookup(cg, numbers, 0u).value());
  THROWS(std::invalid_argument, "without a batch", model.add_parameters(Dim({2}, 3)));
}

// A matrix that a graph has read keeps its value there, whatever the program writes.
TEST(a_graph_keeps_the_matrix_that_it_has_read) {
  ParameterCollection model;
  Parameter w = model.add_parameters({2, 2}, ParameterInitFromVector({1, 0, 0, 1}));
  float *values = w.values()->v;
  ComputationGraph cg;
  Expression m = parameter(cg, w), x = input(cg, {2}, {3, 5});
  CHECK(as_vector((m * x).value()) == (Floats{3, 5}));
  values[0] = 2;
  CHECK(as_vector((m * (x + 0.f)).value()) == (Floats{3, 5}));
  cg.forward(x);
  CHECK(as_vector((parameter(cg, w) * x).value()) == (Floats{6, 5}));
}

// So it does whichever way the program writes, and whether it looked before. The update counts from
// what was written.
TEST(what_is_written_after_forward_is_not_seen_by_backward) {
  ParameterCollection model;
  Parameter w = model.add_parameters({2, 2}), v = model.add_parameters({2});
  SimpleSGDTrainer trainer(model, 1);
  trainer.clipping_enabled = false;
  const std::vector<std::function<void()>> writes = {
      [] {},
      [&] {
        w.set_value({5, 5, 5, 5});
      },
      [&] { CHECK(w.gradients()->v != nullptr); }, // from here on gradients are exposed,
      [&] {
        w.set_value({5, 5, 5, 5});
      },
      [&] { w.values()->v[1] = 7; }, // and values
      [&] { w.values()->v[2] = 8; },
      [&] { w.p->values.v[0] = 9; }};
  for (const auto &write : writes) {
    w.set_value({1, 2, 3, 4});
    v.set_value({1, -1});
    ComputationGraph cg;
    const Expression m = parameter(cg, w), x = parameter(cg, v), loss = squared_norm(m * x);
    cg.forward(loss);
    write();
    const Floats before = w.p.unexposed()->read(VPPS_VALUES);
    cg.backward(loss);
    CHECK(as_vector(m.value()) == (Floats{1, 2, 3, 4}));
    CHECK(v.p.unexposed()->read(VPPS_GRADIENT) == (Floats{-12, -28}));
    trainer.update();
    const Floats gradient = {-4, -4, 4, 4}, after = w.p.unexposed()->read(VPPS_VALUES);
    for (size_t i = 0; i < 4; ++i)
      CHECK(after[i] == before[i] - gradient[i]);
  }
}

TEST(the_norm_is_that_of_all_rows_with_a_gradient) {
  ParameterCollection model;
  LookupParameter table = model.add_lookup_parameters(5000, {100}, ParameterInitConst(1));
  Parameter w = model.add_parameters({11}, ParameterInitConst(1));
  CHECK(model.gradient_l2_norm() == 0);
  auto norm = [&](const std::vector<Expression> &terms) {
    terms[0].pg->backward(sum(terms));
    const float n = model.gradient_l2_norm();
    model.reset_gradient();
    return n;
  };
  for (bool exposed : {false, true}) {
    ComputationGraph cg;
    const Expression row = sum_elems(lookup(cg, table, 4999u)),
                     some = sum_elems(lookup(cg, table, 7u));
    CHECK(norm({row, some * 2.f}) == std::sqrt(500.f));
    CHECK(norm({row, sum_elems(parameter(cg, w))}) == std::sqrt(111.f));
    CHECK(norm({sum_elems(parameter(cg, table))}) == std::sqrt(500000.f));
    if (!exposed)
      table.get_storage();
  }
}

TEST(pointers_hold_while_parameters_are_added) {
  ParameterCollection model;
  LookupParameter table = model.add_lookup_parameters(4, {2}, ParameterInitConst(4));
  Tensor row = table.p->values[3];
  for (int i = 0; i < 20; ++i)
    model.add_lookup_parameters(1000, {100}, ParameterInitConst(1));
  table.initialize(3, {8, 9});
  CHECK(as_vector(row) == (Floats{8, 9}));
}

// Row by row, with the table exposed: as long as writing it takes, not comparing it every time.
TEST(rows_of_a_large_table_are_set_fast) {
  ParameterCollection model;
  const unsigned rows = 18280, n = 256;
  LookupParameter table = model.add_lookup_parameters(rows, {n}, ParameterInitConst(0));
  CHECK(table.p->values.size() == rows);
  auto start = std::chrono::steady_clock::now();
  std::chrono::duration<double> took(0);
  for (unsigned i = 0; i < rows && took.count() < 5; ++i) {
    table.initialize(i, Floats(n, i));
    took = std::chrono::steady_clock::now() - start;
  }
  std::cout << rows << " rows of " << n << " set in " << took.count() << " s\n";
  CHECK(took.count() < 5 && table.p->values[rows - 1].v[n - 1] == rows - 1);
  CHECK(table.p->read(VPPS_VALUES)[7 * n] == 7);
}

int main(int argc, char **argv) {
  dynet::initialize(argc, argv);
  return tests::run_tests();
}
