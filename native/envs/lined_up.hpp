// Who is visible, and who was at the last decision: what is kept of jobs, in columns in the order of
// the window, moves with them.
#pragma once
#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "../base/numbers.hpp"

namespace hpc {

class LinedUp {
  struct Run {  // of places that move together
    std::size_t to, from, n;
  };
  std::vector<i64> jobs_;
  std::vector<std::size_t> came_;
  std::vector<Run> runs_;

 public:
  std::size_t size() const { return jobs_.size(); }
  std::span<const i64> jobs() const { return jobs_; }
  // The places of jobs that were not visible before, ascending.
  const std::vector<std::size_t>& came() const { return came_; }
  std::size_t bytes() const { return jobs_.size() * sizeof(i64); }
  void clear() { jobs_.clear(); }

  // Line up the jobs that are visible now. Both they and those before are in the order of the log,
  // but for the first if it is set apart; of others in another order fewer are found.
  void set(std::span<const i64> jobs, bool sets_first_apart) {
    came_.clear(), runs_.clear();
    const std::size_t n = jobs.size(), n_before = jobs_.size();
    std::size_t place = 0, before = 0;
    if (sets_first_apart && n > 0 && n_before > 0 && jobs_[0] != jobs[0]) {
      before = 1;
      came_.push_back(place++);
    }
    while (place < n) {
      while (before < n_before && jobs_[before] < jobs[place]) ++before;
      const std::size_t most = std::min(n - place, n_before - before);
      std::size_t alike = 0;
      while (alike < most && jobs_[before + alike] == jobs[place + alike]) ++alike;
      if (alike == 0) {
        came_.push_back(place++);
      } else {
        runs_.push_back({place, before, alike});
        place += alike, before += alike;
      }
    }
    jobs_.assign(jobs.begin(), jobs.end());
  }
  // Move a column, which has `width` values of each job, to where the jobs are now. Runs never cross:
  // what goes towards the front goes first, the foremost first, and what goes back the hindmost first.
  template <class T>
  void move(std::vector<T>& column, std::size_t width = 1) const {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto move_run = [&](const Run& run) {
      std::memmove(&column[run.to * width], &column[run.from * width], run.n * width * sizeof(T));
    };
    for (const Run& run : runs_)
      if (run.to < run.from) move_run(run);
    for (auto run = runs_.rbegin(); run != runs_.rend(); ++run)
      if (run->to > run->from) move_run(*run);
  }
};

}  // namespace hpc
