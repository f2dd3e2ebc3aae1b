// Scores by expressions, recomputed before each pass for all waiting jobs: a small stack machine in
// double precision. Squares and cubes are products; logarithms, roots and other powers are those of
// the C library, as in Python.
#pragma once
#include <algorithm>
#include <vector>

#include "../core/features.hpp"
#include "state.hpp"

namespace hpc {

class Program {
 public:
  explicit Program(const Expression& told) : told_(&told) {}

  // Why steps are invalid; nullptr if they are valid. There are as many numbers as codes.
  static const char* refusal(const Expression& told) {
    std::size_t depth = 0;  // of the stack
    for (std::size_t k = 0; k < told.codes.size(); ++k) {
      const i64 code = told.codes[k];
      if (!is_between(code, number, choice) || code == usage) return "codes: there is no such operation";
      const double place = told.numbers[k];
      const auto is_below = [&](std::size_t n) { return place >= 0 && place < static_cast<double>(n); };
      if (code == feature && (!is_below(n_features) || told.columns.size() < 2))
        return "numbers: there is no such feature";
      if (code == column && !is_below(told.columns.size())) return "numbers: there is no such column";
      if (code == state && !is_below(State::n_names)) return "numbers: there is no such state";
      if (code == weight && !is_below(told.codes.size())) return "numbers: there is no such weight";
      const std::size_t taken = code < negative ? 0 : code < add ? 1 : code < choice ? 2 : 3;
      if (depth < taken) return "codes: an operation takes more values than there are";
      depth += 1 - taken;
    }
    return told.codes.empty() || depth == 1 ? nullptr : "codes: must leave one value";
  }

  // Call f(name) for each name of the state in an expression.
  template <class F>
  static void each_state(const Expression& told, F f) {
    for (std::size_t k = 0; k < told.codes.size(); ++k)
      if (told.codes[k] == state) f(static_cast<std::size_t>(told.numbers[k]));
  }
  // The number of weights in an expression.
  static std::size_t n_weights(const Expression& told) {
    return index(std::ranges::count(told.codes, static_cast<i64>(weight)));
  }
  // Whether a model has the data of users that the expression uses.
  static bool is_told(const Expression& told, const Model& m) {
    bool known = true;
    each_state(told, [&](std::size_t name) {
      known = known && (!State::is_of_users(name) || m.users);
      known = known && State::looks_back(name) <= m.rules.remembered;
    });
    return known;
  }

  // The scores of jobs after these waits [s]; -inf in place of NaN. `times`: by job, the run times
  // that policies see. `now`: the state read for these jobs, if used. `weights`: missing ones count
  // as 0. Valid until the next call.
  const double* values_of(const std::vector<i64>& jobs, const std::vector<double>& waiting,
                          const i64* times, const State& now, const std::vector<double>& weights = {}) {
    const std::size_t n = n_ = jobs.size();
    stack_.resize(n * told_->codes.size());
    std::size_t depth = 0;
    double* top = stack_.data();  // the top value of each job, behind the values below it
    for (std::size_t k = 0; k < told_->codes.size(); ++k) {
      const i64 code = told_->codes[k];
      if (code < negative) {
        top = stack_.data() + n * depth++;  // without jobs there is no first element
        if (code == state) show(now.values(static_cast<std::size_t>(told_->numbers[k])), top);
        else if (code == weight) {
          const auto place = static_cast<std::size_t>(told_->numbers[k]);
          std::fill(top, top + n, place < weights.size() ? weights[place] : 0.0);
        } else push(code, told_->numbers[k], jobs, waiting, times, top);
      } else if (code < add) {
        of_one(code, top);
      } else if (code < choice) {
        --depth, top -= n;
        of_two(code, top);
      } else {
        depth -= 2, top -= 2 * n;
        for (std::size_t i = 0; i < n; ++i) top[i] = top[i] != 0 ? top[n + i] : top[2 * n + i];
      }
    }
    for (std::size_t i = 0; i < n; ++i)
      if (top[i] != top[i]) top[i] = -inf;
    return top;
  }

  // The operations of hpcgym.scheduler.policies.operations: some push a value, others take one, two
  // or three from the top of the stack and leave one. Usage is added by accounts.
  enum Code : i64 {
    number, feature, column, usage, wait, state, weight,
    negative, not_, log, log2, log10, exp, sqrt, abs, floor,
    add, subtract, multiply, divide, whole_parts, rest, power, least, greatest,
    less, at_most, more, at_least, equal, unequal, and_, or_,
    choice,
  };

 private:
  const Expression* told_;
  std::vector<double> stack_;  // each level has one value for each job: steps go over all jobs
  std::size_t n_ = 0;          // jobs

  void show(const std::vector<double>& values, double* top) const {
    if (values.size() == 1) std::fill(top, top + n_, values[0]);
    else std::copy(values.begin(), values.end(), top);
  }
  void push(i64 code, double number_, const std::vector<i64>& jobs,
            const std::vector<double>& waiting, const i64* times, double* top) const {
    if (code == number) {
      std::fill(top, top + n_, number_);
    } else if (code == wait) {
      std::copy(waiting.begin(), waiting.end(), top);
    } else if (code == column) {
      const double* values = told_->columns[static_cast<std::size_t>(number_)];
      for (std::size_t i = 0; i < n_; ++i) top[i] = values[jobs[i]];
    } else {
      const auto which = static_cast<Feature>(static_cast<i64>(number_));
      const double *since_first = told_->columns[0], *processors = told_->columns[1];
      for (std::size_t i = 0; i < n_; ++i) {
        const i64 j = jobs[i];
        const JobNumbers job{since_first[j], static_cast<double>(times[j]), processors[j]};
        top[i] = static_of(which, job);
        if (which == Feature::expansion) top[i] += waiting[i] / job.requested;
        if (which == Feature::unicef) top[i] += waiting[i] / serial_patience(job);
      }
    }
  }
  template <class F>
  void each(double* top, F f) const {
    for (std::size_t i = 0; i < n_; ++i) top[i] = f(top[i]);
  }
  template <class F>
  void pairs(double* top, F f) const {
    for (std::size_t i = 0; i < n_; ++i) top[i] = f(top[i], top[n_ + i]);
  }
  void of_one(i64 code, double* top) const {
    switch (code) {
      case negative: return each(top, [](double a) { return -a; });
      case not_: return each(top, [](double a) { return a == 0 ? 1.0 : 0.0; });
      case log: return each(top, [](double a) { return std::log(a); });
      case log2: return each(top, [](double a) { return std::log2(a); });
      case log10: return each(top, [](double a) { return std::log10(a); });
      case exp: return each(top, [](double a) { return std::exp(a); });
      case sqrt: return each(top, [](double a) { return std::sqrt(a); });
      case abs: return each(top, [](double a) { return std::abs(a); });
      default: return each(top, [](double a) { return std::floor(a); });
    }
  }
  void of_two(i64 code, double* top) const {
    switch (code) {
      case add: return pairs(top, [](double a, double b) { return a + b; });
      case subtract: return pairs(top, [](double a, double b) { return a - b; });
      case multiply: return pairs(top, [](double a, double b) { return a * b; });
      case divide: return pairs(top, [](double a, double b) { return a / b; });
      case whole_parts: return pairs(top, [](double a, double b) { return divided(a, b).whole; });
      case rest: return pairs(top, [](double a, double b) { return divided(a, b).rest; });
      case power: return pairs(top, [](double a, double b) {
        return b == 2 ? a * a : b == 3 ? a * a * a : std::pow(a, b);
      });
      // as in Python: of equal values the first, and NaN only if it comes first
      case least: return pairs(top, [](double a, double b) { return b < a ? b : a; });
      case greatest: return pairs(top, [](double a, double b) { return b > a ? b : a; });
      case less: return pairs(top, [](double a, double b) { return double(a < b); });
      case at_most: return pairs(top, [](double a, double b) { return double(a <= b); });
      case more: return pairs(top, [](double a, double b) { return double(a > b); });
      case at_least: return pairs(top, [](double a, double b) { return double(a >= b); });
      case equal: return pairs(top, [](double a, double b) { return double(a == b); });
      case unequal: return pairs(top, [](double a, double b) { return double(a != b); });
      case and_: return pairs(top, [](double a, double b) { return double(a != 0 && b != 0); });
      default: return pairs(top, [](double a, double b) { return double(a != 0 || b != 0); });
    }
  }
  struct Divided {
    double whole, rest;
  };
  // As in numpy and Python: a / b and NaN if b is 0.
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
    // an integer, except for rounding
    return {whole - down > 0.5 ? down + 1.0 : down, rest};
  }
};

}  // namespace hpc
