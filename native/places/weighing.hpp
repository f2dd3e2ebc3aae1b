// Orders by weights of features.
#pragma once
#include <memory>
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
// If neither waiting nor learning changes the order, equal jobs are served in order of arrival, not
// by row: the order is then by keys. The same holds if waiting alone is the order. `learned`:
// policies see learned run times.
inline std::shared_ptr<Model> as_weighed(const Model& m, std::span<const double> weights,
                                         bool learned) {
  const Features& features = *m.features;
  bool changes = false, by_arrival = false, others = false;
  for (std::size_t k = 0; k < features.waiting.size(); ++k) {
    const double weight = weights[index(features.places[k])];
    if (weight == 0) continue;
    if (learned && looks_at_time(static_cast<Feature>(features.formulas[k]))) changes = true;
    if (features.waiting[k] == Waiting::wait && weight > 0) by_arrival = true;
    else if (features.waiting[k] != Waiting::not_at_all) changes = true;
    else others = true;
  }
  changes = changes || (by_arrival && others);
  for (const i64 place : features.by_usage)
    changes = changes || (place >= 0 && weights[index(place)] != 0);
  const auto model = std::make_shared<Model>(m);
  model->rules.primary = changes ? Order::scored : Order::keyed;
  model->arrivals.by_arrival[0] = !changes && !others;
  if (model->accounts && !changes) model->accounts->kinds[0] = Usage::unaware;
  return model;
}
// Serve jobs by scores that never change; equal scores have equal keys.
template <Machine M>
void key_by(Simulator<M>& s, const Features& features, std::span<const double> weights) {
  std::vector<InLine> line;
  for (i64 j = 0; j < s.model.n_jobs; ++j)
    line.push_back({j, features.score(j, weights.data(), 1.0).score});
  sort_by_score(line.begin(), line.end());
  auto& keys = s.queue.keys[0];
  keys.own(s.model.n_jobs);
  i64 place = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (i > 0 && line[i].score != line[i - 1].score) place = static_cast<i64>(i);
    keys.at(line[i].job) = place;
  }
}

}  // namespace hpc
