// Nodes that are switched off and on, and allocated whole: their states and power.
#pragma once
#include "state.hpp"

namespace hpc {

class PoweredNodes : public LimitedState {
 protected:
  using LimitedState::LimitedState;

  // --- The state of a node ----------------------------------------------------------------------

  // Charged power of a free node in a state [mW].
  i64 charged_for(NodeState state) const {
    if (state == NodeState::off) return layout_->off_mw;
    return state == NodeState::switching_on ? layout_->rise_mw : layout_->rest_mw;
  }
  // True power of a node in a state without a running job [mW].
  i64 drawn_by(NodeState state) const {
    if (state == NodeState::on) return layout_->idle_mw;
    if (state == NodeState::off) return layout_->off_mw;
    return state == NodeState::switching_on ? layout_->boot_mw : layout_->shutdown_mw;
  }
  // Change the state of a node without a running job.
  void set_state(i64 node, NodeState state, i64 until) {
    LimitedNode& own = node_at(node);
    const NodeState was = own.state;
    if (own.job < 0) {
      charged += charged_for(state) - charged_for(was);
      count_free(node, was, -1);
      count_free(node, state, 1);
    }
    drawn += drawn_by(state) - drawn_by(was);
    if (was != NodeState::on && now > own.since)
      log.push_back({node, static_cast<i64>(was), own.since, now});
    own.since = now;
    own.until = until;
    if (was == NodeState::off) {
      count_dark(node, -1);
    } else if (was != NodeState::on) {
      node_at(switching.back()).place = own.place;
      switching[index(own.place)] = switching.back();
      switching.pop_back();
    }
    own.state = state;
    if (state == NodeState::off) {
      count_dark(node, 1);
    } else if (state != NodeState::on) {
      own.place = static_cast<i64>(switching.size());
      switching.push_back(node);
      next_switched = std::min(next_switched, until);
    }
  }
  // Count a free node in a state; a `sign` of -1 removes it.
  void count_free(i64 node, NodeState state, i64 sign) {
    if (state == NodeState::off) free_off += sign;
    if (state == NodeState::switching_on) free_rising += sign;
    if (state != NodeState::on) return;
    free_on += sign;
    sign > 0 ? on_.add(node) : on_.remove(node);
  }
  // Count a node as off in the components above it; a `sign` of -1 removes it.
  void count_dark(i64 node, i64 sign) {
    for (std::size_t k = 0; k < awake_.size(); ++k) {
      i64& awake = awake_[k][index(node / layout_->size[k])];
      awake -= sign;
      if (awake > (sign > 0 ? 0 : 1)) return;
      const i64 saved = sign * (layout_->component_mw[k] + (k > 0 ? 0 : off_beside(node)));
      saved_mw += saved, charged -= saved, drawn -= saved;
    }
  }
  // Power saved by the nodes that are off below a component once that is off as well [mW].
  i64 off_beside(i64 node) const {
    const i64 size = layout_->size[0], begin = node / size * size;
    return (std::min(begin + size, n_nodes()) - begin) * layout_->off_mw;
  }
  void switch_off(i64 node) {  // a free node that is on
    if (layout_->off_time == 0) set_state(node, NodeState::off, forever);
    else set_state(node, NodeState::switching_off, now + layout_->off_time);
  }
  void switch_on(i64 node) {  // a node that is off
    if (layout_->on_time == 0) set_state(node, NodeState::on, forever);
    else set_state(node, NodeState::switching_on, now + layout_->on_time);
  }
  // Switch on a node that is off, or that is switching off, as soon as possible.
  void wake(i64 node) {
    if (node_at(node).state == NodeState::switching_off) node_at(node).boots = true;
    else if (node_at(node).state == NodeState::off) switch_on(node);
  }
  // Whether a cap holds, or begins before a node that is switched on now would be on.
  bool cap_near() const {
    const i64 soon = now + std::max(layout_->on_time, i64{1});
    return std::any_of(caps.begin(), caps.end(), [&](const Cap& cap) {
      if (cap.off == 0 && is_control(cap)) return false;  // it keeps no nodes off
      return cap.known && cap.start - layout_->off_time < soon && cap.end > now;
    });
  }
  // Update the nodes whose switching is complete.
  void end_switching() {
    if (next_switched > now) return;
    // from the end, as the last entry replaces a removed one
    for (auto i = static_cast<i64>(switching.size()) - 1; i >= 0; --i) {
      const i64 node = switching[index(i)];
      LimitedNode& own = node_at(node);
      if (own.until > now) continue;
      if (own.state == NodeState::switching_on) {
        set_state(node, NodeState::on, forever);
        continue;
      }
      set_state(node, NodeState::off, forever);
      if (!own.boots) continue;
      if (own.job < 0) {
        to_wake = true;
      } else {
        own.boots = false;
        switch_on(node);
      }
    }
    next_switched = forever;
    for (const i64 node : switching) next_switched = std::min(next_switched, node_at(node).until);
  }
  // Switch off the free nodes in [0, end) that have been idle since `idle_since` [s] or longer.
  void switch_off_free(i64 end, i64 idle_since) {
    for (i64 node = on_.next(0); node < end; node = on_.next(node + 1))
      if (node_at(node).since <= idle_since) switch_off(node);
  }
  // [s] when the next free node reaches the idle timeout.
  i64 next_timeout() const {
    i64 first = forever;
    if (layout_->timeout >= forever || free_on == 0) return first;
    for (i64 node = on_.next(0); node < n_nodes(); node = on_.next(node + 1))
      first = std::min(first, node_at(node).since + layout_->timeout);
    return first;
  }

  // --- The nodes of a job -----------------------------------------------------------------------

  // Choose free nodes for a job, numbered from `lowest`: the lowest that are on, and, if these are
  // too few, the lowest others as well. Return whether they suffice.
  bool pick(i64 j, i64 lowest, bool& all_on) {
    std::int32_t *const first = cell_of(j), *const end = first + width(j), *at = first;
    for (i64 node = on_.next(lowest); at < end && node < n_nodes(); node = on_.next(node + 1))
      *at++ = static_cast<std::int32_t>(node);
    all_on = at == end;
    if (all_on) return true;
    i64 others = end - at;
    at = first;
    for (i64 node = free_.next(lowest); at < end && node < n_nodes(); node = free_.next(node + 1)) {
      const bool is_on = node_at(node).state == NodeState::on;
      if (!is_on && others == 0) continue;
      *at++ = static_cast<std::int32_t>(node);
      others -= !is_on;
    }
    return at == end;
  }
  // The same for consecutive nodes outside a block: the lowest row that is on, else that is free.
  bool pick_row(i64 j, i64 lowest, i64 block_from, i64 block_to, bool& all_on) {
    i64 begin = on_.row(lowest, width(j), block_from, block_to);
    all_on = begin >= 0;
    if (begin < 0) begin = free_.row(lowest, width(j), block_from, block_to);
    if (begin < 0) return false;
    for (i64 i = 0; i < width(j); ++i) cell_of(j)[i] = static_cast<std::int32_t>(begin + i);
    return true;
  }
  // How many of the nodes of a job have a number below `number`.
  i64 count_below(i64 j, i64 number) const {
    const auto own = cells(j);
    return std::lower_bound(own.begin(), own.end(), number) - own.begin();
  }
  // [s] when all the nodes chosen for a job can be on.
  i64 ready_time(i64 j) const {
    i64 ready = now;
    for (const i64 node : cells(j)) {
      const LimitedNode& own = node_at(node);
      if (own.state == NodeState::switching_on) {
        ready = std::max(ready, own.until);
      } else if (own.state != NodeState::on) {
        const i64 since = own.state == NodeState::switching_off ? own.until : now;
        ready = std::max(ready, since + layout_->on_time);
      }
    }
    return ready;
  }
  // Give a job the nodes that were chosen for it.
  void take(i64 j) {
    const LimitedTask& own = task(j);
    for (const i64 node : cells(j)) {
      charged -= charged_for(node_at(node).state);
      count_free(node, node_at(node).state, -1);
      free_.remove(node);
      node_at(node).job = j;
      wake(node);
    }
    holders.push_back(j);
    if (own.ready > now) {
      charged += own.wait_mw;
      waiting.push_back(j);
      next_ready = std::min(next_ready, own.ready);
    } else {
      charged += own.work_mw;
      drawn += own.drawn_mw - width(j) * layout_->idle_mw;
    }
  }
  // Jobs whose nodes are all on now begin.
  void begin_waiting() {
    if (next_ready > now) return;
    next_ready = forever;
    for (std::size_t i = 0; i < waiting.size();) {
      const LimitedTask& own = task(waiting[i]);
      if (own.ready > now) {
        next_ready = std::min(next_ready, own.ready);
        ++i;
        continue;
      }
      charged += own.work_mw - own.wait_mw;
      drawn += own.drawn_mw - width(waiting[i]) * layout_->idle_mw;
      waiting[i] = waiting.back();
      waiting.pop_back();
    }
  }
  // Free the nodes of an ended job; its cells remain on record.
  void release(i64 j) {
    charged += width(j) * layout_->rest_mw - task(j).work_mw;
    drawn += width(j) * layout_->idle_mw - task(j).drawn_mw;
    for (const i64 node : cells(j)) {
      node_at(node).job = -1;
      node_at(node).since = now;
      free_.add(node);
      count_free(node, NodeState::on, 1);
    }
    holders.erase(std::find(holders.begin(), holders.end(), j));
  }

  // --- By level ---------------------------------------------------------------------------------

  static constexpr i64 million = 1'000'000;
  i64 slowdown(i64 j, i64 level) const {  // [millionths]
    return layout_->slowdown[index(layout_->kind[j] * layout_->n_levels() + level)];
  }
  // The run time of a job at a level, from that at the highest level, rounded up [s].
  i64 slowed(i64 j, i64 level, i64 seconds) const {
    const i64 millionths = slowdown(j, level);
    // in two parts, so that no product overflows
    return seconds / million * millionths - floor_div(-(seconds % million) * millionths, million);
  }
  // Charged while it runs [mW].
  i64 work_mw(i64 j, i64 level) const {
    return std::max(width(j) * layout_->busy_mw[index(level)], measured_mw(j, level));
  }
  // Charged while it waits for its nodes [mW].
  i64 wait_mw(i64 j, i64 level) const {
    return std::max(width(j) * layout_->rise_mw, work_mw(j, level));
  }
  // True power while it runs [mW].
  i64 drawn_mw(i64 j, i64 level) const {
    const i64 measured = measured_mw(j, level);
    return measured >= 0 ? measured : width(j) * layout_->drawn_mw[index(level)];
  }
  i64 measured_mw(i64 j, i64 level) const {  // -1 unknown
    return layout_->measured_mw ? layout_->measured_mw[j * layout_->n_levels() + level] : -1;
  }
};

}  // namespace hpc
