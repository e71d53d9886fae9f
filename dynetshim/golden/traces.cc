// A recorded training run of the binary Tree-LSTM, repeated step by step: with DyNet's
// calls, with vpps::handle::fb waiting for each loss, and with fb running ahead.
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/model.h>
#include <dynet/training.h>
#include <vpps/vpps.hpp>

#include <algorithm>
#include <memory>

#include "cases.h"
#include "compare.h"
#include "functions.h"

using namespace dynet;

namespace {

struct node {
  int label, left, right; // a word has left = -1, and its number in right
};
typedef std::vector<node> labelled_tree; // children first

// The model, from its recorded parameters: softmax, Wi Wo Wu, Ui Uo Uu, Uf of the left
// and of the right child, bi bo bu bf, and the table of words.
struct tree_model {
  ParameterCollection m;
  std::vector<Parameter> p;
  LookupParameter words;

  explicit tree_model(const record &r) {
    for (const line *l : r.all("param")) {
      const tensor t = l->as_tensor(1);
      if (l->words.at(0) == "parameter")
        p.push_back(m.add_parameters(t.dim, ParameterInitFromVector(t.values)));
      else
        words =
            m.add_lookup_parameters(t.dim.d[1], {t.dim.d[0]}, ParameterInitFromVector(t.values));
    }
    if (p.size() != 13)
      throw std::runtime_error(r.name + ": other than 13 parameters");
  }

  // The loss of a batch: the sum over all nodes of all trees.
  Expression loss(ComputationGraph &cg, const std::vector<labelled_tree> &trees, size_t first,
                  size_t last) const {
    std::vector<Expression> w, losses;
    for (const Parameter &each : p)
      w.push_back(parameter(cg, each));
    for (size_t k = first; k < last; k++) {
      std::vector<Expression> h, c;
      for (const node &n : trees[k]) {
        const bool leaf = n.left < 0;
        const Expression x = leaf ? lookup(cg, words, unsigned(n.right))
                                  : concatenate({h[size_t(n.left)], h[size_t(n.right)]});
        const size_t first_weight = leaf ? 1 : 4;
        const Expression i = logistic(affine_transform({w[9], w[first_weight], x}));
        const Expression o = logistic(affine_transform({w[10], w[first_weight + 1], x}));
        const Expression u = tanh(affine_transform({w[11], w[first_weight + 2], x}));
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
};

// What was recorded of one run.
struct run {
  size_t batch_size;
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

void repeat(const record &r, const std::vector<labelled_tree> &trees, const run &wanted,
            training by) {
  const double close = 1e-4;
  tree_model model(r);
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
    const Expression loss = model.loss(cg, trees, k * wanted.batch_size,
                                       std::min(trees.size(), (k + 1) * wanted.batch_size));
    if (by == training::fb_ahead) {
      const float stale = hndl->fb(model.m, cg, loss);
      compare(at + "stale loss", stale, k < 2 ? 0 : wanted.losses[k - 2], close, 0);
      continue;
    }
    if (by == training::fb) {
      hndl->fb(model.m, cg, loss);
      compare(at + "loss", hndl->sync_get_latest_loss(), wanted.losses[k], close, 0);
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
  }
  for (const line *l : wanted.final) {
    const size_t k = size_t(l->integer(0));
    compare_sums("parameter " + std::to_string(k),
                 k < model.p.size() ? as_vector(*model.p[k].values())
                                    : as_vector(model.words.get_storage().all_values),
                 *l);
  }
}

} // namespace

void run_trace(const record &r,
               const std::function<void(const std::string &, std::function<void()>)> &report) {
  std::vector<labelled_tree> trees;
  std::vector<run> runs;
  for (const line &l : r.lines) {
    if (l.key == "tree") {
      trees.push_back(labelled_tree());
      for (size_t k = 0; k + 2 < l.words.size(); k += 3)
        trees.back().push_back({l.integer(k), l.integer(k + 1), l.integer(k + 2)});
    } else if (l.key == "run") {
      runs.push_back(
          {size_t(l.integer(0)), l.number(1), l.number(2), l.number(3), {}, {}, {}, {}, {}, {}});
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
      report(r.name + "/batch" + std::to_string(each.batch_size) + "/" + w.name,
             [&] { repeat(r, trees, each, w.by); });
}
