// Affine and AffineT on the CPU: one product after another, then the function.
#pragma once

VP_SLOW void affine(const Launch &l, const vpps_residency &res, const Processor &p, const u32 *w,
                    const u32 *items, u32 flags, u32 count) {
  const u32 terms = w[0] >> 8 & 255u;
  for (u32 t = 0; t < terms; t++) {
    const u32 id = w[AFFINE_MATRICES] >> 8 * t & 255u;
    const vpps_matrix &m = res.matrix[id];
    const u32 *first = res.first + id * res.processors + p.id;
    for (u32 k = first[0]; k < first[1]; k++) {
      const vpps_rows &part = res.parts[k];
      float *y = address(l, w[AFFINE_SEGMENTS], 0, part.row);
      Rows rows = {};
      rows.w = l.segment[SEG_PARAM] + m.offset + part.row;
      rows.ld = m.rows, rows.rows = part.rows, rows.cols = m.cols;
      rows.scale = FLOAT_OF(w[AFFINE_SCALE]);
      rows.acc = (flags & FLAG_ACC) || t > 0;
      if (t == 0 && (flags & FLAG_BIAS)) {
        rows.bias = address(l, w[AFFINE_SEGMENTS], 2, w[AFFINE_BIAS]) + part.row;
        rows.bias_scale = FLOAT_OF(w[AFFINE_BIAS_SCALE]);
      }
      multiply(rows, address(l, w[AFFINE_SEGMENTS], 1, 0), y, items, count, 1 + terms, 1 + t);
      if (t + 1 == terms)
        apply_to_rows(w[AFFINE_FUNCTION], y, part.rows, items, 1 + terms, count);
    }
  }
}

VP_SLOW void affine_t(const Launch &l, const vpps_residency &res, const Processor &p, const u32 *w,
                      const u32 *items, u32 flags, u32 count) {
  const u32 terms = w[0] >> 8 & 255u;
  for (u32 t = 0; t < terms; t++)
    transposed_product(
        res, l, p, w[AFFINE_T_MATRICES] >> 8 * t & 255u,
        address(l, w[AFFINE_T_SEGMENTS], 0, (t * p.group + p.rank) * w[AFFINE_T_APART]),
        address(l, w[AFFINE_T_SEGMENTS], 1, 0), FLOAT_OF(w[AFFINE_T_SCALE]), items, flags, count);
}
