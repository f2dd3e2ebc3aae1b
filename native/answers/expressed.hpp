// The values of expressions for waiting jobs, by the same program and state that compute orders
// before passes.
#pragma once
#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "program.hpp"

namespace hpc {

// Where the jobs of a simulation are known.
struct InTable {
  i64 first;           // the row of its first job in the table of all
  const i64* learned;  // [s] by job, the run times that policies see, if these are learned, else nullptr
};

class Expressed {
  std::vector<Expression> told_;  // for the jobs of a simulation
  std::vector<Program> programs_;
  State state_;
  bool sees_state_ = false;
  i64 first_ = 0;  // the row of the first of these jobs
  std::vector<i64> jobs_;        // as they were set
  JobRows rows_;
  std::vector<double> waiting_;  // [s] by row
  std::vector<double> values_;   // by place in `jobs_`
  std::vector<std::size_t> order_;

 public:
  // For jobs that include those of a simulation as some rows.
  explicit Expressed(std::vector<Expression> told) : told_(std::move(told)) {
    for (const Expression& each : told_) {
      programs_.emplace_back(each);
      Program::each_state(each, [&](std::size_t name) { state_.name(name), sees_state_ = true; });
    }
  }
  Expressed(const Expressed&) = delete;

  std::size_t size() const { return told_.size(); }
  // Set the jobs of a simulation.
  template <class S>
  void look(S& s, std::span<const i64> jobs, const InTable& at) {
    move(at.first);
    jobs_.assign(jobs.begin(), jobs.end());
    list(s, at);
    if (sees_state_) {
      state_.read_pass(s, {}, told_.front().clock);
      state_.read_jobs(s, rows_.jobs(), waiting_, rows_.widths());
    }
    for (Program& each : programs_) each.begin_pass(state_, {});
  }
  // Set one job, for expressions that look at nothing but the job and its user, of whom so many jobs
  // run and wait.
  template <class S>
  void look_at(const S& s, i64 j, i64 running, i64 waiting, const InTable& at) {
    move(at.first);
    jobs_.assign(1, j);
    list(s, at);
    if (sees_state_) state_.read_user(s, jobs_, running, waiting);
    for (Program& each : programs_) each.begin_pass(state_, {});
  }
  // Set a user alone, that of a job, for expressions that look at nothing else.
  template <class S>
  void look_at_user(const S& s, i64 j, i64 running, i64 waiting) {
    jobs_.assign(1, j);
    state_.read_user(s, jobs_, running, waiting);
  }
  double value_of_user(std::size_t k) { return programs_[k].score_of_state(state_); }
  // The values of an expression; -inf: NaN. Valid until the next call.
  const double* values(std::size_t k, const InTable& at) {
    const double* by_row = programs_[k].scores(
        {.jobs = rows_.jobs(), .waiting = &waiting_, .times = times(k, at), .now = &state_});
    values_.clear();
    for (const i64 j : jobs_) values_.push_back(by_row[rows_.of(j)]);
    return values_.data();
  }
  // The indices of n values, from the least to the greatest. Valid until the next call.
  const std::vector<std::size_t>& from_least(const double* values, std::size_t n) {
    order_.resize(n);
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::sort(order_, [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
    return order_;
  }

 private:
  const i64* times(std::size_t k, const InTable& at) const { return at.learned ? at.learned : told_[k].times; }
  void move(i64 first) {
    const i64 by = first - std::exchange(first_, first);
    if (by == 0) return;
    for (Expression& each : told_) each.each_column([by](auto& column) { column += by; });
    rows_.clear();
  }
  template <class S>
  void list(const S& s, const InTable& at) {
    rows_.begin(true);
    for (const i64 j : jobs_) rows_.list(j, s.job(j), at.learned ? at.learned[j] : 0);
    rows_.end();
    for (std::size_t k = 0; k < size(); ++k) programs_[k].follow(rows_, times(k, at), Program::no_runs);
    rows_.waits(s.time, s.model.ticks, waiting_);
  }
};

}  // namespace hpc
