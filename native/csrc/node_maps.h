// The operator with conformal maps at the nodes,
//
//   y_i = D_i x_i - l_i L_iᵀ sum_{j -> i} r_j R_j x_j,
//
// in two passes over the nodes, what each sends and what each makes of what it hears; and all its
// gradients in two more. x is (n, d, h); D, l, r are (n); L, R are (n, d, d).
#pragma once

#include "parallel.h"
#include "vector.h"

namespace VARIANT {

// Rows of numbers, `width` each, of which lists of their places name some.
template <class Index>
struct Rows {
  const float* rows;
  int64_t width;
  const int64_t* ptr;  // list i is other[ptr[i]] to other[ptr[i + 1]]
  const Index *other, *end;
  int64_t near;  // rows this close to row i are in the cache when list i is read
  bool far;      // more than the caches next to a core hold

  Rows(const float* rows, int64_t n, int64_t width, const int64_t* ptr, const Index* other)
      : rows(rows), width(width), ptr(ptr), other(other), end(other + ptr[n]),
        near((1 << 14) / std::max<int64_t>(1, width)), far(n * width * 4 > (8 << 20)) {}

  // The row that is needed AHEAD rows later, of list i or of the next ones, is on its way while
  // this one is added up: to the nearest cache, or from far away to the second.
  template <bool FAR>
  void ask(int64_t i, const Index* at, int64_t column, int64_t bytes) const {
    constexpr int AHEAD = 16;
    if (at + AHEAD >= end) return;
    int64_t wanted = (int64_t)at[AHEAD];
    if ((uint64_t)(wanted - i + near) <= (uint64_t)(2 * near)) return;
    const char* next = (const char*)(rows + wanted * width + column);
    for (int64_t v = 0; v < bytes; v += 64) __builtin_prefetch(next + v, 0, FAR ? 2 : 3);
  }
};

// out = sum of the rows of list i: up to N vectors from a column on, which stay in registers while
// the list is read.
template <int N, bool FAR, class Index>
static inline void gather_vectors(const Rows<Index>& from, int64_t i, int64_t column, int tail,
                                  float* out) {
  V sums[N];
  for (int v = 0; v < N; v++) sums[v] = V{};
  const Index* last = from.other + from.ptr[i + 1];
  for (const Index* at = from.other + from.ptr[i]; at < last; at++) {
    const float* row = from.rows + (int64_t)*at * from.width + column;
    from.template ask<FAR>(i, at, column, N * LANES * 4);
    for (int v = 0; v + 1 < N; v++) sums[v] += load(row + v * LANES);
    sums[N - 1] += load_some(row + (N - 1) * LANES, tail);
  }
  for (int v = 0; v + 1 < N; v++) store(out + v * LANES, sums[v]);
  store_some(out + (N - 1) * LANES, sums[N - 1], tail);
}

constexpr int GATHERED = 8;  // vectors at a time

template <int N, bool FAR, class Index>
static inline void gather_part(const Rows<Index>& from, int64_t i, int64_t column, int64_t columns,
                               float* out) {
  if constexpr (N > 1) {
    if (columns <= (N - 1) * LANES) {
      gather_part<N - 1, FAR>(from, i, column, columns, out);
      return;
    }
  }
  gather_vectors<N, FAR>(from, i, column, (int)(columns - (N - 1) * LANES), out);
}

template <class Index>
static inline void gather(const Rows<Index>& from, int64_t i, float* out) {
  constexpr int64_t STEP = GATHERED * LANES;
  for (int64_t c = 0; c < from.width; c += STEP) {
    int64_t columns = std::min(STEP, from.width - c);
    if (from.far) {
      gather_part<GATHERED, true>(from, i, c, columns, out + c);
    } else {
      gather_part<GATHERED, false>(from, i, c, columns, out + c);
    }
  }
}

// y = factor M x for one node, M (d, d).
template <int D>
static inline void map_node(const float* m, float factor, const float* x, int64_t h, float* y) {
  each_vector(h, [&](int64_t c, int lanes) {
    V in[D];
    for (int b = 0; b < D; b++) in[b] = load_some(x + b * h + c, lanes);
    for (int a = 0; a < D; a++) {
      V sum = V{};
      for (int b = 0; b < D; b++) sum += m[a * D + b] * in[b];
      store_some(y + a * h + c, factor * sum, lanes);
    }
  });
}

// y = own x - factor Mᵀ heard for one node.
template <int D>
static inline void answer_node(float own, const float* x, const float* m, float factor,
                               const float* heard, int64_t h, float* y) {
  each_vector(h, [&](int64_t c, int lanes) {
    V in[D];
    for (int a = 0; a < D; a++) in[a] = load_some(heard + a * h + c, lanes);
    for (int b = 0; b < D; b++) {
      V sum = V{};
      for (int a = 0; a < D; a++) sum += m[a * D + b] * in[a];
      store_some(y + b * h + c, own * load_some(x + b * h + c, lanes) - factor * sum, lanes);
    }
  });
}

// The gradients of M and of its factor from products of the rows of u and v:
// gm = -factor u vᵀ, gf = -<M, u vᵀ>.
template <int D>
static inline void map_gradient(const float* m, float factor, const float* u, const float* v,
                                int64_t h, float* gm, float* gf) {
  V dots[D * D] = {};
  each_vector(h, [&](int64_t c, int lanes) {
    V right[D];
    for (int b = 0; b < D; b++) right[b] = load_some(v + b * h + c, lanes);
    for (int a = 0; a < D; a++) {
      V left = load_some(u + a * h + c, lanes);
      for (int b = 0; b < D; b++) dots[a * D + b] += left * right[b];
    }
  });
  float total = 0.0f, products[D * D];
  sums<D * D>(dots, products);
  for (int i = 0; i < D * D; i++) {
    gm[i] = -factor * products[i];
    total -= m[i] * products[i];
  }
  if (gf != nullptr) *gf = total;
}

struct NodeMaps {
  int64_t n, h;
  const float *x, *diagonal, *left_factor, *left, *right_factor, *right;  // null factors: 1

  float by_left(int64_t i) const { return left_factor == nullptr ? 1.0f : left_factor[i]; }
  float by_right(int64_t i) const { return right_factor == nullptr ? 1.0f : right_factor[i]; }
};

template <int D, class Index>
static void node_maps(const NodeMaps& t, const int64_t* ptr, const Index* other, float* sent,
                      float* heard, float* y) {
  int64_t width = D * t.h;
  parallel(t.n, 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      map_node<D>(t.right + i * D * D, t.by_right(i), t.x + i * width, t.h, sent + i * width);
    }
  });
  Rows<Index> all_sent(sent, t.n, width, ptr, other);
  parallel_rows(t.n, ptr, [&](int64_t begin, int64_t end) {
    std::vector<float> own(heard == nullptr ? width : 0);  // nobody will ask what was heard
    for (int64_t i = begin; i < end; i++) {
      float* told = heard == nullptr ? own.data() : heard + i * width;
      gather(all_sent, i, told);
      answer_node<D>(t.diagonal[i], t.x + i * width, t.left + i * D * D, t.by_left(i), told,
                     t.h, y + i * width);
    }
  });
}

struct NodeMapGradients {
  float *x, *diagonal, *left_factor, *left, *right_factor, *right;
};

template <int D, class Index>
static void node_maps_back(const NodeMaps& t, const float* grad, const float* heard,
                           const int64_t* ptr, const Index* other, float* asked,
                           const NodeMapGradients& g) {
  int64_t width = D * t.h;
  parallel(t.n, 128, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const float *gi = grad + i * width, *m = t.left + i * D * D, *xi = t.x + i * width;
      map_node<D>(m, t.by_left(i), gi, t.h, asked + i * width);
      map_gradient<D>(m, t.by_left(i), heard + i * width, gi, t.h, g.left + i * D * D,
                      g.left_factor == nullptr ? nullptr : g.left_factor + i);
      V dots = V{};
      each_vector(width, [&](int64_t c, int lanes) {
        dots += load_some(gi + c, lanes) * load_some(xi + c, lanes);
      });
      g.diagonal[i] = sum(dots);
    }
  });
  Rows<Index> all_asked(asked, t.n, width, ptr, other);
  parallel_rows(t.n, ptr, [&](int64_t begin, int64_t end) {
    std::vector<float> told(width);
    for (int64_t i = begin; i < end; i++) {
      const float* m = t.right + i * D * D;
      gather(all_asked, i, told.data());
      answer_node<D>(t.diagonal[i], grad + i * width, m, t.by_right(i), told.data(), t.h,
                     g.x + i * width);
      map_gradient<D>(m, t.by_right(i), told.data(), t.x + i * width, t.h,
                      g.right + i * D * D, g.right_factor == nullptr ? nullptr : g.right_factor + i);
    }
  });
}

}  // namespace VARIANT
