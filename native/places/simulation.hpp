// A simulation of any machine: one virtual call for each run, none within.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/alone.hpp"
#include "../core/beginning.hpp"
#include "../core/model.hpp"

namespace hpc {

using Columns = std::vector<std::pair<const char*, std::vector<i64>>>;
using Numbers = std::vector<std::pair<const char*, std::vector<double>>>;

enum class Metric : i64;
struct Belief;
class Foresight;

struct Present {  // of a simulation
  i64 time;     // [s] of the last event
  i64 coming;   // jobs not submitted yet; one more if failures or repairs are to come
  i64 free;     // units
  Asked asked;  // what it waits for
  i64 about;    // the job of that question
};

class AnySimulation : public Alone {
 protected:
  std::shared_ptr<const Model> model_;

 public:
  explicit AnySimulation(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
  const Model& model() const { return *model_; }
  virtual ~AnySimulation() = default;
  // Return the first running job that cannot run, as it has ended by then, or finds no room on the
  // nodes; -1 if all can. After a question is answered, call it again.
  virtual i64 begin(const Beginning& beginning) = 0;
  // An independent simulation under weights, before the first event.
  virtual std::shared_ptr<AnySimulation> weighed(std::span<const double> weights) const = 0;
  virtual i64 run(i64 until, i64 passes) = 0;
  // Run, unless something is asked for, until these jobs have started; write when first [s], -1: never.
  virtual void run_until_started(std::span<const i64> jobs, i64* starts) = 0;
  virtual std::shared_ptr<AnySimulation> copy() const = 0;
  virtual Columns schedule() const = 0;
  virtual Columns idle_seconds() = 0;
  virtual Present now() const = 0;

  // The open question; `run` does nothing before it is answered.
  Asked asked() const { return now().asked; }
  virtual void predict(std::optional<double> backfilling, std::optional<double> ordering) = 0;
  virtual void renew(const i64* jobs, const double* seconds, std::size_t n) = 0;
  virtual void order(const i64* jobs, const double* scores, std::size_t n) = 0;
  // -1: none, where allowed. On shared nodes `beside` may name a running job.
  virtual void select(i64 j, i64 beside) = 0;
  // Start jobs, each on the nodes of its cells (`first`: where these begin), or without cells on
  // nodes that the allocation chooses; return how many fit. Also possible between two passes, at
  // the time reached by `run` or `pass_time`; but not under limits.
  virtual i64 launch(std::span<const i64> jobs, std::span<const i64> first,
                     std::span<const i64> node, const i64* units) = 0;
  virtual void pass_time(i64 time) = 0;
  // Which waiting jobs could start now, each alone.
  virtual std::vector<i64> fits(const std::vector<i64>& jobs) = 0;
  // For agents: waiting and running jobs; jobs ended, from one index on; jobs whose predictions are
  // to be renewed; the run time of an ended job; features, at submission or now.
  virtual Columns view() const = 0;
  virtual std::vector<i64> ended(i64 since) const = 0;
  virtual std::vector<i64> concerned() const = 0;
  virtual i64 run_time(i64 j) const = 0;
  virtual const Progress& of(i64 j) const = 0;
  virtual std::vector<double> features(i64 j, bool now) = 0;
  // For observers: the state at the end of a pass; for some jobs, queued or not, their primary
  // order, and which quotas each would exceed, (n_jobs, n_quotas).
  virtual Columns moment() const = 0;
  virtual std::vector<i64> in_order(std::vector<i64> jobs) const = 0;
  virtual std::vector<i64> exceeded(const std::vector<i64>& jobs) const = 0;
  // The reservation of each waiting job, with its nodes; empty if there are none.
  virtual Columns reserved() const = 0;
  // The values of an expression for waiting jobs now.
  virtual std::vector<double> values_of(const Expression& told, const std::vector<i64>& jobs) = 0;
  // Learn from past jobs only: see Learner.
  virtual std::vector<i64> learn_from(std::span<const i64> past, std::span<const i64> by_start,
                                      std::span<const i64> start, i64 until) = 0;
  // What has been learned from ended jobs; the scores and patiences of all jobs.
  virtual Numbers learned() = 0;
  virtual std::vector<double> scores() const = 0;
  // Simulate to the end, with look-ahead ordering the queue at each pass.
  virtual void look_ahead(Foresight& foresight) = 0;
  // The index of the vector to follow at the pass for which an order is asked.
  virtual i64 choose(Foresight& foresight) const = 0;
  // The state as bytes; restore it, before the first event of a simulation of the same model.
  virtual std::string saved() = 0;
  virtual void load(std::string_view bytes) = 0;
  // A new simulation of the first jobs only, with these run times [s]; one that goes on with known
  // data: jobs that have not ended run for their predicted times, and no job is to come.
  virtual std::shared_ptr<AnySimulation> anew(std::span<const i64> run_times) const = 0;
  virtual std::shared_ptr<AnySimulation> hidden() = 0;
  // On shared nodes: start jobs by another belief of speedups; the spells, from one index on, in
  // which jobs ran at one rate.
  virtual void believe(const Belief& belief) = 0;
  virtual Columns spells(i64 since) const = 0;
  // There: the jobs with room beside them, in the order of their starts.
  virtual Columns neighbours() const = 0;
  // The simulation must have ended.
  virtual double measure(Metric metric, double tau) const = 0;
};

std::shared_ptr<AnySimulation> make_simulation(std::shared_ptr<Model> model);

// A number that the bytes of a simulation are sealed with: it differs between models of different
// jobs or nodes, and between versions of the engine.
std::uint64_t fingerprint(const Model& model);

// The nodes of jobs that have run on a pool with as many cores, and whose units fit wherever enough
// cores are free: nodes are given at the starts, [s] by job, after ends. `by_start` and `by_end`
// are the started jobs in the order of their starts and ends. `given`: the cells of the first jobs
// to start, if known; no job waits before `since` [s].
struct Given {
  std::span<const i64> first, node, units;
  i64 since;
};
Columns assign(const Model& model, std::span<const i64> start, std::span<const i64> by_start,
               std::span<const i64> by_end, const Given& given);

// Set a rule by its name, or throw the reason why not.
void set_rule(Rules& rules, const std::string& name, i64 value);

// The reason, by the name of what is wrong, why this cannot be simulated; nullptr if it can.
const char* refusal(const Model& model);
const char* refusal(const Layout& nodes, i64 columns_of_needs);

}  // namespace hpc
