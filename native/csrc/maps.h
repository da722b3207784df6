// From free numbers to conformal maps, and from these to the factors of a normalised Laplacian:
// many small operations for each node, done for as many nodes at a time as a vector has lanes.
#pragma once

#include "parallel.h"
#include "vector.h"

namespace VARIANT {

constexpr float LOG_TEN = 2.302585092994046f;  // the bound of the exponential scale

// Column c of `count` rows of `width` numbers, one row a lane.
static inline V take_column(const float* rows, int64_t width, int64_t c, int count) {
  V v = V{};
  for (int i = 0; i < count; i++) v[i] = rows[i * width + c];
  return v;
}

static inline void put_column(float* rows, int64_t width, int64_t c, int count, V v) {
  for (int i = 0; i < count; i++) rows[i * width + c] = v[i];
}

// The reflections H_0 H_1 ... H_(D-1) from the last one outwards. Reflection k has the vector v_k
// with a 1 at place k and p below it; q[k] = H_k ... H_(D-1), w[k] = q[k+1]ᵀ v_k.
template <int D>
struct Reflections {
  V v[D][D], w[D][D], factor[D], q[D + 1][D][D];

  explicit Reflections(const V* p) {
    for (int a = 0; a < D; a++) {
      for (int b = 0; b < D; b++) q[D][a][b] = all(a == b ? 1.0f : 0.0f);
    }
    for (int k = D - 1; k >= 0; k--) {
      V square = all(1.0f);
      for (int i = 0; i < D; i++) v[k][i] = all(i == k ? 1.0f : 0.0f);
      for (int i = k + 1; i < D; i++) {
        v[k][i] = p[i * (i - 1) / 2 + k];
        square += v[k][i] * v[k][i];
      }
      factor[k] = 2.0f / square;
      for (int b = 0; b < D; b++) {
        w[k][b] = V{};
        for (int i = k; i < D; i++) w[k][b] += v[k][i] * q[k + 1][i][b];
      }
      for (int a = 0; a < D; a++) {
        for (int b = 0; b < D; b++) {
          q[k][a][b] = a < k ? q[k + 1][a][b] : q[k + 1][a][b] - factor[k] * v[k][a] * w[k][b];
        }
      }
    }
  }

  // The gradient of p from that of q[0], which is overwritten.
  void back(V g[D][D], V* p) const {
    for (int k = 0; k < D; k++) {
      V gv[D], gw[D], gf = V{};
      for (int b = 0; b < D; b++) {
        gw[b] = V{};
        for (int a = k; a < D; a++) gw[b] -= factor[k] * g[a][b] * v[k][a];
      }
      for (int a = k; a < D; a++) {
        V along = V{};
        for (int b = 0; b < D; b++) along += g[a][b] * w[k][b];
        gf -= along * v[k][a];
        gv[a] = -factor[k] * along;
        for (int b = 0; b < D; b++) gv[a] += q[k + 1][a][b] * gw[b];
      }
      for (int i = k + 1; i < D; i++) {
        p[i * (i - 1) / 2 + k] = gv[i] - gf * factor[k] * factor[k] * v[k][i];
      }
      for (int a = k; a < D; a++) {
        for (int b = 0; b < D; b++) g[a][b] += v[k][a] * gw[b];
      }
    }
  }
};

// raw (n, D(D-1)/2 + 1) to scale (n) = min(10, e^last) and q (n, D, D) from tanh of the others.
template <int D>
static void conformal(int64_t n, const float* raw, float* scale, float* matrices) {
  constexpr int P = D * (D - 1) / 2, WIDTH = P + 1;
  parallel(n, 512, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += LANES) {
      int count = (int)std::min<int64_t>(LANES, end - i);
      V p[P + 1];
      for (int c = 0; c < P; c++) {
        p[c] = hyperbolic_tangent(take_column(raw + i * WIDTH, WIDTH, c, count));
      }
      V last = take_column(raw + i * WIDTH, WIDTH, P, count);
      store(scale + i, exponential(choose(last > LOG_TEN, all(LOG_TEN), last)), count);
      Reflections<D> r(p);
      for (int c = 0; c < D * D; c++) {
        put_column(matrices + i * D * D, D * D, c, count, r.q[0][c / D][c % D]);
      }
    }
  });
}

template <int D>
static void conformal_back(int64_t n, const float* raw, const float* grad_scale,
                           const float* grad_matrices, float* grad_raw) {
  constexpr int P = D * (D - 1) / 2, WIDTH = P + 1;
  parallel(n, 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += LANES) {
      int count = (int)std::min<int64_t>(LANES, end - i);
      V p[P + 1], gp[P + 1], g[D][D];
      for (int c = 0; c < P; c++) {
        p[c] = hyperbolic_tangent(take_column(raw + i * WIDTH, WIDTH, c, count));
      }
      for (int c = 0; c < D * D; c++) {
        g[c / D][c % D] = take_column(grad_matrices + i * D * D, D * D, c, count);
      }
      Reflections<D>(p).back(g, gp);
      for (int c = 0; c < P; c++) {
        put_column(grad_raw + i * WIDTH, WIDTH, c, count, gp[c] * (1.0f - p[c] * p[c]));
      }
      V last = take_column(raw + i * WIDTH, WIDTH, P, count);
      V slope = choose(last > LOG_TEN, V{}, exponential(last));
      put_column(grad_raw + i * WIDTH, WIDTH, P, count, slope * load(grad_scale + i, count));
    }
  });
}

// With D = c s² and root = (D + 1)^(-1/2): D root², s root and t root, what an augmented Laplacian
// multiplies nodes and maps by. s is the scale whose square is in D, t the other one.
static void augmented(int64_t n, const float* own, const float* other, const float* degree,
                      float* diagonal, float* own_factor, float* other_factor) {
  parallel(n, 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      float d = degree[i] * own[i] * own[i], root = 1.0f / std::sqrt(d + 1.0f);
      diagonal[i] = d * root * root;
      own_factor[i] = own[i] * root;
      other_factor[i] = other[i] * root;
    }
  });
}

static void augmented_back(int64_t n, const float* own, const float* other, const float* degree,
                           const float* grad_diagonal, const float* grad_own_factor,
                           const float* grad_other_factor, float* grad_own, float* grad_other) {
  parallel(n, 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      float s = own[i], t = other[i], one = degree[i] * s * s + 1.0f;
      float root = 1.0f / std::sqrt(one), square = root * root;
      float by_root = grad_own_factor[i] * s + grad_other_factor[i] * t;
      float by_degree = grad_diagonal[i] * square * square - 0.5f * by_root * root * square;
      grad_own[i] = grad_own_factor[i] * root + 2.0f * degree[i] * s * by_degree;
      grad_other[i] = grad_other_factor[i] * root;
    }
  });
}

}  // namespace VARIANT
