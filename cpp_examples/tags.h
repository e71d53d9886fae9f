// Reads sentences of tagged words, one a line: Washington|LOC is|O a|O city|O .|O
#ifndef VPPS_EXAMPLES_TAGS_H
#define VPPS_EXAMPLES_TAGS_H

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <dynet/dict.h>

#include "options.h"

struct tagged_word {
  std::string word, tag;
  unsigned word_id = 0, tag_id = 0; // set by tag_corpus; without a tag, tag_id stays 0
  bool rare = false;                // in the training sentences
  std::vector<unsigned> characters; // if rare; set by tag_corpus
};

typedef std::vector<tagged_word> tagged_sentence;

// Parses one line; throws std::runtime_error without a file's name.
inline tagged_sentence parse_tags(const std::string &line) {
  tagged_sentence s;
  std::istringstream in(line);
  for (std::string text; in >> text;) {
    const size_t bar = text.rfind('|');
    if (bar == std::string::npos || bar == 0 || bar + 1 == text.size())
      throw std::runtime_error(text + " is not a word with a tag");
    s.push_back(tagged_word());
    s.back().word = text.substr(0, bar);
    s.back().tag = text.substr(bar + 1);
  }
  return s;
}

inline std::vector<tagged_sentence> read_tags(const std::string &path) {
  std::ifstream in(path.c_str());
  if (!in)
    throw std::runtime_error(path + ": cannot be opened: name a file with one sentence a line");
  std::vector<tagged_sentence> sentences;
  std::string line;
  for (size_t number = 1; std::getline(in, line); number++) {
    try {
      const tagged_sentence s = parse_tags(line);
      if (!s.empty())
        sentences.push_back(s);
    } catch (const std::runtime_error &e) {
      throw std::runtime_error(path + ":" + std::to_string(number) + ": " + e.what() +
                               ": write word|TAG word|TAG");
    }
  }
  if (sentences.empty())
    throw std::runtime_error(path + ": holds no sentences: name a file with one a line");
  return sentences;
}

// The sentences of two files. Words that occur fewer than five times in the first are rare:
// they are <unk>, and have the numbers of their characters.
struct tag_corpus {
  typedef tagged_sentence sentence;
  std::vector<tagged_sentence> train, dev;
  dynet::Dict words, tags, characters;

  // Without a path, dev stays empty.
  void read(const std::string &train_path, const std::string &dev_path) {
    train = read_tags(train_path);
    std::map<std::string, unsigned> counts;
    for (const tagged_sentence &s : train)
      for (const tagged_word &w : s) {
        counts[w.word]++;
        tags.convert(w.tag);
        for (char c : w.word)
          characters.convert(std::string(1, c));
      }
    for (const auto &c : counts)
      if (c.second >= 5)
        words.convert(c.first);
    words.freeze();
    words.set_unk("<unk>");
    characters.freeze();
    characters.set_unk("<unk>");
    tags.freeze();
    number(train);
    if (!dev_path.empty())
      read_held_out(dev_path);
  }

  void read_held_out(const std::string &path) {
    dev = read_tags(path);
    number(dev);
  }

  // A line to be answered: words, with known tags or without.
  tagged_sentence parse(const std::string &line) {
    std::vector<tagged_sentence> one(1);
    std::istringstream in(line);
    for (std::string text; in >> text;) {
      const size_t bar = text.rfind('|');
      const bool tagged =
          bar != std::string::npos && bar > 0 && tags.contains(text.substr(bar + 1));
      one[0].emplace_back();
      one[0].back().word = tagged ? text.substr(0, bar) : text;
    }
    number(one);
    return one[0];
  }

  // What numbers words, by its name in a model's file.
  std::vector<std::pair<const char *, dynet::Dict *>> vocabulary() {
    return {{"words", &words}, {"tags", &tags}, {"characters", &characters}};
  }

private:
  void number(std::vector<tagged_sentence> &sentences) {
    for (tagged_sentence &s : sentences)
      for (tagged_word &w : s) {
        if (!w.tag.empty() && !tags.contains(w.tag))
          throw std::runtime_error("the tag " + w.tag + " of " + w.word +
                                   " is not in the training sentences: train on some with it");
        if (!w.tag.empty())
          w.tag_id = unsigned(tags.convert(w.tag));
        w.word_id = unsigned(words.convert(w.word));
        w.rare = !words.contains(w.word);
        for (size_t k = 0; w.rare && k < w.word.size(); k++)
          w.characters.push_back(unsigned(characters.convert(w.word.substr(k, 1))));
      }
  }
};

// The baseline beside the taggers: every word has the tag that it has most often in the
// training sentences, a new word the tag 0. Returns the share of right tags in dev.
inline double accuracy_of_usual_tags(const tag_corpus &data) {
  std::map<std::string, std::vector<unsigned>> counts; // of each tag, by word
  for (const tagged_sentence &s : data.train)
    for (const tagged_word &w : s) {
      std::vector<unsigned> &n = counts[w.word];
      n.resize(data.tags.size());
      n[w.tag_id]++;
    }
  size_t right = 0, all = 0;
  for (const tagged_sentence &s : data.dev)
    for (const tagged_word &w : s) {
      const std::vector<unsigned> &n = counts[w.word];
      right += size_t(std::max_element(n.begin(), n.end()) - n.begin()) == w.tag_id;
      all++;
    }
  return double(right) / double(all);
}

inline void print_usual_tags(const tag_corpus &data, const options &) {
  std::printf("held-out accuracy: %5.1f %% each word's usual tag\n",
              100 * accuracy_of_usual_tags(data));
}

#endif
