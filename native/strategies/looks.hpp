// When the jobs that wait are looked at, where that is not at each event but as Slurm does.
//
// A look comes `every` seconds after the last, as long as jobs wait or something has happened
// since; else at the next event. Where nothing happens, a look would find what the last one found:
// these are only counted, at the next event. And each `all_every` seconds a pass looks at all jobs
// of a queue of which passes at events look at the first.
#pragma once
#include "../core/model.hpp"

namespace hpc {

struct Looks {
  i64 due = forever;  // [s] when there must be a look though nothing happens
  i64 all_due =
      forever;          // [s] when a pass over all jobs is, if some were left out at the last event
  i64 next = -1;        // [s] when the next look may come, -1 before the first event
  bool waited = false;  // jobs did at the last look

  // Whether the jobs that wait are looked at now, if there are any; if not, note when they are.
  bool is_now(const Rules& r, i64 now, bool waits) {
    const i64 late = now - next;
    if (next < 0) {
      next = now;
    } else if (late > 0) {
      // looks that would have found nothing new are counted now
      next =
          waited ? next + (late + r.every - 1) / r.every * r.every : std::max(now, next + r.every);
    }
    const bool found = next == now;
    if (found) next += r.every;
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
    const bool order_moves =
        r.primary >= Order::scored || r.threshold >= 0 || r.correction != Correction::none;
    if (left < queued || order_moves) {
      due = next;
    } else if (beyond < forever) {
      const i64 late = std::max(beyond - r.window - next, i64{0});
      due = next + (late + r.every - 1) / r.every * r.every;
    }
  }
};

}  // namespace hpc
