// Accounts of energy budgets: energy drawn and saved, and forecasts.
#pragma once
#include "nodes.hpp"

namespace hpc {

class BudgetedNodes : public PoweredNodes {
 protected:
  using PoweredNodes::PoweredNodes;

  // Count the energy drawn up to a time [s], at constant power since `now`.
  void count_to(i64 time) {
    for (Budget& budget : budgets) {
      const i64 seconds = std::min(time, budget.end) - std::max(now, budget.start);
      if (seconds > 0) budget.spent += drawn * seconds;
    }
    used_mj += drawn * std::max(time - std::max(now, begin_), i64{0});
    now = time;
  }
  // Read the meter if it is due.
  void look() {
    for (Budget& b : budgets) {
      if (now < b.start || now > b.end) continue;
      if (now != b.end && (now - b.start) % b.period != 0) continue;
      b.saved = b.mean_mw * (now - b.start) - b.spent;
    }
  }
  // [s] of the next meter reading after a time within a budget, or of its end.
  static i64 next_look(const Budget& b, i64 time) {
    return std::min(time + b.period - (time - b.start) % b.period, b.end);
  }

  // --- Forecasts --------------------------------------------------------------------------------

  // Forecast the charge up to the end of each budget if nothing else starts.
  void weigh() {
    for (Budget& b : budgets) {
      if (b.end <= now) continue;
      const i64 begin = std::max(now, b.start);
      b.in_use = b.start <= now;
      weigh_free(b, begin);
      b.reckoned_mw = components_mw_ + n_nodes() * b.free_mw;
      for (const i64 j : holders) weigh_job(b, begin, j);
    }
  }
  // Begin with the free nodes, and the components above nodes.
  void weigh_free(Budget& b, i64 begin) {
    const i64 components = above_mw(b), off_mw = off_for(b);
    b.ahead = free_on * idle_mj(b, begin) + (free_off * off_mw + components) * (b.end - begin);
    for (const i64 node : switching)
      if (node_at(node).job < 0) b.ahead += free_mj(b, begin, node);
  }
  // Power that a budget charges for a node that is off [mW]; the meter reads its true power.
  i64 off_for(const Budget& b) const { return b.is_fixed() ? layout_->rest_mw : layout_->off_mw; }
  // Power that a budget charges for components above nodes in their present states [mW].
  i64 above_mw(const Budget& b) const { return components_mw_ - (b.is_fixed() ? 0 : saved_mw); }
  // Charge of a node that is free from `begin` [s] to the end of a budget [mJ]. If the budget shuts
  // idle nodes, it is switched off at once.
  i64 idle_mj(const Budget& b, i64 begin) const {
    const i64 seconds = std::max(b.end - begin, i64{0});
    if (!b.shuts) return layout_->rest_mw * seconds;
    const i64 ends = std::min(seconds, layout_->off_time);
    return layout_->rest_mw * ends + off_for(b) * (seconds - ends);
  }
  // The same for a free node in its present state.
  i64 free_mj(const Budget& b, i64 begin, i64 node) const {
    const LimitedNode& own = node_at(node);
    if (own.state == NodeState::on) return idle_mj(b, begin);
    if (own.state == NodeState::off) return off_for(b) * (b.end - begin);
    const i64 done = std::min(std::max(own.until, begin), b.end);
    if (own.state == NodeState::switching_off)
      return layout_->rest_mw * (done - begin) + off_for(b) * (b.end - done);
    return layout_->rise_mw * (done - begin) + idle_mj(b, done);
  }
  // Add a job that has its nodes.
  void weigh_job(Budget& b, i64 begin, i64 j) {
    const LimitedTask& own = task(j);
    b.ahead += job_mj(b, begin, j);
    b.in_use |= own.until > b.start;
    b.reckoned_mw += (own.ready > now ? own.wait_mw : own.work_mw) - width(j) * b.free_mw;
  }
  // Charge of a job, and then of its nodes, from `begin` [s] to the end of a budget [mJ].
  i64 job_mj(const Budget& b, i64 begin, i64 j) const {
    const LimitedTask& own = task(j);
    const i64 ready = std::min(std::max(own.ready, begin), b.end);
    const i64 until = std::min(std::max(own.until, begin), b.end);
    return own.wait_mw * (ready - begin) + own.work_mw * std::max(until - ready, i64{0}) +
           width(j) * idle_mj(b, std::max(own.until, begin));
  }
  // After a pass: switch off nodes that have been idle long enough.
  void switch_off_idle() {
    for (const Budget& b : budgets)
      if (b.shuts && b.start <= now && now < b.end) return switch_off_free(n_nodes(), forever);
    if (layout_->timeout < forever) switch_off_free(n_nodes(), now - layout_->timeout);
  }

  // --- Switching free nodes on again ------------------------------------------------------------

  // Switch on those free nodes in [first, end) for which budgets suffice.
  void wake_free(i64 first, i64 end) {
    weigh();
    for (i64 node = first; node < end; ++node) {
      const LimitedNode& own = node_at(node);
      // for nodes still switching off see `wake_late`
      if (own.job < 0 && (own.state != NodeState::off || count_woken(node))) wake(node);
    }
  }
  // Switch on the free nodes that had to be off first.
  void wake_late() {
    if (!to_wake) return;
    to_wake = false;
    const bool near = cap_near();  // a cap may have been announced since then
    weigh();
    for (i64 node = 0; node < n_nodes(); ++node) {
      LimitedNode& own = node_at(node);
      if (!own.boots || own.state != NodeState::off) continue;
      own.boots = false;
      if (!near && count_woken(node)) switch_on(node);
    }
  }
  // Whether all budgets in use suffice to switch a free node on; if so, charge it. Jobs that may
  // run into a budget were started as if the node stayed off.
  bool count_woken(i64 node) {
    for (const Budget& b : budgets)
      if (b.binds && b.in_use && b.end > now && b.spent + b.ahead + woken_mj(b, node) > b.mj)
        return false;
    for (Budget& b : budgets)
      if (b.end > now) b.ahead += woken_mj(b, node);
    return true;
  }
  // Charge up to the end of a budget for switching a free node on now [mJ].
  i64 woken_mj(const Budget& b, i64 node) const {
    const i64 begin = std::max(now, b.start);
    const i64 ready = std::min(std::max(now + layout_->on_time, begin), b.end);
    const i64 stays = off_for(b) - (b.is_fixed() ? 0 : woken_mw(node, -1));
    return layout_->rise_mw * (ready - begin) + idle_mj(b, ready) - stays * (b.end - begin);
  }
  // Power of components above a node that are off, without those above the node `other`, -1: none.
  i64 woken_mw(i64 node, i64 other) const {
    i64 woken = 0;
    for (std::size_t k = 0; k < awake_.size(); ++k) {
      const i64 size = layout_->size[k];
      if (awake_[k][index(node / size)] > 0) break;
      if (other >= 0 && other / size == node / size) continue;
      woken += layout_->component_mw[k] + (k > 0 ? 0 : off_beside(node));
    }
    return woken;
  }
};

}  // namespace hpc
