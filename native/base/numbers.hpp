// Whole seconds and whole units: what all else counts in.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace hpc {

using i64 = std::int64_t;

inline constexpr i64 forever = i64{1} << 62;  // [s] later than any event
inline constexpr double inf = std::numeric_limits<double>::infinity();

constexpr std::size_t index(i64 i) { return static_cast<std::size_t>(i); }

}  // namespace hpc
