// The parts that answer questions of a simulation, in this order: learned run times, usage,
// expressions. Each exists only if the rules need it. A copy is independent.
#pragma once
#include <algorithm>
#include <optional>
#include <utility>

#include "learner.hpp"
#include "program.hpp"
#include "shares.hpp"

namespace hpc {

class Answers {
  const Model* model_;
  std::array<std::optional<Program>, 2> programs_;
  std::vector<i64> jobs_;         // jobs that wait, or may come in the pass: for the programs
  std::vector<double> waiting_;   // [s] their waits
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
    if (m.learning) learner.emplace(m);
    if (m.accounts) shares.emplace(m);
    if (m.learning && !m.learning->hold.empty()) s.held.own(m.n_jobs);
    for (std::size_t half = 0; half < 2; ++half) {
      if (!m.is_scored(half)) continue;
      if (!m.expressions[half].codes.empty()) programs_[half].emplace(m.expressions[half]);
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
    return learner && learner->predicts_order() ? learner->ordered_by.data() : nullptr;
  }
  // Give the waiting jobs their scores when a simulation begins.
  template <class S>
  void begin(S& s) {
    if (shares) shares->begin(s);
    express(s);
  }
  // Whether scores are worked out when a pass needs a head, and not before each. Nobody may look at
  // them meanwhile.
  bool puts_off() const { return puts_off_; }
  template <class S>
  void put_off(S& s, bool unwatched) {
    const Rules& r = model_->rules;
    puts_off_ = unwatched && (programs_[0] || programs_[1]) && r.primary == Order::scored && !shares &&
                r.renews == Renews::each_time && !r.asks && !r.starts && !r.asks_within() && !r.managed && !model_->outages &&
                !model_->arrivals.moves && model_->stops.n_groups() == 0 && !asks_outside();
    const bool is_behind = std::exchange(is_due_, false) || !s.queue.listed.empty();
    if (puts_off_ || !is_behind) return;
    s.queue.listed.clear();
    express_now(s);
  }
  // Work out the scores that were put off.
  template <class S>
  void catch_up(S& s) {
    if (std::exchange(is_due_, false)) express_now(s);
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
    s.interrupts.look(s.queue.jobs.size() / 16);
    s.queue.listed.clear();
    is_due_ = puts_off_;
    if (!is_due_) express_now(s);
  }
  template <class S>
  void express_now(S& s) {
    list(s);
    for (std::size_t half = 0; half < 2; ++half)
      if (programs_[half]) express(s, half);
    s.queue.forget_bounds();
  }
  template <class S>
  void express(S& s, std::size_t half) {
    const bool learned = learner && !learner->ordered_by.empty();
    const i64* times = learned ? learner->ordered_by.data() : model_->expressions[half].times;
    const double* values = programs_[half]->values_of(jobs_, waiting_, times, state_, weights);
    if (half == 0 && puts_off_ && !s.bars_some()) return s.queue.listed.list(jobs_, values);
    for (const i64 j : jobs_) {
      double value = *values++;
      if (shares) value += shares->terms[half][index(model_->accounts->owner[j])];
      s.queue.scores[half].at(j).score = value;
    }
  }
  // List the jobs that get scores, and read the state for them.
  template <class S>
  void list(S& s) {
    jobs_.clear();
    const auto note = [&](i64 j) { jobs_.push_back(j); };
    s.queue.jobs.each([&](const Entry& e) { note(e.job); });
    for (i64 j = s.next - s.arrived; j < s.next; ++j) note(j);
    std::vector<i64> line;
    if (sees_state_) line = jobs_;
    // running jobs may wait again in the next pass
    if (s.stops) s.each_running_job([&](const Entry& e) { note(e.job); });
    note_waits(s);
    if (s.arrivals)
      for (const i64 j : s.arrivals->line_up(s.time, s.log)) note(j), waiting_.push_back(0.0);
    if (!sees_state_) return;
    if (s.arrivals) {
      const bool one = s.rules().passes == Passes::per_event;
      for (const i64 j : s.arrivals->coming(s.log, one)) line.push_back(j);
    }
    const auto& [first, second] = model_->expressions;
    state_.read(s, jobs_, waiting_, line, first.codes.empty() ? second.clock : first.clock);
  }
  template <class S>
  void note_waits(const S& s) {
    waiting_.resize(jobs_.size());
    double* waiting = waiting_.data();
    for (const i64 j : jobs_) *waiting++ = static_cast<double>(s.time - s.job(j).submit);
    if (model_->ticks == 1) return;
    for (double& each : waiting_) each /= static_cast<double>(model_->ticks);
  }
};

}  // namespace hpc
