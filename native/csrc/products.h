// Products of tall matrices with small ones, in blocks of rows, so that what is done to a block
// before and after finds it in the cache. All matrices are row by row.
//
//   times(A, B):             C = A B or C += A B,    A (m, k), B (k, n) packed beforehand
//   transposed_times(A, B):  C += Aᵀ B,              A (m, n), B (m, k): gradients of weights
//   add_columns(A):          c += sum of A's rows:   gradients of biases
//
// `Single` multiplies as it is. `Half` rounds both factors to bfloat16 and adds up in single
// precision, two products at a time. Either way a tile of C stays in registers while k runs.
#pragma once

#include <algorithm>
#include <vector>

#include "vector.h"

namespace VARIANT {

constexpr int64_t ROWS = 336;  // of a block
#if defined(__AVX512F__)
constexpr int TILE = 14;  // rows of a tile: 28 of 32 registers hold it
#elif defined(__AVX2__)
constexpr int TILE = 6;
#else
constexpr int TILE = 4;
#endif
constexpr int WIDE = 2 * LANES;  // columns of a tile

struct Single {
  typedef float Cell;  // of packed factors: one number of the running index
  static constexpr int DEPTH = 1;
  static inline V broadcast(Cell a) { return all(a); }
  static inline V take(const Cell* from) { return load(from); }
  static inline V multiply_add(V a, V b, V c) { return a * b + c; }
};

// Two neighbours of the running index as bfloat16 in one cell, the first one in the lower half.
struct Half {
  typedef uint32_t Cell;
  static constexpr int DEPTH = 2;
  static inline VU broadcast(Cell a) { return a - VU{}; }
  static inline VU take(const Cell* from) {
    VU v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
  static inline V multiply_add(VU a, VU b, V c) {
#if defined(__AVX512BF16__)
    return (V)_mm512_dpbf16_ps((__m512)c, (__m512bh)a, (__m512bh)b);
#else
    c = (V)(a << 16) * (V)(b << 16) + c;
    return (V)(a & 0xffff0000u) * (V)(b & 0xffff0000u) + c;
#endif
  }
};

// To bfloat16, to nearest and even; what is infinite or no number stays so.
static inline uint32_t to_half(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16) | 0x40u;
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

static inline VU to_halves(V x) {
  VU bits = (VU)x;
  VU rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (VU)choose((VI)((bits & 0x7fffffffu) > 0x7f800000u), (V)((bits >> 16) | 0x40u), (V)rounded);
}

// Two numbers to a cell, `first` in its lower half.
static inline VU to_cells(V first, V second) {
#if defined(__AVX512BF16__)
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  __m512i halves = (__m512i)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
  return (VU)_mm512_permutexvar_epi16(order, halves);
#endif
  return to_halves(first) | (to_halves(second) << 16);
}

// A matrix (k, n) as panels of WIDE columns, each (k, WIDE), filled up with zeros. `element(i, j)`
// gives its entries.
template <class Kind>
struct Packed {
  int64_t depth, columns;  // k in cells, n
  std::vector<typename Kind::Cell> cells;

  template <class F>
  Packed(int64_t k, int64_t n, F element)
      : depth((k + Kind::DEPTH - 1) / Kind::DEPTH), columns(n) {
    int64_t panels = (n + WIDE - 1) / WIDE;
    cells.assign(panels * depth * WIDE, 0);
    for (int64_t first = 0; first < n; first += WIDE) {
      int64_t last = std::min(n, first + WIDE);
      for (int64_t i = 0; i < k; i++) {
        typename Kind::Cell* row = cells.data() + first * depth + i / Kind::DEPTH * WIDE;
        for (int64_t j = first; j < last; j++) put(row[j - first], i, element(i, j));
      }
    }
  }

  Packed() : depth(0), columns(0) {}  // of what nobody multiplies by

  static void put(float& cell, int64_t, float value) { cell = value; }
  static void put(uint32_t& cell, int64_t i, float value) {
    cell |= to_half(value) << (i % 2 ? 16 : 0);
  }
};

// W (n, k) as what x is multiplied by in x Wᵀ, and in g W.
template <class Kind>
static Packed<Kind> pack_transposed(const float* w, int64_t n, int64_t k) {
  return Packed<Kind>(k, n, [=](int64_t i, int64_t j) { return w[j * k + i]; });
}

template <class Kind>
static Packed<Kind> pack(const float* w, int64_t n, int64_t k) {
  return Packed<Kind>(n, k, [=](int64_t i, int64_t j) { return w[i * k + j]; });
}

// A tile of C, M rows and WIDE columns of which `columns` are there (not BOTH: at most LANES):
// C(r, :) = (add ? C(r, :) : 0) + sum_i A(r, i) B(i, :), the cells of A at a[r * row + i * step].
template <class Kind, int M, bool BOTH>
static void tile(int64_t depth, const typename Kind::Cell* a, int64_t row, int64_t step,
                 const typename Kind::Cell* b, int64_t b_step, float* c, int64_t c_row,
                 int columns, bool add) {
  V left[M], right[M];
  // All loops over rows are unrolled: only then the tile is in registers from the first line on.
#pragma GCC unroll 16
  for (int r = 0; r < M; r++) left[r] = right[r] = V{};
  for (int64_t i = 0; i < depth; i++) {
    auto b0 = Kind::take(b + i * b_step), b1 = b0;
    if (BOTH) b1 = Kind::take(b + i * b_step + LANES);
#pragma GCC unroll 16
    for (int r = 0; r < M; r++) {
      auto x = Kind::broadcast(a[r * row + i * step]);
      left[r] = Kind::multiply_add(x, b0, left[r]);
      if (BOTH) right[r] = Kind::multiply_add(x, b1, right[r]);
    }
  }
  int first = std::min(columns, LANES), second = columns - first;
  if (add) {
#pragma GCC unroll 16
    for (int r = 0; r < M; r++) {
      left[r] += load_some(c + r * c_row, first);
      if (BOTH) right[r] += load_some(c + r * c_row + LANES, second);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < M; r++) {
    store_some(c + r * c_row, left[r], first);
    if (BOTH) store_some(c + r * c_row + LANES, right[r], second);
  }
}

template <class Kind, int M = TILE>
static inline void tile_of(int64_t rows, int64_t depth, const typename Kind::Cell* a, int64_t row,
                           int64_t step, const typename Kind::Cell* b, int64_t b_step, float* c,
                           int64_t c_row, int columns, bool add) {
  if constexpr (M > 1) {
    if (rows < M) {
      tile_of<Kind, M - 1>(rows, depth, a, row, step, b, b_step, c, c_row, columns, add);
      return;
    }
  }
  if (columns > LANES) {
    tile<Kind, M, true>(depth, a, row, step, b, b_step, c, c_row, columns, add);
  } else {
    tile<Kind, M, false>(depth, a, row, step, b, b_step, c, c_row, columns, add);
  }
}

// What a thread needs to bring blocks into the form that is multiplied.
struct Scratch {
  std::vector<uint32_t> left, right, own;
};

// Rows of numbers to cells along the rows, (m, k) to (m, depth).
static inline const float* along(std::vector<uint32_t>&, const Single*, int64_t, int64_t,
                                 const float* a, int64_t row, int64_t& cell_row) {
  cell_row = row;
  return a;
}

static inline const uint32_t* along(std::vector<uint32_t>& cells, const Half*, int64_t m, int64_t k,
                                    const float* a, int64_t row, int64_t& cell_row) {
  cell_row = (k + 1) / 2;
  cells.resize(m * cell_row + 1);
  for (int64_t r = 0; r < m; r++) {
    uint16_t* to = (uint16_t*)(cells.data() + r * cell_row);
    const float* from = a + r * row;
    int64_t i = 0;
#if defined(__AVX512BF16__)
    for (; i + LANES <= k; i += LANES) {
      __m256bh halves = _mm512_cvtneps_pbh((__m512)load(from + i));
      std::memcpy(to + i, &halves, sizeof halves);
    }
#endif
    for (; i < k; i++) to[i] = (uint16_t)to_half(from[i]);
    if (k % 2) to[k] = 0;
  }
  return cells.data();
}

// Pairs of rows to cells across the rows, (m, k) to (ceil(m / 2), k).
static inline const float* across(std::vector<uint32_t>&, const Single*, int64_t, int64_t,
                                  const float* a, int64_t row, int64_t& cell_row) {
  cell_row = row;
  return a;
}

static inline const uint32_t* across(std::vector<uint32_t>& cells, const Half*, int64_t m,
                                     int64_t k, const float* a, int64_t row, int64_t& cell_row) {
  cell_row = (k + WIDE - 1) / WIDE * WIDE;  // whole tiles may be read
  cells.resize((m + 1) / 2 * cell_row);
  for (int64_t r = 0; r < m; r += 2) {
    const float *upper = a + r * row, *lower = upper + row;
    uint32_t* to = cells.data() + r / 2 * cell_row;
    bool both = r + 1 < m;
    each_vector(k, [&](int64_t i, int count) {
      V below = both ? load_some(lower + i, count) : V{};
      VU cell = to_cells(load_some(upper + i, count), below);
      std::memcpy(to + i, &cell, 4 * count);
    });
    for (int64_t i = k; i < cell_row; i++) to[i] = 0;
  }
  return cells.data();
}

// A of a product A B as cells along its rows; good as long as the cells are not used again.
template <class Kind>
struct Along {
  const typename Kind::Cell* cells;
  int64_t row;  // how far rows are apart

  Along(std::vector<uint32_t>& store, int64_t m, int64_t k, const float* a, int64_t a_row) {
    cells = along(store, (const Kind*)nullptr, m, k, a, a_row, row);
  }
};

// C (m, n) = A B, or C += A B, for a block of rows.
template <class Kind>
static void times(int64_t m, const Along<Kind>& a, const Packed<Kind>& b, float* c, int64_t c_row,
                  bool add = false) {
  for (int64_t j = 0; j < b.columns; j += WIDE) {
    const auto* panel = b.cells.data() + j * b.depth;
    int columns = (int)std::min<int64_t>(WIDE, b.columns - j);
    for (int64_t r = 0; r < m; r += TILE) {
      tile_of<Kind>(m - r, b.depth, a.cells + r * a.row, a.row, 1, panel, WIDE, c + r * c_row + j,
                    c_row, columns, add);
    }
  }
}

template <class Kind>
static void times(Scratch& scratch, int64_t m, int64_t k, const float* a, int64_t a_row,
                  const Packed<Kind>& b, float* c, int64_t c_row, bool add = false) {
  times(m, Along<Kind>(scratch.left, m, k, a, a_row), b, c, c_row, add);
}

// B of a product Aᵀ B as cells across its rows; good as long as the cells are not used again.
template <class Kind>
struct Across {
  const typename Kind::Cell* cells;
  int64_t columns, row;  // k, and how far rows are apart

  Across(std::vector<uint32_t>& store, int64_t m, int64_t k, const float* b, int64_t b_row)
      : columns(k) {
    cells = across(store, (const Kind*)nullptr, m, k, b, b_row, row);
  }
};

// C (n, k) += Aᵀ B for a block of rows.
template <class Kind>
static void transposed_times(Scratch& scratch, int64_t m, int64_t n, const float* a, int64_t a_row,
                             const Across<Kind>& b, float* c) {
  int64_t left_row, k = b.columns, depth = (m + Kind::DEPTH - 1) / Kind::DEPTH;
  auto* left = across(scratch.left, (const Kind*)nullptr, m, n, a, a_row, left_row);
  std::vector<typename Kind::Cell> edge;
  for (int64_t j = 0; j < k; j += WIDE) {
    int columns = (int)std::min<int64_t>(WIDE, k - j);
    auto* from = b.cells + j;
    int64_t step = b.row;
    if (columns < WIDE && Kind::DEPTH == 1) {  // nothing may be read beyond the last column
      edge.assign(depth * WIDE, 0);
      for (int64_t i = 0; i < depth; i++) std::copy_n(from + i * step, columns, &edge[i * WIDE]);
      from = edge.data();
      step = WIDE;
    }
    for (int64_t r = 0; r < n; r += TILE) {
      tile_of<Kind>(n - r, depth, left + r, 1, left_row, from, step, c + r * k + j, k, columns,
                    true);
    }
  }
}

template <class Kind>
static void transposed_times(Scratch& scratch, int64_t m, int64_t n, int64_t k, const float* a,
                             int64_t a_row, const float* b, int64_t b_row, float* c) {
  transposed_times(scratch, m, n, a, a_row, Across<Kind>(scratch.right, m, k, b, b_row), c);
}

// sums += the sum of the rows: a few vectors at a time, so that additions need not wait for the last.
static inline void add_columns(int64_t rows, int64_t columns, const float* from, int64_t row,
                               float* sums) {
  constexpr int64_t AT_ONCE = 4, STEP = AT_ONCE * LANES;
  int64_t done = 0;
  for (; done + STEP <= columns; done += STEP) {
    V totals[AT_ONCE];
    for (int64_t v = 0; v < AT_ONCE; v++) totals[v] = load(sums + done + v * LANES);
    for (int64_t r = 0; r < rows; r++) {
      const float* at = from + r * row + done;
      for (int64_t v = 0; v < AT_ONCE; v++) totals[v] += load(at + v * LANES);
    }
    for (int64_t v = 0; v < AT_ONCE; v++) store(sums + done + v * LANES, totals[v]);
  }
  each_vector(columns - done, [&](int64_t some, int lanes) {
    int64_t c = done + some;
    V total = load_some(sums + c, lanes);
    for (int64_t r = 0; r < rows; r++) total += load_some(from + r * row + c, lanes);
    store_some(sums + c, total, lanes);
  });
}

}  // namespace VARIANT
