// Answers sentences without right answers: those of a file, or those that somebody types.
#ifndef VPPS_EXAMPLES_PREDICT_H
#define VPPS_EXAMPLES_PREDICT_H

#include <dynet/expr.h>

#include <unistd.h>

#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "answers.h"

// A model that answers with all of its scores: of every node or word, or of the sentence.
template <class Model> struct with_all_scores {
  Model &model;
  void start(dynet::ComputationGraph &cg) { model.start(cg); }
  void add_answers(const typename Model::corpus::sentence &s, std::vector<answer> &answers) {
    add(model.scores(s), answers);
  }

private:
  static void add(const std::vector<dynet::Expression> &all, std::vector<answer> &answers) {
    for (const dynet::Expression &e : all)
      answers.push_back({e, 0});
  }
  static void add(const dynet::Expression &e, std::vector<answer> &answers) {
    answers.push_back({e, 0});
  }
};

// The text that answers a line; empty, if the line is.
template <class Model>
std::string answer_to(Model &model, vpps::handle *hndl, typename Model::corpus &data,
                      const std::string &line, bool to_look_at) {
  if (line.find_first_not_of(" \t\r") == std::string::npos)
    return "";
  const std::vector<typename Model::corpus::sentence> one = {data.parse(line)};
  with_all_scores<Model> asked = {model};
  const answers all = ask(asked, hndl, one, 1);
  std::vector<unsigned> best;
  for (size_t k = 0; k < all.scores.size(); k++)
    best.push_back(all.best(k));
  return text_of_answers(data, one[0], best, to_look_at);
}

// A line of output for each line of the file.
template <class Model>
void predict_file(Model &model, vpps::handle *hndl, typename Model::corpus &data,
                  const std::string &path) {
  std::ifstream in(path.c_str());
  if (!in)
    throw std::runtime_error(path + ": cannot be opened");
  std::string line;
  for (size_t number = 1; std::getline(in, line); number++) {
    try {
      std::cout << answer_to(model, hndl, data, line, false) << '\n';
    } catch (const std::runtime_error &e) {
      std::cout.flush();
      throw std::runtime_error(path + ":" + std::to_string(number) + ": " + e.what());
    }
  }
  std::cout.flush();
}

// Until the input ends. A terminal sees what to type; what cannot be read is said, and the next
// line may be better.
template <class Model>
void answer_typed(Model &model, vpps::handle *hndl, typename Model::corpus &data) {
  const bool asked = isatty(STDIN_FILENO) != 0;
  if (asked)
    std::cout << "Type " << what_to_type(data) << " Ctrl-D ends.\n";
  for (std::string line;;) {
    if (asked)
      std::cout << "> " << std::flush;
    if (!std::getline(std::cin, line))
      break;
    try {
      const std::string text = answer_to(model, hndl, data, line, true);
      if (!text.empty())
        std::cout << text << std::endl;
    } catch (const std::runtime_error &e) {
      std::cerr << e.what() << std::endl;
    }
  }
  if (asked)
    std::cout << std::endl;
}

#endif
