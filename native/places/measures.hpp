// Metrics of a schedule, as hpcgym.schedule.metrics defines them.
#pragma once
#include "../core/simulator.hpp"

namespace hpc {

enum class Metric : i64 {
  mean_bsld, max_bsld, rms_bsld, mean_slowdown, mean_wait, max_wait, mean_response, max_response,
  makespan, utilization, promises_broken, max_promise_delay
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

// [s] by job, when it started first: others may have stopped it since.
template <class M>
std::vector<i64> first_starts(const Simulator<M>& s) {
  std::vector<i64> starts;
  for (const Progress& p : s.progress) starts.push_back(p.start);
  for (const LostRun& run : s.lost) starts[index(run.job)] = std::min(starts[index(run.job)], run.start);
  return starts;
}

// What is told of broken promises: their share of all promises, or the longest delay [s]; NaN without
// promises. Jobs that ran at the beginning do not count.
template <class M>
double measure_promises(Metric metric, const Simulator<M>& s) {
  i64 promised = 0, broken = 0, longest = 0;
  const std::vector<i64> starts = first_starts(s);
  for (i64 j = 0; j < s.model.n_jobs; ++j) {
    if (s.of(j).promised < 0 || s.of(j).start < s.begins) continue;
    const i64 delay = starts[index(j)] - s.of(j).promised;
    ++promised;
    broken += delay > 0;
    longest = std::max(longest, delay);
  }
  if (promised == 0) return std::numeric_limits<double>::quiet_NaN();
  if (metric == Metric::max_promise_delay) return static_cast<double>(longest);
  return static_cast<double>(broken) / static_cast<double>(promised);
}

// All jobs must have started; sums are in their order. Jobs that ran at the beginning count only
// for the machine, from then on, and so do preempted runs.
template <class M>
double measure(Metric metric, const Simulator<M>& s, double tau) {
  if (metric >= Metric::promises_broken) return measure_promises(metric, s);
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
      case Metric::makespan:
      case Metric::promises_broken:
      case Metric::max_promise_delay: break;
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
