// Scores by expressions that are worked out anew, before each pass, of all jobs that wait: a small
// stack machine in double precision. Squares and cubes are products; what logarithms, roots and other
// powers are says the C library, as in Python.
#pragma once
#include <vector>

#include "../core/features.hpp"

namespace hpc {

class Program {
  // The operations of hpcgym.engine.orders.operations: those that push a value, and those that take
  // one, two or three from the top of the stack and leave one.
  enum Code : i64 {
    number, feature, column, usage, wait,
    negative, not_, log, log2, log10, exp, sqrt, abs, floor,
    add, subtract, multiply, divide, whole_parts, rest, power, least, greatest,
    less, at_most, more, at_least, equal, unequal, and_, or_,
    choice,
  };
  const Expression* told_;
  std::vector<double> stack_;

  double pushed(i64 code, double number_, i64 j, double waiting, const i64* times) const {
    if (code == number) return number_;
    if (code == wait) return waiting;
    if (code == column) return told_->columns[index(static_cast<i64>(number_))][j];
    const JobNumbers job{told_->columns[0][j], static_cast<double>(times[j]), told_->columns[1][j]};
    const auto which = static_cast<Feature>(static_cast<i64>(number_));
    double value = static_of(which, job);
    if (which == Feature::expansion) value += waiting / job.requested;
    if (which == Feature::unicef) value += waiting / serial_patience(job);
    return value;
  }
  static double of_one(i64 code, double a) {
    switch (code) {
      case negative: return -a;
      case not_: return a == 0 ? 1.0 : 0.0;
      case log: return std::log(a);
      case log2: return std::log2(a);
      case log10: return std::log10(a);
      case exp: return std::exp(a);
      case sqrt: return std::sqrt(a);
      case abs: return std::abs(a);
      default: return std::floor(a);
    }
  }
  static double of_two(i64 code, double a, double b) {
    switch (code) {
      case add: return a + b;
      case subtract: return a - b;
      case multiply: return a * b;
      case divide: return a / b;
      case whole_parts: return divided(a, b).whole;
      case rest: return divided(a, b).rest;
      case power: return b == 2 ? a * a : b == 3 ? a * a * a : std::pow(a, b);
      // as numpy: what is no number is the least, and the greatest
      case least: return a < b || a != a ? a : b;
      case greatest: return a > b || a != a ? a : b;
      case less: return a < b;
      case at_most: return a <= b;
      case more: return a > b;
      case at_least: return a >= b;
      case equal: return a == b;
      case unequal: return a != b;
      case and_: return a != 0 && b != 0;
      default: return a != 0 || b != 0;
    }
  }
  struct Divided {
    double whole, rest;
  };
  // As numpy and Python have them: a / b and no number where b is 0.
  static Divided divided(double a, double b) {
    double rest = std::fmod(a, b);
    if (b == 0) return {a / b, rest};
    double whole = (a - rest) / b;
    if (rest == 0) {
      rest = std::copysign(0.0, b);
    } else if ((b < 0) != (rest < 0)) {
      rest += b;
      whole -= 1.0;
    }
    if (whole == 0) return {std::copysign(0.0, a / b), rest};
    const double down = std::floor(whole);
    // a whole number but for its rounding
    return {whole - down > 0.5 ? down + 1.0 : down, rest};
  }

 public:
  explicit Program(const Expression& told) : told_(&told), stack_(told.codes.size()) {}

  // The score of a job that has waited so long [s]; -inf if it is no number. `times`: the run times
  // that policies look at.
  double value_of(i64 j, double waiting, const i64* times) {
    std::size_t size = 0;
    for (std::size_t k = 0; k < told_->codes.size(); ++k) {
      const i64 code = told_->codes[k];
      if (code < negative) {
        stack_[size++] = pushed(code, told_->numbers[k], j, waiting, times);
      } else if (code < add) {
        stack_[size - 1] = of_one(code, stack_[size - 1]);
      } else if (code < choice) {
        --size;
        stack_[size - 1] = of_two(code, stack_[size - 1], stack_[size]);
      } else {
        size -= 2;
        stack_[size - 1] = stack_[size - 1] != 0 ? stack_[size] : stack_[size + 1];
      }
    }
    return stack_[0] == stack_[0] ? stack_[0] : -inf;
  }
};

}  // namespace hpc
