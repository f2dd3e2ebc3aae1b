// What ended jobs tell about users, and the features for predictions.
//
// Memory has a row for each user: sums, then run times, latest first. Ratios, run time / requested
// time, have a row for all jobs, then one for each user, then one for each class: jobs of a user
// with the same number of processors.
#pragma once
#include <numbers>
#include <vector>

#include "../base/elementary.hpp"
#include "../core/model.hpp"

namespace hpc {

class Histories {
 public:
  std::vector<double> memory, ratios;  // flat, row by row

  Histories(const Model& model)
      : memory(model.learning->memory), ratios(model.learning->ratios), model_(&model) {
    if (model.n_users > 0) columns_ = memory.size() / index(model.n_users);
  }

  // Begin with what was learned from other jobs.
  void know(const std::vector<double>& of_users, const std::vector<double>& of_ratios) {
    memory = of_users, ratios = of_ratios;
    typical_.clear();
  }
  void keep(Archive& a) { a(memory, ratios), typical_.clear(); }
  double processors(i64 j) const {
    const Learning& rules = *model_->learning;
    return static_cast<double>(rules.asked ? rules.asked[j] : model_->jobs[j].processors);
  }
  // The number of ended jobs of the job's user.
  double ended_of(i64 j) const { return memory[index(model_->users[j]) * columns_ + number]; }
  // Add an ended job. A lower level may have made it slower, and its end later.
  void remember(i64 j, i64 run_time, i64 requested_time, i64 end) {
    double* user = row_of(j);
    const auto run = static_cast<double>(run_time);
    const auto requested = static_cast<double>(requested_time);
    user[number] += 1;
    user[total_run] += run;
    user[total_processors] += processors(j);
    user[last_end] = static_cast<double>(end);
    user[total_ratio] += run / requested;
    std::copy_backward(user + last, user + columns_ - 1, user + columns_);
    user[last] = run;
    if (ratios.empty()) return;
    const double logarithm = elementary::log(run / requested);
    ratios[0] += 1;
    ratios[1] += logarithm;
    for (double* row : {ratios_of_user(j), ratios_of_class(j)}) {
      row[0] = decay * row[0] + 1.0;
      row[1] = decay * row[1] + logarithm;
    }
  }
  // [s] The prediction of a formula.
  double predict(const Estimator& by, i64 j, i64 requested_time) {
    const double* user = row_of(j);
    const auto requested = static_cast<double>(requested_time);
    if (by.kind == Predicts::typical_ratio) return requested * typical_ratio(j);
    if (by.kind == Predicts::user_ratio)
      return user[number] > 0 ? requested * (user[total_ratio] / user[number]) : requested;
    if (user[number] < static_cast<double>(by.last)) return requested;
    return mean_of_last(user + last, by.last);
  }
  // Features of a job now; see hpcgym.scheduler.estimates.JOB_FEATURES.
  template <class S>
  void describe(const S& s, i64 j, Seen& x) {
    const double *user = row_of(j), n = user[number];
    x[0] = static_cast<double>(s.job(j).requested);
    for (std::size_t k = 0; k < 3; ++k) x[1 + k] = user[last + k];
    x[4] = (x[1] + x[2]) / std::max(std::min(n, 2.0), 1.0);
    x[5] = (x[1] + x[2] + x[3]) / std::max(std::min(n, 3.0), 1.0);
    x[6] = user[total_run] / std::max(n, 1.0);
    x[7] = processors(j);
    x[8] = user[total_processors] / std::max(n, 1.0);
    x[9] = n > 0 ? x[7] / x[8] : 0.0;
    double count = 0, longest = 0, total = 0, occupied = 0;
    s.each_running_job([&](const Entry& e) {
      if (model_->users[e.job] != model_->users[j] || e.job == j) return;
      // processors of a job may still be switching on
      const auto elapsed = static_cast<double>(std::max(s.time - s.of(e.job).start, i64{0}));
      count += 1;
      longest = std::max(longest, elapsed);
      total += elapsed;
      occupied += processors(e.job);
    });
    x[10] = occupied / std::max(count, 1.0);
    x[11] = count;
    x[12] = longest;
    x[13] = total;
    x[14] = occupied;
    // memory may be of another part of the trace, with later ends
    x[15] = n > 0 ? std::max(static_cast<double>(s.time) - user[last_end], 0.0) : 0.0;
    const auto angle = [&](i64 period) {
      const auto since = static_cast<double>(s.time % period);
      return 2.0 * std::numbers::pi * (since / static_cast<double>(period));
    };
    const double day = angle(86'400), week = angle(604'800);
    x[16] = elementary::cos(day), x[17] = elementary::sin(day);
    x[18] = elementary::cos(week), x[19] = elementary::sin(week);
  }

 private:
  // columns of a user's memory: sums over ended jobs, except the last end
  enum : std::size_t { number, total_run, total_processors, last_end, total_ratio, last };
  static constexpr double decay = 0.95;  // factor of older jobs for each new one of the class
  static constexpr double prior = 1;     // weight of the wider class, in jobs

  struct Typical {  // ratio of a class, and of how many ended jobs
    double n_ended = -1, ratio = 0;
  };
  const Model* model_;
  std::size_t columns_ = 0;
  std::vector<Typical> typical_;  // by class, as far as asked for

  double* row_of(i64 j) { return &memory[index(model_->users[j]) * columns_]; }
  double* ratios_of_user(i64 j) { return &ratios[2 * index(1 + model_->users[j])]; }
  double* ratios_of_class(i64 j) {
    return &ratios[2 * index(1 + model_->n_users + model_->learning->classes[j])];
  }
  // The geometric mean of run time / requested time. While a user has few ended jobs, that of all
  // jobs counts for it, and that of the user for the class; the last two are averaged.
  double typical_ratio(i64 j) {
    if (typical_.empty()) typical_.resize(ratios.size() / 2);
    Typical& typical = typical_[index(model_->learning->classes[j])];
    if (typical.n_ended == ratios[0]) return typical.ratio;
    const double user = shrunk(ratios_of_user(j), ratios[1] / std::max(ratios[0], 1.0));
    typical = {ratios[0], elementary::exp((user + shrunk(ratios_of_class(j), user)) / 2.0)};
    return typical.ratio;
  }
  // The mean logarithm of a class, with `wider` as the prior.
  static double shrunk(const double* row, double wider) {
    return (row[1] + prior * wider) / (row[0] + prior);
  }
};

}  // namespace hpc
