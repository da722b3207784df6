// The kernels for one set of instructions, as functions of plain numbers and addresses. Compiled
// once for each, with VARIANT the name of the set, which ends the names of the functions.
#include "layers.h"
#include "maps.h"
#include "node_maps.h"
#include "norms.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define EXPORT(name) extern "C" __attribute__((visibility("default"))) void JOIN(name, VARIANT)

using namespace VARIANT;

// Calls `f` with the stalk dimension, 1 to 8, as a constant.
template <int D = 8, class F>
static void with_stalk(int64_t d, F f) {
  if constexpr (D > 1) {
    if (d < D) return with_stalk<D - 1>(d, f);
  }
  f(std::integral_constant<int, D>());
}

// Calls `f` with a list of nodes as what it is: int32 or int64.
template <class F>
static void with_list(const void* list, int64_t short_list, F f) {
  if (short_list) {
    f((const int32_t*)list);
  } else {
    f((const int64_t*)list);
  }
}

template <class F>
static void with_kind(int64_t half, F f) {
  if (half) {
    f(Half());
  } else {
    f(Single());
  }
}

EXPORT(node_maps)
(int64_t n, int64_t d, int64_t h, const float* x, const float* diagonal, const float* left_factor,
 const float* left, const float* right_factor, const float* right, const int64_t* ptr,
 const void* other, int64_t short_list, float* sent, float* heard, float* y) {
  NodeMaps terms{n, h, x, diagonal, left_factor, left, right_factor, right};
  with_list(other, short_list, [&](auto list) {
    with_stalk(d, [&](auto stalk) { node_maps<stalk>(terms, ptr, list, sent, heard, y); });
  });
}

EXPORT(node_maps_back)
(int64_t n, int64_t d, int64_t h, const float* grad, const float* x, const float* heard,
 const float* diagonal, const float* left_factor, const float* left, const float* right_factor,
 const float* right, const int64_t* ptr, const void* other,
 int64_t short_list, float* asked, float* grad_x,
 float* grad_diagonal, float* grad_left_factor, float* grad_left, float* grad_right_factor,
 float* grad_right) {
  NodeMaps terms{n, h, x, diagonal, left_factor, left, right_factor, right};
  NodeMapGradients gradients{grad_x,    grad_diagonal,     grad_left_factor,
                             grad_left, grad_right_factor, grad_right};
  with_list(other, short_list, [&](auto list) {
    with_stalk(d, [&](auto stalk) {
      node_maps_back<stalk>(terms, grad, heard, ptr, list, asked, gradients);
    });
  });
}

EXPORT(conformal)(int64_t n, int64_t d, const float* raw, float* scale, float* matrices) {
  with_stalk(d, [&](auto stalk) { conformal<stalk>(n, raw, scale, matrices); });
}

EXPORT(conformal_back)
(int64_t n, int64_t d, const float* raw, const float* grad_scale, const float* grad_matrices,
 float* grad_raw) {
  with_stalk(d, [&](auto stalk) {
    conformal_back<stalk>(n, raw, grad_scale, grad_matrices, grad_raw);
  });
}

EXPORT(augmented)
(int64_t n, const float* own, const float* other, const float* degree, float* diagonal,
 float* own_factor, float* other_factor) {
  augmented(n, own, other, degree, diagonal, own_factor, other_factor);
}

EXPORT(augmented_back)
(int64_t n, const float* own, const float* other, const float* degree, const float* grad_diagonal,
 const float* grad_own_factor, const float* grad_other_factor, float* grad_own,
 float* grad_other) {
  augmented_back(n, own, other, degree, grad_diagonal, grad_own_factor, grad_other_factor,
                 grad_own, grad_other);
}

EXPORT(linear)
(int64_t n, int64_t k, int64_t o, const float* x, const float* weight, const float* bias,
 int64_t activation, int64_t half, float* y, float* out) {
  with_kind(half, [&](auto kind) {
    linear<decltype(kind)>(n, k, o, x, weight, bias, activation, y, out);
  });
}

EXPORT(linear_back)
(int64_t n, int64_t k, int64_t o, const float* grad, const float* x, const float* weight,
 int64_t activation, int64_t half, const float* y, float* grad_x, float* grad_weight,
 float* grad_bias) {
  with_kind(half, [&](auto kind) {
    linear_back<decltype(kind)>(n, k, o, grad, x, weight, activation, y, grad_x, grad_weight,
                                grad_bias);
  });
}

EXPORT(mlps)
(int64_t n, int64_t k, int64_t m, int64_t o, int64_t count, const float* x,
 const float* const* parameters, int64_t half, float* hidden, float* out) {
  with_kind(half, [&](auto kind) {
    mlps<decltype(kind)>(MLPSizes{n, k, m, o, count}, x, parameters, hidden, out);
  });
}

EXPORT(mlps_back)
(int64_t n, int64_t k, int64_t m, int64_t o, int64_t count, const float* grad, const float* x,
 const float* hidden, const float* const* parameters, int64_t half, float* grad_x,
 float* grad_parameters) {
  with_kind(half, [&](auto kind) {
    mlps_back<decltype(kind)>(MLPSizes{n, k, m, o, count}, grad, x, hidden, parameters, grad_x,
                              grad_parameters);
  });
}

EXPORT(sage)
(int64_t n, int64_t k, int64_t o, int64_t count, int64_t shared, int64_t projects, const float* x,
 const int64_t* ptr, const void* other,
 int64_t short_list, const float* inverse_degree,
 const float* const* parameters, int64_t activation, int64_t seed, int64_t dropped, int64_t half,
 float* sent, float* told, float* y, float* out) {
  SageSizes sizes{n, k, o, count, shared != 0, projects != 0};
  Mask mask(seed, dropped);
  with_list(other, short_list, [&](auto list) {
    with_kind(half, [&](auto kind) {
      sage<decltype(kind)>(sizes, x, ptr, list, inverse_degree, parameters, activation, mask,
                           sent, told, y, out);
    });
  });
}

EXPORT(sage_back)
(int64_t n, int64_t k, int64_t o, int64_t count, int64_t shared, int64_t projects,
 const float* grad, const float* x, const float* sent, const float* y, const int64_t* ptr,
 const void* other, int64_t short_list, const float* inverse_degree, const float* const* parameters,
 int64_t activation, int64_t seed, int64_t dropped, int64_t half, float* inner, float* spread,
 float* grad_x, float* grad_parameters) {
  SageSizes sizes{n, k, o, count, shared != 0, projects != 0};
  Mask mask(seed, dropped);
  with_list(other, short_list, [&](auto list) {
    with_kind(half, [&](auto kind) {
      sage_back<decltype(kind)>(sizes, grad, x, sent, y, ptr, list, inverse_degree, parameters,
                              activation, mask, inner, spread, grad_x, grad_parameters);
    });
  });
}

EXPORT(mix)
(int64_t n, int64_t d, int64_t h, const float* x, const float* w1, const float* w2, int64_t half,
 float* y) {
  with_kind(half, [&](auto kind) {
    with_stalk(d, [&](auto stalk) { mix<decltype(kind), stalk>(n, h, x, w1, w2, y); });
  });
}

EXPORT(mix_back)
(int64_t n, int64_t d, int64_t h, const float* grad, const float* x, const float* w1,
 const float* w2, int64_t half, float* grad_x, float* grad_w1, float* grad_w2) {
  with_kind(half, [&](auto kind) {
    with_stalk(d, [&](auto stalk) {
      mix_back<decltype(kind), stalk>(n, h, grad, x, w1, w2, grad_x, grad_w1, grad_w2);
    });
  });
}

EXPORT(drop)(int64_t count, const float* x, int64_t seed, int64_t dropped, float* out) {
  drop(count, x, Mask(seed, dropped), out);
}

EXPORT(update)
(int64_t n, int64_t d, int64_t h, const float* x, const float* y, const float* epsilon,
 int64_t activation, int64_t seed, int64_t dropped, float* out) {
  Mask mask(seed, dropped);
  update(n, d, h, x, y, epsilon, activation, mask, out);
}

EXPORT(update_back)
(int64_t n, int64_t d, int64_t h, const float* grad, const float* x, const float* y,
 const float* epsilon, int64_t activation, int64_t seed, int64_t dropped, float* grad_x,
 float* grad_y, float* grad_epsilon) {
  Mask mask(seed, dropped);
  update_back(n, d, h, grad, x, y, epsilon, activation, mask, grad_x, grad_y, grad_epsilon);
}

EXPORT(norm)
(int64_t n, int64_t k, const float* x, const float* weight, const float* bias, float eps,
 float* y) {
  norm(n, k, x, weight, bias, eps, y);
}

EXPORT(norm_back)
(int64_t n, int64_t k, const float* grad, const float* x, const float* weight, float eps,
 float* grad_x, float* grad_parameters) {
  norm_back(n, k, grad, x, weight, eps, grad_x, grad_parameters);
}
