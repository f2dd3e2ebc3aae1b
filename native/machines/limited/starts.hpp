// Whether a job may start now under all limits, and at which level; and its start.
//
// A job starts at the highest level that limits allow (Glesser 2016, algorithm 3): the charged
// power with it must be within all caps in force, and the forecasts with it within all announced
// caps that it may run into by its requested time. For budgets see `budgets_allow`.
#pragma once
#include "caps.hpp"

namespace hpc {

class StartingNodes : public CappedNodes {
 protected:
  using CappedNodes::CappedNodes;

  static constexpr i64 plenty = i64{1} << 61;  // [mW] above any power

  struct Tried {  // of the job tested last
    bool backfills = false;  // it would start before the head, which has a reservation
    i64 level = -1;
    i64 predicted = 0;      // [s] at the highest level, if it backfills
    i64 ready = 0;          // [s] when the last of its nodes is on
    bool all_on = false;    // whether all its nodes are on
    i64 picked_mw = 0;      // charged for its nodes in their states
    i64 picked_off = 0;     // how many of them are off or switching off
    i64 picked_dark = 0;    // how many of them are off
    i64 woken_mw = 0;       // of components that are switched on with them
  };
  struct Left {  // left by the head at the shadow time
    i64 shadow = -1;    // [s]
    i64 over = -1;      // [s] jobs that end by then take nothing of it
    i64 nodes = 0;
    i64 mw = 0;         // below caps
    i64 block_from = 0, block_to = 0;  // the head's nodes, if consecutive
  };
  Tried tried_;
  Left left_;

  // Find the highest level at which a job may start now, and choose its nodes; return success.
  bool find_level(i64 j, bool backfills, i64 predicted) {
    tried_.backfills = backfills, tried_.predicted = predicted;
    for (tried_.level = ceiling; tried_.level >= lowest_level(); --tried_.level)
      if (may_start(j)) return true;
    return false;
  }
  bool may_start(i64 j) {
    const i64 requested = slowed(j, tried_.level, model_->jobs[j].requested);
    // first as if all its nodes were on: other nodes only draw more and are ready later, except
    // nodes that are being switched on, which are charged more than idle ones
    tried_.ready = now;
    tried_.picked_mw = width(j) * layout_->rest_mw;
    tried_.picked_off = tried_.picked_dark = tried_.woken_mw = 0;
    if (tried_.backfills && !leaves_room(j)) return false;
    const bool sure = free_rising == 0;
    if (sure && !limits_allow(j, now + requested)) return false;
    if (!choose(j, requested, 0, 0)) return false;
    if (tried_.backfills && (layout_->contiguous || tried_.ready > now)) {
      if (!leaves_room(j)) return false;
      const i64 predicted = slowed(j, tried_.level, tried_.predicted);
      if (layout_->contiguous && tried_.ready + predicted > left_.over &&
          !choose(j, requested, left_.block_from, left_.block_to))
        return false;
    }
    if (!tried_.all_on) weigh_picked(j);
    else if (sure) return true;
    return limits_allow(j, tried_.ready + requested);
  }
  // Choose nodes for a job outside a block; return whether they suffice.
  bool choose(i64 j, i64 requested, i64 block_from, i64 block_to) {
    for (i64 lowest = nodes_off(now, now + requested);;) {
      const bool found = layout_->contiguous
                             ? pick_row(j, lowest, block_from, block_to, tried_.all_on)
                             : pick(j, lowest, tried_.all_on);
      if (!found) return false;
      tried_.ready = now;
      if (tried_.all_on) return true;
      tried_.ready = ready_time(j);
      // a job that waits for its nodes ends later, and may meet another cap
      const i64 again = nodes_off(now, tried_.ready + requested);
      if (again <= lowest) return true;
      lowest = again;
    }
  }
  // Whether a job leaves the head its nodes and its power at the shadow time. If nodes must be
  // consecutive, the head's row is checked where nodes are chosen.
  bool leaves_room(i64 j) const {
    if (tried_.ready + slowed(j, tried_.level, tried_.predicted) <= left_.over) return true;
    if (width(j) > left_.nodes && (!layout_->contiguous || model_->rules.holds)) return false;
    return work_mw(j, tried_.level) - width(j) * layout_->rest_mw <= left_.mw;
  }
  // Whether all limits up to a time [s] allow a job on the chosen nodes.
  bool limits_allow(i64 j, i64 until) const {
    return caps_allow(j, until) && budgets_allow(j, until);
  }
  // Upper bound of the nodes of a job that may start now under the limits in force.
  i64 widest(i64 most) const {
    const i64 busy = layout_->busy_mw[index(lowest_level())];
    if (free_rising > 0) return most;
    const auto fit = [&](i64 mw, i64 free_mw) {
      if (busy > free_mw) most = std::min(most, std::max(mw, i64{0}) / (busy - free_mw));
    };
    for (const Cap& cap : caps)
      if (cap.known && cap.start <= now && now < cap.end) fit(cap.mw - charged, layout_->rest_mw);
    if (layout_->use == BudgetUse::powercap || layout_->use == BudgetUse::reduce_pc)
      for (const Budget& b : budgets) {
        if (!b.binds || b.start > now || now >= b.end) continue;
        if (b.is_fixed()) fit(b.mean_mw - b.reckoned_mw, b.free_mw);
        else fit(b.mean_mw - charged, layout_->rest_mw);
      }
    return most;
  }
  // Compute the present charge for the chosen nodes, and for components switched on with them.
  void weigh_picked(i64 j) {
    tried_.picked_mw = tried_.picked_off = tried_.picked_dark = tried_.woken_mw = 0;
    i64 other = -1;
    for (const i64 node : cells(j)) {
      const NodeState state = node_at(node).state;
      tried_.picked_mw += charged_for(state);
      if (state == NodeState::off || state == NodeState::switching_off) ++tried_.picked_off;
      if (state == NodeState::off) {
        ++tried_.picked_dark;
        tried_.woken_mw += woken_mw(node, other);
      }
      other = node;
    }
  }
  // Increase of the charged power when a job starts on the chosen nodes [mW].
  i64 more_now(i64 j) const { return mw_at(now, j) - tried_.picked_mw + tried_.woken_mw; }
  // Charge at a time for a job that starts now on the chosen nodes [mW].
  i64 mw_at(i64 time, i64 j) const {
    return tried_.ready > time ? wait_mw(j, tried_.level) : work_mw(j, tried_.level);
  }
  bool caps_allow(i64 j, i64 until) const {
    for (const Cap& cap : caps) {
      if (!cap.known || cap.end <= now || cap.start >= until) continue;
      const i64 power = cap.start <= now ? charged + more_now(j)
                                         : forecast_mw(cap) + mw_at(cap.start, j) -
                                               width(j) * layout_->rest_mw;
      if (power > cap.mw) return false;
    }
    return true;
  }

  // --- Budgets ----------------------------------------------------------------------------------

  // Each budget must suffice for all that is certain then: energy drawn, jobs until their requested
  // ends, and the idle machine; also for nodes that a job which ends earlier has switched on, if
  // others may run into the budget. For what its rule asks more see `rule_allows`.
  bool budgets_allow(i64 j, i64 until) const {
    for (const Budget& b : budgets) {
      const bool reaches = b.start < until;
      if (!b.binds || b.end <= now) continue;
      if (!reaches && (!b.in_use || tried_.picked_off == 0)) continue;
      const i64 sure = b.spent + b.ahead + more_mj(b, j, until);
      if (sure > b.mj || (reaches && !rule_allows(b, j, until, sure))) return false;
    }
    return true;
  }
  // Whether the rule allows a job that may run into a budget (Glesser 2016, section 5.3.3). What is
  // reserved, for the head first, counts against backfilled jobs; it is forgotten after the pass.
  bool rule_allows(const Budget& b, i64 j, i64 until, i64 sure) const {
    const i64 reserved = tried_.backfills ? b.reserved : 0;
    if (layout_->use == BudgetUse::suffices) return sure + reserved <= b.mj;
    const i64 power = with_mw(b, j), above = b.above_mean(power, now, until);
    if (layout_->use == BudgetUse::energy_bud) return above <= b.saved - reserved;
    if (layout_->use == BudgetUse::powercap) return power <= b.mean_mw;
    if (!tried_.backfills) return power <= b.mean_mw || above <= b.saved;
    const i64 seconds = std::max(left_.shadow - std::max(now, b.start), i64{0});
    return power <= b.mean_mw && (b.mean_mw - power) * seconds >= reserved;
  }
  // The present power with a job on the chosen nodes, as a budget reckons it [mW].
  i64 with_mw(const Budget& b, i64 j) const {
    if (b.is_fixed()) return b.reckoned_mw + mw_at(now, j) - width(j) * b.free_mw;
    return charged + more_now(j);
  }
  // Increase of the charge of a budget by a job on the chosen nodes [mJ].
  i64 more_mj(const Budget& b, i64 j, i64 until) const {
    const i64 begin = std::max(now, b.start);
    const i64 ready = std::min(std::max(tried_.ready, begin), b.end);
    const i64 done = std::min(std::max(until, begin), b.end);
    i64 more = wait_mw(j, tried_.level) * (ready - begin);
    more += work_mw(j, tried_.level) * std::max(done - ready, i64{0});
    more += width(j) * idle_mj(b, std::max(until, begin));
    if (!b.is_fixed()) more += tried_.woken_mw * (b.end - begin);
    if (tried_.ready == now && tried_.picked_off == 0)  // all are on
      return more - width(j) * idle_mj(b, begin);
    for (const i64 node : cells(j)) more -= free_mj(b, begin, node);
    return more;
  }

  // --- The start --------------------------------------------------------------------------------

  // Start a job at the level found, on the chosen nodes.
  void start(i64 j, i64 predicted, i64 run) {
    const i64 level = tried_.level;
    LimitedTask& own = task(j);
    own.level = level;
    own.passed = now;
    own.ready = tried_.ready;
    own.work_mw = work_mw(j, level), own.wait_mw = wait_mw(j, level);
    own.drawn_mw = drawn_mw(j, level);
    own.predicted = predicted;
    own.until = own.ready + slowed(j, level, model_->jobs[j].requested);
    own.end = own.ready + slowed(j, level, run);
    if (tried_.backfills) take_from_head(j);
    settle_budgets(j);
    take(j);
    forecast(j, 1);
    weigh();
  }
  // Subtract a job that runs past the shadow time from what the head leaves.
  void take_from_head(i64 j) {
    const LimitedTask& own = task(j);
    if (own.ready + slowed(j, own.level, own.predicted) <= left_.over) return;
    left_.nodes -= width(j);
    left_.mw -= own.work_mw - width(j) * layout_->rest_mw;
  }
  // Under `energy_bud` a backfilled job reserves what it may draw above the mean power.
  void settle_budgets(i64 j) {
    if (layout_->use != BudgetUse::energy_bud || !tried_.backfills) return;
    const i64 until = task(j).until;
    for (Budget& b : budgets)
      if (b.binds && b.end > now) b.reserved += b.above_mean(with_mw(b, j), now, until);
  }
};

}  // namespace hpc
