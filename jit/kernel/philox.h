// Random numbers by counter (Philox4x32-10, Salmon et al., SC 2011): element i of a
// node's stream is a function of the seed, graph, forward count, node and i alone.
#pragma once

struct Philox {
  u32 x[4];
};

VP Philox philox(u32 c0, u32 c1, u32 c2, u32 c3, u32 k0, u32 k1) {
  for (int r = 0; r < 10; r++) {
    u32 h0 = MULHI(0xD2511F53u, c0), l0 = 0xD2511F53u * c0;
    u32 h1 = MULHI(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
    c0 = h1 ^ c1 ^ k0;
    c1 = l1;
    c2 = h0 ^ c3 ^ k1;
    c3 = l0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  Philox p = {{c0, c1, c2, c3}};
  return p;
}

// [0, 1) on a grid of 2^-24.
VP float uniform01(u32 x) { return (float)(x >> 8) * 5.9604644775390625e-8f; }

// cos(2 pi u) for u in [0, 1): folded to a quarter turn, then the Taylor series.
VP float cos_turn(float u) {
  float t = u - 0.5f; // cos(2 pi u) = -cos(2 pi t)
  t = t < 0.0f ? -t : t;
  float flip = t > 0.25f ? 1.0f : -1.0f;
  t = t > 0.25f ? 0.5f - t : t;
  float z = t * 6.283185307179586f;
  z = z * z;
  float p = -1.1470745e-11f;
  p = p * z + 2.08767570e-9f;
  p = p * z - 2.75573192e-7f;
  p = p * z + 2.48015873e-5f;
  p = p * z - 1.38888889e-3f;
  p = p * z + 4.16666667e-2f;
  p = p * z - 0.5f;
  return flip * (p * z + 1.0f);
}

// N(0, 1) by Box and Muller.
VP float normal01(u32 a, u32 b) {
  float u = ((float)(a >> 8) + 1.0f) * 5.9604644775390625e-8f; // (0, 1]
  return vp_sqrt(-2.0f * vp_log(u)) * cos_turn(uniform01(b));
}
