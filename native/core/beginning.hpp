// What a simulation begins with where its machine is not empty: jobs that run, and jobs that wait.
#pragma once
#include <span>

#include "../base/numbers.hpp"

namespace hpc {

// The state just before `time`: what happens in that second is the first event. Jobs before `number`
// run or wait then; all others are submitted later.
struct Beginning {
  i64 time;                           // [s]
  i64 number;                         // jobs
  bool due;                           // a pass is due at `time`, whatever happens then
  std::span<const i64> running;       // in the order of their starts
  std::span<const i64> start;         // [s] of each of them
  std::span<const i64> predicted;     // [s] by job, at submission
  std::span<const i64> promised;      // [s] by job, -1 if nothing was
  std::span<const i64> history;       // as a simulation keeps it; empty where no estimate needs it
  std::span<const i64> reserved;      // [s] by job, where each that waits has a reservation
  // on nodes: where the cells of each that runs begin, and the nodes and units of all of them; where
  // there are reservations, behind them those of each that waits, by row. Empty where none are known
  std::span<const i64> first, node, units;
  std::span<const i64> looks;         // where passes go on by the clock: see core/looks.hpp

  // The cells of the k-th of these, if they are known.
  std::span<const i64> nodes_of(std::size_t k) const { return part(node, k); }
  std::span<const i64> units_of(std::size_t k) const { return part(units, k); }
  std::span<const i64> part(std::span<const i64> of, std::size_t k) const {
    return first.empty() ? of : of.subspan(index(first[k]), index(first[k + 1] - first[k]));
  }
};

}  // namespace hpc
