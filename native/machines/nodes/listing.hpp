// Nodes as a dispatcher sees them at a pass: which jobs start if taken in a given order.
//
// Algorithm 1 of Remediani 2017: at each time all jobs that fit start, in that order; the others
// are passed over.
#pragma once
#include <span>
#include <vector>

#include "../../base/interrupts.hpp"
#include "free_nodes.hpp"

namespace hpc {

class Listing : public FreeNodes {
  std::vector<std::vector<Cell>> cells_;  // by row of the layout; kept after the end

 public:
  // `asked`: demand of the waiting jobs. `drawn`: how many random orders to draw first.
  Listing(const Layout& layout, std::span<const i64> free, std::span<const i64> asked, i64 drawn)
      : FreeNodes(layout, free), cells_(index(layout.n_rows)) {
    filling_.set_asked(asked);
    filling_.note_all_changed(free_.data());
    while (drawn-- > 0) filling_.shuffle();
  }

  bool start(i64 j) {
    if (!has_room(j) || !place(free_, j)) return false;
    cells_[index(j)] = chosen_;
    move(chosen_, layout_->demand(j), -1);
    filling_.note_waiting(j, -1);
    return true;
  }
  // A job has units there, already subtracted from what is free.
  void hold(i64 j, Cell cell) { cells_[index(j)].push_back(cell); }
  const std::vector<Cell>& cells(i64 j) const { return cells_[index(j)]; }

  // The starts of jobs from `time` [s] on, -1 if a job never fits. They are the first rows, taken
  // in that order; `until` [s]: when each running row gives its nodes back.
  std::vector<i64> plan(std::span<const i64> order, std::span<const i64> duration,
                        std::vector<i64> until, i64 time) {
    std::vector<i64> start(order.size(), -1);
    std::size_t missing = order.size();
    Interrupts interrupts;
    while (true) {
      interrupts.count(static_cast<i64>(1 + order.size() / 64));
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
        if (until[j] == time) {
          move(cells_[j], layout_->demand(static_cast<i64>(j)), 1);
          until[j] = forever;
        }
    }
  }
};

}  // namespace hpc
