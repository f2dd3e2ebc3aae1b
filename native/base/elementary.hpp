// Elementary functions of IEEE operations alone (+, -, *, /, bits), each rounded, in one order: the
// same bits on each processor and from each compiler. Those of the C library and of numpy take other
// ways on processors with FMA or AVX-512, and in other versions, so that last bits differ.
//
// All are within one unit in the last place, mostly within 0.51, and exact where the value is a
// double. Tables and short series as of P. T. P. Tang, "Table-driven implementation of the
// exponential function in IEEE floating-point arithmetic", ACM TOMS 15(2), 1989, and "... of the
// logarithm function ...", TOMS 16(4), 1990; numbers of two doubles as of T. J. Dekker, "A
// floating-point technique for extending the available precision", Numer. Math. 18, 1971. Tables
// are worked out by the compiler.
#pragma once
#include <array>
#include <bit>
#include <cfloat>
#include <numbers>

#include "numbers.hpp"

namespace hpc::elementary {

static_assert(FLT_EVAL_METHOD == 0 && std::numeric_limits<double>::is_iec559,
              "each operation must be rounded to a double");
#ifdef __FAST_MATH__
#error "-ffast-math changes results"
#endif

using Bits = std::uint64_t;
constexpr Bits bits_of(double x) { return std::bit_cast<Bits>(x); }
constexpr double of_bits(Bits bits) { return std::bit_cast<double>(bits); }

// --- Numbers of two doubles ------------------------------------------------------------------------

struct Pair {
  double high, low;  // the number is their sum
};

// a + b, where |a| is not below |b|, or a is a multiple of the last place of b.
constexpr Pair ordered_sum(double a, double b) {
  const double high = a + b;
  return {high, (a - high) + b};
}
constexpr Pair sum(double a, double b) {
  const double high = a + b, part = high - a;
  return {high, (a - (high - part)) + (b - part)};
}
constexpr Pair product(double a, double b) {
  const auto upper_half = [](double x) { return of_bits(bits_of(x) & (~Bits{0} << 27)); };
  const double high = a * b, a1 = upper_half(a), a2 = a - a1, b1 = upper_half(b), b2 = b - b1;
  return {high, (((a1 * b1 - high) + a1 * b2) + a2 * b1) + a2 * b2};
}
constexpr Pair quotient(double a, double b) {
  const double high = a / b;
  const Pair back = product(high, b);
  return {high, ((a - back.high) - back.low) / b};
}
constexpr Pair operator+(Pair a, Pair b) {
  const Pair s = sum(a.high, b.high);
  return ordered_sum(s.high, s.low + (a.low + b.low));
}
constexpr Pair operator*(Pair a, Pair b) {
  const Pair p = product(a.high, b.high);
  return ordered_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}
// x to a multiple of 2^(-52) times a power of two.
constexpr double rounded_to(double x, double power) { return (x + 1.5 * power) - 1.5 * power; }

inline constexpr Pair ln2{std::numbers::ln2, 2.3190468138462996e-17};
inline constexpr Pair log2_e{std::numbers::log2e, 2.0355273740931033e-17};
inline constexpr Pair log10_e{std::numbers::log10e, 1.098319650216765e-17};
inline constexpr Pair half_pi{std::numbers::pi / 2, 6.123233995736766e-17};

// --- Logarithms ------------------------------------------------------------------------------------

// Of x = 2^k z with z from 0.7 to 1.4: the row of z has a number near 1 / z, of eight bits, and its
// logarithm, whose higher part is a multiple of 2^-42, so that sums of it with k ln 2 are exact.
struct LogRow {
  double inverse, high, low;
};
inline constexpr int log2_rows = 7, rows = 1 << log2_rows;
inline constexpr Bits row_bits = Bits{1} << (52 - log2_rows);  // numbers of a row
// The row of 1 and that before have the inverse 1, so that near 1 all that is summed is small.
inline constexpr Bits least_z = bits_of(1.0) - 75 * row_bits - row_bits / 3;
inline constexpr double log_scale = 0x1p10;  // above all logarithms

// log(a / b), by the series of 2 artanh((a - b) / (a + b)).
constexpr Pair log_of_ratio(double a, double b) {
  const Pair t = quotient(a - b, a + b), square = t * t;
  Pair series{0, 0};
  for (int n = 41; n > 0; n -= 2) series = series * square + quotient(2, n);
  return series * t;
}
inline constexpr auto log_rows = [] {
  std::array<LogRow, rows> table{};
  for (Bits i = 0; i < rows; ++i) {
    const double middle = of_bits(least_z + i * row_bits + row_bits / 2);
    const double parts = middle < 1 ? 128 : 256;
    const auto whole = static_cast<double>(static_cast<i64>(parts / middle + 0.5));
    const Pair log = log_of_ratio(parts, whole);
    const double high = rounded_to(log.high, log_scale);
    table[i] = {whole / parts, high, (log.high - high) + log.low};
  }
  return table;
}();

// log(x) = high + low + log(1 + rest) - rest, where high has rest; rest = upper + lower, and upper
// has so few bits that its square is exact.
struct Reduced {
  double high, low, rest, upper, lower;
};
inline Reduced reduced(Bits bits) {
  const Bits from_least = bits - least_z, z = bits - (from_least & (Bits{0xfff} << 52));
  const LogRow& row = log_rows[(from_least >> (52 - log2_rows)) & (rows - 1)];
  const double k = of_bits(bits_of(0x1p52) | ((from_least >> 52) ^ 0x800)) - (0x1p52 + 0x800);
  const double z_upper = of_bits((z + (Bits{1} << 31)) & (~Bits{0} << 32));
  const double upper = z_upper * row.inverse - 1.0;
  const double lower = (of_bits(z) - z_upper) * row.inverse, rest = upper + lower;
  constexpr double ln2_high = rounded_to(ln2.high, log_scale), ln2_low = (ln2.high - ln2_high) + ln2.low;
  const Pair high = ordered_sum(k * ln2_high + row.high, rest);
  return {high.high, high.low + (k * ln2_low + row.low), rest, upper, lower};
}
// (log(1 + r) - r + r^2 / 2) / r^3
inline double log_series(double r, double square) {
  return (1.0 / 3 - r * (1.0 / 4)) +
         square * ((1.0 / 5 - r * (1.0 / 6)) + square * ((1.0 / 7 - r * (1.0 / 8)) + square * (1.0 / 9)));
}
inline double log_of_bits(Bits x) {
  const Reduced r = reduced(x);
  const double square = r.rest * r.rest;
  return r.high + (r.low + square * (r.rest * log_series(r.rest, square) - 0.5));
}
// With an error of 2^-66.
inline Pair log_as_pair(Bits x) {
  const Reduced r = reduced(x);
  const double square = r.rest * r.rest;
  const Pair high = ordered_sum(r.high, -0.5 * r.upper * r.upper);
  const double low = high.low - 0.5 * r.lower * (r.upper + r.rest);
  return ordered_sum(high.high, (r.low + low) + r.rest * square * log_series(r.rest, square));
}
inline double log2_of_bits(Bits x) { return (log_as_pair(x) * log2_e).high; }
inline double log10_of_bits(Bits x) { return (log_as_pair(x) * log10_e).high; }

// The bits of x above 0 as if it had 53, which the exponents of normal numbers do not allow.
inline Bits normal_bits(double x) {
  if (x < DBL_MIN) [[unlikely]] return bits_of(x * 0x1p52) - (Bits{52} << 52);
  return bits_of(x);
}
// f, a function of bits, of x; where x has no logarithm, what takes its place.
template <class F>
double by_bits(F f, double x) {
  if (x > 0 && x < inf) [[likely]] return f(normal_bits(x));
  return x == 0 ? -inf : x < 0 ? std::numeric_limits<double>::quiet_NaN() : x;
}
inline double log(double x) { return by_bits(log_of_bits, x); }
inline double log2(double x) { return by_bits(log2_of_bits, x); }
inline double log10(double x) { return by_bits(log10_of_bits, x); }
// log(1 + x)
inline double log1p(double x) {
  const Pair y = sum(1.0, x);
  if (!(y.high > 0 && y.high < inf)) return log(y.high);
  const Pair log = log_as_pair(bits_of(y.high));
  const double rest = y.low / y.high;
  return log.high + (log.low + (rest - 0.5 * rest * rest));
}

// The same of n values, in place: several at a time, with the same operations.
template <class F>
void by_bits_of_usual(F f, double* values, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) values[i] = f(bits_of(values[i]));
}
inline bool are_usual(const double* values, std::size_t n) {
  constexpr Bits least = bits_of(DBL_MIN), most = bits_of(inf) - 1;
  Bits others = 0;  // the highest bit of a difference says that it is below 0
  for (std::size_t i = 0; i < n; ++i) {
    const Bits bits = bits_of(values[i]);
    others |= bits | (bits - least) | (most - bits);
  }
  return others >> 63 == 0;
}
template <class F>
void by_bits(F f, double* values, std::size_t n) {
  if (are_usual(values, n)) return by_bits_of_usual(f, values, n);
  for (std::size_t i = 0; i < n; ++i) values[i] = by_bits(f, values[i]);
}
inline void log(double* values, std::size_t n) {
  by_bits([](Bits x) { return log_of_bits(x); }, values, n);
}
inline void log2(double* values, std::size_t n) {
  by_bits([](Bits x) { return log2_of_bits(x); }, values, n);
}
inline void log10(double* values, std::size_t n) {
  by_bits([](Bits x) { return log10_of_bits(x); }, values, n);
}

// --- Powers ----------------------------------------------------------------------------------------

inline constexpr auto inverse_factorials = [] {
  std::array<double, 18> values{};
  double factorial = 1;
  for (std::size_t n = 0; n < values.size(); factorial *= static_cast<double>(++n))
    values[n] = 1.0 / factorial;
  return values;
}();
// 2^(i / 128), and what it lacks, as a part of it.
struct PowerRow {
  double power, lacks;
};
inline constexpr auto power_rows = [] {
  const Pair x{ln2.high / rows, ln2.low / rows};
  Pair root{1, 0};
  for (int n = 14; n > 0; --n) root = root * x * quotient(1, n) + Pair{1, 0};
  std::array<PowerRow, rows> table{};
  Pair power{1, 0};
  for (auto& row : table) {
    row = {power.high, power.low / power.high};
    power = power * root;
  }
  return table;
}();

// e^x = 2^exponent power (1 + part); `whole`: the exponent times 128, and the row.
struct Power {
  double power, part;
  Bits whole;

  double value() const { return power + power * part; }
  i64 exponent() const { return static_cast<i64>(whole) >> log2_rows; }
  double power_of_two() const {
    return of_bits(((whole & ~Bits{rows - 1}) << (52 - log2_rows)) + bits_of(1.0));
  }
};
inline Power power_of_e(Pair x) {
  constexpr double to_whole = 0x1.8p52;
  constexpr double high = rounded_to(ln2.high, 0x1p17), low = (ln2.high - high) + ln2.low;
  const double shifted = x.high * (rows * std::numbers::log2e) + to_whole, n = shifted - to_whole;
  const Bits whole = bits_of(shifted) - bits_of(to_whole);
  const PowerRow& row = power_rows[whole & (rows - 1)];
  const double r = ((x.high - n * (high / rows)) - n * (low / rows)) + x.low, square = r * r;
  const double series = (0.5 + r * (1.0 / 6)) + square * (1.0 / 24 + r * (1.0 / 120));
  return {row.power, row.lacks + (r + square * series), whole};
}
// e^x, where it and its parts are normal numbers
inline constexpr double usual_exponent = 690;
inline double usual_exp(Pair x) {
  const Power p = power_of_e(x);
  return p.value() * p.power_of_two();
}
inline double exp(Pair x) {
  if (std::abs(x.high) < usual_exponent) [[likely]] return usual_exp(x);
  if (!(std::abs(x.high) < 800)) return x.high > 0 ? inf : x.high < 0 ? 0.0 : x.high;
  const Power p = power_of_e(x);
  return std::ldexp(p.value(), static_cast<int>(p.exponent()));
}
inline double exp(double x) { return exp(Pair{x, 0}); }
inline double exp2(double x) { return std::abs(x) < 2000 ? exp(Pair{x, 0} * ln2) : exp(x); }
// e^x - 1
inline double expm1(double x) {
  if (std::abs(x) < 0.25) {
    double series = 0;
    for (std::size_t n = 14; n > 1; --n) series = series * x + inverse_factorials[n];
    return x + x * x * series;
  }
  if (!(std::abs(x) < 50)) return exp(x) - 1.0;
  const Power p = power_of_e({x, 0});
  const double power = p.power * p.power_of_two();
  const Pair less = sum(power, -1.0);
  return less.high + (less.low + power * p.part);
}
// The next sixteenth to x > 0 is a. With h = tanh(a) and t = tanh(x - a), of a short series,
// tanh(x) = (h + t) / (1 + h t) = h + t - h t (h + t) / (1 + h t).
inline constexpr int parts_of_tanh = 16, greatest_tanh = 20;  // from there on it is 1
inline constexpr auto tanh_rows = [] {
  Pair root{1, 0}, power{1, 0};  // e^(2 / 16), e^2a
  for (int n = 24; n > 0; --n) root = root * Pair{2.0 / parts_of_tanh, 0} * quotient(1, n) + Pair{1, 0};
  std::array<Pair, 512> table{};  // a power of two, so that whatever is no number has a row, too
  for (std::size_t i = 0; i <= parts_of_tanh * greatest_tanh; ++i) {
    const Pair above = power + Pair{-1, 0}, below = power + Pair{1, 0};
    const double high = above.high / below.high;
    const Pair left = above + Pair{-high, 0} * below;
    table[i] = ordered_sum(high, left.high / below.high);
    power = power * root;
  }
  return table;
}();
inline double with_tanh(double x) { return x > greatest_tanh ? greatest_tanh : x < -greatest_tanh ? -greatest_tanh : x; }
inline double usual_tanh(double x) {
  constexpr double to_whole = 0x1p52;
  const double size = std::abs(x), shifted = size * parts_of_tanh + to_whole;
  const Pair& row = tanh_rows[bits_of(shifted) % tanh_rows.size()];
  const double b = size - (shifted - to_whole) * (1.0 / parts_of_tanh), square = b * b;
  const double more = b * square * (-1.0 / 3 + square * (2.0 / 15 + square * (-17.0 / 315 + square * (62.0 / 2835))));
  const Pair high = ordered_sum(row.high, b);
  const double both = row.high * (b + more);
  const double less = both * (high.high + more) / (1.0 + both);
  return std::copysign(high.high + (high.low + (row.low + (more - less))), x);
}
inline double tanh(double x) { return usual_tanh(with_tanh(x)); }
inline double pow(double x, double y) {
  // of what is 0, infinite or no number it is exact in each C library
  if (!(std::abs(x) < inf && x != 0 && std::abs(y) < inf)) [[unlikely]] return std::pow(x, y);
  if (x < 0) {
    if (y != std::floor(y)) return std::numeric_limits<double>::quiet_NaN();
    return std::fmod(y, 2.0) == 0 ? pow(-x, y) : -pow(-x, y);
  }
  const Pair log = log_as_pair(normal_bits(x));
  return std::abs(y * log.high) < 800 ? exp(Pair{y, 0} * log) : exp(y * log.high);
}

// The same of n values, in place.
inline void exp(double* values, std::size_t n) {
  Bits others = 0;
  for (std::size_t i = 0; i < n; ++i)
    others |= (bits_of(usual_exponent) - 1) - bits_of(std::abs(values[i]));
  if (others >> 63 == 0) return by_bits_of_usual([](Bits x) { return usual_exp({of_bits(x), 0}); }, values, n);
  for (std::size_t i = 0; i < n; ++i) values[i] = exp(values[i]);
}
inline void tanh(double* values, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) values[i] = with_tanh(values[i]);
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) values[i] = usual_tanh(values[i]);
}
inline void pow(double* values, std::size_t n, double y) {
  double least = 1, most = 1;
  for (std::size_t i = 0; i < n; ++i)
    least = std::min(least, values[i]), most = std::max(most, values[i]);
  if (are_usual(values, n) && std::abs(y) * std::max(-log(least), log(most)) < usual_exponent)
    return by_bits_of_usual(
        [y](Bits x) { return usual_exp(Pair{y, 0} * log_as_pair(x)); }, values, n);
  for (std::size_t i = 0; i < n; ++i) values[i] = pow(values[i], y);
}

// --- Sines of angles from 0 to 2 pi ----------------------------------------------------------------

// sin(x + quarters pi / 2)
inline double shifted_sine(double x, i64 quarters) {
  const double n = std::floor(x / half_pi.high + 0.5);
  const Pair r = sum(x - n * half_pi.high, -n * half_pi.low);  // the first is exact
  const double square = r.high * r.high;
  quarters += static_cast<i64>(n);
  const bool is_cosine = quarters % 2 != 0;
  double series = 0;  // of (r - sin r) / r^3, or (cos r - 1 + r^2 / 2) / r^4
  for (std::size_t k = is_cosine ? 16 : 17; k > 2; k -= 2)
    series = inverse_factorials[k] - square * series;
  double value = r.high - (r.high * square * series - r.low);
  if (is_cosine) {
    const Pair less = ordered_sum(1.0, -0.5 * square);
    value = less.high + (less.low + (square * square * series - r.high * r.low));
  }
  return quarters % 4 < 2 ? value : -value;
}
inline double sin(double x) { return shifted_sine(x, 0); }
inline double cos(double x) { return shifted_sine(x, 1); }

}  // namespace hpc::elementary
