// The layer norm: every row to mean 0 and variance 1, then scaled and moved column by column,
//
//   y_r = w * z_r + b,  z_r = (x_r - mean x_r) / sqrt(var x_r + eps).
//
// Mean and deviation of a row are computed again on the way back instead of kept: the row has to be
// read anyway.
#pragma once

#include "parallel.h"
#include "vector.h"

namespace VARIANT {

struct Moments {
  float mean, scale;  // 1 / sqrt(var + eps)
};

static inline Moments moments(int64_t k, const float* x, float eps) {
  V total = V{}, squares = V{};
  each_vector(k, [&](int64_t c, int lanes) { total += load_some(x + c, lanes); });
  float mean = sum(total) / (float)k;
  each_vector(k, [&](int64_t c, int lanes) {
    V apart = load_some(x + c, lanes) - mean;
    if (lanes < LANES) {  // lanes that are not there have no deviation
      float some[LANES] = {};
      store(some, apart);
      apart = load(some, lanes);
    }
    squares += apart * apart;
  });
  return {mean, 1.0f / std::sqrt(sum(squares) / (float)k + eps)};
}

static void norm(int64_t n, int64_t k, const float* x, const float* weight, const float* bias,
                 float eps, float* y) {
  parallel(n, 256, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      const float* from = x + row * k;
      Moments of = moments(k, from, eps);
      each_vector(k, [&](int64_t c, int lanes) {
        V z = (load_some(from + c, lanes) - of.mean) * of.scale;
        V value = z * load_some(weight + c, lanes) + load_some(bias + c, lanes);
        store_some(y + row * k + c, value, lanes);
      });
    }
  });
}

// With u = w * g: grad_x = scale (u - mean u - z mean(u z)), grad_w = sum g * z, grad_b = sum g.
static void norm_back(int64_t n, int64_t k, const float* grad, const float* x, const float* weight,
                      float eps, float* grad_x, float* grad_parameters) {
  sum_rows(n, 256, 2 * k, grad_parameters, [&](int64_t begin, int64_t end, float* sums) {
    for (int64_t row = begin; row < end; row++) {
      const float *from = x + row * k, *g = grad + row * k;
      Moments of = moments(k, from, eps);
      V own = V{}, along = V{};
      each_vector(k, [&](int64_t c, int lanes) {
        V z = (load_some(from + c, lanes) - of.mean) * of.scale, outer = load_some(g + c, lanes);
        V u = outer * load_some(weight + c, lanes);
        own += u;
        along += u * z;
        store_some(sums + c, load_some(sums + c, lanes) + outer * z, lanes);
        store_some(sums + k + c, load_some(sums + k + c, lanes) + outer, lanes);
      });
      float mean = sum(own) / (float)k, slope = sum(along) / (float)k;
      each_vector(k, [&](int64_t c, int lanes) {
        V z = (load_some(from + c, lanes) - of.mean) * of.scale;
        V u = load_some(g + c, lanes) * load_some(weight + c, lanes);
        store_some(grad_x + row * k + c, of.scale * (u - mean - z * slope), lanes);
      });
    }
  });
}

}  // namespace VARIANT
