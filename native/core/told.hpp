// Parameters of the parts that answer a simulation: predictions, fair share, expressions. They
// never change. The codes are those of hpcgym.scheduler.
#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "../base/numbers.hpp"
#include "../base/record.hpp"

namespace hpc {

// -- run times that are learned --------------------------------------------------------------------

inline constexpr std::size_t n_seen = 20;      // features of a job, for predictions
inline constexpr std::size_t n_features = 11;  // features that policies weigh
using Weights = std::array<double, n_features>;
using Seen = std::array<double, n_seen>;

enum class Predicts : i64 {
  beforehand, outside, regression, mean_of_last, user_ratio, typical_ratio, unknown
};
enum class Branch : i64 { absolute, squared, exponential };
enum class Weighting : i64 { constant, long_ones, wide_ones, small_ones, large_ones };

struct Loss {  // of a regression
  HPC_RECORD(
      Branch over;
      double over_scale;
      Branch under;
      double under_scale;
      double threshold;  // [s] predictions too long by up to this much count as under-predictions
      Weighting weighting;
      double eta, l2;  // learning rate; cost of large weights
      i64 degree;);
};
struct Estimator {
  Predicts kind = Predicts::beforehand;
  i64 last = 0;  // number of run times in a mean
  Loss loss{};
  std::vector<std::size_t> features;  // places of the features that a regression uses
};
// Two estimates: for backfilling, and for ordering or for candidates of relaxed backfilling.
struct Learning {
  std::array<Estimator, 2> estimators;
  std::array<bool, 2> looks{};       // whether the two orders use predictions
  // for whom the second estimate is: orders, candidates of relaxed backfilling
  bool of_orders = true, of_candidates = false;
  std::array<Weights, 2> weights{};  // of features in them
  const i64* classes = nullptr;  // by job, a number for each user and width; null: not needed
  const i64* asked = nullptr;    // processors by job, if its width is in nodes; else null
  std::vector<double> hold;      // most, from, log of factor, for units held back; or empty
  // initial state; see Histories and Regression
  std::vector<double> memory, ratios;
  std::array<std::vector<double>, 2> terms;
  std::array<double, 4> sums{};
};

// -- usage -----------------------------------------------------------------------------------------

struct Book {  // scalars of the accounts
  HPC_RECORD(
      i64 leaves;      // accounts of jobs; they are the first
      i64 half_life;   // of usage, 0: no decay
      i64 period;      // at multiples of which running jobs are charged, too; 0: jobs as they end
      i64 counted;     // the last of these multiples up to which they are
      i64 ticks;       // of the clock in a second; the times below are in ticks
      i64 begin;       // since when the machine has been available
      i64 epoch;       // when usage has the factor 1
      i64 charged;     // how many ended jobs have been charged
      i64 stopped;     // how many stopped runs have been charged
      i64 open;        // the first job whose charge is not in `used` yet
      i64 open_at;     // when that job ended, and all after it
      i64 version;     // increases with each charge
      i64 written;     // the version from which scores were computed
      i64 written_at;  // the time for which they were computed
      i64 stamp;       // increases whenever terms are recomputed
      i64 in_a_tree;); // 1: priorities are ranks (fair tree), not a formula of usage
};
// How an order uses usage: not at all; least usage of processors or of energy relative to the share
// first; least sum of both, each divided by its present maximum; weighted priorities, beside other
// features.
enum class Usage : i64 { unaware, by_cpu, by_energy, by_both, mixed };

// A accounts: leaves, then their ancestors. Pairs by kind of usage are processors, then energy.
struct Accounts {
  const i64* owner = nullptr;  // by job, the leaf account to charge
  std::array<const double*, 2> rate{};  // by job, usage in a second
  std::vector<i64> parent;              // the account above, -1: the machine
  std::vector<double> share, part;      // relative to the machine, and to the account above
  std::array<Usage, 2> kinds{};         // how the two orders use usage
  std::array<std::array<double, 2>, 2> weights{};  // of the two priorities, in the two orders
  std::array<double, 2> capacity{};     // available usage in a second
  double damping = 1;
  std::array<std::vector<double>, 2> used, recent;  // initial
  Book book{};

  // Call f(column) for each column by job.
  template <class F>
  void each_column(F f) {
    f(owner);
    std::ranges::for_each(rate, f);
  }
};

// -- scores that are worked out anew ---------------------------------------------------------------

struct Expression {  // steps in postfix order; evaluated where scores order
  std::vector<i64> codes;  // of hpcgym.scheduler.policies.operations
  std::vector<double> numbers;            // operand of a push: a number, or an index into a table
  std::vector<const double*> columns;     // by job: since first [s], processors, then others
  const i64* times = nullptr;  // [s] by job: requested, or what stands for it
  i64 clock = 0;               // [s] time of the week at time 0
  std::vector<double> layer;   // numbers of the last step, if it is that of a network

  // Call f(column) for each column by job.
  template <class F>
  void each_column(F f) {
    if (times) f(times);
    std::ranges::for_each(columns, f);
  }
};

}  // namespace hpc
