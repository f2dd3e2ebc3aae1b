// Quotas on running or submitted jobs.
//
// A quota bounds one amount that jobs ask for. It has one or several counts, for example one for
// each user; a job belongs to one of them, or to none. A job that would exceed a count is passed
// over, as if it did not wait; one that asks for nothing of the amount never is. A quota may exempt
// a job: the job counts, but is never passed over.
//
// What a job has of an amount is its own until it ends. But of an amount that is weighed by time,
// such as GPU seconds, it has what it still may use by its requested time, beyond which no job
// runs. Time counts in steps: with one of 300 s, jobs have used at each time what they had used at
// the last multiple of 300 s. What has been used, and does not come back, is of spending.hpp.
#pragma once
#include <algorithm>
#include <optional>
#include <vector>

#include "../base/archive.hpp"
#include "../base/numbers.hpp"
#include "spending.hpp"

namespace hpc {

struct QuotaRules {
  // (n_jobs, n) the count of each quota for a job, -1: none, -2 - count: exempt
  const i64* counts = nullptr;
  i64 n = 0;                   // quotas
  const i64* asks = nullptr;   // (n_jobs, n_amounts) of jobs
  i64 n_amounts = 0;
  std::vector<i64> amounts;    // by quota: the amount that it bounds
  std::vector<i64> rates;      // by quota: the amount that each second uses up, -1: none
  std::vector<i64> of_cluster; // by quota, 1: what it bounds are licences that the cluster has
  i64 step = 1;                // [s] in which time counts
  std::vector<i64> left;       // by count: how much more may start, at the beginning
  std::vector<i64> greatest;   // by count that is weighed by time: the most that a job asks for; else 0
  std::vector<Spent> budgets; // by quota: what of use it bounds
  SpendingRules use;

  // Call f(column, width) for each column by job.
  template <class F>
  void each_column(F f) {
    f(counts, n), f(asks, n_amounts);
  }
};

class Quotas {
 public:
  explicit Quotas(const QuotaRules& rules) : rules_(&rules), left_(rules.left) {
    for (std::size_t k = 0; k < rules.rates.size(); ++k)
      weighs_time_ = weighs_time_ || (rules.rates[k] >= 0 && rules.budgets[k] == Spent::none);
    if (std::ranges::any_of(rules.budgets, [](Spent of) { return of != Spent::none; }))
      budgets_.emplace(rules.use);
    if (!weighs_time_) return;
    rate_.resize(left_.size()), since_.resize(left_.size());
    begun_.resize(left_.size());
    suspect_all();
  }

  void keep(Archive& a) {
    a(left_, rate_, since_, begun_, later_, budgets_);
    for (const Later& each : later_) a.check(is_between(each.count, 0, static_cast<i64>(left_.size()) - 1));
    if (weighs_time_) suspect_all();
  }
  i64 size() const { return rules_->n; }
  bool weighs_time() const { return weighs_time_; }
  bool has_budgets() const { return budgets_.has_value(); }
  // Take over what is left from quotas of other jobs; `place_of(j)`: a running job among these.
  template <class F>
  void take(const Quotas& other, F place_of) {
    if (budgets_) budgets_->take(*other.budgets_, place_of);
    left_ = other.left_, rate_ = other.rate_, since_ = other.since_;
    begun_ = other.begun_, later_ = other.later_;
    if (weighs_time_) suspect_all();
  }
  // Whether time alone may let a job start: some count may bar one now.
  bool may_open(i64 now) {
    std::erase_if(tight_, [&](i64 count) {
      const bool bars_none = left(count, now) >= rules_->greatest[index(count)];
      if (bars_none) is_tight_[index(count)] = false;
      return bars_none;
    });
    return !tight_.empty();
  }
  // Budgets count what has been used up to now.
  void count_to(i64 now) {
    if (budgets_) budgets_->count_to(now);
  }
  // [s] when a budget that bars a job now may have become less without an event.
  i64 next_change(i64 j, i64 now) const {
    i64 at = forever;
    for (i64 k = 0; k < rules_->n; ++k)
      if (is_budget(k) && bars(j, k, now))
        at = std::min(at, budgets_->next_change(rules_->counts[j * rules_->n + k], now));
    return at;
  }
  // Whether a job would exceed this quota now.
  bool bars(i64 j, i64 quota, i64 now) const {
    const i64 count = rules_->counts[j * rules_->n + quota];
    if (count < 0 || is_loose(count, quota)) return false;
    const i64 asked = asks(j, rules_->amounts, quota);
    return asked > 0 && left_of(count, quota, now) < asked;
  }
  // Whether a job would exceed any quota. Quotas of submitted jobs need no times, here and below: none
  // of their amounts is weighed by them.
  bool bar(i64 j, i64 now = 0) const {
    for (i64 k = 0; k < rules_->n; ++k)
      if (bars(j, k, now)) return true;
    return false;
  }
  // The least that would be left by these quotas if a job started now, as a share of their bounds,
  // -1 to 1: negative if it may not. 1 if none holds for it. Bounds are those of an empty machine.
  double left_by(i64 j, i64 now) const {
    double least = 1;
    for (i64 k = 0; k < rules_->n; ++k) {
      const i64 count = rules_->counts[j * rules_->n + k], asked = asks(j, rules_->amounts, k);
      if (count < 0 || asked == 0) continue;
      const auto bound = static_cast<double>(std::max(rules_->left[index(count)], i64{1}));
      least = std::min(least, static_cast<double>(left_of(count, k, now) - asked) / bound);
    }
    return std::max(least, -1.0);
  }
  // Whether a job lacks a licence of the cluster.
  bool lacks_licence(i64 j, i64 now) const {
    for (i64 k = 0; k < rules_->n; ++k)
      if (rules_->of_cluster[index(k)] && bars(j, k, now)) return true;
    return false;
  }
  // [s] when a job that is barred now comes to be barred no more, by time alone, if that is before a
  // time; else that time or later.
  i64 opens(i64 j, i64 now, i64 before) const {
    i64 at = -1;
    for (i64 k = 0; k < rules_->n; ++k) {
      const i64 count = rules_->counts[j * rules_->n + k];
      if (!bars(j, k, now)) continue;
      if (rules_->rates[index(k)] < 0 || is_budget(k)) return forever;
      const i64 asked = asks(j, rules_->amounts, k);
      // most often it stays barred, which a product tells
      const bool is_steady = later_.empty() && before < forever;
      if (is_steady && left_by_rate(index(count), before - 1) < asked) return before;
      at = std::max(at, reaches(count, asked, now));
    }
    return at < 0 ? forever : at;
  }
  // A job begins to run, or goes on. What it had run before, `ran` [s], counts as if it began so much
  // earlier; it may begin later than now, when its processors are on.
  void begun(i64 j, i64 start = 0, i64 now = 0, i64 ran = 0) {
    each_budget(j, [&](i64 count, i64 asked, i64 rate) {
      budgets_->begun(j, count, asked - rate * ran, rate, start + ran, now);
    });
    each_count(j, [&](std::size_t count, i64 asked, i64 rate) {
      left_[count] -= asked;
      if (rate == 0) return;
      suspect(count);
      if (start <= now) return uses(count, rate, start, now);
      turn(count, 0, now);
      const Later run{start, static_cast<i64>(count), rate};
      later_.insert(std::ranges::upper_bound(later_, start, {}, &Later::start), run);
    });
  }
  // It has ended, was stopped, or is suspended.
  void ended(i64 j, i64 start = 0, i64 now = 0) {
    if (budgets_) budgets_->ended(j, now);
    each_count(j, [&](std::size_t count, i64 asked, i64 rate) {
      left_[count] += asked;
      if (rate == 0) return;
      turn(count, 0, now);
      const auto at = std::ranges::find(later_, Later{start, static_cast<i64>(count), rate});
      if (at != later_.end()) later_.erase(at);
      else uses(count, -rate, start, now);
    });
  }
  // While it is suspended it keeps (-1), and does not any more (1), what it had not used in so long.
  void kept(i64 j, i64 sign, i64 ran) {
    each_budget(j, [&](i64 count, i64 asked, i64 rate) {
      budgets_->kept(count, -sign * (asked - rate * ran));
    });
    each_count(j, [&](std::size_t count, i64 asked, i64 rate) {
      left_[count] += sign * (asked - rate * ran);
      if (rate > 0) suspect(count);
    });
  }

 private:
  struct Later {
    i64 start, count, rate;  // [s], and what each second uses up from then on
    bool operator==(const Later&) const = default;
  };
  // Runs that have begun since the last step: `left_` and `rate_` have them as from the next step on,
  // as if they had used less than nothing up to the last one.
  struct Begun {
    i64 step = -1, less = 0;  // [s] the last step, and how much less
  };
  const QuotaRules* rules_;
  bool weighs_time_ = false;
  std::optional<Spending> budgets_;
  std::vector<i64> left_;          // by count, at `since_`
  std::vector<i64> rate_, since_;  // by count, if some are weighed by time
  std::vector<Begun> begun_;       // by count, the same
  std::vector<Later> later_;       // runs that had not begun when their count was looked at, by start
  std::vector<i64> tight_;         // counts that may bar a job by time
  std::vector<bool> is_tight_;     // by count, whether it is among these

  // Whether a quota weighs time and is known to bar no job of this count.
  bool is_loose(i64 count, i64 quota) const {
    return weighs_time_ && rules_->rates[index(quota)] >= 0 && !is_budget(quota) && !is_tight_[index(count)];
  }
  void suspect(std::size_t count) {
    if (is_tight_[count]) return;
    is_tight_[count] = true;
    tight_.push_back(static_cast<i64>(count));
  }
  void suspect_all() {
    is_tight_.assign(left_.size(), false);
    tight_.clear();
    for (std::size_t count = 0; count < left_.size(); ++count) suspect(count);
  }

  i64 asks(i64 j, const std::vector<i64>& amounts, i64 quota) const {
    return rules_->asks[j * rules_->n_amounts + amounts[index(quota)]];
  }
  // [s] up to which time has counted
  i64 seen(i64 now) const { return rules_->step == 1 ? now : now - now % rules_->step; }
  i64 left_by_rate(std::size_t count, i64 step) const {
    return left_[count] + rate_[count] * (step - since_[count]);
  }
  bool is_budget(i64 quota) const { return rules_->budgets[index(quota)] != Spent::none; }
  i64 left_of(i64 count, i64 quota, i64 now) const {
    if (!is_budget(quota)) return left(count, now);
    return left_[index(count)] - budgets_->had(count, rules_->budgets[index(quota)], now);
  }
  i64 left(i64 count, i64 now) const {
    const std::size_t c = index(count);
    if (!weighs_time_) return left_[c];
    now = seen(now);
    i64 found = left_by_rate(c, now) - (begun_[c].step == now ? begun_[c].less : 0);
    for (const Later& each : later_)
      if (each.count == count && each.start < now) found += each.rate * (now - each.start);
    return found;
  }
  // [s] when so much is left that is not left now, if no job starts or ends.
  i64 reaches(i64 count, i64 asked, i64 now) const {
    i64 at = seen(now), missing = asked - left_by_rate(index(count), at), rate = rate_[index(count)];
    for (const Later& each : later_) {
      if (each.count != count) continue;
      if (each.start > at) {
        if (rate * (each.start - at) >= missing) break;
        missing -= rate * (each.start - at), at = each.start;
      } else {
        missing -= each.rate * (at - each.start);
      }
      rate += each.rate;
    }
    if (rate == 0) return forever;
    at += (missing + rate - 1) / rate;
    return (at + rules_->step - 1) / rules_->step * rules_->step;
  }
  // A run that has begun uses up so much of a count each second; negative: it did, and ends.
  void uses(std::size_t count, i64 rate, i64 start, i64 now) {
    turn(count, rate, now);
    left_[count] += rate * (since_[count] - start);
    if (start <= since_[count]) return;
    Begun& begun = begun_[count];
    if (begun.step != since_[count]) begun = {since_[count], 0};
    begun.less += rate * (since_[count] - start);
  }
  // From the last step on each second uses up more of a count.
  void turn(std::size_t count, i64 rate, i64 now) {
    now = seen(now);
    const auto counting = std::ranges::upper_bound(later_, now, {}, &Later::start);
    for (auto each = later_.begin(); each != counting; ++each) {
      const std::size_t c = index(each->count);
      left_[c] += each->rate * (since_[c] - each->start), rate_[c] += each->rate;
    }
    later_.erase(later_.begin(), counting);
    left_[count] += rate_[count] * (now - since_[count]);
    rate_[count] += rate, since_[count] = now;
  }
  // Call f(count, asked, rate) for each budget that a job counts in.
  template <class F>
  void each_budget(i64 j, F f) {
    for (i64 k = 0; budgets_ && k < rules_->n; ++k) {
      const i64 count = rules_->counts[j * rules_->n + k];
      if (!is_budget(k) || count == -1) continue;
      if (const i64 rate = asks(j, rules_->rates, k); rate > 0)
        f(count < 0 ? -2 - count : count, asks(j, rules_->amounts, k), rate);
    }
  }
  // Call f(count, asked, rate) for each count of a job, other than of budgets.
  template <class F>
  void each_count(i64 j, F f) {
    for (i64 k = 0; k < rules_->n; ++k) {
      i64 count = rules_->counts[j * rules_->n + k];
      if (count == -1 || is_budget(k)) continue;
      if (count < 0) count = -2 - count;
      f(index(count), asks(j, rules_->amounts, k),
        weighs_time_ && rules_->rates[index(k)] >= 0 ? asks(j, rules_->rates, k) : 0);
    }
  }
};

}  // namespace hpc
