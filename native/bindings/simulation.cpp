#include "simulation.hpp"

#include <functional>
#include <map>
#include <optional>

#include "../machines/pool.hpp"
#include "../strategies/conservative.hpp"
#include "../strategies/easy.hpp"
#include "../strategies/planned.hpp"

namespace hpc {
namespace {

template <Machine M>
class OneSimulation final : public AnySimulation {
  std::shared_ptr<Model> model_;
  Simulator<M> sim_;
  std::optional<Conservative<M>> conservative_;
  std::optional<Planned<M>> planned_;

 public:
  explicit OneSimulation(std::shared_ptr<Model> model)
      : model_(std::move(model)), sim_(*model_) {
    if (model_->rules.tested > 0) {
      planned_.emplace(sim_);
    } else if (model_->rules.depth == all_jobs) {
      conservative_.emplace(sim_);
      sim_.notes_ends = true;
    }
  }

  i64 run(i64 until, i64 passes) override {
    i64 done = 0;
    for (; done < passes && next_pass(until); ++done) pass();
    return done;
  }
  std::shared_ptr<AnySimulation> copy() const override {
    return std::make_shared<OneSimulation>(*this);
  }
  i64 time() const override { return sim_.time; }

  Columns schedule() const override {
    const std::size_t n = sim_.progress.size();
    std::vector<i64> start(n), predicted(n), promised(n), corrections(n), backfilled(n), number(n);
    for (std::size_t j = 0; j < n; ++j) {
      const Progress& p = sim_.progress[j];
      start[j] = p.start, predicted[j] = p.predicted, promised[j] = p.promised;
      corrections[j] = p.corrections, backfilled[j] = p.backfilled, number[j] = p.number;
    }
    return {{"start", start},           {"predicted", predicted},   {"promised", promised},
            {"corrections", corrections}, {"backfilled", backfilled}, {"number", number}};
  }
  Columns idle_seconds() override {
    const auto& s = sim_.machine.idle_seconds(sim_.time);
    return {{"idle", {s.idle}},
            {"off", {s.off}},
            {"switching_off", {s.switching_off}},
            {"switching_on", {s.switching_on}}};
  }
  Columns facts() const override {
    Columns found = schedule();
    const auto& s = sim_;
    found.push_back({"now", {s.time, s.next, s.started, s.free, s.arrived, s.changed, s.head}});
    found.push_back({"shadow", {s.shadow.time, s.shadow.extra}});
    found.push_back({"running", entries(s.running)});
    found.push_back({"queue", entries(s.queue.jobs)});
    if (conservative_) {
      std::vector<i64> reserved;
      for (i64 j = 0; j < s.model.n_jobs; ++j) reserved.push_back(conservative_->plan.reserved(j));
      found.push_back({"reserved", reserved});
    }
    if (planned_) {
      const Planned<M>& p = *planned_;
      found.push_back({"plan", {p.n_reserved, p.last_reserved, p.beyond}});
      found.push_back({"looks", {p.looks.due, p.looks.all_due, p.looks.next, p.looks.waited}});
    }
    return found;
  }

 private:
  bool next_pass(i64 until) {
    const i64 due = planned_ ? planned_->due() : forever;
    if (sim_.advance(std::min(until, due))) return true;
    if (due > until || due == forever) return false;
    sim_.time = due;
    return true;
  }
  void pass() {
    if (planned_)
      planned_->pass(sim_);
    else if (conservative_)
      conservative_->pass(sim_);
    else
      Easy<M>(sim_).pass();
  }
  static std::vector<i64> entries(const OrderedList& list) {
    std::vector<i64> flat;
    list.each([&](const Entry& e) { flat.insert(flat.end(), {e.key, e.span, e.width, e.job}); });
    return flat;
  }
};

template <class T>
std::function<void(Rules&, i64)> field(T Rules::* member) {
  return [member](Rules& rules, i64 value) { rules.*member = static_cast<T>(value); };
}

}  // namespace

bool set_rule(Rules& rules, const std::string& name, i64 value) {
  static const std::map<std::string, std::function<void(Rules&, i64)>> fields{
      {"passes", field(&Rules::passes)},
      {"primary", field(&Rules::primary)},
      {"secondary", field(&Rules::secondary)},
      {"estimate", field(&Rules::estimate)},
      {"correction", field(&Rules::correction)},
      {"depth", field(&Rules::depth)},
      {"threshold", field(&Rules::threshold)},
      {"last", field(&Rules::last)},
      {"strict", field(&Rules::strict)},
      {"managed", field(&Rules::managed)},
      {"timeout", field(&Rules::timeout)},
      {"off_time", field(&Rules::off_time)},
      {"on_time", field(&Rules::on_time)},
      {"tested", field(&Rules::tested)},
      {"tested_of_user", field(&Rules::tested_of_user)},
      {"window", field(&Rules::window)},
      {"every", field(&Rules::every)},
      {"at_events", field(&Rules::at_events)},
      {"all_every", field(&Rules::all_every)},
      {"resolution", field(&Rules::resolution)},
      {"linear", field(&Rules::linear)},
      {"holds", field(&Rules::holds)},
      {"erode", field(&Rules::erode)},
  };
  const auto found = fields.find(name);
  if (found == fields.end()) return false;
  found->second(rules, value);
  return true;
}

const char* what_lacks(const Model& m) {
  const Rules& r = m.rules;
  if (r.primary == Order::keyed && !m.keys) return "keys: the order of the queue needs them";
  if (r.secondary == Order::keyed && !m.second_keys) return "second_keys: back-filling needs them";
  if (r.primary >= Order::scored && !m.scores) return "scores: the order of the queue needs them";
  if (r.secondary >= Order::scored && !m.second_scores)
    return "second_scores: back-filling needs them";
  if (r.estimate == Estimate::average && (!m.users || r.last < 1))
    return "users: averages of their last jobs need them";
  if (r.estimate == Estimate::given && !m.predicted) return "predicted: there is no estimate";
  if (r.holds && !m.held) return "held: jobs are held back";
  for (i64 j = 0; j < m.n_jobs; ++j) {
    if (m.jobs[j].processors < 1 || m.jobs[j].processors > m.capacity)
      return "jobs: from one processor to all";
    if (j > 0 && m.jobs[j].submit < m.jobs[j - 1].submit) return "jobs: in the order of submission";
    if (m.users && (m.users[j] < 0 || m.users[j] >= m.n_users)) return "users: numbers below n_users";
  }
  return nullptr;
}

std::shared_ptr<AnySimulation> make_simulation(std::shared_ptr<Model> model) {
  return std::make_shared<OneSimulation<Pool>>(std::move(model));
}

}  // namespace hpc
