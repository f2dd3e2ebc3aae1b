// Preemption: before each pass, jobs that may stop others are served first.
//
// Groups of jobs have levels: a group may be stopped only by groups of higher levels. From the
// highest level down, the queued jobs of each level are tested in primary order. A job that fits
// starts. Otherwise, if it would fit without some running jobs that it may stop, these are stopped,
// and it starts. Otherwise no other job of its group is tested so in this pass. Among the jobs that
// it may stop, those of higher levels, and on one level those that have run longer, are spared
// first if the job still fits.
// Once told to stop, a job of a group with a grace time runs on for that time, or to its end if
// that comes before. It is then expected to end by that time. The job that stops it stays queued,
// and is tested again in each pass as if the leaving jobs had gone: it stops no more than it needs
// beside these, and starts once it fits. A job without a grace time is stopped only if the
// preemptor can then start. While it waits for leaving jobs, no job of a group of a lower level
// starts: jobs could take turns in starting and leaving, and none of them ever end.
//
// Some groups are exempt for a time from the start of a run on. A pass is due when that ends for a
// job that a queued job may stop. Where each event has its own pass, all jobs are exempt in the
// second in which a run starts or resumes, and in that in which it ends.
//
// Units that a suspended job gives up count as taken, except for jobs that may stop it. So before a
// job is tested, the units of suspended jobs that it may not stop are hidden from it, and shown
// again afterwards; free units may be negative then, as other jobs run there. Each level begins
// with its suspended jobs: one resumes if it fits beside all running jobs and the suspended jobs
// that may stop it. Its start moves later by the time for which it was suspended.
#pragma once
#include <algorithm>
#include <vector>

#include "../base/ordered.hpp"
#include "line.hpp"
#include "model.hpp"

namespace hpc {

struct Suspended {
  i64 job, width;
  i64 ran;        // [s] of all its pieces together
  i64 left;       // [s] of its run
  i64 predicted;  // [s] what is left of its predicted run
  i64 end;        // [s] expected end, by the last plan
};

struct Leaving {
  i64 job;
  i64 by;       // [s] when it is gone
  bool is_cut;  // stopped then, not ended by itself
};

class Stops {
 public:
  std::vector<Leaving> leaving;
  i64 exempt_until = forever;  // [s] when a queued job may stop a job that is still exempt
  std::vector<Suspended> suspended;
  i64 lacking = 0;  // units, in a pass: how far free units are below 0 beside suspended jobs

  explicit Stops(const Model& model) : rules_(&model.stops) {
    const StopRules& rules = model.stops;
    highest_ = *std::max_element(rules.level.begin(), rules.level.end());
    spares_ = model.rules.passes == Passes::per_event;
    exempts_ = spares_ ||
               std::any_of(rules.exempt.begin(), rules.exempt.end(), [](i64 s) { return s > 0; });
  }
  void keep(Archive& a) {
    a(leaving, exempt_until, suspended, lacking, resumed_, resumed_at_);
    a.check_jobs(leaving), a.check_jobs(suspended), a.check_jobs(resumed_);
    for (const Leaving& each : leaving) a.check(group(each.job) >= 0);
    for (const Suspended& each : suspended) a.check(group(each.job) >= 0);
  }
  // In a pass, whether a job does not start as one of a higher level waits for others to leave.
  bool holds(i64 j) const { return holds_some() && group(j) >= 0 && level_of(j) < holds_below_; }
  bool holds_some() const { return holds_below_ > 0; }
  bool cancels() const { return rules_->become == Stopped::cancelled; }
  // Usage of suspended jobs is charged when they end.
  bool charges_at_once() const { return rules_->become != Stopped::suspended; }

  // [s] the latest time at which a running job is gone.
  i64 gone_by(i64 j) const {
    const auto at = find_leaving(j);
    return at == leaving.end() ? forever : at->by;
  }
  // A running job has given back its units, by its end or a failed node; return whether it was to
  // be stopped before its end.
  bool forget_leaving(i64 j) {
    const auto at = find_leaving(j);
    if (at == leaving.end()) return false;
    const bool is_cut = at->is_cut;
    leaving.erase(at);
    return is_cut;
  }
  // The same in the second in which its run ends: note it as stopped if it was to be.
  template <class S>
  bool cut_short(S& s, i64 j) {
    if (!forget_leaving(j)) return false;
    has_stopped(s, j);
    return true;
  }

  // Whether a job may start now, or may stop a running job, even if that does not suffice.
  template <class S>
  bool some_may_start(S& s) {
    std::vector<bool> stoppers(rules_->n_groups());
    const auto note_stoppers_of = [&](i64 other) {
      for (std::size_t own = 0; own < stoppers.size(); ++own)
        if (rules_->may_stop(static_cast<i64>(own), other)) stoppers[own] = true;
    };
    s.each_running_job([&](const Entry& e) {
      const i64 own = group(e.job);
      if (own >= 0 && !is_spared(s, e) && gone_by(e.job) == forever) note_stoppers_of(own);
    });
    for (const Suspended& other : suspended) note_stoppers_of(group(other.job));
    const Hidden hidden(s, all);
    return s.queue.jobs.any([&](const Entry& e) {
      s.interrupts.count();
      const i64 own = group(e.job);
      return !s.bars(e.job) &&
             (s.machine.has_room(e.job, s.room()) || (own >= 0 && stoppers[index(own)]));
    });
  }
  // Start and resume jobs that may stop others; then let `pass()` serve all others. `plan` tells
  // whether a job fits now.
  template <class S, class P, class F>
  void serve(S& s, P& plan, F pass) {
    if (std::exchange(resumed_at_, s.time) != s.time) resumed_.clear();
    blocked_.assign(rules_->n_groups(), false);
    holds_below_ = 0;
    for (i64 level = highest_; level > 0; --level) {
      go_on(s, level);
      serve_level(s, plan, level);
    }
    go_on(s, 0);
    {
      const Hidden hidden(s, all);
      lacking = -std::min(s.room(), i64{0});
      s.free += lacking;
      pass();
      s.free -= std::exchange(lacking, 0);
    }
    holds_below_ = 0;
    exempt_until = first_exempt_until(s);
  }
  // In a plan of the running jobs, give back the units of suspended jobs at their expected ends.
  template <class S, class P>
  void plan(const S& s, P& plan) {
    if (suspended.empty()) return;
    for (i64 level = highest_ - 1; level >= 0; --level)
      for (Suspended& own : suspended)
        if (level_of(own.job) == level) {
          own.end = expected_end(s, own);
          plan.gives_back(s.machine, own.job, own.width, own.end);
        }
  }

 private:
  struct Victim {
    Entry run;
    i64 ran;  // [s]
    bool leaves;
    bool is_stopped;
  };
  const StopRules* rules_;
  i64 highest_;  // level
  bool exempts_, spares_;
  std::vector<i64> resumed_;     // jobs resumed in the second of the last pass
  i64 resumed_at_ = -1;          // [s] that second
  std::vector<bool> blocked_;    // by group: no other job of it is tested in this pass
  i64 holds_below_ = 0;          // level: in a pass, no job of a lower one starts
  std::vector<Victim> victims_;  // jobs that the present job might stop, longest runs first
  std::vector<InLine> line_;

  i64 group(i64 j) const { return rules_->group[j]; }  // -1: none
  std::vector<Leaving>::const_iterator find_leaving(i64 j) const {
    return std::ranges::find(leaving, j, &Leaving::job);
  }
  i64 level_of(i64 j) const { return rules_->level[index(group(j))]; }
  // Whether a job may stop another, if both have groups.
  bool may_stop(i64 j, i64 other) const {
    return group(j) >= 0 && group(other) >= 0 && rules_->may_stop(group(j), group(other));
  }
  // [s] before which the present run of a job cannot be stopped.
  template <class S>
  i64 end_of_exemption(const S& s, i64 j) const {
    i64 begun = s.of(j).start;
    const i64 until = begun + rules_->exempt[index(group(j))];
    if (!spares_) return until;
    if (std::find(resumed_.begin(), resumed_.end(), j) != resumed_.end()) begun = resumed_at_;
    return std::max(until, begun + 1);
  }
  // Whether a job with a group cannot be stopped now.
  template <class S>
  bool is_spared(const S& s, const Entry& e) const {
    return std::min(e.key, e.span) <= s.time || s.time < end_of_exemption(s, e.job);
  }

  // During its lifetime, the units of the suspended jobs for which `which(job)` holds are hidden
  // from tests of what is free. Where units are not alike, `free` is only a bound, and stays.
  template <class S, class Which>
  class Hidden {
    S& s_;
    Which which_;

    void move(i64 sign) {
      for (const Suspended& own : s_.stops->suspended) {
        if (!which_(own.job)) continue;
        if constexpr (decltype(S::machine)::alike) s_.free += sign * own.width;
        s_.machine.lend(own.job, sign);
      }
    }

   public:
    Hidden(S& s, Which which) : s_(s), which_(which) { move(-1); }
    Hidden(const Hidden&) = delete;
    ~Hidden() { move(1); }
  };
  static bool all(i64) { return true; }

  // Resume the suspended jobs of a level that fit, longest runs first.
  template <class S>
  void go_on(S& s, i64 level) {
    std::vector<std::pair<i64, i64>> line;
    for (const Suspended& own : suspended)
      if (level_of(own.job) == level) line.push_back({-own.ran, own.job});
    std::sort(line.begin(), line.end());
    for (const auto& [ran, j] : line) {
      if (!goes_on(s, j)) continue;
      const auto at = std::find_if(suspended.begin(), suspended.end(),
                                   [j](const Suspended& other) { return other.job == j; });
      const Suspended own = *at;
      *at = suspended.back();
      suspended.pop_back();
      s.free -= own.width;
      s.machine.lend(j, -1);
      s.of(j).start = s.time - own.ran;
      if (s.quotas) s.quotas->kept(j, 1, own.ran), s.quotas->begun(j, s.of(j).start, s.time, own.ran);
      resumed_.push_back(j);
      s.running.insert({s.time + own.predicted, s.time + own.left, own.width, j});
    }
  }
  // Whether a suspended job fits beside all running jobs, and the suspended jobs that may stop it.
  template <class S>
  bool goes_on(S& s, i64 j) {
    const Hidden hidden(s, [&](i64 other) { return may_stop(other, j); });
    return s.machine.goes_on(j, s.room());
  }
  // The last end of the jobs that keep a suspended job from resuming, plus its remaining run.
  template <class S>
  i64 expected_end(const S& s, const Suspended& own) const {
    i64 end = s.time;
    const auto look_at = [&](i64 other, i64 other_end) {
      if (other_end > end && may_stop(other, own.job) && s.machine.meets(other, own.job))
        end = other_end;
    };
    s.each_running_job([&](const Entry& e) { look_at(e.job, e.key); });
    for (const Suspended& other : suspended) look_at(other.job, other.end);
    return end + own.predicted;
  }

  // Start the jobs of a level that fit, or for which others are stopped.
  template <class S, class P>
  void serve_level(S& s, P& plan, i64 level) {
    line_up(s, all_jobs, line_);
    for (const InLine& place : line_) {
      const i64 j = place.job, predicted = s.of(j).predicted;
      s.interrupts.count();
      if (group(j) < 0 || level_of(j) != level || blocked_[index(group(j))] || s.bars(j)) continue;
      if (!finds_place(s, plan, j)) {
        blocked_[index(group(j))] = true;
        continue;
      }
      s.queue.leave(j, predicted);
      s.start(j);
    }
  }
  // Whether a job fits, after stopping the jobs that have to be stopped and can be now.
  template <class S, class P>
  bool finds_place(S& s, P& plan, i64 j) {
    // hides the units of suspended jobs that it may not stop
    const Hidden hidden(s, [&](i64 other) { return !may_stop(j, other); });
    if (plan.fits_now(s, j)) return true;
    // whether it would meet a window
    const i64 until = s.time + s.of(j).predicted + (s.rules().every > 0);
    const bool around = s.closes() && s.windows->meet(until);
    if (!make_room(s, plan, j, around)) return false;
    stop_all(s, around);
    return plan.fits_now(s, j);
  }
  // Decide which jobs are stopped so that a job fits, and free their units; return whether it fits.
  // It does not yet if some are leaving, or are told to leave here.
  template <class S, class P>
  bool make_room(S& s, P& plan, i64 j, bool around) {
    const auto finds_room = [&] {
      return around ? plan.fits_now(s, j) : s.machine.has_room(j, s.room());
    };
    find_victims(s, j);
    if (victims_.empty()) return false;
    for (const Victim& v : victims_) give_up(s, v, around);
    if (!finds_room()) {
      for (const Victim& v : victims_) have_again(s, v, around);
      return false;
    }
    for (i64 level = level_of(j) - 1; level >= 0; --level)
      for (Victim& v : victims_) {
        if (level_of(v.run.job) != level || v.leaves) continue;
        s.interrupts.count();
        have_again(s, v, around);
        if (finds_room()) continue;
        give_up(s, v, around);
        v.is_stopped = true;
      }
    const auto takes_time = [&](const Victim& v) { return v.leaves || (v.is_stopped && grace(v) > 0); };
    if (std::ranges::none_of(victims_, takes_time)) return true;
    bool some_are_told = false;
    for (Victim& v : victims_) {
      if (!takes_time(v)) continue;
      have_again(s, v, around);
      some_are_told |= !v.leaves;
    }
    if (!some_are_told && finds_room()) return true;
    for (const Victim& v : victims_) {
      if (!v.is_stopped) continue;
      if (grace(v) > 0) let_leave(s, v);
      else have_again(s, v, around);
    }
    holds_below_ = std::max(holds_below_, level_of(j));
    return false;
  }
  i64 grace(const Victim& v) const { return rules_->grace[index(group(v.run.job))]; }
  // Tell a running job to leave.
  template <class S>
  void let_leave(S& s, const Victim& v) {
    const i64 by = s.time + grace(v);
    Entry e = s.running.take_off(s.running.find(v.run.key, v.run.job));
    leaving.push_back({e.job, std::min(by, e.span), by < e.span});
    e.key = std::min(e.key, by), e.span = std::min(e.span, by);
    s.running.insert(e);
  }
  template <class S>
  void find_victims(const S& s, i64 j) {
    victims_.clear();
    s.each_running_job([&](const Entry& e) {
      if (may_stop(j, e.job) && !is_spared(s, e))
        victims_.push_back({e, s.time - s.of(e.job).start, gone_by(e.job) < forever, false});
    });
    std::sort(victims_.begin(), victims_.end(), [](const Victim& a, const Victim& b) {
      return a.ran != b.ran ? a.ran > b.ran : a.run.job < b.run.job;
    });
  }
  // Give up the units of a running job, as if it were stopped. For a plan without it, it leaves the
  // list of running jobs. Suspended jobs never meet windows: these rules exclude each other.
  template <class S>
  void give_up(S& s, const Victim& v, bool around) {
    move(s, v, 1);
    if (around) s.running.take_off(s.running.find(v.run.key, v.run.job));
  }
  template <class S>
  void have_again(S& s, const Victim& v, bool around) {
    move(s, v, -1);
    if (around) s.running.insert(v.run);
  }
  template <class S>
  void move(S& s, const Victim& v, i64 sign) {
    s.free += sign * v.run.width;
    if (rules_->become == Stopped::suspended) s.machine.lend(v.run.job, sign);
    else s.machine.give_all(v.run.job, sign);
  }
  // Stop the jobs whose units have been freed.
  template <class S>
  void stop_all(S& s, bool around) {
    const bool suspends = rules_->become == Stopped::suspended;
    for (const Victim& v : victims_) {
      if (!v.is_stopped) continue;
      const auto& [key, end, width, j] = v.run;
      if (suspends) suspended.push_back({j, width, v.ran, end - s.time, key - s.time, 0});
      if (!around) s.running.take_off(s.running.find(key, j));  // otherwise it is already removed
      has_stopped(s, j);
    }
  }
  // A job has given up its units.
  template <class S>
  void has_stopped(S& s, i64 j) {
    s.note_lost(j);
    const i64 start = s.of(j).start;
    if (s.quotas) s.quotas->ended(j, start, s.time);
    if (s.quotas && rules_->become == Stopped::suspended) s.quotas->kept(j, -1, s.time - start);
    if (cancels()) s.queue.known.at(j).run = s.time - s.of(j).start;
    if (cancels() && s.arrivals) s.arrivals->cancelled(j, s.time);
    if (rules_->become == Stopped::requeued) s.wait_again(j);
  }

  template <class S>
  i64 first_exempt_until(const S& s) const {
    i64 first = forever;
    if (!exempts_) return first;
    std::vector<bool> waits(rules_->n_groups());
    s.queue.jobs.each([&](const Entry& e) {
      if (group(e.job) >= 0) waits[index(group(e.job))] = true;
    });
    const auto is_waited_for = [&](i64 other) {
      for (std::size_t own = 0; own < waits.size(); ++own)
        if (waits[own] && rules_->may_stop(static_cast<i64>(own), other)) return true;
      return false;
    };
    s.each_running_job([&](const Entry& e) {
      if (group(e.job) < 0) return;
      const i64 until = end_of_exemption(s, e.job);
      if (s.time < until && until < first && is_waited_for(group(e.job))) first = until;
    });
    return first;
  }
};

}  // namespace hpc
