// Settings of environments, and their arrays that Python reads.
//
// Each environment has a row of arrays. Python owns them, and sets the next episode in them, so
// that all of it is in one place.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "../answers/program.hpp"
#include "../base/record.hpp"
#include "../core/beginning.hpp"
#include "../core/model.hpp"
#include "../core/weights.hpp"
#include "../machines/nodes.hpp"
#include "../places/measures.hpp"

namespace hpc {

// The values of these are those of hpcgym.envs.core.
enum class Kind : i64 { selection, ordering, weights, pairs, pair_scores, candidates, proposals, shapes };
enum class Interval : i64 { passes, seconds, submissions, episode };
enum class Paid : i64 { at_start, at_end, while_waiting };
enum class Todo : i64 { step, begin, show };

// Terms of rewards: slowdowns, waits, joules, elapsed time on shared nodes or, where a user's jobs get
// shapes, their turnaround, the longest wait.
enum Term : std::size_t { bsld, waited, energy, elapsed, max_wait, n_terms };
inline constexpr double shortest = 10.0;  // [s] least run time in bounded slowdowns

// Of a job with its actual length; `run` [s]: its run time at the highest level.
inline double bsld_of(const Job& job, i64 start, i64 run) {
  const auto response = static_cast<double>(start - job.submit + job.run);
  return bounded_slowdown(response, static_cast<double>(run), shortest);
}
inline double bsld_of(const Job& job, i64 start) { return bsld_of(job, start, job.run); }

struct Episode {  // the state of an environment
  HPC_RECORD(
      i64 start;  // the first row of the episode in the table
      i64 jobs;   // of the episode
      i64 begin;  // [s] its begin: the first submission, or that of an extract with jobs present
      i64 next_start, next_jobs;  // the same for the next episode, if environments reset themselves
      // if jobs come before or after the slice that counts: see hpcgym.envs.core.episodes
      i64 counts_first;  // the first job that counts
      i64 counting;      // end of the jobs that count, exclusive
      i64 until;         // [s] when the episode is truncated, forever: never
      i64 of_slice;      // jobs of the slice; 0 if that is the whole episode
      i64 next_counts_first, next_counting, next_until, next_of_slice, next_open;
      // what is shown of how much is over: jobs of the slice that have started, as a share of `span`,
      // or, unless `span_from` is -1, the share of a span of time [s] from then on; 0: not known
      i64 span, span_from, next_span, next_span_from;
      i64 horizon, next_horizon;  // [s] the end by time that is shown, forever: none
      i64 open;       // jobs that may count and have not started; one more if it ends by time only
      i64 truncated;  // 1 if it ended by time
      i64 visible;    // jobs in the window
      i64 cursor;     // jobs from here on have not been in the window
      i64 stop;       // [s] the next decision by the clock; by submissions the second before it
      i64 last_time;  // [s] up to which energy is counted
      i64 counted;    // started jobs that have been counted
      i64 fresh;      // jobs that started in the last step
      i64 noted;      // those of them already counted
      i64 unpaid;     // running jobs that are paid at their ends
      i64 gone;       // jobs paid in the last step, at their ends
      i64 ended;      // 1 once all jobs that count have started, or by time
      i64 resets;     // 1 if the last step began an episode
      i64 unasked;    // 1 if the last step decided nothing: its episode went by without a question
      i64 hides;      // 1 if it continues from a snapshot that hides the future
      // on shared nodes: running jobs with room beside them, listed or not; jobs of the order of
      // ends that have been paid
      i64 beside, paid;
      // if an agent gives the jobs of a user their shapes: whose, and the job that it is asked about, -1: none
      i64 user, next_user, about;);

  bool counts(i64 j) const { return counts_first <= j && j < counting; }
};

inline constexpr i64 n_of_shape = 3, n_of_user = 3;  // numbers about each shape, and about who submits
inline constexpr i64 n_of_end = 2;  // numbers about the end of the episode in the observation

struct Settings {
  HPC_RECORD(
      Kind kind;
      Interval interval;    // how long weights and controls hold
      i64 interval_length;  // seconds or submissions
      i64 processors;
      i64 autoreset;  // 1 if the step after the end of an episode begins the next
      i64 clock;      // [s] time of the week at the trace's time 0
      i64 by_action;  // 1 if the last index of the window switches idle processors off
      // positions of limit controls in the action, or -1
      i64 act_frequency, act_nodes, act_power;
      i64 seen_power;  // position of power in the observation
      i64 seen_end;    // position of what is known of the end of the episode
      i64 seen_shapes;  // position of the shapes of the job in question
      i64 shapes;       // that a job may have, if an agent says which; else 0
      i64 ticks;       // per second
      Paid paid;
      i64 skips;    // 1 if decisions with only one action are skipped
      i64 split;);  // 1 if the window shows the head and the tail of the queue

  // Whether the agent orders the queue, or a rule does; else it selects jobs.
  bool orders() const { return kind == Kind::ordering || kind == Kind::weights; }
  bool follows() const { return kind == Kind::candidates || kind == Kind::proposals; }
  bool selects() const { return !orders() && !follows() && kind != Kind::shapes; }
};

// The beginning of an episode: see Beginning.
struct Before {
  i64 time = -1, number = 0;  // [s]; time is -1 if nothing runs or waits
  bool due = false;
  std::vector<i64> running, start, predicted, promised, history;
  std::vector<i64> first, node, units;
  std::vector<i64> drawn;  // random state and order of nodes, if orders are drawn
  // if run times are learned, what is known before: see Learning
  std::vector<double> memory, ratios;
  std::array<std::vector<double>, 2> terms;
  std::array<double, 4> sums{};

  Beginning told() const {
    return {time, number, due, running, start, predicted, promised, history, {}, first, node, units, {}};
  }
};

// The columns of the window: WINDOW_FEATURES of hpcgym.envs.core.observation, then columns of
// users, then expressions.
enum class Shown : i64 {
  wait, requested, predicted, width, area, expansion, fit, leaves, policy_time, quota, put_off,
  past_shadow, limit_left, own
};
inline constexpr double hour = 3600;  // [s]
inline float squashed(i64 seconds) {
  const auto t = static_cast<float>(seconds);
  return t / (t + static_cast<float>(hour));
}
// For any number, with 1 to 4 in the middle: shares and logarithms of times stay distinct.
inline float squashed_number(double x) {
  return static_cast<float>(std::isinf(x) ? std::copysign(1.0, x) : x / (4.0 + std::abs(x)));
}
struct Clock {  // the encoding of a time
  i64 time = -forever;
  std::array<float, 4> shown{};
};

// Shared by all environments. The caller owns the memory.
struct Table {
  std::shared_ptr<const Model> model;  // of the jobs of all episodes
  Settings settings;
  std::vector<i64> codes;      // the feature of each column of the window
  const float* columns;        // (n_jobs, n_columns) columns of users
  i64 n_columns;
  std::vector<Expression> expressions;  // of all jobs
  std::vector<i64> ranks;      // by expression, 1: its rank among visible jobs is shown
  const i64* ordered_by;       // [s] by job, run times that policies see
  std::array<double, 5> watts; // of a processor: busy, idle, off, switching off, switching on
  // (N, 2) power of a job on a node [W]: of a core, or, if the second is not 0, of the whole node
  // while it has any job; and the power of all nodes without jobs. Empty if processors are counted.
  std::vector<double> node_watts;
  double still_w = 0;
  std::vector<double> reward_weights;  // (n_rewards, n_terms)
  std::vector<i64> shapes;             // (n_rewards,) 1: minus the logarithm
  std::vector<double> mean_speedup;    // (C,) believed, by code, on shared nodes
  std::optional<Before> before;        // none: all begin with an empty machine
  // If an agent says which shapes the jobs of users have: the rows of the model are the jobs of all
  // episodes, then these with their first shape, and so on.
  std::vector<i64> users;  // by job of an episode
  std::vector<i64> work;   // [s] by row, for how long the job runs if its request does not end it
  std::vector<float> still;            // (n_jobs, n_codes) values of columns that never change
  std::vector<std::size_t> foretold;   // columns of predictions that change
  std::vector<std::size_t> moving;     // columns of other features that change
  // Expressions by what they change with: policy times at most; the job's user alone; policy times
  // and user; anything else, or values of other jobs.
  struct Written {
    std::size_t which, column;  // place among the kept, or the others for those of now
    bool is_rank;
    bool sees_counts, sees_runs;  // of users: whether it looks at their jobs now, and at their last runs
    std::size_t alone;            // the name of the state that it is and nothing else, or State::n_values
  };
  std::vector<Written> of_jobs, of_users, of_both, of_now;
  std::vector<Expression> kept_expressions, expressions_of_now;

  // The first code that is an expression.
  i64 first_expression() const { return static_cast<i64>(Shown::own) + n_columns; }
  // Nodes that `Row::busy_until` counts one by one.
  std::size_t n_booked() const { return model->sharing ? 0 : node_watts.size() / 2; }
  // How many jobs episodes are of, and where the k-th shape of one of them is.
  i64 n_of_episodes() const { return model->n_jobs / (1 + settings.shapes); }
  i64 row_of(i64 job, i64 k) const { return (1 + k) * n_of_episodes() + job; }
  // Whether a column never changes while a job waits. No expression is looked at here.
  bool is_still(std::size_t column) const {
    const auto is_among = [column](const auto& some) { return std::ranges::find(some, column) != some.end(); };
    return !is_among(moving) && !is_among(foretold);
  }
  // Fill in what follows from the columns: `still` and all that is behind it.
  void look_at_jobs() {
    const auto is_foretold = [&](Shown shown) {
      return (shown == Shown::predicted && (model->rules.estimate != Estimate::given || model->learning)) ||
             (shown == Shown::policy_time && model->learning);
    };
    const auto moves = [&](Shown shown) {
      return shown == Shown::wait || shown == Shown::expansion || shown == Shown::fit || shown == Shown::leaves ||
             (shown == Shown::quota && model->restricted) || shown == Shown::put_off ||
             (shown == Shown::limit_left && model->quotas.n > 0) || shown == Shown::past_shadow;
    };
    std::vector<bool> is_still(codes.size());
    for (std::size_t k = 0; k < codes.size(); ++k) {
      const auto shown = static_cast<Shown>(codes[k]);
      if (codes[k] >= first_expression()) express(index(codes[k] - first_expression()), k);
      else if (is_foretold(shown)) foretold.push_back(k);
      else if (moves(shown)) moving.push_back(k);
      else is_still[k] = true;
    }
    still.resize(index(model->n_jobs) * codes.size());
    for (std::size_t at = 0; at < still.size(); ++at)
      if (const std::size_t k = at % codes.size(); is_still[k])
        still[at] = of_job(static_cast<i64>(at / codes.size()), codes[k]);
  }

 private:
  // Note an expression and its column by what it changes with.
  void express(std::size_t which, std::size_t column) {
    const Expression& told = expressions[which];
    bool job = false, counts = false, runs = false, now = ranks[which] == 1;
    for (std::size_t k = 0; k < told.codes.size(); ++k) {
      const i64 code = told.codes[k];
      const auto name = static_cast<std::size_t>(told.numbers[k]);
      if (code == Program::state) (!State::is_of_users(name) ? now : name < State::last_run ? counts : runs) = true;
      else if (code == Program::feature && waiting_of(static_cast<Feature>(name)) == Waiting::not_at_all) job = true;
      else if (code == Program::column) job = true;
      else if (code < Program::negative && code != Program::number) now = true;
    }
    std::vector<Expression>& among = now ? expressions_of_now : kept_expressions;
    const bool user = counts || runs, is_state = told.codes.size() == 1 && told.codes[0] == Program::state;
    const std::size_t alone = is_state ? static_cast<std::size_t>(told.numbers[0]) : State::n_values;
    (now ? of_now : !user ? of_jobs : job ? of_both : of_users)
        .push_back({among.size(), column, ranks[which] == 1, counts, runs, alone});
    among.push_back(told);
  }
  float of_job(i64 j, i64 code) const {
    const Job& job = model->jobs[j];
    const auto machine = static_cast<double>(settings.processors);
    switch (static_cast<Shown>(code)) {
      case Shown::requested: return squashed(job.requested);
      case Shown::predicted: return squashed(model->predicted[j]);
      case Shown::policy_time: return squashed(ordered_by[j]);
      case Shown::width: return static_cast<float>(static_cast<double>(job.processors) / machine);
      case Shown::area: {
        const float a = static_cast<float>(job.requested) * static_cast<float>(job.processors);
        return a / (a + static_cast<float>(hour) * static_cast<float>(machine));
      }
      case Shown::quota:
      case Shown::limit_left: return 1.0F;
      default: return columns[j * n_columns + code - static_cast<i64>(Shown::own)];
    }
  }
};

// Usage at the beginning of an episode. It owns the arrays.
struct OwnAccounts {
  std::vector<i64> owner;
  std::vector<double> rate;
  Accounts accounts;
};

// The rows of one environment.
struct Row {
  Episode* episode;
  i64* window;          // visible jobs
  i64* fresh;           // jobs that started in the last step
  double *terms, *totals, *norms, *owed;  // (n_terms,)
  double *scales, *next_scales;           // (n_rewards,)
  i64 *unpaid, *gone;                     // running jobs paid at their ends; paid ones
  double* gone_bsld;
  i64* busy_until;    // [s] by node: the last end of its jobs, if nodes have powers
  double* counted_j;  // energy of idle processors counted so far, if managed
  i64 size_of_window;
  // the shape that each job of the episode has been given, -1: none
  i64* shapes = nullptr;
  // on shared nodes: running jobs with room beside them, in the order of their starts
  i64* beside = nullptr;
  i64 size_of_list = 0;
};

// The outputs of a step for one environment.
struct Outputs {
  bool is_lent;  // whether others may write into the observation
  float* observation;
  std::int8_t* mask;
  double* rewards;
  bool *ended, *truncated;
  i64* told;  // the time, the number of visible jobs, their rows, then -1
  double* terms;
};

}  // namespace hpc
