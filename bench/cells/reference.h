// The same recurrences in float64, node by node.
#pragma once
#include "models.h"
#include <cmath>

struct Reference {
  std::vector<double> h, gates, leaf_gradients; // as in memory; of leaves only those of h for a RNN

  // memory: inputs of the batch.
  Reference(const Model &m, const Batch &b, const std::vector<const Tree *> &trees,
            const float *memory)
      : h(b.inners * WIDTH), gates(b.inners * m.gates * WIDTH),
        leaf_gradients(b.leaves * 2 * WIDTH), m(m), b(b), memory(memory) {
    for (size_t i = 0; i < trees.size(); i++)
      tree(*trees[i], b.leaf[i], b.inner[i]);
  }

private:
  const Model &m;
  const Batch &b;
  const float *memory;

  // y += W^T x for rows, W x for columns, of matrix s of the image at.
  void add(u32 image, u32 s, const double *x, double *y) {
    const float *w = memory + image + (size_t)s * WIDTH * WIDTH;
    for (u32 k = 0; k < WIDTH; k++)
      for (u32 j = 0; j < WIDTH; j++)
        y[j] += w[k * WIDTH + j] * x[k];
  }
  static double logistic(double x) { return 1 / (1 + std::exp(-x)); }

  void tree(const Tree &t, const std::vector<int> &leaf, const std::vector<int> &inner) {
    size_t n = t.size();
    typedef std::vector<double> Vector;
    std::vector<Vector> hs(n, Vector(WIDTH)), cs = hs, dh = hs, dc = hs, y(n);
    // Rows of the columns' image are columns of W, so that sums run over whole rows.
    const u32 side = m.cell ? 4 : 1;
    auto backward_slot = [&](u32 g, u32 s) { return m.cell ? 2 * g + s : s; };
    for (size_t v = 0; v < n; v++) {
      if (t.left[v] < 0) {
        for (u32 k = 0; k < WIDTH; k++) {
          hs[v][k] = memory[b.at.leaf_h + leaf[v] * WIDTH + k];
          cs[v][k] = memory[b.at.leaf_c + leaf[v] * WIDTH + k];
        }
        continue;
      }
      Vector z(m.gates * WIDTH);
      int child[2] = {t.left[v], t.right[v]};
      for (u32 s = 0; s < 2; s++)
        for (u32 g = 0; g < side; g++) {
          u32 gate = g < 3 ? g : 3 + s;
          add(b.at.columns, backward_slot(g, s), hs[child[s]].data(), &z[gate * WIDTH]);
          for (u32 k = 0; k < WIDTH; k++)
            z[gate * WIDTH + k] += memory[b.at.row_biases + (s * side + g) * WIDTH + k];
        }
      for (u32 k = 0; k < WIDTH; k++) {
        double *x = &z[k];
        if (m.cell) {
          for (u32 g = 0; g < 5; g++)
            x[g * WIDTH] = g == 2 ? std::tanh(x[g * WIDTH]) : logistic(x[g * WIDTH]);
          cs[v][k] =
              x[0] * x[2 * WIDTH] + x[3 * WIDTH] * cs[child[0]][k] + x[4 * WIDTH] * cs[child[1]][k];
          hs[v][k] = x[WIDTH] * std::tanh(cs[v][k]);
        } else
          hs[v][k] = x[0] = std::tanh(x[0]);
        h[inner[v] * WIDTH + k] = hs[v][k];
      }
      y[v] = z;
    }
    for (size_t v = n; v-- > 0;) {
      u32 at = leaf[v] >= 0 ? (u32)leaf[v] : b.leaves + (u32)inner[v];
      for (u32 k = 0; k < WIDTH; k++)
        dh[v][k] += memory[b.at.loss + at * WIDTH + k];
      if (t.left[v] < 0) {
        for (u32 k = 0; k < WIDTH; k++) {
          leaf_gradients[leaf[v] * 2 * WIDTH + k] = dh[v][k];
          leaf_gradients[leaf[v] * 2 * WIDTH + WIDTH + k] = dc[v][k];
        }
        continue;
      }
      int child[2] = {t.left[v], t.right[v]};
      double *d = &gates[inner[v] * m.gates * WIDTH];
      for (u32 k = 0; k < WIDTH; k++) {
        if (!m.cell) {
          d[k] = dh[v][k] * (1 - y[v][k] * y[v][k]);
          continue;
        }
        double x[5], tc = std::tanh(cs[v][k]);
        for (u32 g = 0; g < 5; g++)
          x[g] = y[v][g * WIDTH + k];
        double e = dc[v][k] + dh[v][k] * x[1] * (1 - tc * tc);
        d[k] = e * x[2] * x[0] * (1 - x[0]);
        d[WIDTH + k] = dh[v][k] * tc * x[1] * (1 - x[1]);
        d[2 * WIDTH + k] = e * x[0] * (1 - x[2] * x[2]);
        for (u32 s = 0; s < 2; s++) {
          d[(3 + s) * WIDTH + k] = e * cs[child[s]][k] * x[3 + s] * (1 - x[3 + s]);
          dc[child[s]][k] = e * x[3 + s];
        }
      }
      for (u32 s = 0; s < 2; s++)
        for (u32 g = 0; g < side; g++)
          add(b.at.rows, s * side + g, d + (g < 3 ? g : 3 + s) * WIDTH, dh[child[s]].data());
    }
  }
};
