// Metrics of a schedule, as hpcgym.schedule.metrics defines them.
#pragma once
#include "../core/simulator.hpp"

namespace hpc {

enum class Metric : i64 {
  mean_bsld, max_bsld, rms_bsld, mean_slowdown, mean_wait, max_wait, mean_response, max_response,
  makespan, utilization
};

// Run times below `tau` [s] count as that: Legrand et al. 2018, equation 1; Glesser 2016, section 7.4.3
inline double bounded_slowdown(double response, double run, double tau) {
  return std::max(response / std::max(run, tau), 1.0);
}

// Processors of a job, and of the machine, whatever units it counts.
template <class M>
i64 processors_of(const Simulator<M>& s, i64 j) {
  if constexpr (requires { s.machine.processors(j); }) return s.machine.processors(j);
  else return s.job(j).processors;
}
template <class M>
i64 processors_of(const Simulator<M>& s) {
  if constexpr (requires { s.machine.processors(); }) return s.machine.processors();
  else return s.model.capacity;
}

// Processor seconds of preempted runs whose jobs start anew.
template <class S>
i64 wasted_seconds(const S& s) {
  i64 wasted = 0;
  if (s.stops && s.model.stops.become == Stopped::requeued)
    for (const LostRun& run : s.lost) wasted += (run.end - run.start) * s.job(run.job).processors;
  return wasted;
}

// All jobs must have started; sums are in their order. Jobs that ran at the beginning count only
// for the machine, from then on, and so do preempted runs.
template <class M>
double measure(Metric metric, const Simulator<M>& s, double tau) {
  i64 counted = 0, last = 0, begins = s.begins;
  if (s.arrivals) {  // the schedule decides which job came first
    begins = forever;
    for (i64 j = 0; j < s.model.n_jobs; ++j) begins = std::min(begins, s.job(j).submit);
  }
  double total = 0, most = 0;
  for (i64 j = 0; j < s.model.n_jobs; ++j) {
    const i64 start = s.of(j).start, run = s.run_time(j), width = processors_of(s, j);
    last = std::max(last, start + run);
    if (start < begins) {
      if (metric == Metric::utilization)
        total += static_cast<double>((start + run - begins) * width);
      continue;
    }
    ++counted;
    const i64 wait = start - s.job(j).submit;
    const double response = static_cast<double>(wait + run), length = static_cast<double>(run);
    double value = 0;
    switch (metric) {
      case Metric::mean_bsld:
      case Metric::max_bsld:
      case Metric::rms_bsld:
        value = bounded_slowdown(response, length, tau);
        if (metric == Metric::rms_bsld) value *= value;
        break;
      case Metric::mean_slowdown: value = response / length; break;
      case Metric::mean_wait:
      case Metric::max_wait: value = static_cast<double>(wait); break;
      case Metric::mean_response:
      case Metric::max_response: value = response; break;
      case Metric::makespan: break;
      case Metric::utilization: value = static_cast<double>(run * width); break;
    }
    total += value;
    most = std::max(most, value);
  }
  const double makespan = static_cast<double>(last - begins);
  const double n = static_cast<double>(counted);
  if (metric == Metric::makespan) return makespan;
  if (metric == Metric::utilization)
    return (total + static_cast<double>(wasted_seconds(s))) /
           (static_cast<double>(processors_of(s)) * makespan);
  if (counted == 0) return std::numeric_limits<double>::quiet_NaN();
  if (metric == Metric::rms_bsld) return std::sqrt(total / n);
  const bool is_mean = metric == Metric::mean_bsld || metric == Metric::mean_slowdown ||
                       metric == Metric::mean_wait || metric == Metric::mean_response;
  return is_mean ? total / n : most;
}

}  // namespace hpc
