// Ceilings of scores: what an expression is worth at most for a stretch of time.
#pragma once
#include <limits>
#include <vector>

#include "program.hpp"
#include "range.hpp"

namespace hpc {

// Ceilings of the scores of jobs in a stretch, by a stack of bounds for all jobs.
class Ceilings {
  using Code = Program::Code;
  struct Stretch {  // the jobs in these rows, and their waits [s] at its ends
    const Program& program;
    const std::vector<std::size_t>& rows;
    const i64* times;
    const std::vector<double>& widths;  // of all rows
    std::vector<i64> jobs;
    std::vector<double> from, to;
  };
  std::vector<Range> stack_;
  std::size_t n_ = 0;
  Range* top_ = nullptr;

 public:
  static constexpr double last = std::numeric_limits<double>::lowest();  // no ceiling is lower

  i64 from = 0, to = -1;       // the stretch [ticks], its end included
  std::vector<Range> of_pass;  // where the values of the pass stay, and then what is free [units]
  double size = 0;             // of the machine [units]; 0: whether a job fits is not known

  bool hold(i64 now, const std::vector<double>& state) const {
    bool within = now <= to;
    for (std::size_t k = 0; k < state.size() && within; ++k) within = of_pass[k].holds(state[k]);
    return within;
  }
  // Write what the scores in some rows are at most.
  void write(const Program& program, const JobRows& jobs, const std::vector<std::size_t>& rows,
             const i64* times, i64 ticks, std::vector<double>& most) {
    n_ = rows.size();
    if (n_ == 0) return;
    Stretch stretch{program, rows, times, jobs.widths(), {}, {}, {}};
    for (const std::size_t row : rows) {
      stretch.jobs.push_back(jobs.jobs()[row]);
      stretch.from.push_back(jobs.wait(row, from, ticks));
      stretch.to.push_back(jobs.wait(row, to, ticks));
    }
    const std::size_t room = n_ * (program.steps().size() + 1);
    if (stack_.size() < room) stack_.resize(room);
    top_ = stack_.data();  // the first are below the stack
    for (const Program::Step& step : program.steps()) {
      const std::size_t taken = Program::n_taken(step.code, step.number);
      if (step.code == Code::layer) {
        of_layer(taken, stretch);
      } else if (taken == 0) {
        top_ += n_;
        leaf(step, stretch);
      } else {
        top_ -= n_ * (taken - 1);
        taken == 1 ? of_one(step.code) : taken == 2 ? of_two(step.code) : choose();
      }
    }
    // a job without a score comes last, but it comes
    for (std::size_t i = 0; i < n_; ++i) most[rows[i]] = std::max(top_[i].most, last);
  }

 private:
  void leaf(const Program::Step& step, const Stretch& s) {
    const auto each = [&](auto of) {
      for (std::size_t i = 0; i < n_; ++i) top_[i] = of(i);
    };
    const auto which = static_cast<std::size_t>(step.number);
    switch (step.code) {
      case Program::of_pass_part: return each([&](std::size_t) { return of_pass[which]; });
      case Program::of_job: {
        const std::vector<double>& values = s.program.part(which);
        return each([&](std::size_t i) { return Range::of(values[s.rows[i]], values[s.rows[i]]); });
      }
      case Code::wait: return each([&](std::size_t i) { return Range{s.from[i], s.to[i]}; });
      case Code::state: {  // of a job
        if (which != State::fits && which != State::leaves) return each([](std::size_t) { return Range{0, inf}; });
        if (size <= 0) return each([](std::size_t) { return Range{0, 1}; });
        const auto value = [&](double room, double width) {
          return which == State::fits ? double(width <= room) : std::max(room - width, 0.0) / size;
        };
        return each([&](std::size_t i) {
          const double width = s.widths[s.rows[i]];
          return Range{value(of_pass.back().least, width), value(of_pass.back().most, width)};
        });
      }
      default: {
        const auto feature = static_cast<Feature>(which);
        const auto value = [&](std::size_t i, double waiting) {
          return s.program.feature_of(feature, s.jobs[i], waiting, s.times);
        };
        return each([&](std::size_t i) { return Range::hull({value(i, s.from[i]), value(i, s.to[i])}); });
      }
    }
  }
  template <class F>
  void each(F f) {
    for (std::size_t row = 0; row < n_; ++row) top_[row] = f(top_[row]);
  }
  template <class F>
  void pairs(F f) {
    for (std::size_t row = 0; row < n_; ++row) top_[row] = f(top_[row], top_[row + n_]);
  }
  template <class F>
  void rising(F f) {
    each([f](const Range& a) { return a.of_rising(f); });
  }
  void of_one(i64 code) {
    switch (code) {
      case Code::negative: return each([](const Range& a) { return -a; });
      case Code::not_: return each([](const Range&) { return Range{0, 1}; });
      case Code::log: return rising([](double a) { return elementary::log(a); });
      case Code::log2: return rising([](double a) { return elementary::log2(a); });
      case Code::log10: return rising([](double a) { return elementary::log10(a); });
      case Code::exp: return rising([](double a) { return elementary::exp(a); });
      case Code::tanh: return rising([](double a) { return elementary::tanh(a); });
      case Code::sqrt: return rising([](double a) { return std::sqrt(a); });
      case Code::abs: return each([](const Range& a) { return a.absolute(); });
      default: return rising([](double a) { return std::floor(a); });
    }
  }
  void of_two(i64 code) {
    using I = const Range&;
    switch (code) {
      case Code::add: return pairs([](I a, I b) { return a + b; });
      case Code::subtract: return pairs([](I a, I b) { return a - b; });
      case Code::multiply: return pairs([](I a, I b) { return a * b; });
      case Code::divide: return pairs([](I a, I b) { return a / b; });
      case Code::power: return pairs([](I a, I b) { return a.to_the(b); });
      case Code::least: return pairs([](I a, I b) { return a.least_with(b); });
      case Code::greatest: return pairs([](I a, I b) { return a.greatest_with(b); });
      case Code::whole_parts:
      case Code::rest: return pairs([](I, I) { return Range{}; });
      default: return pairs([](I, I) { return Range{0, 1}; });  // true or false
    }
  }
  // The last step: its inputs lie one behind the other.
  void of_layer(std::size_t taken, const Stretch& s) {
    const Layer& layer = s.program.last_layer();
    const Layer::Bounds bounds = layer.bounds_of_pass(of_pass);
    std::vector<Range> inputs(taken);
    top_ = stack_.data() + n_;
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t k = 0; k < taken; ++k) inputs[k] = top_[i + n_ * k];
      top_[i] = layer.range(s.rows[i], inputs, bounds);
    }
  }
  void choose() {
    for (std::size_t row = 0; row < n_; ++row) top_[row] = top_[row + n_].or_else(top_[row + 2 * n_]);
  }
};

}  // namespace hpc
