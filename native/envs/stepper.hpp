// Many environments, stepped in one call on several threads.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <memory>

#include "../base/threads.hpp"
#include "../machines/corun.hpp"
#include "../machines/nodes.hpp"
#include "../machines/nodes/fresh_plan.hpp"
#include "../machines/nodes/plan.hpp"
#include "../machines/pool.hpp"
#include "environment.hpp"

namespace hpc {

// Whether several threads are worth waking, by measured times of steps with one and with several.
// The slower way is tried again after a while: the slower it was, the later. A processor may be
// away for longer than a step, so a trial has several steps.
class Worth {
  static constexpr i64 tried = 8;    // steps of a trial
  std::array<double, 2> seconds_{};  // of a step with one thread, with several; 0: unknown
  bool several_ = false;             // the faster way so far
  i64 left_ = tried;                 // steps until the next trial; below 0: within a trial

 public:
  bool tries_several() {
    if (left_ == 0) seconds_[!several_] = 0;
    if (--left_ < 0 && left_ >= -tried) return !several_;
    if (seconds_[1] != 0) several_ = seconds_[1] < seconds_[0];
    if (left_ < -tried) {
      const double times = seconds_[!several_] / seconds_[several_];
      left_ = static_cast<i64>(100 * std::min(times * times, 1000.0));
    }
    return several_;
  }
  void note(bool several, std::chrono::duration<double> took) {
    double& own = seconds_[several];
    own = own == 0 ? took.count() : own + (took.count() - own) / tried;
  }
};

// Each log has a table. Environment e uses table e modulo their number, until it is given another.
class Stepper {
 public:
  using Log = std::shared_ptr<const Table>;

  Stepper(std::vector<Log> logs, std::vector<Row> rows)
      : logs_(std::move(logs)), rows_(std::move(rows)), next_(rows_.size()) {
    for (const Row& row : rows_) environments_.push_back(made(logs_[environments_.size() % logs_.size()], row));
  }
  const std::vector<Log>& logs() const { return logs_; }  // those that it began with
  i64 room() const { return rows_.empty() ? 0 : rows_.front().size_of_window; }
  i64 listed() const { return rows_.empty() ? 0 : rows_.front().size_of_list; }
  i64 size() const { return static_cast<i64>(environments_.size()); }
  // Let an environment play another log from its next episode on, or at once: it then has no episode.
  void take(i64 e, Log log, bool at_once) {
    (at_once ? environments_ : next_).at(index(e)) = made(std::move(log), rows_.at(index(e)));
  }
  // The environment that is to begin the next episode.
  AnyEnvironment& coming(i64 e) const { return next_.at(index(e)) ? *next_[index(e)] : of(e); }
  std::size_t bytes() const {
    std::size_t total = 0;
    for (const auto& each : environments_) total += each->bytes();
    return total;
  }
  AnyEnvironment& of(i64 e) const { return *environments_.at(index(e)); }
  // For environments in [first, stop). Threads do not affect results. If one fails or is interrupted,
  // all lose their episodes: some have done this step, and some have not.
  void go_on(Todo task, i64 first, i64 stop, int threads, const std::vector<Places>& places) {
    for (i64 e = first; e < stop; ++e) (of(e).is_beginning(task) ? coming(e) : of(e)).check(task);
    try {
      go_on_checked(task, first, stop, threads, places);
    } catch (...) {
      for (i64 e = first; e < stop; ++e) of(e).lose_episode();
      throw;
    }
  }

 private:
  void go_on_checked(Todo task, i64 first, i64 stop, int threads, const std::vector<Places>& places) {
    const auto step = [&](i64 e) {
      auto& next = next_[index(e)];
      if (next && of(e).is_beginning(task)) environments_[index(e)] = std::move(next);
      of(e).go_on(task, places[index(e)]);
    };
    const auto begin = std::chrono::steady_clock::now();
    const bool several = threads > 1 && worth_.tries_several();
    if (!several) {
      Interrupts interrupts(before_loss);
      for (i64 e = first; e < stop; ++e) {
        interrupts.count(work);
        step(e);
      }
    } else {
      if (n_threads_ != threads) threads_ = std::make_unique<Threads>(n_threads_ = threads);
      constexpr i64 some = 4;
      std::atomic<i64> next = first;
      threads_->run([&] {
        Interrupts interrupts(before_loss);
        for (i64 e; (e = next.fetch_add(some)) < stop;) {
          interrupts.count(some * work);
          for (i64 k = e; k < std::min(stop, e + some); ++k) step(k);
        }
      });
    }
    if (threads > 1) worth_.note(several, std::chrono::steady_clock::now() - begin);
  }

  static constexpr i64 work = 8;  // of a step, for Interrupts

  static std::unique_ptr<AnyEnvironment> made(Log log, const Row& row) {
    const Model& model = *log->model;
    if (model.nodes) return std::make_unique<Environment<Nodes>>(std::move(log), row);
    if (model.limited) return std::make_unique<Environment<Limited>>(std::move(log), row);
    if (model.sharing) return std::make_unique<Environment<Corun>>(std::move(log), row);
    return std::make_unique<Environment<Pool>>(std::move(log), row);
  }

  std::vector<Log> logs_;
  std::vector<Row> rows_;
  std::vector<std::unique_ptr<AnyEnvironment>> environments_;
  std::vector<std::unique_ptr<AnyEnvironment>> next_;  // of another log, to begin the next episode
  std::unique_ptr<Threads> threads_;
  int n_threads_ = 0;
  Worth worth_;
};

}  // namespace hpc
