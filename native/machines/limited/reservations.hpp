// The head's reservation under limits: when it can start by predicted ends, and what it leaves.
//
// The shadow time is the first of these times at which the head finds nodes and power: now,
// predicted ends, ends of caps, starts and ends of budgets, and readings of a budget's meter if its
// saved energy is used. The plan assumes that running jobs last until their predicted ends, and
// that no job starts. Under caps, nodes that no cap keeps off are on; under budgets, nodes that are
// off now stay off. All switch at once.
#pragma once
#include <utility>

#include "../../base/ordered.hpp"
#include "starts.hpp"

namespace hpc {

class ReservingNodes : public StartingNodes {
 protected:
  using StartingNodes::StartingNodes;

  // Find the shadow time of the head, and the nodes, power and energy that it leaves then.
  // `missing`: nodes that are not free now, of those that it needs and holds back. `strict`: jobs
  // started before the head must end earlier, so it leaves nothing.
  void plan_for(i64 head, i64 missing, const OrderedList& running, bool strict) {
    Plan p{now, 0, 0, count_off()};
    begin_plan(p, running);
    p.beside = missing + n_nodes() - p.held - width(head);
    for (std::size_t i = 0;;) {
      if (n_nodes() - p.held >= width(head) + p.beside && (p.level = planned_level(p, head)) >= 0)
        break;
      const i64 later = next_planned(i < leaving_.size() ? leaving_[i].first : forever, p.time);
      if (later == forever) {  // the machine is empty, but switches nodes: no job may backfill
        left_.shadow = now;
        return leave_nothing(strict);
      }
      pass_over(p, later);
      p.time = later;
      for (; i < leaving_.size() && leaving_[i].first <= p.time; ++i) {
        const i64 j = leaving_[i].second;
        p.total -= task(j).work_mw;
        p.held -= width(j);
        leave(j);
      }
    }
    left_.shadow = left_.over = p.time;
    note_left(p, head);
    if (strict) leave_nothing(strict);
  }

 private:
  struct Plan {
    i64 time;   // [s] that is examined
    i64 total;  // [mW] charged for the jobs that run at that time
    i64 held;   // their nodes
    i64 off;    // free nodes that are off, or are switching off
    i64 level = -1;  // of the head
    i64 beside = 0;  // nodes that it holds back
  };
  struct Room {
    i64 spare;  // nodes that the head leaves, negative if it lacks some
    i64 row;    // the first of its nodes, if they are consecutive
  };
  std::vector<std::pair<i64, i64>> leaving_;  // predicted ends [s] and their jobs

  // Only jobs that end by the shadow time, or if `strict` before it, may start.
  void leave_nothing(bool strict) {
    left_.over = left_.shadow - strict;
    left_.nodes = left_.mw = -1;
    left_.block_from = 0, left_.block_to = n_nodes();
  }
  i64 count_off() const {
    i64 off = free_off;
    for (const i64 node : switching) {
      const LimitedNode& own = node_at(node);
      off += own.job < 0 && own.state == NodeState::switching_off && !own.boots;
    }
    return off;
  }
  // Sum up what runs now, and what will still run when limits begin.
  void begin_plan(Plan& p, const OrderedList& running) {
    for (Cap& cap : caps) cap.plan_work_mw = cap.plan_held = cap.plan_inside = cap.inside_now = 0;
    for (Budget& b : budgets) begin_budget(b, p.off);
    if (layout_->contiguous) later_ = free_;
    leaving_.clear();
    running.each([&](const Entry& e) {
      task(e.job).expected = e.key;
      leaving_.push_back({e.key, e.job});
      p.total += task(e.job).work_mw;
      p.held += width(e.job);
      for (Cap& cap : caps) plan_cap(cap, e.job);
      for (Budget& b : budgets) plan_budget(b, e.job);
    });
  }
  // Add a running job to the plan of a cap.
  void plan_cap(Cap& cap, i64 j) const {
    if (!cap.known || cap.end <= now) return;
    const i64 inside = count_below(j, cap.off);
    cap.inside_now += inside;
    if (task(j).expected <= cap.start) return;
    cap.plan_work_mw += task(j).work_mw;
    cap.plan_held += width(j);
    cap.plan_inside += inside;
  }
  // Begin with the machine without jobs.
  void begin_budget(Budget& b, i64 off) const {
    const i64 off_mw = off_for(b);
    b.rest_mw = b.shuts ? off_mw : layout_->rest_mw;
    b.base_mw = off * off_mw + (n_nodes() - off) * b.rest_mw + above_mw(b);
    b.plan_saved = b.saved;
    b.plan_mj = b.spent + b.base_mw * std::max(b.end - std::max(now, b.start), i64{0});
  }
  // Add a running job to the plan of a budget.
  void plan_budget(Budget& b, i64 j) const {
    const LimitedTask& own = task(j);
    const i64 more = own.work_mw - width(j) * b.rest_mw, begin = std::max(now, b.start);
    b.plan_mj += more * std::max(std::min(own.expected, b.end) - begin, i64{0});
  }
  // [s] the next time to examine; `leaves`: when the next job ends.
  i64 next_planned(i64 leaves, i64 time) const {
    i64 later = leaves;
    for (const Cap& cap : caps)
      if (cap.known) later = std::min(later, after(cap.end, time));
    for (const Budget& b : budgets) {
      later = std::min({later, after(b.start, time), after(b.end, time)});
      if (b.start <= time && time < b.end && layout_->use > BudgetUse::powercap)
        later = std::min(later, next_look(b, time));
    }
    return later;
  }
  // Count what is saved from the examined time until another.
  void pass_over(const Plan& p, i64 later) {
    for (Budget& b : budgets) b.plan_saved -= b.above_mean(planned_mw(p, b), p.time, later);
  }
  // A job has left its nodes.
  void leave(i64 j) {
    for (Cap& cap : caps)
      if (cap.known && cap.off > 0) cap.inside_now -= count_below(j, cap.off);
    if (layout_->contiguous)
      for (const i64 node : cells(j)) later_.add(node);
  }
  // The highest level at which the head can start at the examined time, -1: none.
  i64 planned_level(Plan p, i64 head) const {
    for (p.level = ceiling; p.level >= lowest_level(); --p.level) {
      const i64 until = ends(p, head);
      if (room_for(p, head, until).spare >= 0 && spare_below_caps(p, head, until) >= 0 &&
          plan_allows(p, head, until))
        return p.level;
    }
    return -1;
  }
  i64 ends(const Plan& p, i64 head) const {  // [s] by its requested time
    return p.time + slowed(head, p.level, model_->jobs[head].requested);
  }
  Room room_for(const Plan& p, i64 head, i64 until) const {
    i64 lowest = 0, inside = 0;
    for (const Cap& cap : caps) {
      if (!cap.known || cap.off <= lowest) continue;
      if (p.time < cap.end && until > cap.start - layout_->off_time)
        lowest = cap.off, inside = cap.inside_now;
    }
    const i64 spare = n_nodes() - lowest - (p.held - inside) - width(head) - p.beside;
    if (spare < 0 || !layout_->contiguous) return {spare, 0};
    const i64 row = later_.row(lowest, width(head), 0, 0);
    return row >= 0 ? Room{spare, row} : Room{-1, 0};
  }
  // Power that the head leaves below all caps, negative if one is exceeded [mW].
  i64 spare_below_caps(const Plan& p, i64 head, i64 until) const {
    i64 spare = plenty;
    const i64 more = work_mw(head, p.level) - width(head) * layout_->rest_mw;
    for (const Cap& cap : caps) {
      if (!cap.known || cap.end <= p.time || cap.start >= until) continue;
      i64 work = p.total, held = p.held, inside = cap.inside_now;
      if (cap.start > p.time)
        work = cap.plan_work_mw, held = cap.plan_held, inside = cap.plan_inside;
      const i64 power = cap.idle_mw + work - (held - inside) * layout_->rest_mw -
                        inside * layout_->off_mw;
      spare = std::min(spare, cap.mw - power - more);
    }
    return spare;
  }
  // Whether budgets suffice for the head, and their rule allows it.
  bool plan_allows(const Plan& p, i64 head, i64 until) const {
    for (const Budget& b : budgets) {
      if (!b.binds || b.end <= p.time || b.start >= until) continue;
      const i64 seconds = std::min(until, b.end) - std::max(p.time, b.start);
      if (b.plan_mj + planned_more(p, b, head) * seconds > b.mj) return false;
      if (layout_->use == BudgetUse::suffices) continue;
      const i64 power = planned_with(p, b, head);
      const bool below = power <= b.mean_mw && layout_->use != BudgetUse::energy_bud;
      if (below) continue;
      if (layout_->use == BudgetUse::powercap) return false;
      if (b.above_mean(power, p.time, until) > b.plan_saved) return false;
    }
    return true;
  }
  // Power at the examined time, as a budget reckons it, without the head and with it [mW].
  i64 planned_mw(const Plan& p, const Budget& b) const {
    if (b.is_fixed()) return components_mw_ + p.total + (n_nodes() - p.held) * b.free_mw;
    return b.base_mw + p.total - p.held * b.rest_mw;
  }
  i64 planned_with(const Plan& p, const Budget& b, i64 head) const {
    if (b.is_fixed()) return planned_mw(p, b) + work_mw(head, p.level) - width(head) * b.free_mw;
    return planned_mw(p, b) + planned_more(p, b, head);
  }
  // Increase of power by the head, on nodes that are on first [mW].
  i64 planned_more(const Plan& p, const Budget& b, i64 head) const {
    const i64 on = std::min(width(head), n_nodes() - p.off - p.held);
    return work_mw(head, p.level) - on * b.rest_mw - (width(head) - on) * off_for(b);
  }
  // Note what the head leaves at the shadow time.
  void note_left(const Plan& p, i64 head) {
    const i64 until = ends(p, head);
    const Room room = room_for(p, head, until);
    left_.nodes = room.spare;
    left_.block_from = room.row, left_.block_to = room.row + width(head);
    left_.mw = spare_below_caps(p, head, until);
    for (Budget& b : budgets) b.reserved = reserved_for(p, b, head, until);
  }
  // What is reserved of a budget for the head at the shadow time [mJ]. Under `energy_bud` that may
  // be negative: then others have it.
  i64 reserved_for(const Plan& p, const Budget& b, i64 head, i64 until) const {
    if (!b.binds || layout_->use == BudgetUse::powercap) return 0;
    const i64 seconds = std::min(until, b.end) - std::max(p.time, b.start);
    if (layout_->use == BudgetUse::suffices)
      return planned_more(p, b, head) * std::max(seconds, i64{0});
    const i64 above = b.above_mean(planned_with(p, b, head), p.time, until);
    return layout_->use == BudgetUse::reduce_pc ? std::max(above, i64{0}) : above;
  }
};

}  // namespace hpc
