// The options that the applications have in common.
#ifndef VPPS_EXAMPLES_OPTIONS_H
#define VPPS_EXAMPLES_OPTIONS_H

#include <fstream>
#include <string>
#include <vector>

#include "flags.h"
#include "trainers.h"

struct options;

// What sets an application apart here: its name, what its data are called ("trees"), how a
// line of them looks, where samples are (below cpp_examples/data), its usual sizes, and what it
// demands of the options; it throws usage_error.
struct application {
  const char *name, *data, *line, *samples;
  unsigned hidden, embed;
  double learning_rate;
  void (*check)(const options &);
};

struct options {
  std::string called, program; // as it was called; without its folder
  std::string train, dev, folder, save, load, predict, losses, curve, trace, device, checkpoint;
  std::string mode = "vpps", trainer = "sgd";
  std::vector<unsigned> batch_sizes = {1, 2, 4, 8, 16, 32, 64, 128};
  unsigned hidden = 0, embed = 0, batch_size = 8, epochs = 0, updates = 0, seed = 1, profile = 0;
  unsigned looks = 10, patience = 0, checkpoint_every = 1000;
  double seconds = 0, learning_rate = 0, measure = 0;
  bool demo = false, resume = false, interactive = false, csv = false, help = false;
  bool sizes_given = false;
};

// All options; they set the fields of o.
inline flags table_of(const application &a, options &o) {
  const std::string data = a.data, sentence = a.line;
  flags t;
  t.heading("what to do");
  t.on("--demo", o.demo,
       "train at most a minute on the sample " + data + "; implies --hidden 64 --embed 64\n" +
           "--seconds 60 --looks 60 --patience 10 --save " + o.called + ".model");
  t.readable("--load", o.load,
             "take the model of a file instead of training; alone, answers what is typed;\n"
             "with --dev or --" +
                 data + ", evaluates it");
  t.on("--interactive", o.interactive, "then answer sentences that are typed, one a line");
  t.readable("--predict", o.predict, "then answer the sentences of a file, one a line");
  t.number("--measure", "SECONDS", o.measure,
           "train for so long at each batch size, answer for half as long, and print\n"
           "rates and times; the learning rate is 0.0001 unless one is given");
  t.on("--help", o.help, "print this");

  t.heading("data, one sentence a line: " + sentence);
  t.text("--" + data, "DIR", o.folder, "a folder with train.txt and dev.txt");
  t.readable("--train", o.train, "the sentences to train on");
  t.readable("--dev", o.dev, "held-out sentences");

  t.heading("the model and its training");
  t.whole("--hidden", 1, o.hidden, "length of the hidden states");
  t.whole("--embed", 1, o.embed, "length of the embeddings");
  t.whole("--batch-size", 1, o.batch_size, "sentences in a batch, of each rank");
  t.choice("--trainer", trainer_names(), o.trainer, "update rule");
  std::ostringstream rate;
  rate << "of the updates [" << a.learning_rate << " for sgd, else DyNet's own]";
  t.number("--learning-rate", "X", o.learning_rate, rate.str());
  t.whole("--seed", 1, o.seed, "of everything random");
  t.whole("--epochs", 1, o.epochs, "end after N passes over the data [10, if no end is given]");
  t.number("--seconds", "X", o.seconds, "end after X seconds of training");
  t.whole("--updates", 1, o.updates, "end after N batches");
  t.whole("--looks", 1, o.looks, "looks at held-out sentences during training");
  t.whole("--patience", 0, o.patience,
          "end after N looks without a better score; counts looks that are a pass over the\n"
          "data apart; 0: go on [0]");

  t.heading("files");
  t.text("--save", "FILE", o.save, "write the model with its sizes and vocabulary");
  t.text("--checkpoint", "FILE", o.checkpoint,
         "keep all that training needs to go on: at the end, and when SIGINT or SIGTERM\n"
         "ends it");
  t.whole("--checkpoint-every", 1, o.checkpoint_every, "and each time after N batches");
  t.on("--resume", o.resume, "go on from the checkpoint, with the same results as without a break");
  t.text("--losses", "FILE", o.losses, "write the number and the loss of each batch");
  t.text("--curve", "FILE", o.curve,
         "write loss and score of the held-out sentences during training, as CSV; these\n"
         "looks take none of the --seconds");
  t.text("--trace", "FILE", o.trace,
         "write a timeline of program, scripts and device, for ui.perfetto.dev");

  t.heading("execution");
  t.text("--device", "NAME", o.device, "cpu, cuda, cuda:N or auto: a GPU, else the CPU [auto]");
  t.choice("--mode", {"vpps", "dynet"}, o.mode, "one call for a batch, or DyNet's three");
  t.whole("--profile", 1, o.profile,
          "1: on a GPU try plans on the first batches; the fastest stays");
  t.wholes("--batch-sizes", o.batch_sizes, "of --measure");
  t.on("--csv", o.csv, "--measure prints all of its numbers, as CSV");
  return t;
}

inline std::string help(const application &a, const options &o, const flags &table) {
  const std::string data = std::string("--") + a.data + " DIR", model = o.called + ".model";
  std::string text = "usage: " + o.called + " [OPTION...]\n" + table.help() + "\nexamples:\n";
  const auto example = [&text, &o](const std::string &arguments) {
    text += "  " + o.called + " " + arguments + "\n";
  };
  example("--demo");
  example("--load " + model);
  example("--load " + model + " --predict FILE");
  example("--load " + model + " " + data);
  example(data + " --trainer adam --save " + model);
  example(data + " --measure 1 --batch-sizes 1,16");
  return text;
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

inline bool is_device(const std::string &name) {
  return name == "cpu" || name == "auto" || name == "cuda" ||
         (name.compare(0, 5, "cuda:") == 0 && name.size() > 5 &&
          name.find_first_not_of("0123456789", 5) == std::string::npos);
}

// Options that only make sense with others.
inline void check_together(const application &a, const options &o) {
  if (!o.device.empty() && !is_device(o.device))
    throw usage_error("--device " + o.device + " is unknown: give cpu, cuda, cuda:N or auto");
  for (const std::string &file : {o.train, o.dev})
    if (!file.empty() && !std::ifstream(file.c_str()).good())
      throw usage_error(file +
                        " cannot be opened: name a folder with train.txt and dev.txt with --" +
                        a.data + ", or files with --train and --dev");
  if (o.load.empty() && o.train.empty())
    throw usage_error(std::string("nothing to do: give --demo, --") + a.data +
                      ", --train or --load: see --help");
  if (!o.load.empty() && o.measure > 0)
    throw usage_error("--measure trains a new model: leave --load out");
  if (o.csv && o.measure <= 0)
    throw usage_error("--csv is of --measure: give --measure");
  if (o.resume && o.checkpoint.empty())
    throw usage_error("--resume: from what? Give --checkpoint");
  if (!o.curve.empty() && o.dev.empty())
    throw usage_error("--curve: there are no held-out sentences: give --dev");
  if (o.patience && o.dev.empty())
    throw usage_error("--patience: there are no held-out sentences: give --dev");
  if (a.check && o.load.empty()) // a model that was saved has its own sizes
    a.check(o);
}

// What the command line says. What makes no sense is a usage_error.
inline options parse(const application &a, int argc, char **argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  options o;
  o.called = o.program = argv[0];
  o.program.erase(0, o.program.rfind('/') + 1); // npos + 1 is 0
  o.hidden = a.hidden;
  o.embed = a.embed;
  flags table = table_of(a, o);
  if (std::find(arguments.begin(), arguments.end(), "--demo") != arguments.end()) {
    o.hidden = o.embed = 64;
    o.seconds = 60;
    o.looks = 60;
    o.patience = 10;
  }
  table.parse(arguments);
  if (o.help) {
    std::fputs(help(a, o, table).c_str(), stdout);
    return o;
  }
  o.sizes_given = table.was_given("--hidden") || table.was_given("--embed");
  if (o.demo && o.folder.empty() && o.train.empty())
    o.folder = sample_folder(a, o.called);
  if (!o.folder.empty()) {
    if (o.train.empty() && o.load.empty())
      o.train = o.folder + "/train.txt";
    if (o.dev.empty())
      o.dev = o.folder + "/dev.txt";
  }
  if (o.demo && o.dev.empty() && !table.was_given("--patience"))
    o.patience = 0;
  if (o.demo && o.save.empty() && o.load.empty())
    o.save = o.called + ".model";
  if (o.epochs == 0 && o.seconds == 0 && o.updates == 0)
    o.epochs = 10;
  check_together(a, o);
  if (o.learning_rate == 0 && o.measure > 0)
    o.learning_rate = 1e-4; // nothing grows without bound
  if (o.learning_rate == 0 && o.trainer == "sgd")
    o.learning_rate = a.learning_rate;
  return o;
}

#endif
