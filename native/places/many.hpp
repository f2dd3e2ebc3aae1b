// Many simulations in one call, on several threads: slices of a log under weights, and their
// metrics.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "../base/alone.hpp"
#include "../base/threads.hpp"
#include "simulation.hpp"

namespace hpc {

// Each simulation continues a copy of that of its slice, which has not run. Threads do not affect
// results.
class Many : public Alone {
 public:
  Many(std::vector<std::shared_ptr<AnySimulation>> slices, int threads)
      : slices_(std::move(slices)), threads_(threads) {}

  // Simulate the tasks in [first, stop), and write their metrics into `values`, (n_vectors,
  // n_slices, n_metrics). Task s * n_vectors + v is slice s under vector v. `weights` has n_vectors
  // vectors of `size` for all slices or, if `own`, n_slices consecutive ones in place of each.
  void simulate(std::span<const double> weights, i64 size, bool own, std::span<const Metric> metrics,
                double tau, i64 first, i64 stop, double* values) {
    const i64 n_slices = static_cast<i64>(slices_.size());
    const i64 stride = own ? size * n_slices : size;
    const i64 n_vectors = static_cast<i64>(weights.size()) / stride;
    std::atomic<i64> next = first;
    threads_.run([&] {
      Interrupts interrupts;
      for (i64 task; (task = next++) < stop;) {
        interrupts.read_clock();
        const i64 s = task / n_vectors, v = task % n_vectors;
        const auto simulation = slices_[index(s)]->weighed(
            weights.subspan(index(v * stride + (own ? s * size : 0)), index(size)));
        simulation->run(forever, forever);
        double* found = values + (v * n_slices + s) * static_cast<i64>(metrics.size());
        for (const Metric metric : metrics) *found++ = simulation->measure(metric, tau);
      }
    });
  }
  i64 size() const { return static_cast<i64>(slices_.size()); }

 private:
  std::vector<std::shared_ptr<AnySimulation>> slices_;
  Threads threads_;
};

}  // namespace hpc
