// Nodes that fail and are repaired; the jobs on them wait again, and run from the beginning.
//
// A failed node has an entry among the running jobs, which holds all of the node until the repair.
// So fits and shadow times are computed as always. Such an entry has the number `n_jobs + node`,
// and never ends.
//
// Repairs come before all other events of their time, so that no prediction expires with them.
// Failures come after all others, before the pass: questions asked for it include the jobs that
// wait again.
#pragma once
#include <algorithm>
#include <map>
#include <utility>

#include "../base/ordered.hpp"
#include "beginning.hpp"
#include "model.hpp"

namespace hpc {

class Outages {
  const Model* model_;
  i64 next_ = 0;  // the next event
  i64 down_ = 0;  // nodes
  bool repaired_ = false;  // a node has been repaired at this time, and the pass is to come

  const Outage& event() const { return model_->outages[next_]; }
  i64 holder(i64 node) const { return model_->n_jobs + node; }

  // Mark a node as down until a time [s].
  template <class S>
  void hold(S& s, i64 node, i64 until) {
    const i64 width = s.machine.hold_node(node);
    s.free -= width;
    s.running.insert({until, forever, width, holder(node)});
    ++down_;
  }
  template <class S>
  Entry let_go(S& s, i64 node, i64 until) {
    const Entry up = s.running.take_off(s.running.find(until, holder(node)));
    s.give_back(up.job, up.width);
    --down_;
    return up;
  }
  // The place of the first running job with units on a node.
  template <class S>
  Place first_on(const S& s, i64 node) const {
    for (int k = 0; k < s.running.size_in_blocks(); ++k) {
      const Block& block = s.running.at(k);
      for (int i = 0; i < block.count; ++i) {
        const i64 j = block.entries[index(i)].job;
        if (j < model_->n_jobs && s.machine.is_on(j, node)) return {k, i};
      }
    }
    return {-1, -1};
  }

 public:
  explicit Outages(const Model& model) : model_(&model) {}

  void keep(Archive& a) {
    a(next_, down_, repaired_);
    a.check(is_between(next_, 0, model_->n_outages));
  }
  bool is_left() const { return next_ < model_->n_outages; }
  i64 down() const { return down_; }
  // [s]
  i64 next_repair() const { return is_left() && event().is_repair() ? event().time : forever; }
  // [s] when a pass is due for failures, or for a repair at this time.
  i64 next_due(i64 now) const {
    if (repaired_) return now;
    return is_left() && !event().is_repair() ? event().time : forever;
  }

  // Begin with running jobs, whose nodes have been up since their starts. Nodes that failed before
  // and are not repaired are down. `place(k)` starts the k-th job; return the first job for which
  // it returns false, -1 if there is none.
  template <class S, class F>
  i64 begin(S& s, const Beginning& b, F place) {
    const i64 over = b.due ? b.time : b.time - 1;  // [s] repairs up to then are done
    std::map<i64, i64> until;  // [s] by node, its last repair
    for (; is_left() && event().time < b.time + event().is_repair() * b.due; ++next_)
      if (!event().is_repair()) until[event().node] = event().until;
    std::vector<std::pair<i64, i64>> held;  // repair times and nodes, sorted
    for (const auto& [node, time] : until) held.push_back({time, node}), hold(s, node, time);
    std::sort(held.begin(), held.end());
    auto next = held.begin();
    const auto repair_to = [&](i64 time) {
      for (; next != held.end() && next->first <= time; ++next) let_go(s, next->second, next->first);
    };
    for (std::size_t k = 0; k < b.running.size(); ++k) {
      repair_to(b.start[k]);
      if (!place(k)) return b.running[k];
    }
    repair_to(over);
    return -1;
  }
  // Repair the nodes that are due now.
  template <class S>
  void repair(S& s) {
    for (; next_repair() == s.time; ++next_) {
      const Entry up = let_go(s, event().node, s.time);
      if (s.notes_ends) s.ended.push_back(up);
    }
    s.changed = repaired_ = true;
  }
  // A pass begins: the nodes whose failures are due now fail.
  template <class S>
  void fail(S& s) {
    repaired_ = false;
    for (; is_left() && event().time == s.time; ++next_) {
      const auto [time, node, until] = event();
      for (Place at = first_on(s, node); at.block >= 0; at = first_on(s, node)) s.stop(at);
      hold(s, node, until);
      s.changed = s.expired = true;  // reservations no longer hold
    }
  }
};

}  // namespace hpc
