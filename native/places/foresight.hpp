// Look-ahead: drain the present queue under each weight vector to choose the one for a pass.
//
// In the drained simulations no more jobs come, and run times are estimated only from those of
// ended jobs, except by the clairvoyant. The vector with the least sum of estimated bounded
// slowdowns is followed. First each is simulated for the present pass only: if all start the same
// jobs, there is no choice to make, unless the order holds for looks until the next event, or moves
// reservations that are kept.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "../base/elementary.hpp"
#include "../core/weights.hpp"
#include "../strategies/scheduled.hpp"
#include "../base/alone.hpp"
#include "live_jobs.hpp"
#include "to_start.hpp"

namespace hpc {

class Foresight : public Alone {
 public:
  // How run times are estimated, in the order of hpcgym.agents.lookahead.ESTIMATES.
  enum class Estimator : i64 { learned, user_ratio, requested, clairvoyant };
  // Nested classes of jobs: all jobs, those of the user, those also with the same request.
  static constexpr std::size_t levels = 3;
  using Classes = std::array<i64, levels>;

  // `classes`: by job. `tau` [s]: shorter run times count as this.
  Foresight(std::shared_ptr<const Features> features, std::vector<std::vector<double>> weights,
            std::vector<Classes> classes, Estimator estimator, double tau)
      : features_(std::move(features)), weights_(std::move(weights)), classes_(std::move(classes)),
        estimator_(estimator), tau_(tau) {
    i64 number = 0;
    for (const Classes& each : classes_)
      for (const i64 row : each) number = std::max(number, row + 1);
    known_.resize(index(number));
    for (const auto& vector : weights_) {
      double total = 0;
      for (const double weight : vector) total += std::abs(weight);
      totals_.push_back(total);
    }
    // 2^(-k / 2)
    for (int k = 0; k < bins; ++k)
      ratios_[index(k)] = std::ldexp(k % 2 == 0 ? 1.0 : std::sqrt(0.5), -(k / 2));
  }

  i64 n_jobs() const { return static_cast<i64>(classes_.size()); }
  Score score(i64 vector, i64 j) const {
    return features_->score(j, weights_[index(vector)].data(), totals_[index(vector)]);
  }

  // The vector to follow in a pass made now, the first of equals; for where an order is asked for.
  // An interrupt leaves all whole.
  template <Machine M>
  i64 choose(const Scheduled<M>& from, Interrupts& interrupts) {
    const Simulator<M>& s = from.sim_;
    learn(s, interrupts);
    const i64 n_vectors = static_cast<i64>(weights_.size());
    std::vector<i64> queued;
    s.queue.jobs.each([&](const Entry& e) { queued.push_back(e.job); });
    if (queued.size() < 2 || n_vectors < 2) return 0;
    const LiveJobs live(s, [&](i64 j) { return estimated(s, j); });
    Scheduled<M> present(live.model);
    present.sim_.stand_as(s, live.rows, true);
    present.sim_.looks = s.looks;
    const std::vector<i64> units = units_of(s, live, queued);
    std::vector<i64> rows;  // of the queued jobs in the drained simulations
    for (const i64 j : queued) rows.push_back(s.queue.place_in(live.rows, j));
    std::vector<bool> first, started(queued.size());
    bool differ = s.rules().every > 0 || s.rules().keeps_reservations();
    for (i64 v = 0; v < n_vectors && !differ; ++v) {
      const std::vector<i64> starts = drain(present, live, v, rows, 1, interrupts);
      for (std::size_t k = 0; k < rows.size(); ++k) started[k] = starts[k] >= 0;
      if (v == 0) first = started;
      differ = started != first;
    }
    if (!differ) return 0;
    i64 best = 0;
    __int128 least = 0;
    for (i64 v = 0; v < n_vectors; ++v) {
      const std::vector<i64> starts = drain(present, live, v, rows, forever, interrupts);
      __int128 cost = 0;
      for (std::size_t k = 0; k < rows.size(); ++k)
        cost += static_cast<__int128>(units[k]) * (starts[k] - live.jobs[index(rows[k])].submit);
      if (v == 0 || cost < least) best = v, least = cost;
    }
    return best;
  }

 private:
  static constexpr int bins = 40;       // bins of the ratio of run time to requested time
  static constexpr double decay = 0.9;  // factor of older run times for each new one of the class
  static constexpr double prior = 1.0;  // weight of the wider class, in run times
  static constexpr double greatest_units = 1099511627776.0;  // 2^40, for the most important job
  using Bins = std::array<double, bins>;
  struct Known {  // of a class
    Bins counts{};
    double ratios = 0, number = 0;
  };

  std::shared_ptr<const Features> features_;
  std::vector<std::vector<double>> weights_;
  std::vector<double> totals_;
  std::vector<Classes> classes_;
  Estimator estimator_;
  double tau_;
  Bins ratios_;
  std::vector<Known> known_;       // by class
  std::vector<i64> unfinished_;    // submitted jobs that have not been learned from
  i64 submitted_ = 0;

  // Learn from the ended jobs, in the order of their ends.
  template <Machine M>
  void learn(const Simulator<M>& s, Interrupts& interrupts) {
    for (; submitted_ < s.next; ++submitted_) unfinished_.push_back(submitted_);
    // per event, an end of this second may still be to come
    const i64 latest = s.rules().passes == Passes::per_event ? s.time - 1 : s.time;
    while (true) {
      interrupts.count(static_cast<i64>(unfinished_.size() / 256));
      auto found = unfinished_.end();
      i64 end = latest + 1;
      for (auto it = unfinished_.begin(); it != unfinished_.end(); ++it) {
        const i64 start = s.of(*it).start;
        if (start < 0 || start + s.run_time(*it) >= end) continue;
        found = it;
        end = start + s.run_time(*it);
      }
      if (found == unfinished_.end()) return;
      count(*found, s.run_time(*found), s.job(*found).requested);
      unfinished_.erase(found);
    }
  }
  void count(i64 j, i64 run_time, i64 requested) {
    const double ratio = static_cast<double>(requested) / static_cast<double>(run_time);
    const i64 bin = std::min(static_cast<i64>(2.0 * elementary::log2(ratio) + 0.5), i64{bins - 1});
    for (std::size_t level = 0; level < levels; ++level) {
      Known& known = known_[index(classes_[index(j)][level])];
      if (level > 0)
        for (double& each : known.counts) each *= decay;
      known.counts[index(bin)] += 1.0;
      known.ratios += static_cast<double>(run_time) / static_cast<double>(requested);
      known.number += 1.0;
    }
  }
  // The probability of each ratio of run time to requested time; without ended jobs the ratio is 1.
  // The prior of each class is the belief of the wider one.
  Bins believed(i64 j) const {
    const Classes& classes = classes_[index(j)];
    const Known& all = known_[index(classes[0])];
    Bins belief{};
    if (all.number == 0) belief[0] = 1.0;
    else
      for (std::size_t k = 0; k < bins; ++k) belief[k] = all.counts[k] / all.number;
    for (std::size_t level = 1; level < levels; ++level) {
      const Known& known = known_[index(classes[level])];
      if (known.number == 0) continue;
      double total = prior;
      for (const double each : known.counts) total += each;
      for (std::size_t k = 0; k < bins; ++k)
        belief[k] = (prior * belief[k] + known.counts[k]) / total;
    }
    return belief;
  }
  // [s] of a running or waiting job.
  template <Machine M>
  i64 estimated(const Simulator<M>& s, i64 j) const {
    if (estimator_ == Estimator::clairvoyant) return s.run_time(j);
    // a job whose processors are being switched on starts later
    const i64 start = s.of(j).start, elapsed = start < 0 ? 0 : std::max(s.time - start, i64{0});
    const double requested = static_cast<double>(s.job(j).requested);
    double mean = requested;
    if (estimator_ == Estimator::user_ratio) {
      const Known& user = known_[index(classes_[index(j)][1])];
      if (user.number > 0) mean *= user.ratios / user.number;
    } else if (estimator_ == Estimator::learned) {
      const Bins belief = believed(j);
      double share = 0, total = 0;  // the mean of the run times still possible
      for (std::size_t k = 0; k < bins; ++k) {
        const double seconds = requested * ratios_[k];
        if (seconds <= static_cast<double>(elapsed)) continue;
        share += belief[k];
        total += belief[k] * seconds;
      }
      if (share > 0) mean = total / share;
    }
    i64 most = s.job(j).requested;
    if (s.rules().correction == Correction::none)
      most = std::min(most, s.of(j).predicted);  // no job runs longer
    return std::min(std::max(static_cast<i64>(mean + 1e-6), elapsed + 1), most);
  }
  // The cost of one second's wait of each queued job, as an integer: the expected bounded slowdown
  // added. Sums of integers do not depend on their order, and differences by rounding vanish.
  template <Machine M>
  std::vector<i64> units_of(const Simulator<M>& s, const LiveJobs& live,
                            const std::vector<i64>& queued) const {
    std::vector<double> importance;
    double greatest = 0;
    for (const i64 j : queued) {
      const i64 run = live.jobs[index(s.queue.place_in(live.rows, j))].run;
      double value = 1.0 / std::max(static_cast<double>(run), tau_);
      if (estimator_ == Estimator::learned) {
        // short run times are rare but decisive: the mean of the inverse, not of the run time
        const Bins belief = believed(j);
        value = 0;
        for (std::size_t k = 0; k < bins; ++k) {
          const double seconds = static_cast<double>(s.job(j).requested) * ratios_[k];
          value += belief[k] / std::max(seconds, tau_);
        }
      }
      importance.push_back(value);
      greatest = std::max(greatest, value);
    }
    std::vector<i64> units;
    for (const double value : importance)
      units.push_back(static_cast<i64>(value / greatest * greatest_units + 0.5));
    return units;
  }
  // The starts [s] of waiting jobs, -1, under a vector, after so many passes, the present one first.
  template <Machine M>
  std::vector<i64> drain(const Scheduled<M>& present, const LiveJobs& live, i64 vector,
                         const std::vector<i64>& rows, i64 passes, Interrupts& interrupts) const {
    Scheduled<M> drained(present);
    Simulator<M>& s = drained.sim_;
    auto& scores = s.queue.scores[0];
    scores.own(s.model.n_jobs);
    for (i64 j = 0; j < s.model.n_jobs; ++j) scores.at(j) = score(vector, live.rows[index(j)]);
    s.queue.forget_bounds();
    std::vector<i64> starts(rows.size(), -1);
    ToStart left(rows, starts.data());
    for (; !left.have_started(s) && passes > 0 && drained.next_pass(forever); --passes) {
      drained.pass();
      interrupts.count(s.queue.jobs.size_in_blocks());
    }
    return starts;
  }
};

}  // namespace hpc
