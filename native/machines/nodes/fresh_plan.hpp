// The plan of a machine of nodes that is made anew at each pass: of nodes by name.
//
// As the plan that keeps reservations, it is a list of times at which jobs will take their nodes
// and give them back; those who hold nodes in windows are among these jobs. Where passes are looks,
// as Slurm's, reservations are in a table in its place.
#pragma once
#include <optional>

#include "plan.hpp"
#include "table.hpp"

namespace hpc {

class FreshNodePlan : private NodePlan {
 public:
  explicit FreshNodePlan(const Model& m) : NodePlan(m) {
    if (m.rules.every > 0) table_.emplace(m);
  }

  using NodePlan::forget_past;
  void keep(Archive& a) {
    NodePlan::keep(a);
    a(table_);
  }

  // Slurm's; there is none where each pass plans.
  const std::optional<NodeTable>& table() const { return table_; }

  void begin(const Nodes& m, i64 now, i64 free, const OrderedList& running) {
    if (table_) return table_->begin(m, now, running);
    NodePlan::begin(m, now, free, running);
  }
  // Take the nodes of a window.
  void close(const Nodes& m, const Window& window) {
    if (table_) return table_->close(window, cells_[index(close_for(m, window))]);
    NodePlan::close(m, window);
  }
  // From now on no job may have a node of a partition, while jobs start in order, as Slurm starts
  // them; return whether any node is left open.
  bool shut_partition(const Nodes& m, i64 partition) {
    return table_->shut_partition(m, partition);
  }
  // Give back all that a suspended job has, at its expected end.
  void gives_back(const Nodes& m, i64 j, i64, i64 end) {
    if (table_) return table_->note(end, j);
    const auto has = m.cells(j);
    cells_[index(j)].assign(has.begin(), has.end());
    may_be_overdrawn_ = true;
    foresee(end, j, 1);
  }
  // Give a job a place at the earliest time, and keep so many cores of any nodes free `beside` it;
  // return that. None if it is later than `last`; beyond `latest` any later time will do.
  i64 reserve(Nodes& m, i64 j, i64 length, i64 last, i64 latest, i64 beside) {
    if (table_) return table_->reserve(m, j, length, last, latest);
    beside_[index(j)] = beside;
    const i64 time = earliest(m, j, length, forever);
    if (time <= last) commit(m, j, length, time);
    return time;
  }
  // Give it one that begins now, if there is one; return whether there is. `others`: allocations
  // see what is free on nodes that are not for it, too.
  bool place_now(Nodes& m, i64 j, i64 length, i64 free, bool others) {
    if (m.width(j) > free) return false;
    if (table_) return table_->starts_now(m, j, length, others);
    beside_[index(j)] = 0;
    if (earliest(m, j, length, now_ + 1) > now_) return false;
    commit(m, j, length, now_);
    return true;
  }
  // A job begins at the place that it has now.
  void begun(Nodes& m, i64 j, i64 length) {
    if (!table_) return NodePlan::begun(m, j, length);
    const auto chosen = m.chosen();
    cells_[index(j)].assign(chosen.begin(), chosen.end());
    table_->begun(j, length, cells_[index(j)]);
    m.choose(j, cells_[index(j)]);
  }
  // Up to when so many units are free [s]: which nodes have them is looked up for each job.
  i64 free_until(i64) const { return forever; }

 private:
  std::optional<NodeTable> table_;
};

}  // namespace hpc
