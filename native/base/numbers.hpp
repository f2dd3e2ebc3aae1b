// Whole seconds and whole units, in which everything else is counted.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace hpc {

using i64 = std::int64_t;

inline constexpr i64 forever = i64{1} << 62;  // [s] later than any event
inline constexpr i64 longest = i64{1} << 53;  // [s] longest time that input may contain
inline constexpr double inf = std::numeric_limits<double>::infinity();

constexpr std::size_t index(i64 i) { return static_cast<std::size_t>(i); }
constexpr bool is_between(i64 value, i64 least, i64 most) { return value >= least && value <= most; }
// a / b rounded down; b is above 0.
constexpr i64 floor_div(i64 a, i64 b) { return a / b - (a % b < 0); }

}  // namespace hpc
