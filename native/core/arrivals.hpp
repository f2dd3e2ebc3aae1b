// Submissions whose times the schedule decides: jobs that come once other jobs have ended.
//
// Dependent jobs are due after the jobs that they follow have ended. Jobs that would exceed a quota
// of submitted jobs wait outside the queue until other jobs under that quota have ended. If a
// simulation has such rules, all jobs come from here; the others come at the times of the log.
#pragma once
#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "../base/archive.hpp"
#include "quotas.hpp"

namespace hpc {

struct Due {
  i64 time;  // [s]
  i64 job;
  // of equal times the earlier in the log first: in a heap, the last in order
  friend bool operator<(const Due& a, const Due& b) {
    return std::pair(a.time, a.job) > std::pair(b.time, b.job);
  }
};
// Which jobs follow which, for the jobs of several episodes.
struct Links {
  std::vector<i64> first, followers;  // as of ArrivalRules
  const i64* think;    // [s] by job; -1: the gap in the log
  const i64* log_end;  // [s] when jobs ended in the log, -1: unknown
};
struct ArrivalRules {
  bool moves = false;                // all jobs come from here
  i64 second = 1;                    // ticks of the clock: jobs come at whole seconds
  std::vector<i64> first;            // (n_jobs + 1,) begin of each job's `followers`, or (0,)
  std::vector<i64> followers;        // jobs, grouped by the job that they follow
  std::vector<i64> left;             // by job: how many of the jobs that it follows have not ended
  std::vector<i64> think;            // [s] by job, from the last of those ends to the submission
  std::shared_ptr<const Links> links;  // of all episodes, if this is to be a part of them
  const i64* earliest = nullptr;     // [s] by job: earliest submission
  std::array<bool, 2> by_arrival{};  // whether an order is by arrival
  QuotaRules places;                 // quotas of queued and running jobs

  // Keep only the jobs of some rows. A job followed from outside these rows never ends here, so
  // such links are dropped.
  template <class Job>
  void take_part(i64 row, i64 n, const Job* jobs) {
    places.each_column([row](auto& column, i64 width) { column += row * width; });
    earliest += row;
    left.assign(index(n), 0), think.resize(index(n)), first.resize(index(n) + 1);
    std::vector<i64> latest(index(n), -forever);  // [s] the last end of the jobs that it follows
    for (i64 other = 0; other < n; ++other) {
      first[index(other)] = static_cast<i64>(followers.size());
      for (i64 k = links->first[index(row + other)]; k < links->first[index(row + other) + 1]; ++k) {
        const i64 j = links->followers[index(k)] - row, end = links->log_end[row + other];
        if (j < 0 || j >= n) continue;
        followers.push_back(j);
        ++left[index(j)];
        latest[index(j)] = end < 0 ? forever : std::max(latest[index(j)], end);
      }
    }
    first[index(n)] = static_cast<i64>(followers.size());
    for (i64 j = 0; j < n; ++j) {
      const i64 told = links->think[row + j], last = latest[index(j)];
      const i64 between = last < forever ? std::max(jobs[j].submit - last, i64{0}) : 0;
      think[index(j)] = told >= 0 ? told : between;
    }
  }
};

class Arrivals {
 public:
  bool alone = false;  // this pass has no other reason than jobs that are due

  // Jobs that follow none come at the times of the log.
  template <class Jobs>
  Arrivals(const ArrivalRules& rules, const Jobs& jobs, i64 n_jobs)
      : rules_(&rules), left_(rules.left), places_(rules.places) {
    for (i64 j = 0; j < n_jobs; ++j)
      if (left_[index(j)] == 0) push(jobs[j].submit, j);
  }

  void keep(Archive& a) {
    a(alone, left_, outside_, places_, one_, lined_up_, followed_, ended_, again_, leaving_, left_at_,
      made_room_);
    a.resized(coming_);
    a.check_jobs(coming_), a.check_jobs(outside_), a.check_jobs(leaving_);
  }
  // Whether it has looked at no more jobs than have ended, and are outside.
  bool is_within(std::size_t n_ended) const {
    return followed_ <= n_ended && ended_ <= n_ended && lined_up_ <= outside_.size();
  }
  i64 next() const {  // [s]
    const i64 at = std::min(again_, next_due());
    return leaving_.empty() || outside_.empty() ? at : std::min(at, left_at_);
  }
  // A cancelled job makes room for others a second later, not in this pass.
  void cancelled(i64 j, i64 now) {
    leave(now);
    leaving_.push_back(j);
    left_at_ = now + 1;
  }

  // Begin with the first jobs of the log in the queue or running: they count, even if they exceed a
  // quota of submitted jobs.
  void begin(i64 number) {
    std::erase_if(coming_, [number](const Due& due) { return due.job < number; });
    std::make_heap(coming_.begin(), coming_.end());
    for (i64 j = 0; j < number; ++j) places_.begun(j);
  }

  // Whether jobs may come now, as far as is known before the pass. `log`: jobs in the order of
  // their ends.
  bool may_come(i64 now, const std::vector<i64>& log) const {
    return !outside_.empty() || next_due() <= now || (!rules_->first.empty() && followed_ < log.size());
  }
  // The jobs that are due and still outside the queue.
  const std::vector<i64>& line_up(i64 now, const std::vector<i64>& log) {
    leave(now);
    for (; !rules_->first.empty() && followed_ < log.size(); ++followed_) follow(log[followed_], now);
    for (; next_due() <= now; ++lined_up_) {
      outside_.push_back(coming_.front().job);
      std::pop_heap(coming_.begin(), coming_.end());
      coming_.pop_back();
    }
    return outside_;
  }
  // Let the jobs that are due come, as far as quotas allow; call f(job) for each. Return whether a
  // pass is due.
  template <class F>
  bool come(i64 now, const std::vector<i64>& log, F f) {
    line_up(now, log);
    again_ = outside_.empty() || !has_room(log) ? forever : whole(now);
    if (now < again_ && again_ < forever) return !alone;
    again_ = forever;
    // jobs already outside keep waiting unless a job has ended
    std::size_t k = has_room(log) ? 0 : outside_.size() - lined_up_;
    lined_up_ = 0;
    make_room(log);
    const std::size_t before = outside_.size();
    std::size_t left = k;
    for (; k < before; ++k) {
      const i64 j = outside_[k];
      if (places_.bar(j)) {
        outside_[left++] = j;
        continue;
      }
      places_.begun(j);
      f(j);
    }
    outside_.resize(left);
    return !alone || left < before;
  }
  // Which of the jobs outside come in the next pass. `one`: each has a pass of its own.
  std::vector<i64> coming(const std::vector<i64>& log, bool one) const {
    if (one && !one_) return {};
    if (one) return {outside_[outside_.size() - lined_up_]};
    Quotas places = places_;
    for (std::size_t k = ended_; k < log.size(); ++k) places.ended(log[k]);
    std::vector<i64> found;
    for (std::size_t k = has_room(log) ? 0 : outside_.size() - lined_up_; k < outside_.size(); ++k) {
      if (places.bar(outside_[k])) continue;
      places.begun(outside_[k]);
      found.push_back(outside_[k]);
    }
    return found;
  }
  // Where each job has a pass of its own: whether one comes now, in the next pass.
  bool one_comes(i64 now, const std::vector<i64>& log) {
    line_up(now, log);
    if (has_room(log)) lined_up_ = outside_.size();
    make_room(log);
    for (; lined_up_ > 0; --lined_up_)
      if (!places_.bar(outside_[outside_.size() - lined_up_])) return one_ = true;
    return false;
  }
  // Let that job come, if there is one.
  template <class F>
  void let_one_come(F f) {
    if (!std::exchange(one_, false)) return;
    const auto at = outside_.end() - static_cast<std::ptrdiff_t>(lined_up_--);
    const i64 j = *at;
    outside_.erase(at);
    places_.begun(j);
    f(j);
  }

 private:
  const ArrivalRules* rules_;
  std::vector<i64> left_;
  std::vector<Due> coming_;   // a heap
  std::vector<i64> outside_;  // jobs that are due, in that order
  Quotas places_;
  bool one_ = false;          // the first of the lined-up jobs comes in the next pass
  std::size_t lined_up_ = 0;  // how many of the last in `outside_` have not been checked yet
  std::size_t followed_ = 0;  // ended jobs whose followers have been counted
  std::size_t ended_ = 0;     // jobs that have made room for others
  i64 again_ = forever;       // [s] when jobs outside are checked next, since jobs have ended
  std::vector<i64> leaving_;  // cancelled jobs, which count up to `left_at_`
  i64 left_at_ = 0;           // [s]
  bool made_room_ = false;    // some of these have left since the jobs outside were last checked

  i64 next_due() const { return coming_.empty() ? forever : coming_.front().time; }
  // Whether jobs have made room since the jobs outside were last checked.
  bool has_room(const std::vector<i64>& log) const { return made_room_ || ended_ < log.size(); }
  void make_room(const std::vector<i64>& log) {
    for (; ended_ < log.size(); ++ended_) places_.ended(log[ended_]);
    made_room_ = false;
  }
  void leave(i64 now) {
    if (leaving_.empty() || now < left_at_) return;
    for (const i64 j : leaving_) places_.ended(j);
    leaving_.clear();
    made_room_ = true;
  }
  // This time, or the next whole second.
  i64 whole(i64 time) const {
    const i64 over = time % rules_->second;
    return over == 0 ? time : time - over + rules_->second;
  }
  void push(i64 time, i64 j) {
    coming_.push_back({time, j});
    std::push_heap(coming_.begin(), coming_.end());
  }
  void follow(i64 other, i64 now) {
    for (i64 k = rules_->first[index(other)]; k < rules_->first[index(other + 1)]; ++k) {
      const i64 j = rules_->followers[index(k)];
      const i64 due = whole(now + rules_->think[index(j)]);
      if (--left_[index(j)] == 0) push(std::max(rules_->earliest[j], due), j);
    }
  }
};

}  // namespace hpc
