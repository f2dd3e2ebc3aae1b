// A machine of nodes with several resources: fits, placement and release.
//
// The head's reservation is no set of nodes, but ensures that its units find room at the shadow
// time: a job that runs past that time takes from each node only what the head can spare.
#pragma once
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "../core/machine.hpp"
#include "../core/model.hpp"
#include "node_set.hpp"
#include "nodes/free_nodes.hpp"

namespace hpc {

class NodePlan;       // nodes/plan.hpp
class FreshNodePlan;  // nodes/fresh_plan.hpp

class Nodes : public AnyMachine, public FreeNodes {
 public:
  static constexpr bool alike = false;
  using KeptPlan = NodePlan;
  using FreshPlan = FreshNodePlan;

  Nodes(const Model& model, i64)
      : FreeNodes(*model.nodes, model.nodes->all()),
        model_(&model),
        later_(free_),
        held_(index(layout_->n_rows)),
        beside_(index(layout_->n_kinds)) {}

  i64 width(i64 j) const { return model_->jobs[j].processors; }
  bool fits(i64 j, i64 needed, i64 room) {
    // `room` still has the cores of suspended jobs, which are hidden node by node
    const bool decides = layout_->is_single(j) && model_->stops.n_groups() == 0;
    return needed <= room && (decides || has_room(j));
  }
  // The same, and nodes are chosen for it, ignoring earlier tests.
  bool finds_place(i64 j, i64 room) {
    if (width(j) > room || !place_at(free_, j)) return false;
    chosen_for_ = j;
    return true;
  }
  void waits(i64 j) { filling_.note_waiting(j, 1); }
  // Take the nodes chosen in `passes`, or else those that come first in the filling order.
  Span begin(i64 j, i64 now, i64 predicted, i64 run) {
    if (chosen_for_ != j) place(free_, j);
    chosen_for_ = -1;
    held_[index(j)] = {static_cast<i64>(cells_.size()), static_cast<i64>(chosen_.size())};
    cells_.insert(cells_.end(), chosen_.begin(), chosen_.end());
    move(cells(j), layout_->demand(j), -1);
    filling_.note_waiting(j, -1);
    return {now, now + predicted, now + run};
  }
  // Its cells remain on record.
  void give(i64, i64 j, i64) { move(cells(j), layout_->demand(j), 1); }
  // With preemption, a suspended job gives up its cores only. Free cores of a node may be negative
  // then, and cores are not alike.
  void give_all(i64 j, i64 sign) { move(cells(j), layout_->demand(j), sign); }
  void lend(i64 j, i64 sign) {
    ++version_;
    const i64 cores = sign * layout_->demand(j)[0];
    for (const Cell& c : cells(j)) {
      *room(free_, c.node) += c.units * cores;
      n_free_ += c.units * cores;
      note_open(c.node);
    }
    filling_.note_changed(free_.data(), cells(j));
  }
  using FreeNodes::has_room;
  bool has_room(i64 j, i64 room) { return width(j) <= room && has_room(j); }
  bool goes_on(i64 j, i64) const {
    const auto fits = [&](const Cell& c) {
      return *room(free_, c.node) >= c.units * layout_->demand(j)[0];
    };
    return std::ranges::all_of(cells(j), fits);
  }
  bool meets(i64 j, i64 other) const {
    return std::ranges::any_of(cells(other), [&](const Cell& c) { return is_on(j, c.node); });
  }

  void find_shadow(i64 j, i64 missing, const OrderedList& running, Shadow& shadow) {
    guarded_ = j;
    ++shadows_;
    leaving_.clear();
    is_later_made_ = !layout_->is_single(j);
    if (!is_later_made_) return find_shadow_of_single(j, missing, running, shadow);
    const i64 units = layout_->units(j), *demand = layout_->demand(j);
    later_ = free_;
    i64 found = missing > 0 ? -1 : count(later_, demand);  // -1: not counted, as cores are missing
    i64 at = -1;
    for (int k = 0; k < running.size_in_blocks(); ++k)
      for (const Entry& e : running.at(k)) {
        // all resources released at the shadow time count
        if (found >= units && e.key > at) {
          k = running.size_in_blocks();
          break;
        }
        at = e.key;
        missing -= e.width;
        if (found < 0) {
          change(later_, cells(e.job), layout_->demand(e.job), 1);
          if (missing <= 0) found = count(later_, demand);
          continue;
        }
        for (const Cell& c : cells(e.job)) {
          i64* there = room(later_, c.node);
          found -= layout_->held(there, demand);
          add(there, layout_->demand(e.job), c.units);
          found += layout_->held(there, demand);
        }
      }
    shadow.time = at;
    shadow.extra = -missing;
    slack_ = found - units;
  }
  // The units of a job that runs past the shadow time are known node by node; the extra units limit
  // them only if the head holds units back, or no job may run past that time.
  Bounds bounds(i64 now, i64 room, const Shadow& shadow) const {
    const bool counts = model_->rules.strict || model_->rules.holds;
    return {room, counts ? shadow.extra : nothing, shadow.time - now};
  }
  // If the job runs past the shadow time, the head must still fit into `later_`.
  bool passes(i64 j, bool lasts, Shadow&) {
    if ((!layout_->is_single(j) && !has_room(j)) || !find_nodes(j, lasts)) return false;
    chosen_for_ = j;
    if (lasts) change(later_, chosen_, layout_->demand(j), -1);
    else if (!is_later_made_) leaving_.push_back(j);
    return true;
  }
  bool looks_at_who_waits() const { return filling_.goes_by_demand(); }

  // A failed node: its pseudo-job, behind the jobs, holds all of it; return its cores.
  i64 hold_node(i64 node) {
    const i64 holder = model_->n_jobs + node;
    chosen_ = {{static_cast<std::int32_t>(node), 1}};
    chosen_for_ = holder;
    begin(holder, 0, 0, 0);
    return layout_->demand(holder)[0];
  }
  bool is_on(i64 j, i64 node) const {
    for (const Cell& c : cells(j))
      if (c.node == node) return true;
    return false;
  }
  // Record the run of a job that has been given back.
  void note_lost(i64 j) { lost_.push_back(held_[index(j)]); }
  std::span<const Cell> lost_cells(i64 run) const { return cells(lost_[index(run)]); }

  // Choose nodes with free resources `all` for a job, ignoring earlier tests; return whether all
  // its units fit.
  bool place_at(const std::vector<i64>& all, i64 j) {
    filling_.note_all_changed(all.data());
    return place(all, j);
  }
  // Choose some of these nodes for a job whose units fit there. `room_of(node)`: what is free on
  // each; on all others nothing is.
  template <class Room>
  void place_on(const NodeSet& nodes, Room room_of, i64 j) {
    if (layout_->allocation == Allocation::first_fit) {  // which needs no order of the others
      const auto each = [&](auto f) {
        nodes.any([&](i64 node) { return *room_of(node) > 0 && f(node, room_of(node)); });
      };
      fill(j, each, all_units);
      return;
    }
    on_some_.assign(free_.size(), 0);
    nodes.each([&](i64 node) { std::copy_n(room_of(node), layout_->n_resources, room(on_some_, node)); });
    place_at(on_some_, j);
  }
  // Give a job these nodes if they have room; return whether they do. Random orders are drawn even
  // for jobs with given nodes: otherwise later passes would see the same order.
  bool takes_place(i64 j, std::vector<Cell> cells) {
    if (!std::ranges::all_of(cells, [&](const Cell& c) { return holds(j, c); })) return false;
    if (layout_->allocation == Allocation::random) filling_.shuffle();
    choose(j, cells);
    return true;
  }
  using FreeNodes::change;
  void draw_on(const std::vector<i64>& drawn) { filling_.draw_on(drawn); }
  std::span<const Cell> chosen() const { return chosen_; }
  // Set the nodes of a job that starts now.
  void choose(i64 j, const std::vector<Cell>& cells) { chosen_ = cells, chosen_for_ = j; }
  void choose(i64 j, std::span<const i64> node, std::span<const i64> units) {
    chosen_.clear();
    for (std::size_t c = 0; c < node.size(); ++c)
      chosen_.push_back({static_cast<std::int32_t>(node[c]), static_cast<std::int32_t>(units[c])});
    chosen_for_ = j;
  }
  bool resumes(i64 j, i64, i64 room, std::span<const i64> node, std::span<const i64> units) {
    if (node.empty()) return finds_place(j, room);
    choose(j, node, units);
    return std::ranges::all_of(chosen_, [&](const Cell& c) { return holds(j, c); });
  }

  // The nodes that a job has, or had.
  std::span<const Cell> cells(i64 j) const { return cells(held_[index(j)]); }
  // How many units of a job fit on a node.
  i64 held(const std::vector<i64>& all, i64 node, i64 j) const {
    return layout_->held(room(all, node), layout_->demand(j));
  }
  // How many units of a demand fit on all nodes.
  i64 count(const std::vector<i64>& all, const i64* demand) const {
    i64 found = 0;
    for (i64 node = 0; node < layout_->n_nodes; ++node)
      found += layout_->held(room(all, node), demand);
    return found;
  }
  void keep(Archive& a) {
    FreeNodes::keep(a);
    a(later_, is_later_made_, leaving_, cells_, held_, lost_, beside_, chosen_for_, shadows_, guarded_,
      slack_);
    check_cells(a, cells_);
    const auto n_cells = static_cast<i64>(cells_.size());
    for (const auto* runs : {&held_, &lost_})
      for (const Held& run : *runs)
        a.check(is_between(run.count, 0, n_cells) && is_between(run.first, 0, n_cells - run.count));
    for (const i64 j : leaving_) a.check_row(j);
    a.check_row(chosen_for_, -1), a.check_row(guarded_, -1);
  }
  std::size_t bytes() const {
    return (free_.size() + later_.size() + cells_.size()) * sizeof(i64) + held_.size() * sizeof(Held);
  }

 private:
  struct Held {  // where the cells of a job are stored
    i64 first = 0, count = 0;
  };
  struct Beside {  // how many units of a kind fitted beside the head, and at which version
    i64 version = -1, units = 0;
  };

  const Model* model_;
  // Free at the shadow time. If that time is found without it, it is built when needed: from what
  // is free, and the resources of the jobs that leave until then.
  std::vector<i64> later_;
  bool is_later_made_ = true;
  std::vector<i64> leaving_;
  std::vector<Cell> cells_;          // of all runs, in the order of their starts
  std::vector<Held> held_;           // by job, its last run
  std::vector<Held> lost_;           // of runs that ended early
  std::vector<Beside> beside_;       // by kind
  std::vector<i64> on_some_;         // (N, R) what is free on some nodes
  i64 chosen_for_ = -1;              // the job for which nodes are chosen, -1: none
  i64 shadows_ = 0;                  // increases when `later_` is rebuilt
  i64 guarded_ = -1, slack_ = 0;     // the head; units that `later_` holds beyond its need

  std::span<const Cell> cells(const Held& held) const {
    return {cells_.data() + held.first, index(held.count)};
  }
  bool holds(i64 j, const Cell& c) const {
    return layout_->held(room(free_, c.node), layout_->demand(j), c.units) == c.units;
  }
  void add(i64* there, const i64* demand, i64 units) const {
    for (i64 r = 0; r < layout_->n_resources; ++r) there[r] += units * demand[r];
  }
  // If only the number of cores matters, it suffices to add up free and released cores.
  void find_shadow_of_single(i64 j, i64 missing, const OrderedList& running, Shadow& shadow) {
    const i64 units = layout_->units(j);
    i64 found = n_free_, at = -1;
    for (int k = 0; k < running.size_in_blocks(); ++k)
      for (const Entry& e : running.at(k)) {
        if (found >= units && missing <= 0 && e.key > at) {
          k = running.size_in_blocks();
          break;
        }
        at = e.key;
        missing -= e.width;
        found += e.width;
        leaving_.push_back(e.job);
      }
    shadow.time = at;
    shadow.extra = -missing;
    slack_ = found - units;
  }
  std::vector<i64> made_later() const {
    std::vector<i64> made = free_;
    for (const i64 other : leaving_) change(made, cells(other), layout_->demand(other), 1);
    return made;
  }
  // Choose free nodes for a job; if `guarded`, beside the head.
  bool find_nodes(i64 j, bool guarded) {
    if (!guarded) return place(free_, j);
    if (filling_.goes_by_demand()) return place_beside(j);
    // jobs of a kind fill the same nodes, so a refusal holds for all of them; in a random order
    // they might differ: there a job is refused like the one before, without a draw
    Beside& known = beside_[index(layout_->kind[index(j)])];
    const i64 version = version_ + shadows_;
    if (known.version == version && known.units < layout_->units(j)) return false;
    if (place_beside(j)) return true;
    known = {version, 0};
    for (const Cell& c : chosen_) known.units += c.units;
    return false;
  }
  // Choose free nodes for a job, beside the head.
  bool place_beside(i64 j) {
    if (!std::exchange(is_later_made_, true)) later_ = made_later();
    const i64* demand = layout_->demand(j);
    i64 slack = slack_;
    const auto spare = [&](i64 node, i64 units) { return spared(node, demand, units, slack); };
    if (!place(free_, j, spare)) return false;
    slack_ = slack;
    return true;
  }
  // How many units of a job the head can spare on a node; reduces the slack.
  i64 spared(i64 node, const i64* demand, i64 units, i64& slack) const {
    const i64* head = layout_->demand(guarded_);
    const i64* there = room(later_, node);
    const i64 before = layout_->held(there, head);
    if (before == 0) return units;
    for (; units > 0; --units) {
      i64 after = before;
      for (i64 r = 0; r < layout_->n_resources; ++r)
        if (head[r] > 0) {
          const i64 left = std::max(there[r] - units * demand[r], i64{0});
          after = std::min(after, head[r] == 1 ? left : left / head[r]);
        }
      if (before - after > slack) continue;
      slack -= before - after;
      return units;
    }
    return 0;
  }
};
static_assert(Machine<Nodes>);

}  // namespace hpc
