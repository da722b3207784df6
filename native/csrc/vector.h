// Vectors of floats as wide as the instructions that this file is compiled for, and the functions
// of one variable that the kernels need. Everything is in a namespace of the variant, so that the
// same sources can be compiled once for each set of instructions.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#ifndef VARIANT
#define VARIANT portable
#endif

namespace VARIANT {

#if defined(__AVX512F__)
constexpr int LANES = 16;
#elif defined(__AVX2__)
constexpr int LANES = 8;
#else
constexpr int LANES = 4;
#endif

typedef float V __attribute__((vector_size(4 * LANES)));
typedef int32_t VI __attribute__((vector_size(4 * LANES)));
typedef uint32_t VU __attribute__((vector_size(4 * LANES)));

static inline V load(const float* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

static inline void store(float* to, V v) { std::memcpy(to, &v, sizeof v); }

// The first `count` lanes, zero in the others.
static inline V load(const float* from, int count) {
#if defined(__AVX512F__)
  return (V)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), from);
#else
  V v = {};
  for (int c = 0; c < count; c++) v[c] = from[c];
  return v;
#endif
}

static inline void store(float* to, V v, int count) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(to, (__mmask16)((1u << count) - 1), (__m512)v);
#else
  for (int c = 0; c < count; c++) to[c] = v[c];
#endif
}

static inline V all(float value) { return value - V{}; }

static inline V choose(VI condition, V yes, V no) { return condition ? yes : no; }

// 1 / x for x that is neither zero nor tiny nor large, to within a bit or two.
static inline V reciprocal(V x) {
#if defined(__AVX512F__)
  V guess = (V)_mm512_rcp14_ps((__m512)x);
  return guess * (2.0f - x * guess);
#else
  return 1.0f / x;
#endif
}

static inline float sum(V v) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_ps((__m512)v);
#endif
  float total = 0;
  for (int c = 0; c < LANES; c++) total += v[c];
  return total;
}

// The sums of N vectors. Many at once take a third of the instructions of one after the other.
template <int N>
static inline void sums(const V* v, float* out) {
#if defined(__AVX512F__)
  for (int first = 0; first < N; first += 16) {
    int some = N - first < 16 ? N - first : 16;
    __m512 a[16], quarters[4];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) a[i] = i < some ? (__m512)v[first + i] : _mm512_setzero_ps();
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {  // in each quarter, the sums of four vectors' quarters
      __m512d halves[2];
#pragma GCC unroll 2
      for (int j = 0; j < 2; j++) {
        __m512 x = a[4 * i + 2 * j], y = a[4 * i + 2 * j + 1];
        halves[j] = (__m512d)_mm512_add_ps(_mm512_unpacklo_ps(x, y), _mm512_unpackhi_ps(x, y));
      }
      quarters[i] = _mm512_add_ps((__m512)_mm512_unpacklo_pd(halves[0], halves[1]),
                                  (__m512)_mm512_unpackhi_pd(halves[0], halves[1]));
    }
    auto fold = [](__m512 x, __m512 y) {
      return _mm512_add_ps(_mm512_shuffle_f32x4(x, y, 0x88), _mm512_shuffle_f32x4(x, y, 0xdd));
    };
    __m512 all = fold(fold(quarters[0], quarters[1]), fold(quarters[2], quarters[3]));
    store(out + first, (V)all, some);
  }
#else
  for (int i = 0; i < N; i++) out[i] = sum(v[i]);
#endif
}

static inline V absolute(V x) { return (V)((VU)x & 0x7fffffffu); }

// Runs `f(first, count)` over [0, size) in steps of a vector; all but the last have all lanes.
template <class F>
static inline void each_vector(int64_t size, F f) {
  int64_t c = 0;
  for (; c + LANES <= size; c += LANES) f(c, LANES);
  if (c < size) f(c, (int)(size - c));
}

static inline V load_some(const float* from, int count) {
  return count == LANES ? load(from) : load(from, count);
}

static inline void store_some(float* to, V v, int count) {
  if (count == LANES) {
    store(to, v);
  } else {
    store(to, v, count);
  }
}

// e^x: x = k ln 2 + r with |r| <= ln 2 / 2, and a polynomial for e^r.
static inline __attribute__((always_inline)) V exponential(V x) {
  const float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  x = choose(x < -87.0f, all(-87.0f), x);
  x = choose(x > 88.0f, all(88.0f), x);
  V shifted = x * 1.44269504088896341f + magic;
  V k = shifted - magic;
  V r = x - k * 0.693145751953125f - k * 1.42860682030941723e-6f;
  V p = all(1.0f / 5040);
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  VI scale = ((VI)shifted - 0x4b400000 + 127) << 23;
  return p * (V)scale;
}

// tanh x: an odd polynomial near 0 (relative error 6e-9), the exponential elsewhere.
static inline V hyperbolic_tangent(V x) {
  V u = x * x;
  V p = all(-0.0054736049361412634f);
  p = p * u + 0.020420853171518604f;
  p = p * u - 0.05366738371686496f;
  p = p * u + 0.13330447104765764f;
  p = p * u - 0.3333323097808383f;
  V near = p * u * x + x;
  V far = 1.0f - 2.0f / (exponential(2.0f * absolute(x)) + 1.0f);
  far = choose(x < 0.0f, -far, far);
  return choose(absolute(x) < 0.625f, near, far);
}

struct Normal {
  V cdf, pdf;
};

// The distribution function and the density of the normal law, which GELU and its derivative are
// made of. With z = |x| / sqrt 2 and t = 1 / (1 + 0.45 z), erfc z = e^(-z^2) t q(2t - 1); the
// polynomial q was fitted to a relative error of 3.3e-8 for all z >= 0.
static inline __attribute__((always_inline)) Normal normal(V x) {
  V z = absolute(x) * 0.70710678118654752f;
  z = choose(z < 1e9f, z, all(1e9f));  // the tail is zero long before; 1 / infinity is not to be had
  V t = reciprocal(1.0f + 0.45f * z);
  V s = 2.0f * t - 1.0f;
  V bell = exponential(-0.5f * x * x);
  V q = all(-8.084650877147238e-05f);
  q = q * s + 1.7293627348927268e-05f;
  q = q * s + 0.000700394027555385f;
  q = q * s - 0.0001473225266654926f;
  q = q * s - 0.005136031462805633f;
  q = q * s - 0.0028566993109209243f;
  q = q * s + 0.04213929626448259f;
  q = q * s + 0.1627891041766968f;
  q = q * s + 0.3354345348779414f;
  q = q * s + 0.4671402919863933f;
  V tail = 0.5f * bell * t * q;
  return {choose(x < 0.0f, tail, 1.0f - tail), 0.39894228040143268f * bell};
}

// The activations that kernels know, by the numbers that Python gives them.
enum Activation : int64_t { IDENTITY = 0, RELU = 1, GELU = 2 };

// A function and its derivative at one place; who asks for one of them gets no more computed.
struct Curve {
  V value, slope;
};

template <int64_t ACT>
static inline __attribute__((always_inline)) Curve activate(V x) {
  if (ACT == RELU) return {choose(x > 0.0f, x, V{}), choose(x > 0.0f, all(1.0f), V{})};
  if (ACT == GELU) {
    Normal law = normal(x);
    return {x * law.cdf, law.cdf + x * law.pdf};
  }
  return {x, all(1.0f)};
}

}  // namespace VARIANT
