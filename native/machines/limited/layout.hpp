// What a machine under limits of power and energy is told: its nodes, and the limits.
//
// Power is in whole milliwatts and energy in whole millijoules: what limits look at is rounded up,
// limits are rounded down. So sums are exact, and nothing depends on their order.
#pragma once
#include <memory>
#include <vector>

#include "../../base/numbers.hpp"
#include "../../base/record.hpp"

namespace hpc {

struct PowerCap {
  HPC_RECORD(
      i64 start, end;  // [s]
      i64 announced;   // [s] from when on it is reckoned with
      i64 mw;
      i64 kills;  // 1: jobs, until it holds at its start
      i64 off;);  // nodes 0 up to this one, exclusive, are off throughout
};

struct EnergyBudget {
  HPC_RECORD(
      i64 start, end;  // [s]
      i64 mj, mean_mw;
      i64 period;   // [s] between two looks at the meter
      i64 shuts;    // 1: idle nodes are switched off meanwhile
      i64 as_idle;  // 1: nodes that are off are reckoned as free ones that are on
      i64 binds;);  // 1, unless no load can exceed it
};

// What back-filled jobs must leave of a budget; `suffices`: only what it is sure to suffice for.
enum class BudgetUse : i64 { suffices, powercap, reduce_pc, energy_bud };

struct Limits {
  std::vector<PowerCap> caps;
  std::vector<EnergyBudget> budgets;
};

struct LimitedLayout : Limits {
  i64 n_nodes = 0;
  i64 idle_mw, off_mw, shutdown_mw, boot_mw;  // of a node
  i64 rest_mw;  // charged for one that is on and free
  i64 rise_mw;  // charged for a free one that is being switched on
  i64 off_time, on_time;  // [s] that it takes to switch off, and on
  i64 timeout;            // [s] of idleness, after which nodes are switched off; forever: never
  i64 lowest, highest;    // levels at which jobs run
  BudgetUse use;
  bool contiguous;  // the nodes of a job stand in a row
  bool limited;     // there is a limit: a pass follows whatever changes power
  bool controlled = false;  // the last cap is set anew from outside, see controls.hpp
  // by level
  std::vector<i64> busy_mw;   // charged for a node of a job
  std::vector<i64> drawn_mw;  // its true power
  std::vector<i64> slowdown;  // (kinds, levels) [millionths]
  const i64* kind = nullptr;         // by job, of slowdown
  const i64* measured_mw = nullptr;  // (jobs, levels) of whole jobs, -1 unknown; nullptr: of none
  // components above nodes, from the lowest on
  std::vector<i64> size;  // nodes below one
  std::vector<i64> component_mw;

  i64 n_levels() const { return static_cast<i64>(busy_mw.size()); }
  // Have these limits alone, and a control that has not been set yet.
  void limit(const Limits& limits) {
    static_cast<Limits&>(*this) = limits;
    if (controlled) caps.push_back({forever, forever, forever, i64{1} << 61, 0, 0});
  }
  // The same for jobs from one on, under such limits.
  std::shared_ptr<const LimitedLayout> part(i64 first, const Limits& limits) const {
    auto some = std::make_shared<LimitedLayout>(*this);
    some->kind += first;
    if (measured_mw) some->measured_mw += first * n_levels();
    some->limit(limits);
    return some;
  }
};

}  // namespace hpc
