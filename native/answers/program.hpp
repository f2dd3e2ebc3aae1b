// Scores by expressions, recomputed before each pass for all waiting jobs: a small stack machine in
// double precision. Squares and cubes are products.
//
// What depends on the job alone is worked out when it first waits, and when its prediction has
// changed; what is the same for all jobs, once for a pass. The operations are those of the
// expression in their order, so the scores are the same to the bit.
#pragma once
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "../base/wide.hpp"
#include "../core/features.hpp"
#include "job_rows.hpp"
#include "layer.hpp"
#include "state.hpp"

namespace hpc {

class Program {
 public:
  // `keeps_runs`: what it names of last runs of users is told by `follow`, as jobs' run times are.
  explicit Program(const Expression& told, bool keeps_runs = false) : told_(&told), keeps_runs_(keeps_runs) {
    take_apart();
  }

  // Why steps are invalid; nullptr if they are valid. There are as many numbers as codes.
  static const char* refusal(const Expression& told) {
    std::size_t depth = 0;  // of the stack
    for (std::size_t k = 0; k < told.codes.size(); ++k) {
      const i64 code = told.codes[k];
      if (!is_between(code, number, layer) || code == usage) return "codes: there is no such operation";
      const double place = told.numbers[k];
      const auto is_below = [&](std::size_t n) { return place >= 0 && place < static_cast<double>(n); };
      if (code == feature && (!is_below(n_features) || told.columns.size() < 2))
        return "numbers: there is no such feature";
      if ((code == column || code == in_use) && !is_below(told.columns.size()))
        return "numbers: there is no such column";
      if (code == state && !is_below(State::n_values)) return "numbers: there is no such state";
      if (code == weight && !is_below(told.codes.size())) return "numbers: there is no such weight";
      const bool is_layer = code == layer;
      if (is_layer && !(is_below(depth + 1) && Layer::is_valid(told.layer, static_cast<std::size_t>(place))))
        return "layer: not the numbers of one over its inputs";
      if (is_layer && k + 1 < told.codes.size()) return "codes: a layer is the last";
      const std::size_t taken = n_taken(code, place);
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
      else if (told.codes[k] == in_use) f(State::running);
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

  struct Look {  // what scores are worked out from
    const std::vector<i64>& jobs;
    const std::vector<double>* waiting = nullptr;  // [s]
    const i64* times = nullptr;                    // [s] by job, the run times that policies see
    const State* now = nullptr;                    // read for these jobs
    const std::vector<std::size_t>* rows = nullptr;  // those of the jobs; nullptr: from 0 on
  };
  // A pass begins: work out what is alike for all jobs. `weights`: missing ones count as 0.
  void begin_pass(const State& now, const std::vector<double>& weights) {
    for (const std::size_t k : changing_)
      shared_[k] = value(of_pass_[k], [&](i64 code, std::size_t which) {
        if (code == state) return now.values(which)[0];
        if (code == in_use) return now.in_use(told_->columns[which]);
        return which < weights.size() ? weights[which] : 0.0;
      });
    if (layer_) layer_->begin_pass(shared_);
  }
  // The scores of jobs in this pass; -inf in place of NaN. Valid until the next call. `follow` has
  // been told of the jobs.
  const double* scores(const Look& look) {
    n_ = look.jobs.size();
    if (stack_.size() < n_ * steps_.size()) stack_.resize(n_ * steps_.size());
    if (levels_.size() <= steps_.size()) levels_.resize(steps_.size() + 1);
    return widely([&] {
      double* values = go_through(steps_, look);
#pragma omp simd
      for (std::size_t i = 0; i < n_; ++i) values[i] = values[i] == values[i] ? values[i] : -inf;
      return values;
    });
  }
  // The score of one job of which the state alone is looked at, without the cost of many.
  double score_of_state(const State& now) {
    const double score = value(steps_, [&](i64 code, std::size_t which) {
      return code == of_pass_part ? shared_[which] : now.values(which)[0];
    });
    return score == score ? score : -inf;
  }
  // Work out the parts of jobs that came, or whose run times are seen anew, in their rows.
  // `of_runs(name, job)`: what a name of the state is of the last runs of the job's user.
  template <class F>
  void follow(const JobRows& rows, const i64* times, F of_runs) {
    if ((of_job_.empty() && !layer_) || (rows.moves().empty() && rows.renewed().empty())) return;
    for (Part& part : of_job_) {
      for (const auto& [from, to] : rows.moves()) part.move(from, to);
      part.values.resize(rows.jobs().size());
      for (const std::size_t row : part.sees_time ? rows.renewed() : rows.came())
        part.values[row] = value_of_job(part.steps, rows.jobs()[row], times, of_runs);
    }
    if (layer_) follow_sums(rows.jobs().size(), rows.moves(), rows.renewed());
  }
  // The same for jobs that may be there several times.
  void follow(const std::vector<i64>& jobs, const i64* times) {
    for (Part& part : of_job_) {
      part.values.clear();
      for (const i64 j : jobs) part.values.push_back(value_of_job(part.steps, j, times, no_runs));
    }
    if (!layer_) return;
    std::vector<std::size_t> rows(jobs.size());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    follow_sums(rows.size(), {}, rows);
  }

  static double no_runs(std::size_t, i64) { return 0; }  // where a program keeps none

  // The operations of hpcgym.scheduler.policies.operations: some push a value, others take one, two
  // or three from the top of the stack and leave one. Usage is added by accounts.
  enum Code : i64 {
    number, feature, column, usage, wait, state, weight, in_use,
    negative, not_, log, log2, log10, exp, tanh, sqrt, abs, floor,
    add, subtract, multiply, divide, whole_parts, rest, power, least, greatest,
    less, at_most, more, at_least, equal, unequal, and_, or_,
    choice, layer,
  };

  // A step of what is left: the value of a part, of the job or of the pass.
  static constexpr i64 of_job = layer + 1, of_pass_part = layer + 2;
  struct Step {
    i64 code;
    double number;
  };
  using Steps = std::vector<Step>;
  // What is left to do for a job in a pass, the values of parts by row, and those of the pass.
  const Steps& steps() const { return steps_; }
  const std::vector<double>& part(std::size_t which) const { return of_job_[which].values; }
  const std::vector<double>& of_pass() const { return shared_; }
  const Layer& last_layer() const { return *layer_; }
  static std::size_t n_taken(i64 code, double number_) {
    if (code == layer) return static_cast<std::size_t>(number_);
    return code < negative || code > layer ? 0 : code < add ? 1 : code < choice ? 2 : 3;
  }
  // A feature of a job after this wait [s].
  double feature_of(Feature which, i64 j, double waiting, const i64* times) const {
    const JobNumbers job{told_->columns[0][j], static_cast<double>(times[j]), told_->columns[1][j]};
    double value = static_of(which, job);
    if (which == Feature::expansion) value += waiting / job.requested;
    if (which == Feature::unicef) value += waiting / serial_patience(job);
    return value;
  }

 private:
  struct Part {  // of the expression, of each job. A copy begins without values
    Steps steps;
    bool sees_time;  // whether it depends on the run time that policies see, or on last runs of users
    std::vector<double> values;  // by row

    explicit Part(Steps own) : steps(std::move(own)), sees_time(std::ranges::any_of(steps, looks_at)) {}
    Part(const Part& other) : steps(other.steps), sees_time(other.sees_time) {}
    Part(Part&&) = default;
    void move(std::size_t from, std::size_t to) {
      if (values.size() <= from) values.resize(from + 1);
      values[to] = values[from];
    }
    static bool looks_at(const Step& step) {
      return step.code == state ||
             (step.code == feature && looks_at_time(static_cast<Feature>(static_cast<i64>(step.number))));
    }
  };
  const Expression* told_;
  bool keeps_runs_;
  Steps steps_;                  // of what is left of the expression
  std::vector<Part> of_job_;
  std::vector<Steps> of_pass_;
  std::optional<Layer> layer_;   // the last step of a network
  std::vector<const double*> inputs_;
  std::vector<double> shared_;  // by part of the pass
  std::vector<std::size_t> changing_;  // those that are not the same in all passes
  struct Level {  // of the stack: a value for each job, or the same for all
    double* own;           // where an operation leaves its values
    const double* values;  // `own`, or a column; nullptr: the same for all
    double same;
  };
  std::vector<double> numbers_;  // a stack of single values
  std::vector<double> stack_;    // of those of all jobs, over which steps go
  std::vector<Level> levels_;
  Level* top_ = nullptr;
  std::size_t n_ = 0;           // jobs

  // What a value depends on, as bits.
  enum Depends : int { on_nothing = 0, on_job = 1, on_pass = 2, on_both = 3 };

  Depends depends(i64 code, double number_) const {
    if (keeps_runs_ && code == state && State::is_of_runs(static_cast<std::size_t>(number_))) return on_job;
    if (code == feature) {
      const auto how = waiting_of(static_cast<Feature>(static_cast<i64>(number_)));
      return how == Waiting::not_at_all ? on_job : on_both;
    }
    if (code == column) return on_job;
    if (code == state) return static_cast<std::size_t>(number_) < State::fits ? on_pass : on_both;
    return code == weight || code == in_use ? on_pass : code == wait ? on_both : on_nothing;
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
      const auto begin = values.end() - static_cast<std::ptrdiff_t>(n_taken(step.code, step.number));
      if (step.code == layer) return take_apart_layer(values);
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
  }
  // The same of the inputs of a layer: what is left of them, and then the layer over these.
  template <class V>
  void take_apart_layer(const std::vector<V>& inputs) {
    layer_.emplace(told_->layer, inputs.size());
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const std::size_t last = k + 1 < inputs.size() ? inputs[k + 1].first : told_->codes.size() - 1;
      if (inputs[k].depends == on_both) {
        steps_.insert(steps_.end(), inputs[k].left.begin(), inputs[k].left.end());
        layer_->of_pair.push_back(k);
        continue;
      }
      const Step own = part(inputs[k], last);
      (own.code == of_job ? layer_->of_job : layer_->of_pass).push_back({k, static_cast<std::size_t>(own.number)});
    }
    steps_.push_back({layer, static_cast<double>(layer_->of_pair.size())});
  }
  // A step in place of a value whose steps end before `last`.
  template <class V>
  Step part(const V& value, std::size_t last) {
    Steps own;
    for (std::size_t k = value.first; k < last; ++k) own.push_back({told_->codes[k], told_->numbers[k]});
    if (value.depends == on_job) {
      of_job_.emplace_back(std::move(own));
      return {of_job, static_cast<double>(of_job_.size() - 1)};
    }
    if (value.depends == on_pass) changing_.push_back(of_pass_.size());
    const auto none = [](i64, std::size_t) { return 0.0; };
    shared_.push_back(value.depends == on_pass ? 0 : this->value(own, none));
    of_pass_.push_back(std::move(own));
    return {of_pass_part, static_cast<double>(of_pass_.size() - 1)};
  }
  // The place that an operation names in a table; any number may stand beside the wait, which names none.
  static std::size_t place(i64 code, double number_) {
    return code == wait ? 0 : static_cast<std::size_t>(number_);
  }
  // The value of the steps of a part. `leaf(code, which)`: what they push besides numbers.
  template <class F>
  double value(const Steps& steps, F leaf) {
    if (numbers_.size() <= steps.size()) numbers_.resize(steps.size() + 1);
    double* top = numbers_.data();  // the first is below the stack
    for (const auto& [code, number_] : steps) {
      if (code == number) *++top = number_;
      else if (n_taken(code, number_) == 0) *++top = leaf(code, place(code, number_));
      else if (code < add) with_one(code, [&](auto f) { *top = f(*top); });
      else if (code < choice) with_two(code, [&](auto f) { --top, *top = f(top[0], top[1]); });
      else top -= 2, *top = *top != 0 ? top[1] : top[2];
    }
    return *top;
  }
  template <class F>
  double value_of_job(const Steps& steps, i64 j, const i64* times, F of_runs) {
    return value(steps, [&](i64 code, std::size_t which) {
      if (code == state) return of_runs(which, j);
      return code == column ? told_->columns[which][j]
                            : feature_of(static_cast<Feature>(which), j, 0, times);
    });
  }
  void follow_sums(std::size_t n_rows, const std::vector<JobRows::Move>& moves, const std::vector<std::size_t>& rows) {
    layer_->follow(n_rows, moves, rows, [&](std::size_t which, std::size_t row) { return of_job_[which].values[row]; });
  }
  // The values of some steps for all jobs. Valid until the next call.
  double* go_through(const Steps& steps, const Look& look) {
    top_ = levels_.data();  // the first is below the stack
    double* own = stack_.data();
    for (const auto& [code, number_] : steps) {
      if (code == layer) {
        of_layer(look);
      } else if (n_taken(code, number_) == 0) {
        *++top_ = leaf(code, number_, look, own);
        own += n_;
      } else if (code < add) {
        of_one(code);
      } else {
        const std::size_t taken = n_taken(code, number_) - 1;
        top_ -= taken, own -= n_ * taken;
        code < choice ? of_two(code) : choose();
      }
    }
    return spread(*top_);
  }
  // The last step: all that is on the stack are inputs.
  void of_layer(const Look& look) {
    inputs_.clear();
    for (Level* level = levels_.data() + 1; level <= top_; ++level)
      inputs_.push_back(level->values ? level->values : spread(*level));
    top_ = levels_.data() + 1;
    top_->own = stack_.data(), top_->values = top_->own;
    layer_->write(n_, look.rows ? look.rows->data() : nullptr, inputs_, top_->own);
  }
  // The first of three values says whether it is the second or the third.
  void choose() {
    const double *chosen = spread(top_[1]), *otherwise = spread(top_[2]);
    double* value = spread(*top_);
    for (std::size_t i = 0; i < n_; ++i) value[i] = value[i] != 0 ? chosen[i] : otherwise[i];
  }
  // Give a level values of its own.
  double* spread(Level& level) const {
    if (!level.values) std::fill(level.own, level.own + n_, level.same);
    else if (level.values != level.own) std::copy(level.values, level.values + n_, level.own);
    level.values = level.own;
    return level.own;
  }
  Level leaf(i64 code, double number_, const Look& look, double* own) const {
    const std::size_t which = place(code, number_);
    switch (code) {
      case of_pass_part: return {own, nullptr, shared_[which]};
      case of_job: {
        const std::vector<double>& values = of_job_[which].values;
        if (!look.rows) return {own, values.data(), 0};
        for (std::size_t i = 0; i < n_; ++i) own[i] = values[(*look.rows)[i]];
        return {own, own, 0};
      }
      case wait: return {own, look.waiting->data(), 0};
      case state: {
        const std::vector<double>& of_state = look.now->values(which);
        if (of_state.size() == 1) return {own, nullptr, of_state[0]};
        return {own, of_state.data(), 0};
      }
      default:
        for (std::size_t i = 0; i < n_; ++i)
          own[i] = feature_of(static_cast<Feature>(which), look.jobs[i], (*look.waiting)[i], look.times);
        return {own, own, 0};
    }
  }
  template <class F>
  void each(F f) {
    const double* from = top_->values;
    if (!from) return void(top_->same = f(top_->same));
    double* values = top_->own;
#pragma omp simd
    for (std::size_t i = 0; i < n_; ++i) values[i] = f(from[i]);
    top_->values = values;
  }
  template <class F>
  void pairs(F f) {
    const double *left = top_->values, *right = top_[1].values;
    const double same_left = top_->same, same_right = top_[1].same;
    if (!left && !right) return void(top_->same = f(same_left, same_right));
    double* values = top_->own;
    top_->values = values;
    if (!left) {
#pragma omp simd
      for (std::size_t i = 0; i < n_; ++i) values[i] = f(same_left, right[i]);
    } else if (!right) {
#pragma omp simd
      for (std::size_t i = 0; i < n_; ++i) values[i] = f(left[i], same_right);
    } else {
#pragma omp simd
      for (std::size_t i = 0; i < n_; ++i) values[i] = f(left[i], right[i]);
    }
  }
  // The same of functions that take many numbers in one call.
  void logarithms_or_exp(i64 code) {
    if (!top_->values) return with_one(code, [&](auto f) { each(f); });
    double* values = spread(*top_);
    switch (code) {
      case log: return elementary::log(values, n_);
      case log2: return elementary::log2(values, n_);
      case log10: return elementary::log10(values, n_);
      default: return elementary::exp(values, n_);
    }
  }
  void of_one(i64 code) {
    if (code >= log && code <= exp) return logarithms_or_exp(code);
    with_one(code, [&](auto f) { each(f); });
  }
  void of_two(i64 code) {
    const double same = top_[1].same;
    if (code == power && top_->values && !top_[1].values && same != 2 && same != 3)
      return elementary::pow(spread(*top_), n_, same);
    with_two(code, [&](auto f) { pairs(f); });
  }
  // Call use(f), where f is an operation on one value, or on two.
  template <class F>
  static void with_one(i64 code, F use) {
    switch (code) {
      case negative: return use([](double a) { return -a; });
      case not_: return use([](double a) { return a == 0 ? 1.0 : 0.0; });
      case log: return use([](double a) { return elementary::log(a); });
      case log2: return use([](double a) { return elementary::log2(a); });
      case log10: return use([](double a) { return elementary::log10(a); });
      case exp: return use([](double a) { return elementary::exp(a); });
      case tanh: return use([](double a) { return elementary::tanh(a); });
      case sqrt: return use([](double a) { return std::sqrt(a); });
      case abs: return use([](double a) { return std::abs(a); });
      default: return use([](double a) { return std::floor(a); });
    }
  }
  template <class F>
  static void with_two(i64 code, F use) {
    switch (code) {
      case add: return use([](double a, double b) { return a + b; });
      case subtract: return use([](double a, double b) { return a - b; });
      case multiply: return use([](double a, double b) { return a * b; });
      case divide: return use([](double a, double b) { return a / b; });
      case whole_parts: return use([](double a, double b) { return divided(a, b).whole; });
      case rest: return use([](double a, double b) { return divided(a, b).rest; });
      case power: return use([](double a, double b) {
        return b == 2 ? a * a : b == 3 ? a * a * a : elementary::pow(a, b);
      });
      // as in Python: of equal values the first, and NaN only if it comes first
      case least: return use([](double a, double b) { return b < a ? b : a; });
      case greatest: return use([](double a, double b) { return b > a ? b : a; });
      case less: return use([](double a, double b) { return double(a < b); });
      case at_most: return use([](double a, double b) { return double(a <= b); });
      case more: return use([](double a, double b) { return double(a > b); });
      case at_least: return use([](double a, double b) { return double(a >= b); });
      case equal: return use([](double a, double b) { return double(a == b); });
      case unequal: return use([](double a, double b) { return double(a != b); });
      case and_: return use([](double a, double b) { return double(a != 0 && b != 0); });
      default: return use([](double a, double b) { return double(a != 0 || b != 0); });
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
