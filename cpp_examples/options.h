// The command line that the applications have in common.
#ifndef VPPS_EXAMPLES_OPTIONS_H
#define VPPS_EXAMPLES_OPTIONS_H

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>

// What sets an application apart here: its name, what its data are called ("trees"), how a
// line of them looks, where samples are (below cpp_examples/data), and its usual sizes.
struct application {
  const char *name, *data, *line, *samples;
  unsigned hidden, embed;
  double learning_rate;
};

struct options {
  std::string program; // without its folder
  std::string train, dev, folder, save, load, losses, curve, trace, device, checkpoint;
  std::string mode = "vpps", trainer = "sgd";
  std::string batch_sizes = "1,2,4,8,16,32,64,128";
  unsigned hidden = 0, embed = 0, batch_size = 8, epochs = 0, updates = 0, seed = 1, profile = 0;
  unsigned checkpoint_every = 1000;
  double seconds = 0, learning_rate = 0, measure = 0;
  bool demo = false, resume = false;
};

inline std::string usage(const application &a, const std::string &program) {
  const std::string folder = std::string("--") + a.data;
  return "usage: " + program + " [--demo] [" + folder +
         " DIR | --train FILE --dev FILE]\n"
         "         [--hidden N] [--embed N] [--batch-size N] [--learning-rate X] [--seed N]\n"
         "         [--trainer NAME] [--epochs N] [--seconds X] [--updates N] [--save FILE]\n"
         "         [--load FILE] [--losses FILE] [--curve FILE] [--trace FILE]\n"
         "         [--checkpoint FILE] [--checkpoint-every N] [--resume]\n"
         "         [--measure SECONDS] [--batch-sizes A,B,...]\n"
         "         [--device cpu|cuda[:N]|auto] [--mode vpps|dynet]\n"
         "         [--profile 1]\n"
         "\n"
         "  --demo    trains about a minute on the sample " +
         a.data + " (or those of " + folder +
         "), saves\n"
         "            the model, loads it and compares predictions\n"
         "  " +
         folder + std::string(10 - folder.size(), ' ') +
         "a folder with train.txt and dev.txt, one sentence a line:\n            " + a.line +
         "\n"
         "  --mode    vpps: one call for forward, backward and update; dynet: DyNet's three\n"
         "  --load    answers the held-out sentences with a saved model instead of training; the\n"
         "            training file is still needed, it numbers the words\n"
         "  --losses  writes the number of each batch and its loss\n"
         "  --curve   writes loss and score of the held-out sentences as training goes on, as "
         "CSV;\n"
         "            the looks take none of the --seconds\n"
         "  --checkpoint keeps all that training needs to go on in a file: written every 1000 "
         "batches\n"
         "            (--checkpoint-every), at the end and when SIGINT or SIGTERM ends training;\n"
         "            --resume goes on from it, with the same results as without the break\n"
         "  --trace   writes a timeline of program, scripts and device, for ui.perfetto.dev\n"
         "  --measure trains at each of the --batch-sizes for so many seconds and answers for half "
         "as\n"
         "            many; prints rates, latency and where the time goes as CSV. The learning "
         "rate\n"
         "            is 0.0001 if none is given\n"
         "  --profile 1: on a GPU the first batches are run with one plan after another, and the\n"
         "            fastest stays, now and at the next start\n"
         "  --trainer sgd, or DyNet's cyclical, momentum, adagrad, adadelta, rmsprop, adam, "
         "amsgrad;\n"
         "            these at DyNet's own rates if no --learning-rate is given\n";
}

// Files are looked for beside the program, in the source tree and where they are installed.
inline std::string sample_folder(const application &a, const std::string &program) {
  const size_t slash = program.rfind('/');
  const std::string here = slash == std::string::npos ? "." : program.substr(0, slash);
  const std::string places[] = {here + "/data",
                                here + "/../cpp_examples/data",
                                here + "/../../cpp_examples/data",
                                here + "/../share/vpps/data",
                                "cpp_examples/data",
                                "data"};
  for (const std::string &place : places)
    if (std::ifstream((place + a.samples + "/train.txt").c_str()))
      return place + a.samples;
  throw std::runtime_error(std::string("the sample ") + a.data + " were not found beside " +
                           program + ": name their folder with --" + a.data);
}

inline double positive(const std::string &name, const char *text, bool whole) {
  char *end;
  const double x = std::strtod(text, &end);
  if (end == text || *end || !(x > 0 && x <= 1e9) || (whole && x != std::floor(x)))
    throw std::runtime_error(name + " " + text + ": " +
                             (whole ? "give a whole number from 1 on" : "give a number above 0"));
  return x;
}

// Sets what the command line names.
inline void read_arguments(const application &a, int argc, char **argv, options &o) {
  const std::map<std::string, std::string *> texts = {{"--train", &o.train},
                                                      {"--dev", &o.dev},
                                                      {std::string("--") + a.data, &o.folder},
                                                      {"--save", &o.save},
                                                      {"--load", &o.load},
                                                      {"--losses", &o.losses},
                                                      {"--device", &o.device},
                                                      {"--mode", &o.mode},
                                                      {"--curve", &o.curve},
                                                      {"--trace", &o.trace},
                                                      {"--trainer", &o.trainer},
                                                      {"--checkpoint", &o.checkpoint},
                                                      {"--batch-sizes", &o.batch_sizes}};
  const std::map<std::string, unsigned *> sizes = {
      {"--hidden", &o.hidden},         {"--embed", &o.embed},
      {"--batch-size", &o.batch_size}, {"--epochs", &o.epochs},
      {"--updates", &o.updates},       {"--seed", &o.seed},
      {"--profile", &o.profile},       {"--checkpoint-every", &o.checkpoint_every}};
  const std::map<std::string, double *> numbers = {
      {"--seconds", &o.seconds}, {"--measure", &o.measure}, {"--learning-rate", &o.learning_rate}};
  for (int k = 1; k < argc; k++) {
    const std::string name = argv[k];
    if (name == "--demo")
      continue;
    if (name == "--resume") {
      o.resume = true;
      continue;
    }
    if (name == "--help" || name == "-h") {
      std::cout << usage(a, o.program);
      std::exit(0);
    }
    if (!texts.count(name) && !sizes.count(name) && !numbers.count(name))
      throw std::runtime_error(name + " is unknown\n" + usage(a, o.program));
    if (++k == argc)
      throw std::runtime_error(name + " lacks its value\n" + usage(a, o.program));
    if (texts.count(name))
      *texts.at(name) = argv[k];
    else if (sizes.count(name))
      *sizes.at(name) = unsigned(positive(name, argv[k], true));
    else
      *numbers.at(name) = positive(name, argv[k], false);
  }
}

inline options parse(const application &a, int argc, char **argv) {
  options o;
  o.program = argv[0];
  o.program.erase(0, o.program.rfind('/') + 1); // npos + 1 is 0
  o.hidden = a.hidden;
  o.embed = a.embed;
  if (std::any_of(argv, argv + argc, [](const char *x) { return !std::strcmp(x, "--demo"); })) {
    o.demo = true;
    o.hidden = o.embed = 64;
    o.seconds = 60;
  }
  read_arguments(a, argc, argv, o);
  if (o.mode != "vpps" && o.mode != "dynet")
    throw std::runtime_error("--mode " + o.mode + " is unknown: give vpps or dynet");
  if (o.folder.empty() && o.train.empty()) {
    if (!o.demo)
      throw std::runtime_error(std::string("no ") + a.data + " to train on: give --demo, --" +
                               a.data + " or --train\n" + usage(a, o.program));
    o.folder = sample_folder(a, argv[0]);
  }
  if (o.train.empty())
    o.train = o.folder + "/train.txt";
  if (o.dev.empty() && !o.folder.empty())
    o.dev = o.folder + "/dev.txt";
  if (!o.load.empty() && o.dev.empty())
    throw std::runtime_error("--load: there are no sentences to answer: give --dev");
  if (o.demo && o.save.empty() && o.load.empty())
    o.save = std::string(argv[0]) + ".model";
  if (o.epochs == 0 && o.seconds == 0 && o.updates == 0)
    o.epochs = 10;
  if (o.resume && o.checkpoint.empty())
    throw std::runtime_error("--resume: from what? Give --checkpoint");
  if (!o.curve.empty() && o.dev.empty())
    throw std::runtime_error("--curve: there are no held-out sentences: give --dev");
  if (o.learning_rate == 0 && o.measure > 0)
    o.learning_rate = 1e-4; // nothing grows without bound
  if (o.learning_rate == 0 && o.trainer == "sgd")
    o.learning_rate = a.learning_rate;
  return o;
}

#endif
