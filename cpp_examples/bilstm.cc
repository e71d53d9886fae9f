// Tags every word of a sentence (as a place, a person ...) with a bidirectional LSTM: one
// reads the sentence forwards, one backwards, and what both know at a word gives its tag.
//
//	bilstm --demo                     about a minute on the sample sentences
//	bilstm --tags DIR --hidden 256    train.txt and dev.txt of word|TAG
#include <dynet/lstm.h>

#include "application.h"
#include "tag_answers.h"
#include "tags.h"

using namespace dynet;

class bilstm {
public:
  typedef tag_corpus corpus;

  bilstm(ParameterCollection &m, const corpus &data, const options &o)
      : forwards(1, o.embed, o.hidden, m), backwards(1, o.embed, o.hidden, m) {
    embeddings = m.add_lookup_parameters(data.words.size(), {o.embed});
    mlp = m.add_parameters({o.hidden, 2 * o.hidden});
    mlp_bias = m.add_parameters({o.hidden});
    tags = m.add_parameters({data.tags.size(), o.hidden});
    tags_bias = m.add_parameters({data.tags.size()});
  }

  // Brings the parameters into a new graph.
  void start(ComputationGraph &graph) {
    cg = &graph;
    forwards.new_graph(graph);
    backwards.new_graph(graph);
    w = parameter(graph, mlp);
    b = parameter(graph, mlp_bias);
    wt = parameter(graph, tags);
    bt = parameter(graph, tags_bias);
  }

  // The scores of the tags at every word.
  std::vector<Expression> scores(const tagged_sentence &s) {
    std::vector<Expression> words, before(s.size()), after(s.size());
    for (const tagged_word &word : s)
      words.push_back(lookup(*cg, embeddings, word.word_id));
    forwards.start_new_sequence();
    for (size_t k = 0; k < s.size(); k++)
      before[k] = forwards.add_input(words[k]);
    backwards.start_new_sequence();
    for (size_t k = s.size(); k-- > 0;)
      after[k] = backwards.add_input(words[k]);
    std::vector<Expression> out;
    for (size_t k = 0; k < s.size(); k++) {
      const Expression both = concatenate({before[k], after[k]});
      out.push_back(affine_transform({bt, wt, tanh(affine_transform({b, w, both}))}));
    }
    return out;
  }

  void add_losses(const tagged_sentence &s, std::vector<Expression> &losses) {
    const std::vector<Expression> out = scores(s);
    for (size_t k = 0; k < s.size(); k++)
      losses.push_back(pickneglogsoftmax(out[k], s[k].tag_id));
  }

  void add_answers(const tagged_sentence &s, std::vector<answer> &answers) {
    const std::vector<Expression> out = scores(s);
    for (size_t k = 0; k < s.size(); k++)
      answers.push_back({out[k], s[k].tag_id});
  }

private:
  VanillaLSTMBuilder forwards, backwards;
  LookupParameter embeddings;
  Parameter mlp, mlp_bias, tags, tags_bias;
  ComputationGraph *cg = nullptr;
  Expression w, b, wt, bt;
};

int main(int argc, char **argv) {
  const application bilstm_256 = {
      "BiLSTM tagger", "tags", "word|TAG word|TAG ...", "/tags", 256, 256, 0.05, nullptr};
  return run<bilstm>(bilstm_256, argc, argv, print_usual_tags);
}
