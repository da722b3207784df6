// What does not depend on the instructions: which set this machine has, and whose threads are used.
#include "parallel.h"

#if defined(COOPSHEAF_TILES)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

// Whether the processor multiplies tiles of bfloat16 and the system lets this process: tiles are
// registers of eight kilobytes, which threads get on request only.
static bool has_tiles() {
  unsigned a, b, c, d;
  constexpr unsigned BF16 = 1u << 22, TILE = 1u << 24;
  constexpr long REQUEST = 0x1023, TILE_DATA = 18;  // of arch_prctl
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & BF16) == 0 || (d & TILE) == 0) return false;
  return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}
#endif

#define PUBLIC __attribute__((visibility("default")))

extern "C" {

coopsheaf_loop coopsheaf_parallel_loop = nullptr;

// Changes with the arguments of any function: who calls must have the same number.
PUBLIC int32_t coopsheaf_interface() { return 3; }

// The address of a loop like PyTorch's `torch_parallel_for`; null for one thread.
PUBLIC void coopsheaf_use_loop(void* loop) { coopsheaf_parallel_loop = (coopsheaf_loop)loop; }

// The best set of instructions among those that were compiled.
PUBLIC const char* coopsheaf_instructions() {
#if defined(COOPSHEAF_X86)
  __builtin_cpu_init();
  bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (wide && __builtin_cpu_supports("avx512bf16")) {
#if defined(COOPSHEAF_TILES)
    if (has_tiles()) return "amx";
#endif
    return "avx512_bf16";
  }
  if (wide) return "avx512";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "avx2";
#endif
  return "portable";
}
}
