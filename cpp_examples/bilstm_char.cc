// The tagger of bilstm.cc, which also reads characters: of a word that the training
// sentences have fewer than five times, another bidirectional LSTM makes the embedding from
// its letters. So the graph depends on which words are rare as well.
//
//	bilstm_char --demo                     about a minute on the sample sentences
//	bilstm_char --tags DIR --hidden 256    train.txt and dev.txt of word|TAG
#include <dynet/lstm.h>

#include "application.h"
#include "tag_answers.h"
#include "tags.h"

using namespace dynet;

class bilstm_char {
public:
  typedef tag_corpus corpus;

  bilstm_char(ParameterCollection &m, const corpus &data, const options &o)
      : forwards(1, o.embed, o.hidden, m), backwards(1, o.embed, o.hidden, m),
        spelling(1, character_embed, o.embed / 2, m),
        spelling_back(1, character_embed, o.embed - o.embed / 2, m) {
    characters = m.add_lookup_parameters(data.characters.size(), {character_embed});
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
    spelling.new_graph(graph);
    spelling_back.new_graph(graph);
    w = parameter(graph, mlp);
    b = parameter(graph, mlp_bias);
    wt = parameter(graph, tags);
    bt = parameter(graph, tags_bias);
  }

  // The scores of the tags at every word.
  std::vector<Expression> scores(const tagged_sentence &s) {
    std::vector<Expression> words, before(s.size()), after(s.size());
    for (const tagged_word &word : s)
      words.push_back(embedding(word));
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
  // A word as the sentence's LSTMs see it: known, or spelled forwards and backwards.
  Expression embedding(const tagged_word &word) {
    if (!word.rare)
      return lookup(*cg, embeddings, word.word_id);
    std::vector<Expression> letters;
    for (unsigned c : word.characters)
      letters.push_back(lookup(*cg, characters, c));
    spelling.start_new_sequence();
    spelling_back.start_new_sequence();
    for (size_t k = 0; k < letters.size(); k++) {
      spelling.add_input(letters[k]);
      spelling_back.add_input(letters[letters.size() - 1 - k]);
    }
    return concatenate({spelling.back(), spelling_back.back()});
  }

  static const unsigned character_embed = 64;
  VanillaLSTMBuilder forwards, backwards, spelling, spelling_back;
  LookupParameter embeddings, characters;
  Parameter mlp, mlp_bias, tags, tags_bias;
  ComputationGraph *cg = nullptr;
  Expression w, b, wt, bt;
};

// A rare word's embedding is spelled from both ends.
void need_two_halves(const options &o) {
  if (o.embed < 2)
    throw usage_error("--embed 1: a word of two halves needs 2 at least");
}

int main(int argc, char **argv) {
  const application bilstm_char_256 = {"BiLSTM tagger with characters",
                                       "tags",
                                       "word|TAG word|TAG ...",
                                       "/tags",
                                       256,
                                       256,
                                       0.05,
                                       need_two_halves};
  return run<bilstm_char>(bilstm_char_256, argc, argv, print_usual_tags);
}
