// Limits that an agent sets over time: a power cap, nodes to be off, a ceiling for levels.
//
// The last cap is then a *control*: once set, it holds as a power cap that has just been announced,
// without killing, and keeps the first nodes off; no job starts at a level above the ceiling. After
// a cap or a control nodes are switched on whatever its power, as far as budgets suffice. On a
// machine without running jobs the first job starts despite the control, if limits allow it: so no
// job waits for ever.
#pragma once
#include "reservations.hpp"

namespace hpc {

class ControlledNodes : public ReservingNodes {
 public:
  using ReservingNodes::idle_mw, ReservingNodes::plenty;

  // Set the control from the second after `time` on, or from the beginning, until `end` [s], the
  // earliest time of another change. `off`: how many of the first nodes are to be off. If nothing
  // was limited, and nothing is, no pass is added: the schedule stays as without the call.
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
  // Let the control hold until another time [s]. A control that limits nothing has no end, so that
  // plans do not stop there.
  void extend_control(i64 end) {
    caps.back().end = limits_nothing(caps.back()) ? forever : end;
  }
  // Whether the head may start on a machine without running jobs, despite the control.
  bool fits_without_control(i64 head, i64 room) {
    if (!layout_->controlled || !holders.empty() || width(head) > room) return false;
    const bool known = std::exchange(caps.back().known, false);
    const bool found = find_level(head, false, 0);
    caps.back().known = known;
    return found;
  }

 protected:
  using ReservingNodes::ReservingNodes;

  // Start switching on the nodes that a control which begins now no longer keeps off.
  void switch_for_control() {
    if (!layout_->controlled || caps.back().start != now) return;
    Cap& control = caps.back();
    control.known = false;  // it does not concern nodes behind its own
    if (!cap_near()) wake_free(control.off, was_off);
    control.known = true;
    was_off = control.off;
  }

 private:
  static bool limits_nothing(const Cap& control) { return control.mw == plenty && control.off == 0; }
};

}  // namespace hpc
