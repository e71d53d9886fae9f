// Measures Tree-LSTM training at several batch sizes and prints one CSV row for each:
// sentences per second, host time per graph node, device time per batch. Every number is
// the median over windows of equal length; the spread of the rate is given beside it.
//
//   build/bench/treelstm --train train.txt --device cuda --seconds 10
//
// --train F         trees in the Stanford treebank's format (required)
// --device D        cpu, cuda[:n] or auto (the default)
// --mode M          vpps (the default): vpps::handle::fb; dynet: forward, backward, update
// --hidden N --embed N                     256 and 256
// --batch-sizes A,B,...                    1,2,4,8,16,32,64,128
// --seconds X       measured for each batch size (10), in --windows N windows (7)
// --warm-up X       seconds before that, not measured (1)
//
// The columns in ns are per graph node: build is the program's own thread recording the
// graph; decode and schedule are the engine's, plan_us is per batch. With mode vpps they
// overlap with each other and with the device, so they do not add up to the rate.
#include <dynet/dict.h>
#include <dynet/dynet.h>
#include <dynet/engine.h>
#include <dynet/expr.h>
#include <dynet/training.h>
#include <vpps/vpps.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tree_lstm.h"

using namespace dynet;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct options {
  std::string train, device = "auto", mode = "vpps", batch_sizes = "1,2,4,8,16,32,64,128";
  std::string hidden = "256", embed = "256", seconds = "10", windows = "7", warm_up = "1";
};

options parse(int argc, char **argv) {
  options o;
  const std::map<std::string, std::string *> flags = {
      {"--train", &o.train},     {"--device", &o.device},   {"--mode", &o.mode},
      {"--hidden", &o.hidden},   {"--embed", &o.embed},     {"--batch-sizes", &o.batch_sizes},
      {"--seconds", &o.seconds}, {"--windows", &o.windows}, {"--warm-up", &o.warm_up}};
  for (int k = 1; k < argc; k++) {
    const auto flag = flags.find(argv[k]);
    if (flag == flags.end() || k + 1 == argc)
      throw std::runtime_error(std::string(argv[k]) +
                               " is unknown or lacks its value; the head of this program's "
                               "source lists the flags");
    *flag->second = argv[++k];
  }
  if (o.train.empty())
    throw std::runtime_error("no trees: name a file of them with --train");
  if (o.mode != "vpps" && o.mode != "dynet")
    throw std::runtime_error("--mode " + o.mode + " is unknown: vpps or dynet");
  return o;
}

double number(const std::string &text) {
  char *end;
  const double x = std::strtod(text.c_str(), &end);
  if (text.empty() || *end || !(x > 0))
    throw std::runtime_error(text + " is not a number above 0");
  return x;
}

vpps_statistics statistics() {
  vpps_statistics s = VPPS_STATISTICS_INIT;
  check(vpps_engine_statistics(dynet::engine("the benchmark")->raw, &s));
  return s;
}

// What one window has seen.
enum column {
  rate,
  build_ns,
  decode_ns,
  schedule_ns,
  plan_us,
  device_us,
  launches,
  copies,
  script_words,
  nodes,
  columns
};
typedef std::vector<double> window;

double median(std::vector<window> &windows, column c) {
  const size_t middle = windows.size() / 2;
  std::nth_element(windows.begin(), windows.begin() + long(middle), windows.end(),
                   [c](const window &a, const window &b) { return a[c] < b[c]; });
  return windows[middle][c];
}

// One training run at one batch size.
class training {
public:
  training(const options &o, const std::vector<tree> &trees, unsigned words, size_t batch_size)
      : trees_(trees), batch_size_(batch_size),
        model_(m_, words, unsigned(number(o.embed)), unsigned(number(o.hidden))), trainer_(m_) {
    if (o.mode == "vpps")
      hndl_.reset(new vpps::handle(m_, trainer_));
  }

  // Trains for some seconds, at least one batch.
  window run(double seconds) {
    const vpps_statistics before = statistics();
    const double start = now();
    double building = 0;
    size_t batches = 0;
    do {
      std::vector<const tree *> batch;
      for (size_t k = 0; k < batch_size_; k++)
        batch.push_back(&trees_[next_++ % trees_.size()]);
      const double begin = now();
      ComputationGraph cg;
      const Expression loss = model_.loss(cg, batch);
      building += now() - begin;
      if (hndl_) {
        hndl_->fb(m_, cg, loss);
      } else {
        cg.forward(loss);
        cg.backward(loss);
        trainer_.update();
      }
      batches++;
    } while (now() - start < seconds);
    if (hndl_)
      hndl_->sync_get_latest_loss();
    const double elapsed = now() - start;
    const vpps_statistics after = statistics();

    const double n = std::max(double(after.nodes - before.nodes), 1.0), b = double(batches);
    window w(columns);
    w[rate] = b * double(batch_size_) / elapsed;
    w[build_ns] = 1e9 * building / n;
    w[decode_ns] = double(after.decode_ns - before.decode_ns) / n;
    w[schedule_ns] = double(after.schedule_ns - before.schedule_ns) / n;
    w[plan_us] = 1e-3 * double(after.plan_ns - before.plan_ns) / b;
    w[device_us] = 1e-3 * double(after.execute_ns - before.execute_ns) / b;
    w[launches] = double(after.launches - before.launches) / b;
    w[copies] = double(after.copies_to_device - before.copies_to_device) / b;
    w[script_words] = double(after.script_words);
    w[nodes] = n / b;
    return w;
  }

private:
  const std::vector<tree> &trees_;
  size_t batch_size_, next_ = 0;
  ParameterCollection m_;
  tree_lstm model_;
  SimpleSGDTrainer trainer_; // at its defaults: clipping is on
  std::unique_ptr<vpps::handle> hndl_;
};

void run(int argc, char **argv) {
  DynetParams params = extract_dynet_params(argc, argv);
  const options o = parse(argc, argv);
  if (params.random_seed == 0)
    params.random_seed = 1;
  setenv("VPPS_DEVICE", o.device.c_str(), 1);
  initialize(params);

  std::vector<tree> trees = read_trees(o.train);
  Dict dict;
  count_words(trees, 1, dict);
  number_words(trees, dict);
  std::mt19937 random(1);
  std::shuffle(trees.begin(), trees.end(), random);

  std::printf("app,device,mode,hidden,embed,batch,sentences_per_s,slowest,fastest,windows,"
              "build_ns_per_node,decode_ns_per_node,schedule_ns_per_node,plan_us_per_batch,"
              "device_us_per_batch,nodes_per_batch,launches_per_batch,copies_per_batch,"
              "script_words\n");
  const size_t count = std::max<size_t>(5, size_t(number(o.windows)));
  std::istringstream sizes(o.batch_sizes);
  for (std::string size; std::getline(sizes, size, ',');) {
    training t(o, trees, unsigned(dict.size()), size_t(number(size)));
    t.run(number(o.warm_up));
    std::vector<window> w;
    for (size_t k = 0; k < count; k++)
      w.push_back(t.run(number(o.seconds) / double(count)));
    const auto faster = [](const window &a, const window &b) { return a[rate] < b[rate]; };
    const double slowest = (*std::min_element(w.begin(), w.end(), faster))[rate];
    const double fastest = (*std::max_element(w.begin(), w.end(), faster))[rate];
    std::printf("treelstm,\"%s\",%s,%s,%s,%s,%.1f,%.1f,%.1f,%zu", vpps::device().c_str(),
                o.mode.c_str(), o.hidden.c_str(), o.embed.c_str(), size.c_str(), median(w, rate),
                slowest, fastest, count);
    for (column c : {build_ns, decode_ns, schedule_ns, plan_us, device_us, nodes, launches, copies,
                     script_words})
      std::printf(",%.1f", median(w, c));
    std::printf("\n");
    std::fflush(stdout);
  }
}

} // namespace

int main(int argc, char **argv) {
  try {
    run(argc, argv);
    return 0;
  } catch (const std::exception &e) {
    std::cerr << "treelstm benchmark: " << e.what() << std::endl;
    return 1;
  }
}
