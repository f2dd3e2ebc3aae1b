// Limits that are set anew from outside as time goes on: a cap, nodes to be off, a ceiling.
//
// The last cap is then a *control*: from the time it is set on it holds as a cap of power that has
// just been announced, without killing, and keeps the first nodes off; no job starts at a level
// above the ceiling. Nodes are switched on after a cap or a control whatever its power, as far as
// budgets suffice. And whatever it says, a machine on which nothing runs serves the first job, if
// limits allow it: so none waits for ever.
#pragma once
#include "reservations.hpp"

namespace hpc {

class ControlledNodes : public ReservingNodes {
 public:
  using ReservingNodes::idle_mw, ReservingNodes::plenty;

  // Set the control anew, from the second after `time` on, or from the beginning, up to `end` [s]:
  // until then it is not changed again. `off`: how many of the first nodes are to be off. Where
  // nothing was limited, and nothing is, there is no pass for it: the schedule is as if nobody had
  // said it.
  void set_control(i64 time, i64 end, i64 mw, i64 off, i64 level) {
    Cap& control = caps.back();
    const i64 start = now < begin_ ? begin_ : time + 1;
    if (limits_nothing(control) && mw == plenty && off == 0 && level == ceiling) return;
    was_off = control.off;
    ceiling = level;
    control.start = control.announced = start;
    control.mw = mw, control.off = off;
    extend_control(end);
    control.known = false;
    control.work_mw = control.outside = control.inside = 0;
  }
  // Let it hold up to another time [s]. One that limits nothing has no end: plans do not look at
  // the time.
  void extend_control(i64 end) {
    caps.back().end = limits_nothing(caps.back()) ? forever : end;
  }
  // Whether a head may start where no job runs, whatever the control says.
  bool fits_without_control(i64 head, i64 room) {
    if (!layout_->controlled || !holders.empty() || width(head) > room) return false;
    const bool known = std::exchange(caps.back().known, false);
    const bool found = find_level(head, false, 0);
    caps.back().known = known;
    return found;
  }

 protected:
  using ReservingNodes::ReservingNodes;

  // Begin to switch on the nodes that a control which begins now does not have off any more.
  void switch_for_control() {
    if (!layout_->controlled || caps.back().start != now) return;
    Cap& control = caps.back();
    control.known = false;  // it says nothing of the nodes behind its own
    if (!cap_near()) wake_free(control.off, was_off);
    control.known = true;
    was_off = control.off;
  }

 private:
  static bool limits_nothing(const Cap& control) { return control.mw == plenty && control.off == 0; }
};

}  // namespace hpc
