// What environments are told, and where they keep what Python reads.
//
// A row of arrays belongs to each environment. Python owns them, and sets in them which episode
// comes next; so all of it is in one place, whoever reads it.
#pragma once
#include <array>
#include <vector>

#include "../base/record.hpp"
#include "../core/beginning.hpp"
#include "../core/model.hpp"
#include "../core/weights.hpp"
#include "../machines/nodes.hpp"
#include "../places/measures.hpp"

namespace hpc {

// The values of all of these are those of hpcgym.envs.core.
enum class Kind : i64 { selection, ordering, weights, pairs, pair_scores, candidates, proposals };
enum class Interval : i64 { passes, seconds, submissions, episode };
enum class Paid : i64 { at_start, at_end, while_waiting };
enum class Todo : i64 { step, begin, show };

// Terms of rewards: slowdowns, waits, joules, the time where jobs share nodes, the longest wait.
enum Term : std::size_t { bsld, waited, energy, elapsed, max_wait, n_terms };
inline constexpr double shortest = 10.0;  // [s] shorter run times count as this in bounded slowdowns

// Of a job as long as it is, `run` [s] as it is at the highest level.
inline double bsld_of(const Job& job, i64 start, i64 run) {
  const auto response = static_cast<double>(start - job.submit + job.run);
  return bounded_slowdown(response, static_cast<double>(run), shortest);
}
inline double bsld_of(const Job& job, i64 start) { return bsld_of(job, start, job.run); }

struct Episode {  // where an environment is
  HPC_RECORD(
      i64 start;  // the first row of the episode in the table
      i64 jobs;   // of the episode
      i64 begin;  // [s] when it begins: at the first submission; an extract, if jobs run or wait then
      i64 next_start, next_jobs;  // the same of the episode that follows, where environments reset themselves
      // where jobs come before or after the slice that counts: see hpcgym.envs.core.episodes
      i64 counts_first;  // the first job that counts
      i64 counting;      // jobs up to this one, exclusive, count
      i64 until;         // [s] when the episode is truncated, forever: never
      i64 beginning;     // with which of the beginnings it begins
      i64 of_slice;      // jobs of the slice; 0 where it is the whole episode
      i64 next_counts_first, next_counting, next_until, next_beginning, next_of_slice, next_open;
      i64 open;       // jobs that may count, and have not started; one more where it ends by time alone
      i64 truncated;  // 1 if it ended by time
      i64 visible;    // jobs in the window
      i64 cursor;     // jobs from this one on have not been in the window
      i64 stop;       // [s] the time of the next decision by the clock; by submissions the second before it
      i64 last_time;  // [s] up to which energy is accounted for
      i64 counted;    // jobs that have started and been accounted for
      i64 fresh;      // jobs that started in the last step
      i64 noted;      // of them, those that have been accounted for
      i64 unpaid;     // jobs that run and are paid when they end
      i64 gone;       // jobs that were paid in the last step, as they ended
      i64 ended;      // 1 once all jobs that count have started, or by time
      i64 resets;     // 1 if the last step began an episode
      i64 hides;      // 1 if it goes on from a snapshot that hides the future
      // where jobs share nodes: running jobs with room beside them, listed or not; and how many jobs of
      // the log have been paid
      i64 beside, paid;);

  bool counts(i64 j) const { return counts_first <= j && j < counting; }
};

struct Settings {
  HPC_RECORD(
      Kind kind;
      Interval interval;    // what weights and controls hold for
      i64 interval_length;  // seconds or submissions
      i64 processors;
      i64 autoreset;  // 1 if the step after the end of an episode begins the next
      i64 clock;      // [s] time of the week at the trace's time 0
      i64 by_action;  // 1 if the last index of the window stands for switching idle processors off
      // where controls of a machine under limits stand in the action, or -1
      i64 act_frequency, act_nodes, act_power;
      i64 seen_power;  // where power stands in the observation
      i64 ticks;       // in a second
      Paid paid;
      i64 skips;    // 1 if decisions with one action are not asked for
      i64 split;);  // 1 if the window shows the head and the tail of the queue

  // Whether the agent says the order of the queue, or a rule; else it selects jobs.
  bool orders() const { return kind == Kind::ordering || kind == Kind::weights; }
  bool follows() const { return kind == Kind::candidates || kind == Kind::proposals; }
  bool selects() const { return !orders() && !follows(); }
};

// With what an episode may begin: see Beginning.
struct Before {
  i64 time = -1, number = 0;  // [s]; time is -1 where nothing runs or waits
  bool due = false;
  std::vector<i64> running, start, predicted, promised, history;
  std::vector<i64> first, node, units;
  std::vector<i64> drawn;  // a random state, and the order of the nodes, where those were drawn
  // where run times are learned, what has been before: see Learning
  std::vector<double> memory, ratios;
  std::array<std::vector<double>, 2> terms;
  std::array<double, 4> sums{};

  Beginning told() const {
    return {time, number, due, running, start, predicted, promised, history, {}, first, node, units, {}};
  }
};

// The columns of the window: WINDOW_FEATURES of hpcgym.envs.core.observation, behind them users' own,
// and then expressions.
enum class Shown : i64 {
  wait, requested, predicted, width, area, expansion, fit, leaves, policy_time, quota, put_off,
  past_shadow, own
};
inline constexpr double hour = 3600;  // [s]
inline float squashed(i64 seconds) {
  const auto t = static_cast<float>(seconds);
  return t / (t + static_cast<float>(hour));
}
// Of any number, with 1 to 4 in the middle: shares and logarithms of times can be told apart.
inline float squashed_number(double x) {
  return static_cast<float>(std::isinf(x) ? std::copysign(1.0, x) : x / (4.0 + std::abs(x)));
}
struct Clock {  // what is shown of a time
  i64 time = -forever;
  std::array<float, 4> shown{};
};

// What all environments share. The memory is somebody else's.
struct Table {
  std::shared_ptr<const Model> model;  // of the jobs of all episodes
  Settings settings;
  std::vector<i64> codes;      // which feature each column of the window is
  const float* columns;        // (n_jobs, n_columns) users' own
  i64 n_columns;
  std::vector<Expression> expressions;  // of all jobs
  std::vector<i64> ranks;      // by expression, 1: its place among the visible jobs is shown
  const i64* ordered_by;       // [s] by job, what policies look at
  std::array<double, 5> watts; // of a processor: busy, idle, off, switching off, switching on
  // (N, 2) what a job adds to a node [W]: a core, or where the second is not 0 the whole node while
  // it has any job; and what all draws without jobs. None where energy is counted by processors.
  std::vector<double> node_watts;
  double still_w = 0;
  std::vector<double> reward_weights;  // (n_rewards, n_terms)
  std::vector<i64> shapes;             // (n_rewards,) 1: minus the logarithm
  std::vector<double> mean_speedup;    // (C,) believed of a code, where jobs share nodes
  std::vector<Before> before;          // none: all begin with an empty machine
  std::vector<float> still;            // (n_jobs, n_codes) what columns show, where nothing changes it
  std::vector<std::size_t> moving;     // the other columns

  // The first code that is an expression.
  i64 first_expression() const { return static_cast<i64>(Shown::own) + n_columns; }
  // Nodes that are counted for one by one in `Row::busy_until`.
  std::size_t n_booked() const { return model->sharing ? 0 : node_watts.size() / 2; }
  // Fill these two in.
  void look_at_jobs() {
    const auto changes = [&](i64 code) {
      const auto shown = static_cast<Shown>(code);
      return shown == Shown::wait || shown == Shown::expansion || shown == Shown::fit || shown == Shown::leaves ||
             (shown == Shown::predicted && (model->rules.estimate != Estimate::given || model->learning)) ||
             (shown == Shown::policy_time && model->learning) ||
             (shown == Shown::quota && model->restricted) || shown == Shown::put_off ||
             shown == Shown::past_shadow || code >= first_expression();
    };
    for (std::size_t k = 0; k < codes.size(); ++k)
      if (changes(codes[k])) moving.push_back(k);
    for (i64 j = 0; j < model->n_jobs; ++j)
      for (const i64 code : codes) still.push_back(changes(code) ? 0.0F : of_job(j, code));
  }

 private:
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
      case Shown::quota: return 1.0F;
      default: return columns[j * n_columns + code - static_cast<i64>(Shown::own)];
    }
  }
};

// What users have used when an episode begins. The arrays are its own.
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
  i64 *unpaid, *gone;                     // jobs that run and are paid at their ends; that were paid
  double* gone_bsld;
  i64* busy_until;    // [s] by node: the last end of its jobs, where nodes have powers
  double* begun_j;    // energy since an extract began, which its first step takes
  double* counted_j;  // energy of processors without a job, as far as counted, where managed
  i64 size_of_window;
  // where jobs share nodes: running jobs with room beside them, in the order of their starts
  i64* beside = nullptr;
  i64 size_of_list = 0;
};

// What a step tells of one environment.
struct Outputs {
  float* observation;
  std::int8_t* mask;
  double* rewards;
  bool *ended, *truncated;
  i64* told;  // the time, the number of visible jobs, their rows, -1 behind them
  double* terms;
};

}  // namespace hpc
