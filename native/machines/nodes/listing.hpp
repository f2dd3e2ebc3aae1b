// Nodes as a dispatcher sees them at a pass: what starts if jobs are taken in a given order.
//
// Algorithm 1 of Remediani 2017: at each time all jobs that fit start, in that order; those that
// do not are passed over.
#pragma once
#include <span>
#include <vector>

#include "../nodes.hpp"

namespace hpc {

class Listing {
  const Layout* layout_;
  Filling filling_;
  std::vector<i64> free_;                 // (N, R)
  std::vector<std::vector<Cell>> cells_;  // by row of the layout; once it has ended, too
  struct Known {                          // how many units of a kind fit, or enough, by now
    i64 version = -1, units = 0;
    bool is_all = false;
  };
  std::vector<Known> known_;
  i64 version_ = 0;  // up whenever `free_` changes

  const i64* room(i64 node) const { return &free_[index(node * layout_->n_resources)]; }
  void move(i64 j, i64 sign) {
    ++version_;
    for (const Cell& c : cells_[index(j)])
      for (i64 r = 0; r < layout_->n_resources; ++r)
        free_[index(c.node * layout_->n_resources + r)] += sign * c.units * layout_->demand(j)[r];
    filling_.note_changed(free_.data(), cells_[index(j)]);
  }

 public:
  // `asked`: what the jobs that wait ask for. Orders that have been drawn are drawn again.
  Listing(const Layout& layout, std::span<const i64> free, std::span<const i64> asked, i64 drawn)
      : layout_(&layout), filling_(layout), free_(free.begin(), free.end()),
        cells_(index(layout.n_rows)), known_(index(layout.n_kinds)) {
    filling_.set_asked(asked);
    filling_.note_all_changed(free_.data());
    while (drawn-- > 0) filling_.shuffle();
  }

  bool fits(i64 j) {
    Known& known = known_[index(layout_->kind[index(j)])];
    const i64 units = layout_->units(j);
    if (known.version != version_ || (!known.is_all && known.units < units)) {
      i64 found = 0;
      for (i64 node = 0; node < layout_->n_nodes && found < units; ++node)
        found += layout_->held(room(node), layout_->demand(j), units - found);
      known = {version_, found, found < units};
    }
    return known.units >= units;
  }
  bool start(i64 j) {
    if (!fits(j)) return false;
    i64 missing = layout_->units(j);
    for (const i64 node : filling_.arrange(free_, j)) {
      const i64 units = layout_->held(room(node), layout_->demand(j), missing);
      if (units > 0)
        hold(j, {static_cast<std::int32_t>(node), static_cast<std::int32_t>(units)});
      if ((missing -= units) == 0) break;
    }
    move(j, -1);
    filling_.note_waiting(j, -1);
    return true;
  }
  // A job has units there, which are taken already.
  void hold(i64 j, Cell cell) { cells_[index(j)].push_back(cell); }
  const std::vector<Cell>& cells(i64 j) const { return cells_[index(j)]; }

  // The starts of jobs from `time` [s] on, -1 of those that never fit. They are the first rows, in
  // that order; `until` [s] is when each row gives its nodes back that runs.
  std::vector<i64> plan(std::span<const i64> order, std::span<const i64> duration,
                        std::vector<i64> until, i64 time) {
    std::vector<i64> start(order.size(), -1);
    std::size_t missing = order.size();
    while (true) {
      for (const i64 j : order)
        if (start[index(j)] < 0 && this->start(j)) {
          start[index(j)] = time;
          until[index(j)] = time + duration[index(j)];
          --missing;
        }
      if (missing == 0) return start;
      time = *std::ranges::min_element(until);
      if (time == forever) return start;
      for (std::size_t j = 0; j < until.size(); ++j)
        if (until[j] == time) move(static_cast<i64>(j), 1), until[j] = forever;
    }
  }
};

}  // namespace hpc
