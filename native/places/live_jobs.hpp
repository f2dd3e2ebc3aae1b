// The running and waiting jobs of a simulation as a simulation of their own, without new jobs.
#pragma once
#include <vector>

#include "../core/simulator.hpp"

namespace hpc {

// Their columns, and a model of that size. Predictors and agents are not asked any more: the order
// stays as it is now, except for waiting. All processors count as on. Jobs outside the queue, and
// dependent jobs, do not come.
struct LiveJobs {
  Model model;
  std::vector<i64> rows;  // their numbers in the other simulation, in order of submission
  std::vector<Job> jobs;
  std::vector<i64> keys, second_keys, predicted, users, counts, asks;
  std::vector<Score> scores, second_scores;
  std::vector<double> held;
  std::vector<i64> candidate_times;

  // `run_time(j)`: the assumed run time of a job [s].
  template <class M, class F>
  LiveJobs(const Simulator<M>& from, F run_time) : model(from.model) {
    from.running.each([&](const Entry& e) { rows.push_back(e.job); });
    from.queue.jobs.each([&](const Entry& e) { rows.push_back(e.job); });
    for (i64 j = from.next - from.arrived; j < from.next; ++j) rows.push_back(j);
    std::ranges::sort(rows, {}, [&](i64 j) { return from.queue.place(j); });
    for (const i64 j : rows) {
      jobs.push_back(from.job(j));
      jobs.back().run = run_time(j);
      predicted.push_back(from.of(j).predicted);
      if (model.users) users.push_back(model.users[j]);
      if (model.keys) keys.push_back(from.queue.keys[0][j]);
      if (model.second_keys) second_keys.push_back(from.queue.keys[1][j]);
      if (model.is_scored(0)) scores.push_back(from.queue.scores[0][j]);
      if (model.is_scored(1)) second_scores.push_back(from.queue.scores[1][j]);
      if (model.rules.holds) held.push_back(from.held[j]);
      if (model.rules.relax > 0) candidate_times.push_back(from.candidate_times[j]);
      if (model.quotas.n == 0) continue;
      const i64* own = model.quotas.counts + j * model.quotas.n;
      counts.insert(counts.end(), own, own + model.quotas.n);
      const i64* asked = model.quotas.asks + j * model.quotas.n_amounts;
      asks.insert(asks.end(), asked, asked + model.quotas.n_amounts);
    }
    Rules& r = model.rules;
    r.estimate = Estimate::given, r.remembered = 0;
    // run times have been cut already
    if (r.correction == Correction::kill || r.correction == Correction::again)
      r.correction = Correction::to_requested;
    r.renews = Renews::never;
    r.asks = r.learns = r.logs = r.managed = false;
    model.learning.reset();
    model.accounts.reset();
    model.expressions = {};
    model.features = nullptr;
    model.arrivals = {};
    model.quotas.counts = counts.data(), model.quotas.asks = asks.data();
    model.users = users.data();
    model.n_jobs = static_cast<i64>(rows.size());
    model.jobs = jobs.data();
    model.keys = keys.data(), model.second_keys = second_keys.data();
    model.scores = scores.data(), model.second_scores = second_scores.data();
    model.predicted = predicted.data();
    model.held = held.data();
    model.candidate_times = candidate_times.data();
  }
  LiveJobs(const LiveJobs&) = delete;
};

// The first jobs alone, with other run times.
struct FirstJobs {
  std::shared_ptr<const Model> whole;
  Model model;
  std::vector<Job> jobs;

  FirstJobs(std::shared_ptr<const Model> all, std::span<const i64> run_times)
      : whole(std::move(all)), model(*whole), jobs(model.jobs, model.jobs + run_times.size()) {
    for (std::size_t j = 0; j < jobs.size(); ++j) jobs[j].run = run_times[j];
    model.jobs = jobs.data();
    model.n_jobs = static_cast<i64>(jobs.size());
  }
};

}  // namespace hpc
