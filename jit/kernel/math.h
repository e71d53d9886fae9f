// exp, log, tanh and friends: our own, branch-free and without contraction, so that
// both devices give the same bits and the CPU's loops vectorise. Maximum error about
// 2 ulp. Constants: Cephes (Moshier).
#pragma once

// e^x. Rounds x/ln2 to k by the magic-number addition, e^(x - k ln2) by a polynomial,
// and multiplies by 2^k in two halves so that results near the limits stay right.
VP float vp_exp(float x) {
  float t = x < 88.8f ? x : 88.8f; // NaN takes the constant; put back at the end
  t = t > -104.0f ? t : -104.0f;
  float shifted = t * 1.44269504088896341f + 12582912.0f;
  float k = shifted - 12582912.0f;
  float r = t - k * 0.693359375f;
  r = r - k * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  int e = (int)(BITS_OF(shifted) - 0x4B400000u);
  int h = e >> 1;
  float a = FLOAT_OF((u32)(h + 127) << 23);
  float b = FLOAT_OF((u32)(e - h + 127) << 23);
  float y = p * a * b;
  return x == x ? y : x;
}

// ln x: -inf at 0, NaN below.
VP float vp_log(float x) {
  float tiny = x < 1.17549435e-38f ? 1.0f : 0.0f; // a denormal is scaled up first
  float s = tiny != 0.0f ? x * 8388608.0f : x;
  u32 bits = BITS_OF(s);
  u32 shifted = bits - 0x3F3504F3u; // sqrt(1/2)
  int e = (int)shifted >> 23;
  float m = FLOAT_OF((shifted & 0x007FFFFFu) + 0x3F3504F3u) - 1.0f;
  float k = (float)e - tiny * 23.0f;
  float z = m * m;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  float y = m * z * p;
  y = y + k * -2.12194440e-4f;
  y = y - 0.5f * z;
  y = m + y + k * 0.693359375f;
  y = x > 3.402823466e+38f ? x : y;          // +inf
  y = x == 0.0f ? FLOAT_OF(0xFF800000u) : y; // -inf
  return x >= 0.0f ? y : FLOAT_OF(0x7FC00000u);
}

// tanh x: an odd polynomial near 0, 1 - 2/(e^2|x| + 1) elsewhere.
VP float vp_tanh(float x) {
  float a = x < 0.0f ? -x : x;
  float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  float near = p * z * x + x;
  float far = 1.0f - 2.0f / (vp_exp(2.0f * a) + 1.0f);
  far = x < 0.0f ? -far : far;
  return a < 0.625f ? near : (x == x ? far : x);
}

VP float vp_logistic(float x) { return 1.0f / (1.0f + vp_exp(-x)); }

// |x|, but 2^23 at most. Integers are compared: a comparison of floats with a constant would become
// a branch where its result is used, and no loop with a branch is of vectors.
VP float vp_at_most_2_23(float x) {
  u32 bits = BITS_OF(x) & 0x7FFFFFFFu;
  return FLOAT_OF(bits < 0x4B000000u ? bits : 0x4B000000u);
}

// x^y for any x; below 0 only integer y have a value.
VP float vp_pow(float x, float y) {
  float r = vp_exp(y * vp_log(FLOAT_OF(BITS_OF(x) & 0x7FFFFFFFu)));
  r = y == 0.0f ? 1.0f : r;
  float t = vp_at_most_2_23(y);
  int n = (int)t;
  float odd = FLOAT_OF(BITS_OF(r) ^ (u32)n << 31);
  float negative = (float)n == t ? odd : FLOAT_OF(0x7FC00000u);
  return x < 0.0f ? negative : r;
}

// a^n for the whole numbers of moments, which are below 2^32; 1 for those below 0.
VP float vp_powi(float a, float n) {
  float r = 1.0f;
  for (u32 k = n > 0.0f ? n < 4294967040.0f ? (u32)n : 4294967040u : 0u; k > 0; k >>= 1, a *= a)
    r = k & 1 ? r * a : r;
  return r;
}

VP float vp_sqrt(float x) { return sqrtf(x); } // see host.h
