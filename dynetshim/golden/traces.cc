// A recorded training run of the binary Tree-LSTM or of the BiLSTM tagger, repeated step by
// step: with DyNet's calls, with vpps::handle::fb waiting for each loss, and with fb
// running ahead.
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/lstm.h>
#include <dynet/model.h>
#include <dynet/param-init.h>
#include <dynet/training.h>
#include <vpps/vpps.hpp>

#include <algorithm>
#include <memory>

#include "cases.h"
#include "compare.h"
#include "functions.h"

using namespace dynet;

namespace {

// A model with the recorded values, and its loss for some of the recorded examples.
class traced_model {
public:
  virtual ~traced_model() {}
  virtual size_t examples() const = 0;
  // The sum over the examples from first to before last.
  virtual Expression loss(ComputationGraph &cg, size_t first, size_t last) = 0;
  // The stored values of the parameter that was created as number k.
  virtual std::vector<float> values(size_t k) const = 0;

  ParameterCollection m;
};

// The binary Tree-LSTM. Its parameters: softmax, Wi Wo Wu, Ui Uo Uu, Uf of the left and of
// the right child, bi bo bu bf, and the table of words.
class tree_model : public traced_model {
public:
  explicit tree_model(const record &r) {
    for (const line *l : r.all("param")) {
      const tensor t = l->as_tensor(1);
      if (l->words.at(0) == "parameter")
        p_.push_back(m.add_parameters(t.dim, ParameterInitFromVector(t.values)));
      else
        words_ =
            m.add_lookup_parameters(t.dim.d[1], {t.dim.d[0]}, ParameterInitFromVector(t.values));
    }
    if (p_.size() != 13)
      throw std::runtime_error(r.name + ": other than 13 parameters");
    for (const line *l : r.all("tree")) {
      trees_.push_back(std::vector<node>());
      for (size_t k = 0; k + 2 < l->words.size(); k += 3)
        trees_.back().push_back({l->integer(k), l->integer(k + 1), l->integer(k + 2)});
    }
  }

  size_t examples() const override { return trees_.size(); }

  std::vector<float> values(size_t k) const override {
    return as_vector(k < p_.size() ? p_[k].get_storage().values : words_.get_storage().all_values);
  }

  Expression loss(ComputationGraph &cg, size_t first, size_t last) override {
    std::vector<Expression> w, losses;
    for (const Parameter &each : p_)
      w.push_back(parameter(cg, each));
    for (size_t k = first; k < last; k++) {
      std::vector<Expression> h, c;
      for (const node &n : trees_[k]) {
        const bool leaf = n.left < 0;
        const Expression x = leaf ? lookup(cg, words_, unsigned(n.right))
                                  : concatenate({h[size_t(n.left)], h[size_t(n.right)]});
        const size_t gate = leaf ? 1 : 4;
        const Expression i = logistic(affine_transform({w[9], w[gate], x}));
        const Expression o = logistic(affine_transform({w[10], w[gate + 1], x}));
        const Expression u = tanh(affine_transform({w[11], w[gate + 2], x}));
        Expression cell = cmult(i, u);
        if (!leaf)
          for (int side = 0; side < 2; side++) {
            const size_t child = size_t(side ? n.right : n.left);
            const Expression f = logistic(affine_transform({w[12], w[size_t(7 + side)], h[child]}));
            cell = cell + cmult(f, c[child]);
          }
        c.push_back(cell);
        h.push_back(cmult(o, tanh(cell)));
        losses.push_back(pickneglogsoftmax(w[0] * h.back(), unsigned(n.label)));
      }
    }
    return sum(losses);
  }

private:
  struct node {
    int label, left, right; // a word has left = -1, and its number in right
  };
  std::vector<std::vector<node>> trees_; // children first
  std::vector<Parameter> p_;
  LookupParameter words_;
};

// The tagger with a forward and a backward LSTM: the table of words, H, O, and the
// parameters of the two builders.
class tagger_model : public traced_model {
public:
  // words: which of the recorded lists of words is read.
  tagger_model(const record &r, const std::string &words)
      : sentences_(r.all(words)), tags_(r.all("tags")) {
    const std::vector<const line *> params = r.all("param");
    const tensor t = params.at(0)->as_tensor(1);
    words_ = m.add_lookup_parameters(t.dim.d[1], {t.dim.d[0]}, ParameterInitFromVector(t.values));
    for (size_t k = 1; k < 3; k++) {
      const tensor matrix = params.at(k)->as_tensor(1);
      p_.push_back(m.add_parameters(matrix.dim, ParameterInitFromVector(matrix.values)));
    }
    const unsigned embed = r.natural("embed"), hidden = r.natural("hidden");
    forward_ = LSTMBuilder(1, embed, hidden, m);
    backward_ = LSTMBuilder(1, embed, hidden, m);
    for (LSTMBuilder *b : {&forward_, &backward_})
      for (Parameter &each : b->params.at(0)) {
        each.set_value(params.at(p_.size() + 1)->as_tensor(1).values);
        p_.push_back(each);
      }
  }

  size_t examples() const override { return sentences_.size(); }

  std::vector<float> values(size_t k) const override {
    return as_vector(k ? p_.at(k - 1).get_storage().values : words_.get_storage().all_values);
  }

  Expression loss(ComputationGraph &cg, size_t first, size_t last) override {
    const Expression H = parameter(cg, p_[0]), O = parameter(cg, p_[1]);
    forward_.new_graph(cg);
    backward_.new_graph(cg);
    std::vector<Expression> losses;
    for (size_t k = first; k < last; k++) {
      std::vector<Expression> x, from_left, from_right;
      for (unsigned word : sentences_[k]->naturals())
        x.push_back(lookup(cg, words_, word));
      forward_.start_new_sequence();
      for (const Expression &each : x)
        from_left.push_back(forward_.add_input(each));
      backward_.start_new_sequence();
      for (size_t i = x.size(); i-- > 0;)
        from_right.push_back(backward_.add_input(x[i]));
      for (size_t i = 0; i < x.size(); i++) {
        const Expression both = concatenate({from_left[i], from_right[x.size() - 1 - i]});
        losses.push_back(pickneglogsoftmax(O * tanh(H * both), unsigned(tags_[k]->integer(i))));
      }
    }
    return sum(losses);
  }

private:
  std::vector<const line *> sentences_, tags_;
  LookupParameter words_;
  std::vector<Parameter> p_; // but the table
  LSTMBuilder forward_, backward_;
};

// What was recorded of one run.
struct run {
  size_t batch_size;
  std::string words; // which ones, if there is a choice
  float rate, threshold, weight_decay_lambda;
  std::vector<float> losses, after, norms, clips, weight_decay;
  std::vector<const line *> final;
};

void compare_sums(const std::string &what, const std::vector<float> &values, const line &wanted) {
  double sum = 0, squares = 0;
  for (float v : values) {
    sum += v;
    squares += double(v) * v;
  }
  compare("sum of " + what, sum, wanted.number(1), 0, 1e-4 * wanted.number(3));
  compare("sum of squares of " + what, squares, wanted.number(2), 1e-4, 0);
}

void repeat(traced_model &model, const run &wanted, training by) {
  const double close = 1e-4;
  model.m.set_weight_decay_lambda(wanted.weight_decay_lambda);
  SimpleSGDTrainer trainer(model.m, wanted.rate);
  trainer.clip_threshold = wanted.threshold;
  std::unique_ptr<vpps::handle> hndl;
  if (by != training::calls)
    hndl.reset(new vpps::handle(model.m, trainer));

  const size_t steps = wanted.losses.size();
  for (size_t k = 0; k < steps; k++) {
    const std::string at = "step " + std::to_string(k) + ": ";
    ComputationGraph cg;
    vpps::accelerate(cg);
    const Expression loss = model.loss(cg, k * wanted.batch_size,
                                       std::min(model.examples(), (k + 1) * wanted.batch_size));
    if (by == training::fb_ahead) {
      const float stale = hndl->fb(model.m, cg, loss);
      compare(at + "stale loss", stale, k < VPPS_FB_LAG ? 0 : wanted.losses[k - VPPS_FB_LAG], close,
              0);
      continue;
    }
    if (by == training::fb) {
      hndl->fb(model.m, cg, loss);
      compare(at + "loss", hndl->sync_get_latest_loss(), wanted.losses[k], close, 0);
      hndl->pull(model.m);
    } else {
      compare(at + "loss", as_scalar(cg.forward(loss)), wanted.losses[k], close, 0);
      cg.backward(loss);
      compare(at + "gradient norm", model.m.gradient_l2_norm(), wanted.norms[k], close, 0);
      trainer.update();
      compare(at + "clips", trainer.clips, wanted.clips[k], 0, 0);
    }
    compare(at + "weight decay", model.m.get_weight_decay().current_weight_decay(),
            wanted.weight_decay[k], 1e-6, 0);
    compare(at + "loss after the update", as_scalar(cg.forward(loss)), wanted.after[k], close, 0);
  }
  if (hndl) {
    compare("latest loss", hndl->sync_get_latest_loss(), wanted.losses.back(), close, 0);
    compare("clips", double(hndl->clips()), wanted.clips.back(), 0, 0);
    hndl->pull(model.m);
  }
  for (const line *l : wanted.final) {
    const size_t k = size_t(l->integer(0));
    compare_sums("parameter " + std::to_string(k), model.values(k), *l);
  }
}

} // namespace

void run_trace(const record &r,
               const std::function<void(const std::string &, std::function<void()>)> &report) {
  std::vector<run> runs;
  for (const line &l : r.lines) {
    if (l.key == "run") {
      runs.push_back(run());
      runs.back().batch_size = size_t(l.integer(0));
      runs.back().rate = l.number(1);
      runs.back().threshold = l.number(2);
      runs.back().weight_decay_lambda = l.number(3);
      runs.back().words = l.words.at(4);
    } else if (l.key == "losses") {
      runs.back().losses = l.numbers();
    } else if (l.key == "losses_after_update") {
      runs.back().after = l.numbers();
    } else if (l.key == "grad_norms") {
      runs.back().norms = l.numbers();
    } else if (l.key == "clips") {
      runs.back().clips = l.numbers();
    } else if (l.key == "weight_decay") {
      runs.back().weight_decay = l.numbers();
    } else if (l.key == "final") {
      runs.back().final.push_back(&l);
    }
  }
  const struct {
    training by;
    const char *name;
  } ways[] = {{training::calls, "calls"}, {training::fb, "fb"}, {training::fb_ahead, "fb_ahead"}};
  for (const run &each : runs)
    for (const auto &w : ways)
      report(r.name + "/" + each.words + "/batch" + std::to_string(each.batch_size) + "/" + w.name,
             [&] {
               std::unique_ptr<traced_model> model;
               if (r.fn == "treelstm_sst")
                 model.reset(new tree_model(r));
               else
                 model.reset(new tagger_model(r, each.words));
               repeat(*model, each, w.by);
             });
}
