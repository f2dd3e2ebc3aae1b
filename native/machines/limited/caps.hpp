// Power caps over time: announced, in force, over; and when actions are due.
//
// A cap may keep the first nodes off throughout. It has a forecast for its start: a floor (these
// nodes off, all others on and idle, components above them), plus the power of jobs that may still
// run then by their requested times. From its start on, the charged power replaces the forecast.
#pragma once
#include "budgets.hpp"

namespace hpc {

class CappedNodes : public BudgetedNodes {
 protected:
  using BudgetedNodes::BudgetedNodes;

  static i64 after(i64 time, i64 now) { return time > now ? time : forever; }

  // [s] of the next action that is no event of a job.
  i64 next_own() const {
    i64 time = std::min({next_switched, next_ready, next_timeout()});
    for (const Cap& cap : caps) {
      if (!cap.known) {
        time = std::min(time, after(cap.announced, now));
        continue;
      }
      if (cap.off > 0) time = std::min(time, after(cap.start - layout_->off_time, now));
      time = std::min({time, after(cap.start, now), after(cap.end, now)});
    }
    for (const Budget& b : budgets) {
      time = std::min({time, after(b.start, now), after(b.end, now)});
      if (b.start <= now && now < b.end) time = std::min(time, next_look(b, now));
    }
    return time;
  }
  // Announce the caps that are due to be known.
  void announce() {
    for (Cap& cap : caps) {
      if (cap.known || cap.announced > now) continue;
      cap.known = true;
      cap.idle_mw = idle_mw(cap.off);
      for (const i64 j : holders) add_to_forecast(cap, j, 1);
      set_floor(cap);
    }
  }
  // Charge without jobs while the first `off` nodes are off [mW].
  i64 idle_mw(i64 off) const {
    i64 power = off * layout_->off_mw + (n_nodes() - off) * layout_->rest_mw + components_mw_;
    for (std::size_t k = 0; k < awake_.size(); ++k) {
      const i64 size = layout_->size[k], dark = off == n_nodes() ? n_nodes() : off / size * size;
      power -= (dark + size - 1) / size * layout_->component_mw[k];
      if (k == 0) power -= dark * layout_->off_mw;  // below it, nodes that are off draw nothing
    }
    return power;
  }
  // Set the floor of a forecast: the charge at its start for nodes without a job that runs on.
  // Nodes that are to be off but are late, and nodes that still boot, are charged by their states
  // at the start. A component stays on if a node below it is late or has such a job.
  void set_floor(Cap& cap) const {
    cap.floor_mw = cap.idle_mw;
    for (const i64 node : switching) {
      const LimitedNode& own = node_at(node);
      if (own.job < 0 && own.state == NodeState::switching_on && own.until > cap.start)
        cap.floor_mw += layout_->rise_mw - layout_->rest_mw;
    }
    if (cap.inside == 0 && !some_late(0, cap.off, cap.start)) return;
    for (i64 node = 0; node < cap.off; ++node)
      if (is_late(node, cap.start)) cap.floor_mw += layout_->rest_mw - layout_->off_mw;
    for (std::size_t k = 0; k < awake_.size(); ++k) {
      const i64 size = layout_->size[k];
      for (i64 begin = 0, end = 0; begin < cap.off; begin = end) {
        end = std::min(begin + size, n_nodes());
        if (end > cap.off) continue;
        if (!some_run_on(begin, end, cap.start) && !some_late(begin, end, cap.start)) continue;
        cap.floor_mw += layout_->component_mw[k];
        if (k == 0) cap.floor_mw += (end - begin) * layout_->off_mw;
      }
    }
  }
  // Whether a node without a job from `start` [s] on cannot be off by then.
  bool is_late(i64 node, i64 start) const {
    const LimitedNode& own = node_at(node);
    const i64 off_time = layout_->off_time;
    if (own.job >= 0) {
      const i64 until = task(own.job).until;
      return until <= start && start < until + off_time;
    }
    if (own.state == NodeState::on) return now + off_time > start;
    if (own.state == NodeState::switching_on) return own.until + off_time > start;
    return own.state == NodeState::switching_off && own.until > start;
  }
  bool some_late(i64 begin, i64 end, i64 start) const {  // of these nodes
    for (i64 node = begin; node < end; ++node)
      if (is_late(node, start)) return true;
    return false;
  }
  // Whether a job on one of these nodes may run beyond a time [s].
  bool some_run_on(i64 begin, i64 end, i64 time) const {
    for (i64 node = begin; node < end; ++node)
      if (node_at(node).job >= 0 && task(node_at(node).job).until > time) return true;
    return false;
  }
  // Add a running job to the forecast of a cap; a `sign` of -1 removes it.
  void add_to_forecast(Cap& cap, i64 j, i64 sign) const {
    const LimitedTask& own = task(j);
    if (own.until <= cap.start) return;
    const i64 inside = count_below(j, cap.off);
    cap.inside += sign * inside;
    cap.outside += sign * (width(j) - inside);
    cap.work_mw += sign * (own.ready > cap.start ? own.wait_mw : own.work_mw);
  }
  // Add a started job to all forecasts; a `sign` of -1 removes an ended job.
  void forecast(i64 j, i64 sign) {
    for (Cap& cap : caps) {
      if (!cap.known || cap.start <= now) continue;
      add_to_forecast(cap, j, sign);
      if (!switching.empty() || count_below(j, cap.off) > 0) set_floor(cap);
    }
  }
  // The power charged at the start of a future cap [mW].
  i64 forecast_mw(const Cap& cap) const {
    return cap.floor_mw + cap.work_mw - cap.outside * layout_->rest_mw -
           cap.inside * layout_->off_mw;
  }
  // How many of the first nodes are closed to jobs from `begin` to `end` [s].
  i64 nodes_off(i64 begin, i64 end) const {
    i64 most = 0;
    for (const Cap& cap : caps)
      if (cap.known && begin < cap.end && end > cap.start - layout_->off_time)
        most = std::max(most, cap.off);
    return most;
  }
  // Start switching nodes off as caps demand, and nodes of ended caps on.
  void switch_for_caps() {
    i64 due = 0;
    for (const Cap& cap : caps) {
      if (!cap.known || cap.off == 0) continue;
      if (cap.start - layout_->off_time <= now && now < cap.end) due = std::max(due, cap.off);
      else if (cap.end == now && !cap_near()) wake_free(0, cap.off);
    }
    if (due > 0) switch_off_free(due, forever);
  }
};

}  // namespace hpc
