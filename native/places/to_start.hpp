// Jobs that are waited for, and when each first starts.
#pragma once
#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "../core/simulator.hpp"

namespace hpc {

class ToStart {
  std::span<const i64> jobs_;
  i64* starts_;
  std::vector<std::size_t> left_;
  i64 started_ = -1;  // jobs that had started at the last look

 public:
  // Their starts [s] are written, -1: none.
  ToStart(std::span<const i64> jobs, i64* starts) : jobs_(jobs), starts_(starts), left_(jobs.size()) {
    std::iota(left_.begin(), left_.end(), std::size_t{0});
  }
  // Whether all have started; to be asked after each pass.
  template <class M>
  bool have_started(const Simulator<M>& s) {
    if (std::exchange(started_, s.started) == s.started) return left_.empty();
    std::erase_if(left_, [&](std::size_t k) { return (starts_[k] = s.of(jobs_[k]).start) >= 0; });
    return left_.empty();
  }
};

}  // namespace hpc
