// What loops that take several numbers at a time work out, for test_wide.py.
#include "base/wide.hpp"

#include <cmath>

// Of each number of three columns the values of some operations, as (5, n).
extern "C" void work_widely(const double* a, const double* b, const double* c, std::size_t n, double* out) {
  hpc::widely([=] {
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = a[i] * b[i] + c[i];
      out[n + i] = a[i] / b[i] - c[i];
      out[2 * n + i] = std::sqrt(a[i] * a[i] + b[i] * b[i]);
      out[3 * n + i] = a[i] < b[i] ? c[i] : a[i];
      out[4 * n + i] = static_cast<double>(static_cast<float>(a[i]));
    }
    return 0;
  });
}

extern "C" void find_greatest(const double* values, std::size_t n, std::size_t* place) {
  *place = hpc::place_of_greatest(values, n);
}
