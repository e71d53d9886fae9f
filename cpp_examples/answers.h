// Asking a model about sentences, without training: scores, how good they are, and how long an
// answer takes.
#ifndef VPPS_EXAMPLES_ANSWERS_H
#define VPPS_EXAMPLES_ANSWERS_H

#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <vpps/vpps.hpp> // libvpps

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <vector>

#include "progress.h"

// The scores of the labels that a sentence, or one of its words, may have; and the right one.
struct answer {
  dynet::Expression scores;
  unsigned right;
};

struct answers {
  std::vector<std::vector<float>> scores;
  std::vector<unsigned> right;
  std::vector<double> seconds; // of each graph, from its first node to its scores

  unsigned best(size_t k) const {
    return unsigned(std::max_element(scores[k].begin(), scores[k].end()) - scores[k].begin());
  }
  // The share of right answers.
  double accuracy() const {
    size_t count = 0;
    for (size_t k = 0; k < right.size(); k++)
      count += best(k) == right[k];
    return double(count) / double(right.size());
  }
  // The mean loss: -log of the right label's probability.
  double loss() const {
    double sum = 0;
    for (size_t k = 0; k < right.size(); k++) {
      const double most = scores[k][best(k)];
      double z = 0;
      for (float s : scores[k])
        z += std::exp(s - most);
      sum += most + std::log(z) - scores[k][right[k]];
    }
    return sum / double(right.size());
  }
};

// Asks a model, one graph after the other. With a handle (libvpps) the program records the next
// graph while the device answers those before: answers come a few graphs later.
template <class Model> class questions {
public:
  // ahead: how many graphs are asked before the answer to the first is fetched.
  questions(Model &model, answers &all, vpps::handle *hndl, size_t ahead = 2)
      : model(model), all(all), hndl(hndl), ahead(ahead) {}

  // Asks about the sentences from first to before last in one graph, forward only.
  template <class Sentence>
  void ask(const std::vector<Sentence> &sentences, size_t first, size_t last) {
    question q;
    dynet::ComputationGraph cg;
    model.start(cg);
    std::vector<answer> asked;
    for (size_t k = first; k < last; k++)
      model.add_answers(sentences[k], asked);
    std::vector<dynet::Expression> scores;
    scores.reserve(asked.size());
    for (const answer &a : asked) {
      scores.push_back(a.scores);
      q.right.push_back(a.right);
    }
    // One node for all of them, so that they are fetched at once.
    const dynet::Expression flat = dynet::concatenate(scores);
    if (!hndl) {
      note(q, dynet::as_vector(cg.forward(flat)));
      return;
    }
    q.ticket = hndl->infer(cg, flat); // libvpps
    waiting.push_back(q);
    fetch(ahead);
  }

  // Fetches the answers that are left.
  void finish() { fetch(0); }

private:
  struct question {
    vpps::ticket ticket;
    std::vector<unsigned> right;
    stopwatch clock;
  };

  void fetch(size_t left) {
    for (; waiting.size() > left; waiting.pop_front())
      note(waiting.front(), hndl->result(waiting.front().ticket)); // libvpps
  }
  void note(const question &q, const std::vector<float> &flat) {
    const size_t labels = flat.size() / q.right.size();
    for (size_t k = 0; k < q.right.size(); k++) {
      all.scores.emplace_back(flat.begin() + long(k * labels),
                              flat.begin() + long((k + 1) * labels));
      all.right.push_back(q.right[k]);
    }
    all.seconds.push_back(q.clock.seconds());
  }

  Model &model;
  answers &all;
  vpps::handle *hndl;
  size_t ahead;
  std::deque<question> waiting;
};

// Answers the first count sentences, several in one graph.
template <class Model, class Sentence>
answers ask(Model &model, vpps::handle *hndl, const std::vector<Sentence> &sentences, size_t count,
            size_t together = 16, size_t ahead = 2) {
  answers all;
  questions<Model> asked(model, all, hndl, ahead);
  for (size_t first = 0; first < count; first += together)
    asked.ask(sentences, first, std::min(count, first + together));
  asked.finish();
  return all;
}

// How long an answer to one sentence takes.
template <class Model, class Sentence>
void print_latency(Model &model, vpps::handle *hndl, const std::vector<Sentence> &sentences) {
  std::vector<double> seconds =
      ask(model, hndl, sentences, std::min<size_t>(sentences.size(), 500), 1, 0).seconds;
  std::sort(seconds.begin(), seconds.end());
  std::printf("answers to one sentence at a time: median %.2f ms, 99 %% within %.2f ms\n",
              1e3 * seconds[seconds.size() / 2], 1e3 * seconds[seconds.size() * 99 / 100]);
}

#endif
