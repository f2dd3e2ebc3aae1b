// Bounds of the values of an expression while what it looks at stays within bounds.
//
// The bounds of a sum, difference, product or quotient are those of the ends: rounding keeps the
// order of values. Logarithms and powers are only nearly monotone, so their bounds are widened.
// From minus to plus infinity says nothing: the value may also be NaN, which no other range allows. So
// what is worked out of such a value, and of no other, is unknown, too.
#pragma once
#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "../base/elementary.hpp"
#include "../base/numbers.hpp"

namespace hpc {

struct Range {
  double least = -inf, most = inf;

  bool is_one() const { return least == most; }
  bool is_unknown() const { return least == -inf && most == inf; }
  bool holds(double value) const { return least <= value && value <= most; }
  // Nothing is known where an end is NaN.
  static Range of(double a, double b) { return a <= b ? Range{a, b} : Range{}; }
  static Range hull(std::initializer_list<double> values) {
    double least = inf, most = -inf;
    for (const double value : values) {
      if (value != value) return {};
      least = std::min(least, value), most = std::max(most, value);
    }
    return {least, most};
  }

  Range operator-() const { return {-most, -least}; }
  Range operator+(const Range& b) const { return of(least + b.least, most + b.most); }
  Range operator-(const Range& b) const { return of(least - b.most, most - b.least); }
  Range operator*(const Range& b) const {
    return hull({least * b.least, least * b.most, most * b.least, most * b.most});
  }
  Range operator/(const Range& b) const {
    if (b.least <= 0 && b.most >= 0) return {};
    return hull({least / b.least, least / b.most, most / b.least, most / b.most});
  }
  // Of a function that rises, but for its last digits.
  template <class F>
  Range of_rising(F f) const {
    if (is_unknown()) return {};
    const double a = f(least), b = f(most);
    return of(a - std::abs(a) * slack, b + std::abs(b) * slack);
  }
  Range absolute() const {
    if (is_unknown() || least >= 0) return *this;
    if (most <= 0) return -*this;
    return {0, std::max(-least, most)};
  }
  Range to_the(const Range& b) const {
    if (!b.is_one() || is_unknown()) return {};
    if (b.least == 2) {
      const Range size = absolute();
      return of(size.least * size.least, size.most * size.most);
    }
    if (b.least == 3) return of(least * least * least, most * most * most);
    if (least <= 0) return {};
    const auto power = [&](double a) { return elementary::pow(a, b.least); };
    if (b.least >= 0) return of_rising(power);
    return Range{most, least}.of_rising(power);
  }
  // As in Python, NaN in the second place is passed over.
  Range least_with(const Range& b) const {
    if (is_unknown() || b.is_unknown()) return {};
    return {std::min(least, b.least), std::min(most, b.most)};
  }
  Range greatest_with(const Range& b) const {
    if (is_unknown() || b.is_unknown()) return {};
    return {std::max(least, b.least), std::max(most, b.most)};
  }
  Range or_else(const Range& b) const {
    return {std::min(least, b.least), std::max(most, b.most)};
  }

  static constexpr double slack = 1e-12;
};

}  // namespace hpc
