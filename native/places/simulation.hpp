// A simulation whatever its machine: one virtual call for each run, none within.
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
  i64 coming;   // jobs that have not been submitted; one more where nodes are to fail or to be repaired
  i64 free;     // units
  Asked asked;  // what it waits for,
  i64 about;    // and the job that it is about
};

class AnySimulation : public Alone {
 protected:
  std::shared_ptr<const Model> model_;

 public:
  explicit AnySimulation(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
  const Model& model() const { return *model_; }
  virtual ~AnySimulation() = default;
  // Return the first of the jobs said to run that cannot, as it has ended by then, or finds no room on
  // the nodes; -1 if all do. Once what is asked for then is answered, it is to be called again.
  virtual i64 begin(const Beginning& beginning) = 0;
  // One that goes on alone under weights, before the first event.
  virtual std::shared_ptr<AnySimulation> weighed(std::span<const double> weights) const = 0;
  virtual i64 run(i64 until, i64 passes) = 0;
  virtual std::shared_ptr<AnySimulation> copy() const = 0;
  virtual Columns schedule() const = 0;
  virtual Columns idle_seconds() = 0;
  virtual Present now() const = 0;

  // What is asked for; `run` does nothing before somebody has answered.
  Asked asked() const { return now().asked; }
  virtual void predict(std::optional<double> backfilling, std::optional<double> ordering) = 0;
  virtual void renew(const i64* jobs, const double* seconds, std::size_t n) = 0;
  virtual void order(const i64* jobs, const double* scores, std::size_t n) = 0;
  // Where jobs share nodes also -1: none; or one beside another that runs.
  virtual void select(i64 j, i64 beside) = 0;
  // Start jobs, each on the nodes of its cells (`first`: where these begin), or where it has none on
  // those that the allocation chooses; return how many fit. That may be between two passes, too, at
  // a time up to which it has run, or that has passed since; but not under limits.
  virtual i64 launch(std::span<const i64> jobs, std::span<const i64> first,
                     std::span<const i64> node, const i64* units) = 0;
  virtual void pass_time(i64 time) = 0;
  // For whoever answers: the jobs that wait, and run; those that ended, from one place on; those
  // whose predictions are to be renewed; what a job that ended ran; features, at submission or now.
  virtual Columns view() const = 0;
  // Which jobs that wait could start now, each alone.
  virtual std::vector<i64> fits(const std::vector<i64>& jobs) = 0;
  virtual std::vector<i64> ended(i64 since) const = 0;
  virtual std::vector<i64> concerned() const = 0;
  virtual i64 run_time(i64 j) const = 0;
  virtual const Progress& of(i64 j) const = 0;
  virtual std::vector<double> features(i64 j, bool now) = 0;
  // For whoever looks on: what stands at the end of a pass; of some jobs, be they queued or not, their
  // primary order, and which quotas each would exceed, (n_jobs, n_quotas).
  virtual Columns moment() const = 0;
  // Where each job that waits has a reservation: when, and on nodes where it is; else nothing.
  virtual Columns reserved() const = 0;
  // What an expression says of jobs that wait, as things are now.
  virtual std::vector<double> values_of(const Expression& told, const std::vector<i64>& jobs) = 0;
  virtual std::vector<i64> in_order(std::vector<i64> jobs) const = 0;
  virtual std::vector<i64> exceeded(const std::vector<i64>& jobs) const = 0;
  // Learn from jobs of the past alone: see Learner.
  virtual void learn_from(std::span<const i64> past, std::span<const i64> by_start,
                          std::span<const i64> start, i64 until) = 0;
  // What has been learned of all jobs that have ended; the scores and patiences of all.
  virtual Numbers learned() = 0;
  virtual std::vector<double> scores() const = 0;
  // Simulate to the end, and let look-ahead order the queue at each pass.
  virtual void look_ahead(Foresight& foresight) = 0;
  // Which of its vectors to follow at the pass before which an order is asked for.
  virtual i64 choose(Foresight& foresight) const = 0;
  // What it knows, as bytes; go on from that, before the first event of one of the same model.
  virtual std::string saved() = 0;
  virtual void load(std::string_view bytes) = 0;
  // One of the first jobs alone before its first event, which run for so long [s]; and one that goes on with what is known: jobs that have not ended run for their predicted
  // times, and those that have not been submitted are no more.
  virtual std::shared_ptr<AnySimulation> anew(std::span<const i64> run_times) const = 0;
  virtual std::shared_ptr<AnySimulation> hidden() = 0;
  // Where jobs share nodes: let jobs start by another belief of speedups; the spells, from one place
  // on, in which jobs ran at one rate.
  virtual void believe(const Belief& belief) = 0;
  virtual Columns spells(i64 since) const = 0;
  // There: who has room beside, in the order of the starts.
  virtual Columns neighbours() const = 0;
  // Of a simulation that has ended.
  virtual double measure(Metric metric, double tau) const = 0;
};

std::shared_ptr<AnySimulation> make_simulation(std::shared_ptr<Model> model);

// The nodes of jobs that have run on a pool of as many cores, and whose units all fit wherever
// enough cores are free: they are given at the starts, [s] by job, ends first. `by_start` and
// `by_end` are the jobs that have started in the order of their starts and of their ends. The cells of
// the first that start are known, if those of any; nobody waits before `since` [s].
struct Given {
  std::span<const i64> first, node, units;
  i64 since;
};
Columns assign(const Model& model, std::span<const i64> start, std::span<const i64> by_start,
               std::span<const i64> by_end, const Given& given);

// Set a rule by its name, or throw what says why not.
void set_rule(Rules& rules, const std::string& name, i64 value);

// Why nothing can be simulated so, by the name of what is wrong; nullptr if it can.
const char* refusal(const Model& model);
const char* refusal(const Layout& nodes, i64 columns_of_needs);

}  // namespace hpc
