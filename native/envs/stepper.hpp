// Many environments, stepped in one call on several threads.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>

#include "../base/threads.hpp"
#include "environment.hpp"

namespace hpc {

struct Places {  // of one environment: what is done next, and where to tell of it
  const i64* chosen;
  const double* numbers;
  Outputs out;
};

// Whether several threads are worth their waking, by how long steps have taken with and without them.
// What has been slower is tried again after a while: the slower, the later. A processor may be away
// for longer than a step takes, so a try is of some steps.
class Worth {
  static constexpr i64 tried = 8;    // steps of a try
  std::array<double, 2> seconds_{};  // of a step with one thread, with several; 0: not known
  bool several_ = false;             // what is faster, as far as is known
  i64 left_ = tried;                 // steps up to the next try; from 0 down those of it

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

// Environments whatever their machine: one virtual call for a step of all, none within.
class AnyStepper {
 public:
  AnyStepper(Table table, const std::vector<Row>& rows)
      : room_(rows.empty() ? 0 : rows.front().size_of_window),
        listed_(rows.empty() ? 0 : rows.front().size_of_list),
        table_(std::move(table)) {}
  virtual ~AnyStepper() = default;
  const Table& table() const { return table_; }
  i64 room() const { return room_; }
  i64 listed() const { return listed_; }
  virtual i64 size() const = 0;
  virtual std::size_t bytes() const = 0;
  // Of those from `first` to `stop`, exclusive. Which thread steps one makes no difference.
  virtual void go_on(Todo task, i64 first, i64 stop, int threads,
                     const std::vector<Places>& places) = 0;
  virtual void limit(i64 e, const Limits& limits) = 0;  // of its next episode
  virtual const Episode& episode(i64 e) const = 0;
  virtual void begin_with(i64 e, std::shared_ptr<const OwnAccounts> accounts) = 0;
  // One of its episode before the first event; that of an episode which has begun, as it goes on;
  // put a copy of another in its place.
  virtual std::shared_ptr<AnySimulation> anew(i64 e, std::shared_ptr<const OwnAccounts> accounts) const = 0;
  virtual std::shared_ptr<AnySimulation> simulation(i64 e) const = 0;
  virtual void put(i64 e, const AnySimulation& simulation) = 0;
  // Let a row of its own tell of an episode that goes on with the future hidden: see Environment.
  virtual void hide(const Row& row, const AnySimulation& hidden) const = 0;

 private:
  i64 room_, listed_;

 protected:
  Table table_;
};

template <Machine M>
class Stepper final : public AnyStepper {
 public:
  Stepper(Table table, const std::vector<Row>& rows) : AnyStepper(std::move(table), rows) {
    for (const Row& row : rows) environments_.emplace_back(table_, row);
  }
  i64 size() const override { return static_cast<i64>(environments_.size()); }
  std::size_t bytes() const override {
    std::size_t total = 0;
    for (const auto& each : environments_) total += each.bytes();
    return total;
  }
  void limit(i64 e, const Limits& limits) override { environments_[index(e)].limit(limits); }
  const Episode& episode(i64 e) const override { return environments_[index(e)].episode(); }
  void begin_with(i64 e, std::shared_ptr<const OwnAccounts> accounts) override {
    environments_[index(e)].begin_with(std::move(accounts));
  }
  std::shared_ptr<AnySimulation> anew(i64 e, std::shared_ptr<const OwnAccounts> accounts) const override {
    return environments_[index(e)].anew(std::move(accounts));
  }
  std::shared_ptr<AnySimulation> simulation(i64 e) const override {
    return environments_[index(e)].simulation();
  }
  void put(i64 e, const AnySimulation& simulation) override {
    environments_[index(e)].put(simulation);
  }
  void hide(const Row& row, const AnySimulation& hidden) const override {
    Environment<M>(table_, row).hide(hidden);
  }

  void go_on(Todo task, i64 first, i64 stop, int threads,
             const std::vector<Places>& places) override {
    for (i64 e = first; e < stop; ++e) environments_[index(e)].check(task);
    const auto step = [&](i64 e) {
      const Places& s = places[index(e)];
      environments_[index(e)].go_on(task, *s.chosen, s.numbers, s.out);
    };
    const auto begin = std::chrono::steady_clock::now();
    const bool several = threads > 1 && worth_.tries_several();
    if (!several) {
      for (i64 e = first; e < stop; ++e) step(e);
    } else {
      if (n_threads_ != threads) threads_ = std::make_unique<Threads>(n_threads_ = threads);
      constexpr i64 some = 4;
      std::atomic<i64> next = first;
      threads_->run([&] {
        for (i64 e; (e = next.fetch_add(some)) < stop;)
          for (i64 k = e; k < std::min(stop, e + some); ++k) step(k);
      });
    }
    if (threads > 1) worth_.note(several, std::chrono::steady_clock::now() - begin);
  }

 private:
  std::deque<Environment<M>> environments_;
  std::unique_ptr<Threads> threads_;
  int n_threads_ = 0;
  Worth worth_;
};

}  // namespace hpc
