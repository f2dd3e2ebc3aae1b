// A simulation of one machine. Outside, it is an AnySimulation; parts that know the machine use its
// Scheduled base.
#pragma once
#include <optional>
#include <span>
#include <stdexcept>

#include "../answers/expressed.hpp"
#include "../machines/nodes/fresh_plan.hpp"
#include "../machines/pool.hpp"
#include "beginnings.hpp"
#include "foresight.hpp"
#include "live_jobs.hpp"
#include "measures.hpp"
#include "simulation.hpp"
#include "telling.hpp"
#include "to_start.hpp"
#include "weighing.hpp"

namespace hpc {

static_assert(Plannable<Pool> && Plannable<Nodes> && Failing<Nodes>);

template <Machine M>
class OneSimulation final : public AnySimulation, public Scheduled<M> {
  static constexpr bool on_nodes = std::is_same_v<M, Nodes>;
  static constexpr bool is_limited = std::is_same_v<M, Limited>;
  using Scheduled<M>::conservative_, Scheduled<M>::planned_;
  using Scheduled<M>::next_pass, Scheduled<M>::pass, Scheduled<M>::plans;
  using AnySimulation::model_, AnySimulation::asked;
  bool asks_ = false;  // `sim_.asked` waits for an answer from outside
  bool has_begun_ = false;  // with running or waiting jobs
  bool begins_ = false;     // it is beginning, and may ask meanwhile
  bool looks_ahead_ = false;  // it has begun to, and may have been interrupted
  Interrupts interrupts_;     // between passes

 public:
  using Scheduled<M>::sim_, Scheduled<M>::answers_;
  explicit OneSimulation(std::shared_ptr<const Model> model)
      : AnySimulation(model), Scheduled<M>(*model) {
    if (model_->features) {  // without weights, jobs are served by submission
      auto& scores = sim_.queue.scores[0];
      scores.own(model_->n_jobs);
      for (i64 j = 0; j < model_->n_jobs; ++j) scores.at(j) = {0.0, inf};
      if (answers_.shares) answers_.shares->base[0].own(model_->n_jobs);
    }
  }

  i64 begin(const Beginning& beginning) override {
    if constexpr (Shareable<M>) {
      throw std::invalid_argument("begin: not where jobs share nodes");
    } else {
      if (const char* reason = refusal(sim_, beginning, begins_)) throw std::invalid_argument(reason);
      start_anew();
      if (beginning.knows && answers_.learner)
        answers_.learner->resume(sim_, answers_.ranked(sim_), beginning);
      const i64 stuck = sim_.begin(
          beginning, [&] { return answers_.learner->answer(sim_, answers_.ranked(sim_)); });
      is_half_done_ = false;
      asks_ = begins_ = stuck < 0 && sim_.asked != Asked::nothing;
      if (begins_ || stuck >= 0) return stuck;
      answers_.begin(sim_);
      has_begun_ = true;
      if constexpr (plans) {
        if (conservative_ && !beginning.reserved.empty()) conservative_->begin(sim_, beginning);
        const auto& looks = beginning.looks;
        if (planned_ && !looks.empty())
          sim_.looks = {looks[0], looks[4], looks[1], looks[2] != 0, looks[3] != 0};
      }
      return -1;
    }
  }
  std::shared_ptr<AnySimulation> weighed(std::span<const double> weights) const override {
    if (!model_->features) throw std::invalid_argument("weigh: the model has no features");
    const Features& features = *model_->features;
    const auto check = [&](i64 place) {
      if (place >= static_cast<i64>(weights.size()))
        throw std::invalid_argument("weigh: one weight for each feature");
    };
    std::ranges::for_each(features.places, check);
    std::ranges::for_each(features.by_usage, check);
    auto found = std::make_shared<OneSimulation>(*this);
    found->weigh_all(weights);
    return found;
  }
  i64 run(i64 until, i64 passes) override {
    interrupts_.begin();
    return advance(until, passes);
  }
  void run_until_started(std::span<const i64> jobs, i64* starts) override {
    interrupts_.begin();
    ToStart left(jobs, starts);
    advance(forever, forever, [&] { return left.have_started(sim_); });
  }
  // The same as a part of a longer call. An interrupt between two passes leaves all whole.
  i64 advance(i64 until, i64 passes) {
    return advance(until, passes, [] { return false; });
  }
  // `is_over()`: whether to stop before the next pass.
  template <class F>
  i64 advance(i64 until, i64 passes, F is_over) {
    this->go_unwatched(until == forever && passes == forever);
    try {
      const i64 done = go_on_to(until, passes, is_over);
      this->go_unwatched(false);
      return done;
    } catch (...) {
      if (!is_half_done_) this->go_unwatched(false);
      throw;
    }
  }
  template <class F>
  i64 go_on_to(i64 until, i64 passes, F is_over) {
    i64 done = 0;
    is_half_done_ = true;
    while (!asks_ && done < passes && !is_over()) {
      if (sim_.interrupts.has_read()) note_whole_pass();
      if (next_pass(until)) {
        pass();
        if (sim_.asked == Asked::nothing) ++done;
        else asks_ = true;
      } else if (sim_.asked == Asked::nothing) {
        break;
      } else {
        asks_ = !answers_.answer(sim_);
      }
    }
    is_half_done_ = false;
    return done;
  }
  // A longer call of several parts begins, which ends whole or not at all.
  void begin_call() { interrupts_.begin(before_loss); }
  std::shared_ptr<AnySimulation> copy() const override {
    return std::make_shared<OneSimulation>(*this);
  }
  // The same with another model, of jobs that are the same as far as they have been submitted.
  std::shared_ptr<OneSimulation> with(std::shared_ptr<const Model> model) {
    auto found = std::make_shared<OneSimulation>(std::move(model));
    Archive known;
    keep(known, *this);
    const std::string bytes = known.written();
    Archive again(bytes, found->model_->n_jobs, found->model_->n_jobs);
    keep(again, *found);
    return found;
  }
  Present now() const override {
    const bool outages = sim_.outages && sim_.outages->is_left();
    return {sim_.time, model_->n_jobs - sim_.next + outages, sim_.free,
            asks_ ? sim_.asked : Asked::nothing, sim_.about};
  }

  // After an answer from inside the engine; an order or a job has no further effects.
  void go_on() { asks_ = false; }
  void answered() {
    asks_ = false;
    answers_.follow(sim_);
  }

  void predict(std::optional<double> backfilling, std::optional<double> ordering) override {
    if (asked() != Asked::correction) expect(Asked::prediction);
    if (backfilling) answers_.learner->take(0, *backfilling);
    if (ordering) answers_.learner->take(1, *ordering);
    answers_.learner->give(sim_, answers_.ranked(sim_));
    begins_ ? go_on() : answered();
  }
  void renew(const i64* jobs, const double* seconds, std::size_t n) override {
    expect(Asked::renewal);
    for (std::size_t k = 0; k < n; ++k)
      answers_.learner->renew(sim_, answers_.ranked(sim_), checked(jobs[k]), seconds[k]);
    sim_.queue.forget_bounds();
    answered();
  }
  void order(const i64* jobs, const double* scores, std::size_t n) override {
    expect(Asked::order);
    const bool fills = model_->sharing && model_->sharing->fills;  // fills in that order, too
    for (std::size_t k = 0; k < n; ++k) {
      sim_.queue.scores[0].at(checked(jobs[k])).score = scores[k];
      if (fills) sim_.queue.scores[1].at(jobs[k]).score = scores[k];
    }
    sim_.queue.forget_bounds();
    answered();
  }
  void select(i64 j, i64 beside) override {
    expect(Asked::job);
    const bool none = (Shareable<M> || sim_.rules().asks_within()) && j == -1;
    if (!none && !waits(j)) throw std::invalid_argument("select: the job does not wait");
    if constexpr (Shareable<M>) sim_.machine.beside = beside == -1 ? beside : checked(beside);
    else if (beside != -1) throw std::invalid_argument("select: beside is for shared nodes");
    sim_.selected = none ? sim_.none_now : j;
    answered();
  }
  i64 launch(std::span<const i64> jobs, std::span<const i64> first, std::span<const i64> node,
             const i64* units) override {
    expect_starts();
    if (is_limited) expect(Asked::starts);
    i64 started = 0;
    for (std::size_t k = 0; k < jobs.size(); ++k, ++started) {
      const i64 j = jobs[k];
      if (!waits(j)) throw std::invalid_argument("launch: a job does not wait");
      if (first[k] < 0 || first[k] > first[k + 1] || index(first[k + 1]) > node.size())
        throw std::invalid_argument("launch: first does not ascend");
      bool placed = false;
      if constexpr (on_nodes) {
        std::vector<Cell> cells;
        for (std::size_t c = index(first[k]); c < index(first[k + 1]); ++c)
          cells.push_back({static_cast<std::int32_t>(node[c]), static_cast<std::int32_t>(units[c])});
        placed = !cells.empty();
        if (placed ? !sim_.machine.takes_place(j, checked(j, std::move(cells)))
                   : !sim_.machine.has_room(j, sim_.free))
          break;
      }
      if (!placed && !sim_.machine.finds_place(j, sim_.free)) break;
      sim_.queue.leave(j, sim_.of(j).predicted);
      sim_.start(j);
      sim_.changed = true;
    }
    if (asks_) answered();
    else sim_.note_opening();
    return started;
  }
  void pass_time(i64 time) override {
    expect_starts();
    if (asks_ || time < sim_.time || time >= sim_.next_event())
      throw std::invalid_argument("pass_time: must be before the next event");
    sim_.time = time;
  }
  Columns view() const override { return view_of(*this); }
  Columns schedule() const override { return schedule_of(*this); }
  Columns moment() const override { return moment_of(*this); }
  Columns reserved() const override { return reserved_of(*this); }
  std::vector<i64> fits(const std::vector<i64>& jobs) override {
    std::vector<i64> found;
    for (const i64 j : jobs)
      found.push_back(sim_.machine.fits(checked(j), sim_.needed_by(j), sim_.free));
    return found;
  }
  std::vector<i64> ended(i64 since) const override {
    const auto n = static_cast<i64>(sim_.log.size());
    return {sim_.log.begin() + std::clamp(since, i64{0}, n), sim_.log.end()};
  }
  std::vector<i64> concerned() const override { return learner().concerned(sim_); }
  i64 run_time(i64 j) const override { return sim_.run_time(checked(j)); }
  const Progress& of(i64 j) const override { return sim_.of(checked(j)); }
  std::vector<double> features(i64 j, bool now) override {
    learner();
    const Seen& x = now ? answers_.learner->features(sim_, checked(j))
                        : answers_.learner->seen(checked(j));
    return {x.begin(), x.end()};
  }
  std::vector<i64> learn_from(std::span<const i64> past, std::span<const i64> by_start,
                              std::span<const i64> start, i64 until) override {
    learner();
    if (sim_.next + sim_.started > 0 || static_cast<i64>(start.size()) != model_->n_jobs)
      throw std::invalid_argument("learn_from: starts of all jobs, before the first event");
    if constexpr (!std::is_same_v<M, Pool>) {
      throw std::invalid_argument("learn_from: on a pool");
    } else {
      start_anew();
      std::vector<i64> said = answers_.learner->learn_from(sim_, past, by_start, start, until);
      is_half_done_ = false;
      return said;
    }
  }
  Numbers learned() override {
    learner();
    Learner& l = *answers_.learner;
    l.learn(sim_);
    const auto& [first, second] = l.regressions;
    return {{"memory", l.histories.memory}, {"ratios", l.histories.ratios},
            {"terms", first.terms}, {"second_terms", second.terms},
            {"sums", {first.norm, first.steps, second.norm, second.steps}}};
  }
  std::vector<double> scores() const override {
    std::vector<double> found;
    for (i64 j = 0; j < model_->n_jobs && model_->is_scored(0); ++j) {
      const Score& s = sim_.queue.scores[0][j];
      found.insert(found.end(), {s.score, s.patience});
    }
    return found;
  }
  void look_ahead(Foresight& foresight) override {
    if (on_nodes || !plans || foresight.n_jobs() != model_->n_jobs)
      throw std::invalid_argument("look_ahead: needs a pool, and the jobs of the model");
    if constexpr (!on_nodes && plans) look_ahead_on_pool(foresight);
  }
  i64 choose(Foresight& foresight) const override {
    if (on_nodes || !plans || foresight.n_jobs() != model_->n_jobs)
      throw std::invalid_argument("choose: needs a pool, and the jobs of the model");
    const Alone::Inside alone(foresight);
    Interrupts interrupts;
    if constexpr (!on_nodes && plans) return foresight.choose<M>(*this, interrupts);
    return 0;
  }
  std::string saved() override {
    Archive a;
    keep(a, *this);
    return sealed(a.written(), fingerprint(*model_));
  }
  void load(std::string_view bytes) override {
    const i64 n = model_->n_jobs;
    Archive a(unsealed(bytes, fingerprint(*model_)), n, on_nodes ? model_->nodes->n_rows : n);
    is_half_done_ = true;  // for good if the state is refused halfway
    keep(a, *this);
    a.end();
    is_half_done_ = false;
  }
  std::shared_ptr<AnySimulation> anew(std::span<const i64> run_times) const override {
    return of_first(run_times);
  }
  std::shared_ptr<AnySimulation> hidden() override {
    if (on_nodes || !plans || is_limited || model_->restricted)
      throw std::invalid_argument("hidden: only on pools, without restrictions");
    // a prediction may exceed the requested time, at which a job is killed
    std::vector<i64> run;
    for (i64 j = 0; j < sim_.next; ++j) {
      const i64 predicted = std::min(sim_.of(j).predicted, sim_.job(j).requested);
      run.push_back(sim_.of(j).start < 0 ? std::max(predicted, i64{1}) : sim_.job(j).run);
    }
    const auto end_of = [&](const Entry& e) {
      return std::min(e.key, sim_.of(e.job).start + sim_.job(e.job).requested);
    };
    sim_.running.each([&](const Entry& e) { run[index(e.job)] = end_of(e) - sim_.of(e.job).start; });
    const auto found = of_first(run);
    Archive known;
    Scheduled<M>::keep(known);
    const std::string bytes = known.written();
    Archive again(bytes);
    found->Scheduled<M>::keep(again);
    found->asks_ = asks_, found->has_begun_ = has_begun_;
    Simulator<M>& s = found->sim_;
    s.progress.resize(run.size());
    if (auto& learner = found->answers_.learner; learner && learner->predicts_order())
      learner->ordered_by.resize(run.size());
    for (int k = 0; k < s.running.size_in_blocks(); ++k) {
      for (Entry& e : s.running.at(k)) e.span = end_of(e);
      s.running.at(k).summarise();
    }
    s.expiring.clear();
    s.changed = true;
    return found;
  }
  void believe(const Belief& belief) override {
    if constexpr (Shareable<M>) sim_.machine.believe(belief), sim_.changed = true;
    else throw std::invalid_argument("believe: only for shared nodes");
  }
  Columns spells(i64 since) const override {
    if constexpr (Shareable<M>) return spells_of(sim_.machine, since);
    throw std::invalid_argument("spells: only for shared nodes");
  }
  Columns neighbours() const override {
    if constexpr (Shareable<M>) return neighbours_of(sim_);
    throw std::invalid_argument("neighbours: only for shared nodes");
  }
  double measure(Metric metric, double tau) const override {
    return hpc::measure(metric, sim_, tau);
  }

  Columns idle_seconds() override {
    const IdleSeconds s = sim_.machine.idle_seconds(sim_.time);
    return {{"idle", {s.idle}},
            {"off", {s.off}},
            {"switching_off", {s.switching_off}},
            {"switching_on", {s.switching_on}}};
  }
  std::vector<double> values_of(const Expression& told, const std::vector<i64>& jobs) override {
    const char* reason = Program::refusal(told);
    if (!reason && !Program::is_told(told, *model_))
      reason = "expression: the model lacks what it uses of users";
    if (reason) throw std::invalid_argument(reason);
    for (const i64 j : jobs) checked(j);
    Expressed expressed({told});
    const InTable at{0, answers_.learned_times()};
    expressed.look(sim_, jobs, at);
    const double* values = expressed.values(0, at);
    return {values, values + jobs.size()};
  }
  std::vector<i64> in_order(std::vector<i64> jobs) const override {
    for (const i64 j : jobs) checked(j);
    sort_in_order(*model_, sim_.queue, sim_.time, jobs);
    return jobs;
  }
  std::vector<i64> exceeded(const std::vector<i64>& jobs) const override {
    std::vector<i64> found;
    for (const i64 j : jobs)
      for (i64 k = 0; sim_.quotas && k < sim_.quotas->size(); ++k)
        found.push_back(sim_.quotas->bars(checked(j), k, sim_.time));
    return found;
  }

 private:
  // What ends whole or not at all begins.
  void start_anew() {
    sim_.interrupts.begin(before_loss);
    is_half_done_ = true;
  }
  void note_whole_pass() {
    is_half_done_ = false;
    interrupts_.read_clock();
    start_anew();
  }
  static void keep(Archive& a, OneSimulation& of) {
    const Model& m = *of.model_;
    a.same(m.n_jobs), a.same(m.capacity), a.same(m.rules);
    of.Scheduled<M>::keep(a);
    a(of.asks_, of.has_begun_);
    const Answers& answers = of.answers_;
    if (answers.learner) a.check(answers.learner->n_learned <= of.sim_.log.size());
    if (answers.shares) a.check(answers.shares->is_within(of.sim_.logged(), of.sim_.n_lost()));
  }
  std::shared_ptr<OneSimulation> of_first(std::span<const i64> run_times) const {
    if (static_cast<i64>(run_times.size()) > model_->n_jobs)
      throw std::invalid_argument("anew: more jobs than the model has");
    for (const i64 each : run_times)
      if (each < 1 || each > longest)
        throw std::invalid_argument("anew: run times must be 1 s or more");
    const auto told = std::make_shared<FirstJobs>(model_, run_times);
    return std::make_shared<OneSimulation>(std::shared_ptr<const Model>(told, &told->model));
  }
  void weigh_all(std::span<const double> weights) {
    weigh_jobs(*this, weights, 1.0, [&](auto weigh_one) {
      for (i64 j = 0; j < model_->n_jobs; ++j) weigh_one(j);
    });
    if (answers_.shares && has_begun_) answers_.shares->begin(sim_);
  }
  void look_ahead_on_pool(Foresight& foresight) requires (!on_nodes && plans) {
    const Alone::Inside alone(foresight);
    auto& scores = sim_.queue.scores[0];
    scores.own(model_->n_jobs);
    if (!std::exchange(looks_ahead_, true))
      for (i64 j = 0; j < model_->n_jobs; ++j) scores.at(j) = foresight.score(0, j);
    interrupts_.begin();
    while (advance(forever, forever), asked() == Asked::order) {
      const i64 best = foresight.choose<M>(*this, interrupts_);
      sim_.queue.jobs.each([&](const Entry& e) { scores.at(e.job) = foresight.score(best, e.job); });
      sim_.queue.forget_bounds();
      answered();
    }
  }
  void expect(Asked what) const {
    if (asked() != what) throw std::invalid_argument("this is not asked for");
  }
  void expect_starts() const {
    if (!model_->rules.starts || (asks_ && sim_.asked != Asked::starts))
      throw std::invalid_argument("starts are not asked for");
  }
  i64 checked(i64 j) const {
    if (j < 0 || j >= model_->n_jobs) throw std::out_of_range("no such job");
    return j;
  }
  // A dependent job may not have come yet.
  bool waits(i64 j) const {
    return checked(j) < sim_.next && sim_.queue.place(j) >= 0 && sim_.of(j).start < 0;
  }
  // Check the nodes chosen for a job from outside.
  std::vector<Cell> checked(i64 j, std::vector<Cell> cells) const {
    i64 last = -1, units = 0;
    for (const Cell& c : cells) {
      if (c.node <= last || c.node >= model_->nodes->n_nodes || c.units < 1)
        throw std::invalid_argument("launch: nodes must ascend, and have units");
      last = c.node, units += c.units;
    }
    if (units != model_->nodes->units(j))
      throw std::invalid_argument("launch: cells must have all units of a job");
    return cells;
  }
  const Learner& learner() const {
    if (!answers_.learner) throw std::invalid_argument("run times are not learned");
    return *answers_.learner;
  }
};

extern template class OneSimulation<Pool>;
extern template class OneSimulation<Nodes>;
extern template class OneSimulation<Corun>;
extern template class OneSimulation<Limited>;

}  // namespace hpc
