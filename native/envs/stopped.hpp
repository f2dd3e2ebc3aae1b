// Reward terms with preemption, where a start is not final.
//
// Sums are over all jobs of the episode in the present schedule, as if no running job was to be
// stopped. A step adds their change, so that all steps add up to the sums of the final schedule.
// `row.owed` has the sums so far.
#pragma once
#include <algorithm>
#include <utility>

#include "moving.hpp"
#include "records.hpp"

namespace hpc {

template <class S>
class StoppedJobs {
  const S& s;
  const Row& row;
  Episode& p;
  const Paid paid;

 public:
  StoppedJobs(const S& simulator, const Row& r, Paid when)
      : s(simulator), row(r), p(*r.episode), paid(when) {}

  // No job of the episode has been paid yet.
  void begin() {
    if (paid != Paid::at_end) return;
    for (p.unpaid = 0; p.unpaid < p.jobs; ++p.unpaid) row.unpaid[p.unpaid] = p.unpaid;
  }
  // Count the jobs that have not ended; none once no job can be stopped any more.
  void count_open() {
    p.open = 0;
    if (all_started(s) && s.stops->suspended.empty()) return;
    for (i64 j = 0; j < p.jobs; ++j) p.open += !has_ended(j);
  }
  // Add the changes of slowdowns and waits; return that of processor seconds.
  double pay() {
    if (paid == Paid::at_end) note_gone();
    double sums[n_terms] = {};
    add_up(sums);
    for (const Term term : {bsld, waited, max_wait})
      row.terms[term] += sums[term] - std::exchange(row.owed[term], sums[term]);
    const double seconds = processor_seconds();
    return seconds - std::exchange(row.owed[energy], seconds);
  }

 private:
  bool is_suspended(i64 j) const {
    const auto& all = s.stops->suspended;
    return std::any_of(all.begin(), all.end(), [j](const auto& own) { return own.job == j; });
  }
  bool has_ended(i64 j) const {
    const i64 start = s.of(j).start;
    return start >= 0 && start + s.run_time(j) <= s.time && !is_suspended(j);
  }
  // A waiting job counts with slowdown and wait as if it started now.
  void add_up(double* sums) const {
    for (i64 j = 0; j < s.next; ++j) {
      const Job& job = s.job(j);
      i64 start = s.of(j).start;
      if (start < 0) {
        if (paid != Paid::while_waiting) continue;
        start = s.time;
      } else {
        sums[max_wait] = std::max(sums[max_wait], static_cast<double>(start - job.submit));
        if (paid == Paid::at_end && p.ended == 0 && !has_ended(j)) continue;
      }
      sums[bsld] += bsld_of(job, start);
      sums[waited] += static_cast<double>(start - job.submit);
    }
  }
  // Busy processor seconds of the present schedule.
  double processor_seconds() const {
    auto seconds = static_cast<double>(wasted_seconds(s));
    for (i64 j = 0; j < s.next; ++j)
      if (s.of(j).start >= 0)
        seconds += static_cast<double>(s.job(j).processors) * static_cast<double>(s.run_time(j));
    return seconds;
  }
  // Note the jobs that have ended since the last step; at the end of the episode, all jobs.
  void note_gone() {
    i64 kept = 0;
    for (i64 i = 0; i < p.unpaid; ++i) {
      const i64 j = row.unpaid[i], start = s.of(j).start;
      if (start >= 0 && (p.ended == 1 || has_ended(j))) {
        row.gone[p.gone] = j;
        row.gone_bsld[p.gone++] = bsld_of(s.as_it_runs(j), start);
      } else {
        row.unpaid[kept++] = j;
      }
    }
    p.unpaid = kept;
  }
};

}  // namespace hpc
