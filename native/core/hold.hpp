// Jobs that are held back: long ones start only if some units stay free behind them.
#pragma once
#include "../base/column.hpp"
#include "model.hpp"

namespace hpc {

// Units that must be free for a job to start now: what it takes, and what it holds back, which
// becomes less as it waits: `held` before it has.
inline i64 needed(const Model& model, const Job& job, double held, i64 now) {
  if (held == 0) return job.processors;
  double back = held;
  if (model.rules.erode > 0)
    back /= 1.0 + static_cast<double>(now - job.submit) / static_cast<double>(model.rules.erode);
  // to the nearest, of two the even one
  return std::min(model.capacity, job.processors + static_cast<i64>(std::nearbyint(back)));
}

}  // namespace hpc
