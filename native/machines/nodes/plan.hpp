// The plan of a machine of nodes in which each waiting job has a reservation, and keeps it: times
// at which jobs take nodes and give them back. A reservation begins at the first of these times, or
// now, from which its nodes are free throughout the predicted run time of the job.
//
// A reservation that was at its earliest time when last tested can become earlier only by room
// gained since: the rest of a job that ended early, and what moved reservations have left. It then
// begins before the end of such room: no later time is tested.
#pragma once
#include <span>
#include <vector>

#include "../nodes.hpp"

namespace hpc {

class NodePlan {
 public:
  explicit NodePlan(const Model& m)
      : strict_(m.rules.every > 0),
        holds_(m.rules.holds),
        reserved_(index(m.n_jobs), -1),
        cells_(index(m.nodes->n_rows)),
        beside_(index(m.nodes->n_rows)) {}

  void keep(Archive& a) {
    a(now_, reserved_, beside_, may_be_overdrawn_, gained_until_, left_until_);
    a.check(cells_.size() == beside_.size());
    a.resized(cells_, events_);
    a.check(cells_.size() == beside_.size());
    for (const Event& e : events_) a.check_row(e.job);
  }
  i64 reserved(i64 j) const { return reserved_[index(j)]; }
  std::span<const Cell> placed(i64 j) const { return cells_[index(j)]; }
  bool may_be_earlier(i64) const { return true; }
  void list(i64, i64) {}
  void forget_past(i64 now) { now_ = now; }
  // Begin with the predicted ends of the running jobs only.
  void begin(const Nodes& m, i64 now, i64, const OrderedList& running) {
    now_ = now;
    events_.clear();
    running.each([&](const Entry& e) {
      const auto has = m.cells(e.job);
      cells_[index(e.job)].assign(has.begin(), has.end());
      beside_[index(e.job)] = 0;
      foresee(e.key, e.job, 1);
    });
  }
  // Take the nodes of the windows.
  void close(const Nodes& m, const Windows& windows) {
    windows.each_left([&](const Window& window) {
      const i64 holder = close_for(m, window);
      may_be_overdrawn_ = true;
      foresee(std::max(window.begin, now_), holder, -1);
      foresee(window.end, holder, 1);
    });
  }
  // Restore the nodes of a waiting job's reservation.
  void place(i64 j, std::span<const i64> node, std::span<const i64> units) {
    for (std::size_t c = 0; c < node.size(); ++c)
      cells_[index(j)].push_back({static_cast<std::int32_t>(node[c]), static_cast<std::int32_t>(units[c])});
  }
  void hold(i64 j, i64 time, i64 length) {
    foresee(time, j, -1);
    foresee(time + length, j, 1);
    reserved_[index(j)] = time;
  }
  void ended(const Entry& e, bool) {
    note_gain(e.job);
    withdraw(e.job);
  }
  i64 reserve(Nodes& m, i64 j, i64 length, bool) {
    commit(m, j, length, earliest(m, j, length, forever));
    return reserved(j);
  }
  // Renew the reservation of a job if it can be earlier; return whether it is.
  bool advance(Nodes& m, i64 j, i64 length) {
    const i64 before = reserved(j), latest = std::min(before, gained_until_);
    if (now_ < before && latest <= now_) return false;
    const i64 time = earliest(m, j, length, latest);
    if (time == latest) return false;
    left_until_ = std::max(left_until_, note_gain(j));
    withdraw(j);
    commit(m, j, length, time);
    return time < before;
  }
  // All waiting jobs have been tested with the room gained before this pass.
  void all_tried() { gained_until_ = std::exchange(left_until_, 0); }
  // A job takes its nodes now, and gives them back at its predicted end.
  void begun(Nodes& m, i64 j, i64 length) {
    withdraw(j);
    foresee(now_ + length, j, 1);
    m.choose(j, cells_[index(j)]);
  }

 protected:
  struct Event {  // at equal times, releases come first
    i64 time, job, sign;
  };
  using Room = std::vector<i64>;

  bool strict_;  // jobs end before others begin, not in the same second
  bool holds_;   // jobs may keep cores free beside their own
  i64 now_ = 0;
  std::vector<i64> reserved_;             // [s] by job
  std::vector<std::vector<Cell>> cells_;  // by job, waiting or running
  std::vector<i64> beside_;               // cores on any nodes that its reservation keeps free
  std::vector<Event> events_;             // by time
  // Jobs may run past their ends in the plan: free resources of a node may be negative then.
  bool may_be_overdrawn_ = false;
  // [s] until when room has been gained; the part left by reservations in this pass, with which
  // earlier jobs in the order have not been tested
  i64 gained_until_ = forever, left_until_ = 0;
  // Free resources: when a job would start; where the plan was examined last; at a time during its
  // run; throughout its run.
  Room now_free_, at_one_time_, within_, throughout_;
  std::vector<i64> spare_;  // by resource: total free beyond what the job needs

  // Give the nodes of a window to the pseudo-job that holds them.
  i64 close_for(const Nodes& m, const Window& window) {
    const i64 holder = m.layout().n_rows + window.taken;
    std::vector<Cell>& held = cells_[index(holder)];
    held.clear();
    for (const i64 node : window.nodes) held.push_back({static_cast<std::int32_t>(node), 1});
    return holder;
  }
  void foresee(i64 time, i64 j, i64 sign) {
    auto at = events_.end();
    while (at != events_.begin() &&
           ((at - 1)->time > time || ((at - 1)->time == time && (at - 1)->sign < sign)))
      --at;
    events_.insert(at, {time, j, sign});
  }
  // The planned resources of a job become free; return until when it had them [s].
  i64 note_gain(i64 j) {
    i64 until = 0;
    for (const Event& e : events_)
      if (e.job == j) until = std::max(until, e.time);
    gained_until_ = std::max(gained_until_, until);
    return until;
  }
  void withdraw(i64 j) {
    std::erase_if(events_, [j](const Event& e) { return e.job == j; });
  }
  void commit(const Nodes& m, i64 j, i64 length, i64 time) {
    const auto chosen = m.chosen();
    cells_[index(j)].assign(chosen.begin(), chosen.end());
    hold(j, time, length);
  }
  std::span<const Cell> cells(const Event& e) const { return cells_[index(e.job)]; }

  // The first time before `latest` at which a job could start, with its nodes chosen; else
  // `latest`. The job's own reservation does not count.
  i64 earliest(Nodes& m, i64 j, i64 predicted, i64 latest) {
    const i64 length = predicted + strict_;
    note_spare(m, j);
    now_free_ = at_one_time_ = m.free();
    i64 found = m.count(m.free(), m.layout().demand(j)), time = now_;
    std::size_t i = 0, summed = 0, counted = 0, happened = 0;
    while (true) {
      while (i < events_.size() && events_[i].time <= time) ++i;
      // Most times fail by the totals of the machine, which are quickly added up, or by the nodes
      // at one time. The sums made for one start are reused for later ones.
      i64 short_at = runs_short(m, j, summed, i, time, time + length);
      if (short_at == forever) short_at = has_no_room(m, j, counted, found, i, time, time + length);
      if (short_at == forever && holds_ && may_be_overdrawn_) short_at = lacks_cores(m, j, time, time + length);
      if (short_at == forever) {
        for (; happened < i; ++happened)
          if (events_[happened].job != j) change(m, now_free_, events_[happened]);
        if (lasts(m, j, i, time + length)) {
          m.place_at(throughout_, j);
          return time;
        }
        short_at = time;
      }
      // after all planned events the machine is empty, and any job fits
      while (i < events_.size() && events_[i].time <= short_at) ++i;
      time = i < events_.size() ? events_[i].time : latest;
      if (time >= latest) return latest;
    }
  }
  void change(const Nodes& m, Room& room, const Event& e) const {
    m.change(room, cells(e), m.layout().demand(e.job), e.sign);
  }
  // Resources that the job does not need never run short.
  void note_spare(const Nodes& m, i64 j) {
    const Layout& l = m.layout();
    spare_.assign(index(l.n_resources), forever);
    if (may_be_overdrawn_) return;  // totals are not valid
    for (i64 r = 0; r < l.n_resources; ++r) {
      if (l.demand(j)[r] == 0) continue;
      i64& spare = spare_[index(r)];
      spare = -l.units(j) * l.demand(j)[r] - (r == 0 ? beside_[index(j)] : 0);
      for (i64 node = 0; node < l.n_nodes; ++node)
        spare += m.free()[index(node * l.n_resources + r)];
    }
  }
  void spend(const Nodes& m, i64 j, const Event& e) {
    if (e.job == j) return;
    const Layout& l = m.layout();
    for (i64 r = 0; r < l.n_resources; ++r)
      spare_[index(r)] += e.sign * l.units(e.job) * l.demand(e.job)[r];
    spare_[0] += e.sign * beside_[index(e.job)];
  }
  bool lacks() const { return *std::min_element(spare_.begin(), spare_.end()) < 0; }
  // Whether event `i` begins another time than the event before.
  bool is_whole(std::size_t i) const {
    return i == events_.size() || events_[i].time > events_[i - 1].time;
  }
  // When there is first too little for a job, from the time after `i` events to `end`; forever if
  // there is enough. `summed`: how many events have been added up.
  i64 runs_short(const Nodes& m, i64 j, std::size_t& summed, std::size_t i, i64 begin, i64 end) {
    while (summed < i) spend(m, j, events_[summed++]);
    if (lacks()) return begin;
    while (summed < events_.size() && events_[summed].time < end) {
      spend(m, j, events_[summed++]);
      if (is_whole(summed) && lacks()) return events_[summed - 1].time;
    }
    return forever;
  }
  // The same, node by node; `found`: the units that fit after `counted` events.
  i64 has_no_room(const Nodes& m, i64 j, std::size_t& counted, i64& found, std::size_t i, i64 begin,
                  i64 end) {
    const i64 units = m.layout().units(j);
    while (counted < i) found += shift(m, j, events_[counted++]);
    if (found < units) return begin;
    while (counted < events_.size() && events_[counted].time < end) {
      found += shift(m, j, events_[counted++]);
      if (found < units && is_whole(counted)) return events_[counted - 1].time;
    }
    return forever;
  }
  // The same for the cores that a job takes and keeps free, where totals are not valid: of nodes
  // that are overdrawn there are none.
  i64 lacks_cores(const Nodes& m, i64 j, i64 begin, i64 end) const {
    const Layout& l = m.layout();
    Room free = m.free();
    i64 needed = m.width(j) + beside_[index(j)];
    for (std::size_t k = 0;; begin = events_[k].time) {
      for (; k < events_.size() && events_[k].time <= begin; ++k) {
        const Event& e = events_[k];
        if (e.job == j) continue;
        change(m, free, e);
        needed -= e.sign * beside_[index(e.job)];
      }
      i64 cores = 0;
      for (i64 node = 0; node < l.n_nodes; ++node)
        cores += std::max(free[index(node * l.n_resources)], i64{0});
      if (cores < needed) return begin;
      if (k == events_.size() || events_[k].time >= end) return forever;
    }
  }
  // Apply an event; return how many more units of a job fit.
  i64 shift(const Nodes& m, i64 j, const Event& e) {
    if (e.job == j) return 0;
    i64 more = 0;
    for (const Cell& c : cells(e)) {
      more -= m.held(at_one_time_, c.node, j);
      m.change(at_one_time_, {&c, 1}, m.layout().demand(e.job), e.sign);
      more += m.held(at_one_time_, c.node, j);
    }
    return more;
  }
  // Whether a job fits into what is free throughout until `end`; event `i` is next.
  bool lasts(const Nodes& m, i64 j, std::size_t i, i64 end) {
    const Layout& l = m.layout();
    within_ = throughout_ = now_free_;
    i64 found = m.count(throughout_, l.demand(j));
    for (; i < events_.size() && events_[i].time < end && found >= l.units(j); ++i) {
      const Event& e = events_[i];
      if (e.job == j) continue;
      change(m, within_, e);
      if (e.sign > 0) continue;
      for (const Cell& c : cells(e)) {
        found -= m.held(throughout_, c.node, j);
        for (std::size_t r = index(c.node * l.n_resources); r < index((c.node + 1) * l.n_resources);
             ++r)
          throughout_[r] = std::min(throughout_[r], within_[r]);
        found += m.held(throughout_, c.node, j);
      }
    }
    return found >= l.units(j);
  }
};

}  // namespace hpc
