// A simulation of one machine, for whoever holds it: those outside by what each simulation has, those
// inside that know its machine by what is scheduled on it.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <stdexcept>

#include "../bindings/corun.hpp"
#include "../bindings/limited.hpp"
#include "../core/weights.hpp"
#include "../machines/corun.hpp"
#include "../machines/limited.hpp"
#include "../machines/nodes.hpp"
#include "../machines/nodes/fresh_plan.hpp"
#include "../machines/pool.hpp"
#include "../strategies/scheduled.hpp"
#include "foresight.hpp"
#include "live_jobs.hpp"
#include "measures.hpp"
#include "simulation.hpp"

namespace hpc {

static_assert(Stoppable<Pool> && Stoppable<Nodes>);

// Add the cells of so many jobs or runs, one behind the other, and where those of each begin.
template <class F>
void add_cells(Columns& found, std::array<const char*, 3> names, std::size_t n, F cells_of) {
  std::vector<i64> first{0}, node, units;
  for (std::size_t i = 0; i < n; ++i) {
    const std::span<const Cell> cells = cells_of(static_cast<i64>(i));
    for (const Cell& c : cells) node.push_back(c.node), units.push_back(c.units);
    first.push_back(static_cast<i64>(node.size()));
  }
  found.insert(found.end(), {{names[0], first}, {names[1], node}, {names[2], units}});
}
inline constexpr std::array<const char*, 3> of_jobs{"cell_first", "cell_node", "cell_units"};
inline constexpr std::array<const char*, 3> of_lost{"lost_first", "lost_node", "lost_units"};

template <Machine M>
class OneSimulation final : public AnySimulation, public Scheduled<M> {
  static constexpr bool on_nodes = std::is_same_v<M, Nodes>;
  static constexpr bool is_limited = std::is_same_v<M, Limited>;
  using Scheduled<M>::conservative_, Scheduled<M>::planned_;
  using Scheduled<M>::next_pass, Scheduled<M>::pass, Scheduled<M>::plans;
  std::shared_ptr<const Model> model_;
  bool asks_ = false;  // somebody outside, what the simulator does
  bool has_begun_ = false;  // with jobs that run or wait
  bool begins_ = false;     // so; what is asked for is asked then

 public:
  using Scheduled<M>::sim_, Scheduled<M>::answers_;
  explicit OneSimulation(std::shared_ptr<const Model> model)
      : Scheduled<M>(*model), model_(std::move(model)) {
    if (model_->features) {  // before they have weights, jobs are served by submission
      auto& scores = sim_.queue.scores[0];
      scores.own(model_->n_jobs);
      for (i64 j = 0; j < model_->n_jobs; ++j) scores.at(j) = {0.0, inf};
      if (answers_.shares) answers_.shares->base[0].own(model_->n_jobs);
    }
  }

  i64 begin(const Beginning& beginning) override {
    if constexpr (Shareable<M>) {
      throw std::invalid_argument("begin: jobs that share nodes do not say with whom");
    } else {
      if (const char* reason = refusal(beginning)) throw std::invalid_argument(reason);
      const i64 stuck = sim_.begin(
          beginning, [&] { return answers_.learner->answer(sim_, answers_.ranked(sim_)); });
      asks_ = begins_ = stuck < 0 && sim_.asked != Asked::nothing;
      if (begins_ || stuck >= 0) return stuck;
      answers_.begin(sim_);
      has_begun_ = true;
      if constexpr (plans) {
        if (conservative_ && !beginning.reserved.empty()) conservative_->begin(sim_, beginning);
        const auto& looks = beginning.looks;
        if (planned_ && !looks.empty())
          planned_->looks = {looks[0], looks[4], looks[1], looks[2] != 0, looks[3] != 0};
      }
      return -1;
    }
  }
  void weigh(std::span<const double> weights, double total) override {
    const Features* features = model_->features.get();
    if (!features) throw std::invalid_argument("weigh: the model has no features");
    const auto check = [&](i64 place) {
      if (place >= static_cast<i64>(weights.size()))
        throw std::invalid_argument("weigh: one weight a feature");
    };
    for (const i64 place : features->places) check(place);
    for (const i64 place : features->by_usage) check(place);
    weigh_jobs(weights, total, [&](auto weigh_one) {
      for (i64 j = 0; j < model_->n_jobs; ++j) weigh_one(j);
    });
    if (answers_.shares && has_begun_) answers_.shares->begin(sim_);
  }
  // The same of those jobs for which `each` calls what it is given. What usage adds is to be written.
  template <class F>
  void weigh_jobs(std::span<const double> weights, double total, F each) {
    const Features& features = *model_->features;
    const bool learns = answers_.learner && answers_.learner->predicts_order();
    if (learns) weigh_learned(features, weights, total);
    Ranked& scores = answers_.ranked(sim_);
    each([&](i64 j) {
      scores[0].at(j) = features.score(j, weights.data(), total);
      // that of a job to come will be known when it is submitted
      if (learns && j < sim_.next && !sim_.arrivals) answers_.learner->rank(sim_, scores, j);
    });
    if (answers_.shares) weigh_usage(features, weights, total);
    sim_.queue.forget_bounds();
  }
  std::shared_ptr<AnySimulation> weighed(std::span<const double> weights) const override {
    if (!sim_.arrivals || !model_->features) {
      auto found = std::make_shared<OneSimulation>(*this);
      found->weigh(weights, 1.0);
      return found;
    }
    // Where waiting changes no order, jobs that are equal are served as they come, and not by their
    // rows: the order is one of keys then. So it is where waiting alone is the order.
    const Features& features = *model_->features;
    for (const i64 place : features.places)
      if (place >= static_cast<i64>(weights.size()))
        throw std::invalid_argument("weigh: one weight a feature");
    bool changes = false, by_arrival = false, others = false;
    for (std::size_t k = 0; k < features.waiting.size(); ++k) {
      const double weight = weights[index(features.places[k])];
      if (weight == 0) continue;
      if (features.waiting[k] == Waiting::wait && weight > 0) by_arrival = true;
      else if (features.waiting[k] != Waiting::not_at_all) changes = true;
      else others = true;
    }
    changes = changes || (by_arrival && others);
    for (const i64 place : features.by_usage)
      changes = changes || (place >= 0 && weights[index(place)] != 0);
    const auto model = std::make_shared<Model>(*model_);
    model->rules.primary = changes ? Order::scored : Order::keyed;
    model->arrivals.by_arrival[0] = !changes && !others;
    if (model->accounts && !changes) model->accounts->kinds[0] = Usage::unaware;
    auto found = std::make_shared<OneSimulation>(model);
    if (changes) found->weigh(weights, 1.0);
    else if (others) found->key_by(features, weights);
    return found;
  }
  i64 run(i64 until, i64 passes) override {
    i64 done = 0;
    while (!asks_ && done < passes) {
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
    return done;
  }
  std::shared_ptr<AnySimulation> copy() const override {
    return std::make_shared<OneSimulation>(*this);
  }
  i64 time() const override { return sim_.time; }
  i64 coming() const override {
    return model_->n_jobs - sim_.next + (sim_.outages && sim_.outages->is_left());
  }
  i64 free() const override { return sim_.free; }

  // Who has answered in the simulation itself says so; after an order, or a job, nothing follows.
  void go_on() { asks_ = false; }
  void answered() {
    asks_ = false;
    answers_.follow(sim_);
  }
  const Model& model() const { return *model_; }

  Asked asked() const override { return asks_ ? sim_.asked : Asked::nothing; }
  i64 about() const override { return sim_.about; }
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
    const bool fills = model_->sharing && model_->sharing->fills;  // in that order, too
    for (std::size_t k = 0; k < n; ++k) {
      sim_.queue.scores[0].at(checked(jobs[k])).score = scores[k];
      if (fills) sim_.queue.scores[1].at(jobs[k]).score = scores[k];
    }
    sim_.queue.forget_bounds();
    answered();
  }
  void select(i64 j, i64 beside) override {
    expect(Asked::job);
    const bool none = Shareable<M> && j == -1;
    if (!none && (checked(j) >= sim_.next || sim_.of(j).start >= 0))
      throw std::invalid_argument("select: a job that waits");
    if constexpr (Shareable<M>) sim_.machine.beside = beside == -1 ? beside : checked(beside);
    else if (beside != -1) throw std::invalid_argument("select: jobs share no nodes");
    sim_.selected = none ? sim_.none_now : j;
    answered();
  }
  i64 launch(std::span<const i64> jobs, std::span<const i64> first, std::span<const i64> node,
             const i64* units) override {
    expect_starts();
    if (is_limited) expect(Asked::starts);
    i64 started = 0;
    for (std::size_t k = 0; k < jobs.size(); ++k, ++started) {
      const i64 j = checked(jobs[k]);
      if (j >= sim_.next || sim_.of(j).start >= 0)
        throw std::invalid_argument("launch: a job that waits");
      if (first[k] < 0 || first[k] > first[k + 1] || index(first[k + 1]) > node.size())
        throw std::invalid_argument("launch: first ascends");
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
    return started;
  }
  void pass_time(i64 time) override {
    expect_starts();
    if (asks_ || time < sim_.time || time >= sim_.next_event_time())
      throw std::invalid_argument("pass_time: before the next event");
    sim_.time = time;
  }
  Columns view() const override {
    std::vector<i64> queued, duration, running, start, end;
    sim_.queue.jobs.each([&](const Entry& e) {
      queued.push_back(e.job), duration.push_back(e.span);
    });
    sim_.running.each([&](const Entry& e) {
      if (e.job >= model_->n_jobs) return;  // a node is down
      running.push_back(e.job), start.push_back(sim_.of(e.job).start), end.push_back(e.key);
    });
    Columns found{{"queued", queued}, {"duration", duration}, {"running", running},
                  {"running_start", start}, {"running_end", end}};
    if (sim_.arrivals) {  // which say when jobs come
      std::vector<i64> submit;
      for (const i64 j : queued) submit.push_back(sim_.job(j).submit);
      found.push_back({"submit", submit});
    }
    if constexpr (on_nodes) {
      const Filling& filling = sim_.machine.filling();
      std::vector<i64> drawn{filling.random_state()};
      drawn.insert(drawn.end(), filling.order().begin(), filling.order().end());
      found.insert(found.end(), {{"free", sim_.machine.free()}, {"asked", filling.asked()},
                                 {"drawn", drawn}});
      add_cells(found, of_jobs, running.size(),
                [&](i64 k) { return sim_.machine.cells(running[index(k)]); });
    }
    if constexpr (is_limited) tell_view(found, sim_.machine, running);
    return found;
  }
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
  i64 start(i64 j) const override { return sim_.of(checked(j)).start; }
  std::vector<double> features(i64 j, bool now) override {
    learner();
    const Seen& x = now ? answers_.learner->features(sim_, checked(j))
                        : answers_.learner->seen(checked(j));
    return {x.begin(), x.end()};
  }
  void learn_from(std::span<const i64> past, std::span<const i64> by_start, std::span<const i64> start,
                  i64 until) override {
    learner();
    if (sim_.next + sim_.started > 0 || static_cast<i64>(start.size()) != model_->n_jobs)
      throw std::invalid_argument("learn_from: the start of each job, before it begins");
    if constexpr (!std::is_same_v<M, Pool>) throw std::invalid_argument("learn_from: on a pool");
    else answers_.learner->learn_from(sim_, past, by_start, start, until);
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
  std::pair<std::shared_ptr<AnySimulation>, std::vector<i64>> branch(
      std::span<const i64> run_times) const override {
    if constexpr (on_nodes || !plans)
      throw std::invalid_argument("branch: nodes go to no other simulation");
    if (model_->restricted) throw std::invalid_argument("branch: quotas count all jobs");
    if (!run_times.empty() && static_cast<i64>(run_times.size()) != model_->n_jobs)
      throw std::invalid_argument("branch: a run time of each job");
    for (const i64 each : run_times)
      if (each < 1 || each > longest) throw std::invalid_argument("branch: run times from 1 s on");
    const auto run_time = [&](i64 j) {
      return run_times.empty() ? sim_.run_time(j) : run_times[index(j)];
    };
    const auto made = std::make_shared<LiveJobs>(sim_, run_time);
    auto found = std::make_shared<OneSimulation>(std::shared_ptr<Model>(made, &made->model));
    found->sim_.stand_as(sim_, made->rows, sim_.asked == Asked::order);
    return {found, made->rows};
  }
  void look_ahead(Foresight& foresight) override {
    if (on_nodes || !plans || foresight.n_jobs() != model_->n_jobs)
      throw std::invalid_argument("look_ahead: of these jobs, on a pool");
    if constexpr (!on_nodes && plans) look_ahead_on_pool(foresight);
  }
  i64 choose(Foresight& foresight) const override {
    if (on_nodes || !plans || foresight.n_jobs() != model_->n_jobs)
      throw std::invalid_argument("choose: of these jobs, on a pool");
    const Alone::Inside alone(foresight);
    if constexpr (!on_nodes && plans) return foresight.choose<M>(*this);
    return 0;
  }
  std::string saved() override {
    Archive a;
    keep(a, *this);
    return a.written();
  }
  void load(std::string_view bytes) override {
    Archive a(bytes);
    keep(a, *this);
    a.end();
  }
  std::shared_ptr<AnySimulation> anew(std::span<const i64> run_times) const override {
    return of_first(run_times);
  }
  std::vector<i64> run_times() const override {
    std::vector<i64> found;
    for (i64 j = 0; j < model_->n_jobs; ++j) found.push_back(model_->jobs[j].run);
    return found;
  }
  std::shared_ptr<AnySimulation> hidden() override {
    if (on_nodes || !plans || is_limited || model_->restricted)
      throw std::invalid_argument("hidden: on pools of processors, without quotas");
    std::vector<i64> run;
    for (i64 j = 0; j < sim_.next; ++j)
      run.push_back(sim_.of(j).start < 0 ? std::max(sim_.of(j).predicted, i64{1}) : sim_.job(j).run);
    sim_.running.each([&](const Entry& e) { run[index(e.job)] = e.key - sim_.of(e.job).start; });
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
      for (Entry& e : s.running.at(k)) e.span = e.key;
      s.running.at(k).summarise();
    }
    s.changed = true;
    return found;
  }
  void believe(const Belief& belief) override {
    if constexpr (Shareable<M>) sim_.machine.believe(belief), sim_.changed = true;
    else throw std::invalid_argument("believe: jobs share no nodes");
  }
  Columns spells(i64 since) const override {
    if constexpr (Shareable<M>) return spells_of(sim_.machine, since);
    throw std::invalid_argument("spells: jobs share no nodes");
  }
  Columns neighbours() const override {
    if constexpr (Shareable<M>) return neighbours_of(sim_);
    throw std::invalid_argument("neighbours: jobs share no nodes");
  }
  double measure(Metric metric, double tau) const override {
    return hpc::measure(metric, sim_, tau);
  }

  Columns schedule() const override {
    Columns found;
    const auto add = [&](const char* name, auto of) {
      std::vector<i64> column(sim_.progress.size());
      for (std::size_t j = 0; j < column.size(); ++j) column[j] = of(static_cast<i64>(j));
      found.emplace_back(name, std::move(column));
    };
    add("start", [&](i64 j) { return sim_.of(j).start; });
    add("predicted", [&](i64 j) { return sim_.of(j).predicted; });
    add("promised", [&](i64 j) { return sim_.of(j).promised; });
    add("corrections", [&](i64 j) { return i64{sim_.of(j).corrections}; });
    add("backfilled", [&](i64 j) { return i64{sim_.of(j).backfilled}; });
    add("number", [&](i64 j) { return i64{sim_.of(j).number}; });
    if (sim_.arrivals) add("submit", [&](i64 j) { return sim_.job(j).submit; });
    if (sim_.has_levels || (sim_.stops && sim_.stops->cancels()))
      add("run", [&](i64 j) { return sim_.job(j).run; });
    if (sim_.has_levels) add("requested", [&](i64 j) { return sim_.job(j).requested; });
    if (answers_.learner && answers_.learner->predicts_order())
      found.push_back({"ordered_by", answers_.learner->ordered_by});
    if (on_nodes || sim_.stops) {
      std::vector<i64> lost, since, until;
      for (const LostRun& run : sim_.lost)
        lost.push_back(run.job), since.push_back(run.start), until.push_back(run.end);
      found.insert(found.end(), {{"lost_job", lost}, {"lost_start", since}, {"lost_end", until}});
    }
    if constexpr (on_nodes) {
      add_cells(found, of_jobs, sim_.progress.size(), [&](i64 j) {
        return sim_.of(j).start < 0 ? std::span<const Cell>{} : sim_.machine.cells(j);
      });
      add_cells(found, of_lost, sim_.lost.size(), [&](i64 i) { return sim_.machine.lost_cells(i); });
    }
    if constexpr (Shareable<M>) tell(found, sim_.machine);
    if constexpr (is_limited) tell(found, sim_.machine);
    return found;
  }
  Columns idle_seconds() override {
    if constexpr (requires { sim_.machine.idle_seconds(sim_.time); }) {
      const auto& s = sim_.machine.idle_seconds(sim_.time);
      return {{"idle", {s.idle}},
              {"off", {s.off}},
              {"switching_off", {s.switching_off}},
              {"switching_on", {s.switching_on}}};
    }
    return {};
  }
  Columns moment() const override {
    const auto& s = sim_;
    Columns found{{"now", {s.time, s.next, s.started, s.free, s.arrived, s.changed, s.head}},
                  {"shadow", {s.shadow.time, s.shadow.extra}}};
    if (s.arrivals) found.push_back({"came", s.queue.came});
    if (s.stops) {
      std::vector<i64> jobs;
      for (const Suspended& own : s.stops->suspended) jobs.push_back(own.job);
      found.push_back({"given_up", jobs});
    }
    if constexpr (plans)
      if (planned_) {
        const Looks& l = planned_->looks;
        found.push_back({"looks", {l.due, l.all_due, l.next, l.waited, l.had_planned}});
      }
    return found;
  }
  Columns progress(const std::vector<i64>& jobs) const override {
    std::vector<i64> start, backfilled;
    for (const i64 j : jobs) {
      start.push_back(sim_.of(checked(j)).start);
      backfilled.push_back(sim_.of(j).backfilled);
    }
    return {{"start", start}, {"backfilled", backfilled}};
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
        found.push_back(sim_.quotas->bars(checked(j), k));
    return found;
  }
  Columns reserved() const override {
    Columns found;
    if constexpr (plans)
      if (conservative_ && !sim_.expired) {
        const auto& plan = conservative_->plan;
        std::vector<i64> at;
        for (i64 j = 0; j < model_->n_jobs; ++j) at.push_back(plan.reserved(j));
        found.push_back({"reserved", at});
        if constexpr (on_nodes)
          add_cells(found, of_jobs, at.size(), [&](i64 j) {
            return sim_.of(j).start < 0 ? plan.placed(j) : sim_.machine.cells(j);
          });
      }
    return found;
  }

 private:
  static void keep(Archive& a, OneSimulation& of) {
    const Model& m = *of.model_;
    a.same(m.n_jobs), a.same(m.capacity), a.same(m.rules);
    of.Scheduled<M>::keep(a);
    a(of.asks_, of.has_begun_);
  }
  std::shared_ptr<OneSimulation> of_first(std::span<const i64> run_times) const {
    if (static_cast<i64>(run_times.size()) > model_->n_jobs)
      throw std::invalid_argument("anew: more jobs than there are");
    for (const i64 each : run_times)
      if (each < 1 || each > longest) throw std::invalid_argument("anew: run times from 1 s on");
    const auto told = std::make_shared<FirstJobs>(model_, run_times);
    return std::make_shared<OneSimulation>(std::shared_ptr<const Model>(told, &told->model));
  }
  void weigh_learned(const Features& features, std::span<const double> weights, double total) {
    answers_.learner->weights[0] = {};  // nothing is left of the policy that they stand for
    for (std::size_t k = 0; k < features.formulas.size(); ++k)
      answers_.learner->weights[0][index(features.formulas[k])] =
          total > 0 ? weights[index(features.places[k])] / total : 0.0;
  }
  void weigh_usage(const Features& features, std::span<const double> weights, double total) {
    const auto weight = [&](i64 k) {
      return k >= 0 && total > 0 ? weights[index(k)] / total : 0.0;
    };
    bool others = false;
    for (i64 k = 0; k < static_cast<i64>(weights.size()); ++k)
      others = others || (!features.is_of_usage(k) && weight(k) != 0);
    answers_.shares->weigh(weight(features.by_usage[0]), weight(features.by_usage[1]), others);
  }
  // Serve jobs by scores that stay; those of one score have one key.
  void key_by(const Features& features, std::span<const double> weights) {
    std::vector<InLine> line;
    for (i64 j = 0; j < model_->n_jobs; ++j)
      line.push_back({j, features.score(j, weights.data(), 1.0).score});
    sort_by_score(line.begin(), line.end());
    auto& keys = sim_.queue.keys[0];
    keys.own(model_->n_jobs);
    i64 place = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (i > 0 && line[i].score != line[i - 1].score) place = static_cast<i64>(i);
      keys.at(line[i].job) = place;
    }
  }
  void look_ahead_on_pool(Foresight& foresight) requires (!on_nodes && plans) {
    const Alone::Inside alone(foresight);
    auto& scores = sim_.queue.scores[0];
    scores.own(model_->n_jobs);
    for (i64 j = 0; j < model_->n_jobs; ++j) scores.at(j) = foresight.score(0, j);
    while (run(forever, forever), asked() == Asked::order) {
      const i64 best = foresight.choose<M>(*this);
      sim_.queue.jobs.each([&](const Entry& e) { scores.at(e.job) = foresight.score(best, e.job); });
      sim_.queue.forget_bounds();
      answered();
    }
  }
  // Why it cannot begin so; nullptr if it can.
  const char* refusal(const Beginning& b) const {
    const bool some_came = sim_.arrivals ? !sim_.queue.empty() : sim_.next > 0;
    if (some_came || (sim_.started > 0 && !begins_)) return "begin: it has begun";
    if (b.number > model_->n_jobs) return "begin: more jobs than there are";
    if (!b.history.empty() &&
        static_cast<i64>(b.history.size()) != model_->n_users * model_->rules.last)
      return "begin: history of each user";
    i64 taken = 0;
    std::vector<bool> runs(index(b.number));
    for (const i64 j : b.running) {
      if (runs[index(j)]) return "begin: a job runs once";
      runs[index(j)] = true;
      taken += model_->jobs[j].processors;
    }
    if (M::alike && taken > model_->capacity) return "begin: more runs than there is room for";
    if constexpr (on_nodes)
      if (sim_.started == 0) return refusal_of_cells(b);
    return nullptr;
  }
  const char* refusal_of_cells(const Beginning& b) const requires on_nodes {
    if (b.first.empty() && b.reserved.empty()) return nullptr;
    const Layout& l = *model_->nodes;
    std::vector<i64> jobs{b.running.begin(), b.running.end()};
    for (i64 j = 0; j < b.number && !b.reserved.empty(); ++j)
      if (std::ranges::find(b.running, j) == b.running.end()) jobs.push_back(j);
    if (b.first.size() != jobs.size() + 1 || b.node.size() != b.units.size() ||
        b.first.front() != 0 || b.first.back() != static_cast<i64>(b.node.size()) ||
        !std::is_sorted(b.first.begin(), b.first.end()))
      return "begin: cells of each that runs, or has a reservation";
    std::vector<i64> free = sim_.machine.free();
    for (std::size_t k = 0; k < jobs.size(); ++k) {
      const i64 j = jobs[k];
      i64 units = 0;
      for (std::size_t c = index(b.first[k]); c < index(b.first[k + 1]); ++c) {
        if (!is_between(b.node[c], 0, l.n_nodes - 1) || !is_between(b.units[c], 1, l.units(j)))
          return "begin: nodes that there are, and units";
        units += b.units[c];
        for (i64 r = 0; k < b.running.size() && r < l.n_resources; ++r)
          free[index(b.node[c] * l.n_resources + r)] -= b.units[c] * l.demand(j)[r];
      }
      if (units != l.units(j)) return "begin: all units of each";
    }
    const bool fits = std::ranges::all_of(free, [](i64 left) { return left >= 0; });
    return fits ? nullptr : "begin: more runs than nodes have room for";
  }
  void expect(Asked what) const {
    if (asked() != what) throw std::invalid_argument("that is not asked for");
  }
  void expect_starts() const {
    if (!model_->rules.starts || (asks_ && sim_.asked != Asked::starts))
      throw std::invalid_argument("nobody asks who starts");
  }
  i64 checked(i64 j) const {
    if (j < 0 || j >= model_->n_jobs) throw std::out_of_range("no such job");
    return j;
  }
  // The nodes of a job, which somebody outside has chosen.
  std::vector<Cell> checked(i64 j, std::vector<Cell> cells) const {
    i64 last = -1, units = 0;
    for (const Cell& c : cells) {
      if (c.node <= last || c.node >= model_->nodes->n_nodes || c.units < 1)
        throw std::invalid_argument("launch: nodes, ascending, with units");
      last = c.node, units += c.units;
    }
    if (units != model_->nodes->units(j)) throw std::invalid_argument("launch: all units of a job");
    return cells;
  }
  const Learner& learner() const {
    if (!answers_.learner) throw std::invalid_argument("nothing is learned");
    return *answers_.learner;
  }
};

extern template class OneSimulation<Pool>;
extern template class OneSimulation<Nodes>;
extern template class OneSimulation<Corun>;
extern template class OneSimulation<Limited>;

}  // namespace hpc
