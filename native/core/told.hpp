// What those who answer a simulation are told: how run times are predicted, who may use how much,
// what scores are worked out from. It never changes. The codes are those of hpcgym.scheduler.
#pragma once
#include <array>
#include <vector>

#include "../base/numbers.hpp"
#include "../base/record.hpp"

namespace hpc {

// -- run times that are learned --------------------------------------------------------------------

inline constexpr std::size_t n_seen = 20;      // features of a job, for predictions
inline constexpr std::size_t n_features = 11;  // that policies weigh
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
      double threshold;  // [s] predictions up to so much too long are under-predictions
      Weighting weighting;
      double eta, l2;  // how fast to learn; how much large weights cost
      i64 degree;);
};
struct Estimator {
  Predicts kind = Predicts::beforehand;
  i64 last = 0;  // how many run times a mean is of
  Loss loss{};
  std::vector<std::size_t> features;  // places of those that a regression looks at
};
// Two estimates: for back-filling and for ordering.
struct Learning {
  std::array<Estimator, 2> estimators;
  std::array<bool, 2> looks{};       // whether the two orders look at predictions
  std::array<Weights, 2> weights{};  // of features in them
  const i64* classes = nullptr;  // by job, a number for each user and width; null: nobody looks
  const i64* asked = nullptr;    // processors by job, where its width is in nodes; else null
  std::vector<double> hold;      // most, from, logarithm of factor, by which run times; or empty
  // what is known at first; see Histories and Regression
  std::vector<double> memory, ratios;
  std::array<std::vector<double>, 2> terms;
  std::array<double, 4> sums{};
};

// -- usage -----------------------------------------------------------------------------------------

struct Book {  // scalars of accounts
  HPC_RECORD(
      i64 leaves;      // accounts that jobs have; they are the first
      i64 half_life;   // of usage, 0: nothing is forgotten
      i64 ticks;       // of the clock in a second; times are of that clock
      i64 begin;       // from when on there was something to use
      i64 epoch;       // when usage is multiplied by 1
      i64 charged;     // how many of the jobs that have ended have been charged
      i64 stopped;     // how many of the runs that others have ended have been charged
      i64 open;        // the first of them whose charge is not in `used` yet
      i64 open_at;     // when these ended
      i64 version;     // goes up with each charge
      i64 written;     // the version that scores are of
      i64 written_at;  // the time that they are of
      i64 stamp;       // goes up whenever terms are made anew
      i64 in_a_tree;); // 1: priorities are places in a row (fair tree), and not a formula of usage
};
// What an order makes of usage: nothing; the least usage of processors or energy for the share
// first; the least sum of both, each over its present maximum; priorities, weighted, beside other
// features.
enum class Usage : i64 { unaware, by_cpu, by_energy, by_both, mixed };

// A accounts: leaves, then those above. What is by kind of usage is of processors, then of energy.
struct Accounts {
  const i64* owner = nullptr;  // by job, the leaf that it is charged to
  std::array<const double*, 2> rate{};  // by job, what a second of it counts
  std::vector<i64> parent;              // the account above, -1: the machine
  std::vector<double> share, part;      // of the machine, and of the account above
  std::array<Usage, 2> kinds{};         // what the two orders make of usage
  std::array<std::array<double, 2>, 2> weights{};  // of the two priorities, in the two orders
  std::array<double, 2> capacity{};     // what there is to use in a second
  double damping = 1;
  std::array<std::vector<double>, 2> used, recent;  // at first
  Book book{};
};

// -- scores that are worked out anew ---------------------------------------------------------------

struct Expression {  // a list of steps in postfix order; looked at where scores order
  std::vector<i64> codes;  // of hpcgym.scheduler.policies.operations
  std::vector<double> numbers;            // what a push takes: a number, or a place in a table
  std::vector<const double*> columns;     // by job: since first [s], processors, then others
  const i64* times = nullptr;  // [s] by job: requested, or what stands for it
  i64 clock = 0;               // [s] time of the week at time 0

  // Be of the jobs from so many rows on.
  void move(i64 rows) {
    if (times) times += rows;
    for (const double*& column : columns) column += rows;
  }
};

}  // namespace hpc
