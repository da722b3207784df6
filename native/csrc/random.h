// Dropout masks from a counter-based generator: Philox4x32-10 of Salmon et al. (2011).
//
// An entry's 16 bits depend on the seed and on the entry's place alone, so that any part of a mask
// can be drawn at any time, by any thread: masks are drawn again on the way back instead of kept.
#pragma once

#include <algorithm>

#include "vector.h"

namespace VARIANT {

// Products of 32-bit lanes, their upper and their lower halves.
struct Halves {
  VU high, low;
};

static inline Halves multiply_wide(VU a, uint32_t factor) {
#if defined(__AVX512F__)
  __m512i f = _mm512_set1_epi32((int)factor), x = (__m512i)a;
  __m512i even = _mm512_mul_epu32(x, f), odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), f);
  // One shuffle moves the halves of one product between those of the other.
  return {(VU)_mm512_mask_shuffle_epi32(odd, 0x5555, even, (_MM_PERM_ENUM)0xF5),
          (VU)_mm512_mask_shuffle_epi32(even, 0xAAAA, odd, (_MM_PERM_ENUM)0xA0)};
#elif defined(__AVX2__)
  __m256i f = _mm256_set1_epi32((int)factor), x = (__m256i)a;
  __m256i even = _mm256_mul_epu32(x, f), odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), f);
  return {(VU)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA),
          (VU)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA)};
#else
  Halves out;
  for (int c = 0; c < LANES; c++) {
    uint64_t product = (uint64_t)a[c] * factor;
    out.high[c] = (uint32_t)(product >> 32);
    out.low[c] = (uint32_t)product;
  }
  return out;
#endif
}

constexpr int COUNTERS = 16;            // at a time, on every machine
constexpr int DRAWN = 8 * COUNTERS;     // entries whose bits they give
constexpr int PARTS = COUNTERS / LANES;

// The bits of entries [DRAWN * block, DRAWN * (block + 1)). Word w of counter c gives its lower
// half to entry (2 w) COUNTERS + c and its upper half to entry (2 w + 1) COUNTERS + c.
static inline void draw_block(uint64_t seed, uint64_t block, uint32_t* bits) {
  for (int part = 0; part < PARTS; part++) {
    VU a, b, c = {}, d = {};
    for (int i = 0; i < LANES; i++) a[i] = (uint32_t)(part * LANES + i);
    // COUNTERS divides 2^32: the lower words of a block share their upper word.
    a += (uint32_t)(block * COUNTERS);
    b = (uint32_t)(block * COUNTERS >> 32) - VU{};
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
      Halves left = multiply_wide(a, 0xD2511F53u), right = multiply_wide(c, 0xCD9E8D57u);
      a = right.high ^ b ^ key0;
      b = right.low;
      c = left.high ^ d ^ key1;
      d = left.low;
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    VU words[4] = {a, b, c, d};
    for (int w = 0; w < 4; w++) {
      VU low = words[w] & 0xffffu, high = words[w] >> 16;
      std::memcpy(bits + 2 * w * COUNTERS + part * LANES, &low, sizeof low);
      std::memcpy(bits + (2 * w + 1) * COUNTERS + part * LANES, &high, sizeof high);
    }
  }
}

// What dropout multiplies entries by: 0 where one is dropped, 1 / (1 - p) where it is kept, with p
// in 65536ths. A thread has one of its own and goes through entries in order: what was drawn for
// the last entries asked for is at hand for the next ones.
class Mask {
 public:
  Mask(int64_t seed, int64_t dropped)
      : seed((uint64_t)seed), dropped((uint32_t)dropped), factor(65536.0f / (65536 - dropped)) {}

  bool drops() const { return dropped > 0; }

  // The factors of entries [first, first + count).
  void draw(int64_t first, int64_t count, float* out) {
    for (int64_t done = 0; done < count;) {
      int64_t block = (first + done) / DRAWN, from = (first + done) % DRAWN;
      int64_t some = std::min(DRAWN - from, count - done);
      if (block != drawn) {
        draw_block(seed, (uint64_t)block, bits);
        drawn = block;
      }
      each_vector(some, [&](int64_t i, int lanes) {
        VU word = {};
        std::memcpy(&word, bits + from + i, 4 * lanes);
        store_some(out + done + i, choose((VI)(word >= dropped), all(factor), V{}), lanes);
      });
      done += some;
    }
  }

 private:
  uint64_t seed;
  uint32_t dropped;
  float factor;
  int64_t drawn = -1;  // the block whose bits are at hand
  uint32_t bits[DRAWN];
};

}  // namespace VARIANT
