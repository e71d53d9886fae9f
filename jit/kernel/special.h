// The functions that networks seldom use: trigonometric, hyperbolic, their inverses, erf and the
// logarithm of the gamma function. Like those of math.h they are our own, so that both devices give
// the same bits. Where a float would lose digits they compute in double. Constants: FreeBSD's msun,
// Cephes (Moshier). Maximum error about 3 ulp away from zeros of the function.
#pragma once

VP float vp_abs(float x) { return x < 0.0f ? -x : x; }
// |x| with the sign of y.
VP float vp_signed(float x, float y) {
  return FLOAT_OF((BITS_OF(x) & 0x7FFFFFFFu) | (BITS_OF(y) & 0x80000000u));
}
VP double vp_root(double x) { return sqrt(x); }

// Binary digits of 2/pi, from 2^2 on, 32 at a time.
VP u32 vp_two_over_pi(u32 i) {
  const u32 front = i == 0 ? 0u : i == 1 ? 0x28BE60DBu : i == 2 ? 0x9391054Au : 0x7F09D5F4u;
  const u32 back = i == 4 ? 0x7D4D3770u : i == 5 ? 0x36D8A566u : 0x4F10E410u;
  return i < 4 ? front : back;
}

// x minus the nearest multiple of pi/2, whose number is given modulo 4. Large arguments are
// multiplied by the binary digits of 2/pi that matter to them.
VP double vp_quadrant(float x, u32 *quadrant) {
  const float a = vp_abs(x);
  if (a < 32768.0f) {
    const double shifted = (double)a * 0.63661977236758134308 + 6755399441055744.0;
    const double k = shifted - 6755399441055744.0;
    const double r = ((double)a - k * 1.57079631090164184570) - k * 1.58932547735281966916e-8;
    const u32 q = (u32)(int)k;
    *quadrant = (x < 0.0f ? 0u - q : q) & 3u;
    return x < 0.0f ? -r : r;
  }
  const u32 bits = BITS_OF(a), mantissa = (bits & 0x7FFFFFu) << 8 | 0x80000000u;
  const u32 exponent = (bits >> 23 & 255u) - 126u, at = exponent >> 5, shift = exponent & 31u;
  u32 high = vp_two_over_pi(at), middle = vp_two_over_pi(at + 1), low = vp_two_over_pi(at + 2);
  const u32 rest = vp_two_over_pi(at + 3);
  if (shift) {
    high = high << shift | middle >> (32 - shift);
    middle = middle << shift | low >> (32 - shift);
    low = low << shift | rest >> (32 - shift);
  }
  u64 product = (u64)mantissa * low; // quarter turns, 62 binary places
  product = (u64)mantissa * middle + (product >> 32);
  product += (u64)(mantissa * high) << 32;
  u32 q = (u32)(product >> 62);
  product &= 0x3FFFFFFFFFFFFFFFull;
  double part = (double)product;
  if (product & 0x2000000000000000ull) { // the next quarter turn is nearer
    q++;
    part -= 4611686018427387904.0;
  }
  const double r = part * 3.4061215800304926e-19; // pi/2 * 2^-62
  *quadrant = (x < 0.0f ? 0u - q : q) & 3u;
  return x < 0.0f ? -r : r;
}

// Sine and cosine of a double between -pi/4 and pi/4, as exact as a float needs.
VP double vp_sin_near(double x) {
  const double z = x * x;
  double p = 2.7183114939898219064e-6;
  p = p * z - 1.98393348360966317347e-4;
  p = p * z + 8.3333293858894631756e-3;
  p = p * z - 1.66666666416265235595e-1;
  return x + x * z * p;
}
VP double vp_cos_near(double x) {
  const double z = x * x;
  double p = 2.43904487962774090654e-5;
  p = p * z - 1.38867637746099294692e-3;
  p = p * z + 4.16666233237390631894e-2;
  p = p * z - 4.99999997251031003120e-1;
  return 1.0 + z * p;
}

// sin x for turn 0, cos x for turn 1.
VP_SLOW float vp_wave(float x, u32 turn) {
  u32 q;
  const double r = vp_quadrant(x, &q);
  q += turn;
  const double y = q & 1u ? vp_cos_near(r) : vp_sin_near(r);
  const float v = (float)(q & 2u ? -y : y);
  return vp_abs(x) <= 3.402823466e+38f ? v : FLOAT_OF(0x7FC00000u);
}
VP float vp_sin(float x) { return vp_wave(x, 0); }
VP float vp_cos(float x) { return vp_wave(x, 1); }
VP float vp_tan(float x) {
  u32 q;
  const double r = vp_quadrant(x, &q), s = vp_sin_near(r), c = vp_cos_near(r);
  const float v = (float)(q & 1u ? -c / s : s / c);
  return vp_abs(x) <= 3.402823466e+38f ? v : FLOAT_OF(0x7FC00000u);
}

// The arcsine of a double in [0, 1/2].
VP_SELDOM double vp_asin_near(double x) {
  const double z = x * x;
  const double p = z * (1.6666586697e-1 + z * (-4.2743422091e-2 + z * -8.6563630030e-3));
  return x + x * (p / (1.0 - 7.0662963390e-1 * z));
}
VP float vp_asin(float x) {
  const double a = vp_abs(x);
  const double y = a <= 0.5 ? vp_asin_near(a)
                            : 1.57079632679489661923 -
                                  2.0 * vp_asin_near(vp_root(a < 1.0 ? (1.0 - a) * 0.5 : 0.0));
  return a <= 1.0 ? vp_signed((float)y, x) : FLOAT_OF(0x7FC00000u);
}
VP float vp_acos(float x) {
  const double a = vp_abs(x);
  const double near = a <= 0.5 ? 0.0 : 2.0 * vp_asin_near(vp_root(a < 1.0 ? (1.0 - a) * 0.5 : 0.0));
  const double far = 1.57079632679489661923 - (x < 0.0f ? -vp_asin_near(a) : vp_asin_near(a));
  const double y = a <= 0.5 ? far : (x < 0.0f ? 3.14159265358979323846 - near : near);
  return a <= 1.0 ? (float)y : FLOAT_OF(0x7FC00000u);
}
VP float vp_atan(float x) {
  const float a = vp_abs(x);
  const double base = a > 2.414213562f   ? 1.57079632679489661923
                      : a > 0.414213562f ? 0.78539816339744830962
                                         : 0.0;
  const double t = a > 2.414213562f ? -1.0 / a : a > 0.414213562f ? (a - 1.0) / (a + 1.0) : a;
  const double z = t * t;
  double p = 8.05374449538e-2;
  p = p * z - 1.38776856032e-1;
  p = p * z + 1.99777106478e-1;
  p = p * z - 3.33329491539e-1;
  const float y = (float)(base + (p * z * t + t));
  return x == x ? vp_signed(y, x) : x;
}

VP_SELDOM float vp_sinh(float x) {
  const float a = vp_abs(x), z = x * x;
  const float near =
      x + x * z * (1.66667160211e-1f + z * (8.33028376239e-3f + z * 2.03721912945e-4f));
  const float e = vp_exp(a > 80.0f ? a * 0.5f : a);
  const float far = a > 80.0f ? e * 0.5f * e : 0.5f * e - 0.5f / e;
  return a <= 1.0f ? near : (x == x ? vp_signed(far, x) : x);
}
VP_SELDOM float vp_cosh(float x) {
  const float a = vp_abs(x);
  const float e = vp_exp(a > 80.0f ? a * 0.5f : a);
  const float y = a > 80.0f ? e * 0.5f * e : 0.5f * e + 0.5f / e;
  return x == x ? y : x;
}

// ln(1+x), exact also for small x.
VP_SELDOM float vp_log1p(float x) {
  const float w = 1.0f + x;
  const float y = vp_log(w) * (x / (w - 1.0f));
  return w == 1.0f ? x : (w > 3.402823466e+38f ? w : y);
}
VP float vp_asinh(float x) {
  const float a = vp_abs(x), z = x * x;
  float p = 2.0122003309e-2f;
  p = p * z - 4.2699340972e-2f;
  p = p * z + 7.4847586088e-2f;
  p = p * z - 1.6666288134e-1f;
  const float near = p * z * x + x;
  const float far = a > 1e4f ? vp_log(a) + 0.693147180559945309f : vp_log(a + vp_sqrt(z + 1.0f));
  return a < 0.5f ? near : (x == x ? vp_signed(far, x) : x);
}
VP float vp_acosh(float x) {
  const float z = x - 1.0f;
  const float s = z > 0.0f ? z : 0.0f;
  const float near = vp_log1p(s + vp_sqrt(s * (2.0f + s)));
  const float far = vp_log(x) + 0.693147180559945309f;
  return x > 1e4f ? far : (z >= 0.0f ? near : FLOAT_OF(0x7FC00000u));
}
VP float vp_atanh(float x) {
  const float a = vp_abs(x), y = 0.5f * vp_log1p(2.0f * a / (1.0f - a));
  return a < 1.0f ? vp_signed(y, x)
                  : (a == 1.0f ? vp_signed(FLOAT_OF(0x7F800000u), x) : FLOAT_OF(0x7FC00000u));
}

VP float vp_erf(float x) {
  const float a = vp_abs(x), z = x * x;
  float p = 7.853861353153693e-5f;
  p = p * z - 8.010193625184903e-4f;
  p = p * z + 5.188327685732524e-3f;
  p = p * z - 2.685381193529856e-2f;
  p = p * z + 1.128358514861418e-1f;
  p = p * z - 3.761262582423300e-1f;
  p = p * z + 1.128379165726710f;
  const float s = a > 1.0f ? a : 1.0f, r = 1.0f / s, q = r * r;
  float t = 2.326819970068386e-2f;
  t = t * q - 1.387039388740657e-1f;
  t = t * q + 3.687424674597105e-1f;
  t = t * q - 5.824733027278666e-1f;
  t = t * q + 6.210004621745983e-1f;
  t = t * q - 4.944515323274145e-1f;
  t = t * q + 3.404879937665872e-1f;
  t = t * q - 2.741127028184656e-1f;
  t = t * q + 5.638259427386472e-1f;
  const float far = a < 4.0f ? 1.0f - vp_exp(-s * s) * r * t : 1.0f;
  return a <= 1.0f ? x * p : (x == x ? vp_signed(far, x) : x);
}

// ln x of a normal double above 0.
VP_SELDOM double vp_log_double(double x) {
#ifdef VPPS_GPU
  u64 bits = (u64)__double_as_longlong(x);
#else
  u64 bits;
  __builtin_memcpy(&bits, &x, 8);
#endif
  const u64 shifted = bits - 0x3FE6A09E667F3BCDull; // sqrt(1/2)
  const int e = (int)((long long)shifted >> 52);
  bits = (shifted & 0xFFFFFFFFFFFFFull) + 0x3FE6A09E667F3BCDull;
  double m;
#ifdef VPPS_GPU
  m = __longlong_as_double((long long)bits);
#else
  __builtin_memcpy(&m, &bits, 8);
#endif
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double p = 1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  return (double)e * 0.69314718055994530942 + 2.0 * (s + s * z * p);
}

// x minus the nearest whole number, for |x| below 2^23; beyond there are whole numbers only.
VP double vp_fraction(float x) {
  const double k = ((double)x + 6755399441055744.0) - 6755399441055744.0;
  return (double)x - k;
}

// sin(pi f) and cos(pi f) for f in [-1/2, 1/2].
VP double vp_sin_pi(double f) {
  const double pi = 3.14159265358979323846;
  return f > 0.25    ? vp_cos_near(pi * (0.5 - f))
         : f < -0.25 ? -vp_cos_near(pi * (0.5 + f))
                     : vp_sin_near(pi * f);
}
VP double vp_cos_pi(double f) {
  const double pi = 3.14159265358979323846, a = f < 0.0 ? -f : f;
  return a > 0.25 ? vp_sin_near(pi * (0.5 - a)) : vp_cos_near(pi * a);
}

// ln|Gamma(x)|: Stirling's series from 8 on, by the recurrence below, by reflection below 0.
VP float vp_lgamma(float x) {
  const bool below = x < 0.5f;
  const double a = below ? 1.0 - (double)x : (double)x;
  double product = 1.0, y = a;
  ROLLED
  for (u32 k = 0; k < 8; k++) {
    product = y < 8.0 ? product * y : product;
    y = y < 8.0 ? y + 1.0 : y;
  }
  const double r = 1.0 / y, z = r * r;
  const double series =
      r * (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z * (1.0 / 1680.0))));
  double v =
      (y - 0.5) * vp_log_double(y) - y + 0.91893853320467274178 + series - vp_log_double(product);
  if (below) {
    const double s = vp_sin_pi(vp_fraction(x));
    if (s == 0.0)
      return FLOAT_OF(0x7F800000u); // a pole
    v = 1.14472988584940017414 - vp_log_double(s < 0.0 ? -s : s) - v;
  }
  return vp_abs(x) <= 3.402823466e+38f ? (float)v : (x == x ? FLOAT_OF(0x7F800000u) : x);
}

// The derivative of ln|Gamma(x)|.
VP float vp_digamma(float x) {
  const bool below = x < 0.5f;
  const double a = below ? 1.0 - (double)x : (double)x;
  double sum = 0.0, y = a;
  ROLLED
  for (u32 k = 0; k < 8; k++) {
    sum = y < 8.0 ? sum + 1.0 / y : sum;
    y = y < 8.0 ? y + 1.0 : y;
  }
  const double r = 1.0 / y, z = r * r;
  const double series =
      z * (1.0 / 12.0 - z * (1.0 / 120.0 - z * (1.0 / 252.0 - z * (1.0 / 240.0))));
  double v = vp_log_double(y) - 0.5 * r - series - sum;
  if (below) {
    const double f = vp_fraction(x), s = vp_sin_pi(f);
    if (s == 0.0)
      return FLOAT_OF(0x7FC00000u); // a pole
    v -= 3.14159265358979323846 * (vp_cos_pi(f) / s);
  }
  return vp_abs(x) <= 3.402823466e+38f ? (float)v : x;
}

VP float vp_log_sigmoid(float x) { return (x < 0.0f ? x : 0.0f) - vp_log1p(vp_exp(-vp_abs(x))); }

// e^x - 1, exact also for small x.
VP float vp_expm1(float x) {
  const float u = vp_exp(x);
  const float y = (u - 1.0f) * (x / vp_log(u));
  return u == 1.0f ? x : (u - 1.0f == -1.0f || u > 1e30f ? u - 1.0f : y);
}

// The nearest whole number; halves go away from 0.
VP float vp_truncate(float x) { return vp_abs(x) < 8388608.0f ? (float)(int)x : x; }
VP float vp_round(float x) {
  const u32 all = BITS_OF(x) & 0x7FFFFFFFu;
  const float a = vp_at_most_2_23(x), t = (float)(int)a, m = t + (a - t >= 0.5f ? 1.0f : 0.0f);
  return vp_signed(all < 0x4B000000u ? m : FLOAT_OF(all), x);
}
VP float vp_floor(float x) {
  const float t = vp_truncate(x);
  return t > x ? t - 1.0f : t;
}
VP float vp_ceil(float x) {
  const float t = vp_truncate(x);
  return t < x ? t + 1.0f : t;
}
