// Answers of a tagger as text: word|TAG word|TAG, each tag but O in a colour of its own.
#ifndef VPPS_EXAMPLES_TAG_ANSWERS_H
#define VPPS_EXAMPLES_TAG_ANSWERS_H

#include <string>
#include <vector>

#include "tags.h"
#include "terminal.h"

inline std::string text_of_answers(const tag_corpus &data, const tagged_sentence &s,
                                   const std::vector<unsigned> &tags, bool) {
  static const char *const colours[] = {"32", "33", "36", "35", "34", "31"};
  std::string text;
  for (size_t k = 0; k < s.size(); k++) {
    const std::string &tag = data.tags.convert(int(tags[k]));
    text += (k ? " " : "") + painted(s[k].word + "|" + tag, tag == "O" ? "" : colours[tags[k] % 6]);
  }
  return text;
}

inline std::string what_to_type(const tag_corpus &) { return "words with spaces between them."; }

#endif
