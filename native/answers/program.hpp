// Scores by expressions, recomputed before each pass for all waiting jobs: a small stack machine in
// double precision. Squares and cubes are products.
//
// What depends on the job alone is worked out when it first waits, and when its prediction has
// changed; what is the same for all jobs, once for a pass. The operations are those of the
// expression in their order, so the scores are the same to the bit.
#pragma once
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "../core/features.hpp"
#include "state.hpp"

namespace hpc {

class Program {
 public:
  explicit Program(const Expression& told) : told_(&told) { take_apart(); }

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
      if ((code == column || code == in_use) && !is_below(told.columns.size()))
        return "numbers: there is no such column";
      if (code == state && !is_below(State::n_names)) return "numbers: there is no such state";
      if (code == weight && !is_below(told.codes.size())) return "numbers: there is no such weight";
      const std::size_t taken = n_taken(code);
      if (depth < taken) return "codes: an operation takes more values than there are";
      depth += 1 - taken;
    }
    return told.codes.empty() || depth == 1 ? nullptr : "codes: must leave one value";
  }

  // Call f(name) for each part of the state that an expression uses.
  template <class F>
  static void each_state(const Expression& told, F f) {
    for (std::size_t k = 0; k < told.codes.size(); ++k)
      if (told.codes[k] == state) f(static_cast<std::size_t>(told.numbers[k]));
      else if (told.codes[k] == in_use) f(std::size_t{State::running});
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
    const Look look{jobs, waiting, times, now, weights};
    keep(look);
    for (std::size_t k = 0; k < of_pass_.size(); ++k) shared_[k] = *run(of_pass_[k], 1, look);
    double* values = run(steps_, jobs.size(), look);
    for (std::size_t i = 0; i < jobs.size(); ++i)
      if (values[i] != values[i]) values[i] = -inf;
    return values;
  }
  // The rows of the expression have moved to other jobs.
  void moved() { kept_ = {}; }

  // The operations of hpcgym.scheduler.policies.operations: some push a value, others take one, two
  // or three from the top of the stack and leave one. Usage is added by accounts.
  enum Code : i64 {
    number, feature, column, usage, wait, state, weight, in_use,
    negative, not_, log, log2, log10, exp, sqrt, abs, floor,
    add, subtract, multiply, divide, whole_parts, rest, power, least, greatest,
    less, at_most, more, at_least, equal, unequal, and_, or_,
    choice,
  };

 private:
  struct Step {
    i64 code;
    double number;
  };
  using Steps = std::vector<Step>;
  struct Look {  // what values are worked out from
    const std::vector<i64>& jobs;
    const std::vector<double>& waiting;
    const i64* times;
    const State& now;
    const std::vector<double>& weights;
  };
  // Values of parts by job, from a first one on, and the run times that they are of. A copy begins
  // without any.
  struct Kept {
    i64 first = 0;
    std::vector<i64> times;
    std::vector<double> values;

    Kept() = default;
    Kept(const Kept&) {}
    Kept& operator=(const Kept&) { return first = 0, times.clear(), values.clear(), *this; }
  };
  // A step of what is left: the value of a part, of the job or of the pass.
  static constexpr i64 of_job = choice + 1, of_pass = choice + 2;
  static constexpr i64 unknown = std::numeric_limits<i64>::min();

  const Expression* told_;
  Steps steps_;                  // of what is left of the expression
  std::vector<Steps> of_job_, of_pass_;
  Kept kept_;
  std::vector<double> shared_;  // by part of the pass
  std::vector<i64> renewed_;    // jobs whose parts are not known
  struct Level {  // of the stack: a value for each job, or the same for all
    double* values;
    bool is_same = false;
    double same = 0;

    explicit Level(double* of_jobs) : values(of_jobs) {}
  };
  std::vector<double> stack_;   // steps go over all jobs
  std::vector<Level> levels_;
  std::size_t n_ = 0;           // jobs

  // What a value depends on, as bits.
  enum Depends : int { on_nothing = 0, on_job = 1, on_pass = 2, on_both = 3 };

  static Depends depends(i64 code, double number_) {
    if (code == feature) {
      const auto how = waiting_of(static_cast<Feature>(static_cast<i64>(number_)));
      return how == Waiting::not_at_all ? on_job : on_both;
    }
    if (code == column) return on_job;
    if (code == state) return static_cast<std::size_t>(number_) < State::fits ? on_pass : on_both;
    return code == weight || code == in_use ? on_pass : code == wait ? on_both : on_nothing;
  }
  static std::size_t n_taken(i64 code) {
    return code < negative ? 0 : code < add ? 1 : code < choice ? 2 : 3;
  }
  // Take the expression apart: into the greatest parts that depend on the job or the pass alone, and
  // what is left.
  void take_apart() {
    struct Value {  // of the stack: where its steps begin, and its own steps in what is left
      std::size_t first;
      Depends depends;
      Steps left;
    };
    std::vector<Value> values;
    for (std::size_t k = 0; k < told_->codes.size(); ++k) {
      const Step step{told_->codes[k], told_->numbers[k]};
      const auto begin = values.end() - static_cast<std::ptrdiff_t>(n_taken(step.code));
      Value value{begin == values.end() ? k : begin->first, depends(step.code, step.number), {}};
      for (auto of = begin; of != values.end(); ++of)
        value.depends = static_cast<Depends>(value.depends | of->depends);
      if (value.depends == on_both) {
        std::size_t last = k;
        for (auto of = values.end(); of != begin; last = of->first)
          if (--of; of->depends != on_both) of->left = {part(*of, last)};
        for (auto of = begin; of != values.end(); ++of)
          value.left.insert(value.left.end(), of->left.begin(), of->left.end());
        value.left.push_back(step);
      }
      values.erase(begin, values.end());
      values.push_back(std::move(value));
    }
    if (values.empty()) return;
    const Value& whole = values.front();
    steps_ = whole.depends == on_both ? whole.left : Steps{part(whole, told_->codes.size())};
    shared_.resize(of_pass_.size());
  }
  // A step in place of a value whose steps end before `last`.
  template <class V>
  Step part(const V& value, std::size_t last) {
    const bool of_jobs = value.depends == on_job;
    std::vector<Steps>& parts = of_jobs ? of_job_ : of_pass_;
    Steps& own = parts.emplace_back();
    for (std::size_t k = value.first; k < last; ++k) own.push_back({told_->codes[k], told_->numbers[k]});
    return {of_jobs ? of_job : of_pass, static_cast<double>(parts.size() - 1)};
  }
  // Work out the parts of jobs that are not known, or are of other run times.
  void keep(const Look& look) {
    if (of_job_.empty()) return;
    const auto time_of = [&](i64 j) { return look.times ? look.times[j] : 0; };
    renewed_.clear();
    if (look.jobs.empty()) return;
    const auto [least, most] = std::ranges::minmax(look.jobs);
    if (kept_.times.empty() || least < kept_.first) kept_ = {}, kept_.first = least;
    if (const auto n = index(most - kept_.first) + 1; n > kept_.times.size()) {
      kept_.times.resize(n + n / 2, unknown);
      kept_.values.resize(kept_.times.size() * of_job_.size());
    }
    for (const i64 j : look.jobs)
      if (i64& time = kept_.times[index(j - kept_.first)]; time != time_of(j)) {
        time = time_of(j);
        renewed_.push_back(j);
      }
    if (renewed_.empty()) return;
    const Look of_renewed{renewed_, look.waiting, look.times, look.now, look.weights};
    for (std::size_t k = 0; k < of_job_.size(); ++k) {
      const double* values = run(of_job_[k], renewed_.size(), of_renewed);
      for (const i64 j : renewed_) kept_.values[place_of(j) + k] = *values++;
    }
  }
  std::size_t place_of(i64 j) const { return index(j - kept_.first) * of_job_.size(); }
  // The values of some steps for n jobs. Valid until the next call.
  double* run(const Steps& steps, std::size_t n, const Look& look) {
    n_ = n;
    if (stack_.size() < n * steps.size()) stack_.resize(n * steps.size());
    levels_.clear();
    for (const auto& [code, number_] : steps) {
      if (code > choice || code < negative) {
        levels_.emplace_back(stack_.data() + n * levels_.size());
        push(code, number_, look, levels_.back());
      } else if (code < add) {
        of_one(code);
      } else if (code < choice) {
        of_two(code);
        levels_.pop_back();
      } else {
        choose();
      }
    }
    return spread(levels_.back());
  }
  // The first of three values says whether it is the second or the third.
  void choose() {
    const double* otherwise = spread(levels_.back());
    levels_.pop_back();
    const double* chosen = spread(levels_.back());
    levels_.pop_back();
    double* value = spread(levels_.back());
    for (std::size_t i = 0; i < n_; ++i) value[i] = value[i] != 0 ? chosen[i] : otherwise[i];
  }
  double* spread(Level& level) const {
    if (std::exchange(level.is_same, false)) std::fill(level.values, level.values + n_, level.same);
    return level.values;
  }
  void push(i64 code, double number_, const Look& look, Level& top) const {
    const auto all = [&](double value) { top.is_same = true, top.same = value; };
    if (code == number) return all(number_);  // which may be below 0
    const auto which = static_cast<std::size_t>(number_);
    if (code == of_pass) return all(shared_[which]);
    if (code == in_use) return all(look.now.in_use(told_->columns[which]));
    if (code == weight) return all(which < look.weights.size() ? look.weights[which] : 0.0);
    double* values = top.values;
    if (code == state) {
      const std::vector<double>& of_state = look.now.values(which);
      if (of_state.size() == 1) all(of_state[0]);
      else std::copy(of_state.begin(), of_state.end(), values);
    } else if (code == wait) {
      std::copy(look.waiting.begin(), look.waiting.end(), values);
    } else if (code == of_job) {
      for (const i64 j : look.jobs) *values++ = kept_.values[place_of(j) + which];
    } else if (code == column) {
      for (const i64 j : look.jobs) *values++ = told_->columns[which][j];
    } else {
      push_feature(static_cast<Feature>(which), look, values);
    }
  }
  void push_feature(Feature which, const Look& look, double* top) const {
    const double *since_first = told_->columns[0], *processors = told_->columns[1];
    for (std::size_t i = 0; i < n_; ++i) {
      const i64 j = look.jobs[i];
      const JobNumbers job{since_first[j], static_cast<double>(look.times[j]), processors[j]};
      top[i] = static_of(which, job);
      if (which == Feature::expansion) top[i] += look.waiting[i] / job.requested;
      if (which == Feature::unicef) top[i] += look.waiting[i] / serial_patience(job);
    }
  }
  template <class F>
  void each(F f) {
    Level& top = levels_.back();
    if (top.is_same) top.same = f(top.same);
    else for (std::size_t i = 0; i < n_; ++i) top.values[i] = f(top.values[i]);
  }
  // The same of a function that can take many numbers in one call.
  template <class F>
  void all(F f) {
    Level& top = levels_.back();
    if (top.is_same) top.same = f(top.same);
    else f(top.values, n_);
  }
  template <class F>
  void pairs(F f) {
    Level &left = levels_.end()[-2], &right = levels_.back();
    double* values = left.values;
    if (left.is_same && right.is_same) {
      left.same = f(left.same, right.same);
    } else if (left.is_same) {
      left.is_same = false;
      for (std::size_t i = 0; i < n_; ++i) values[i] = f(left.same, right.values[i]);
    } else if (right.is_same) {
      for (std::size_t i = 0; i < n_; ++i) values[i] = f(values[i], right.same);
    } else {
      for (std::size_t i = 0; i < n_; ++i) values[i] = f(values[i], right.values[i]);
    }
  }
  void powers() {
    const Level &left = levels_.end()[-2], &right = levels_.back();
    if (!left.is_same && right.is_same && right.same != 2 && right.same != 3)
      return elementary::pow(left.values, n_, right.same);
    pairs([](double a, double b) {
      return b == 2 ? a * a : b == 3 ? a * a * a : elementary::pow(a, b);
    });
  }
  void of_one(i64 code) {
    switch (code) {
      case negative: return each([](double a) { return -a; });
      case not_: return each([](double a) { return a == 0 ? 1.0 : 0.0; });
      case log: return all([](auto... a) { return elementary::log(a...); });
      case log2: return all([](auto... a) { return elementary::log2(a...); });
      case log10: return all([](auto... a) { return elementary::log10(a...); });
      case exp: return all([](auto... a) { return elementary::exp(a...); });
      case sqrt: return each([](double a) { return std::sqrt(a); });
      case abs: return each([](double a) { return std::abs(a); });
      default: return each([](double a) { return std::floor(a); });
    }
  }
  void of_two(i64 code) {
    switch (code) {
      case add: return pairs([](double a, double b) { return a + b; });
      case subtract: return pairs([](double a, double b) { return a - b; });
      case multiply: return pairs([](double a, double b) { return a * b; });
      case divide: return pairs([](double a, double b) { return a / b; });
      case whole_parts: return pairs([](double a, double b) { return divided(a, b).whole; });
      case rest: return pairs([](double a, double b) { return divided(a, b).rest; });
      case power: return powers();
      // as in Python: of equal values the first, and NaN only if it comes first
      case least: return pairs([](double a, double b) { return b < a ? b : a; });
      case greatest: return pairs([](double a, double b) { return b > a ? b : a; });
      case less: return pairs([](double a, double b) { return double(a < b); });
      case at_most: return pairs([](double a, double b) { return double(a <= b); });
      case more: return pairs([](double a, double b) { return double(a > b); });
      case at_least: return pairs([](double a, double b) { return double(a >= b); });
      case equal: return pairs([](double a, double b) { return double(a == b); });
      case unequal: return pairs([](double a, double b) { return double(a != b); });
      case and_: return pairs([](double a, double b) { return double(a != 0 && b != 0); });
      default: return pairs([](double a, double b) { return double(a != 0 || b != 0); });
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
