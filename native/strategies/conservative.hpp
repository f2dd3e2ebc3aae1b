// A reservation for every queued job: conservative backfilling.
//
// A job gets its reservation when it is submitted: the earliest time at which enough units are free
// throughout its predicted run time, beside the running jobs and all other reservations. When jobs
// end early, reservations are compressed: in primary order each is removed and made anew at its
// earliest time, which is never later than before; a job with a reservation for now starts. When a
// prediction expires, reservations may no longer hold: all are made anew, in primary order. If an
// agent gives that order, it is asked at each pass with waiting jobs.
//
// If the last compression moved no reservation and no job has ended early since, none can move.
// Otherwise the plan knows which jobs may move.
#pragma once
#include <utility>
#include <vector>

#include "../core/line.hpp"
#include "../core/simulator.hpp"

namespace hpc {

template <Machine M>
class Conservative {
 public:
  typename M::KeptPlan plan;

  explicit Conservative(const Simulator<M>& s) : plan(s.model) {
    begin_plan(s, s.free);
  }

  void keep(Archive& a) { a(plan, may_advance_, first_reserved_, has_asked_); }
  // Restore the reservations of the jobs that wait at the beginning.
  void begin(Simulator<M>& s, const Beginning& b) {
    s.expired = false;
    may_advance_ = true;
    begin_plan(s, s.free_with_leaving());
    if constexpr (!M::alike) {
      std::size_t k = b.running.size();  // cells of waiting jobs follow those of running jobs
      for (i64 j = 0; j < b.number; ++j)
        if (s.of(j).start < 0) plan.place(j, b.nodes_of(k), b.units_of(k)), ++k;
    }
    s.queue.jobs.each([&](const Entry& e) {
      plan.hold(e.job, b.reserved[index(e.job)], e.span);
      first_reserved_ = std::min(first_reserved_, b.reserved[index(e.job)]);
    });
  }

  void pass(Simulator<M>& s) {
    if (s.windows) s.windows->forget_over(s.time);
    plan.forget_past(s.time);
    for (const Entry& e : s.ended) {
      // unless the plan is made anew
      const bool has_left = !s.expired && e.key > s.time;
      plan.ended(e, has_left);
      may_advance_ |= has_left;
    }
    s.ended.clear();
    const i64 arrived = std::exchange(s.arrived, 0);
    for (i64 j = s.next - arrived; j < s.next; ++j) s.newcomers.push_back(j);
    for (const i64 j : s.newcomers) {
      s.interrupts.count();
      s.machine.waits(j);
      s.queue.enter(j, s.of(j).predicted);
    }
    has_asked_ = s.rules().asks && !s.queue.empty();
    if (has_asked_) s.asked = Asked::order;
    else go_on(s);
  }
  // Whether the pass has asked for an order, and continues with the answer.
  bool has_asked() const { return has_asked_; }
  void go_on(Simulator<M>& s) {
    has_asked_ = false;
    const bool made_anew = std::exchange(s.expired, false);
    if (made_anew) replan(s);
    for (const i64 j : s.newcomers) {
      reserve(s, j, true);
      plan.list(j, s.of(j).predicted);
    }
    const bool one = s.rules().passes == Passes::per_event && s.newcomers.size() == 1 &&
                     !s.restricted();
    s.newcomers.clear();
    if (one && s.machine.width(s.next - 1) > s.free_with_leaving()) {
      may_advance_ |= made_anew;  // what was planned for now must be planned again
      return;
    }
    if constexpr (M::alike)
      if (s.rules().primary == Order::submission) return compress_noted(s);
    compress(s);
  }

 private:
  std::vector<InLine> line_;
  bool may_advance_ = false;      // some reservations may become earlier
  i64 first_reserved_ = forever;  // [s] lower bound of all reservations
  bool has_asked_ = false;

  void begin_plan(const Simulator<M>& s, i64 free) {
    plan.begin(s.machine, s.time, free, s.running);
    if (s.windows) plan.close(s.machine, *s.windows);
  }
  void reserve(Simulator<M>& s, i64 j, bool is_new) {
    s.interrupts.count(work_of_plan);
    const i64 at = plan.reserve(s.machine, j, s.of(j).predicted, is_new);
    first_reserved_ = std::min(first_reserved_, at);
    if (s.of(j).promised < 0) s.of(j).promised = at;
  }
  void replan(Simulator<M>& s) {
    may_advance_ = false;
    first_reserved_ = forever;
    begin_plan(s, s.free_with_leaving());
    const auto is_new = [&](i64 j) {
      return std::find(s.newcomers.begin(), s.newcomers.end(), j) != s.newcomers.end();
    };
    s.queue.jobs.each([&](const Entry& e) {
      s.interrupts.count();
      if (!is_new(e.job)) plan.list(e.job, e.span);
    });
    line_up(s.model, s.queue, s.time, forever, line_);
    for (const InLine& place : line_)
      if (!is_new(place.job)) reserve(s, place.job, false);
  }

  // Make reservations earlier if possible, and start the jobs that are due.
  void compress(Simulator<M>& s) {
    const bool loose = may_advance_;
    if (!loose && first_reserved_ > s.time) return;
    may_advance_ = false;
    first_reserved_ = forever;
    bool waits = false;
    line_up(s.model, s.queue, s.time, forever, line_);
    for (const InLine& place : line_) {
      s.interrupts.count();
      if (loose && plan.may_be_earlier(place.job)) advance(s, place.job);
      if (plan.reserved(place.job) <= s.time) {
        start(s, place.job, waits);
        continue;
      }
      first_reserved_ = std::min(first_reserved_, plan.reserved(place.job));
      waits = true;
    }
    if (loose) plan.all_tried();
  }
  // The same in order of submission, skipping jobs that cannot move. Jobs noted meanwhile are
  // tested in this pass if they come later in order, otherwise in the next.
  void compress_noted(Simulator<M>& s) {
    if (s.next == s.started) return;
    const i64 oldest = s.queue.oldest(s.progress);
    for (i64 j = plan.next_noted(oldest, s.next); j >= 0; j = plan.next_noted(j + 1, s.next)) {
      if (plan.reserved(j) != s.time) advance(s, j);
      if (plan.reserved(j) == s.time) start(s, j, s.queue.oldest(s.progress) != j);
    }
    plan.all_tried();
  }
  void advance(Simulator<M>& s, i64 j) {
    s.interrupts.count(work_of_plan);
    if (plan.reserved(j) != s.time && plan.advance(s.machine, j, s.of(j).predicted))
      may_advance_ = true;
  }
  void start(Simulator<M>& s, i64 j, bool backfilled) {
    const i64 predicted = s.of(j).predicted;
    s.of(j).backfilled = backfilled;
    plan.begun(s.machine, j, predicted);
    s.queue.leave(j, predicted);
    s.start(j);
  }
};

}  // namespace hpc
