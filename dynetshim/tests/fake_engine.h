// What tests see of the fake engine: the words, dims and inputs of the last call that
// brought any, and the calls made.
#ifndef FAKE_ENGINE_H
#define FAKE_ENGINE_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "vpps.h"

namespace fake {
struct State {
  std::vector<uint32_t> words;  // of the last call
  std::vector<vpps_dim> dims;   // of the graph so far
  std::vector<uint32_t> inputs; // of the graph so far
  uint32_t new_nodes = 0, nodes = 0;
  size_t new_dims = 0;
  std::vector<std::string> calls;
  std::string device;
  uint32_t seed = 0;
  std::vector<uint32_t> trained;
  vpps_trainer_options options;
  std::map<uint32_t, int> updated;
  int exposed = 0;
  float weight_decay = 1;          // every collection's factor
  int clip_next = 0;               // whether updates clip
  vpps_status fail_next = VPPS_OK; // of the next call on a graph, or update
};
State &state();
} // namespace fake
#endif
