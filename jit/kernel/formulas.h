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
FORMULA(BIN_LOG, b > 0.0f && b < 1.0f && (a == 0.0f || a == 1.0f)
                     ? -vp_log(LOG_FLOOR) // DyNet's, whatever the label's weights
                     : -(b * vp_log(a > LOG_FLOOR ? a : LOG_FLOOR) +
                         (1.0f - b) * vp_log((1.0f - a) > LOG_FLOOR ? (1.0f - a) : LOG_FLOOR)))
FORMULA(BIN_LOG_B, a *((b == c) ? 0.0f
                                : ((1.0f - c) / ((1.0f - b) > LOG_FLOOR ? (1.0f - b) : LOG_FLOOR) -
                                   c / (b > LOG_FLOOR ? b : LOG_FLOOR))))
FORMULA(MOMENT, p *vp_powi(a, q))
FORMULA(MOMENT_B, p *(q *(a *vp_powi(b, q - 1.0f))))
FORMULA(MUL_DIV, p *(a *b / c))

FORMULA(SIN, vp_sin(a))
FORMULA(SIN_B, a *vp_cos(b))
FORMULA(COS, vp_cos(a))
FORMULA(COS_B, -(a *vp_sin(b)))
FORMULA(TAN, vp_tan(a))
FORMULA(TAN_B, a *(1.0f + b * b))
FORMULA(ASIN, vp_asin(a))
FORMULA(ASIN_B, p *(a / vp_sqrt((1.0f - b) * (1.0f + b))))
FORMULA(ACOS, vp_acos(a))
FORMULA(ATAN, vp_atan(a))
FORMULA(ATAN_B, a / (1.0f + b * b))
FORMULA(SINH, vp_sinh(a))
FORMULA(SINH_B, a *vp_cosh(b))
FORMULA(COSH, vp_cosh(a))
FORMULA(COSH_B, a *vp_sinh(b))
FORMULA(ASINH, vp_asinh(a))
FORMULA(ASINH_B, a / vp_sqrt(1.0f + b * b))
FORMULA(ACOSH, vp_acosh(a))
FORMULA(ACOSH_B, a / vp_sqrt((b - 1.0f) * (b + 1.0f)))
FORMULA(ATANH, vp_atanh(a))
FORMULA(ATANH_B, a / ((1.0f - b) * (1.0f + b)))
FORMULA(ERF, vp_erf(a))
FORMULA(ERF_B, a *(1.12837916709551257f * vp_exp(-(b * b))))
FORMULA(LOG_GAMMA, vp_lgamma(a))
FORMULA(LOG_GAMMA_B, a *vp_digamma(b))
FORMULA(LOG_SIGMOID, vp_log_sigmoid(a))
FORMULA(LOG_SIGMOID_B, a *vp_logistic(-b))
FORMULA(ELU, a > 0.0f ? p * a : p * (q * vp_expm1(a)))
FORMULA(ELU_B, b > 0.0f ? p * a : p * (q * (a * vp_exp(b))))
FORMULA(SILU, a *vp_logistic(p *a))
FORMULA(SILU_B, a *(vp_logistic(p *b) * (1.0f + p * b * vp_logistic(-(p * b)))))
FORMULA(SOFT_SIGN, a / (1.0f + vp_abs(a)))
FORMULA(SOFT_SIGN_B, a *((1.0f - vp_abs(b)) * (1.0f - vp_abs(b))))
FORMULA(ROUND, vp_round(a))
FORMULA(CEIL, vp_ceil(a))
FORMULA(FLOOR, vp_floor(a))
FORMULA(POISSON, vp_exp(a) - p * a + q)
FORMULA(POISSON_B, a *(vp_exp(b) - p))
FORMULA(HUBER, vp_abs(a - b) < p ? 0.5f * ((a - b) * (a - b)) : p * (vp_abs(a - b) - 0.5f * p))
FORMULA(HUBER_B, q *(a *(b - c < -p ? -p : (b - c > p ? p : b - c))))
#undef FORMULA
