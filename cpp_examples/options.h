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
  std::string train, dev, folder, save, load, losses, device, mode = "vpps";
  unsigned hidden = 0, embed = 0, batch_size = 8, epochs = 0, seed = 1;
  double seconds = 0, learning_rate = 0;
  bool demo = false;
};

inline std::string usage(const application &a, const std::string &program) {
  const std::string folder = std::string("--") + a.data;
  return "usage: " + program.substr(program.rfind('/') + 1) + " [--demo] [" + folder +
         " DIR | --train FILE --dev FILE]\n"
         "         [--hidden N] [--embed N] [--batch-size N] [--learning-rate X] [--seed N]\n"
         "         [--epochs N] [--seconds X] [--save FILE] [--load FILE] [--losses FILE]\n"
         "         [--device cpu|cuda[:N]|auto] [--mode vpps|dynet]\n"
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
         "  --losses  writes the number of each batch and its loss\n";
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
  const std::map<std::string, std::string *> texts = {
      {"--train", &o.train},   {"--dev", &o.dev},   {std::string("--") + a.data, &o.folder},
      {"--save", &o.save},     {"--load", &o.load}, {"--losses", &o.losses},
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
      std::cout << usage(a, argv[0]);
      std::exit(0);
    }
    if (!texts.count(name) && !sizes.count(name) && !numbers.count(name))
      throw std::runtime_error(name + " is unknown\n" + usage(a, argv[0]));
    if (++k == argc)
      throw std::runtime_error(name + " lacks its value\n" + usage(a, argv[0]));
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
  o.hidden = a.hidden;
  o.embed = a.embed;
  o.learning_rate = a.learning_rate;
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
                               a.data + " or --train\n" + usage(a, argv[0]));
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
  if (o.epochs == 0 && o.seconds == 0)
    o.epochs = 10;
  return o;
}

#endif
