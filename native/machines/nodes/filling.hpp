// The order in which nodes are filled: by number, by free or remaining resources, or random.
//
// `room` (N, R): free resources of each node.
#pragma once
#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "../../base/archive.hpp"
#include "layout.hpp"

namespace hpc {

class Filling {
  // kinds of nodes: without scarce resources; without room for the job
  static constexpr i64 plain = -1, full = -2;

  const Layout* layout_;
  std::vector<i64> order_;  // (N,) nodes in filling order
  std::vector<double> left_;  // (N,) free resources as shares of all; or a sort key
  std::vector<i64> kind_;   // (N,) the scarce resource of which a node has most
  std::vector<i64> stale_;  // nodes changed since they were sorted
  std::vector<char> is_stale_;
  std::vector<i64> merged_;  // buffer for the next order
  bool has_changed_ = true;    // whether any node has changed
  std::vector<i64> asked_;     // (R,) demand of the waiting jobs
  std::vector<double> worth_;  // (R,) value of a resource for placing the job
  std::uint64_t random_;

  const i64* at(const std::vector<i64>& room, i64 node) const {
    return &room[index(node * layout_->n_resources)];
  }
  bool comes_before(i64 a, i64 b) const {
    const double left = left_[index(a)], other = left_[index(b)];
    if (left != other) return (left < other) == (layout_->allocation != Allocation::worst_fit);
    return a < b;
  }
  void sort(std::vector<i64>& nodes, i64 n) {
    std::sort(nodes.begin(), nodes.begin() + n,
              [this](i64 a, i64 b) { return comes_before(a, b); });
  }
  bool goes_by_left() const {
    return layout_->allocation == Allocation::best_fit ||
           layout_->allocation == Allocation::worst_fit;
  }
  void note_changed(const i64* room, i64 node) {
    double left = 0;
    for (i64 r = 0; r < layout_->n_resources; ++r)
      if (layout_->total[index(r)] > 0)
        left +=
            static_cast<double>(room[node * layout_->n_resources + r]) / layout_->total[index(r)];
    left_[index(node)] = left;
    if (std::exchange(is_stale_[index(node)], true)) return;
    stale_.push_back(node);
  }
  void order_by_number() { std::iota(order_.begin(), order_.end(), i64{0}); }
  i64 size() const { return layout_->n_nodes; }

  // Move the changed nodes to their places in the order.
  void merge_stale() {
    sort(stale_, static_cast<i64>(stale_.size()));
    merged_.clear();
    auto next = stale_.begin();
    for (const i64 node : order_) {
      if (is_stale_[index(node)]) continue;
      while (next != stale_.end() && comes_before(*next, node)) merged_.push_back(*next++);
      merged_.push_back(node);
    }
    merged_.insert(merged_.end(), next, stale_.end());
    order_.swap(merged_);
    for (const i64 node : stale_) is_stale_[index(node)] = false;
    stale_.clear();
  }
  // `balanced`: no scarce resource is used up before another. Nodes without any come first, by
  // number. Each other node counts for the scarce resource of which it has most; the resource with
  // most nodes left gives the next node, and of its nodes the one that has least of it.
  void balance(const std::vector<i64>& room) {
    note_kinds(room);
    // a fraction, so that the kind breaks ties between integers
    const double part = 1.0 / static_cast<double>(layout_->n_resources + 1);
    order_by_number();
    for (std::size_t node = 0; node < order_.size(); ++node)
      left_[node] += static_cast<double>(kind_[node]) * part;
    sort(order_, size());
    take_turns(size());
  }
  // By the value of what a job would leave free on a node, least first. The value of a resource
  // increases with the demand of the other waiting jobs, and with the share in use. `hybrid` uses
  // it among the nodes of one kind, and takes kinds in turn as `balanced` does; nodes without room
  // for the job have no kind.
  void order_by_value(const std::vector<i64>& room, i64 j) {
    const i64 resources = layout_->n_resources, *demand = layout_->demand(j);
    for (i64 r = 0; r < resources; ++r) {
      i64 free = 0;
      for (i64 node = 0; node < size(); ++node) free += at(room, node)[r];
      const i64 others = asked_[index(r)] - layout_->asks[j * resources + r];
      const double total = layout_->total[index(r)];
      worth_[index(r)] = 0;
      if (total > 0)
        worth_[index(r)] = (1.0 + static_cast<double>(others)) *
                           (1.0 + (total - static_cast<double>(free))) / (total * total);
    }
    i64 n = 0;
    order_by_number();
    for (i64 node = 0; node < size(); ++node) {
      double& left = left_[index(node)];
      left = inf;
      const i64 units = layout_->held(at(room, node), demand, layout_->units(j));
      if (units <= 0) continue;
      left = 0;
      for (i64 r = 0; r < resources; ++r)
        left += static_cast<double>(at(room, node)[r] - units * demand[r]) * worth_[index(r)];
      ++n;
    }
    sort(order_, size());
    if (layout_->allocation != Allocation::hybrid) return;
    note_kinds(room);
    for (i64 i = n; i < size(); ++i) kind_[index(order_[index(i)])] = full;
    take_turns(n);
  }
  // The scarce resource of which each node has most, and its amount.
  void note_kinds(const std::vector<i64>& room) {
    std::fill(kind_.begin(), kind_.end(), plain);
    std::fill(left_.begin(), left_.end(), 0.0);
    for (i64 r = 0; r < layout_->n_resources; ++r) {
      if (!layout_->scarce[index(r)]) continue;
      for (i64 node = 0; node < size(); ++node) {
        const auto there = static_cast<double>(at(room, node)[r]);
        if (there > left_[index(node)]) left_[index(node)] = there, kind_[index(node)] = r;
      }
    }
  }
  // Let the kinds of the first `n` nodes take turns, each kind in its present order; plain nodes
  // come first. A node's turn depends on how many nodes of its kind are left.
  void take_turns(i64 n) {
    const double part = 1.0 / static_cast<double>(layout_->n_resources + 1);
    for (i64 i = 0; i < n; ++i)
      left_[index(order_[index(i)])] = static_cast<double>(i) - 2.0 * static_cast<double>(size());
    for (i64 r = 0; r < layout_->n_resources; ++r) {
      i64 after = 0;
      for (i64 i = n - 1; i >= 0; --i) {
        const std::size_t node = index(order_[index(i)]);
        if (kind_[node] != r) continue;
        ++after;
        left_[node] = static_cast<double>(r) * part - static_cast<double>(after);
      }
    }
    sort(order_, n);
  }

 public:
  explicit Filling(const Layout& layout)
      : layout_(&layout),
        order_(index(layout.n_nodes)),
        left_(index(layout.n_nodes)),
        kind_(index(layout.n_nodes)),
        is_stale_(index(layout.n_nodes)),
        asked_(index(layout.n_resources)),
        worth_(index(layout.n_resources)),
        random_(static_cast<std::uint64_t>(layout.random_state)) {
    order_by_number();
    if (layout.order) std::copy_n(layout.order, order_.size(), order_.begin());
    note_all_changed(layout.capacity);
  }

  // Restore the random state and the last order drawn.
  void draw_on(const std::vector<i64>& drawn) {
    random_ = static_cast<std::uint64_t>(drawn[0]);
    order_.assign(drawn.begin() + 1, drawn.end());
  }
  void keep(Archive& a) {
    a(order_, left_, kind_, is_stale_, has_changed_, asked_, random_);
    a.resized(stale_);
    for (const auto* nodes : {&order_, &stale_})
      for (const i64 node : *nodes) a.check(is_between(node, 0, size() - 1));
  }
  // Whether the order differs by job, and depends on the other waiting jobs.
  bool goes_by_demand() const { return layout_->allocation >= Allocation::weighted; }
  const std::vector<i64>& order() const { return order_; }  // the last one
  const std::vector<i64>& asked() const { return asked_; }
  void set_asked(std::span<const i64> asked) { asked_.assign(asked.begin(), asked.end()); }
  i64 random_state() const { return static_cast<i64>(random_); }
  // A job waits; a `sign` of -1: no longer.
  void note_waiting(i64 j, i64 sign) {
    if (!goes_by_demand()) return;
    for (i64 r = 0; r < layout_->n_resources; ++r)
      asked_[index(r)] += sign * layout_->asks[j * layout_->n_resources + r];
  }
  // Free resources `room` have changed on these nodes.
  template <class Cells>
  void note_changed(const i64* room, const Cells& cells) {
    has_changed_ = true;
    if (!goes_by_left()) return;
    for (const auto& c : cells) note_changed(room, i64{c.node});
  }
  void note_all_changed(const i64* room) {
    has_changed_ = true;
    if (!goes_by_left()) return;
    for (i64 node = 0; node < size(); ++node) note_changed(room, node);
  }
  // Shuffle the nodes (xorshift; Fisher and Yates).
  void shuffle() {
    for (std::size_t i = order_.size() - 1; i > 0; --i) {
      random_ ^= random_ << 13;
      random_ ^= random_ >> 7;
      random_ ^= random_ << 17;
      std::swap(order_[i], order_[(random_ >> 11) % (i + 1)]);
    }
  }
  // The nodes in the order in which a job fills them, given the free resources `room`.
  const std::vector<i64>& arrange(const std::vector<i64>& room, i64 j) {
    if (layout_->allocation == Allocation::random) {
      shuffle();
    } else if (goes_by_demand()) {
      order_by_value(room, j);
    } else if (std::exchange(has_changed_, false)) {
      if (layout_->allocation == Allocation::balanced)
        balance(room);
      else if (layout_->allocation != Allocation::first_fit)
        merge_stale();
    }
    return order_;
  }
};

}  // namespace hpc
