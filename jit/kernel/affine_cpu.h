// Affine and AffineT on the CPU: one product after another, then the function.
#pragma once

VP_SLOW void affine(const Launch &l, const vpps_residency &res, const Processor &p, const u32 *w,
                    const u32 *items, u32 flags, u32 count) {
  const u32 terms = w[0] >> 8 & 255u;
  for (u32 t = 0; t < terms; t++) {
    Sums how = {};
    how.scale = FLOAT_OF(w[AFFINE_SCALE]);
    how.acc = (flags & FLAG_ACC) || t > 0;
    if (t == 0 && (flags & FLAG_BIAS)) {
      how.bias = address(l, w[AFFINE_SEGMENTS], 2, w[AFFINE_BIAS]);
      how.bias_scale = FLOAT_OF(w[AFFINE_BIAS_SCALE]);
    }
    held_product(l, res, p, w[AFFINE_MATRICES] >> 8 * t & 255u, how, Forming{},
                 address(l, w[AFFINE_SEGMENTS], 1, 0), address(l, w[AFFINE_SEGMENTS], 0, 0),
                 Items{items, count, 1 + terms, 1 + t},
                 t + 1 == terms ? w[AFFINE_FUNCTION] : FN_COPY);
  }
}

VP_SLOW void affine_t(const Launch &l, const vpps_residency &res, const Processor &p, const u32 *w,
                      const u32 *items, u32 flags, u32 count) {
  const u32 terms = w[0] >> 8 & 255u;
  for (u32 t = 0; t < terms; t++)
    transposed_product(
        res, l, p, w[AFFINE_T_MATRICES] >> 8 * t & 255u, Forming{},
        address(l, w[AFFINE_T_SEGMENTS], 0, (t * p.group + p.rank) * w[AFFINE_T_APART]),
        address(l, w[AFFINE_T_SEGMENTS], 1, 0), FLOAT_OF(w[AFFINE_T_SCALE]), items, flags, count);
}
