// Sentiment analysis with a binary Tree-LSTM, written as an ordinary DyNet program: a new
// graph for every batch of trees, with the shape of the trees. The few lines
// that differ from a program for DyNet alone are marked "libvpps".
//
//	treelstm --demo                      about a minute on the sample trees
//	treelstm --trees DIR --hidden 256    train.txt and dev.txt of the Stanford treebank
#include <dynet/dict.h>
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/io.h>
#include <dynet/training.h>
#include <vpps/vpps.hpp> // libvpps

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <random>

#include "bag_of_words.h"
#include "progress.h"
#include "trees.h"

using namespace dynet;

// ---- the model ---------------------------------------------------------------

class tree_lstm {
public:
  tree_lstm(ParameterCollection &m, unsigned words, unsigned embed, unsigned hidden) {
    softmax = m.add_parameters({tree_labels, hidden});
    for (Parameter &w : leaf_weights) // of the gates i, o, u
      w = m.add_parameters({hidden, embed});
    for (Parameter &w : node_weights)
      w = m.add_parameters({hidden, 2 * hidden});
    for (Parameter &w : forget_weights) // of the left and the right child
      w = m.add_parameters({hidden, hidden});
    for (Parameter &bias : biases) // of i, o, u, f
      bias = m.add_parameters({hidden});
    embeddings = m.add_lookup_parameters(words, {embed});
  }

  // Brings the parameters into a new graph.
  void start(ComputationGraph &graph) {
    cg = &graph;
    s = parameter(graph, softmax);
    for (int k = 0; k < 3; k++) {
      wl[k] = parameter(graph, leaf_weights[k]);
      wn[k] = parameter(graph, node_weights[k]);
    }
    for (int k = 0; k < 2; k++)
      wf[k] = parameter(graph, forget_weights[k]);
    for (int k = 0; k < 4; k++)
      b[k] = parameter(graph, biases[k]);
  }

  // The scores of the labels at every node of a tree.
  std::vector<Expression> scores(const tree &t) {
    std::vector<Expression> out, h, c; // scores, hidden states, cells by node
    for (const tree_node &n : t.nodes) {
      Expression i, o, u;
      if (n.is_word()) {
        const Expression x = lookup(*cg, embeddings, n.word_id);
        i = logistic(affine_transform({b[0], wl[0], x}));
        o = logistic(affine_transform({b[1], wl[1], x}));
        u = tanh(affine_transform({b[2], wl[2], x}));
        c.push_back(cmult(i, u));
      } else {
        const Expression h1 = h[n.left], h2 = h[n.right];
        const Expression both = concatenate({h1, h2});
        i = logistic(affine_transform({b[0], wn[0], both}));
        o = logistic(affine_transform({b[1], wn[1], both}));
        u = tanh(affine_transform({b[2], wn[2], both}));
        const Expression f1 = logistic(affine_transform({b[3], wf[0], h1}));
        const Expression f2 = logistic(affine_transform({b[3], wf[1], h2}));
        c.push_back(cmult(i, u) + cmult(f1, c[n.left]) + cmult(f2, c[n.right]));
      }
      h.push_back(cmult(o, tanh(c.back())));
      out.push_back(s * h.back());
    }
    return out;
  }

  // Every node's label counts, as in the treebank.
  void add_losses(const tree &t, std::vector<Expression> &losses) {
    const std::vector<Expression> out = scores(t);
    for (size_t n = 0; n < out.size(); n++)
      losses.push_back(pickneglogsoftmax(out[n], t.nodes[n].label));
  }

private:
  Parameter softmax, leaf_weights[3], node_weights[3], forget_weights[2], biases[4];
  LookupParameter embeddings;
  ComputationGraph *cg = nullptr;
  Expression s, wl[3], wn[3], wf[2], b[4];
};

// The label scores at the root of each tree.
std::vector<std::vector<float>> root_scores(tree_lstm &model, const std::vector<tree> &trees,
                                            size_t count) {
  std::vector<std::vector<float>> all;
  const size_t together = 16; // trees in one graph
  for (size_t first = 0; first < count; first += together) {
    ComputationGraph cg;
    model.start(cg);
    std::vector<Expression> roots;
    for (size_t k = first; k < std::min(count, first + together); k++)
      roots.push_back(model.scores(trees[k]).back());
    cg.forward(roots.back()); // and with it all nodes before
    for (const Expression &root : roots)
      all.push_back(as_vector(root.value()));
  }
  return all;
}

unsigned best_label(const std::vector<float> &scores) {
  return unsigned(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

// The share of trees (of the first count) whose root is labelled right.
double accuracy(tree_lstm &model, const std::vector<tree> &trees, size_t count) {
  size_t right = 0;
  const std::vector<std::vector<float>> scores = root_scores(model, trees, count);
  for (size_t k = 0; k < count; k++)
    right += best_label(scores[k]) == trees[k].root().label;
  return double(right) / double(count);
}

// ---- the command line --------------------------------------------------------

struct options {
  std::string train, dev, trees, save, device = "auto", mode = "vpps";
  unsigned hidden = 256, embed = 256, batch_size = 8, epochs = 0, seed = 1;
  double seconds = 0, learning_rate = 0.1;
  bool demo = false;
};

const char *usage =
    "usage: treelstm [--demo] [--trees DIR | --train FILE --dev FILE] [--save FILE]\n"
    "                [--hidden N] [--embed N] [--batch-size N] [--learning-rate X]\n"
    "                [--epochs N] [--seconds X] [--seed N]\n"
    "                [--device cpu|cuda[:N]|auto] [--mode vpps|dynet]\n"
    "\n"
    "  --demo   trains about a minute on the sample trees (or those of --trees), compares\n"
    "           with a bag of words, saves the model, loads it and compares predictions\n"
    "  --trees  a folder with train.txt and dev.txt, one tree a line:\n"
    "           (label (label word) (label word))\n"
    "  --mode   vpps: one call for forward, backward and update; dynet: DyNet's three\n";

// Files are looked for beside the program, in the source tree and where they are installed.
std::string sample_trees(const std::string &program) {
  const size_t slash = program.rfind('/');
  const std::string here = slash == std::string::npos ? "." : program.substr(0, slash);
  const std::string places[] = {here + "/data",
                                here + "/../cpp_examples/data",
                                here + "/../../cpp_examples/data",
                                here + "/../share/vpps/trees",
                                "cpp_examples/data",
                                "data"};
  for (const std::string &place : places)
    if (std::ifstream((place + "/train.txt").c_str()))
      return place;
  throw std::runtime_error("the sample trees were not found beside " + program +
                           ": name their folder with --trees");
}

options parse(int argc, char **argv) {
  options o;
  if (std::any_of(argv, argv + argc, [](const char *a) { return !std::strcmp(a, "--demo"); })) {
    o.demo = true;
    o.hidden = o.embed = 64;
    o.seconds = 60;
  }
  const std::map<std::string, std::string *> texts = {{"--train", &o.train},   {"--dev", &o.dev},
                                                      {"--trees", &o.trees},   {"--save", &o.save},
                                                      {"--device", &o.device}, {"--mode", &o.mode}};
  const std::map<std::string, unsigned *> sizes = {{"--hidden", &o.hidden},
                                                   {"--embed", &o.embed},
                                                   {"--batch-size", &o.batch_size},
                                                   {"--epochs", &o.epochs},
                                                   {"--seed", &o.seed}};
  const std::map<std::string, double *> numbers = {{"--seconds", &o.seconds},
                                                   {"--learning-rate", &o.learning_rate}};
  for (int k = 1; k < argc; k++) {
    const std::string name = argv[k];
    if (name == "--demo")
      continue;
    if (name == "--help" || name == "-h") {
      std::cout << usage;
      std::exit(0);
    }
    if (!texts.count(name) && !sizes.count(name) && !numbers.count(name))
      throw std::runtime_error(name + " is unknown\n" + usage);
    if (++k == argc)
      throw std::runtime_error(name + " lacks its value\n" + usage);
    if (texts.count(name)) {
      *texts.at(name) = argv[k];
      continue;
    }
    char *end;
    const double x = std::strtod(argv[k], &end);
    const bool whole = sizes.count(name) != 0;
    if (end == argv[k] || *end || !(x > 0 && x <= 1e9) || (whole && x != std::floor(x)))
      throw std::runtime_error(name + " " + argv[k] + ": " +
                               (whole ? "give a whole number from 1 on" : "give a number above 0"));
    if (whole)
      *sizes.at(name) = unsigned(x);
    else
      *numbers.at(name) = x;
  }
  if (o.mode != "vpps" && o.mode != "dynet")
    throw std::runtime_error("--mode " + o.mode + " is unknown: give vpps or dynet");
  if (o.trees.empty() && o.train.empty()) {
    if (!o.demo)
      throw std::runtime_error(
          std::string("no trees to train on: give --demo, --trees or --train\n") + usage);
    o.trees = sample_trees(argv[0]);
  }
  if (o.train.empty())
    o.train = o.trees + "/train.txt";
  if (o.dev.empty() && !o.trees.empty())
    o.dev = o.trees + "/dev.txt";
  if (o.demo && o.save.empty())
    o.save = std::string(argv[0]) + ".model";
  if (o.epochs == 0 && o.seconds == 0)
    o.epochs = 10;
  return o;
}

// ---- training ----------------------------------------------------------------

// Trains until the epochs or the seconds are over.
void train(const options &o, ParameterCollection &m, tree_lstm &model,
           const std::vector<tree> &trees, const std::vector<tree> &dev) {
  SimpleSGDTrainer trainer(m, float(o.learning_rate));
  std::unique_ptr<vpps::handle> hndl;
  if (o.mode == "vpps")
    hndl.reset(new vpps::handle(m, trainer)); // libvpps

  std::mt19937 random(o.seed);
  std::vector<size_t> order(trees.size());
  for (size_t k = 0; k < order.size(); k++)
    order[k] = k;

  progress_bar bar;
  double loss = std::log(double(tree_labels)); // of a node, smoothed
  double held_out = -1, done = 0, next_look = 0.1, looking = 0;
  size_t sentences = 0, batch = 0, nodes_of[3] = {0, 0, 0};
  auto status = [&]() {
    char text[128];
    int n = std::snprintf(text, sizeof text, "loss %.3f", loss);
    if (held_out >= 0)
      n += std::snprintf(text + n, sizeof text - size_t(n), "  accuracy %.1f %%", 100 * held_out);
    std::snprintf(text + n, sizeof text - size_t(n), "  %.0f sentences/s",
                  double(sentences) / std::max(bar.seconds() - looking, 1e-9));
    return std::string(text);
  };

  for (unsigned epoch = 0; done < 1; epoch++) {
    std::shuffle(order.begin(), order.end(), random);
    for (size_t first = 0; first < order.size() && done < 1; first += o.batch_size) {
      const size_t last = std::min(order.size(), first + o.batch_size);
      size_t nodes;
      float batch_loss;
      { // DyNet allows one graph at a time
        ComputationGraph cg;
        model.start(cg);
        std::vector<Expression> losses;
        for (size_t k = first; k < last; k++)
          model.add_losses(trees[order[k]], losses);
        nodes = losses.size();
        const Expression total = sum(losses);
        if (hndl) {
          // The loss comes two batches late: that one may still be under way.
          batch_loss = hndl->fb(m, cg, total); // libvpps
          nodes_of[batch % 3] = nodes;
          nodes = batch < 2 ? 0 : nodes_of[(batch - 2) % 3];
        } else {
          batch_loss = as_scalar(cg.forward(total));
          cg.backward(total);
          trainer.update();
        }
      }
      batch++;
      sentences += last - first;
      if (nodes)
        loss += 0.01 * (batch_loss / double(nodes) - loss);

      const double epochs_done =
          (epoch + double(last) / double(order.size())) / std::max(o.epochs, 1u);
      done = std::max(o.epochs ? epochs_done : 0, o.seconds > 0 ? bar.seconds() / o.seconds : 0);
      done = std::min(done, 1.0);
      if (!dev.empty() && done >= next_look && done < 1) { // a quick look at held-out trees
        const stopwatch look;
        if (hndl)
          hndl->pull(m); // libvpps, if DyNet's own execution is to see the trained values
        held_out = accuracy(model, dev, std::min<size_t>(dev.size(), 200));
        looking += look.seconds();
        next_look = done + 0.1;
      }
      bar.show(done, status());
    }
  }
  if (hndl)
    hndl->sync_get_latest_loss(); // waits for the batches under way
  bar.finish(status());
  std::printf("%zu sentences in %.1f s\n", sentences, bar.seconds());
}

// Loads the file into a model of its own and compares what the two predict.
bool loads_back(const options &o, tree_lstm &model, unsigned words, const std::vector<tree> &dev) {
  ParameterCollection fresh;
  tree_lstm loaded(fresh, words, o.embed, o.hidden);
  TextFileLoader(o.save).populate(fresh);
  const std::vector<std::vector<float>> before = root_scores(model, dev, dev.size());
  const std::vector<std::vector<float>> after = root_scores(loaded, dev, dev.size());
  size_t same = 0, identical = 0;
  for (size_t k = 0; k < dev.size(); k++) {
    same += best_label(before[k]) == best_label(after[k]);
    identical += before[k] == after[k];
  }
  std::printf(
      "loaded into a new model: %zu of %zu predictions are the same, %zu with identical scores\n",
      same, dev.size(), identical);
  return same == dev.size();
}

int run(int argc, char **argv) {
  DynetParams params = extract_dynet_params(argc, argv); // takes DyNet's flags away
  const options o = parse(argc, argv);
  if (params.random_seed == 0)
    params.random_seed = o.seed;
  setenv("VPPS_DEVICE", o.device.c_str(), 1); // libvpps
  initialize(params);

  std::vector<tree> trees = read_trees(o.train), dev;
  if (!o.dev.empty())
    dev = read_trees(o.dev);
  Dict words;
  count_words(trees, 2, words);
  number_words(trees, words);
  number_words(dev, words);
  std::printf("%zu trees of %s, %zu held out, %u words\n", trees.size(), o.train.c_str(),
              dev.size(), unsigned(words.size()));

  ParameterCollection m;
  tree_lstm model(m, unsigned(words.size()), o.embed, o.hidden);
  std::printf("Tree-LSTM: embeddings of %u, hidden states of %u, batches of %u\n", o.embed,
              o.hidden, o.batch_size);
  std::printf("running on %s\n", vpps::device().c_str()); // libvpps
  if (!dev.empty()) {
    bag_of_words baseline(words.size());
    baseline.train(trees, 20, 0.05, o.seed);
    std::printf("held-out root accuracy: %5.1f %% bag of words\n", 100 * baseline.accuracy(dev));
    std::printf("held-out root accuracy: %5.1f %% Tree-LSTM before training\n",
                100 * accuracy(model, dev, dev.size()));
  }
  train(o, m, model, trees, dev);
  if (!dev.empty())
    std::printf("held-out root accuracy: %5.1f %% Tree-LSTM after training\n",
                100 * accuracy(model, dev, dev.size()));
  if (!o.save.empty()) {
    TextFileSaver(o.save).save(m);
    std::printf("saved as %s\n", o.save.c_str());
    if (!dev.empty() && !loads_back(o, model, unsigned(words.size()), dev))
      return 1;
  }
  return 0;
}

int main(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception &e) {
    std::cerr << "treelstm: " << e.what() << std::endl;
    return 1;
  }
}
