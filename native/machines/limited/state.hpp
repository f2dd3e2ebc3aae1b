// The state of a machine under limits.
//
// Two powers are kept. The *true* one, `drawn`, is what nodes draw. Limits apply to the *charged*
// one, which is never below it: a free node that is on may start switching off in the next second,
// and is charged the larger of both powers; a node whose job waits for other nodes is charged as
// switching on or as busy, whichever is more.
#pragma once
#include <span>
#include <vector>

#include "../../core/machine.hpp"
#include "../../core/model.hpp"
#include "../node_set.hpp"
#include "layout.hpp"

namespace hpc {

// The first three are indices into STATE_NAMES of hpcgym.schedule.runs.
enum class NodeState : std::uint8_t { off, switching_off, switching_on, on };

struct LimitedNode {
  NodeState state;
  i64 since;  // [s] since when it is in this state; if free and on: idle
  i64 until;  // [s] when switching is complete
  i64 job;    // the job that has the node, -1: free
  bool boots;  // it is switched on as soon as it is off
  i64 place;   // in `switching`
};

struct LimitedTask {  // the data of a job from its start on
  i64 level;
  i64 passed;    // [s] the pass that gave it its nodes
  i64 ready;     // [s] its start
  i64 until;     // [s] the end of its requested time
  i64 end;       // [s] its true end
  i64 expected;  // [s] its predicted end, by the last plan
  i64 work_mw, wait_mw;  // charged while it runs, and while it waits for its nodes
  i64 drawn_mw;          // true power while it runs
  i64 predicted;         // [s] at the highest level, before any correction
};

struct Cap : PowerCap {
  Cap() = default;
  explicit Cap(const PowerCap& told) : PowerCap(told) {}
  bool known = false;  // it has been announced
  i64 idle_mw = 0;     // charged during it without jobs
  // forecast for its start, by requested ends:
  i64 floor_mw = 0;  // without jobs
  i64 work_mw = 0;
  i64 outside = 0, inside = 0;  // nodes of jobs that run on: on other nodes, on nodes to be off
  // the same in the plan, by predicted ends: at its start, and at the examined time
  i64 plan_work_mw = 0, plan_held = 0, plan_inside = 0, inside_now = 0;
};

struct Budget : EnergyBudget {
  Budget() = default;
  explicit Budget(const EnergyBudget& told) : EnergyBudget(told) {}
  i64 spent = 0;     // [mJ] true energy up to now
  i64 saved = 0;     // [mJ] below the mean power, at the last reading
  // at this pass
  bool in_use = false;  // it has begun, or a job that has its nodes may run into it
  i64 ahead = 0;        // [mJ] charged up to its end if nothing else starts
  i64 reckoned_mw = 0;  // present power, if free nodes have a fixed one
  i64 reserved = 0;     // [mJ] for the head, and for jobs backfilled in this pass
  // in the plan
  i64 rest_mw = 0;  // of a node after its job
  i64 base_mw = 0;  // of the machine without jobs
  i64 plan_mj = 0;     // spent by its end, without the head
  i64 plan_saved = 0;  // by the examined time

  bool is_fixed() const { return free_mw >= 0; }
  // Energy above the mean from one time to another, at a constant power [mJ].
  i64 above_mean(i64 mw, i64 from, i64 to) const {
    return (mw - mean_mw) * std::max(std::min(to, end) - std::max(from, start), i64{0});
  }
  void keep(Archive& a) {
    a(static_cast<EnergyBudget&>(*this), spent, saved, in_use, ahead, reckoned_mw, reserved, rest_mw, base_mw, plan_mj,
      plan_saved);
  }
};

struct NodeInterval {  // in which a node was off or switching
  i64 node, state, begin, end;  // [s]
};

class LimitedState : public AnyMachine {
 public:
  std::vector<LimitedNode> nodes;
  std::vector<LimitedTask> tasks;        // by job
  std::vector<i64> holders;       // jobs that have nodes
  std::vector<i64> waiting;       // jobs that wait for their nodes to be on
  std::vector<i64> switching;     // nodes that are being switched
  std::vector<NodeInterval> log;
  std::vector<Cap> caps;
  std::vector<Budget> budgets;
  i64 now;                        // [s] up to which energy has been counted
  i64 charged, drawn;             // [mW]
  i64 saved_mw = 0;               // by components that are off, with all below them
  i64 free_on, free_off = 0, free_rising = 0;  // free nodes: on, off, being switched on
  i64 next_switched = forever;    // [s] when the first of `switching` is done
  i64 next_ready = forever;       // [s] when the first of `waiting` begins
  i64 used_mj = 0;                // true energy from the first submission on
  i64 kills = 0;                  // jobs killed for a cap
  i64 ceiling;                    // the highest level allowed now, see controls.hpp
  i64 was_off = 0;                // nodes kept off by the control before its last change
  bool to_wake = false;  // free nodes that are off now are to be switched on

  LimitedState(const Model& model, const LimitedLayout& layout, i64 begin)
      : nodes(index(layout.n_nodes), {NodeState::on, begin, forever, -1, false, 0}),
        tasks(index(model.n_jobs)),
        now(before - 1),
        free_on(layout.n_nodes),
        ceiling(layout.highest),
        model_(&model),
        layout_(&layout),
        begin_(begin),
        free_(layout.n_nodes),
        on_(layout.n_nodes),
        later_(layout.n_nodes) {
    for (const PowerCap& cap : layout.caps) caps.emplace_back(cap);
    for (const EnergyBudget& budget : layout.budgets) budgets.emplace_back(budget);
    i64 below = layout.n_nodes;
    for (std::size_t k = 0; k < layout.size.size(); ++k) {
      const i64 step = layout.size[k] / (k > 0 ? layout.size[k - 1] : 1);
      std::vector<i64>& awake = awake_.emplace_back();
      for (i64 first = 0; first < below; first += step)
        awake.push_back(std::min(step, below - first));
      below = static_cast<i64>(awake.size());
      components_mw_ += below * layout.component_mw[k];
    }
    charged = layout.n_nodes * layout.rest_mw + components_mw_;
    drawn = layout.n_nodes * layout.idle_mw + components_mw_;
    for (i64 node = 0; node < layout.n_nodes; ++node) free_.add(node), on_.add(node);
    first_.push_back(0);
    for (i64 j = 0; j < model.n_jobs; ++j) first_.push_back(first_.back() + width(j));
    cells_.resize(index(first_.back()));
  }

  void keep(Archive& a) {
    a(nodes, tasks, holders, waiting, switching, log, caps, budgets, now, charged, drawn, saved_mw,
      free_on, free_off, free_rising, next_switched, next_ready, used_mj, kills, ceiling, was_off,
      to_wake, awake_, cells_, free_, on_, later_);
    a.check_jobs(holders), a.check_jobs(waiting);
    const auto check_node = [&](i64 node) { a.check(is_between(node, 0, n_nodes() - 1)); };
    for (const i64 node : switching) check_node(node);
    for (const std::int32_t node : cells_) check_node(node);
    for (const NodeInterval& each : log) check_node(each.node);
    for (const LimitedNode& each : nodes) {
      a.check_job(each.job, -1);
      a.check(each.state <= NodeState::on && is_between(each.place, 0, n_nodes()));
    }
    for (const LimitedTask& each : tasks) a.check(is_between(each.level, 0, layout_->n_levels() - 1));
  }
  i64 width(i64 j) const { return model_->jobs[j].processors; }
  // The nodes that a job has, or had, ascending.
  std::span<const std::int32_t> cells(i64 j) const {
    return {cells_.data() + first_[index(j)], index(width(j))};
  }

 protected:
  static constexpr i64 before = -1;  // [s] before all events: announcement of permanent caps

  const Model* model_;
  const LimitedLayout* layout_;
  i64 begin_;               // [s] since when `used_mj` counts
  i64 components_mw_ = 0;   // of all components above nodes
  std::vector<std::vector<i64>> awake_;  // by component: how many parts directly below are not off
  std::vector<i64> first_;  // where the nodes of each job begin
  std::vector<std::int32_t> cells_;
  NodeSet free_;   // without a job
  NodeSet on_;     // and on
  NodeSet later_;  // free at the time that a plan examines

  LimitedNode& node_at(i64 node) { return nodes[index(node)]; }
  const LimitedNode& node_at(i64 node) const { return nodes[index(node)]; }
  LimitedTask& task(i64 j) { return tasks[index(j)]; }
  const LimitedTask& task(i64 j) const { return tasks[index(j)]; }
  std::int32_t* cell_of(i64 j) { return &cells_[index(first_[index(j)])]; }
  i64 n_nodes() const { return layout_->n_nodes; }
  // The lowest level at which a job may start, at most the ceiling.
  i64 lowest_level() const { return std::min(layout_->lowest, ceiling); }
  // The cap that an agent sets, if there is one.
  bool is_control(const Cap& cap) const { return layout_->controlled && &cap == &caps.back(); }
};

}  // namespace hpc
