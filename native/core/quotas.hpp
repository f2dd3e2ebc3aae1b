// Quotas on running or submitted jobs.
//
// A quota has one or several counts, for example one for each user; a job belongs to one of them,
// or to none. A job that would exceed a count is passed over, as if it did not wait. A quota may
// exempt a job: the job counts, but is never passed over.
#pragma once
#include <vector>

#include "../base/archive.hpp"
#include "../base/numbers.hpp"

namespace hpc {

struct Bound {  // of a count: how much more may start
  i64 jobs, processors;
};
struct QuotaRules {
  // (n_jobs, n) the count of each quota for a job, -1: none, -2 - count: exempt
  const i64* counts = nullptr;
  i64 n = 0;                    // quotas
  const i64* processors = nullptr;  // by job
  std::vector<Bound> left;          // by count, at the beginning
  bool spent = true;                // running jobs at the beginning have been subtracted

  void move(i64 row) { counts += row * n, processors += row; }  // to the jobs from `row` on
};

class Quotas {
 public:
  explicit Quotas(const QuotaRules& rules) : left(rules.left), rules_(&rules) {}

  std::vector<Bound> left;  // by count

  void keep(Archive& a) { a(left); }
  i64 size() const { return rules_->n; }
  // Whether a job would exceed this quota now.
  bool bars(i64 j, i64 quota) const {
    const i64 count = rules_->counts[j * rules_->n + quota];
    if (count < 0) return false;
    const Bound& bound = left[index(count)];
    return bound.jobs < 1 || bound.processors < rules_->processors[j];
  }
  // Whether a job would exceed any quota.
  bool bar(i64 j) const {
    for (i64 k = 0; k < rules_->n; ++k)
      if (bars(j, k)) return true;
    return false;
  }
  void begun(i64 j) { note(j, -1); }
  void ended(i64 j) { note(j, 1); }

 private:
  const QuotaRules* rules_;

  void note(i64 j, i64 sign) {
    for (i64 k = 0; k < rules_->n; ++k) {
      i64 count = rules_->counts[j * rules_->n + k];
      if (count == -1) continue;
      if (count < 0) count = -2 - count;
      left[index(count)].jobs += sign;
      left[index(count)].processors += sign * rules_->processors[j];
    }
  }
};

}  // namespace hpc
