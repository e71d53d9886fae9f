/// \file
/// LSTMs over trees. Nodes are added children first, and numbered from 0 on.
#ifndef DYNET_TREELSTM_H
#define DYNET_TREELSTM_H

#include <vector>

#include "dynet/lstm.h"

namespace dynet {

/// The interface of builders for trees. What only makes sense for sequences is std::runtime_error:
/// add_input() without children, back(), states, set_h(), set_s(), num_h0_components().
struct TreeLSTMBuilder : public RNNBuilder {
  Expression back() const override;
  std::vector<Expression> final_h() const override;
  std::vector<Expression> final_s() const override;
  std::vector<Expression> get_h(RNNPointer i) const override;
  std::vector<Expression> get_s(RNNPointer i) const override;
  unsigned num_h0_components() const override;
  void copy(const RNNBuilder &other) override;

  /// Adds node id with input x above the nodes children, which were added before, and returns its
  /// output. A child that was not added, or a negative id: std::invalid_argument.
  virtual Expression add_input(int id, std::vector<int> children, const Expression &x) = 0;
  /// Makes room for nodes 0 to num-1, so that they may be added in any order, children first.
  virtual void set_num_elements(int num) = 0;

protected:
  void new_graph_impl(ComputationGraph &cg, bool update) override = 0;
  void start_new_sequence_impl(const std::vector<Expression> &h_0) override = 0;
  Expression add_input_impl(int prev, const Expression &x) override;
  Expression set_h_impl(int prev, const std::vector<Expression> &h_new) override;
  Expression set_s_impl(int prev, const std::vector<Expression> &s_new) override;
};

/// A Tree-LSTM whose children have matrices of their own, by their position (Tai, Socher, Manning
/// 2015, section 3.2), and whose gates read the children's cells. For children j with states h_j
/// and c_j: i, o = logistic(Wx*x + sum Wh[j]*h_j + Wc[j]*c_j + b); f_k the same with matrices
/// [j][k], and 1 added; g = tanh(Wx*x + sum Wh[j]*h_j + b); c = sum f_k.c_k + i.g; h = o.tanh(c).
/// Children from N on have the matrices of child N-1.
struct NaryTreeLSTMBuilder : public TreeLSTMBuilder {
  /// A builder without layers, to be assigned to.
  NaryTreeLSTMBuilder();
  /// Makes the parameters of all layers in a subcollection of model. N: how many children have
  /// matrices of their own, above 0. input_dim: I, the rows of an input; hidden_dim: H, the rows of
  /// cells and outputs.
  explicit NaryTreeLSTMBuilder(unsigned N, unsigned layers, unsigned input_dim, unsigned hidden_dim,
                               ParameterCollection &model);

  Expression add_input(int id, std::vector<int> children, const Expression &x) override;
  void set_num_elements(int length) override;
  /// Shares the parameters and tables of other, of as many layers. DyNet shares parameters only.
  void copy(const RNNBuilder &other) override;
  ParameterCollection &get_parameter_collection() override { return local_model; }

  ParameterCollection local_model;                   ///< the parameters of all layers
  std::vector<std::vector<Parameter>> params;        ///< by layer: Wx {H,I} and b {H} of i, f, o, g
  std::vector<std::vector<LookupParameter>> lparams; ///< by layer: Wh of i, f, o, g; Wc of i, f, o
  std::vector<std::vector<Expression>> param_vars;   ///< by layer: params in the present graph
  /// [layer][table][row]: lparams in the present graph; empty where nothing has read the row
  std::vector<std::vector<std::vector<Expression>>> lparam_vars;
  std::vector<std::vector<Expression>> h; ///< by node and layer: hidden vectors {H}xB
  std::vector<std::vector<Expression>> c; ///< by node and layer: cells {H}xB
  bool has_initial_state;                 ///< whether start_new_sequence() was given a state
  std::vector<Expression> h0;             ///< by layer: that state's hidden vectors
  std::vector<Expression> c0;             ///< by layer: that state's cells
  unsigned layers;                        ///< the number of layers
  unsigned N;                             ///< how many children have matrices of their own

protected:
  void new_graph_impl(ComputationGraph &cg, bool update) override;
  /// As in DyNet a state given here leaves a leaf's gates as they are without one.
  void start_new_sequence_impl(const std::vector<Expression> &h_0) override;
  /// A row of a table in the present graph. As in DyNet it has a gradient, even if new_graph() was
  /// told update = false.
  Expression Lookup(unsigned layer, unsigned p_type, unsigned value);

private:
  ComputationGraph *cg;
};

/// A Tree-LSTM that reads a node's input and then its children's outputs by an LSTM, whose output
/// is the node's. So inputs have as many rows as outputs.
struct UnidirectionalTreeLSTMBuilder : public TreeLSTMBuilder {
  /// A builder without layers, to be assigned to.
  UnidirectionalTreeLSTMBuilder() {}
  /// Makes the parameters of all layers in a subcollection of model. input_dim and hidden_dim are
  /// equal, if a node has children.
  explicit UnidirectionalTreeLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                                         ParameterCollection &model);

  Expression add_input(int id, std::vector<int> children, const Expression &x) override;
  void set_num_elements(int length) override;
  ParameterCollection &get_parameter_collection() override {
    return node_builder.get_parameter_collection();
  }

  ParameterCollection local_model; ///< the collection of node_builder's
  LSTMBuilder node_builder;        ///< reads the input, then the children's outputs
  std::vector<Expression> h;       ///< by node: outputs {H}xB

protected:
  void new_graph_impl(ComputationGraph &cg, bool update) override;
  void start_new_sequence_impl(const std::vector<Expression> &h_0) override;
};

/// A Tree-LSTM that reads a node's input and then its children's outputs by two LSTMs, which take
/// the children from left to right and from right to left. Their outputs together are the node's.
struct BidirectionalTreeLSTMBuilder : public TreeLSTMBuilder {
  /// A builder without layers, to be assigned to.
  BidirectionalTreeLSTMBuilder() {}
  /// Makes the parameters of all layers in a subcollection of model. hidden_dim: the rows of an
  /// output, an even number, else std::invalid_argument. input_dim is the same, if a node has
  /// children.
  explicit BidirectionalTreeLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                                        ParameterCollection &model);

  Expression add_input(int id, std::vector<int> children, const Expression &x) override;
  void set_num_elements(int length) override;
  ParameterCollection &get_parameter_collection() override { return local_model; }

  LSTMBuilder fwd_node_builder;    ///< takes the children from left to right
  LSTMBuilder rev_node_builder;    ///< takes the children from right to left
  std::vector<Expression> h;       ///< by node: outputs {H}xB
  ParameterCollection local_model; ///< the collection of both builders'

protected:
  void new_graph_impl(ComputationGraph &cg, bool update) override;
  void start_new_sequence_impl(const std::vector<Expression> &h_0) override;
};

} // namespace dynet
#endif
