// The table of expression functions. A row shows how the function is called.
#include "functions.h"

#include <map>
#include <stdexcept>

using namespace dynet;

const unsigned *call::pointer(const std::string &name) {
  index = r.natural(r.has(name + "_at_build") ? name + "_at_build" : name);
  changes.push_back([this, name] { index = r.natural(name); });
  return &index;
}

const std::vector<unsigned> *call::list_pointer(const std::string &name) {
  indices = r.list(r.has(name + "_at_build") ? name + "_at_build" : name);
  changes.push_back([this, name] { indices = r.list(name); });
  return &indices;
}

namespace {

Dim dim_of(const call &c) {
  const std::vector<unsigned> d = c.r.list("d");
  return Dim(std::vector<long>(d.begin(), d.end()), c.r.natural("d_batch"));
}

GradientMode gradient_mode(const call &c) {
  return c.r.word("gradient_mode") == "zero_gradient" ? zero_gradient : straight_through_gradient;
}

bool is_list(const call &c, const char *name) { return c.r.attribute(name)->key == "list"; }

bool by_pointer(const call &c) {
  const std::string form = c.r.word("overload");
  return form == "ptr" || form == "vector_ptr";
}

// Calls f with the attribute, which is a number, a list, or a pointer to one of them.
#define INDEXED(name, f)                                                                           \
  [](call &c) -> Expression {                                                                      \
    if (by_pointer(c)) {                                                                           \
      if (is_list(c, name)) {                                                                      \
        const std::vector<unsigned> *v = c.list_pointer(name);                                     \
        return f;                                                                                  \
      }                                                                                            \
      const unsigned *v = c.pointer(name);                                                         \
      return f;                                                                                    \
    }                                                                                              \
    if (is_list(c, name)) {                                                                        \
      const std::vector<unsigned> v = c.r.list(name);                                              \
      return f;                                                                                    \
    }                                                                                              \
    const unsigned v = c.r.natural(name);                                                          \
    return f;                                                                                      \
  }
// The same of an attribute that is always a list, or always a number.
#define LISTED(name, f)                                                                            \
  [](call &c) -> Expression {                                                                      \
    if (by_pointer(c)) {                                                                           \
      const std::vector<unsigned> *v = c.list_pointer(name);                                       \
      return f;                                                                                    \
    }                                                                                              \
    const std::vector<unsigned> v = c.r.list(name);                                                \
    return f;                                                                                      \
  }
#define NUMBERED(name, f)                                                                          \
  [](call &c) -> Expression {                                                                      \
    if (by_pointer(c)) {                                                                           \
      const unsigned *v = c.pointer(name);                                                         \
      return f;                                                                                    \
    }                                                                                              \
    const unsigned v = c.r.natural(name);                                                          \
    return f;                                                                                      \
  }
#define CALL(expression) [](call &c) -> Expression { return expression; }

Expression call_input(call &c) {
  const std::string form = c.r.word("overload");
  if (form == "scalar")
    return input(c.cg, c.r.number("s"));
  if (form == "scalar_ptr") {
    c.scalar = c.r.number("s_at_build");
    c.changes.push_back([&c] { c.scalar = c.r.number("s"); });
    return input(c.cg, &c.scalar);
  }
  const std::vector<float> data = c.r.numbers("data");
  if (form == "sparse")
    return input(c.cg, dim_of(c), c.r.list("ids"), data, c.r.number("defdata"));
  if (form == "vector_ptr") {
    c.data.assign(data.size(), 0);
    c.changes.push_back([&c, data] { c.data = data; });
    return input(c.cg, dim_of(c), &c.data);
  }
  return input(c.cg, dim_of(c), data);
}

Expression call_parameter(call &c) {
  if (c.takes_table)
    return parameter(c.cg, c.table);
  if (c.r.name == "parameter/mat_used_twice") {
    const Expression p = parameter(c.cg, c.parameter);
    return p + 2.f * parameter(c.cg, c.parameter);
  }
  return parameter(c.cg, c.parameter);
}

Expression call_lookup(call &c) {
  if (c.r.name == "lookup/two_uses") {
    const std::vector<unsigned> rows = c.r.list("indices");
    const Expression a = lookup(c.cg, c.table, rows[0]), b = lookup(c.cg, c.table, rows[1]);
    return a + cmult(b, lookup(c.cg, c.table, rows[0]));
  }
  if (c.r.has("index")) {
    if (by_pointer(c))
      return lookup(c.cg, c.table, c.pointer("index"));
    return lookup(c.cg, c.table, c.r.natural("index"));
  }
  if (by_pointer(c))
    return lookup(c.cg, c.table, c.list_pointer("indices"));
  return lookup(c.cg, c.table, c.r.list("indices"));
}

Expression call_const_lookup(call &c) {
  if (c.r.has("index")) {
    if (by_pointer(c))
      return const_lookup(c.cg, c.table, c.pointer("index"));
    return const_lookup(c.cg, c.table, c.r.natural("index"));
  }
  if (by_pointer(c))
    return const_lookup(c.cg, c.table, c.list_pointer("indices"));
  return const_lookup(c.cg, c.table, c.r.list("indices"));
}

Expression call_hinge(call &c) {
  const float m = c.r.number("m");
  if (c.r.has("index")) {
    if (by_pointer(c))
      return hinge(c.x[0], c.pointer("index"), m);
    return hinge(c.x[0], c.r.natural("index"), m);
  }
  if (by_pointer(c))
    return hinge(c.x[0], c.list_pointer("indices"), m);
  return hinge(c.x[0], c.r.list("indices"), m);
}

// One list for each batch element: how many entries it has, and these.
std::vector<std::vector<unsigned>> lists_of(const std::vector<unsigned> &flat) {
  std::vector<std::vector<unsigned>> lists;
  for (size_t at = 0; at < flat.size(); at += 1 + flat[at])
    lists.emplace_back(flat.begin() + long(at) + 1, flat.begin() + long(at + 1 + flat[at]));
  return lists;
}

Expression call_hinge_dim(call &c) {
  const unsigned d = c.r.natural("d");
  const float m = c.r.number("m");
  const std::string form = c.r.word("overload");
  if (form == "vector_of_vectors")
    return hinge_dim(c.x[0], lists_of(c.r.list("indices")), d, m);
  if (form == "vector_of_vectors_ptr") {
    c.lists = lists_of(c.r.list("indices"));
    for (std::vector<unsigned> &v : c.lists) // another label first
      v.assign(v.size(), 0);
    c.changes.push_back([&c] {
      const std::vector<std::vector<unsigned>> lists = lists_of(c.r.list("indices"));
      for (size_t k = 0; k < lists.size(); k++)
        c.lists[k] = lists[k];
    });
    return hinge_dim(c.x[0], &c.lists, d, m);
  }
  if (by_pointer(c))
    return hinge_dim(c.x[0], c.list_pointer("indices"), d, m);
  return hinge_dim(c.x[0], c.r.list("indices"), d, m);
}

std::vector<int> integers(const std::vector<unsigned> &v) {
  return std::vector<int>(v.begin(), v.end());
}

Expression call_strided_select(call &c) {
  return strided_select(c.x[0], integers(c.r.list("strides")), integers(c.r.list("from")),
                        integers(c.r.list("to")));
}

Expression call_one_hot(call &c) {
  if (c.r.has("ids"))
    return one_hot(c.cg, c.r.natural("d"), c.r.list("ids"));
  return one_hot(c.cg, c.r.natural("d"), c.r.natural("idx"));
}

Expression call_log_softmax(call &c) {
  if (c.r.word("overload") == "restricted")
    return log_softmax(c.x[0], c.r.list("restriction"));
  return log_softmax(c.x[0]);
}

// The arguments before the last n: the functions that take a list first.
std::vector<Expression> before_last(const call &c, size_t n) {
  return std::vector<Expression>(c.x.begin(), c.x.end() - long(n));
}

// Small expressions, spelled out.
Expression call_composition(call &c) {
  const std::vector<Expression> &x = c.x;
  const std::string name = c.r.name.substr(c.r.name.find('/') + 1);
  if (name == "shared_subexpr") {
    const Expression h = tanh(x[0] + x[1]);
    return cmult(h, h) + h + x[0];
  }
  if (name == "mlp_loss")
    return pickneglogsoftmax(affine_transform({x[1], x[0], x[2]}), 1u);
  if (name == "attention")
    return x[0] * softmax(transpose(x[0]) * x[1]);
  if (name == "batched_params")
    return rectify(x[0] * x[1] + 0.5f);
  if (name == "tree_step")
    return logistic(affine_transform({x[3], x[2], concatenate({x[0], x[1]})}));
  throw std::runtime_error("composition " + name + " is unknown: add it to functions.cc");
}

const std::map<std::string, function> &table() {
  static const std::map<std::string, function> functions = {
      // leaves
      {"input", call_input},
      {"parameter", call_parameter},
      {"const_parameter",
       CALL(c.takes_table ? const_parameter(c.cg, c.table) : const_parameter(c.cg, c.parameter))},
      {"lookup", call_lookup},
      {"const_lookup", call_const_lookup},
      {"one_hot", call_one_hot},
      {"zeros", CALL(zeros(c.cg, dim_of(c)))},
      {"zeroes", CALL(zeroes(c.cg, dim_of(c)))},
      {"ones", CALL(ones(c.cg, dim_of(c)))},
      {"constant", CALL(constant(c.cg, dim_of(c), c.r.number("val")))},
      {"random_normal",
       CALL(random_normal(c.cg, dim_of(c), c.r.number("mean"), c.r.number("stddev")))},
      {"random_bernoulli",
       CALL(random_bernoulli(c.cg, dim_of(c), c.r.number("p"), c.r.number("scale")))},
      {"random_gumbel", CALL(random_gumbel(c.cg, dim_of(c), c.r.number("mu"), c.r.number("beta")))},
      // operators
      {"operator-(x)", CALL(-c.x[0])},
      {"operator+(x,y)", CALL(c.x[0] + c.x[1])},
      {"operator+(x,c)", CALL(c.x[0] + c.r.number("c"))},
      {"operator+(c,x)", CALL(c.r.number("c") + c.x[0])},
      {"operator-(x,y)", CALL(c.x[0] - c.x[1])},
      {"operator-(x,c)", CALL(c.x[0] - c.r.number("c"))},
      {"operator-(c,x)", CALL(c.r.number("c") - c.x[0])},
      {"operator*(x,y)", CALL(c.x[0] * c.x[1])},
      {"operator*(x,c)", CALL(c.x[0] * c.r.number("c"))},
      {"operator*(c,x)", CALL(c.r.number("c") * c.x[0])},
      {"operator/(x,y)", CALL(c.x[0] / c.x[1])},
      {"operator/(x,c)", CALL(c.x[0] / c.r.number("c"))},
      // one argument
      {"abs", CALL(abs(c.x[0]))},
      {"exp", CALL(exp(c.x[0]))},
      {"l2_norm", CALL(l2_norm(c.x[0]))},
      {"log", CALL(log(c.x[0]))},
      {"logistic", CALL(logistic(c.x[0]))},
      {"nobackprop", CALL(c.r.name == "nobackprop/mixed" ? nobackprop(c.x[0]) + 2.f * c.x[0]
                                                         : nobackprop(c.x[0]))},
      {"rectify", CALL(rectify(c.x[0]))},
      {"sqrt", CALL(sqrt(c.x[0]))},
      {"square", CALL(square(c.x[0]))},
      {"squared_norm", CALL(squared_norm(c.x[0]))},
      {"tanh", CALL(tanh(c.x[0]))},
      {"cube", CALL(cube(c.x[0]))},
      {"sin", CALL(sin(c.x[0]))},
      {"cos", CALL(cos(c.x[0]))},
      {"tan", CALL(tan(c.x[0]))},
      {"asin", CALL(asin(c.x[0]))},
      {"acos", CALL(acos(c.x[0]))},
      {"atan", CALL(atan(c.x[0]))},
      {"sinh", CALL(sinh(c.x[0]))},
      {"cosh", CALL(cosh(c.x[0]))},
      {"asinh", CALL(asinh(c.x[0]))},
      {"acosh", CALL(acosh(c.x[0]))},
      {"atanh", CALL(atanh(c.x[0]))},
      {"erf", CALL(erf(c.x[0]))},
      {"lgamma", CALL(lgamma(c.x[0]))},
      {"log_sigmoid", CALL(log_sigmoid(c.x[0]))},
      {"selu", CALL(selu(c.x[0]))},
      {"softsign", CALL(softsign(c.x[0]))},
      {"flip_gradient", CALL(flip_gradient(c.x[0]))},
      {"elu", CALL(elu(c.x[0], c.r.number("alpha")))},
      {"silu", CALL(silu(c.x[0], c.r.number("beta")))},
      {"round", CALL(round(c.x[0], gradient_mode(c)))},
      {"ceil", CALL(ceil(c.x[0], gradient_mode(c)))},
      {"floor", CALL(floor(c.x[0], gradient_mode(c)))},
      {"scale_gradient", CALL(scale_gradient(c.x[0], c.r.number("lambd")))},
      {"log_softmax", call_log_softmax},
      {"softmax", CALL(softmax(c.x[0], c.r.natural("d")))},
      {"dropout", CALL(dropout(c.x[0], c.r.number("p")))},
      {"noise", CALL(noise(c.x[0], c.r.number("stddev")))},
      // sums and means
      {"sum_elems", CALL(sum_elems(c.x[0]))},
      {"sum_batches", CALL(sum_batches(c.x[0]))},
      {"sum_rows", CALL(sum_rows(c.x[0]))},
      {"sum_cols", CALL(sum_cols(c.x[0]))},
      {"sum_dim", CALL(sum_dim(c.x[0], c.r.list("dims"), c.r.natural("b") != 0))},
      {"mean_elems", CALL(mean_elems(c.x[0]))},
      {"mean_batches", CALL(mean_batches(c.x[0]))},
      {"mean_dim",
       CALL(mean_dim(c.x[0], c.r.list("dims"), c.r.natural("b") != 0, c.r.natural("n")))},
      {"average_cols", CALL(average_cols(c.x[0]))},
      {"moment_elems", CALL(moment_elems(c.x[0], c.r.natural("r")))},
      {"moment_batches", CALL(moment_batches(c.x[0], c.r.natural("r")))},
      {"moment_dim", CALL(moment_dim(c.x[0], c.r.list("dims"), c.r.natural("r"),
                                     c.r.natural("b") != 0, c.r.natural("n")))},
      {"std_elems", CALL(std_elems(c.x[0]))},
      {"std_batches", CALL(std_batches(c.x[0]))},
      {"std_dim", CALL(std_dim(c.x[0], c.r.list("dims"), c.r.natural("b") != 0, c.r.natural("n")))},
      {"cumsum", CALL(cumsum(c.x[0], c.r.natural("d")))},
      {"max_dim", CALL(max_dim(c.x[0], c.r.natural("d")))},
      {"min_dim", CALL(min_dim(c.x[0], c.r.natural("d")))},
      {"logsumexp_dim", CALL(logsumexp_dim(c.x[0], c.r.natural("d")))},
      {"argmax", CALL(argmax(c.x[0], gradient_mode(c)))},
      {"inverse", CALL(inverse(c.x[0]))},
      {"logdet", CALL(logdet(c.x[0]))},
      {"sparsemax", CALL(sparsemax(c.x[0]))},
      {"dropout_dim", CALL(dropout_dim(c.x[0], c.r.natural("d"), c.r.number("p")))},
      {"dropout_batch", CALL(dropout_batch(c.x[0], c.r.number("p")))},
      {"block_dropout", CALL(block_dropout(c.x[0], c.r.number("p")))},
      {"layer_norm", CALL(layer_norm(c.x[0], c.x[1], c.x[2]))},
      {"kmax_pooling", CALL(kmax_pooling(c.x[0], c.r.natural("k"), c.r.natural("d")))},
      {"kmh_ngram", CALL(kmh_ngram(c.x[0], c.r.natural("n")))},
      {"fold_rows", CALL(fold_rows(c.x[0], c.r.natural("nrows")))},
      {"conv2d",
       CALL(c.x.size() > 2
                ? conv2d(c.x[0], c.x[1], c.x[2], c.r.list("stride"), c.r.natural("is_valid") != 0)
                : conv2d(c.x[0], c.x[1], c.r.list("stride"), c.r.natural("is_valid") != 0))},
      {"maxpooling2d", CALL(maxpooling2d(c.x[0], c.r.list("ksize"), c.r.list("stride"),
                                         c.r.natural("is_valid") != 0))},
      // two arguments
      {"circ_conv", CALL(circ_conv(c.x[0], c.x[1]))},
      {"circ_corr", CALL(circ_corr(c.x[0], c.x[1]))},
      {"l1_distance", CALL(l1_distance(c.x[0], c.x[1]))},
      {"trace_of_product", CALL(trace_of_product(c.x[0], c.x[1]))},
      {"weight_norm", CALL(weight_norm(c.x[0], c.x[1]))},
      {"constrained_softmax", CALL(constrained_softmax(c.x[0], c.x[1]))},
      {"filter1d_narrow", CALL(filter1d_narrow(c.x[0], c.x[1]))},
      {"contract3d_1d", CALL(c.x.size() > 2 ? contract3d_1d(c.x[0], c.x[1], c.x[2])
                                            : contract3d_1d(c.x[0], c.x[1]))},
      {"contract3d_1d_1d", CALL(c.x.size() > 3 ? contract3d_1d_1d(c.x[0], c.x[1], c.x[2], c.x[3])
                                               : contract3d_1d_1d(c.x[0], c.x[1], c.x[2]))},
      {"huber_distance", CALL(c.r.has("c") ? huber_distance(c.x[0], c.x[1], c.r.number("c"))
                                           : huber_distance(c.x[0], c.x[1]))},
      {"pairwise_rank_loss", CALL(c.r.has("m") ? pairwise_rank_loss(c.x[0], c.x[1], c.r.number("m"))
                                               : pairwise_rank_loss(c.x[0], c.x[1]))},
      {"binary_log_loss", CALL(binary_log_loss(c.x[0], c.x[1]))},
      {"cdiv", CALL(cdiv(c.x[0], c.x[1]))},
      {"cmult", CALL(cmult(c.x[0], c.x[1]))},
      {"colwise_add", CALL(colwise_add(c.x[0], c.x[1]))},
      {"dot_product", CALL(dot_product(c.x[0], c.x[1]))},
      {"max", CALL(c.r.has("overload") ? max(c.x) : max(c.x[0], c.x[1]))},
      {"min", CALL(min(c.x[0], c.x[1]))},
      {"pow", CALL(pow(c.x[0], c.x[1]))},
      {"squared_distance", CALL(squared_distance(c.x[0], c.x[1]))},
      // lists
      {"affine_transform", CALL(affine_transform(c.x))},
      {"average", CALL(average(c.x))},
      {"sum", CALL(c.r.name == "sum/same_expr_twice" ? sum({c.x[0], c.x[0], c.x[0]}) : sum(c.x))},
      {"concatenate", CALL(c.r.name == "concatenate/same_expr_twice"
                               ? concatenate({c.x[0], c.x[0]}, c.r.natural("d"))
                               : concatenate(c.x, c.r.natural("d")))},
      {"logsumexp", CALL(logsumexp(c.x))},
      {"concatenate_cols", CALL(concatenate_cols(c.x))},
      {"concatenate_to_batch", CALL(concatenate_to_batch(c.x))},
      // shapes and selections
      {"reshape", CALL(reshape(c.x[0], dim_of(c)))},
      {"transpose", CALL(transpose(c.x[0], c.r.list("dims")))},
      {"pick", INDEXED("v", pick(c.x[0], v, c.r.natural("d")))},
      {"pick_range",
       CALL(pick_range(c.x[0], c.r.natural("s"), c.r.natural("e"), c.r.natural("d")))},
      {"pickrange", CALL(pickrange(c.x[0], c.r.natural("s"), c.r.natural("e")))},
      {"pick_batch_elem", CALL(by_pointer(c) ? pick_batch_elem(c.x[0], c.pointer("v"))
                                             : pick_batch_elem(c.x[0], c.r.natural("v")))},
      {"pick_batch_elems", CALL(by_pointer(c) ? pick_batch_elems(c.x[0], c.list_pointer("v"))
                                              : pick_batch_elems(c.x[0], c.r.list("v")))},
      {"select_rows", LISTED("rows", select_rows(c.x[0], v))},
      {"select_cols", LISTED("cols", select_cols(c.x[0], v))},
      {"strided_select", call_strided_select},
      // losses
      {"hinge_dim", call_hinge_dim},
      {"poisson_loss", NUMBERED("y", poisson_loss(c.x[0], v))},
      {"sparsemax_loss", LISTED("target_support", sparsemax_loss(c.x[0], v))},
      {"hinge", call_hinge},
      {"pickneglogsoftmax", INDEXED("v", pickneglogsoftmax(c.x[0], v))},
      // LSTM steps
      {"vanilla_lstm_gates", CALL(vanilla_lstm_gates(c.x[0], c.x[1], c.x[2], c.x[3], c.x[4]))},
      {"vanilla_lstm_gates_concat",
       CALL(vanilla_lstm_gates_concat(before_last(c, 4), c.x.end()[-4], c.x.end()[-3],
                                      c.x.end()[-2], c.x.end()[-1]))},
      {"vanilla_lstm_gates_dropout",
       CALL(vanilla_lstm_gates_dropout(c.x[0], c.x[1], c.x[2], c.x[3], c.x[4], c.x[5], c.x[6]))},
      {"vanilla_lstm_gates_dropout_concat",
       CALL(vanilla_lstm_gates_dropout_concat(before_last(c, 6), c.x.end()[-6], c.x.end()[-5],
                                              c.x.end()[-4], c.x.end()[-3], c.x.end()[-2],
                                              c.x.end()[-1]))},
      {"vanilla_lstm_c", CALL(vanilla_lstm_c(c.x[0], c.x[1]))},
      {"vanilla_lstm_h", CALL(vanilla_lstm_h(c.x[0], c.x[1]))},
      {"composition", call_composition},
  };
  return functions;
}

} // namespace

function find_function(const record &r) {
  const auto f = table().find(r.fn);
  return f == table().end() ? nullptr : f->second;
}
