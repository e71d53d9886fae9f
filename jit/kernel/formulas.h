// The formula of every element function, once. Inputs a, b, c, d and constants p, q;
// a name ending in _B is a derivative times the incoming gradient a.
#pragma once

template <int FN> struct Formula;
#define FORMULA(NAME, EXPRESSION)                                                                  \
  template <> struct Formula<FN_##NAME> {                                                          \
    VP float of(float a, float b, float c, float d, float p, float q) {                            \
      (void)a, (void)b, (void)c, (void)d, (void)p, (void)q;                                        \
      return EXPRESSION;                                                                           \
    }                                                                                              \
  };

#define LOG_FLOOR 1.17549435e-38f

FORMULA(COPY, a)
FORMULA(SCALE, p *a)
FORMULA(ADD_CONST, p + a)
FORMULA(SUB_FROM, p - a)
FORMULA(TANH, vp_tanh(a))
FORMULA(TANH_B, a *(1.0f - b * b))
FORMULA(LOGISTIC, vp_logistic(a + p))
FORMULA(LOGISTIC_B, a *(b *(1.0f - b)))
FORMULA(RELU, a > 0.0f ? a : (a == a ? 0.0f : a))
FORMULA(RELU_B, b != 0.0f ? a : 0.0f)
FORMULA(EXP, vp_exp(a))
FORMULA(LOG, vp_log(a))
FORMULA(SQRT, vp_sqrt(a))
FORMULA(SQRT_B, a / (2.0f * b))
FORMULA(SQUARE, a *a)
FORMULA(SQUARE_B, a *(2.0f * b))
FORMULA(ABS, a < 0.0f ? -a : a)
FORMULA(ABS_B, b > 0.0f ? a : (b < 0.0f ? -a : 0.0f))
FORMULA(ADD, a + b)
FORMULA(MUL, p *(a *b))
FORMULA(DIV, a / b)
FORMULA(DIV_B, -(a *(b / (c * c))))
FORMULA(POW, vp_pow(a, b))
FORMULA(POW_BX, a *(c *vp_pow(b, c - 1.0f)))
FORMULA(POW_BY, a *(vp_pow(b, c) * vp_log(b)))
FORMULA(MIN, a < b ? a : b)
FORMULA(MIN_BX, b < c ? a : 0.0f)
FORMULA(MIN_BY, b < c ? 0.0f : a)
FORMULA(MAX, a > b ? a : b)
FORMULA(MAX_BX, b > c ? a : 0.0f)
FORMULA(MAX_BY, b > c ? 0.0f : a)
FORMULA(SQUARE_DIFF, (a - b) * (a - b))
FORMULA(SQUARE_DIFF_B, p *(2.0f * (a * (b - c))))
FORMULA(BIN_LOG, -(b *vp_log(a > LOG_FLOOR ? a : LOG_FLOOR) +
                   (1.0f - b) * vp_log((1.0f - a) > LOG_FLOOR ? (1.0f - a) : LOG_FLOOR)))
FORMULA(BIN_LOG_B, a *((b == c) ? 0.0f
                                : ((1.0f - c) / ((1.0f - b) > LOG_FLOOR ? (1.0f - b) : LOG_FLOOR) -
                                   c / (b > LOG_FLOOR ? b : LOG_FLOOR))))
FORMULA(MOMENT, p *vp_powi(a, q))
FORMULA(MOMENT_B, p *(q *(a *vp_powi(b, q - 1.0f))))
FORMULA(MUL_DIV, p *(a *b / c))
#undef FORMULA
