// Futures of one state: when jobs start, by other run times and other jobs to come. Many in one call,
// on several threads; each begins with the state, and ends once the jobs in question have started.
#pragma once
#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "../base/threads.hpp"
#include "part_of_model.hpp"
#include "simulation.hpp"

namespace hpc {

// The model has blocks of jobs, each in the order of submission: first those of the state and others
// that all blocks have, whose run times each future has of its own; behind them those to come, with
// the run times of the model. Several futures may have one block.
struct Futures {
  std::shared_ptr<const Model> model;
  Beginning beginning;
  std::span<const i64> targets;        // rows of a block
  std::span<const i64> first, number;  // by future: where its block begins, and its jobs
  std::span<const i64> run_times;      // [s] by future, of the first jobs of its block
  i64 n_own;                           // how many these are

  i64 size() const { return static_cast<i64>(first.size()); }
  // Why these are no blocks and run times of the model; nullptr if they are.
  const char* refusal() const {
    const Rules& r = model->rules;
    const bool expires = r.plans() && r.correction == Correction::none && model->predicted && !model->learning;
    if (!model->several) return "futures: of a model of several blocks";
    if (n_own < beginning.number) return "run_times: of all jobs of the state";
    for (i64 m = 0; m < size(); ++m) {
      const i64 row = first[index(m)], n = number[index(m)];
      if (n < n_own || row < 0 || n > model->n_jobs - row) return "number: of jobs that are there";
      const Job* jobs = model->jobs + row;
      const auto comes_before = [](const Job& a, const Job& b) { return a.submit < b.submit; };
      if (!std::is_sorted(jobs, jobs + n, comes_before) ||
          (n > beginning.number && jobs[beginning.number].submit < beginning.time))
        return "first: blocks must be in the order of submission";
      if (std::ranges::any_of(targets, [n](i64 j) { return !is_between(j, 0, n - 1); }))
        return "targets: rows of each block";
      for (i64 j = 0; j < n_own; ++j) {
        const i64 run = run_times[index(m * n_own + j)];
        if (!is_between(run, 1, jobs[j].requested)) return "run_times: from 1 s to the requested time";
        if (expires && model->predicted[row + j] < run) return unexpected;
      }
    }
    return nullptr;
  }
  // Write the starts [s] of the targets in each future, (size(), n_targets); -1: it never starts.
  void simulate(int threads, i64* starts) const {
    Threads workers(threads);
    std::atomic<i64> next = 0;
    workers.run([&] {
      Interrupts interrupts;
      OneFuture one(*this);
      for (i64 m; (m = next++) < size();) {
        interrupts.read_clock();
        one.simulate(m, starts + m * static_cast<i64>(targets.size()));
      }
    });
  }

 private:
  // What a thread has for one future after the other.
  class OneFuture {
    const Futures& of_;
    std::shared_ptr<PartOfModel> block_;
    i64 first_ = -1, number_ = -1;
    std::vector<Job> jobs_;

   public:
    explicit OneFuture(const Futures& of) : of_(of) {}
    void simulate(i64 m, i64* starts) {
      const i64 first = of_.first[index(m)], number = of_.number[index(m)];
      if (first != first_ || number != number_) {
        block_ = std::make_shared<PartOfModel>(of_.model, first_ = first, number_ = number);
        jobs_.assign(block_->model.jobs, block_->model.jobs + number);
        block_->model.jobs = jobs_.data();
      }
      for (i64 j = 0; j < of_.n_own; ++j)
        jobs_[index(j)].run = of_.run_times[index(m * of_.n_own + j)];
      const auto simulation = make_simulation(std::shared_ptr<Model>(block_, &block_->model));
      if (simulation->begin(of_.beginning) >= 0)
        throw std::invalid_argument("futures: a job that runs has ended by these rules, or finds no room on the nodes");
      simulation->run_until_started(of_.targets, starts);
      if (simulation->asked() != Asked::nothing)
        throw std::invalid_argument("futures: something is asked for that nobody answers there");
    }
  };
};

}  // namespace hpc
