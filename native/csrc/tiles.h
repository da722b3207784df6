// Products of bfloat16 by instructions for whole tiles (AMX): C (16, 16) += A (16, 16 pairs)
// B (16 pairs, 16). Four tiles of C stay in registers while the running index runs.
//
// Both factors lie in memory as cells, two bfloat16 of neighbours of the running index; rows of A go
// along it, rows of B across it. It is filled up with zeros to whole tiles. Rows of A and columns of
// B beyond the last one may hold anything: what they give is not kept.
#pragma once

#if defined(__AMX_BF16__)

#include <algorithm>

#include "vector.h"

namespace VARIANT {

constexpr int SIDE = 16;  // of a tile, in rows and in cells

// C's corner of up to two tiles by two, in memory of its own row length.
template <bool LOWER, bool RIGHT>
static inline void corner(int64_t depth, const uint32_t* a, int64_t a_row, const uint32_t* b,
                          int64_t b_row, float* c, int64_t c_row, bool add) {
  int64_t a_bytes = 4 * a_row, b_bytes = 4 * b_row, c_bytes = 4 * c_row;
  asm volatile("" ::: "memory");  // compilers do not know that loads of tiles read memory
  if (add) {
    _tile_loadd(0, c, c_bytes);
    if (RIGHT) _tile_loadd(1, c + SIDE, c_bytes);
    if (LOWER) _tile_loadd(2, c + SIDE * c_row, c_bytes);
    if (LOWER && RIGHT) _tile_loadd(3, c + SIDE * c_row + SIDE, c_bytes);
  } else {
    _tile_zero(0);
    if (RIGHT) _tile_zero(1);
    if (LOWER) _tile_zero(2);
    if (LOWER && RIGHT) _tile_zero(3);
  }
  for (int64_t i = 0; i < depth; i += SIDE) {
    _tile_loadd(4, a + i, a_bytes);
    _tile_loadd(6, b + i * b_row, b_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if (RIGHT) {
      _tile_loadd(7, b + i * b_row + SIDE, b_bytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (LOWER) {
      _tile_loadd(5, a + SIDE * a_row + i, a_bytes);
      _tile_dpbf16ps(2, 5, 6);
      if (RIGHT) _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, c, c_bytes);
  if (RIGHT) _tile_stored(1, c + SIDE, c_bytes);
  if (LOWER) _tile_stored(2, c + SIDE * c_row, c_bytes);
  if (LOWER && RIGHT) _tile_stored(3, c + SIDE * c_row + SIDE, c_bytes);
}

static inline void corner_of(bool lower, bool right, int64_t depth, const uint32_t* a,
                             int64_t a_row, const uint32_t* b, int64_t b_row, float* c,
                             int64_t c_row, bool add) {
  auto f = lower ? right ? corner<true, true> : corner<true, false>
                 : right ? corner<false, true> : corner<false, false>;
  f(depth, a, a_row, b, b_row, c, c_row, add);
}

// C (rows, columns) = A B, or C += A B, for at most 2 SIDE columns.
static inline void tiles_of(int64_t rows, int64_t depth, const uint32_t* a, int64_t a_row,
                            const uint32_t* b, int64_t b_row, float* c, int64_t c_row,
                            int64_t columns, bool add) {
  bool right = columns > SIDE;
  for (int64_t r = 0; r < rows; r += 2 * SIDE) {
    int64_t some = std::min<int64_t>(2 * SIDE, rows - r);
    bool lower = some > SIDE;
    float* to = c + r * c_row;
    if (columns == (right ? 2 * SIDE : SIDE) && some == (lower ? 2 * SIDE : SIDE)) {
      corner_of(lower, right, depth, a + r * a_row, a_row, b, b_row, to, c_row, add);
      continue;
    }
    alignas(64) float whole[2 * SIDE * 2 * SIDE];  // C has less than whole tiles here
    corner_of(lower, right, depth, a + r * a_row, a_row, b, b_row, whole, 2 * SIDE, false);
    for (int64_t i = 0; i < some; i++) {
      each_vector(columns, [&](int64_t j, int lanes) {
        V value = load(whole + i * 2 * SIDE + j);
        if (add) value += load_some(to + i * c_row + j, lanes);
        store_some(to + i * c_row + j, value, lanes);
      });
    }
  }
}

// 16 vectors of 16 cells, rows to columns.
static inline void turn(VU* rows) {
  __m512i a[16], b[16];
  for (int i = 0; i < 16; i += 2) {  // pairs of single cells
    a[i] = _mm512_unpacklo_epi32((__m512i)rows[i], (__m512i)rows[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi32((__m512i)rows[i], (__m512i)rows[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {  // pairs of two
    b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
    b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
    b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
    b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
  for (int i = 0; i < 4; i++) {  // quarters of four
    a[i] = _mm512_shuffle_i32x4(b[i], b[i + 4], 0x88);
    a[i + 4] = _mm512_shuffle_i32x4(b[i], b[i + 4], 0xdd);
    a[i + 8] = _mm512_shuffle_i32x4(b[i + 8], b[i + 12], 0x88);
    a[i + 12] = _mm512_shuffle_i32x4(b[i + 8], b[i + 12], 0xdd);
  }
  for (int i = 0; i < 8; i++) {
    rows[i] = (VU)_mm512_shuffle_i32x4(a[i], a[i + 8], 0x88);
    rows[i + 8] = (VU)_mm512_shuffle_i32x4(a[i], a[i + 8], 0xdd);
  }
}

}  // namespace VARIANT

#endif
