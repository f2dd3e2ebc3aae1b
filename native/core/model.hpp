// Jobs, orders and rules of a simulation. A model never changes, and many simulations share it.
#pragma once
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "../base/numbers.hpp"
#include "../base/record.hpp"
#include "arrivals.hpp"
#include "quotas.hpp"
#include "stop_rules.hpp"
#include "told.hpp"
#include "windows.hpp"

namespace hpc {

inline constexpr i64 all_jobs = i64{1} << 62;  // depth: a reservation for each queued job

// The values are those of hpcgym.scheduler.allocations.
enum class Passes : std::uint8_t { per_timestamp, per_event };
// The order in which the queue is served, and backfilled: by arrival; by keys, which time does not
// change; by predicted run time (backfilling only); by selection from outside (serving only); by
// scores, which time changes.
enum class Order : std::uint8_t { submission, keyed, prediction, selection, scored, cubed };
enum class Estimate : std::uint8_t { given, average };
enum class Correction : std::uint8_t { none, to_requested, incremental, doubling, again, kill };
// When waiting jobs get new scores or predictions before a pass.
enum class Renews : std::uint8_t { never, after_ends, each_time };
// What a simulation waits for: an order of the queue before a pass; within a pass, the job that is
// served next, or whether a job starts; a prediction for the job submitted next, or a correction
// for a job that has run as long as predicted; new predictions or scores for the waiting jobs; the
// jobs that start, in place of a pass.
enum class Asked : std::uint8_t { nothing, order, job, prediction, correction, renewal, starts };

// [s] The mean of a user's last run times, rounded down: Tsafrir et al. 2007; Glesser 2016, section 7.2.2
template <class T>
T mean_of_last(const T* run_times, i64 n) {
  return static_cast<T>(std::floor(std::accumulate(run_times, run_times + n, T{0}) / static_cast<T>(n)));
}

struct Job {  // [s]
  HPC_RECORD(
      i64 submit;
      i64 run;  // actual, at most the requested or the predicted time
      i64 requested, processors;
      i64 since_first;);  // submit, counted from the first submission of the whole log
};
struct Score {  // score + x or, if cubed, score * x^3; x = waiting / patience
  double score, patience;
};

struct Rules {
  Passes passes = Passes::per_timestamp;
  Order primary = Order::submission, secondary = Order::submission;
  Estimate estimate = Estimate::given;
  Correction correction = Correction::none;
  i64 depth = 1;       // reservations: none, one (EASY), some or all_jobs (conservative)
  i64 threshold = -1;  // [s] -1: none
  i64 last = 0;        // jobs of a user whose mean run time is an average
  i64 remembered = 0;  // jobs of a user whose run times the orders use
  bool strict = false; // whether jobs end before a reservation begins, not in the same second
  // of reservations that each pass or look makes anew: see strategies/planned.hpp
  i64 tested = 0, tested_of_user = 0, window = forever;
  i64 every = 0, at_events = 0, all_every = 1;  // [s]; jobs; [s]
  i64 resolution = 1, linear = 0;               // [s]
  bool reserves_all = false;  // also where looks and reservations have no effect: they are told
  // of switching idle processors off
  bool managed = false;
  i64 timeout = forever, off_time = 0, on_time = 0;  // [s]
  // of holding long jobs back: [s] of waiting that halve the units held back, 0: never
  bool holds = false;
  i64 erode = 0;
  // [s] up to this wait of the head candidates may also end in time by `candidate_times`; 0: never
  i64 relax = 0;
  // questions
  bool keeps = false;   // a selected job that does not fit stays selected until it starts
  bool picks = false;   // an agent picks jobs to start before the blocked head
  bool proposes = false;  // an agent decides whether each job that could start does, or is put off
  bool asks = false;    // an agent orders the queue before each pass in which a job may start
  bool asks_by_clock = false;  // likewise at looks, also without an event
  bool starts = false;  // an agent starts jobs in place of each pass in which a job may start
  bool learns = false;  // an agent predicts before each submission
  Renews renews = Renews::never;
  bool logs = false;    // it records the order of ends
  i64 put_offs = 0, put_off_for = 0;  // put-offs of a job, at most; [s] to the next pass

  // Whether a job has waited so long that it is served first: Legrand et al. 2018, section 5.2
  bool starves(i64 waiting) const { return threshold >= 0 && waiting > threshold; }
  // How many run times of each user are kept, if any.
  i64 kept() const { return std::max(last, remembered); }
  bool remembers() const { return estimate == Estimate::average || remembered > 0; }
  // Whether an agent decides within a pass which job starts, in an order given by a rule.
  bool asks_within() const { return picks || proposes; }
  // Whether several jobs may have reservations.
  bool plans() const { return tested > 0 || depth == all_jobs; }
  // Whether reservations are kept from one pass to the next.
  bool keeps_reservations() const { return tested == 0 && depth == all_jobs; }
  bool operator==(const Rules&) const = default;
  void keep(Archive& a) {
    a(passes, primary, secondary, estimate, correction, depth, threshold, last, remembered, strict, tested,
      tested_of_user, window, every, at_events, all_every, resolution, linear, reserves_all, managed, timeout,
      off_time, on_time, holds, erode, relax, keeps, picks, proposes, asks, asks_by_clock, starts, learns, renews, logs,
      put_offs, put_off_for);
  }
};

// The error for a job that runs longer than predicted if no rule corrects predictions.
inline constexpr const char* unexpected =
    "correction: plans need a rule for predictions that expire";

struct Features;  // features that weights weigh
// A node fails, or is repaired.
struct Outage {
  i64 time, node;  // [s]
  i64 until;       // [s] when a failure will be repaired; -1 for a repair
  bool is_repair() const { return until < 0; }
};

struct Layout;         // machines/nodes/layout.hpp
struct LimitedLayout;  // machines/limited/layout.hpp
struct Sharing;        // machines/corun/sharing.hpp

// The memory belongs to the caller, and must outlive the model.
struct Model {
  const Job* jobs = nullptr;
  i64 n_jobs = 0;
  bool several = false;  // jobs of several episodes, each sorted by submission
  i64 capacity = 0;  // units of the machine
  const Layout* nodes = nullptr;  // nullptr: a pool of processors
  std::shared_ptr<const Sharing> sharing;  // or jobs share the parts of nodes
  i64 ticks = 1;  // of the clock in a second, if times are not whole seconds
  std::shared_ptr<const LimitedLayout> limited;  // of whole nodes under limits, if any
  Rules rules;
  // by job, if an order needs them: the least key and the highest score come first
  const i64* keys = nullptr;
  const i64* second_keys = nullptr;
  const Score* scores = nullptr;
  const Score* second_scores = nullptr;
  const i64* predicted = nullptr;  // [s] at submission
  const double* held = nullptr;    // units that a job holds back before it has waited
  const i64* candidate_times = nullptr;  // [s] run times of relaxed backfilling
  const i64* users = nullptr;      // numbers from 0, if needed
  i64 n_users = 0;
  const Outage* outages = nullptr;  // by time, repairs before failures of the same time
  i64 n_outages = 0;
  // restrictions on when jobs start
  bool restricted = false;
  QuotaRules quotas;
  std::vector<Window> windows;  // by end
  ArrivalRules arrivals;
  StopRules stops;
  // parts that answer questions, if any
  std::optional<Learning> learning;
  std::optional<Accounts> accounts;
  std::array<Expression, 2> expressions;  // of the two orders; without steps: none

  // Whether the primary (0) or the secondary (1) order changes with time.
  bool is_scored(std::size_t half) const {
    return (half == 0 ? rules.primary : rules.secondary) >= Order::scored;
  }
  std::shared_ptr<const Features> features;  // if weights give the order, in place of scores

  // [s] The first submission is never of a job that follows others.
  i64 first_submission() const {
    i64 j = 0;
    while (arrivals.moves && j < n_jobs && arrivals.left[index(j)] > 0) ++j;
    return j < n_jobs ? jobs[j].submit : 0;
  }
  // The model of the jobs of some rows alone. Features and machines stay those of all jobs.
  Model part(i64 first, i64 n) const {
    Model some = *this;
    some.n_jobs = n;
    some.each_column([first](auto& column, i64 width) { column += first * width; });
    if (arrivals.moves) some.arrivals.take_part(first, n, some.jobs);
    return some;
  }
  // Call f(column, width) for each column by job that there is, but those of `arrivals`.
  template <class F>
  void each_column(F f) {
    const auto each = [&f](auto&... columns) { ((columns ? f(columns, i64{1}) : void()), ...); };
    each(jobs, keys, second_keys, scores, second_scores, predicted, held, candidate_times, users,
         stops.group);
    if (restricted) quotas.each_column(f);
    if (learning) each(learning->classes, learning->asked);
    for (Expression& expression : expressions) expression.each_column(each);
    if (accounts) accounts->each_column(each);
  }
};

// A run that was stopped or lost before its end.
struct LostRun {
  i64 job, start, end;  // [s]
};

// The state of a job.
struct Progress {
  i64 start = -1;      // [s] -1 before it
  i64 predicted = 0;   // [s] run time, at submission
  i64 promised = -1;   // [s] the first start that was reserved for it, -1 if none
  std::int32_t number = 0;         // jobs that started before it
  std::uint8_t corrections = 0;    // expiries of the prediction, up to 255
  bool backfilled = false;
  std::uint8_t put_off = 0;        // how often it has been put off
};

}  // namespace hpc
