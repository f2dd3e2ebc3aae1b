// Features of jobs that policies use, and scores that are weighted sums of features.
#pragma once
#include "../base/elementary.hpp"
#include "model.hpp"
#include "told.hpp"
#include "weights.hpp"

namespace hpc {

struct JobNumbers {  // of a job, as the formulas use them
  double since_first;  // [s] submit, counted from the first submission of the whole log
  double requested;    // [s] or the run time used in its place
  double processors;
};

// In the order of hpcgym.scheduler.policies.FEATURES; f1 to f4 are from Carastan-Santos 2017.
enum class Feature : i64 { processors, requested, wait, ratio, expansion, area, unicef, f1, f2, f3, f4 };

// The patience of the feature unicef [s]. log2 of one processor is 0: a serial job that has waited
// at all comes before all others.
inline double serial_patience(const JobNumbers& job) {
  return std::max(elementary::log2(job.processors) * job.requested, 1e-200);
}

// The part of a feature that does not change with waiting.
inline double static_of(Feature feature, const JobNumbers& job) {
  // 0 for the first job, where the published formulas have no value
  const auto since = [&] { return elementary::log10(std::max(job.since_first, 1.0)); };
  switch (feature) {
    case Feature::processors: return job.processors;
    case Feature::requested: return job.requested;
    case Feature::ratio: return job.requested / job.processors;
    case Feature::expansion: return 1.0;
    case Feature::area: return job.requested * job.processors;
    case Feature::f1: return elementary::log10(job.requested) * job.processors + 870.0 * since();
    case Feature::f2: return std::sqrt(job.requested) * job.processors + 25'600.0 * since();
    case Feature::f3: return job.requested * job.processors + 6'860'000.0 * since();
    case Feature::f4: return job.requested * std::sqrt(job.processors) + 530'000.0 * since();
    default: return 0.0;
  }
}

inline Waiting waiting_of(Feature feature) {
  switch (feature) {
    case Feature::wait: return Waiting::wait;
    case Feature::expansion: return Waiting::expansion;
    case Feature::unicef: return Waiting::unicef;
    default: return Waiting::not_at_all;
  }
}
// Whether the feature depends on the run time that policies see.
inline bool looks_at_time(Feature feature) {
  return feature != Feature::processors && feature != Feature::wait;
}
inline Score mixed_score(const Weights& weights, const JobNumbers& job) {
  const auto feature = [](std::size_t k) { return static_cast<Feature>(k); };
  return mixed_score(
      n_features, [&](std::size_t k) { return weights[k]; },
      [&](std::size_t k) { return waiting_of(feature(k)); },
      [&](std::size_t k) { return static_of(feature(k), job); }, job.requested,
      [&] { return serial_patience(job); });
}

}  // namespace hpc
