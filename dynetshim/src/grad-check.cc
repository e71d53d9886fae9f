// Central differences over every trainable number.
#include "dynet/grad-check.h"

#include <algorithm>
#include <cmath>
#include <iostream>

namespace dynet {

bool check_grad(ParameterCollection &m, Expression &expr, int verbosity) {
  const float step = 5e-3f;
  ComputationGraph &g = *expr.pg;
  m.reset_gradient();
  g.forward(expr);
  g.backward(expr);

  std::vector<std::shared_ptr<ParameterStorageBase>> all;
  all.insert(all.end(), m.unexposed_parameters().begin(), m.unexposed_parameters().end());
  size_t tables_from = all.size();
  all.insert(all.end(), m.unexposed_tables().begin(), m.unexposed_tables().end());

  bool right = true;
  for (size_t k = 0; k < all.size(); ++k) {
    ParameterStorageBase &p = *all[k];
    std::vector<float> values = p.read(VPPS_VALUES), gradient = p.read(VPPS_GRADIENT);
    for (size_t i = 0; i < values.size(); ++i) {
      // Rows of tables that no lookup touched have a gradient of 0 by construction.
      if (k >= tables_from && gradient[i] == 0)
        continue;
      float moved = values[i] + step;
      p.write(VPPS_VALUES, i, &moved, 1);
      float up = as_scalar(g.forward(expr));
      moved = values[i] - step;
      p.write(VPPS_VALUES, i, &moved, 1);
      float down = as_scalar(g.forward(expr));
      p.write(VPPS_VALUES, i, &values[i], 1);

      float measured = (up - down) / (2 * step);
      float difference = std::fabs(gradient[i] - measured);
      float larger = std::max(std::fabs(gradient[i]), std::fabs(measured));
      bool wrong = !(difference <= 0.01f || difference <= 0.01f * larger);
      right = right && !wrong;
      if (verbosity > (wrong ? 0 : 1))
        std::cerr << (wrong ? "*** " : "") << p.name << '[' << i << "]: gradient " << gradient[i]
                  << ", measured " << measured << "\n";
    }
  }
  g.forward(expr); // with the values as they were
  return right;
}

} // namespace dynet
