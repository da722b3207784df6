// What a thread asks of its processor while it computes here, and takes back when it is done.
//
// Numbers too small to be normal (below 1e-38) become zero: some processors take a hundred times as
// long for them, and networks make them, in maps that close and gradients that vanish.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#ifndef VARIANT
#define VARIANT portable
#endif

namespace VARIANT {

#if defined(__SSE2__)
class NoTinyNumbers {
  unsigned before = _mm_getcsr();

 public:
  NoTinyNumbers() { _mm_setcsr(before | 0x8040); }  // results, and what is read
  ~NoTinyNumbers() { _mm_setcsr(before); }
};
#elif defined(__aarch64__)
class NoTinyNumbers {
  uint64_t before;

 public:
  NoTinyNumbers() {
    asm volatile("mrs %0, fpcr" : "=r"(before));
    asm volatile("msr fpcr, %0" : : "r"(before | (uint64_t)1 << 24));
  }
  ~NoTinyNumbers() { asm volatile("msr fpcr, %0" : : "r"(before)); }
};
#else
struct NoTinyNumbers {
  ~NoTinyNumbers() {}
};
#endif

#if defined(__AMX_BF16__)
// All eight tiles are of 16 rows of 64 bytes.
class Tiles {
 public:
  Tiles() {
    struct alignas(64) {
      uint8_t palette = 1, first = 0, none[14] = {};
      uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } shape;
    asm volatile("" ::: "memory");  // the shape is in memory before it is loaded
    _tile_loadconfig(&shape);
  }
  ~Tiles() { _tile_release(); }
};
#else
struct Tiles {};
#endif

struct Processor {
  NoTinyNumbers no_tiny_numbers;
  Tiles tiles;
};

}  // namespace VARIANT
