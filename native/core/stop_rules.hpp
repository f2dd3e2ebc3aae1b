// Which jobs may preempt which, and what happens to preempted jobs.
#pragma once
#include <vector>

#include "../base/numbers.hpp"

namespace hpc {

// A preempted job waits again and runs from the beginning; or is cancelled; or gives up its units
// and resumes later.
enum class Stopped : std::uint8_t { requeued, cancelled, suspended };

struct StopRules {
  const i64* group = nullptr;  // by job, -1: none
  std::vector<i64> level;      // by group; it may stop only groups of lower levels, at 0 none
  std::vector<i64> may;        // (n_groups, n_groups) whether the first may stop the second
  std::vector<i64> exempt;     // [s] by group: time from its start in which a run cannot be stopped
  std::vector<i64> grace;      // [s] by group: how long a run goes on once told to stop
  Stopped become = Stopped::requeued;

  std::size_t n_groups() const { return level.size(); }
  bool may_stop(i64 group, i64 other) const {
    return may[index(group) * n_groups() + index(other)] != 0;
  }
};

}  // namespace hpc
