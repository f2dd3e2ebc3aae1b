// When the jobs that wait are looked at, where that is not at each event but as Slurm does.
//
// A look comes `every` seconds after the last, as long as jobs wait or something has happened
// since; else at the next event. Where nothing happens, a look would find what the last one found:
// these are only counted, at the next event. And each `all_every` seconds a pass looks at all jobs
// of a queue of which passes at events look at the first.
#pragma once
#include <algorithm>
#include <utility>

#include "model.hpp"

namespace hpc {

// Whether the order of the queue or predicted ends may change though nothing happens.
inline bool order_moves(const Rules& r) {
  return r.primary >= Order::scored || r.threshold >= 0 || r.correction != Correction::none;
}

struct Looks {
  i64 due = forever;  // [s] when there must be a look though nothing happens
  i64 all_due =
      forever;          // [s] when a pass over all jobs is, if some were left out at the last event
  i64 next = -1;        // [s] when the next look may come, -1 before the first event
  bool waited = false;  // jobs did at the last look
  bool had_planned = false;  // on nodes: it has reserved some on which no job is
  bool woken = false;   // the pass that comes has no other reason than a look that is due
  bool over_all = false;  // or than a pass over all jobs

  // [s] when a pass is.
  i64 next_due() const { return std::min(due, all_due); }
  // A pass is due though nothing happens: at a look, or for another reason, at `other` [s].
  void note_woken(i64 other) {
    woken = due < std::min(all_due, other);
    over_all = !woken && all_due < other;
  }
  // Whether the jobs that wait are looked at now, if there are any; if not, note when they are.
  bool is_now(const Rules& r, i64 now, bool waits) {
    const i64 late = now - next;
    if (next < 0) {
      next = now;
    } else if (late > 0 && waited) {
      // looks that would have found nothing new are counted now
      next += (late + r.every - 1) / r.every * r.every;
    } else if (late > 0) {
      // nobody waited at that look, which has freed the nodes
      if (std::exchange(had_planned, false)) next += r.every;
      if (next < now) next = std::max(now, next + r.every);
    }
    const bool found = next == now;
    if (found) next += r.every;
    else woken = false;
    due = waits && !found ? next : forever;
    waited = waits;
    return found;
  }
  // After a look: `queued` jobs waited before it, `left` do now. Jobs may be able to start though
  // nothing happens if their order or a predicted end changes, if others are among the first now,
  // and once a reservation that was too late, at `beyond` [s], is near enough.
  void note_next(const Rules& r, i64 queued, i64 left, i64 beyond) {
    waited = left > 0;
    if (left == 0) return;
    if (left < queued || order_moves(r)) {
      due = next;
    } else if (beyond < forever) {
      const i64 late = std::max(beyond - r.window - next, i64{0});
      due = next + (late + r.every - 1) / r.every * r.every;
    }
  }
  // Note whether looks on nodes go on though nothing happens. Slurm looks again if something has
  // changed since it looked. So has it for Slurm where two jobs wait that no quota bars (`two`), where
  // a plan reserves a node without a job, or the plan before did, and where a job would fit before the
  // time that it was tried from. Then all looks that follow find the same. `by_event`: this look came
  // with one.
  void go_on_by_plan(const Rules& r, i64 queued, i64 left, bool two, bool by_event, bool plans_idle,
                     bool put_off) {
    if (queued == 0) {
      had_planned = false;
      return;
    }
    const bool planned_before = std::exchange(had_planned, plans_idle);
    waited = two || had_planned || put_off;
    if (!waited && left == queued && !by_event && !planned_before) {
      next -= r.every;  // there is no look until something happens
      due = forever;
    } else if (!waited && due > next) {
      due = forever;
    }
  }
};

}  // namespace hpc
