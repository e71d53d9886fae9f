// How fast a tagger tells what it found. An ordinary DyNet program, which also compiles against
// DyNet's own headers: a BiLSTM of 2 x 128 over random words, 9 scores a word.
//
//   build/bench/values [SENTENCES]
//
// scores: the whole sentence is recorded, then as_vector(score.value()) word by word, as taggers
// and parsers do. greedy: a word's scores read the tag that was best before, so that nothing can be
// evaluated ahead. One CSV row each: way, median words/s of five rounds, a sum over the scores.
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/lstm.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <random>
#include <vector>

using namespace dynet;

namespace {

const unsigned HIDDEN = 128, TAGS = 9, WORDS = 5000;

class tagger {
public:
  explicit tagger(ParameterCollection &m)
      : left_(1, HIDDEN, HIDDEN, m), right_(1, HIDDEN, HIDDEN, m),
        words_(m.add_lookup_parameters(WORDS, {HIDDEN})),
        tags_(m.add_lookup_parameters(TAGS + 1, {TAGS})),
        weights_(m.add_parameters({TAGS, 2 * HIDDEN})), bias_(m.add_parameters({TAGS})) {}

  // The sum of the scores of the best tags.
  double tag(const std::vector<unsigned> &sentence, bool greedy) {
    ComputationGraph cg;
    const std::vector<Expression> read = states(cg, sentence);
    const Expression w = parameter(cg, weights_), b = parameter(cg, bias_);
    std::vector<Expression> scores;
    for (const Expression &state : read)
      scores.push_back(affine_transform({b, w, state}));
    double sum = 0;
    unsigned before = TAGS;
    for (Expression &score : scores) {
      const Expression whole = greedy ? score + lookup(cg, tags_, before) : score;
      const std::vector<float> of = as_vector(whole.value());
      before = unsigned(std::max_element(of.begin(), of.end()) - of.begin());
      sum += of[before];
    }
    return sum;
  }

private:
  std::vector<Expression> states(ComputationGraph &cg, const std::vector<unsigned> &sentence) {
    std::vector<Expression> in, back(sentence.size()), both;
    for (unsigned word : sentence)
      in.push_back(lookup(cg, words_, word));
    left_.new_graph(cg);
    left_.start_new_sequence();
    right_.new_graph(cg);
    right_.start_new_sequence();
    for (size_t k = in.size(); k-- > 0;)
      back[k] = right_.add_input(in[k]);
    for (size_t k = 0; k < in.size(); k++)
      both.push_back(concatenate({left_.add_input(in[k]), back[k]}));
    return both;
  }

  VanillaLSTMBuilder left_, right_;
  LookupParameter words_, tags_;
  Parameter weights_, bias_;
};

void measure(tagger &model, unsigned sentences, bool greedy) {
  std::vector<double> rates;
  double sum = 0;
  for (unsigned round = 0; round <= 5; round++) {
    std::mt19937 draw(round);
    size_t words = 0;
    const auto start = std::chrono::steady_clock::now();
    for (unsigned k = 0; k < sentences; k++) {
      std::vector<unsigned> sentence(10 + draw() % 25);
      for (unsigned &word : sentence)
        word = draw() % WORDS;
      sum += model.tag(sentence, greedy);
      words += sentence.size();
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (round > 0) // the first compiles kernels and learns cells
      rates.push_back(double(words) / took.count());
  }
  std::sort(rates.begin(), rates.end());
  std::printf("%s,%.0f,%.4f\n", greedy ? "greedy" : "scores", rates[2], sum);
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  try {
    DynetParams params = extract_dynet_params(argc, argv);
    if (params.random_seed == 0)
      params.random_seed = 1;
    initialize(params);
    const unsigned sentences = argc > 1 ? unsigned(std::stoul(argv[1])) : 200;
    ParameterCollection m;
    tagger model(m);
    measure(model, sentences, false);
    measure(model, sentences, true);
    return 0;
  } catch (const std::exception &e) {
    std::cerr << "values: " << e.what() << std::endl;
    return 1;
  }
}
