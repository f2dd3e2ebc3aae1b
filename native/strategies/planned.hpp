// Reservations for the first few waiting jobs, made anew at each pass.
//
// In primary order, a job starts if it fits throughout its predicted run time, beside the running
// jobs and all earlier reservations; otherwise it gets a reservation, up to `depth` of them. Then
// the other jobs are tested in secondary order: each starts if it fits in this way.
//
// Between two passes with an end or an expired prediction, nothing becomes free: the plan first
// frees units at the predicted end of a running job. So after submissions only, the plan still
// holds, and a new job that comes after all reservations is tested alone.
//
// With `every`, as in Slurm, jobs start at an event in primary order until one does not fit; a pass
// as above is made only at looks. It tests the first `tested` jobs, and of each user at most
// `tested_of_user`, if that is not 0: further jobs of the user do not count. It makes no
// reservation later than `window` seconds from now. A plan ends where no further reservation
// matters before the next one, unless all are to be told.
//
// If long jobs are held back, a job starts only if all units that it needs are free, and its
// reservation takes them all. Needs of others fall with time: no plan holds.
//
// On nodes, one reservation without windows or preemption is that of EASY, of room instead of
// individual nodes: strategies/easy.hpp serves it. On a pool both are the same.
//
// If an agent decides which job is served, a pass asks as long as a queued job may start or preempt
// others, as far as is known: for one order of the queue, or for one job after the other. With
// looks, an order holds from event to event, and each event with waiting jobs asks: reservations
// use that order, too, and on nodes they decide when the next look comes. A policy whose scores
// change with time is asked at looks between events, too.
#pragma once
#include <utility>
#include <vector>

#include "../core/line.hpp"
#include "easy.hpp"

namespace hpc {

template <Machine M>
class Planned {
 public:
  i64 n_reserved = 0;      // reservations made by the last pass
  i64 last_reserved = -1;  // the last job in primary order with one, -1: none
  i64 beyond = forever;    // [s] the earliest place too late to be reserved

  explicit Planned(const Simulator<M>& s)
      : plan_(s.model),
        reserved_(index(s.model.n_jobs), {-1, -1}),
        tested_(s.rules().tested_of_user > 0 ? index(s.model.n_users) : 0) {
    plan_.begin(s.machine, s.time, s.free, s.running);
  }

  void keep(Archive& a) {
    a(has_asked_, n_reserved, last_reserved, beyond, plan_, reserved_, n_plans_, planned_at_, tested_);
  }

  // The plan of the last look: whether it is told, when it was made [s], -1: not yet, and when a job
  // that waits starts by it [s], -1: it has no reservation.
  static bool tells_plan(const Simulator<M>& s) {
    return s.rules().every > 0 && s.rules().reserves_all && s.rules().depth > 0;
  }
  i64 planned_at() const { return planned_at_; }
  i64 planned_start(const Simulator<M>& s, i64 j) const {
    const Reserved& last = reserved_[index(j)];
    return s.of(j).start < 0 && last.in == n_plans_ ? last.time : -1;
  }

  void pass(Simulator<M>& s) {
    if (s.windows) s.windows->forget_over(s.time);
    // per event, units of jobs that are about to end count as free although nothing has ended
    const bool some_leave = s.rules().passes == Passes::per_event && s.room() > s.free;
    if (s.rules().holds || some_leave) s.changed = true;
    if (!s.changed) plan_.forget_past(s.time);
    const i64 arrived = std::exchange(s.arrived, 0);
    for (i64 j = s.next - arrived; j < s.next; ++j) {
      s.interrupts.count();
      s.wait(j);
    }
    if (s.rules().asks || selects(s)) {
      s.changed = true;  // the plan is not made yet
      if (ask(s) || (s.rules().every == 0 && !s.stops)) return;
    }
    start_some(s, arrived);
  }
  // Whether the pass has asked, and continues with the answer.
  bool has_asked() const { return has_asked_; }
  void go_on(Simulator<M>& s) {
    has_asked_ = false;
    const i64 selected = s.selected;
    start_some(s, 0);
    if (!selects(s)) return;
    s.selected = -1;
    s.asked = Asked::nothing;
    if (s.of(selected).start >= 0) ask(s);
  }
  // Whether a job fits beside running jobs, and windows during its run; if so, its place is chosen.
  bool fits_now(Simulator<M>& s, i64 j) {
    if (!s.closes()) return s.machine.finds_place(j, s.room());
    begin_plan(s);
    const i64 predicted = s.of(j).predicted;
    if (!plan_.place_now(s.machine, j, predicted, s.room(), true)) return false;
    plan_.begun(s.machine, j, predicted);
    return true;
  }

 private:
  static bool selects(const Simulator<M>& s) { return s.rules().primary == Order::selection; }
  static bool reserves_room(const Simulator<M>& s) {
    return s.rules().depth == 1 && s.rules().every == 0 && !s.rules().holds && !s.windows && !s.stops;
  }
  // Ask if that may let a job start; return whether a question is asked.
  bool ask(Simulator<M>& s) {
    if (selects(s))
      if (const i64 starving = s.starving(); starving >= 0) {  // it is served without asking
        s.selected = starving;
        go_on(s);
        return has_asked_;
      }
    const bool by_clock = s.looks.woken || s.looks.over_all;
    bool asks = false;
    if (s.rules().every > 0) asks = (!by_clock || s.rules().asks_by_clock) && !s.queue.empty();
    else asks = some_may_start(s);
    if (asks) s.asked = selects(s) ? Asked::job : Asked::order;
    return has_asked_ = asks;
  }
  static bool some_may_start(Simulator<M>& s) {
    if (s.stops) return s.stops->some_may_start(s);
    return s.queue.jobs.any([&](const Entry& e) {
      s.interrupts.count();
      const i64 needed = s.rules().holds ? s.needed_by(e.job) : s.machine.width(e.job);
      return !s.bars(e.job) && s.machine.fits(e.job, needed, s.room());
    });
  }
  // Serve jobs that may preempt others; then start what may start. `arrived` jobs have just come.
  void start_some(Simulator<M>& s, i64 arrived) {
    if (s.stops) {
      s.changed = true;  // no plan holds
      return s.stops->serve(s, *this, [&] { start_rest(s, arrived); });
    }
    start_rest(s, arrived);
  }
  // Start what may start; `arrived` jobs have just come.
  void start_rest(Simulator<M>& s, i64 arrived) {
    const Rules& r = s.rules();
    if (reserves_room(s)) return Easy<M>(s).serve();
    const bool over_all = std::exchange(s.looks.over_all, false);
    const i64 started = s.started;
    if (r.every > 0 || r.depth == 0) start_in_order(s);
    if (r.depth == 0) return;  // strict order, only under restrictions: no plan
    // a pass over all jobs in which none starts is no reason to look
    if (s.started > started) s.looks.woken = false;
    else if (over_all) return;
    const i64 queued = r.every > 0 ? s.queue.jobs.size() : 0;
    if (r.every > 0 && !s.looks.is_now(r, s.time, queued > 0)) return;
    planned_at_ = s.time;
    if (arrived == 1 && plan_holds(s, s.next - 1)) {
      serve(s, s.next - 1);
    } else if (!s.queue.empty()) {
      plan(s);
    }
    if (r.every > 0) note_look(s, queued);
  }

  struct Reserved {
    i64 time;  // [s]
    i64 in;    // the number of the plan that made it
  };
  bool has_asked_ = false, promises_ = true;
  typename M::FreshPlan plan_;
  std::vector<Reserved> reserved_;  // by job
  i64 n_plans_ = 0, planned_at_ = -1;
  std::vector<i64> tested_;         // by user: jobs tested in this pass
  std::vector<InLine> line_;
  std::vector<i64> stopped_;        // closed partitions, while jobs start in order

  // Whether the plan still holds with a new job that comes after all reservations.
  bool plan_holds(const Simulator<M>& s, i64 j) const {
    const Rules& r = s.rules();
    // a job barred now may have a reservation, and be passed over since another has started
    if (s.restricted() || s.changed || r.every > 0 || r.primary >= Order::scored ||
        r.threshold >= 0)
      return false;
    return last_reserved < 0 || r.primary != Order::keyed ||
           !s.queue.comes_before(j, last_reserved);
  }
  bool has_reservation(const Simulator<M>& s, i64 j) const {
    return reserved_[index(j)].in == n_plans_ && reserved_[index(j)].time > s.time;
  }

  // After so many reservations more, at most, a pass tests whether any job may still start.
  static constexpr i64 between_tests = 16;

  static bool looks_on_nodes(const Simulator<M>& s) { return !M::alike && s.rules().every > 0; }
  static bool tells_all(const Simulator<M>& s) { return s.rules().every > 0 && s.rules().reserves_all; }
  // Whether the rest of a plan matters, though no job of it can start now. On nodes it decides whether
  // looks continue, unless they do so for two waiting jobs.
  bool rest_matters(const Simulator<M>& s) const {
    if (tells_all(s)) return true;
    if constexpr (M::alike) return false;
    else {
      return looks_on_nodes(s) && (s.stops || !plan_.is_settled(s.machine) || !jobs_go_on(s));
    }
  }
  // Whether waiting jobs make Slurm look again: one that stands behind one that no quota bars, or one
  // that lacks a licence.
  bool jobs_go_on(const Simulator<M>& s) const {
    if (!s.quotas) return s.queue.jobs.size() > 1;
    i64 allowed = -1, behind = s.queue.jobs.size();
    for (const InLine& place : line_) {
      if (s.of(place.job).start >= 0) continue;
      --behind;
      allowed = place.job;
      if (!s.quotas->bar(allowed, s.time)) break;
      allowed = -1;
    }
    if (allowed >= 0 && behind > 0) return true;
    bool lacks = false;
    s.queue.jobs.each([&](const Entry& e) { lacks = lacks || s.quotas->lacks_licence(e.job, s.time); });
    return lacks;
  }
  void note_look(Simulator<M>& s, i64 queued) {
    const bool by_look = std::exchange(s.looks.woken, false);
    const i64 left = s.queue.jobs.size();
    s.looks.note_next(s.rules(), queued, left, beyond);
    if constexpr (!M::alike) {
      const auto& table = *plan_.table();
      s.looks.go_on_by_plan(s.rules(), queued, left,
                            {.by_event = !by_look,
                             .by_jobs = jobs_go_on(s),
                             .plans_idle = table.idle_planned > 0,
                             .put_off = table.put_off});
    }
  }

  // Make all reservations anew, and start what can start.
  void plan(Simulator<M>& s) {
    const Rules& r = s.rules();
    s.changed = s.expired = false;
    n_reserved = 0;
    ++n_plans_;
    s.head = last_reserved = -1;
    beyond = forever;
    if (!looks_on_nodes(s) && !tells_all(s) && none_fits(s)) {
      s.changed = true;  // the plan is not made
      return;
    }
    s.interrupts.count(s.queue.jobs.size_in_blocks());
    // as in easy.hpp: if the order changes with time, no pass promises in which no job can start
    promises_ = r.primary < Order::selection || s.queue.jobs.any([&](const Entry& e) {
      return s.could_start(e.job, s.room());
    });
    begin_plan(s);
    const bool tests_all = r.tested == all_jobs;
    // each job that starts takes a unit
    const bool few = tests_all && !s.restricted();
    // who stands behind whom matters beyond the jobs that are tested
    const bool all = r.tested_of_user > 0 || (s.quotas && !M::alike && r.every > 0);
    const i64 most = few ? r.depth + s.room() : all ? all_jobs : r.tested;
    line_up(s, most, line_);
    const i64 queued = static_cast<i64>(line_.size());
    if (r.tested_of_user > 0)
      for (const InLine& place : line_) tested_[index(s.model.users[place.job])] = 0;
    i64 count = std::min(queued, std::min(most, r.tested)), next_test = 1;
    for (i64 i = 0; i < count && (!tests_all || n_reserved < r.depth); ++i) {
      const i64 j = line_[index(i)].job;
      if (r.tested_of_user > 0 && is_passed_over(s, j)) {
        count = std::min(count + 1, queued);
        continue;
      }
      serve(s, j);
      if (n_reserved < next_test) continue;
      // other reservations make no difference before the next plan
      if (!rest_matters(s) && !may_start(s, i + 1)) {
        s.changed = true;  // the plan is incomplete
        return;
      }
      next_test += std::min(next_test, between_tests);
    }
    if (!tests_all || n_reserved < r.depth) return;
    line_up_fitting(s);
    for (const InLine& place : line_) serve(s, place.job);
  }
  void begin_plan(Simulator<M>& s) {
    const i64 lacking = s.stops ? s.stops->lacking : 0;
    plan_.begin(s.machine, s.time, s.free_with_leaving() - lacking, s.running);
    if (s.windows)
      plan_.close(s.machine, *s.windows, s.stops ? -1 : s.started - s.running.size());
    if (s.stops) s.stops->plan(s, plan_);
  }
  // Whether all queued jobs need more than is free, and no promise is due.
  bool none_fits(Simulator<M>& s) {
    const Rules& r = s.rules();
    // under restrictions the first waiting job may differ from the first that may start
    if (s.restricted()) return false;
    if (s.queue.least_width() <= s.room()) return false;
    if (r.primary >= Order::scored) return s.queue.none_fits(s.room());
    // finding the first job would need a search
    if (r.threshold >= 0 || (r.primary == Order::submission && r.secondary != Order::submission))
      return false;
    return s.of(s.queue.first(s.time, s.progress, -1)).promised >= 0;
  }
  // Whether this pass has tested enough jobs of a user; if not, count this one, unless it is barred
  // now.
  bool is_passed_over(const Simulator<M>& s, i64 j) {
    i64& tested = tested_[index(s.model.users[j])];
    if (tested >= s.rules().tested_of_user) return true;
    if (!s.bars(j)) ++tested;
    return false;
  }

  // [s] beyond which the exact time of a place does not matter: `beyond` is earlier, or unused as
  // the order changes; and with two jobs waiting, this one and the head, looks continue whether or
  // not a job is put off.
  i64 latest(const Simulator<M>& s) const {
    if (s.head < 0) return forever;
    const i64 last = s.time + s.rules().window;
    return order_moves(s.rules()) ? last : std::max(last, beyond);
  }
  // Start a queued job now, or reserve a time for it while reservations are left.
  void serve(Simulator<M>& s, i64 j) {
    s.interrupts.count(work_of_plan);
    if (s.bars(j)) return;
    const i64 last = s.time + s.rules().window, predicted = s.of(j).predicted;
    const bool reserves = n_reserved < s.rules().depth;
    const bool holds = s.rules().holds;
    const i64 needed = holds ? s.needed_by(j) : s.machine.width(j);
    i64& reserved = reserved_[index(j)].time;
    // a reservation takes all that the job needs, a start only its own units
    bool starts = (holds || !reserves) && needed <= s.room() &&
                  (reserves || ends_in_time(s, predicted)) &&
                  plan_.place_now(s.machine, j, predicted, s.room(), false);
    if (!starts && reserves) {
      const i64 beside = holds ? needed - s.job(j).processors : 0;
      reserved = plan_.reserve(s.machine, j, predicted, last, latest(s), beside);
      starts = reserved == s.time;
    }
    if (starts) {
      s.of(j).backfilled = s.head >= 0;
      start(s, j, true);
      return;
    }
    if (s.head < 0) s.head = j, s.shadow.time = -1;
    if (!reserves) return;
    if (reserved > last) {
      beyond = std::min(beyond, reserved);
      return;
    }
    reserved_[index(j)].in = n_plans_;
    ++n_reserved;
    last_reserved = j;
    if (s.head != j) return;
    s.shadow.time = reserved;
    if (promises_) s.promise(j, reserved);
  }

  // Whether a job that starts now ends before the head's start, if that is required.
  static bool ends_in_time(const Simulator<M>& s, i64 predicted) {
    const Rules& r = s.rules();
    return !r.strict || r.every > 0 || s.time + predicted < s.shadow.time;
  }

  // Call f(block) for blocks that may have a job that can start now, beside the plan.
  template <class F>
  void each_fitting_block(Simulator<M>& s, F f) {
    plan_.note_free(s.machine);
    for (int k = 0; k < s.queue.jobs.size_in_blocks(); ++k) {
      Block& block = s.queue.jobs.at(k);
      if (block.least_width > s.room()) continue;
      const i64 longest = plan_.free_until(block.least_width) - s.time;
      if (block.least_span <= longest && f(block, longest)) return;
    }
  }
  // Whether a queued job without a reservation may fit now, of those in line from `first` on if others
  // are not tested.
  bool may_start(Simulator<M>& s, i64 first) {
    bool may = false;
    if (s.rules().tested != all_jobs) {
      plan_.note_free(s.machine);
      return std::any_of(line_.begin() + first, line_.end(), [&](const InLine& place) {
        const i64 width = s.machine.width(place.job), length = s.of(place.job).predicted;
        return width <= s.room() && length <= plan_.free_until(width) - s.time && !s.bars(place.job);
      });
    }
    each_fitting_block(s, [&](const Block& block, i64 longest) {
      for (const Entry& e : block) {
        if (e.width > s.room() || e.span > longest || has_reservation(s, e.job)) continue;
        if (s.rules().every > 0 && s.bars(e.job)) continue;
        may = e.span <= plan_.free_until(e.width) - s.time;
        if (may) break;
      }
      return may;
    });
    return may;
  }
  // Write the jobs without a reservation that may fit now, in secondary order.
  void line_up_fitting(Simulator<M>& s) {
    const bool is_scored = s.rules().secondary >= Order::scored;
    line_.clear();
    each_fitting_block(s, [&](Block& block, i64 longest) {
      block.least_width = block.least_span = nothing;
      for (const Entry& e : block) {
        block.least_width = std::min(block.least_width, e.width);
        block.least_span = std::min(block.least_span, e.span);
        if (e.width > s.room() || e.span > longest || has_reservation(s, e.job)) continue;
        line_.push_back({e.job, is_scored ? s.second_score(e.job) : 0});
      }
      return false;
    });
    if (is_scored) sort_by_score(s.queue, line_.begin(), line_.end());
  }

  // Start jobs in primary order until one does not fit beside the running jobs. Only the first are
  // tested, but periodically all. As in Slurm, a job that does not fit stops only its partition,
  // whose nodes are then closed to jobs of other partitions.
  void start_in_order(Simulator<M>& s) {
    const Rules& r = s.rules();
    s.interrupts.count(s.queue.jobs.size_in_blocks());
    s.changed = true;  // the plan no longer holds
    s.head = -1;
    s.looks.all_due = forever;
    const bool some = r.every > 0 && s.time % r.all_every != 0;
    const i64 looked = some ? r.at_events : all_jobs;
    bool closes = s.closes();
    if (closes) begin_plan(s);
    const bool apart = r.every > 0 && n_partitions(s) > 0;
    line_up(s, s.restricted() || apart ? all_jobs : s.free + 1, line_);
    stopped_.clear();
    i64 i = 0;
    for (const InLine& place : line_) {
      const i64 j = place.job;
      s.interrupts.count();
      if (i++ == looked) {
        s.looks.all_due = (s.time / r.all_every + 1) * r.all_every;
        return;
      }
      if (s.bars(j) || (apart && is_stopped(s, j))) continue;
      const i64 predicted = s.of(j).predicted;
      if ((r.holds && s.needed_by(j) > s.room()) ||
          (closes ? !plan_.place_now(s.machine, j, predicted, s.room(), true)
                  : !s.machine.finds_place(j, s.room()))) {
        if (s.head < 0) s.head = j, s.shadow.time = -1;
        if (!apart) return;
        if (!std::exchange(closes, true)) begin_plan(s);
        if (!stop_partition(s, j)) return;
        continue;
      }
      s.of(j).backfilled = s.head >= 0;
      start(s, j, closes);
    }
  }
  static i64 n_partitions(const Simulator<M>& s) {
    if constexpr (M::alike) return 0;
    else return s.machine.layout().n_partitions;
  }
  bool is_stopped(const Simulator<M>& s, i64 j) const {
    if constexpr (M::alike) return false;
    else
      return !stopped_.empty() && std::ranges::find(stopped_, s.machine.layout().partition(j)) != stopped_.end();
  }
  // A job does not fit: stop its partition; return whether other jobs may still start.
  bool stop_partition(const Simulator<M>& s, i64 j) {
    if constexpr (M::alike) return false;
    else {
      const i64 partition = s.machine.layout().partition(j);
      if (partition < 0) return false;
      stopped_.push_back(partition);
      return plan_.shut_partition(s.machine, partition);
    }
  }
  // Start a queued job with a place: `by_plan`, or one chosen by the machine.
  void start(Simulator<M>& s, i64 j, bool by_plan) {
    const i64 predicted = s.of(j).predicted;
    if (by_plan) plan_.begun(s.machine, j, predicted);
    s.queue.leave(j, predicted);
    s.start(j);
    // the plan counts units as ready even if they must be switched on; but a job started while no
    // earlier job waits is known to start late, as running jobs are
    if constexpr (M::alike)
      if (by_plan && s.head < 0 && s.of(j).start > s.time)
        plan_.lasts(j, predicted, s.of(j).start - s.time);
  }
};

}  // namespace hpc
