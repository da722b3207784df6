// Threads are PyTorch's own: Python hands over the address of its parallel loop.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "processor.h"

extern "C" {
typedef void (*coopsheaf_body)(int64_t begin, int64_t end, void* context);
typedef int32_t (*coopsheaf_loop)(int64_t begin, int64_t end, int64_t grain, coopsheaf_body body,
                                  void* context);
extern coopsheaf_loop coopsheaf_parallel_loop;  // null: one thread
}

namespace VARIANT {

// Calls f(begin, end) on pieces of [0, count), each of at least `grain`. Every thread has a share of
// its own, the same one in all loops over as many rows, whose numbers are in the caches next to it;
// when it is done with that, it takes what others have not come to: a thread that other programs
// hold up does less.
template <class F>
static void parallel(int64_t count, int64_t grain, const F& f) {
  constexpr int64_t MOST = 64;
  if (count <= 0) return;
  int64_t piece = std::max(grain, (count + MOST - 1) / MOST), pieces = (count + piece - 1) / piece;
  if (coopsheaf_parallel_loop == nullptr || pieces == 1) {
    Processor processor;
    f((int64_t)0, count);
    return;
  }
  struct Work {
    const F& f;
    int64_t count, piece, pieces;
    std::atomic<bool> taken[MOST];

    void take(int64_t i) {
      if (!taken[i].exchange(true)) f(i * piece, std::min((i + 1) * piece, count));
    }
  } work{f, count, piece, pieces, {}};
  coopsheaf_body body = [](int64_t begin, int64_t end, void* context) {
    Work& all = *static_cast<Work*>(context);
    Processor processor;
    if (end - begin == all.pieces) {  // one thread
      all.f((int64_t)0, all.count);
      return;
    }
    for (int64_t i = begin; i < end; i++) all.take(i);
    for (int64_t i = all.pieces; i-- > 0;) all.take(i);
  };
  coopsheaf_parallel_loop(0, pieces, 1, body, &work);
}

// Nodes in parts of about as many edges: calls f(first, last). What a node costs beside its edges
// counts as eight of them.
template <class F>
static void parallel_rows(int64_t rows, const int64_t* ptr, const F& f) {
  constexpr int64_t PARTS = 64, NODE = 8;
  int64_t parts = std::min(PARTS, rows / 256 + 1), total = ptr[rows] + NODE * rows;
  auto bound = [&](int64_t part) {
    int64_t wanted = total / parts * part, low = 0, high = rows;
    if (part == parts) return rows;
    while (low < high) {
      int64_t middle = (low + high) / 2;
      if (ptr[middle] + NODE * middle < wanted) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  parallel(parts, 1, [&](int64_t begin, int64_t end) { f(bound(begin), bound(end)); });
}

// Sums over rows that do not depend on the number of threads: rows are cut into groups by their
// number alone, each group adds up in memory of its own, and the groups are added up in order.
// Calls f(first, last, sums) for whole groups of blocks of `block` rows.
template <class F>
static void sum_rows(int64_t rows, int64_t block, int64_t size, float* total, const F& f) {
  constexpr int64_t MOST = 16;
  int64_t blocks = (rows + block - 1) / block;
  int64_t groups = 1;  // a power of two: two and four threads have as much to do each
  while (2 * groups <= std::min(MOST, blocks / 2)) groups *= 2;
  constexpr int64_t LINE = 16;  // no two groups in one line of the cache, which threads would wait for
  int64_t apart = (size + LINE - 1) / LINE * LINE + LINE;
  std::vector<float> sums(groups * apart, 0.0f);
  parallel(groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; group++) {
      int64_t first = blocks * group / groups * block;
      int64_t last = std::min(rows, blocks * (group + 1) / groups * block);
      f(first, last, sums.data() + group * apart);
    }
  });
  for (int64_t i = 0; i < size; i++) {
    float value = 0.0f;
    for (int64_t group = 0; group < groups; group++) value += sums[group * apart + i];
    total[i] = value;
  }
}

}  // namespace VARIANT
