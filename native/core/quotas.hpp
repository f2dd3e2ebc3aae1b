// Quotas on running or submitted jobs.
//
// A quota bounds one amount that jobs ask for. It has one or several counts, for example one for
// each user; a job belongs to one of them, or to none. A job that would exceed a count is passed
// over, as if it did not wait; one that asks for nothing of the amount never is. A quota may exempt
// a job: the job counts, but is never passed over.
#pragma once
#include <algorithm>
#include <vector>

#include "../base/archive.hpp"
#include "../base/numbers.hpp"

namespace hpc {

struct QuotaRules {
  // (n_jobs, n) the count of each quota for a job, -1: none, -2 - count: exempt
  const i64* counts = nullptr;
  i64 n = 0;                   // quotas
  const i64* asks = nullptr;   // (n_jobs, n_amounts) of jobs
  i64 n_amounts = 0;
  std::vector<i64> amounts;    // by quota: the amount that it bounds
  std::vector<i64> left;       // by count: how much more may start, at the beginning
  bool spent = true;           // running jobs at the beginning have been subtracted

  void move(i64 row) { counts += row * n, asks += row * n_amounts; }  // to the jobs from `row` on
};

class Quotas {
 public:
  explicit Quotas(const QuotaRules& rules) : left(rules.left), rules_(&rules) {}

  std::vector<i64> left;  // by count

  void keep(Archive& a) { a(left); }
  i64 size() const { return rules_->n; }
  // Whether a job would exceed this quota now.
  bool bars(i64 j, i64 quota) const {
    const i64 count = rules_->counts[j * rules_->n + quota];
    if (count < 0) return false;
    const i64 asked = asks(j, quota);
    return asked > 0 && left[index(count)] < asked;
  }
  // Whether a job would exceed any quota.
  bool bar(i64 j) const {
    for (i64 k = 0; k < rules_->n; ++k)
      if (bars(j, k)) return true;
    return false;
  }
  // The least that would be left by these quotas if a job started now, as a share of their bounds,
  // -1 to 1: negative if it may not. 1 if none holds for it. Bounds are those of an empty machine.
  double left_by(i64 j) const {
    double least = 1;
    for (i64 k = 0; k < rules_->n; ++k) {
      const i64 count = rules_->counts[j * rules_->n + k], asked = asks(j, k);
      if (count < 0 || asked == 0) continue;
      const auto bound = static_cast<double>(std::max(rules_->left[index(count)], i64{1}));
      least = std::min(least, static_cast<double>(left[index(count)] - asked) / bound);
    }
    return std::max(least, -1.0);
  }
  void begun(i64 j) { note(j, -1); }
  void ended(i64 j) { note(j, 1); }

 private:
  const QuotaRules* rules_;

  i64 asks(i64 j, i64 quota) const {
    return rules_->asks[j * rules_->n_amounts + rules_->amounts[index(quota)]];
  }
  void note(i64 j, i64 sign) {
    for (i64 k = 0; k < rules_->n; ++k) {
      i64 count = rules_->counts[j * rules_->n + k];
      if (count == -1) continue;
      if (count < 0) count = -2 - count;
      left[index(count)] += sign * asks(j, k);
    }
  }
};

}  // namespace hpc
