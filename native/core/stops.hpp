// Jobs that stop others: before each pass, those that may are served first.
//
// Groups of jobs have levels: who may stop a group is of a higher level than it. From the highest
// level down, the queued jobs of each are looked at in primary order. One that fits starts; else, if
// it would fit without some that run and that it may stop, these are stopped, and it starts; else no
// other job of its group is looked at so in this pass. Of those that it may stop, who is of a higher
// level, or of one level has run for longer, goes on first, as long as the job fits all the same.
// Jobs of some groups run on for a grace time once they are to stop, or to their ends if these come
// before. From then on they are expected to end by then. Who waits for them is queued as any other,
// and looked at again in each pass, as if those that leave had gone: it stops no more than it needs
// beside these, and starts once it fits. A job without such a time is stopped only if the one that
// stops it can then start.
//
// Some groups are exempt for a time from the start of a run on. A pass comes when that is over for
// a job that a queued one may stop. Where each event has a pass of its own, all are exempt in the
// second in which a run begins, or goes on, and in that in which it ends.
//
// What a suspended job gives up is taken all the same, but not for jobs that may stop it. So before
// a job is looked at, what those have that it may not stop is hidden from it, and afterwards shown
// again; less than nothing may be free then, for others run there. Each level begins with its
// suspended jobs: one goes on if it fits beside all that run, and the suspended jobs that may stop
// it. It is as if it had started later, by the time for which it has been suspended.
#pragma once
#include <algorithm>
#include <vector>

#include "../base/ordered.hpp"
#include "line.hpp"
#include "model.hpp"

namespace hpc {

struct Suspended {
  i64 job, width;
  i64 ran;        // [s] all its pieces together
  i64 left;       // [s] of its run
  i64 predicted;  // [s] what is left of its predicted run
  i64 end;        // [s] when it is expected to end, as the last plan has it
};

struct Leaving {
  i64 job;
  i64 by;       // [s] when it has gone
  bool is_cut;  // or ends by itself
};

class Stops {
 public:
  std::vector<Leaving> leaving;
  i64 exempt_until = forever;  // [s] when a queued job may stop one that is still exempt
  std::vector<Suspended> suspended;
  i64 lacking = 0;  // units, in a pass: by so many fewer than none are free beside suspended jobs

  explicit Stops(const Model& model) : rules_(&model.stops) {
    const StopRules& rules = model.stops;
    highest_ = *std::max_element(rules.level.begin(), rules.level.end());
    spares_ = model.rules.passes == Passes::per_event;
    exempts_ = spares_ ||
               std::any_of(rules.exempt.begin(), rules.exempt.end(), [](i64 s) { return s > 0; });
  }
  void keep(Archive& a) { a(leaving, exempt_until, suspended, lacking, resumed_, resumed_at_); }
  bool cancels() const { return rules_->become == Stopped::cancelled; }
  // What suspended jobs have used is charged when they end.
  bool charges_at_once() const { return rules_->become != Stopped::suspended; }

  // [s] when a running job has gone at the latest.
  i64 gone_by(i64 j) const {
    const auto at = find_leaving(j);
    return at == leaving.end() ? forever : at->by;
  }
  // A running job has given back what it had, in its end or since a node failed; return whether it
  // had to leave before it was over.
  bool forget_leaving(i64 j) {
    const auto at = find_leaving(j);
    if (at == leaving.end()) return false;
    const bool is_cut = at->is_cut;
    leaving.erase(at);
    return is_cut;
  }
  // The same in the second in which its run ends: it is stopped if that had to be.
  template <class S>
  bool cut_short(S& s, i64 j) {
    if (!forget_leaving(j)) return false;
    has_stopped(s, j);
    return true;
  }

  // Whether a job may start now, or stop one that runs, be that enough or not.
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
      const i64 own = group(e.job);
      return !s.bars(e.job) &&
             (s.machine.has_room(e.job, s.room()) || (own >= 0 && stoppers[index(own)]));
    });
  }
  // Let those start, and go on, that may stop others; then let `pass()` serve all others. `plan` says
  // whether a job fits now.
  template <class S, class P, class F>
  void serve(S& s, P& plan, F pass) {
    if (std::exchange(resumed_at_, s.time) != s.time) resumed_.clear();
    blocked_.assign(rules_->n_groups(), false);
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
    exempt_until = first_exempt_until(s);
  }
  // Let a plan of what runs give back what suspended jobs have, when they are expected to end.
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
  std::vector<i64> resumed_;     // jobs that have gone on in the second of the last pass
  i64 resumed_at_ = -1;          // [s] that
  std::vector<bool> blocked_;    // by group: no other job of it is looked at in this pass
  std::vector<Victim> victims_;  // who might be stopped for the present job, longest runs first
  std::vector<InLine> line_;

  i64 group(i64 j) const { return rules_->group[j]; }  // -1: of none
  std::vector<Leaving>::const_iterator find_leaving(i64 j) const {
    return std::ranges::find(leaving, j, &Leaving::job);
  }
  i64 level_of(i64 j) const { return rules_->level[index(group(j))]; }
  // Whether a job may stop another, if that is of a group.
  bool may_stop(i64 j, i64 other) const {
    return group(j) >= 0 && group(other) >= 0 && rules_->may_stop(group(j), group(other));
  }
  // [s] before which nobody stops the present run of a job.
  template <class S>
  i64 end_of_exemption(const S& s, i64 j) const {
    i64 begun = s.of(j).start;
    const i64 until = begun + rules_->exempt[index(group(j))];
    if (!spares_) return until;
    if (std::find(resumed_.begin(), resumed_.end(), j) != resumed_.end()) begun = resumed_at_;
    return std::max(until, begun + 1);
  }
  // Whether a job of some group cannot be stopped now.
  template <class S>
  bool is_spared(const S& s, const Entry& e) const {
    return std::min(e.key, e.span) <= s.time || s.time < end_of_exemption(s, e.job);
  }

  // As long as it lives, what those suspended jobs have that `which(job)` names is hidden from who
  // looks at what is free. Where units are not alike, their number is only a bound, and stays.
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

  // Let those of the suspended jobs of a level go on that can, who has run longest first.
  template <class S>
  void go_on(S& s, i64 level) {
    line_.clear();
    for (const Suspended& own : suspended)
      if (level_of(own.job) == level) line_.push_back({own.job, static_cast<double>(own.ran)});
    sort_by_score(line_.begin(), line_.end());
    for (const InLine& place : line_) {
      const i64 j = place.job;
      if (!goes_on(s, j)) continue;
      const auto at = std::find_if(suspended.begin(), suspended.end(),
                                   [j](const Suspended& other) { return other.job == j; });
      const Suspended own = *at;
      *at = suspended.back();
      suspended.pop_back();
      s.free -= own.width;
      s.machine.lend(j, -1);
      s.of(j).start = s.time - own.ran;
      resumed_.push_back(j);
      s.running.insert({s.time + own.predicted, s.time + own.left, own.width, j});
    }
  }
  // Whether a suspended job fits beside all that run, and the suspended jobs that may stop it.
  template <class S>
  bool goes_on(S& s, i64 j) {
    const Hidden hidden(s, [&](i64 other) { return may_stop(other, j); });
    return s.machine.goes_on(j, s.room());
  }
  // When none is in the way of a suspended job, and it has run.
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
      if (group(j) < 0 || level_of(j) != level || blocked_[index(group(j))] || s.bars(j)) continue;
      if (!finds_place(s, plan, j)) {
        blocked_[index(group(j))] = true;
        continue;
      }
      s.queue.leave(j, predicted);
      s.start(j);
    }
  }
  // Whether a job fits, once those have been stopped that have to be and can be now.
  template <class S, class P>
  bool finds_place(S& s, P& plan, i64 j) {
    // what those have that it may not stop; it may stop who is now
    const Hidden hidden(s, [&](i64 other) { return !may_stop(j, other); });
    if (plan.fits_now(s, j)) return true;
    // it would meet a window
    const i64 until = s.time + s.of(j).predicted + (s.rules().every > 0);
    const bool around = s.closes() && s.windows->meet(until);
    if (!make_room(s, plan, j, around)) return false;
    stop_all(s, around);
    return plan.fits_now(s, j);
  }
  // Say who is stopped so that a job fits, and free what they have; return whether it will fit. It
  // will not yet if some have to leave, or are to: these are told so.
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
  // Let a running job give up what it has, as it does if it is stopped. For a plan without it, it
  // is taken off the list of what runs. Suspended jobs meet no windows: these rules exclude each
  // other.
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
  // Stop the jobs whose room has been freed.
  template <class S>
  void stop_all(S& s, bool around) {
    const bool suspends = rules_->become == Stopped::suspended;
    for (const Victim& v : victims_) {
      if (!v.is_stopped) continue;
      const auto& [key, end, width, j] = v.run;
      if (suspends) suspended.push_back({j, width, v.ran, end - s.time, key - s.time, 0});
      if (!around) s.running.take_off(s.running.find(key, j));  // else it is off already
      has_stopped(s, j);
    }
  }
  // A job has given up what it had.
  template <class S>
  void has_stopped(S& s, i64 j) {
    s.note_lost(j);
    if (rules_->become != Stopped::suspended && s.quotas) s.quotas->ended(j);
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
