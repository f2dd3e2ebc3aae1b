// The description of a machine under limits of power and energy: its nodes, and the limits.
//
// Power is in whole milliwatts, energy in whole millijoules: values compared with limits are
// rounded up, limits down. So sums are exact in any order.
#pragma once
#include <memory>
#include <vector>

#include "../../base/numbers.hpp"
#include "../../base/record.hpp"

namespace hpc {

struct PowerCap {
  HPC_RECORD(
      i64 start, end;  // [s]
      i64 announced;   // [s] when it becomes known
      i64 mw;
      i64 kills;  // 1: kills jobs until it holds at its start
      i64 off;);  // nodes in [0, off) are off throughout
};

struct EnergyBudget {
  HPC_RECORD(
      i64 start, end;  // [s]
      i64 mj, mean_mw;
      i64 period;   // [s] between two readings of the meter
      i64 shuts;    // 1: idle nodes are switched off during it
      i64 free_mw;  // what a free node counts as, on or off; -1: by its state
      i64 binds;);  // 1, unless no load can exceed it
};

// Who may use what was saved of a budget; `suffices`: it must suffice for certain, no more.
enum class BudgetUse : i64 { suffices, powercap, reduce_pc, energy_bud };

struct Limits {
  std::vector<PowerCap> caps;
  std::vector<EnergyBudget> budgets;
};

struct LimitedLayout : Limits {
  i64 n_nodes = 0, n_processors = 0;
  i64 idle_mw, off_mw, shutdown_mw, boot_mw;  // of a node
  i64 rest_mw;  // charged for a free node that is on
  i64 rise_mw;  // charged for a free node that is being switched on
  i64 off_time, on_time;  // [s] to switch a node off, and on
  i64 timeout;            // [s] of idleness before a node is switched off; forever: never
  i64 lowest, highest;    // levels at which jobs run
  BudgetUse use;
  bool contiguous;  // a job has consecutive nodes
  bool limited;     // there is a limit: each change of power is followed by a pass
  bool controlled = false;  // an agent sets the last cap, see controls.hpp
  // by level
  std::vector<i64> busy_mw;   // charged for a node of a job
  std::vector<i64> drawn_mw;  // its true power
  std::vector<i64> slowdown;  // (kinds, levels) [millionths]
  const i64* kind = nullptr;         // by job, of slowdown
  const i64* processors = nullptr;   // by job, as requested
  const i64* measured_mw = nullptr;  // (jobs, levels) of whole jobs, -1: unknown; may be nullptr
  // components above nodes, from the lowest up
  std::vector<i64> size;  // nodes below a component
  std::vector<i64> component_mw;

  i64 n_levels() const { return static_cast<i64>(busy_mw.size()); }
  // Replace the limits by these, and a control that is not set yet.
  void limit(const Limits& limits) {
    static_cast<Limits&>(*this) = limits;
    if (controlled) caps.push_back({forever, forever, forever, i64{1} << 61, 0, 0});
  }
  // The same for the jobs from row `first` on, under other limits.
  std::shared_ptr<const LimitedLayout> part(i64 first, const Limits& limits) const {
    auto some = std::make_shared<LimitedLayout>(*this);
    some->kind += first, some->processors += first;
    if (measured_mw) some->measured_mw += first * n_levels();
    some->limit(limits);
    return some;
  }
};

}  // namespace hpc
