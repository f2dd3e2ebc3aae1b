// The plan of a machine of nodes that each pass makes anew, with individual nodes.
//
// Like the plan that keeps reservations, it is a list of times at which jobs take nodes and give
// them back; the pseudo-jobs of windows are among these jobs. With looks, as in Slurm, reservations
// are in a table instead.
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

  // Slurm's table; none if each event has a pass that plans.
  const std::optional<NodeTable>& table() const { return table_; }

  void begin(const Nodes& m, i64 now, i64 free, const OrderedList& running) {
    if (table_) return table_->begin(m, now, running);
    NodePlan::begin(m, now, free, running);
  }
  // Take the nodes of the windows.
  void close(const Nodes& m, const Windows& windows, i64) {
    if (!table_) return NodePlan::close(m, windows);
    windows.each_left([&](const Window& window) {
      const i64 holder = close_for(m, window);
      table_->close(m, window, holder, cells_[index(holder)]);
    });
  }
  // Close the nodes of a partition to jobs from now on, while jobs start in order as in Slurm;
  // return whether any node is left open.
  bool shut_partition(const Nodes& m, i64 partition) {
    return table_->shut_partition(m, partition);
  }
  // Give back all resources of a suspended job at its expected end.
  void gives_back(const Nodes& m, i64 j, i64, i64 end) {
    if (table_) return table_->note(end, j);
    const auto has = m.cells(j);
    cells_[index(j)].assign(has.begin(), has.end());
    may_be_overdrawn_ = true;
    foresee(end, j, 1);
  }
  // Reserve the earliest time for a job, with `beside` more cores free on any nodes; return it.
  // Nothing is reserved if it is later than `last`; beyond `latest` any later time is valid.
  i64 reserve(Nodes& m, i64 j, i64 length, i64 last, i64 latest, i64 beside) {
    if (table_) return table_->reserve(m, j, length, last, latest);
    beside_[index(j)] = beside;
    const i64 time = earliest(m, j, length, forever);
    if (time <= last) commit(m, j, length, time);
    return time;
  }
  // Plan a job from now on, if it fits now; return whether it does. `others`: allocations also see
  // what is free on nodes that the job cannot use.
  bool place_now(Nodes& m, i64 j, i64 length, i64 free, bool others) {
    if (m.width(j) > free) return false;
    if (table_) return table_->starts_now(m, j, length, others);
    beside_[index(j)] = 0;
    if (earliest(m, j, length, now_ + 1) > now_) return false;
    commit(m, j, length, now_);
    return true;
  }
  // A job starts, as planned.
  void begun(Nodes& m, i64 j, i64 length) {
    if (!table_) return NodePlan::begun(m, j, length);
    const auto chosen = m.chosen();
    cells_[index(j)].assign(chosen.begin(), chosen.end());
    table_->begun(j, length, cells_[index(j)]);
    m.choose(j, cells_[index(j)]);
  }
  // Until when so many cores are free on nodes that the table leaves open [s], from now on; `note_free`
  // comes before. Without a table it is unknown.
  void note_free(const Nodes& m) {
    if (table_) table_->note_free(m);
  }
  i64 free_until(i64 width) const { return table_ ? table_->free_until(width) : forever; }
  // Whether no further reservation matters by itself: a random allocation draws for each of them.
  bool is_settled(const Nodes& m) const {
    return !table_ || (m.layout().allocation != Allocation::random && table_->knows_idle(m));
  }

 private:
  std::optional<NodeTable> table_;
};

}  // namespace hpc
