// The plan of a machine of nodes that is made anew at each pass: of nodes by name.
//
// As the plan that keeps reservations, it is a list of times at which jobs will take their nodes
// and give them back; those who hold nodes in windows are among these jobs.
#pragma once
#include "plan.hpp"

namespace hpc {

class FreshNodePlan : private NodePlan {
 public:
  explicit FreshNodePlan(const Model& m) : NodePlan(m) {}

  using NodePlan::begin;
  using NodePlan::begun;
  using NodePlan::forget_past;

  // Take the nodes of a window.
  void close(const Nodes& m, const Window& window) {
    const i64 holder = m.layout().n_rows + window.taken;
    std::vector<Cell>& held = cells_[index(holder)];
    held.clear();
    for (const i64 node : window.nodes) held.push_back({static_cast<std::int32_t>(node), 1});
    may_be_overdrawn_ = true;
    foresee(std::max(window.begin, now_), holder, -1);
    foresee(window.end, holder, 1);
  }
  // Give a job a place at the earliest time; return that. None if it is later than `last`.
  i64 reserve(Nodes& m, i64 j, i64 length, i64 last) {
    const i64 time = earliest(m, j, length, forever);
    if (time <= last) commit(m, j, length, time);
    return time;
  }
  // Give it one that begins now, if there is one; return whether there is.
  bool place_now(Nodes& m, i64 j, i64 length, i64 free) {
    if (m.width(j) > free || earliest(m, j, length, now_ + 1) > now_) return false;
    commit(m, j, length, now_);
    return true;
  }
  // Up to when so many units are free [s]: which nodes have them is looked up for each job.
  i64 free_until(i64) const { return forever; }
};

}  // namespace hpc
