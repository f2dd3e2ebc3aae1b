// Orders by weights of features.
#pragma once
#include <span>
#include <vector>

#include "../strategies/scheduled.hpp"

namespace hpc {

template <Machine M>
void weigh_learned(Scheduled<M>& of, const Features& features, std::span<const double> weights,
                   double total) {
  of.answers_.learner->weights[0] = {};  // removes the policy of the model
  for (std::size_t k = 0; k < features.formulas.size(); ++k)
    of.answers_.learner->weights[0][index(features.formulas[k])] =
        total > 0 ? weights[index(features.places[k])] / total : 0.0;
}
template <Machine M>
void weigh_usage(Scheduled<M>& of, const Features& features, std::span<const double> weights,
                 double total) {
  const auto weight = [&](i64 k) {
    return k >= 0 && total > 0 ? weights[index(k)] / total : 0.0;
  };
  bool others = false;
  for (i64 k = 0; k < static_cast<i64>(weights.size()); ++k)
    others = others || (!features.is_of_usage(k) && weight(k) != 0);
  of.answers_.shares->weigh(weight(features.by_usage[0]), weight(features.by_usage[1]), others);
}
// Give scores to the jobs for which `each` calls its argument. Usage is added later.
template <Machine M, class F>
void weigh_jobs(Scheduled<M>& of, std::span<const double> weights, double total, F each) {
  Simulator<M>& s = of.sim_;
  const Features& features = *s.model.features;
  const bool learns = of.answers_.learner && of.answers_.learner->predicts_order();
  if (learns) weigh_learned(of, features, weights, total);
  Ranked& scores = of.answers_.ranked(s);
  each([&](i64 j) {
    scores[0].at(j) = features.score(j, weights.data(), total);
    // jobs to come are ranked when they are submitted
    if (learns && j < s.next && !s.arrivals) of.answers_.learner->rank(s, scores, j);
  });
  if (of.answers_.shares) weigh_usage(of, features, weights, total);
  s.queue.forget_bounds();
}

}  // namespace hpc
