// The state at the beginning, if the machine is not empty: jobs that run, and jobs that wait.
#pragma once
#include <span>

#include "../base/numbers.hpp"

namespace hpc {

// The state just before `time`: events of that second are still to come. Jobs before `number` run
// or wait then; all others are submitted later.
struct Beginning {
  i64 time;                           // [s]
  i64 number;                         // jobs
  bool due;                           // whether a pass is due at `time` in any case
  std::span<const i64> running;       // in the order of their starts
  std::span<const i64> start;         // [s] of each running job
  std::span<const i64> predicted;     // [s] by job, at submission
  std::span<const i64> promised;      // [s] by job, -1 if nothing was promised
  std::span<const i64> history;       // as a simulation keeps it; empty if no estimate needs it
  std::span<const i64> reserved;      // [s] by job, the reservation of each job that waits
  // on nodes: where the cells of each running job begin, and the nodes and units of all cells; if
  // there are reservations, then those of the jobs that wait, by row. Empty if unknown
  std::span<const i64> first, node, units;
  std::span<const i64> looks;         // when passes continue by the clock: see core/looks.hpp
  // Of a simulation that goes on where run times are learned: what was predicted, and is not asked
  // for again. By job: [s] for the order, and (number, n_seen) features at submission; of each
  // running job: [s] its predicted end now, and how often that was corrected.
  bool knows = false;
  std::span<const i64> ordered_by = {}, expected = {}, corrections = {};
  std::span<const double> seen = {};

  // The cells of the k-th of these jobs, if known.
  std::span<const i64> nodes_of(std::size_t k) const { return part(node, k); }
  std::span<const i64> units_of(std::size_t k) const { return part(units, k); }
  std::span<const i64> part(std::span<const i64> of, std::size_t k) const {
    return first.empty() ? of : of.subspan(index(first[k]), index(first[k + 1] - first[k]));
  }
};

}  // namespace hpc
