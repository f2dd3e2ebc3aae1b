// Which jobs are on which nodes, where jobs share nodes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "../../core/machine.hpp"
#include "../../core/model.hpp"
#include "../node_set.hpp"
#include "sharing.hpp"

namespace hpc {

// A set that knows its size.
class CountedNodes : NodeSet {
  i64 count_ = 0;

 public:
  using NodeSet::NodeSet, NodeSet::next;
  void keep(Archive& a) { a(words, count_); }
  i64 count() const { return count_; }
  // The node must not be in the set; for `remove` it must be.
  void add(i64 node) { NodeSet::add(node), ++count_; }
  void remove(i64 node) { NodeSet::remove(node), --count_; }
};

struct Task {  // of a job that runs or has run
  double left = 0;  // [ticks] of work at `since`
  double rate = 0;
  double beside = 0;      // its rate without congestion of files
  double least = 0;       // the rate behind `predicted_end`
  i64 since = 0, end = 0;
  i64 predicted_end = 0;  // departures of others never make it later
  i64 more = 0;           // [ticks] of predicted work beyond the true work
  i64 neighbours = 0;     // summed over its nodes
  i64 limit = -1;         // the neighbour's code that limits its rate, -1: none
  i64 begun = 0;          // since when that code limits it
  i64 stamp = 0;          // of the last set of jobs that includes it
  i64 first = 0;          // of its cells
};

class SharedPlaces : public AnyMachine {
 public:
  static constexpr i64 nobody = -1;  // in place of a job

  explicit SharedPlaces(const Model& model)
      : model_(&model),
        told_(model.sharing.get()),
        tasks_(index(model.n_jobs)),
        who_(index(told_->n_nodes * told_->parts), nobody),
        present_(index(told_->n_nodes)),
        free_(index(told_->n_nodes), told_->parts),
        idle_(told_->n_nodes),
        open_(told_->n_nodes) {
    i64 n_cells = 0;
    for (i64 j = 0; j < model.n_jobs; ++j) {
      tasks_[index(j)].first = n_cells;
      n_cells += told_->nodes[j];
    }
    cells_.resize(index(n_cells));
    for (i64 node = 0; node < told_->n_nodes; ++node) idle_.add(node);
  }

  void keep(Archive& a) {
    a(tasks_, cells_, who_, present_, free_, idle_, open_, version_);
    for (const std::int32_t node : cells_) a.check(is_between(node, 0, told_->n_nodes - 1));
    for (const i64 j : who_) a.check_job(j, nobody);
    for (const i64 n : present_) a.check(is_between(n, 0, told_->parts));
    i64 first = 0;  // of the cells of a job, as the model says
    for (i64 j = 0; j < model_->n_jobs; first += told_->nodes[j++]) {
      a.check(task(j).first == first && is_between(task(j).limit, -1, told_->n_codes - 1));
    }
  }
  i64 n_jobs() const { return model_->n_jobs; }
  const Sharing& told() const { return *told_; }
  const Task& task(i64 j) const { return tasks_[index(j)]; }
  // The nodes that a job has, or had; before it starts, those last tested for it.
  std::span<const std::int32_t> cells(i64 j) const {
    return {&cells_[index(task(j).first)], index(told_->nodes[j])};
  }
  // The jobs on a node, in order of arrival.
  std::span<const i64> on(i64 node) const {
    return {&who_[index(node * told_->parts)], index(present_[index(node)])};
  }
  const std::vector<i64>& free() const { return free_; }  // (N,) parts

 protected:
  const Model* model_;
  const Sharing* told_;
  std::vector<Task> tasks_;           // by job
  std::vector<std::int32_t> cells_;   // nodes of all jobs, one job after the other
  std::vector<i64> who_;              // (N, K) jobs on a node; `nobody` behind them
  std::vector<i64> present_, free_;   // (N,) jobs, parts
  CountedNodes idle_, open_;          // nodes without a job; nodes with one and a free part
  i64 version_ = 1;                   // increases when parts are taken or given back

  Task& task(i64 j) { return tasks_[index(j)]; }
  i64 code(i64 j) const { return told_->code[j]; }
  std::size_t pair(i64 code, i64 beside) const { return index(code * told_->n_codes + beside); }

  // Give a job the nodes of its cells.
  void take(i64 j) {
    Task& mine = task(j);
    mine.neighbours = 0;
    for (const i64 node : cells(j)) {
      const std::span<const i64> others = on(node);
      for (const i64 other : others) ++task(other).neighbours;
      mine.neighbours += static_cast<i64>(others.size());
      who_[index(node * told_->parts) + others.size()] = j;
      ++present_[index(node)];
      free_[index(node)] -= told_->parts_of(j);
      const bool has_room = free_[index(node)] > 0;
      if (others.empty()) {
        idle_.remove(node);
        if (has_room) open_.add(node);
      } else if (!has_room) {
        open_.remove(node);
      }
    }
    ++version_;
  }
  // Free the nodes of a job that has ended; they remain on record.
  void give_back(i64 j) {
    for (const i64 node : cells(j)) {
      const std::span<const i64> present = on(node);
      i64* place = &who_[index(node * told_->parts)];
      i64* const end = place + present.size();
      for (const i64 other : present)
        if (other != j) --task(other).neighbours;
      *std::remove(place, end, j) = nobody;
      --present_[index(node)];
      const bool was_full = free_[index(node)] == 0;
      free_[index(node)] += told_->parts_of(j);
      if (present_[index(node)] == 0) {
        idle_.add(node);
        if (!was_full) open_.remove(node);
      } else if (was_full) {
        open_.add(node);
      }
    }
    ++version_;
  }
};

}  // namespace hpc
