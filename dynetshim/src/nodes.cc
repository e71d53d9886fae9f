// The nodes of a graph as a program looks at them: recorded words, read back, and DyNet's text for
// each operation.
#include <cstring>
#include <fstream>
#include <iostream>
#include <locale>
#include <sstream>
#include <stdexcept>

#include "node_classes.h"
#include "recorder.h"
#include "shape.h"

namespace dynet {

namespace {

// An operation's text. $0 is argument 0, $* and $, all arguments with commas, $+ all with plus
// signs, $D the node's dim, #0 attribute word 0 as a float, @0 as a number, {0 as the axes of a bit
// mask, <0 as a list of axes in four bits each, %01 as input words from attribute 0 on, as many as
// attribute 1 says; %0b: as many as the batch; ! instead of %: without brackets; ~0: one input word
// as a float. ?2...? is there if argument 2 is.
struct Form {
  const char *name, *text;
};

const Form forms[] = {
    {"InputNode", "constant($D)"},
    {"ScalarInputNode", "scalar_constant(~0)"},
    {"SparseInputNode", "sparse_constant($D)"},
    {"Constant", "constant($D,#0)"},
    {"ParameterNode", "parameters($D) @ @0"},
    {"ConstParameterNode", "const_parameters($D) @ @0"},
    {"LookupNode", "lookup_parameters(x=%1b --> $D) @ @0"},
    {"ConstLookupNode", "lookup_parameters(x=%1b --> $D) @ @0"},
    {"RandomNormal", "random_normal($D)"},
    {"RandomBernoulli", "random_bernoulli($D, #0)"},
    {"RandomUniform", "random_uniform($D, #0, #1)"},
    {"RandomGumbel", "random_gumbel($D, #0, #1)"},
    {"Tanh", "tanh($0)"},
    {"LogisticSigmoid", "\\sigma($0)"},
    {"Rectify", "ReLU($0)"},
    {"Exp", "exp($0)"},
    {"Log", "log($0)"},
    {"Sqrt", "sqrt($0)"},
    {"Square", "square($0)"},
    {"Abs", "abs($0)"},
    {"Negate", "-$0"},
    {"ConstantPlusX", "#0 + $0"},
    {"ConstantMinusX", "#0 - $0"},
    {"ConstScalarMultiply", "$0 * #0"},
    {"Dropout", "dropout($0,p=#0)"},
    {"GaussianNoise", "$0 + N(0,#0)"},
    {"NoBackprop", "nobackprop($0)"},
    {"Erf", "erf($0)"},
    {"LogGamma", "lgamma($0)"},
    {"LogSigmoid", "log_sigmoid($0)"},
    {"Cube", "cube($0)"},
    {"ExponentialLinearUnit", "ELU($0, lambda=#0, alpha=#1)"},
    {"SigmoidLinearUnit", "$0*\\sigma($0*beta), beta=#0)"},
    {"SoftSign", "softsign($0)"},
    {"Round", "round($0)"},
    {"Ceil", "ceil($0)"},
    {"Floor", "floor($0)"},
    {"ScaleGradient", "flip_gradient($0)"},
    {"Sin", "sin($0)"},
    {"Cos", "cos($0)"},
    {"Tan", "tan($0)"},
    {"Asin", "asin($0)"},
    {"Acos", "acos($0)"},
    {"Atan", "atan($0)"},
    {"Sinh", "sinh($0)"},
    {"Cosh", "cosh($0)"},
    {"Asinh", "asinh($0)"},
    {"Acosh", "acosh($0)"},
    {"Atanh", "atanh($0)"},
    {"DropoutDim", "dropout_dim($0,p=#1)"},
    {"DropoutBatch", "dropout_batch($0,p=#0)"},
    {"BlockDropout", "block_dropout($0,dropout_probability=#0)"},
    {"Reshape", "reshape($0 --> $D)"},
    {"ToDevice", "copy $0 between devices"},
    {"CwiseSum", "$+"},
    {"CwiseMultiply", "$0 \\cdot $1"},
    {"CwiseQuotient", "$0 / $1"},
    {"Pow", "$0 ** $1"},
    {"Min", "min{$0, $1}"},
    {"Max", "max{$0, $1}"},
    {"Sum", "$+"},
    {"Average", "average($*)"},
    {"AddVectorToAllColumns", "colwise_add($0, $1)"},
    {"SumElements", "sum_elems( $0 )"},
    {"SumDimension", "sum_dim(expression=$0,{0)"},
    {"MomentDimension", "moment_dim(expression=$0,{0), order=@1"},
    {"StdDimension", "std_dim(expression=$0,{0)"},
    {"LogSumExpDimension", "logsumexp_dim($0, @0)"},
    {"CumulativeSum", "cumsum(expression=$0,@0)"},
    {"MaxDimension", "max_dim($0, reduced_dim=@0)"},
    {"MinDimension", "min_dim($0, reduced_dim=@0)"},
    {"KMaxPooling", "kmaxpool($0, k=@0, d=@1)"},
    {"FoldRows", "fold_rows($0, nrows=@0)"},
    {"WeightNormalization", "weight_norm($0, $1)"},
    {"TraceOfProduct", "Tr($0 * $1^T)"},
    {"MatrixInverse", "inverse($0)"},
    {"LogDet", "logdet($0)"},
    {"InnerProduct3D_1D", "dot($0,$1)?2 + $2?"},
    {"InnerProduct3D_1D_1D", "dotdot($0,$1,$2)?3 + $3?"},
    {"CircularConvolution", "circ_conv($0, $1)"},
    {"CircularCorrelation", "circ_corr($0, $1)"},
    {"Filter1DNarrow", "conv1d_narrow($0, f=$1)"},
    {"KMHNGram", "kmh-ngram($0)"},
    {"Conv2D", "conv2d($0, f=$1?2, b=$2?)"},
    {"MaxPooling2D", "maxpooling2d($0)"},
    {"DotProduct", "$0^T . $1"},
    {"SquaredEuclideanDistance", "|| $0 - $1 ||^2"},
    {"L1Distance", "|| $0 - $1 ||_1"},
    {"HuberDistance", "|| $0 - $1 ||_H(#0)"},
    {"PairwiseRankLoss", "max(0, #0 - $0 + $1)"},
    {"PoissonRegressionLoss", "-log Poisson(y; lambda=\\exp$0)"},
    {"SquaredNorm", "|| $0 ||^2"},
    {"L2Norm", "|| $0 ||"},
    {"MatrixMultiply", "$0 * $1"},
    {"Transpose", "transpose($0, <0)"},
    {"Concatenate", "concat({$,}, @0)"},
    {"ConcatenateToBatch", "concat_batch_elems($,)"},
    {"PickElement", "pick($0,%12, @0)"},
    {"PickRange", "slice($0,@0:@1, dim=@2)"},
    {"PickBatchElements", "pick_batch_elems($0,%01)"},
    {"SelectRows", "select_rows($0, {rsize=@1})"},
    {"SelectCols", "select_cols($0, {csize=@1})"},
    {"Softmax", "softmax($0)"},
    {"LogSoftmax", "log_softmax($0)"},
    {"PickNegLogSoftmax", "pickneglogsoftmax($0)_{!0b}"},
    {"Hinge", "hinge($0, pe=%1b, m=#0)"},
    {"HingeDim", "hinge_dim($0, pe=[!23], d=@1, m=#0)"},
    {"Sparsemax", "sparsemax($0)"},
    {"SparsemaxLoss", "sparsemax($0, q)"},
    {"ConstrainedSoftmax", "constrained_softmax($0)"},
    {"BinaryLogLoss", "binary_log_loss($0, $1)"},
    {"RestrictedLogSoftmax", "r_log_softmax($0)"},
    {"VanillaLSTMGates", "vanilla_lstm_gates($0, $1, $2, $3, $4)"},
    {"VanillaLSTMGatesDropout", "vanilla_lstm_gates($0, $1, $2, $3, $4)"},
    {"VanillaLSTMC", "vanilla_lstm_c($0, $1)"},
    {"VanillaLSTMH", "vanilla_lstm_h($0, $1)"},
};

// Marks an argument in a text: no text of an operation has this character.
const char mark = '\1';

std::string argument(size_t k) { return mark + std::to_string(k) + mark; }

std::string arguments(size_t count, const char *between) {
  std::string text;
  for (size_t k = 0; k < count; ++k)
    text += (k ? between : "") + argument(k);
  return text;
}

float as_float(uint32_t word) {
  float x;
  std::memcpy(&x, &word, sizeof x);
  return x;
}

// Sums of products: v0 + v1 * v2 + ...
std::string affine(size_t count) {
  std::string text = argument(0);
  for (size_t k = 1; k + 1 < count; k += 2)
    text += " + " + argument(k) + " * " + argument(k + 1);
  return text;
}

class Writer {
public:
  Writer(const Recorder::Read &r, const Dim &dim) : r_(r), dim_(dim) {
    out_.imbue(std::locale::classic());
  }

  std::string write(const std::string &name) {
    if (name == "AffineTransform")
      return affine(r_.nargs);
    if (name == "LogSumExp")
      return "log(exp " + arguments(r_.nargs, " + exp ") + ")";
    if (name == "Argmax") {
      out_ << (as_float(attribute('0')) == 0 ? "argmax(" : "straight_through(") << argument(0)
           << ")_{" << dim_ << '}';
      return out_.str();
    }
    const char *form = nullptr;
    for (const Form &f : forms)
      if (name == f.name)
        form = f.text;
    if (form == nullptr)
      return name + "(" + arguments(r_.nargs, ", ") + ")";
    for (const char *c = form; *c; ++c)
      if (std::strchr("$#@%!~<?", *c) || (*c == '{' && c[1] >= '0' && c[1] <= '9'))
        c = item(c);
      else
        out_ << *c;
    return out_.str();
  }

private:
  uint32_t attribute(char digit) const { return r_.attributes[digit - '0']; }

  // Writes what begins at c, and returns its last character. A character that stands for itself,
  // such as the @ before an address, is written.
  const char *item(const char *c) {
    const char next = c[1];
    if (*c == '$' && next == '*')
      out_ << arguments(r_.nargs, ", ");
    else if (*c == '$' && next == ',')
      out_ << arguments(r_.nargs, ",");
    else if (*c == '$' && next == '+')
      out_ << arguments(r_.nargs, " + ");
    else if (*c == '$' && next == 'D')
      out_ << dim_;
    else if (*c == '?')
      return optional(c);
    else if (next < '0' || next > '9')
      return out_ << *c, c;
    else if (*c == '$')
      out_ << argument(static_cast<size_t>(next - '0'));
    else if (*c == '#')
      out_ << as_float(attribute(next));
    else if (*c == '@')
      out_ << attribute(next);
    else if (*c == '~')
      out_ << as_float(recorder.inputs[attribute(next)]);
    else if (*c == '{')
      axes(attribute(next));
    else if (*c == '<')
      order(attribute(next));
    else {
      words(attribute(next), c[2] == 'b' ? dim_.bd : attribute(c[2]), *c == '%');
      return c + 2;
    }
    return c + 1;
  }

  // What is between question marks, of which the first has a number.
  const char *optional(const char *c) const {
    if (c[1] < '0' || c[1] > '9')
      return c;
    return r_.nargs > static_cast<uint32_t>(c[1] - '0') ? c + 1 : std::strchr(c + 1, '?');
  }

  // Of no axes: "}", as in DyNet.
  void axes(uint32_t mask) {
    for (unsigned axis = 0, count = 0; axis < DYNET_MAX_TENSOR_DIM; ++axis)
      if (mask >> axis & 1)
        out_ << (count++ ? ',' : '{') << axis;
    out_ << '}';
  }

  void order(uint32_t axes) {
    for (unsigned i = 0; i < dim_.nd; ++i)
      out_ << (i ? ',' : '{') << (axes >> 4 * i & 15);
    out_ << '}';
  }

  void words(uint32_t from, uint32_t count, bool brackets) {
    brackets = brackets && count != 1;
    if (brackets)
      out_ << '[';
    for (uint32_t k = 0; k < count && from + k < recorder.inputs.size(); ++k)
      out_ << (k ? "," : "") << recorder.inputs.data()[from + k];
    if (brackets)
      out_ << ']';
  }

  const Recorder::Read &r_;
  const Dim &dim_;
  std::ostringstream out_;
};

} // namespace

// ---- Node ------------------------------------------------------------------------

namespace {
void check_batch(const Node &node, const Tensor &fx) {
  if (fx.d.bd != 1 && !node.supports_multibatch())
    throw std::runtime_error("Node " + node.as_dummy_string() +
                             " does not support batching but got fed batched tensor: its class " +
                             node.name + " says so by supports_multibatch()");
}
} // namespace

std::string Node::as_dummy_string() const {
  std::vector<std::string> names;
  for (size_t k = 0; k < args.size(); ++k)
    names.push_back("x" + std::to_string(k));
  return as_string(names);
}

void Node::forward(const std::vector<const Tensor *> &xs, Tensor &fx) const {
  check_batch(*this, fx);
  forward_impl(xs, fx);
}

void Node::backward(const std::vector<const Tensor *> &xs, const Tensor &fx, const Tensor &dEdf,
                    unsigned i, Tensor &dEdxi) const {
  check_batch(*this, fx);
  backward_impl(xs, fx, dEdf, i, dEdxi);
}

std::string RecordedNode::as_string(const std::vector<std::string> &arg_names) const {
  if (arg_names.size() < args.size())
    throw std::invalid_argument("as_string: " + std::to_string(arg_names.size()) + " names for " +
                                std::to_string(args.size()) + " arguments");
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != mark) {
      out += text[at];
      continue;
    }
    const size_t end = text.find(mark, at + 1);
    out += arg_names[static_cast<size_t>(std::stoul(text.substr(at + 1, end - at - 1)))];
    at = end;
  }
  return out;
}

// ---- NodeList --------------------------------------------------------------------

struct NodeList::Read {
  std::vector<std::unique_ptr<RecordedNode>> nodes;
  std::vector<Node *> pointers; // of all, the program's own among them
  size_t at = 0;                // of the first word that was not read
  uint64_t rewinds = 0;
};

NodeList::NodeList() : read_(new Read) {}
NodeList::~NodeList() {}

size_t NodeList::size() const { return recorder.count(); }

Node *NodeList::at(size_t i) const {
  if (i >= recorder.count())
    throw std::invalid_argument("the graph has no node " + std::to_string(i));
  return all()[i];
}

const std::vector<Node *> &NodeList::all() const {
  Read &read = *read_;
  if (read.rewinds != recorder.rewinds) {
    read = Read();
    read.rewinds = recorder.rewinds;
  }
  while (read.pointers.size() < recorder.count()) {
    const Recorder::Read r = recorder.read(read.at);
    const uint32_t i = static_cast<uint32_t>(read.pointers.size());
    read.at = r.next;
    if (OwnNode *own = recorder.own_node(i)) {
      read.pointers.push_back(own->owner.get());
      continue;
    }
    const Place *place = recorder.place(i);
    const bool copy = place && place->copy;
    read.nodes.push_back(copy ? std::unique_ptr<RecordedNode>(new ToDevice) : make_node(r.op));
    RecordedNode &node = *read.nodes.back();
    node.dim = recorder.dim(i);
    node.args.assign(r.args, r.args + r.nargs);
    node.name = copy ? "ToDevice" : vpps_op_name(r.op);
    node.device = recorder.device(i);
    node.text = Writer(r, node.dim).write(node.name);
    node.set_cg(recorder.graph);
    read.pointers.push_back(&node);
  }
  return read.pointers;
}

void ComputationGraph::print_graphviz() const {
  std::cerr << "digraph G {\n  rankdir=LR;\n  nodesep=.05;\n";
  size_t i = 0;
  for (const Node *node : nodes) {
    std::vector<std::string> names;
    for (VariableIndex a : node->args)
      names.push_back("v" + std::to_string(a));
    std::cerr << "  N" << i << " [label=\"v" << i << " = " << node->as_string(names) << "\"];\n";
    for (VariableIndex a : node->args)
      std::cerr << "  N" << a << " -> N" << i << ";\n";
    ++i;
  }
  std::cerr << "}\n";
}

namespace {
void dump_tensor(std::ostream &out, const Tensor &t, bool nan_check_only) {
  if (nan_check_only)
    out << (t.is_valid() ? "valid" : "invalid");
  else
    out << '\n' << t;
  out << '\n';
}
} // namespace

void ComputationGraph::dump(const std::string &filename, bool show_values, bool show_gradients,
                            bool nan_check_only) {
  std::ostringstream out;
  if (nodes.empty())
    out << "(Computation graph is empty)\n";
  else
    incremental_forward(static_cast<VariableIndex>(nodes.size() - 1));
  for (VariableIndex i = 0; i + 1 < nodes.size(); ++i) {
    out << "Node " << i << '\n';
    if (show_values) {
      out << "Value: ";
      dump_tensor(out, get_value(i), nan_check_only);
    }
    if (show_gradients) {
      out << "Gradient: ";
      const Tensor *gradient = nullptr;
      try {
        gradient = &get_gradient(i);
      } catch (const std::runtime_error &) {
        out << "(not computed)\n";
      }
      if (gradient != nullptr)
        dump_tensor(out, *gradient, nan_check_only);
    }
  }
  if (filename.empty()) {
    std::cout << out.str() << std::flush;
    return;
  }
  std::ofstream file(filename.c_str());
  file << out.str();
  if (!file.flush())
    throw std::runtime_error("dump: cannot write " + filename);
}

} // namespace dynet
