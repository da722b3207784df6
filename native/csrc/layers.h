// Layers made of products with small matrices: linear layers, pairs of MLPs, levels of GraphSAGE,
// and the weights W1, W2 of a CSNN layer. Activations and dropout are applied to a block of rows
// while it is in the cache; gradients of weights are added up as parallel.h says.
#pragma once

#include "node_maps.h"
#include "products.h"
#include "random.h"

namespace VARIANT {

// Calls `f` with an activation as a constant.
template <class F>
static inline void with_activation(int64_t activation, F f) {
  if (activation == GELU) {
    f(std::integral_constant<int64_t, GELU>());
  } else if (activation == RELU) {
    f(std::integral_constant<int64_t, RELU>());
  } else {
    f(std::integral_constant<int64_t, IDENTITY>());
  }
}

// Blocks of rows [first, last): calls f(row, rows).
template <class F>
static inline void each_block(int64_t first, int64_t last, F f) {
  for (int64_t row = first; row < last; row += ROWS) f(row, std::min(ROWS, last - row));
}

template <class F>
static inline void parallel_blocks(int64_t rows, const F& f) {
  int64_t blocks = (rows + ROWS - 1) / ROWS;
  parallel(blocks, 1, [&](int64_t begin, int64_t end) {
    static thread_local Scratch scratch;  // a thread comes here many times
    each_block(begin * ROWS, std::min(rows, end * ROWS),
               [&](int64_t row, int64_t count) { f(scratch, row, count); });
  });
}

// out = mask * act(y + bias) for rows of `columns` numbers, in place of y or beside it. Beside it, y
// becomes what gradients of out are multiplied by, mask * act'(y + bias): the way back then needs
// neither the mask nor the function again.
template <int64_t ACT>
static inline void finish_rows(int64_t rows, int64_t columns, const float* bias, float* y,
                               float* out, Mask* mask, int64_t first) {
  float keep[512];
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t from = 0; from < columns; from += 512) {
      int64_t some = std::min<int64_t>(512, columns - from), at = r * columns + from;
      if (mask != nullptr) mask->draw(first + at, some, keep);
      each_vector(some, [&](int64_t c, int lanes) {
        V value = load_some(y + at + c, lanes), kept = all(1.0f);
        if (mask != nullptr) kept = load_some(keep + c, lanes);
        if (bias != nullptr) value += load_some(bias + from + c, lanes);
        Curve curve = activate<ACT>(value);
        if (out != y) store_some(y + at + c, curve.slope * kept, lanes);
        store_some(out + at + c, curve.value * kept, lanes);
      });
    }
  }
}

// g = grad * slope, or grad * mask where the activation is none and no slope was kept.
template <int64_t ACT>
static inline void unfinish_rows(int64_t count, const float* grad, const float* slope, float* g,
                                 Mask* mask, int64_t first) {
  float keep[512];
  for (int64_t from = 0; from < count; from += 512) {
    int64_t some = std::min<int64_t>(512, count - from);
    const float* factors = ACT == IDENTITY ? keep : slope + from;
    if (ACT == IDENTITY && mask != nullptr) {
      mask->draw(first + from, some, keep);
    } else if (ACT == IDENTITY) {
      factors = nullptr;
    }
    each_vector(some, [&](int64_t c, int lanes) {
      V value = load_some(grad + from + c, lanes);
      if (factors != nullptr) value *= load_some(factors + c, lanes);
      store_some(g + from + c, value, lanes);
    });
  }
}

// g = told > 0 ? g : 0, for rows of `columns` numbers; those of `told` are `row` apart.
static inline void rectify(int64_t rows, int64_t columns, const float* told, int64_t row,
                           float* g) {
  for (int64_t r = 0; r < rows; r++, told += row, g += columns) {
    each_vector(columns, [&](int64_t c, int lanes) {
      V kept = choose(load_some(told + c, lanes) > 0.0f, load_some(g + c, lanes), V{});
      store_some(g + c, kept, lanes);
    });
  }
}

// ---- out = act(y) of y = x Wᵀ + b, W (o, k); beside it, y becomes the slope

template <class Kind>
static void linear(int64_t n, int64_t k, int64_t o, const float* x, const float* weight,
                   const float* bias, int64_t activation, float* y, float* out) {
  auto packed = pack_transposed<Kind>(weight, o, k);
  with_activation(activation, [&](auto act) {
    parallel_blocks(n, [&](Scratch& scratch, int64_t row, int64_t rows) {
      times<Kind>(scratch, rows, k, x + row * k, k, packed, y + row * o, o);
      if (act != IDENTITY || bias != nullptr) {
        finish_rows<act>(rows, o, bias, y + row * o, out + row * o, nullptr, 0);
      }
    });
  });
}

template <class Kind>
static void linear_back(int64_t n, int64_t k, int64_t o, const float* grad, const float* x,
                        const float* weight, int64_t activation, const float* slope, float* grad_x,
                        float* grad_weight, float* grad_bias) {
  auto packed = grad_x == nullptr ? Packed<Kind>() : pack<Kind>(weight, o, k);
  std::vector<float> total(o * k + o);
  with_activation(activation, [&](auto act) {
    sum_rows(n, ROWS, o * k + o, total.data(), [&](int64_t first, int64_t last, float* sums) {
      Scratch scratch;
      std::vector<float> inner(act == IDENTITY ? 0 : ROWS * o);
      each_block(first, last, [&](int64_t row, int64_t rows) {
        const float* g = grad + row * o;
        if (act != IDENTITY) {
          unfinish_rows<act>(rows * o, g, slope + row * o, inner.data(), nullptr, 0);
          g = inner.data();
        }
        transposed_times<Kind>(scratch, rows, o, k, g, o, x + row * k, k, sums);
        add_columns(rows, o, g, o, sums + o * k);
        if (grad_x != nullptr) times<Kind>(scratch, rows, o, g, o, packed, grad_x + row * k, k);
      });
    });
  });
  std::copy_n(total.data(), o * k, grad_weight);
  if (grad_bias != nullptr) std::copy_n(total.data() + o * k, o, grad_bias);
}

// ---- several MLPs of one input: out_m = relu(x W_mᵀ + b_m) V_mᵀ + c_m
// Parameters are W (m, k), b, V (o, m), c of each, one after the other.

struct MLPSizes {
  int64_t n, k, m, o, count;
  int64_t parameters() const { return m * k + m + o * m + o; }
};

template <class Kind>
static void mlps(const MLPSizes& s, const float* x, const float* const* parameters, float* hidden,
                 float* out) {
  int64_t all = s.count * s.m;  // hidden is (n, count, m), out (count, n, o)
  std::vector<Packed<Kind>> first, second;
  for (int64_t j = 0; j < s.count; j++) {
    first.push_back(pack_transposed<Kind>(parameters[4 * j], s.m, s.k));
    second.push_back(pack_transposed<Kind>(parameters[4 * j + 2], s.o, s.m));
  }
  parallel_blocks(s.n, [&](Scratch& scratch, int64_t row, int64_t rows) {
    for (int64_t j = 0; j < s.count; j++) {
      float *h = hidden + row * all + j * s.m, *y = out + (j * s.n + row) * s.o;
      times<Kind>(scratch, rows, s.k, x + row * s.k, s.k, first[j], h, all);
      for (int64_t r = 0; r < rows; r++) {
        finish_rows<RELU>(1, s.m, parameters[4 * j + 1], h + r * all, h + r * all, nullptr, 0);
      }
      times<Kind>(scratch, rows, s.m, h, all, second[j], y, s.o);
      finish_rows<IDENTITY>(rows, s.o, parameters[4 * j + 3], y, y, nullptr, 0);
    }
  });
}

template <class Kind>
static void mlps_back(const MLPSizes& s, const float* grad, const float* x, const float* hidden,
                      const float* const* parameters, float* grad_x, float* grad_parameters) {
  int64_t all = s.count * s.m, size = s.parameters();
  std::vector<Packed<Kind>> first, second;
  for (int64_t j = 0; j < s.count; j++) {
    first.push_back(pack<Kind>(parameters[4 * j], s.m, s.k));
    second.push_back(pack<Kind>(parameters[4 * j + 2], s.o, s.m));
  }
  sum_rows(s.n, ROWS, s.count * size, grad_parameters, [&](int64_t begin, int64_t end, float* to) {
    Scratch scratch;
    std::vector<float> inner(ROWS * s.m);
    each_block(begin, end, [&](int64_t row, int64_t rows) {
      Across<Kind> own_cells(scratch.own, rows, s.k, x + row * s.k, s.k);
      for (int64_t j = 0; j < s.count; j++) {
        float *w = to + j * size, *b = w + s.m * s.k, *v = b + s.m, *c = v + s.o * s.m;
        const float *g = grad + (j * s.n + row) * s.o, *kept = hidden + row * all + j * s.m;
        transposed_times<Kind>(scratch, rows, s.o, s.m, g, s.o, kept, all, v);
        add_columns(rows, s.o, g, s.o, c);
        times<Kind>(scratch, rows, s.o, g, s.o, second[j], inner.data(), s.m);
        rectify(rows, s.m, kept, all, inner.data());
        transposed_times(scratch, rows, s.m, inner.data(), s.m, own_cells, w);
        add_columns(rows, s.m, inner.data(), s.m, b);
        if (grad_x != nullptr) {
          times<Kind>(scratch, rows, s.m, inner.data(), s.m, first[j], grad_x + row * s.k, s.k,
                      j > 0);
        }
      }
    });
  });
}

// ---- a level of GraphSAGE, of several stacks: y = L mean_{j -> i} p(x_j) + b + R x_i,
// p(x) = relu(W x + a) or x, and out = mask * act(y); beside it, y becomes the slope. Parameters are
// L, b, R and, if the level projects, W, a. x is (n, k) or (count, n, k); sent, p(x), is (count, n, k); y is (count, n, o).

struct SageSizes {
  int64_t n, k, o, count;
  bool shared, projects;
  int64_t given() const { return projects ? 5 : 3; }
  int64_t parameters() const { return 2 * o * k + o + (projects ? k * k + k : 0); }
};

template <class Kind, class Index>
static void sage(const SageSizes& s, const float* x, const int64_t* ptr, const Index* other,
                 const float* inverse_degree, const float* const* parameters, int64_t activation,
                 Mask mask, float* sent, float* told, float* y, float* out) {
  for (int64_t j = 0; j < s.count; j++) {
    const float* const* own = parameters + j * s.given();
    const float* from = s.shared ? x : x + j * s.n * s.k;
    float *at = y + j * s.n * s.o, *to = out + j * s.n * s.o;
    auto left = pack_transposed<Kind>(own[0], s.o, s.k);
    auto right = pack_transposed<Kind>(own[2], s.o, s.k);
    auto weight = s.projects ? pack_transposed<Kind>(own[3], s.k, s.k) : Packed<Kind>();
    parallel_blocks(s.n, [&](Scratch& scratch, int64_t row, int64_t rows) {
      Along<Kind> own_cells(scratch.own, rows, s.k, from + row * s.k, s.k);
      times(rows, own_cells, right, at + row * s.o, s.o);
      if (s.projects) {
        float* p = sent + (j * s.n + row) * s.k;
        times(rows, own_cells, weight, p, s.k);
        finish_rows<RELU>(rows, s.k, own[4], p, p, nullptr, 0);
        times<Kind>(scratch, rows, s.k, p, s.k, left, told + row * s.o, s.o);
      } else {
        times(rows, own_cells, left, told + row * s.o, s.o);
      }
    });
    Rows<Index> all_told(told, s.n, s.o, ptr, other);
    with_activation(activation, [&](auto act) {
      parallel_rows(s.n, ptr, [&](int64_t begin, int64_t end) {
        Mask own_mask = mask;
        std::vector<float> heard(s.o);
        each_block(begin, end, [&](int64_t row, int64_t rows) {
          for (int64_t i = row; i < row + rows; i++) {
            gather(all_told, i, heard.data());
            float* yi = at + i * s.o;
            each_vector(s.o, [&](int64_t c, int lanes) {
              V sum = load_some(heard.data() + c, lanes) * inverse_degree[i];
              store_some(yi + c, load_some(yi + c, lanes) + sum, lanes);
            });
          }
          finish_rows<act>(rows, s.o, own[1], at + row * s.o, to + row * s.o,
                           mask.drops() ? &own_mask : nullptr, (j * s.n + row) * s.o);
        });
      });
    });
  }
}

// `ptr`, `other` list the edges by their source here.
template <class Kind, class Index>
static void sage_back(const SageSizes& s, const float* grad, const float* x, const float* sent,
                      const float* slope, const int64_t* ptr, const Index* other,
                      const float* inverse_degree, const float* const* parameters,
                      int64_t activation, Mask mask, float* inner, float* spread,
                      float* grad_x, float* grad_parameters) {
  int64_t size = s.parameters(), k = s.k, o = s.o;
  for (int64_t j = 0; j < s.count; j++) {
    const float* const* own = parameters + j * s.given();
    const float *from = s.shared ? x : x + j * s.n * k, *told = from;
    const float* outer = grad + j * s.n * o;
    if (s.projects) told = sent + j * s.n * k;
    with_activation(activation, [&](auto act) {
      parallel(s.n, 256, [&](int64_t begin, int64_t end) {
        Mask own_mask = mask;
        for (int64_t i = begin; i < end; i++) {
          int64_t at = (j * s.n + i) * o;
          float *g = inner + i * o, *to = spread + i * o;
          unfinish_rows<act>(o, outer + i * o, slope + at, g, mask.drops() ? &own_mask : nullptr, at);
          each_vector(o, [&](int64_t c, int lanes) {
            store_some(to + c, load_some(g + c, lanes) * inverse_degree[i], lanes);
          });
        }
      });
    });
    auto left = pack<Kind>(own[0], o, k), right = pack<Kind>(own[2], o, k);
    auto weight = s.projects ? pack<Kind>(own[3], k, k) : Packed<Kind>();
    float* into = grad_x == nullptr ? nullptr : s.shared ? grad_x : grad_x + j * s.n * k;
    bool add = s.shared && j > 0;
    Rows<Index> all_spread(spread, s.n, o, ptr, other);
    sum_rows(s.n, ROWS, size, grad_parameters + j * size, [&](int64_t begin, int64_t end, float* to) {
      float *gl = to, *gb = gl + o * k, *gr = gb + o, *gw = gr + o * k, *ga = gw + k * k;
      Scratch scratch;
      std::vector<float> heard(ROWS * o), back(s.projects ? ROWS * k : 0);
      each_block(begin, end, [&](int64_t row, int64_t rows) {
        const float *g = inner + row * o, *own_x = from + row * k;
        for (int64_t i = 0; i < rows; i++) gather(all_spread, row + i, &heard[i * o]);
        transposed_times<Kind>(scratch, rows, o, k, heard.data(), o, told + row * k, k, gl);
        add_columns(rows, o, g, o, gb);
        Across<Kind> own_cells(scratch.own, rows, k, own_x, k);
        transposed_times(scratch, rows, o, g, o, own_cells, gr);
        float* gx = into == nullptr ? nullptr : into + row * k;
        if (s.projects) {
          times<Kind>(scratch, rows, o, heard.data(), o, left, back.data(), k);
          rectify(rows, k, told + row * k, k, back.data());
          transposed_times(scratch, rows, k, back.data(), k, own_cells, gw);
          add_columns(rows, k, back.data(), k, ga);
          if (gx != nullptr) times<Kind>(scratch, rows, k, back.data(), k, weight, gx, k, add);
        } else if (gx != nullptr) {
          times<Kind>(scratch, rows, o, heard.data(), o, left, gx, k, add);
        }
        if (gx != nullptr) times<Kind>(scratch, rows, o, g, o, right, gx, k, true);
      });
    });
  }
}

// ---- what is diffused: y_i = W1 x_i W2ᵀ; x (n, d, h), W1 (d, d) or null, W2 (h, h)

template <int D>
static inline void mix_stalks(int64_t nodes, int64_t h, const float* w, bool transposed,
                              const float* x, float* y) {
  float m[D * D];
  for (int a = 0; a < D; a++) {
    for (int b = 0; b < D; b++) m[a * D + b] = transposed ? w[b * D + a] : w[a * D + b];
  }
  for (int64_t i = 0; i < nodes; i++) map_node<D>(m, 1.0f, x + i * D * h, h, y + i * D * h);
}

constexpr int64_t MIXED = 96;  // nodes of a block

template <class Kind, int D>
static void mix(int64_t n, int64_t h, const float* x, const float* w1, const float* w2, float* y) {
  auto packed = pack_transposed<Kind>(w2, h, h);
  int64_t width = D * h;
  parallel((n + MIXED - 1) / MIXED, 1, [&](int64_t begin, int64_t end) {
    static thread_local Scratch scratch;
    static thread_local std::vector<float> turned;
    turned.resize(w1 == nullptr ? 0 : MIXED * width);
    for (int64_t i = begin * MIXED; i < std::min(n, end * MIXED); i += MIXED) {
      int64_t nodes = std::min(MIXED, n - i);
      const float* in = x + i * width;
      if (w1 != nullptr) {
        mix_stalks<D>(nodes, h, w1, false, in, turned.data());
        in = turned.data();
      }
      times<Kind>(scratch, nodes * D, h, in, h, packed, y + i * width, h);
    }
  });
}

template <class Kind, int D>
static void mix_back(int64_t n, int64_t h, const float* grad, const float* x, const float* w1,
                     const float* w2, float* grad_x, float* grad_w1, float* grad_w2) {
  auto packed = pack<Kind>(w2, h, h);
  int64_t width = D * h;
  std::vector<float> total(D * D + h * h);
  sum_rows(n, MIXED, D * D + h * h, total.data(), [&](int64_t begin, int64_t end, float* sums) {
    Scratch scratch;
    std::vector<float> turned(w1 == nullptr ? 0 : MIXED * width), back(turned.size());
    V dots[D][D] = {};
    for (int64_t i = begin; i < end; i += MIXED) {
      int64_t nodes = std::min(MIXED, end - i);
      const float *g = grad + i * width, *in = x + i * width;
      if (w1 == nullptr) {
        transposed_times<Kind>(scratch, nodes * D, h, h, g, h, in, h, sums + D * D);
        times<Kind>(scratch, nodes * D, h, g, h, packed, grad_x + i * width, h);
        continue;
      }
      mix_stalks<D>(nodes, h, w1, false, in, turned.data());
      transposed_times<Kind>(scratch, nodes * D, h, h, g, h, turned.data(), h, sums + D * D);
      times<Kind>(scratch, nodes * D, h, g, h, packed, back.data(), h);
      mix_stalks<D>(nodes, h, w1, true, back.data(), grad_x + i * width);
      for (int64_t j = 0; j < nodes; j++) {
        each_vector(h, [&](int64_t c, int lanes) {
          V right[D];
          for (int b = 0; b < D; b++) right[b] = load_some(in + j * width + b * h + c, lanes);
          for (int a = 0; a < D; a++) {
            V left = load_some(&back[j * width + a * h + c], lanes);
            for (int b = 0; b < D; b++) dots[a][b] += left * right[b];
          }
        });
      }
    }
    for (int a = 0; a < D; a++) {
      for (int b = 0; b < D; b++) sums[a * D + b] = sum(dots[a][b]);
    }
  });
  if (w1 != nullptr) std::copy_n(total.data(), D * D, grad_w1);
  std::copy_n(total.data() + D * D, h * h, grad_w2);
}

// ---- entry by entry: dropout, and (1 + tanh e_a) x - act(mask * y) for stalk coordinate a

static void drop(int64_t count, const float* x, Mask mask, float* out) {
  parallel((count + DRAWN - 1) / DRAWN, 64, [&](int64_t begin, int64_t end) {
    Mask own = mask;
    float keep[DRAWN];
    for (int64_t block = begin; block < end; block++) {
      int64_t at = block * DRAWN, some = std::min<int64_t>(DRAWN, count - at);
      own.draw(at, some, keep);
      each_vector(some, [&](int64_t c, int lanes) {
        store_some(out + at + c, load_some(x + at + c, lanes) * load_some(keep + c, lanes), lanes);
      });
    }
  });
}

// 1 + tanh e_a
static inline std::vector<float> kept_shares(int64_t d, const float* epsilon) {
  std::vector<float> kept(d);
  for (int64_t a = 0; a < d; a++) kept[a] = 1.0f + std::tanh(epsilon[a]);
  return kept;
}

static void update(int64_t n, int64_t d, int64_t h, const float* x, const float* y,
                   const float* epsilon, int64_t activation, Mask mask, float* out) {
  auto shares = kept_shares(d, epsilon);
  with_activation(activation, [&](auto act) {
    parallel(n * d, 256, [&](int64_t begin, int64_t end) {
      Mask own_mask = mask;
      std::vector<float> keep(h, 1.0f);
      for (int64_t row = begin; row < end; row++) {
        float kept = shares[row % d];
        if (mask.drops()) own_mask.draw(row * h, h, keep.data());
        each_vector(h, [&](int64_t c, int lanes) {
          V v = load_some(y + row * h + c, lanes) * load_some(&keep[c], lanes);
          V own = kept * load_some(x + row * h + c, lanes);
          store_some(out + row * h + c, own - activate<act>(v).value, lanes);
        });
      }
    });
  });
}

static void update_back(int64_t n, int64_t d, int64_t h, const float* grad, const float* x,
                        const float* y, const float* epsilon, int64_t activation,
                        Mask mask, float* grad_x, float* grad_y, float* grad_epsilon) {
  auto shares = kept_shares(d, epsilon);
  with_activation(activation, [&](auto act) {
    sum_rows(n, 256, d, grad_epsilon, [&](int64_t begin, int64_t end, float* sums) {
      Mask own_mask = mask;
      std::vector<float> keep(h, 1.0f);
      for (int64_t row = begin * d; row < end * d; row++) {
        float kept = shares[row % d];
        if (mask.drops()) own_mask.draw(row * h, h, keep.data());
        V dots = V{};
        each_vector(h, [&](int64_t c, int lanes) {
          V g = load_some(grad + row * h + c, lanes), m = load_some(&keep[c], lanes);
          V v = load_some(y + row * h + c, lanes) * m;
          store_some(grad_x + row * h + c, kept * g, lanes);
          store_some(grad_y + row * h + c, -g * m * activate<act>(v).slope, lanes);
          dots += g * load_some(x + row * h + c, lanes);
        });
        sums[row % d] += sum(dots);
      }
    });
  });
  for (int64_t a = 0; a < d; a++) {
    float t = std::tanh(epsilon[a]);
    grad_epsilon[a] *= 1.0f - t * t;
  }
}

}  // namespace VARIANT
