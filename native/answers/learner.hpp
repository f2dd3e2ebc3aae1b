// Run times predicted from ended jobs: for backfilling, and for ordering.
//
// A prediction before a submission uses exactly the jobs that have ended by then. It is cut to
// whole seconds, from 1 to the requested time. Predictors in Python answer from outside: the
// simulation stops for them.
#pragma once
#include <span>
#include <vector>

#include "../core/beginning.hpp"
#include "../core/features.hpp"
#include "../core/queue.hpp"
#include "histories.hpp"
#include "regression.hpp"
#include "waiting_of_users.hpp"

namespace hpc {

using Ranked = std::array<Column<Score>, 2>;  // scores in the two orders, by job

class Learner {
 public:
  Histories histories;
  std::array<Regression, 2> regressions;
  std::vector<i64> ordered_by;  // [s] by job, predictions for ordering, if learned
  std::vector<Seen> at_submission;  // by job, features, if needed
  Changes changes;                  // of predictions for ordering of waiting jobs
  std::size_t n_learned = 0;        // number of ended jobs learned from
  std::array<Weights, 2> weights;   // of features in the two orders

  explicit Learner(const Model& model)
      : histories(model),
        regressions{model.learning->estimators[0], model.learning->estimators[1]},
        weights(model.learning->weights),
        model_(&model) {
    const Learning& r = rules();
    know(r.memory, r.ratios, r.terms, r.sums);
    const std::size_t n = index(model.n_jobs);
    if (kind(for_ordering) != Predicts::beforehand) ordered_by.resize(n), knows_.resize(n);
    for (const Estimator& e : r.estimators)
      if (e.kind == Predicts::regression || e.kind == Predicts::outside) at_submission.resize(n);
  }

  void keep(Archive& a) {
    a(histories, regressions, ordered_by, knows_, at_submission, n_learned, weights, now_, answers_);
    changes.forget(), waiting_.forget();
  }
  // Begin with what was learned from other jobs.
  void know(const std::vector<double>& memory, const std::vector<double>& ratios,
            const std::array<std::vector<double>, 2>& terms, const std::array<double, 4>& sums) {
    histories.know(memory, ratios);
    waiting_.forget();
    for (std::size_t k = 0; k < 2; ++k) {
      regressions[k].terms = terms[k];
      regressions[k].norm = sums[2 * k], regressions[k].steps = sums[2 * k + 1];
    }
  }
  // Answer the question, and return true, unless a prediction must come from outside. Scores that
  // follow are written to `ranked`.
  template <class S>
  bool answer(S& s, Ranked& ranked) {
    learn(s);
    if (s.asked == Asked::renewal) return renew_all(s, ranked);
    consider(s, s.about);
    if (kind(for_backfilling) == Predicts::outside) return false;
    if (s.asked == Asked::prediction && kind(for_ordering) == Predicts::outside) return false;
    give(s, ranked);
    return true;
  }
  // Go on with what was predicted of the first jobs, and with what was seen of them.
  template <class S>
  void resume(S& s, Ranked& ranked, const Beginning& b) {
    if (!at_submission.empty() && b.seen.size() != index(b.number) * n_seen)
      throw std::invalid_argument("begin: what was seen of the first jobs");
    for (i64 j = 0; j < b.number; ++j) {
      if (!at_submission.empty())
        std::copy_n(b.seen.begin() + j * static_cast<i64>(n_seen), n_seen, at_submission[index(j)].begin());
      if (!predicts_order()) continue;
      ordered_by[index(j)] = b.ordered_by[index(j)];
      knows_[index(j)] = histories.ended_of(j);
      rank(s, ranked, j);
    }
  }
  // An outside prediction [s] for the job in question.
  void take(std::size_t which, double seconds) {
    if (kind(which) == Predicts::outside) answers_[which] = seconds;
  }
  // Pass the predictions for the job in question to the simulation.
  template <class S>
  void give(S& s, Ranked& ranked) {
    const i64 j = s.about, requested = s.job(j).requested;
    if (s.asked == Asked::correction) {
      s.renewed = cut(answers_[for_backfilling], requested);
      return;
    }
    if (kind(for_backfilling) != Predicts::beforehand) {
      s.of(j).predicted = cut(answers_[for_backfilling], requested);
      const bool expires = s.rules().plans() && s.rules().correction == Correction::none;
      if (expires && s.of(j).predicted < s.run_time(j)) throw std::invalid_argument(unexpected);
    }
    if (kind(for_ordering) == Predicts::beforehand) return;
    ordered_by[index(j)] = cut(answers_[for_ordering], requested);
    knows_[index(j)] = histories.ended_of(j);
    rank(s, ranked, j);
  }
  // Rank a waiting job by its new prediction [s]; the caller resets the bounds of the queue.
  template <class S>
  void renew(S& s, Ranked& ranked, i64 j, double seconds) {
    knows_[index(j)] = histories.ended_of(j);
    const i64 predicted = cut(seconds, s.job(j).requested);
    if (std::exchange(ordered_by[index(j)], predicted) == predicted) return;
    changes.note(j);
    rank(s, ranked, j);
  }
  // Waiting jobs whose users have had ends since the last prediction, or that wait again since a
  // node has just failed.
  template <class S>
  std::vector<i64> concerned(const S& s) const {
    std::vector<i64> found;
    if (!predicts_order()) return found;
    const auto look_at = [&](i64 j) {
      if (histories.ended_of(j) > knows_[index(j)]) found.push_back(j);
    };
    s.queue.jobs.each([&](const Entry& e) { look_at(e.job); });
    for (i64 j = s.next - s.arrived; j < s.next; ++j) look_at(j);
    if (!s.outages) return found;
    for (i64 k = s.n_lost(); k-- > s.lost_at_pass && s.lost[index(k)].end == s.time;)
      if (std::ranges::find(found, s.lost[index(k)].job) == found.end())
        found.push_back(s.lost[index(k)].job);
    return found;
  }
  // Features of a job, if kept: at its submission, or now.
  const Seen& seen(i64 j) const { return at_submission[index(j)]; }
  template <class S>
  const Seen& features(const S& s, i64 j) {
    histories.describe(s, j, now_);
    return now_;
  }
  bool predicts_order() const { return kind(for_ordering) != Predicts::beforehand; }
  // Learn from the jobs that have ended since the last call.
  template <class S>
  void learn(const S& s) {
    for (; n_learned < s.log.size(); ++n_learned) {
      const i64 j = s.log[n_learned], run = s.run_time(j);
      histories.remember(j, run, s.job(j).requested, s.of(j).start + run);
      waiting_.note_end(model_->users[j]);
      for (std::size_t k = 0; k < 2; ++k)
        if (kind(k) == Predicts::regression)
          regressions[k].learn(seen(j).data(), static_cast<double>(run), histories.processors(j));
    }
  }

  // Learn from past jobs, which have ended by `until` [s], each as seen at its submission: jobs had
  // ended by that second, and jobs ran that had started before it. The simulation must be before
  // its first event, and have these jobs and others that run on: `by_start`: all, in the order of
  // their starts, `start` [s] by job. Return what the first estimate said of each past job at its
  // submission [s]; nothing if it does not learn here.
  template <class S>
  std::vector<i64> learn_from(S& s, std::span<const i64> past, std::span<const i64> by_start,
                              std::span<const i64> start, i64 until) {
    const bool says = kind(for_backfilling) >= Predicts::regression;
    std::vector<i64> said;
    std::size_t begun = 0;
    for (std::size_t i = 0; i <= past.size(); ++i) {
      const i64 now = i < past.size() ? s.job(past[i]).submit : until;
      while (true) {
        const i64 end = s.next_end();
        const i64 began = begun < by_start.size() ? start[index(by_start[begun])] : forever;
        if (end <= std::min(now, began)) {
          s.time = end;
          s.end_all();
        } else if (began < now) {
          s.time = began;
          s.start(by_start[begun++]);
        } else {
          break;
        }
      }
      learn(s);
      if (i == past.size()) break;
      const i64 j = past[i];
      s.time = now;
      Seen& x = at_submission.empty() ? now_ : at_submission[index(j)];
      if (!at_submission.empty()) histories.describe(s, j, x);
      if (!says) continue;
      answer_from(x, j, s.job(j).requested);
      said.push_back(cut(answers_[for_backfilling], s.job(j).requested));
    }
    return said;
  }
  // Write the scores of a job in the orders that use predictions, the units that it holds back, and
  // the run time by which it is judged as a candidate.
  template <class S>
  void rank(S& s, Ranked& ranked, i64 j) {
    const auto requested = static_cast<double>(ordered_by[index(j)]);
    const JobNumbers numbers{static_cast<double>(model_->jobs[j].since_first), requested,
                          histories.processors(j)};
    const std::array<Order, 2> orders{model_->rules.primary, model_->rules.secondary};
    for (std::size_t half = 0; half < 2; ++half) {
      if (!rules().looks[half] || !model_->is_scored(half)) continue;
      ranked[half].at(j) = orders[half] == Order::cubed
                               ? Score{numbers.processors, numbers.requested}
                               : mixed_score(weights[half], numbers);
    }
    if (!rules().hold.empty()) s.held.at(j) = held_back(j, requested);
    if (rules().of_candidates) s.candidate_times.at(j) = ordered_by[index(j)];
  }

 private:
  static constexpr std::size_t for_backfilling = 0, for_ordering = 1;

  const Model* model_;
  Seen now_{};
  std::array<double, 2> answers_{};  // [s] for the job in question
  std::vector<double> knows_;  // by job: number of its user's ends at its last prediction
  std::size_t renewed_at_ = static_cast<std::size_t>(-1);  // `n_learned` at the last renewal
  WaitingOfUsers waiting_;

  const Learning& rules() const { return *model_->learning; }
  Predicts kind(std::size_t which) const { return rules().estimators[which].kind; }

  template <class S>
  void consider(S& s, i64 j) {
    if (!at_submission.empty()) {
      Seen& x = s.asked == Asked::prediction ? at_submission[index(j)] : now_;
      histories.describe(s, j, x);
      answer_from(x, j, s.job(j).requested);
    } else {
      answer_from(now_, j, s.job(j).requested);
    }
  }
  void answer_from(const Seen& x, i64 j, i64 requested) {
    for (std::size_t k = 0; k < 2; ++k) {
      if (kind(k) == Predicts::regression)
        answers_[k] = regressions[k].predict(x.data());
      else if (kind(k) > Predicts::regression)
        answers_[k] = histories.predict(rules().estimators[k], j, requested);
    }
  }
  template <class S>
  bool renew_all(S& s, Ranked& ranked) {
    if (kind(for_ordering) == Predicts::outside) return false;
    if (s.arrivals) predict_coming(s, ranked);
    if (kind(for_ordering) == Predicts::beforehand) return true;  // the renewal is for other scores
    // after the last ends all waiting jobs know of them, unless jobs wait again or come otherwise
    const bool is_plain = !s.outages && !s.stops && !s.arrivals;
    if (std::exchange(renewed_at_, n_learned) == n_learned && is_plain) return true;
    const auto renew_one = [&](i64 j) {
      s.interrupts.count();
      consider(s, j);
      renew(s, ranked, j, answers_[for_ordering]);
    };
    if (is_plain && waiting_.knows()) {
      waiting_.look(s, [&](i64 j) {
        if (histories.ended_of(j) > knows_[index(j)]) renew_one(j);
      });
    } else {
      std::ranges::for_each(concerned(s), renew_one);
      if (is_plain) waiting_.begin(s);
    }
    s.queue.forget_bounds();
    return true;
  }
  // Predict jobs that may come now; jobs that must stay outside are predicted again next time.
  template <class S>
  void predict_coming(S& s, Ranked& ranked) {
    s.asked = Asked::prediction;
    for (const i64 j : s.arrivals->line_up(s.time, s.log)) {
      s.about = j;
      consider(s, j);
      give(s, ranked);
    }
    s.asked = Asked::renewal;
  }
  static i64 cut(double seconds, i64 requested) {
    // a NaN prediction says nothing
    if (!(std::abs(seconds) < static_cast<double>(requested))) return requested;
    // rounded down, except values just below an integer by rounding
    return std::max(static_cast<i64>(std::abs(seconds) + 1e-6), i64{1});
  }
  // Units that a job holds back before it has waited.
  double held_back(i64 j, double predicted) const {
    const std::vector<double>& hold = rules().hold;
    double x = static_cast<double>(model_->jobs[j].requested);
    if (hold[3] == 1) x = predicted;
    if (hold[3] == 2) x = std::sqrt(x * predicted);
    if (x <= hold[1]) return 0;
    return hold[0] * std::min(elementary::log(x / hold[1]) / hold[2], 1.0);
  }
};

}  // namespace hpc
