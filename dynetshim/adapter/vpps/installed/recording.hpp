// Walks a ComputationGraph of DyNet's into the wire format: the same words that libvpps's own
// front-end records for the same program.
#ifndef VPPS_INSTALLED_RECORDING_HPP
#define VPPS_INSTALLED_RECORDING_HPP

#include <cxxabi.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

#include "array.hpp"
#include "ops.h"
#include "own_nodes.hpp"
#include "parameters.hpp"
#include "patches.hpp"

namespace vpps {

// A node whose class libvpps does not know: one of the program's own, or not implemented yet.
class unknown_node : public std::invalid_argument {
public:
  explicit unknown_node(const std::string &text) : std::invalid_argument(text) {}
};

namespace installed {

inline uint32_t bits(float f) {
  uint32_t u;
  std::memcpy(&u, &f, sizeof u);
  return u;
}

class recording;

// An operation: its code and, unless its words are only the arguments, who writes them.
struct operation {
  const std::type_info *type;
  uint32_t code;
  bool list; // any number of arguments
  void (*write)(recording &, const dynet::Node &, uint32_t dim_id);
};

class recording {
public:
  recording() : epoch_(0), trainable_(false), draws_(false) { restart(); }

  // Forgets all nodes.
  void restart() {
    ++epoch_;
    words.resize(0);
    starts.resize(0);
    node_dims.resize(0);
    inputs.resize(0);
    dims.resize(0);
    patches.resize(0);
    own_nodes.clear();
    parameter_nodes_ = 0;
    draws_ = false;
  }
  // Forgets nodes from n on; dims stay.
  void truncate(uint32_t n) {
    if (n >= count())
      return;
    words.resize(starts[n].words);
    inputs.resize(starts[n].inputs);
    starts.resize(n);
    node_dims.resize(n);
    while (patches.size() > 0 && patches[patches.size() - 1].node >= n)
      patches.resize(patches.size() - 1);
    while (!own_nodes.empty() && own_nodes.back().i >= n)
      own_nodes.pop_back();
    parameter_nodes_ = 0; // found again by walk
  }
  uint32_t count() const { return static_cast<uint32_t>(node_dims.size()); }

  // Takes the nodes made since the last call. A node that cannot be taken, and those behind it,
  // are left out: std::invalid_argument says which and why. With by_dynet nodes of unknown classes
  // are own nodes.
  void walk(const dynet::ComputationGraph &cg, bool by_dynet) {
    const std::vector<dynet::Node *> &nodes = cg.nodes;
    const std::vector<dynet::VariableIndex> &trained = cg.parameter_nodes;
    const uint32_t end = static_cast<uint32_t>(nodes.size());
    uint32_t i = count();
    while (parameter_nodes_ < trained.size() && trained[parameter_nodes_] < i)
      ++parameter_nodes_;
    for (; i < end; ++i) {
      const dynet::Node &node = *nodes[i];
      const start at = {static_cast<uint32_t>(words.size()), static_cast<uint32_t>(inputs.size())};
      trainable_ = parameter_nodes_ < trained.size() && trained[parameter_nodes_] == i;
      try {
        take(node, i, by_dynet);
      } catch (const unknown_node &) {
        words.resize(at.words);
        inputs.resize(at.inputs);
        throw;
      } catch (const std::invalid_argument &e) {
        words.resize(at.words);
        inputs.resize(at.inputs);
        throw std::invalid_argument("node " + std::to_string(i) + ", " + e.what());
      }
      parameter_nodes_ += trainable_;
      starts.push(at);
    }
  }

  // Reads what the pointers of nodes first..last point to.
  void read_pointers(uint32_t first, uint32_t last) { read_patches(patches, inputs, first, last); }

  // ---- for those who write a node's words ----

  void head(uint32_t op, uint32_t dim_id, std::initializer_list<uint32_t> rest) {
    uint32_t *w = words.add(1 + rest.size());
    *w = op | dim_id << 8;
    for (uint32_t x : rest)
      *++w = x;
  }
  void list(uint32_t op, uint32_t dim_id, const std::vector<dynet::VariableIndex> &args) {
    uint32_t *w = words.add(2 + args.size());
    w[0] = op | dim_id << 8;
    w[1] = static_cast<uint32_t>(args.size());
    if (!args.empty())
      std::memcpy(w + 2, args.data(), args.size() * sizeof *w);
  }
  uint32_t inputs_at() const { return static_cast<uint32_t>(inputs.size()); }
  void now(const void *from, size_t n) {
    if (n > 0)
      std::memcpy(inputs.add(n), from, n * sizeof(uint32_t));
  }
  void later(uint32_t kind, const void *from, size_t n) {
    const patch p = {from, kind, count(), inputs_at(), static_cast<uint32_t>(n)};
    std::memset(inputs.add(n), 0, n * sizeof(uint32_t));
    patches.push(p);
  }
  // A node's index or indices; own and owns are its own copies, which cannot change.
  void indices(const unsigned *one, const unsigned *own, const std::vector<unsigned> *several,
               const std::vector<unsigned> *owns) {
    if (one == own)
      now(one, 1);
    else if (one != nullptr)
      later(patch::one_index, one, 1);
    else if (several == owns)
      now(several->data(), several->size());
    else
      later(patch::indices, several, several->size());
  }
  const vpps_dim &dim(uint32_t node) const { return dims[node_dims[node]]; }
  uint32_t batch(uint32_t node) const { return dims[node_dims[node]].bd; }
  void match(const char *what, size_t n, uint32_t batch) const {
    if (n != batch)
      throw std::invalid_argument(std::string(what) + ": got " + std::to_string(n) +
                                  (n == 1 ? " index" : " indices") + " for a batch of " +
                                  std::to_string(batch) + "; give one for each element");
  }
  void will_draw() { draws_ = true; }
  // Whether a node draws random numbers.
  bool draws() const { return draws_; }
  // Whether the node being written is trained, as a lookup or not.
  bool trainable() const { return trainable_; }

  array<uint32_t> words, node_dims, inputs;
  array<vpps_dim> dims;
  array<patch> patches;
  std::deque<own_node> own_nodes; // ascending; at addresses that stay

  // The number of a dim.
  uint32_t intern(const dynet::Dim &dim) {
    if (dim.nd > 7)
      throw std::invalid_argument("a dim has at most 7 axes");
    const vpps_dim d = wire(dim);
    if (slots_.size() < 2 * (dims.size() + 1))
      grow();
    uint32_t at = place(d);
    for (; slots_[at].epoch == epoch_; at = next(at))
      if (std::memcmp(&dims[slots_[at].id], &d, sizeof d) == 0)
        return slots_[at].id;
    const slot s = {epoch_, static_cast<uint32_t>(dims.size())};
    if (s.id >= 1u << 24)
      throw std::invalid_argument("more than 2^24 different shapes in one graph");
    slots_[at] = s;
    dims.push(d);
    return s.id;
  }

private:
  struct start { // of a node's words and inputs
    uint32_t words, inputs;
  };
  struct known {
    const std::type_info *type;
    const operation *op;
  };
  struct slot {
    uint32_t epoch, id;
  };

  void take(const dynet::Node &node, uint32_t i, bool by_dynet) {
    const operation *op = find(typeid(node));
    if (op == nullptr && !by_dynet)
      refuse(node, i,
             "libvpps cannot run: replace it by other operations (docs/COMPATIBILITY.md "
             "lists them), or let DyNet run such nodes (vpps::or_dynet)");
    if (op == nullptr &&
        (dynamic_cast<const dynet::ParameterNodeBase *>(&node) || in_place(node, 0)))
      refuse(node, i, "DyNet cannot run by itself: it is a parameter's or works in place");
    for (dynet::VariableIndex a : node.args)
      if (a >= i)
        throw std::invalid_argument("argument " + std::to_string(a) + " does not come before it");
    const uint32_t dim_id = dim_of(node, op ? op->code : uint32_t(VPPS_OP_INPUT_NODE));
    if (op == nullptr) {
      dynet::Device *const device = node.device ? node.device : dynet::default_device;
      own_nodes.push_back(
          own_node{i, &node, device, class_of(node), std::vector<float>(node.dim.size()), {}});
      head(VPPS_OP_INPUT_NODE, dim_id, {inputs_at()});
      later(patch::floats, &own_nodes.back().value, node.dim.size());
    } else if (op->write) {
      op->write(*this, node, dim_id);
    } else if (op->list) {
      list(op->code, dim_id, node.args);
    } else {
      const size_t n = node.args.size();
      uint32_t *w = words.add(1 + n);
      w[0] = op->code | dim_id << 8;
      for (size_t k = 0; k < n; ++k)
        w[1 + k] = node.args[k];
    }
    node_dims.push(dim_id);
  }

  static bool same(const vpps_dim &a, const dynet::Dim &b) {
    if (a.nd != b.nd || a.bd != b.bd)
      return false;
    for (unsigned k = 0; k < b.nd; ++k)
      if (a.d[k] != b.d[k])
        return false;
    return true;
  }

  // Most nodes have the dim of their last argument or of the last node of their kind.
  uint32_t dim_of(const dynet::Node &node, uint32_t code) {
    const dynet::Dim &d = node.dim;
    if (!node.args.empty()) {
      const uint32_t id = node_dims[node.args.back()];
      if (same(dims[id], d))
        return id;
    }
    const slot &last = last_[code];
    if (last.epoch == epoch_ && same(dims[last.id], d))
      return last.id;
    if (code == VPPS_OP_LOOKUP_NODE && d.bd != 1) { // rows' own dim comes first, as when recorded
      dynet::Dim row = d;
      row.bd = 1;
      intern(row);
    }
    const slot found = {epoch_, intern(d)};
    last_[code] = found;
    return found.id;
  }

  uint32_t place(const vpps_dim &d) const {
    const uint32_t *w = &d.nd;
    uint32_t h = 0;
    for (int k = 0; k < 9; ++k)
      h = h * 37 + w[k];
    h *= 0x9e3779b1u;
    return (h ^ h >> 15) & (static_cast<uint32_t>(slots_.size()) - 1);
  }
  uint32_t next(uint32_t at) const { return (at + 1) & (static_cast<uint32_t>(slots_.size()) - 1); }
  void grow() {
    const slot empty = {0, 0};
    slots_.assign(slots_.empty() ? 64 : 2 * slots_.size(), empty);
    for (uint32_t id = 0; id < dims.size(); ++id) {
      uint32_t at = place(dims[id]);
      while (slots_[at].epoch == epoch_)
        at = next(at);
      const slot s = {epoch_, id};
      slots_[at] = s;
    }
  }

  const operation *find(const std::type_info &type);

  static std::string class_of(const dynet::Node &node) {
    int status = 0;
    char *plain = abi::__cxa_demangle(typeid(node).name(), nullptr, nullptr, &status);
    const std::string name = status == 0 ? plain : typeid(node).name();
    std::free(plain);
    return name;
  }
  [[noreturn]] static void refuse(const dynet::Node &node, uint32_t i, const std::string &why) {
    throw unknown_node("node " + std::to_string(i) + " is of class " + class_of(node) + ", which " +
                       why);
  }
  // Whether DyNet may compute the node in its argument's memory; DyNet 2.1 never does.
  template <class N> static auto in_place(const N &n, int) -> decltype(n.inplaced()) {
    return n.inplaced();
  }
  static bool in_place(const dynet::Node &, long) { return false; }

  static const size_t known_size = 256;
  known known_[known_size] = {};
  slot last_[256] = {};
  std::vector<slot> slots_;
  array<start> starts;
  uint32_t epoch_;
  size_t parameter_nodes_;
  bool trainable_, draws_;
};

// Recordings wait here for the next graph: their memory, and which classes they have met, are
// worth keeping.
struct spare_recordings {
  std::mutex mutex;
  std::vector<std::unique_ptr<recording>> all;
};
inline spare_recordings &spares() {
  static spare_recordings *s = new spare_recordings; // graphs may outlive other statics
  return *s;
}
inline std::unique_ptr<recording> take_recording() {
  spare_recordings &s = spares();
  std::lock_guard<std::mutex> lock(s.mutex);
  if (s.all.empty())
    return std::unique_ptr<recording>(new recording);
  std::unique_ptr<recording> r = std::move(s.all.back());
  s.all.pop_back();
  return r;
}
inline void give_back(std::unique_ptr<recording> r) {
  r->restart();
  spare_recordings &s = spares();
  std::lock_guard<std::mutex> lock(s.mutex);
  if (s.all.size() < 4)
    s.all.push_back(std::move(r));
}

} // namespace installed
} // namespace vpps
#endif
