// A simulation with the strategy of its rules, and the parts that answer its questions.
#pragma once
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <type_traits>

#include "../answers/answers.hpp"
#include "conservative.hpp"
#include "easy.hpp"
#include "planned.hpp"
#include "shared_pass.hpp"

namespace hpc {

// A copy is independent, and uses the same model.
template <Machine M>
struct Scheduled {
  Simulator<M> sim_;
  Answers answers_;
  static constexpr bool plans = Plannable<M>;  // otherwise at most one job has a reservation
  struct NoPlan {};
  std::optional<std::conditional_t<plans, Conservative<M>, NoPlan>> conservative_;
  std::optional<std::conditional_t<plans, Planned<M>, NoPlan>> planned_;

  explicit Scheduled(const Model& model) : sim_(model), answers_(sim_) {
    if constexpr (plans) {
      if (model.rules.tested > 0) {
        planned_.emplace(sim_);
      } else if (model.rules.keeps_reservations()) {
        if (M::restricts)
          throw std::invalid_argument("restricts: not with reservations that are kept");
        conservative_.emplace(sim_);
        sim_.notes_ends = true;
      }
    }
  }

  void keep(Archive& a) { a(sim_, answers_, conservative_, planned_); }
  // Go to the next pass, at `until` [s] or before; return whether there is one. Otherwise something
  // is asked for, or nothing happens until then.
  bool next_pass(i64 until) { return sim_.next_pass(until); }
  // Whether nobody looks at the simulation before it asks or ends. Limits of power act between the
  // scores of a pass and its first head, so there nothing is put off.
  void go_unwatched(bool unwatched) {
    if constexpr (!Shareable<M> && !Simulator<M>::has_levels)
      answers_.put_off(sim_, unwatched && !planned_ && !conservative_);
  }
  void pass() {
    serve();
    if (sim_.asked != Asked::nothing) return;
    sim_.machine.end_pass();
    sim_.note_opening();
  }

 private:
  void serve() {
    if constexpr (plans) {
      if (planned_ && planned_->has_asked()) return planned_->go_on(sim_);
      if (conservative_ && conservative_->has_asked()) return conservative_->go_on(sim_);
    }
    if (!begins()) return;
    if constexpr (plans) {
      if (planned_) return planned_->pass(sim_);
      if (conservative_) return conservative_->pass(sim_);
    }
    if constexpr (Shareable<M>) SharedPass<M>(sim_).pass();
    else pass_of_easy();
  }
  void pass_of_easy() {
    if (!answers_.puts_off()) return Easy<M>(sim_).pass();
    const auto catch_up = [this] { answers_.catch_up(sim_); };
    Easy<M, decltype(catch_up)>(sim_, catch_up).pass();
  }
  // Let jobs come that are due by the schedule; return whether the strategy runs the pass.
  bool begins() {
    const Rules& r = sim_.rules();
    if constexpr (!Simulator<M>::has_levels) {
      return !r.starts && sim_.come();
    } else {
      // limits act before jobs come, start or are asked for; they may kill jobs
      const i64 ended = sim_.logged();
      if (!sim_.machine.begin_pass(sim_)) return !r.starts;  // it continues after a question
      if (sim_.arrivals && sim_.logged() > ended) learn_of_killed();
      if (r.asks || r.starts) return sim_.waits_for_order(), false;
      return sim_.come();
    }
  }
  // Predict, inside the engine, jobs that come because others were killed in this pass.
  void learn_of_killed() {
    if (sim_.asks_for_renewal()) answers_.answer(sim_);
    sim_.asked = Asked::nothing;
    sim_.logged_at_pass = sim_.logged();
  }
};

}  // namespace hpc
