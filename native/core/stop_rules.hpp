// Who may stop whom to start at once, and what becomes of jobs that are stopped.
#pragma once
#include <vector>

#include "../base/numbers.hpp"

namespace hpc {

// A job that is stopped waits again, and then runs from the beginning; or does not run again; or
// gives up its units, and later goes on where it was.
enum class Stopped : std::uint8_t { requeued, cancelled, suspended };

struct StopRules {
  const i64* group = nullptr;  // by job, -1: of none
  std::vector<i64> level;      // by group; 0: it may stop nobody, else only who has a lower one
  std::vector<i64> may;        // (n_groups, n_groups) whether the first may stop the second
  std::vector<i64> exempt;     // [s] by group: for how long nobody stops a run
  std::vector<i64> grace;      // [s] by group: for how long a run goes on once it is to stop
  Stopped become = Stopped::requeued;

  std::size_t n_groups() const { return level.size(); }
  bool may_stop(i64 group, i64 other) const {
    return may[index(group) * n_groups() + index(other)] != 0;
  }
};

}  // namespace hpc
