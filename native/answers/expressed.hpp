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

class Expressed {
  std::vector<Expression> told_;  // for the jobs of a simulation
  std::vector<Program> programs_;
  State state_;
  bool sees_state_ = false;
  i64 first_ = 0;  // the row of the first of these jobs
  std::vector<i64> jobs_, line_;
  std::vector<double> waiting_;  // [s]
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
  // Set the jobs of a simulation; the row of its first job is `first`.
  template <class S>
  void look(S& s, std::span<const i64> jobs, i64 first) {
    move(first);
    jobs_.assign(jobs.begin(), jobs.end());
    waiting_.resize(jobs_.size());
    double* waiting = waiting_.data();
    for (const i64 j : jobs_)
      *waiting++ = static_cast<double>(s.time - s.job(j).submit) / static_cast<double>(s.model.ticks);
    if (!sees_state_) return;
    line_.clear();
    s.queue.jobs.each([&](const Entry& e) { line_.push_back(e.job); });
    for (i64 j = s.next - s.arrived; j < s.next; ++j) line_.push_back(j);
    state_.read(s, jobs_, waiting_, line_, told_.front().clock);
  }
  // Set one job, for expressions that look at nothing but the job and its user, of whom so many jobs
  // run and wait.
  template <class S>
  void look_at(const S& s, i64 j, i64 first, i64 running, i64 waiting) {
    move(first);
    jobs_.assign(1, j);
    if (sees_state_) state_.read_user(s, jobs_, running, waiting);
  }
  // The values of an expression; -inf: NaN. Valid until the next call. `learned`: [s] by job, the
  // run times that policies see, if learned, else nullptr.
  const double* values(std::size_t k, const i64* learned) {
    return programs_[k].values_of(jobs_, waiting_, learned ? learned : told_[k].times, state_);
  }
  // The indices of n values, from the least to the greatest. Valid until the next call.
  const std::vector<std::size_t>& from_least(const double* values, std::size_t n) {
    order_.resize(n);
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::sort(order_, [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
    return order_;
  }

 private:
  void move(i64 first) {
    const i64 by = first - std::exchange(first_, first);
    if (by == 0) return;
    for (Expression& each : told_) each.move(by);
    for (Program& each : programs_) each.moved();
  }
};

}  // namespace hpc
