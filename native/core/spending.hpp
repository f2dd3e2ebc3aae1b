// Budgets: quotas of what jobs have used, alone or with what running jobs still may use.
//
// What a job has run counts after the second of each multiple of a period, and as it stops. So many seconds s count as
// s f^s, where f is what is left of use after a second; at each multiple what was used before is
// multiplied by f^period first. Of a job that stops, the seconds since the last multiple count at
// once, and are forgotten as if they had been used then. Slurm does so: `_apply_new_usage` and
// `_apply_decay` in priority_multifactor.c of 22.05. Amounts are in seconds, and looked at in whole
// minutes.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "../base/archive.hpp"
#include "../base/elementary.hpp"
#include "../base/numbers.hpp"

namespace hpc {

struct SpendingRules {
  std::vector<i64> half_lives;  // [s] by count, 0: nothing is forgotten
  i64 period = 300;             // [s]
  std::vector<double> before;   // by count, what was used by jobs that ended before; or empty
  i64 before_at = 0;            // [s] the multiple of the period as of which it is
};

// What of use a budget bounds: that alone, or with what running jobs still may use.
enum class Spent : i64 { none, used, in_all };

class Spending {
 public:
  explicit Spending(const SpendingRules& rules) : rules_(&rules) {
    const std::size_t n = rules.half_lives.size();
    used_.resize(n), ahead_.resize(n), fade_.resize(n, 1.0), log2_of_second_.resize(n);
    for (std::size_t c = 0; c < n; ++c) {
      if (rules.half_lives[c] == 0) continue;
      // about 2^(-1 / half-life), as Slurm has it
      log2_of_second_[c] = elementary::log2(1.0 - 0.693 / static_cast<double>(rules.half_lives[c]));
      fade_[c] = left_after(c, rules.period);
    }
  }
  void keep(Archive& a) {
    a(used_, ahead_, runs_, counted_);
    for (const Run& run : runs_) a.check(is_between(run.count, 0, static_cast<i64>(used_.size()) - 1));
  }
  // Take over what has been used from budgets of other jobs; `place_of(j)`: a job among these.
  template <class F>
  void take(const Spending& other, F place_of) {
    used_ = other.used_, ahead_ = other.ahead_, runs_ = other.runs_, counted_ = other.counted_;
    for (Run& run : runs_) run.job = place_of(run.job);
  }
  // Count up to the last multiple before now.
  void count_to(i64 now) {
    const i64 last = last_before(now);
    while (counted_ < last) {
      const bool comes = !rules_->before.empty() && counted_ < rules_->before_at;
      const i64 all_at_once = comes ? std::min(last, rules_->before_at) : last;
      step(is_still() ? all_at_once : counted_ + rules_->period);
    }
  }
  // [s] what a budget has of a count, as whole minutes.
  i64 had(i64 count, Spent of, i64 now) const {
    if (counted_ < last_before(now)) {
      Spending then(*this);
      then.count_to(now);
      return then.had(count, of, now);
    }
    const std::size_t c = index(count);
    const i64 used = static_cast<i64>(std::floor(used_[c] / 60)) * 60;
    return of == Spent::in_all ? used + floor_div(ahead_[c], 60) * 60 : used;
  }
  // [s] after the next multiple, if what a budget has of a count may become less there without an event.
  i64 next_change(i64 count, i64 now) const {
    const bool fades = rules_->half_lives[index(count)] > 0 && used_[index(count)] > 0;
    const auto is_of_count = [&](const Run& run) { return run.count == count; };
    if (!fades && std::ranges::none_of(runs_, is_of_count)) return forever;
    return last_before(now) + rules_->period + 1;
  }
  // A job runs from a time on, now or later; it may use so much of a count, and does so each second.
  void begun(i64 j, i64 count, i64 may_use, i64 rate, i64 start, i64 now) {
    count_to(now);
    ahead_[index(count)] += may_use;
    runs_.push_back({j, count, may_use, rate, start});
  }
  // It runs no more.
  void ended(i64 j, i64 now) {
    count_to(now);
    std::erase_if(runs_, [&](const Run& run) {
      if (run.job != j) return false;
      const std::size_t c = index(run.count);
      const i64 begin = std::max(run.start, counted_);
      if (now > begin) used_[c] += weighed(c, run.rate, now - begin);
      ahead_[c] -= run.may_use - run.rate * std::max(counted_ - run.start, i64{0});
      return true;
    });
  }
  // It still may use so much more of a count, though it does not run.
  void kept(i64 count, i64 may_use) { ahead_[index(count)] += may_use; }

 private:
  struct Run {
    i64 job, count, may_use, rate, start;
  };
  static constexpr double nothing_left = 1e-9;  // [s]

  const SpendingRules* rules_;
  std::vector<double> used_;  // by count, as of the last multiple
  std::vector<i64> ahead_;    // by count, what running jobs still may use
  std::vector<Run> runs_;     // in the order in which they began
  i64 counted_ = -forever;    // [s] the last multiple that has counted
  std::vector<double> fade_, log2_of_second_;  // by count, of a period and a second

  i64 last_before(i64 now) const { return floor_div(now - 1, rules_->period) * rules_->period; }
  double left_after(std::size_t c, i64 seconds) const {
    return elementary::exp2(static_cast<double>(seconds) * log2_of_second_[c]);
  }
  double weighed(std::size_t c, i64 rate, i64 seconds) const {
    const auto used = static_cast<double>(rate * seconds);
    return rules_->half_lives[c] == 0 ? used : used * left_after(c, seconds);
  }
  // Whether nothing runs, and nothing is forgotten.
  bool is_still() const {
    if (!runs_.empty()) return false;
    for (std::size_t c = 0; c < used_.size(); ++c)
      if (rules_->half_lives[c] > 0 && used_[c] > 0) return false;
    return true;
  }
  void step(i64 multiple) {
    for (std::size_t c = 0; c < used_.size(); ++c) {
      used_[c] *= fade_[c];
      if (used_[c] < nothing_left) used_[c] = 0;
    }
    for (const Run& run : runs_) {
      const i64 seconds = multiple - std::max(run.start, counted_);
      if (seconds <= 0) continue;
      used_[index(run.count)] += weighed(index(run.count), run.rate, seconds);
      ahead_[index(run.count)] -= run.rate * seconds;
    }
    counted_ = multiple;
    if (!rules_->before.empty() && multiple == rules_->before_at)
      for (std::size_t c = 0; c < used_.size(); ++c) used_[c] += rules_->before[c];
  }
};

}  // namespace hpc
