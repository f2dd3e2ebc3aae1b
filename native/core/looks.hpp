// When passes take place if not at each event but at looks at the queue, as in Slurm.
//
// A look comes `every` seconds after the last one while jobs wait or something has happened since;
// otherwise at the next event. Looks that would start no job, as the last one, are only counted, at
// the next event, unless the plans of all looks are to be told. Passes at events test only the first jobs
// of the queue; each `all_every` seconds a pass tests all of them.
#pragma once
#include <algorithm>
#include <utility>

#include "model.hpp"

namespace hpc {

// Whether the order of the queue or predicted ends may change without an event.
inline bool order_moves(const Rules& r) {
  return r.primary >= Order::scored || r.threshold >= 0 || r.correction != Correction::none;
}

struct Looks {
  i64 due = forever;  // [s] when a look is needed even without an event
  i64 all_due =
      forever;          // [s] when a pass over all jobs is, if the last event left some out, or
                        // time alone lets one start
  i64 next = -1;        // [s] when the next look may come, -1 before the first event
  bool waited = false;  // jobs waited at the last look
  bool had_planned = false;  // on nodes: the last look reserved nodes without a job
  bool woken = false;   // the next pass has no other reason than a look, or a pass over all jobs, that is due
  bool over_all = false;  // the next pass has no other reason than a pass over all jobs

  // [s] when either of the two is due.
  i64 next_due() const { return std::min(due, all_due); }
  // A pass is due without an event: for a look, or for another reason at `other` [s].
  void note_woken(i64 other) {
    woken = due < other && due <= all_due;
    over_all = all_due < std::min(due, other);
  }
  // [s] of the first look if something happens at `now`.
  i64 first_from(const Rules& r, i64 now) const {
    const i64 late = now - next;
    if (next < 0) return now;
    if (late <= 0) return next;
    // the looks until then would have found nothing new
    if (waited) return next + (late + r.every - 1) / r.every * r.every;
    // no job waited at that look, which has freed the nodes
    const i64 last = next + (had_planned ? r.every : 0);
    return last < now ? std::max(now, last + r.every) : last;
  }
  // Whether there is a look at the queue now; if not, note when the next one is due.
  bool is_now(const Rules& r, i64 now, bool waits) {
    const bool late = now > next;
    next = first_from(r, now);
    if (late && !waited) had_planned = false;
    const bool found = next == now;
    if (found) next += r.every;
    else woken = false;
    due = waits && !found ? next : forever;
    waited = waits;
    return found;
  }
  // After a look: `queued` jobs waited before it, `left` do now. Jobs may become able to start
  // without an event if their order or a predicted end changes, if other jobs are among the first
  // now, or once a reservation that was too late, at `beyond` [s], comes within the window.
  void note_next(const Rules& r, i64 queued, i64 left, i64 beyond) {
    waited = left > 0;
    if (left == 0) return;
    if (left < queued || order_moves(r) || r.reserves_all) {
      due = next;
    } else if (beyond < forever) {
      const i64 late = std::max(beyond - r.window - next, i64{0});
      due = next + (late + r.every - 1) / r.every * r.every;
    }
  }
  // Time alone lets a job start from `at` on [s]: a look as after an event, or a pass over all jobs,
  // may find it.
  void note_opening(const Rules& r, i64 at) {
    if (r.depth > 0) due = std::min(due, first_from(r, at));
    all_due = std::min(all_due, (at + r.all_every - 1) / r.all_every * r.all_every);
  }
  // How a look on nodes ended.
  struct OnNodes {
    bool by_event;    // an event caused it
    bool by_jobs;     // a job waits behind one that no quota bars, or lacks a licence of the cluster
    bool plans_idle;  // its plan reserves a node without a job
    bool put_off;     // a job would fit before the time from which it was tested
  };
  // Note whether looks continue without an event. Slurm looks again if something has changed since
  // the last look. For Slurm that includes all of these but an event, and that the last plan
  // reserved such a node. If none holds, all later looks find the same.
  void go_on_by_plan(const Rules& r, i64 queued, i64 left, OnNodes look) {
    if (queued == 0) {
      had_planned = false;
      return;
    }
    const bool planned_before = std::exchange(had_planned, look.plans_idle);
    waited = look.by_jobs || had_planned || look.put_off;
    if (!waited && left == queued && !look.by_event && !planned_before) {
      next -= r.every;  // no look until the next event
      due = forever;
    } else if (!waited && due > next) {
      due = forever;
    }
  }
};

}  // namespace hpc
