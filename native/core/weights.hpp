// Weights as a policy: the score of a job is a weighted sum of its features.
#pragma once
#include <array>
#include <vector>

#include "model.hpp"

namespace hpc {

// How a feature depends on waiting: not at all, or as the feature of that name.
enum class Waiting : i64 { not_at_all, wait, expansion, unicef };

// The patience of a score [s] under the weights of the features that change with waiting, infinite
// if none does. `unicef()` is the patience of that feature alone, `requested` [s].
template <class F>
double patience_of(double by_wait, double by_expansion, double by_unicef, double requested,
                   F unicef) {
  if (by_unicef != 0) {
    const double alone = unicef() / by_unicef;
    if (by_wait == 0 && by_expansion == 0) return alone;
    double gain = 0;
    if (by_wait != 0) gain += 1.0 / (1.0 / by_wait);
    if (by_expansion != 0) gain += 1.0 / (requested / by_expansion);
    return 1.0 / (gain + 1.0 / alone);
  }
  if (by_wait != 0 && by_expansion != 0) return requested / (by_wait * requested + by_expansion);
  if (by_wait != 0) return 1.0 / by_wait;
  return by_expansion != 0 ? requested / by_expansion : inf;
}

// The score of a mixed policy, a sum of `n` weighted features in the order of their table: Legrand
// et al. 2018, section 4.3, equation 3; equal to that of hpcgym.scheduler.policies.rank to the last
// bit. For each feature: its weight, its dependence on waiting, and its constant part.
template <class W, class D, class P, class F>
Score mixed_score(std::size_t n, W weight_of, D depends, P part_of, double requested, F unicef) {
  double sum = 0, by_wait = 0, by_expansion = 0, by_unicef = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const double weight = weight_of(k);
    if (weight == 0) continue;
    const Waiting how = depends(k);
    if (how == Waiting::wait) by_wait = weight;
    if (how == Waiting::expansion) by_expansion = weight;
    if (how == Waiting::unicef) by_unicef = weight;
    if (how != Waiting::wait && how != Waiting::unicef) sum += weight * part_of(k);
  }
  return {sum, patience_of(by_wait, by_expansion, by_unicef, requested, unicef)};
}

// Features of all jobs, summed in the order of the table of features. The caller owns the memory.
struct Features {
  i64 n_jobs;
  const double* parts;           // (n_jobs, n) the part that does not change with waiting
  std::vector<Waiting> waiting;  // (n,)
  std::vector<i64> places;       // (n,) index of each feature's weight
  const double* serial;          // (n_jobs,) [s] patience of the feature unicef; or nullptr
  const i64* seconds;            // (n_jobs,) [s] run times that policies see
  std::vector<i64> formulas;     // (n,) places in the table of features
  // weights of users' priorities, by processors and by energy; -1: none
  std::array<i64, 2> by_usage{-1, -1};

  // The features of the jobs of some rows alone.
  Features part(i64 first, i64 n) const {
    Features some = *this;
    some.n_jobs = n, some.parts += first * static_cast<i64>(waiting.size()), some.seconds += first;
    if (serial) some.serial += first;
    return some;
  }
  bool is_of_usage(i64 place) const { return place == by_usage[0] || place == by_usage[1]; }

  // The score under weights divided by `total`; weights count as 0 if `total` is 0.
  Score score(i64 j, const double* weights, double total) const {
    const double* part = parts + j * static_cast<i64>(waiting.size());
    return mixed_score(
        waiting.size(), [&](std::size_t k) { return total > 0 ? weights[places[k]] / total : 0.0; },
        [&](std::size_t k) { return waiting[k]; }, [&](std::size_t k) { return part[k]; },
        static_cast<double>(seconds[j]), [&] { return serial ? serial[j] : 1.0; });
  }
};

}  // namespace hpc
