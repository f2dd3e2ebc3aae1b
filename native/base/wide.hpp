// Loops that take several numbers at a time where the processor can: the same operations on each
// number, in the same order, so the same bits.
#pragma once
#include <array>
#include <cstddef>

#include "numbers.hpp"

namespace hpc {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define HPC_HAS_AVX2
template <class F>
[[gnu::flatten, gnu::target("avx2")]] auto with_avx2(F f) {
  return f();
}
#endif
// Call f(), all of which is compiled a second time for processors with AVX2, which has no fused
// multiplications.
template <class F>
auto widely(F f) {
#ifdef HPC_HAS_AVX2
  if (__builtin_cpu_supports("avx2")) return with_avx2(f);
#endif
  return f();
}

// The place of the greatest of n numbers, none of them NaN; of equal ones, the first. n > 0.
inline std::size_t place_of_greatest(const double* values, std::size_t n) {
  std::array<double, 4> greatest{-inf, -inf, -inf, -inf};
  std::size_t place = 0;
  for (; place + 4 <= n; place += 4)
    for (std::size_t k = 0; k < 4; ++k)
      greatest[k] = values[place + k] > greatest[k] ? values[place + k] : greatest[k];
  for (; place < n; ++place) greatest[0] = std::max(greatest[0], values[place]);
  const double most =
      std::max(std::max(greatest[0], greatest[1]), std::max(greatest[2], greatest[3]));
  place = 0;
  while (values[place] != most) ++place;
  return place;
}

}  // namespace hpc
