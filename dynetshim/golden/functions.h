// Every expression function by the name that the recorded cases give it.
#ifndef GOLDEN_FUNCTIONS_H
#define GOLDEN_FUNCTIONS_H

#include <dynet/expr.h>
#include <dynet/model.h>

#include <functional>
#include <string>
#include <vector>

#include "records.h"

// One call of a function: its arguments, and what its pointer arguments point to.
struct call {
  const record &r;
  dynet::ComputationGraph &cg;
  std::vector<dynet::Expression> x; // the expression arguments
  dynet::Parameter parameter;       // of functions that take one
  dynet::LookupParameter table;
  bool takes_table;

  // Pointees of the attribute of that name. They hold what they held while the graph was
  // built; run settle before the graph is run.
  const unsigned *pointer(const std::string &name);
  const std::vector<unsigned> *list_pointer(const std::string &name);
  unsigned index;
  std::vector<unsigned> indices;
  std::vector<std::vector<unsigned>> lists;
  float scalar;
  std::vector<float> data;
  std::vector<std::function<void()>> changes;
  void settle() {
    for (auto &change : changes)
      change();
  }

  call(const record &r, dynet::ComputationGraph &cg)
      : r(r), cg(cg), takes_table(false), index(0), scalar(0) {}
  call(const call &) = delete;
};

typedef dynet::Expression (*function)(call &);

// Thrown by a function for a form that the front-end lacks.
struct not_implemented {};

// Null: not in the table.
function find_function(const record &r);

#endif
