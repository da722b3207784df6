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
#include <new>
#include <vector>

#include "tiles.h"
#include "vector.h"

namespace VARIANT {

#if defined(__AMX_BF16__)
constexpr int64_t ROWS = 448;  // of a block: whole tiles of either kind
#else
constexpr int64_t ROWS = 336;
#endif
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
  static constexpr int64_t UNIT = 1;  // what numbers of cells are rounded up to
  static inline V broadcast(Cell a) { return all(a); }
  static inline V take(const Cell* from) { return load(from); }
  static inline V multiply_add(V a, V b, V c) { return a * b + c; }
};

// Two neighbours of the running index as bfloat16 in one cell, the first one in the lower half.
struct Half {
  typedef uint32_t Cell;
  static constexpr int DEPTH = 2;
#if defined(__AMX_BF16__)
  static constexpr int64_t UNIT = SIDE;
#else
  static constexpr int64_t UNIT = 1;
#endif
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

// How many cells hold k numbers.
template <class Kind>
static inline int64_t cells_of(int64_t k) {
  constexpr int64_t numbers = Kind::DEPTH * Kind::UNIT;
  return (k + numbers - 1) / numbers * Kind::UNIT;
}

// Memory that begins where a line of the cache does.
template <class T>
struct InLine {
  typedef T value_type;
  InLine() = default;
  template <class U>
  InLine(const InLine<U>&) {}
  T* allocate(size_t n) { return (T*)::operator new(n * sizeof(T), std::align_val_t(64)); }
  void deallocate(T* at, size_t) { ::operator delete(at, std::align_val_t(64)); }
  template <class U>
  bool operator==(const InLine<U>&) const { return true; }
  template <class U>
  bool operator!=(const InLine<U>&) const { return false; }
};
template <class T>
using Line = std::vector<T, InLine<T>>;
typedef Line<uint32_t> Cells;

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
  Line<typename Kind::Cell> cells;

  template <class F>
  Packed(int64_t k, int64_t n, F element) : depth(cells_of<Kind>(k)), columns(n) {
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
  Cells left, right, own;
};

// Rows of numbers to cells along the rows, (m, k) to (m, depth).
static inline const float* along(Cells&, const Single*, int64_t, int64_t,
                                 const float* a, int64_t row, int64_t& cell_row) {
  cell_row = row;
  return a;
}

static inline const uint32_t* along(Cells& cells, const Half*, int64_t m, int64_t k,
                                    const float* a, int64_t row, int64_t& cell_row) {
  cell_row = cells_of<Half>(k);
  int64_t rows = (m + Half::UNIT - 1) / Half::UNIT * Half::UNIT;  // whole tiles may be read
  cells.resize(rows * cell_row + 1);
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
    for (; i < 2 * cell_row; i++) to[i] = 0;
  }
  return cells.data();
}

// Pairs of rows to cells across the rows, (m, k) to (ceil(m / 2), k).
static inline const float* across(Cells&, const Single*, int64_t, int64_t,
                                  const float* a, int64_t row, int64_t& cell_row) {
  cell_row = row;
  return a;
}

static inline const uint32_t* across(Cells& cells, const Half*, int64_t m, int64_t k,
                                     const float* a, int64_t row, int64_t& cell_row) {
  cell_row = (k + WIDE - 1) / WIDE * WIDE;  // whole tiles may be read
  int64_t depth = cells_of<Half>(m), there = (m + 1) / 2;
  cells.resize(depth * cell_row);
  std::fill(cells.begin() + there * cell_row, cells.end(), 0);
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

#if defined(__AMX_BF16__)
// Pairs of rows to cells, and columns to rows, (m, k) to (k, depth).
static inline const uint32_t* upright(Cells& cells, int64_t m, int64_t k, const float* a,
                                      int64_t row, int64_t& cell_row) {
  cell_row = cells_of<Half>(m);
  cells.resize((k + SIDE - 1) / SIDE * SIDE * cell_row);
  each_vector(k, [&](int64_t c, int count) {
    for (int64_t r = 0; r < cell_row; r += SIDE) {
      VU square[SIDE];
      for (int64_t p = 0; p < SIDE; p++) {
        int64_t at = 2 * (r + p);
        V upper = at < m ? load_some(a + at * row + c, count) : V{};
        V lower = at + 1 < m ? load_some(a + (at + 1) * row + c, count) : V{};
        square[p] = to_cells(upper, lower);
      }
      turn(square);
      for (int64_t p = 0; p < SIDE; p++) {
        std::memcpy(&cells[(c + p) * cell_row + r], &square[p], sizeof square[p]);
      }
    }
  });
  return cells.data();
}
#endif

// A of a product A B as cells along its rows; good as long as the cells are not used again.
template <class Kind>
struct Along {
  const typename Kind::Cell* cells;
  int64_t row;  // how far rows are apart

  Along(Cells& store, int64_t m, int64_t k, const float* a, int64_t a_row) {
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
#if defined(__AMX_BF16__)
    if constexpr (Kind::DEPTH == 2) {
      tiles_of(m, b.depth, a.cells, a.row, panel, WIDE, c + j, c_row, columns, add);
      continue;
    }
#endif
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

  Across(Cells& store, int64_t m, int64_t k, const float* b, int64_t b_row)
      : columns(k) {
    cells = across(store, (const Kind*)nullptr, m, k, b, b_row, row);
  }
};

// C (n, k) += Aᵀ B for a block of rows.
template <class Kind>
static void transposed_times(Scratch& scratch, int64_t m, int64_t n, const float* a, int64_t a_row,
                             const Across<Kind>& b, float* c) {
  int64_t left_row, k = b.columns, depth = cells_of<Kind>(m);
#if defined(__AMX_BF16__)
  if constexpr (Kind::DEPTH == 2) {
    auto* turned = upright(scratch.left, m, n, a, a_row, left_row);
    for (int64_t j = 0; j < k; j += WIDE) {
      tiles_of(n, depth, turned, left_row, b.cells + j, b.row, c + j, k,
               std::min<int64_t>(WIDE, k - j), true);
    }
    return;
  }
#endif
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

// sums += the sum of the rows: a few vectors at a time, so that additions need not wait for the last,
// and a few rows, so that little is added to little.
static inline void add_columns(int64_t rows, int64_t columns, const float* from, int64_t row,
                               float* sums) {
  constexpr int64_t AT_ONCE = 4, STEP = AT_ONCE * LANES, FEW = 32;
  for (int64_t first = 0; first < rows; first += FEW, from += FEW * row) {
    int64_t few = std::min(FEW, rows - first), done = 0;
    for (; done + STEP <= columns; done += STEP) {
      V totals[AT_ONCE] = {};
      for (int64_t r = 0; r < few; r++) {
        const float* at = from + r * row + done;
        for (int64_t v = 0; v < AT_ONCE; v++) totals[v] += load(at + v * LANES);
      }
      for (int64_t v = 0; v < AT_ONCE; v++) {
        float* to = sums + done + v * LANES;
        store(to, load(to) + totals[v]);
      }
    }
    each_vector(columns - done, [&](int64_t some, int lanes) {
      int64_t c = done + some;
      V total = V{};
      for (int64_t r = 0; r < few; r++) total += load_some(from + r * row + c, lanes);
      store_some(sums + c, load_some(sums + c, lanes) + total, lanes);
    });
  }
}

}  // namespace VARIANT
