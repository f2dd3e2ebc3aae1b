// Quotas: what may run at once, or be submitted at once.
//
// A quota has one or several counts, as one for each user; a job is in one of them, or in none. A
// job that would exceed one is passed over, as if it did not wait; unless the quota spares it: then
// the job counts, and may begin all the same.
#pragma once
#include <vector>

#include "../base/archive.hpp"
#include "../base/numbers.hpp"

namespace hpc {

struct Bound {  // of a count: how much more may start
  i64 jobs, processors;
};
struct QuotaRules {
  // (n_jobs, n) the count of each quota that a job is in, -1: none, -2 - count: it is spared
  const i64* counts = nullptr;
  i64 n = 0;                    // quotas
  const i64* processors = nullptr;  // by job
  std::vector<Bound> left;          // by count, at the beginning
  bool spent = true;                // jobs that run then have been taken off

  void move(i64 row) { counts += row * n, processors += row; }  // to jobs from there on
};

class Quotas {
 public:
  explicit Quotas(const QuotaRules& rules) : left(rules.left), rules_(&rules) {}

  std::vector<Bound> left;  // by count

  void keep(Archive& a) { a(left); }
  i64 size() const { return rules_->n; }
  // Whether a job would exceed one of them now.
  bool bars(i64 j, i64 quota) const {
    const i64 count = rules_->counts[j * rules_->n + quota];
    if (count < 0) return false;
    const Bound& bound = left[index(count)];
    return bound.jobs < 1 || bound.processors < rules_->processors[j];
  }
  // Whether it would exceed any.
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
