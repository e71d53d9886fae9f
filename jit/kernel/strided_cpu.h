// Strided on a CPU.
#pragma once

template <class Number> VP Number lane_sum(Number *v, u32 lanes = LANES) {
  for (u32 d = lanes / 2; d > 0; d /= 2)
    for (u32 i = 0; i < d; i++)
      v[i] = v[i] + v[i + d];
  return v[0];
}

// Adds v, from term t on, to the partial sums.
template <u32 COUNT> VP void add_to_lanes(float *lanes, u32 t, const float *v, u32 n) {
  if (t % COUNT == 0)
    for (; n >= COUNT; n -= COUNT, v += COUNT)
      for (u32 i = 0; i < COUNT; i++)
        lanes[i] += v[i];
  for (u32 i = 0; i < n; i++)
    lanes[(t + i) % COUNT] += v[i];
}

// A Strided instruction on a CPU: neighbours along one axis are gathered, if they are not
// neighbours in memory, so that the function is of runs.
template <u32 OPERANDS> struct StridedItems {
  enum : u32 { RUN = LONG_LANES };
  const Axes x;
  const u32 fn, flags, outputs, terms;
  const float p, q;
  Mapped put_down, add;
  float *base[OPERANDS + 1];
  float gathered[OPERANDS][RUN], result[RUN];

  VP_MEMBER StridedItems(const Launch &l, const u32 *w, u32 f, u32 flags_of)
      : x(axes_of(w, f)), fn(f), flags(flags_of), outputs(product_of(x.sizes, x.kept)),
        terms(product_of(x.sizes + x.kept, x.reduced)), p(FLOAT_OF(w[STRIDED_P])),
        q(FLOAT_OF(w[STRIDED_Q])), put_down(mapped(f, false)), add(mapped(f, true)) {
    for (u32 s = 0; s <= OPERANDS; s++)
      base[s] = address(l, w[STRIDED_SEGMENTS], s, 0);
  }
  VP_MEMBER u32 stride(u32 slot, u32 axis) const { return x.strides[slot * x.all + axis]; }

  // Operands of n neighbours along an axis from at on.
  VP_MEMBER void gather(const u32 *at, u32 axis, u32 n, const float **in) {
    for (u32 s = 0; s < OPERANDS; s++) {
      const float *from = base[s + 1] + at[s + 1];
      const u32 step = axis < x.all ? stride(s + 1, axis) : 0;
      in[s] = step == 1 ? from : gathered[s];
      if (step == 0) {
        const float v = *from;
        for (u32 i = 0; i < n; i++)
          gathered[s][i] = v;
      } else if (step != 1)
        for (u32 i = 0; i < n; i++)
          gathered[s][i] = from[i * step];
    }
  }
  // The function of them.
  VP_MEMBER const float *of(const u32 *at, u32 axis, u32 n) {
    const float *in[OPERANDS];
    gather(at, axis, n, in);
    if (fn == FN_COPY)
      return in[0];
    put_down(result, in, n, p, q);
    return result;
  }

  // n outputs along the first kept axis, without a reduction.
  VP_MEMBER void outputs_of(const u32 *at, u32 n) {
    const u32 step = x.kept ? stride(0, 0) : 1;
    float *dst = base[0] + at[0];
    if (step == 1) {
      const float *in[OPERANDS];
      gather(at, 0, n, in);
      return (flags & FLAG_ACC ? add : put_down)(dst, in, n, p, q);
    }
    const float *v = of(at, 0, n);
    for (u32 i = 0; i < n; i++)
      put(dst + i * step, v[i], flags);
  }

  // One output of a reduction. Its terms are along the first reduced axis, for each place on the
  // others.
  template <u32 COUNT> VP_MEMBER float sum(const u32 *at) {
    float lanes[COUNT] = {};
    const u32 inner = x.sizes[x.kept];
    for (u32 t = 0; t < terms; t += inner) {
      u32 here[5];
      for (u32 s = 0; s <= OPERANDS; s++)
        here[s] = at[s];
      locate(x, x.kept, x.all, t, here);
      for (u32 i = 0, n; i < inner; i += n) {
        n = inner - i < RUN ? inner - i : (u32)RUN;
        add_to_lanes<COUNT>(lanes, t + i, of(here, x.kept, n), n);
        for (u32 s = 1; s <= OPERANDS; s++)
          here[s] += n * stride(s, x.kept);
      }
    }
    return lane_sum(lanes, COUNT);
  }

  // n <= ACROSS neighbouring outputs of a reduction, side by side. Each is summed in the order of
  // sum; lanes without terms are left out, as they add nothing.
  enum : u32 { ACROSS = 64 };
  VP_MEMBER void sums(const u32 *at, u32 n) {
    float lanes[LANES][ACROSS];
    const u32 used = terms < LANES ? terms : LANES;
    for (u32 t = 0; t < terms; t++) {
      u32 here[5];
      for (u32 s = 0; s <= OPERANDS; s++)
        here[s] = at[s];
      locate(x, x.kept, x.all, t, here);
      for (u32 i = 0; t < LANES && i < ACROSS; i++)
        lanes[t][i] = 0.0f;
      const float *in[OPERANDS];
      gather(here, 0, n, in);
      add(lanes[t % LANES], in, n, p, q);
    }
    for (u32 d = LANES / 2; d > 0; d /= 2)
      for (u32 k = 0; k < d && k + d < used; k++)
        for (u32 i = 0; i < ACROSS; i++)
          lanes[k][i] += lanes[k + d][i];
    for (u32 i = 0; i < n; i++)
      put(base[0] + at[0] + i * stride(0, 0), lanes[0][i], flags);
  }

  // Whether neighbouring outputs are of neighbouring terms or the same: sums go side by side then.
  VP_MEMBER bool across() const {
    bool yes = x.kept > 0 && x.sizes[0] >= 4 && stride(0, 0) == 1;
    for (u32 s = 1; s <= OPERANDS; s++)
      yes = yes && stride(s, 0) <= 1;
    return yes;
  }

  VP_MEMBER void item(const u32 *offsets) {
    const u32 inner = x.kept ? x.sizes[0] : 1;
    const bool is_long = are_long(x, terms);
    const u32 most = terms == 1 ? (u32)RUN : across() && !is_long ? (u32)ACROSS : 1;
    for (u32 k = 0; k < outputs; k += inner) {
      u32 at[5];
      for (u32 s = 0; s <= OPERANDS; s++)
        at[s] = offsets[s];
      locate(x, 0, x.kept, k, at);
      for (u32 i = 0, n; i < inner; i += n) {
        n = inner - i < most ? inner - i : most;
        if (terms == 1)
          outputs_of(at, n);
        else if (most > 1)
          sums(at, n);
        else
          put(base[0] + at[0], is_long ? sum<LONG_LANES>(at) : sum<LANES>(at), flags);
        for (u32 s = 0; x.kept && s <= OPERANDS; s++)
          at[s] += n * stride(s, 0);
      }
    }
  }
};

template <u32 OPERANDS>
VP_SLOW void strided_items(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  StridedItems<OPERANDS> items(l, w, fn, flags);
  for (u32 e = 0; e < count; e++)
    items.item(items.x.items + e * (OPERANDS + 1));
}

VP void strided(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count, float *) {
  const u32 operands = arity(fn);
  operands == 1   ? strided_items<1>(l, w, fn, flags, count)
  : operands == 2 ? strided_items<2>(l, w, fn, flags, count)
                  : strided_items<3>(l, w, fn, flags, count);
}
