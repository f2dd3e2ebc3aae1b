// The parts that answer questions of a simulation, in this order: learned run times, usage,
// expressions. Each exists only if the rules need it. A copy is independent.
#pragma once
#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include "contenders.hpp"
#include "learner.hpp"
#include "program.hpp"
#include "shares.hpp"

namespace hpc {

class Answers {
  const Model* model_;
  std::array<std::optional<Program>, 2> programs_;
  JobRows rows_;                  // jobs that wait, or may come in the pass: for the programs
  Contenders contenders_;         // of them, if scores are put off
  std::vector<i64> scored_;       // jobs that get scores, their waits [s], and processors
  std::vector<double> waiting_, widths_;
  std::vector<i64> due_;          // jobs that may come in the pass, if the schedule decides arrivals
  State state_;
  bool sees_state_ = false;
  bool puts_off_ = false, is_due_ = false;

 public:
  std::optional<Learner> learner;
  std::optional<Shares> shares;
  std::vector<double> weights;  // named by the primary order

  // A simulation that begins owns its scores if they will change.
  template <class S>
  explicit Answers(S& s) : model_(&s.model) {
    const Model& m = *model_;
    state_.keep_runs();
    if (m.learning) learner.emplace(m);
    if (m.accounts) shares.emplace(m);
    if (m.learning && !m.learning->hold.empty()) s.held.own(m.n_jobs);
    if (m.learning && m.learning->of_candidates) s.candidate_times.own(m.n_jobs);
    for (std::size_t half = 0; half < 2; ++half) {
      if (!m.is_scored(half)) continue;
      if (!m.expressions[half].codes.empty()) programs_[half].emplace(m.expressions[half], true);
      Program::each_state(m.expressions[half], [&](std::size_t name) {
        state_.name(name);
        sees_state_ = true;
      });
      if (m.learning || m.accounts || m.rules.asks || programs_[half])
        s.queue.scores[half].own(m.n_jobs);
      if (shares && m.learning) shares->base[half].own(m.n_jobs);
    }
  }

  void keep(Archive& a) { a(learner, shares, weights); }
  // [s] by job, the run times that policies see, if learned; else nullptr.
  const i64* learned_times() const {
    const bool sees = learner && learner->predicts_order() && model_->learning->of_orders;
    return sees ? learner->ordered_by.data() : nullptr;
  }
  // Give the waiting jobs their scores when a simulation begins.
  template <class S>
  void begin(S& s) {
    if (shares) shares->charge_running(s), shares->begin(s);
    express(s);
  }
  // Whether scores are worked out when a pass needs a head, and not before each. Nobody may look at
  // them meanwhile.
  bool puts_off() const { return puts_off_; }
  template <class S>
  void put_off(S& s, bool unwatched) {
    const Rules& r = model_->rules;
    const bool has_scores = (programs_[0] || programs_[1]) && r.primary == Order::scored &&
                            r.renews == Renews::each_time && !shares;
    // who decides from outside looks at scores
    const bool decides_alone = !r.asks && !r.starts && !r.asks_within() && !asks_outside();
    // jobs come and leave by the passes alone, and processors do not switch
    const bool is_plain = !r.managed && !model_->outages && !model_->arrivals.moves &&
                          model_->stops.n_groups() == 0;
    puts_off_ = unwatched && has_scores && decides_alone && is_plain;
    const bool is_behind = std::exchange(is_due_, false) || !s.queue.listed.empty();
    if (puts_off_ || !is_behind) return;
    s.queue.listed.clear();
    express_now(s);
  }
  // Work out the scores that were put off, as far as they say which waiting job is the first.
  template <class S>
  void catch_up(S& s) {
    if (std::exchange(is_due_, false)) {
      if (!programs_[0] || s.bars_some()) return express_now(s);
      begin_pass(s);
      if (programs_[1]) express(s, 1);
      // room on nodes is only known now
      if (!std::remove_cvref_t<decltype(s.machine)>::alike && state_.sees_room())
        return s.queue.listed.add(rows_.jobs(), scores_of_all(s, 0));
      const bool is_plain = S::has_alike_units && !s.rules().holds;
      const Room room{static_cast<double>(state_.room()), static_cast<double>(model_->capacity), is_plain};
      contenders_.begin(rows_, s.time, model_->ticks, *programs_[0], times(0), room);
      if (!contenders_.is_bounded()) return s.queue.listed.add(rows_.jobs(), scores_of_all(s, 0));
    } else if (s.queue.listed.empty() || !contenders_.is_bounded()) {
      return;
    }
    std::optional<std::size_t> guess;
    if (s.head >= 0 && rows_.has(s.head)) guess = rows_.of(s.head);
    while (true) {
      const std::vector<std::size_t>& rows =
          contenders_.take(s.queue.listed.drop_to_highest(s.progress), guess);
      if (rows.empty()) return;
      scored_.clear(), waiting_.clear(), widths_.clear();
      for (const std::size_t row : rows) {
        scored_.push_back(rows_.jobs()[row]);
        widths_.push_back(rows_.widths()[row]);
        waiting_.push_back(rows_.wait(row, s.time, model_->ticks));
      }
      if (sees_state_) state_.read_jobs(s, scored_, waiting_, widths_);
      s.queue.listed.add(scored_, programs_[0]->scores({.jobs = scored_,
                                                        .waiting = &waiting_,
                                                        .times = times(0),
                                                        .now = &state_,
                                                        .rows = &rows}));
    }
  }
  // Set the weights of the primary order, divided by the sum of their sizes; effective at once.
  template <class S>
  void weigh(S& s, const double* given) {
    weights.assign(given, given + Program::n_weights(model_->expressions[0]));
    double total = 0;
    for (const double each : weights) total += std::abs(each);
    for (double& each : weights) each = total > 0 ? each / total : 0.0;
    express(s);
  }
  // Answer, and return true, unless an order or a prediction must come from outside.
  template <class S>
  bool answer(S& s) {
    if (s.asked == Asked::order || s.asked == Asked::starts) return false;
    if (learner && !learner->answer(s, ranked(s))) return false;
    follow(s);
    return true;
  }
  // Write the scores that follow from new predictions.
  template <class S>
  void follow(S& s) {
    if (shares && s.asked != Asked::correction) shares->count(s, learner.has_value());
    if (s.asked == Asked::renewal) express(s);
  }
  // The scores that predictions change: without usage, if usage is added later.
  template <class S>
  Ranked& ranked(S& s) {
    return shares ? shares->base : s.queue.scores;
  }

 private:
  bool asks_outside() const {
    return learner && std::ranges::any_of(model_->learning->estimators, [](const Estimator& each) {
      return each.kind == Predicts::outside;
    });
  }
  // Give all waiting jobs their present scores.
  template <class S>
  void express(S& s) {
    if (!programs_[0] && !programs_[1]) return;
    s.interrupts.count(s.queue.jobs.size() / 16);
    s.queue.listed.clear();
    is_due_ = puts_off_;
    if (!is_due_) express_now(s);
  }
  template <class S>
  void express_now(S& s) {
    begin_pass(s);
    for (std::size_t half = 0; half < 2; ++half)
      if (programs_[half]) express(s, half);
    s.queue.forget_bounds();
  }
  template <class S>
  void express(S& s, std::size_t half) {
    const double* scores = scores_of_all(s, half);
    for (const i64 j : rows_.jobs()) {
      double value = *scores++;
      if (shares) value += shares->terms[half][index(model_->accounts->owner[j])];
      s.queue.scores[half].at(j).score = value;
    }
  }
  template <class S>
  const double* scores_of_all(S& s, std::size_t half) {
    rows_.waits(s.time, model_->ticks, waiting_);
    for (const i64 j : due_) waiting_[rows_.of(j)] = 0;
    if (sees_state_) state_.read_jobs(s, rows_.jobs(), waiting_, rows_.widths());
    return programs_[half]->scores(
        {.jobs = rows_.jobs(), .waiting = &waiting_, .times = times(half), .now = &state_});
  }
  // [s] by job, the run times that scores look at.
  const i64* times(std::size_t half) const {
    const i64* learned = learned_times();
    return learned ? learned : model_->expressions[half].times;
  }
  // List the jobs that get scores, and read what is alike for them.
  template <class S>
  void begin_pass(S& s) {
    due_.clear();
    if (s.arrivals) due_ = s.arrivals->line_up(s.time, s.log);
    list(s);
    if (sees_state_) {
      std::vector<i64> coming;
      if (s.arrivals) coming = s.arrivals->coming(s.log, s.rules().passes == Passes::per_event);
      const auto& [first, second] = model_->expressions;
      state_.read_pass(s, coming, first.codes.empty() ? second.clock : first.clock);
      if (state_.sees_runs()) state_.note_runs(s, rows_);
    }
    for (std::size_t half = 0; half < 2; ++half) {
      if (!programs_[half]) continue;
      programs_[half]->follow(rows_, times(half), [&](std::size_t name, i64 j) { return state_.of_runs(s, name, j); });
      programs_[half]->begin_pass(state_, weights);
    }
  }
  template <class S>
  void list(S& s) {
    const i64* learned = learned_times();
    const auto list = [&](i64 j) { rows_.list(j, s.job(j), learned ? learned[j] : 0); };
    Changes &of_queue = s.queue.changes, *of_times = learned ? &learner->changes : nullptr;
    const bool only_queued = !s.arrivals && !s.stops && s.arrived == 0;
    if (only_queued && rows_.n_changes() > 0 && of_queue.known && (!of_times || of_times->known)) {
      rows_.begin(false);
      for (const i64 step : of_queue.steps) step < 0 ? rows_.remove(~step) : list(step);
      if (of_times)
        for (const i64 j : of_times->steps) rows_.renew(j, learned[j]);
    } else {
      rows_.begin(true);
      s.queue.jobs.each([&](const Entry& e) { list(e.job); });
      for (i64 j = s.next - s.arrived; j < s.next; ++j) list(j);
      // running jobs may wait again in the next pass
      if (s.stops) s.each_running_job([&](const Entry& e) { list(e.job); });
      std::ranges::for_each(due_, list);
    }
    rows_.end();
    only_queued ? of_queue.look() : of_queue.forget();
    if (of_times) of_times->look();
  }
};

}  // namespace hpc
