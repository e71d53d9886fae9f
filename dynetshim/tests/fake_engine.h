// A stand-in for libvpps in tests of the front-end: it stores the words and parameters
// that it is given and computes nothing. A test that includes this header defines the C
// ABI itself, so that the library, though linked, is not used.
#ifndef FAKE_ENGINE_H
#define FAKE_ENGINE_H

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "decode.h"
#include "vpps.h"

namespace fake {
// What a test sees: the words of the last call that brought any, and the calls made.
struct State {
  std::vector<uint32_t> words;  // of the last call
  std::vector<vpps_dim> dims;   // of the graph so far
  std::vector<uint32_t> inputs; // of the graph so far
  uint32_t new_nodes = 0, nodes = 0;
  size_t new_dims = 0;
  std::vector<std::string> calls;
  std::string device;
  std::string description = "cpu: fake"; // of the engine that is opened next
  uint32_t seed = 0;
  std::vector<uint32_t> trained;
  vpps_trainer_options options;
  std::map<uint32_t, int> updated;
  int exposed = 0;
  uint32_t rank = 0, ranks = 1, seed_of_rank_0 = 0; // what a launcher would have told
  bool attached = false;
  float weight_decay = 1;          // every collection's factor
  int clip_next = 0;               // whether updates clip
  vpps_status fail_next = VPPS_OK; // of the next call on a graph, or update
};
} // namespace fake

struct vpps_engine {};
struct vpps_comm {};
struct vpps_trainer {};
struct vpps_handle {
  vpps_trainer *trainer;
};

namespace {
struct Block {
  std::vector<float> part[2];
};
// Never destroyed, since static parameters of a test outlive statics of this file.
fake::State &state = *new fake::State;
std::map<uint32_t, Block> &blocks = *new std::map<uint32_t, Block>;
uint32_t next_id = 0;
uint32_t collections = 0;
vpps_engine the_engine;
vpps_comm the_comm;
std::string &error = *new std::string;

// A failure asked for by the test happens once.
vpps_status outcome() {
  vpps_status s = state.fail_next;
  state.fail_next = VPPS_OK;
  if (s != VPPS_OK)
    error = "the fake engine was asked to fail";
  return s;
}
} // namespace

struct vpps_graph {
  uint32_t nodes = 0;
  std::vector<vpps_dim> dims;
  std::vector<uint32_t> node_dims;
};

namespace {
vpps_status take(vpps_graph *graph, const vpps_words *words, const char *call) {
  vpps_status s = outcome();
  if (s != VPPS_OK)
    return s;
  state.calls.push_back(call);
  if (words == nullptr)
    return VPPS_OK;
  state.words.assign(words->nodes, words->nodes + words->node_words);
  state.new_nodes = words->node_count;
  // The decoder's own check: the recorder must have come to the same dims.
  char msg[256];
  graph->dims.insert(graph->dims.end(), words->dims, words->dims + words->dim_count);
  for (const uint32_t *w = words->nodes; w != words->nodes + words->node_words;) {
    const uint32_t op = *w & 0xff;
    const int args = vpps_op_args(op);
    vpps_node n = {*w++, uint32_t(args), uint32_t(vpps_op_attrs(op)), 0, nullptr, nullptr};
    if (args < 0)
      n.nargs = *w++;
    n.args = w;
    n.attrs = w + n.nargs;
    if (vpps_check_node(&n, graph->dims.data(), graph->node_dims.data(), msg, sizeof msg) != 0) {
      error = "node " + std::to_string(graph->node_dims.size()) + ": " + msg;
      return VPPS_ERR_GRAPH;
    }
    graph->node_dims.push_back(n.head >> 8);
    w = n.attrs + n.nattrs;
  }
  state.dims = graph->dims;
  state.new_dims = words->dim_count;
  state.inputs.assign(words->inputs, words->inputs + words->input_words);
  graph->nodes += words->node_count;
  state.nodes = graph->nodes;
  return VPPS_OK;
}
} // namespace

extern "C" {

const char *vpps_version(void) { return "fake"; }
const char *vpps_build_info(void) { return "fake"; }
const char *vpps_last_error(void) { return error.c_str(); }

vpps_status vpps_frontend(const char *) { return VPPS_OK; }
vpps_status vpps_set_log(vpps_log_level, vpps_log_function, void *) { return VPPS_OK; }
vpps_status vpps_engine_open(const vpps_engine_options *options, vpps_engine **engine) {
  state.device = options->device ? options->device : "";
  state.seed = options->seed;
  *engine = &the_engine;
  return VPPS_OK;
}
void vpps_engine_close(vpps_engine *) {}
vpps_status vpps_engine_describe(vpps_engine *, char *text, size_t size) {
  if (size > 0)
    std::strncpy(text, state.description.c_str(), size - 1)[size - 1] = 0;
  return VPPS_OK;
}
vpps_status vpps_memory_report(vpps_engine *, char *, size_t, size_t *) { return outcome(); }
vpps_status vpps_engine_seed(vpps_engine *, uint32_t seed) {
  state.seed = seed;
  return VPPS_OK;
}
vpps_status vpps_comm_create_launched(vpps_engine *, double, vpps_comm **comm) {
  *comm = &the_comm;
  return outcome();
}
vpps_status vpps_comm_rank(vpps_comm *, uint32_t *rank, uint32_t *size) {
  *rank = state.rank;
  *size = state.ranks;
  return VPPS_OK;
}
vpps_status vpps_comm_broadcast(vpps_comm *, void *data, size_t size, uint32_t) {
  if (state.rank > 0 && size == sizeof state.seed_of_rank_0)
    std::memcpy(data, &state.seed_of_rank_0, size);
  return VPPS_OK;
}
vpps_status vpps_comm_attach(vpps_comm *, vpps_engine *, vpps_reduction) {
  state.attached = true;
  return VPPS_OK;
}
void vpps_comm_destroy(vpps_comm *) {}
vpps_status vpps_engine_statistics(vpps_engine *, vpps_statistics *s) {
  s->batches = 0;
  return VPPS_OK;
}

vpps_status vpps_collection_create(vpps_engine *, float, uint32_t *collection) {
  *collection = collections++;
  return VPPS_OK;
}
vpps_status vpps_collection_set_lambda(vpps_engine *, uint32_t, float) { return VPPS_OK; }
vpps_status vpps_collection_factor(vpps_engine *, uint32_t, float *factor) {
  *factor = state.weight_decay;
  return VPPS_OK;
}
vpps_status vpps_collection_set_factor(vpps_engine *, uint32_t, float factor) {
  state.weight_decay = factor;
  return VPPS_OK;
}

vpps_status vpps_parameter_create(vpps_engine *, uint32_t, const char *, const vpps_dim *dim,
                                  uint32_t, const float *values, uint32_t *id) {
  size_t n = dim->bd;
  for (uint32_t i = 0; i < dim->nd; ++i)
    n *= dim->d[i];
  Block &b = blocks[ *id = next_id++];
  b.part[0].assign(n, 0);
  b.part[1].assign(n, 0);
  if (values)
    b.part[0].assign(values, values + n);
  return VPPS_OK;
}
vpps_status vpps_parameter_destroy(vpps_engine *, uint32_t id) {
  blocks.erase(id);
  return VPPS_OK;
}
vpps_status vpps_parameter_read(vpps_engine *, uint32_t id, vpps_part part, uint64_t offset,
                                uint64_t count, float *to) {
  std::memcpy(to, blocks[id].part[part].data() + offset, count * sizeof(float));
  return VPPS_OK;
}
vpps_status vpps_parameter_write(vpps_engine *, uint32_t id, vpps_part part, uint64_t offset,
                                 uint64_t count, const float *from) {
  std::memcpy(blocks[id].part[part].data() + offset, from, count * sizeof(float));
  return VPPS_OK;
}
vpps_status vpps_parameter_scale(vpps_engine *, uint32_t id, vpps_part part, float factor) {
  for (float &x : blocks[id].part[part])
    x = factor == 0 ? 0 : x * factor;
  return VPPS_OK;
}
vpps_status vpps_parameter_expose(vpps_engine *, uint32_t id, vpps_part part, float **values) {
  ++state.exposed;
  *values = blocks[id].part[part].data();
  return VPPS_OK;
}
vpps_status vpps_parameter_set_updated(vpps_engine *, uint32_t id, int updated) {
  state.updated[id] = updated;
  return VPPS_OK;
}
vpps_status vpps_parameter_touched(vpps_engine *, uint32_t, uint32_t *, uint64_t, uint64_t *count,
                                   int *all) {
  *count = 0;
  *all = 0;
  return VPPS_OK;
}
vpps_status vpps_parameter_memory(vpps_engine *, uint32_t, float **values) {
  *values = nullptr;
  return VPPS_OK;
}
vpps_status vpps_parameter_gradient_memory(vpps_engine *, uint32_t, int, float **gradient) {
  *gradient = nullptr; // a device with memory of its own
  return VPPS_OK;
}
vpps_status vpps_parameter_set_touched(vpps_engine *, uint32_t, const uint32_t *, uint64_t, int) {
  return VPPS_OK;
}

vpps_status vpps_graph_create(vpps_engine *, vpps_graph **graph) {
  state.words.clear();
  state.inputs.clear();
  *graph = new vpps_graph;
  return VPPS_OK;
}
void vpps_graph_destroy(vpps_graph *graph) { delete graph; }

vpps_status vpps_forward(vpps_graph *graph, const vpps_words *words, uint32_t, int restart) {
  return take(graph, words, restart ? "forward" : "incremental");
}
vpps_status vpps_value(vpps_graph *graph, const vpps_words *words, uint32_t node, float *to,
                       size_t count) {
  vpps_status s = take(graph, words, "value");
  for (size_t i = 0; s == VPPS_OK && i < count; ++i)
    to[i] = static_cast<float>(node) + 0.25f * static_cast<float>(i);
  return s;
}
vpps_status vpps_backward(vpps_graph *graph, const vpps_words *words, uint32_t, int) {
  return take(graph, words, "backward");
}
vpps_status vpps_node_gradients(vpps_graph *graph, const vpps_words *words, uint32_t) {
  return take(graph, words, "node gradients");
}
vpps_status vpps_gradient(vpps_graph *, uint32_t node, float *to, size_t count) {
  for (size_t i = 0; i < count; ++i)
    to[i] = -static_cast<float>(node);
  return VPPS_OK;
}
vpps_status vpps_infer(vpps_graph *graph, const vpps_words *words, const uint32_t *, size_t,
                       uint64_t *ticket) {
  *ticket = 1;
  return take(graph, words, "infer");
}
vpps_status vpps_infer_result(vpps_engine *, uint64_t, float *to, size_t count) {
  std::fill_n(to, count, 0.0f);
  return VPPS_OK;
}
vpps_status vpps_infer_drop(vpps_engine *, uint64_t) { return VPPS_OK; }
vpps_status vpps_graph_truncate(vpps_graph *graph, uint32_t node) {
  state.calls.push_back("truncate " + std::to_string(node));
  graph->nodes = node < graph->nodes ? node : graph->nodes;
  graph->node_dims.resize(graph->nodes);
  return VPPS_OK;
}
vpps_status vpps_graph_invalidate(vpps_graph *, uint32_t node) {
  state.calls.push_back("invalidate " + std::to_string(node));
  return VPPS_OK;
}

vpps_status vpps_trainer_create(vpps_engine *, const vpps_trainer_options *options,
                                const uint32_t *ids, size_t count, vpps_trainer **trainer) {
  state.options = *options;
  state.trained.assign(ids, ids + count);
  *trainer = new vpps_trainer;
  return VPPS_OK;
}
vpps_status vpps_trainer_set(vpps_trainer *, const vpps_trainer_options *options) {
  state.options = *options;
  return VPPS_OK;
}
vpps_status vpps_trainer_add(vpps_trainer *, const uint32_t *ids, size_t count) {
  state.trained.insert(state.trained.end(), ids, ids + count);
  return VPPS_OK;
}
vpps_status vpps_trainer_restart(vpps_trainer *) { return VPPS_OK; }
vpps_status vpps_trainer_read_state(vpps_trainer *, uint32_t, uint64_t count, float *to) {
  std::fill_n(to, count, 0.0f);
  return VPPS_OK;
}
vpps_status vpps_trainer_write_state(vpps_trainer *, uint32_t, uint64_t, const float *) {
  return VPPS_OK;
}
vpps_status vpps_trainer_updates(vpps_trainer *, uint64_t *updates) {
  *updates = 0;
  return VPPS_OK;
}
vpps_status vpps_trainer_set_updates(vpps_trainer *, uint64_t) { return VPPS_OK; }

vpps_status vpps_update(vpps_trainer *, int *clipped) {
  state.calls.push_back("update");
  vpps_status s = outcome();
  if (clipped)
    *clipped = state.clip_next;
  return s;
}
void vpps_trainer_destroy(vpps_trainer *trainer) { delete trainer; }

vpps_status vpps_handle_create(vpps_engine *, const uint32_t *, size_t, vpps_trainer *trainer,
                               vpps_handle **handle) {
  *handle = new vpps_handle;
  (*handle)->trainer = trainer;
  return VPPS_OK;
}
void vpps_handle_destroy(vpps_handle *handle) { delete handle; }
vpps_trainer *vpps_handle_trainer(vpps_handle *handle) { return handle->trainer; }
vpps_status vpps_fb(vpps_handle *, vpps_graph *graph, const vpps_words *words, uint32_t node,
                    float *stale) {
  *stale = static_cast<float>(node);
  return take(graph, words, "fb");
}
vpps_status vpps_sync_latest_loss(vpps_handle *, float *loss) {
  *loss = 1;
  return VPPS_OK;
}
vpps_status vpps_handle_keep(vpps_handle *, vpps_graph *, const uint32_t *, size_t) {
  return VPPS_OK;
}
vpps_status vpps_handle_clips(vpps_handle *, uint64_t *clips) {
  *clips = state.clip_next ? 1 : 0;
  return VPPS_OK;
}
vpps_status vpps_plan_report(vpps_handle *, char *text, size_t size, size_t *needed) {
  if (size > 0)
    std::strncpy(text, "plan", size - 1)[size - 1] = 0;
  if (needed)
    *needed = 5;
  return VPPS_OK;
}
vpps_status vpps_script_dump(vpps_engine *, char *text, size_t size, size_t *needed) {
  return vpps_plan_report(nullptr, text, size, needed);
}
}
#endif
