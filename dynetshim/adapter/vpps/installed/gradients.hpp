// Gradients of parameters that a vpps::trainer updates. They are DyNet's: a program reads, scales,
// writes and resets them as ever. On the CPU DyNet's tensors are the engine's memory. Elsewhere,
// and while a handle exists, they are copies: brought after each backward, and what the program has
// changed is sent before the next backward or update. With defer_copies the copies are marked
// instead (marks.hpp): resetting them counts, reading gives NaN, any other change is an error.
#ifndef VPPS_INSTALLED_GRADIENTS_HPP
#define VPPS_INSTALLED_GRADIENTS_HPP

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "marks.hpp"
#include "parameters.hpp"

namespace vpps {
namespace installed {

class gradients {
public:
  explicit gradients(parameters &all) : all_(all) {}

  // From now on a vpps::trainer updates r.
  void govern(parameter_record &r) {
    if (r.trainers++ > 0)
      return;
    float *memory = nullptr;
    if (all_.handles() == 0)
      check(vpps_parameter_gradient_memory(all_.engine(), r.id, 1, &memory));
    if (memory == nullptr) {
      r.sent.assign(r.size(), 0);
      return;
    }
    for (size_t i = 0; i < r.size(); ++i)
      memory[i] += r.gradient()[i];
    r.own_gradient = r.gradient();
    r.point_gradient(memory);
  }
  // The last vpps::trainer is gone: DyNet has the gradient in its own memory, and the engine none.
  void release(parameter_record &r) {
    if (--r.trainers > 0)
      return;
    if (r.own_gradient)
      take_back(r);
    else if (r.deferred) {
      give(r);
      copy(r, false);
    }
    r.sent.clear();
    r.sent_rows.clear();
    all_.drop_gradient(r);
  }
  // A handle's batches in flight change gradients: DyNet gets its own memory.
  void separate(parameter_record &r) {
    if (!r.own_gradient)
      return;
    give(r);
    take_back(r);
    r.sent.assign(r.gradient(), r.gradient() + r.size());
    r.sent_rows = r.rows();
  }

  // DyNet to engine: what the program has done since the engine's gradients were taken.
  void give(parameter_record &r) {
    const std::vector<uint32_t> rows = r.rows();
    if (r.own_gradient) {
      if (r.table)
        check(vpps_parameter_set_touched(all_.engine(), r.id, rows.data(), rows.size(),
                                         r.table->all_updated));
      return;
    }
    if (!std::includes(rows.begin(), rows.end(), r.sent_rows.begin(), r.sent_rows.end())) {
      all_.drop_gradient(r); // rows were reset; the others are sent again
      for (uint32_t row : r.sent_rows)
        std::memset(&r.sent[row * r.row()], 0, r.row() * sizeof(float));
      r.sent_rows.clear();
    }
    for (uint32_t row : rows)
      send(r, row * r.row(), r.row(),
           r.table && !std::binary_search(r.sent_rows.begin(), r.sent_rows.end(), row));
    r.sent_rows = rows;
  }
  // Engine to DyNet, after a backward that used r.
  void take(parameter_record &r, bool deferred) {
    bool whole = false;
    std::vector<uint32_t> rows;
    if (r.table)
      rows = all_.touched(r, whole);
    r.note_gradient(rows, whole);
    if (r.own_gradient)
      return;
    r.sent_rows = r.rows();
    r.deferred = deferred;
    copy(r, deferred);
  }
  // An update has used the gradient, and the engine's is zero.
  void applied(parameter_record &r) {
    if (!r.wanted_updated())
      return;
    if (r.own_gradient) {
      r.forget_gradient();
      return;
    }
    for (uint32_t row : r.rows())
      std::memset(&r.sent[row * r.row()], 0, r.row() * sizeof(float));
    r.sent_rows.clear();
    r.deferred = false;
    r.dense ? r.dense->clear() : r.table->clear();
  }

private:
  void take_back(parameter_record &r) {
    std::memcpy(r.own_gradient, r.gradient(), r.size() * sizeof(float));
    r.point_gradient(r.own_gradient);
    r.own_gradient = nullptr;
    float *memory = nullptr;
    check(vpps_parameter_gradient_memory(all_.engine(), r.id, 0, &memory));
  }

  // The rows that may be other than zero, into DyNet's copy.
  void copy(parameter_record &r, bool deferred) {
    for (uint32_t row : r.rows()) {
      const size_t at = row * r.row(), n = r.row();
      if (deferred)
        mark(r.gradient() + at, n);
      else
        check(vpps_parameter_read(all_.engine(), r.id, VPPS_GRADIENT, at, n, r.gradient() + at));
      std::memcpy(&r.sent[at], r.gradient() + at, n * sizeof(float));
    }
  }

  void send(parameter_record &r, size_t at, size_t n, bool anew) {
    const float *now = r.gradient() + at;
    if (!anew && std::memcmp(now, &r.sent[at], n * sizeof(float)) == 0)
      return;
    if (marked(now, n))
      throw std::logic_error("the gradient of parameter " + r.name() +
                             " was changed in DyNet's memory, but is on the device: set "
                             "defer_copies = false on the vpps::trainer, or reset the gradient");
    if (r.dense && std::all_of(now, now + n, [](float x) { return x == 0; }))
      all_.drop_gradient(r);
    else
      check(vpps_parameter_write(all_.engine(), r.id, VPPS_GRADIENT, at, n, now));
    std::memcpy(&r.sent[at], now, n * sizeof(float));
  }

  parameters &all_;
};

} // namespace installed
} // namespace vpps
#endif
