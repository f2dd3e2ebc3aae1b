// Placement of jobs as in Slurm: on nodes that no earlier reservation takes.
//
// The plan has the predicted ends of the running jobs. Reservations and windows take whole nodes
// for a time: these are in a table. A job is tested on the nodes that are open in the table during
// its run, if it started now: first beside the running jobs, then with these removed one by one, or
// together if they end together. If that gives no place, or one after other nodes have opened, it
// is tested from that time on; see docs/slurm.md.
//
// The table has consecutive periods, and for each the sets of nodes that reservations, and that
// windows leave open: those of all jobs, and those of all but some, by the resource that these do
// not need.
#pragma once
#include <vector>

#include "../../core/joining.hpp"
#include "../node_set.hpp"
#include "../nodes.hpp"

namespace hpc {

class NodeTable {
  // The nodes that are left open in a period: by reservations, and by windows.
  auto of_reservations() {
    return [this](std::size_t p) -> NodeSet& { return periods_[p].by_reservations; };
  }
  auto of_windows() {
    return [this](std::size_t p) -> NodeSet& { return periods_[p].by_windows; };
  }
  auto of_needed(std::size_t group) {
    return [this, group](std::size_t p) -> NodeSet& { return by_needed_[group][p]; };
  }

 public:
  // Whether a job would fit before the time from which it was tested, and the number of reserved
  // nodes without a job: these decide whether looks continue.
  bool put_off = false;
  i64 idle_planned = 0;

  explicit NodeTable(const Model& m)
      : rules_(&m.rules),
        none_(m.nodes->n_nodes),
        open_(none_), seen_(none_), for_job_(none_), written_(none_), idle_(none_), chosen_(none_),
        usable_(index(m.nodes->n_kinds)) {}

  void keep(Archive& a) {
    a(put_off, idle_planned, now_, plan_, lists_leaving_, open_, seen_, for_job_, written_,
      idle_, chosen_, later_);
    a.resized(periods_, leaving_, needed_, by_needed_, barring_);
    a.check(by_needed_.size() == needed_.size());
    for (const auto& open : by_needed_) a.check(open.size() == periods_.size());
    a.check(std::ranges::all_of(barring_, [&](std::size_t g) { return g < needed_.size(); }));
    a.check(!lists_leaving_ || leaving_.size() >= plan_.size());
    a.check(!periods_.empty() || plan_.empty());
    for (const End& end : plan_) a.check_row(end.job);
  }
  // The plan starts with the releases of the running jobs; all nodes are open.
  void begin(const Nodes& m, i64 now, const OrderedList& running) {
    now_ = now;
    plan_.clear();
    lists_leaving_ = put_off = false;
    idle_planned = 0;
    idle_.clear();
    const NodeSet all(m.layout().n_nodes, true);
    needed_.clear();
    by_needed_.clear();
    barring_.clear();
    periods_.assign(1, {-forever, all, all});
    running.each([&](const Entry& e) { note(e.key, e.job); });
  }
  // A job gives back its resources at a time.
  void note(i64 time, i64 j) {
    auto at = plan_.end();
    while (at != plan_.begin() &&
           ((at - 1)->time > time || ((at - 1)->time == time && (at - 1)->job > j)))
      --at;
    plan_.insert(at, {time, j});
    lists_leaving_ = false;
  }
  void close(const Nodes& m, const Window& window, i64 holder, std::span<const Cell> cells) {
    const i64 from = std::max(window.begin, now_), *demand = m.layout().demand(holder);
    if (demand[0] > 0) return shut(of_windows(), from, window.end, cells);
    const i64 resource = std::find_if(demand, demand + m.layout().n_resources,
                                      [](i64 need) { return need > 0; }) - demand;
    const auto known = std::ranges::find(needed_, resource);
    const auto group = static_cast<std::size_t>(known - needed_.begin());
    if (known == needed_.end()) {
      needed_.push_back(resource);
      by_needed_.emplace_back(periods_.size(), NodeSet(m.layout().n_nodes, true));
    }
    shut(of_needed(group), from, window.end, cells);
  }
  // Close the nodes of a partition from now on; return whether any node is left open.
  bool shut_partition(const Nodes& m, i64 partition) {
    const Layout& l = m.layout();
    const std::size_t first = split(now_);
    bool is_open = false;
    for (i64 node = 0; node < l.n_nodes; ++node) {
      const bool shuts = l.capacity[node * l.n_resources + partition] > 0;
      for (std::size_t p = first; shuts && p < periods_.size(); ++p)
        periods_[p].by_windows.remove(node);
      is_open |= periods_[first].by_windows.has(node);
    }
    return is_open;
  }
  // When a job can start; its place is chosen unless that is later than `last`. Beyond `latest`,
  // any later time is valid.
  i64 reserve(Nodes& m, i64 j, i64 length, i64 last, i64 latest) {
    i64 after = now_;
    while (after <= latest) {
      const i64 opens = look_ahead(m, j, after, after + length);
      const i64 found = fits_after_ends(m, j, opens == never ? latest : std::min(opens, latest));
      if (found != never && found < after) put_off = true;
      if (found == never && opens == never) return forever;
      const i64 time = found != never ? std::max(found, after) : forever;
      if (opens != never && time > opens) {
        after = opens;
        continue;
      }
      if (time > last) return time;
      choose(m, j, false);
      if (time == now_) return time;
      if (!is_taken(m.chosen(), time, length)) {
        note_reserved(m, time, length);
        return time;
      }
      after = time;
    }
    return after;
  }
  // Whether a job can start now; its place is chosen. `others`: nodes that can never hold a unit of
  // it keep their free resources, as allocations use those of the whole machine.
  bool starts_now(Nodes& m, i64 j, i64 length, bool others) {
    look_ahead(m, j, now_, now_ + length);
    if (open_units(m, j) < m.layout().units(j)) return false;
    choose(m, j, others);
    return true;
  }
  // A job starts on these cells, whose nodes are no longer idle.
  void begun(i64 j, i64 length, std::span<const Cell> cells) {
    note(now_ + length, j);
    for (const Cell& c : cells) {
      if (!idle_.has(c.node)) continue;
      idle_.remove(c.node);
      --idle_planned;
    }
  }

 private:
  static constexpr i64 never = -1;
  struct End {  // of a running job
    i64 time, job;
  };
  struct Period {
    i64 begin;  // [s]
    NodeSet by_reservations, by_windows;  // nodes that they leave open

    void keep(Archive& a) { a(begin, by_reservations, by_windows); }
  };

  const Rules* rules_;
  i64 now_ = 0;
  std::vector<End> plan_;  // by time, then by number
  std::vector<NodeSet> leaving_;  // the nodes of each of these jobs, once listed
  bool lists_leaving_ = false;
  std::vector<Period> periods_;
  std::vector<i64> needed_;  // resources that those do not need which some windows are open to
  std::vector<std::vector<NodeSet>> by_needed_;  // the nodes that these leave open in each period
  std::vector<std::size_t> barring_;  // which of these bar the job tested
  // Sets of nodes: empty; open during the run of a job; also open in the period after that; open
  // and able to hold a unit of the job; written in `later_`; reserved without a job on them; of the
  // job tested.
  NodeSet none_, open_, seen_, for_job_, written_, idle_, chosen_;
  std::vector<std::optional<NodeSet>> usable_;  // by kind: nodes that hold a unit when empty
  std::vector<i64> later_;  // (N, R) free resources once some jobs have ended

  void list_leaving(const Nodes& m) {
    if (std::exchange(lists_leaving_, true)) return;
    leaving_.resize(std::max(leaving_.size(), plan_.size()), none_);
    for (std::size_t i = 0; i < plan_.size(); ++i) leaving_[i].list(m.cells(plan_[i].job));
  }

  // The period that contains a time.
  std::size_t period_at(i64 time) const {
    std::size_t low = 0, high = periods_.size();
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      (periods_[middle].begin <= time ? low : high) = middle;
    }
    return low;
  }
  // The period that begins at a time, added if there is none.
  std::size_t split(i64 time) {
    const std::size_t before = period_at(time);
    if (periods_[before].begin == time) return before;
    Period made = periods_[before];
    made.begin = time;
    const auto behind = static_cast<std::ptrdiff_t>(before) + 1;
    periods_.insert(periods_.begin() + behind, std::move(made));
    for (auto& open : by_needed_) open.insert(open.begin() + behind, NodeSet(open[before]));
    return before + 1;
  }
  template <class F>
  void shut(F layer, i64 begin, i64 end, std::span<const Cell> cells) {
    const std::size_t first = split(begin), last = split(end);
    for (std::size_t p = first; p < last; ++p)
      for (const Cell& c : cells) layer(p).remove(c.node);
  }
  // Enter a reservation from `time` on, with the chosen nodes.
  void note_reserved(const Nodes& m, i64 time, i64 length) {
    const i64 resources = m.layout().n_resources;
    shut(of_reservations(), rounded(*rules_, time), rounded_end(*rules_, time, time + length),
         m.chosen());
    for (const Cell& c : m.chosen()) {
      const std::size_t cores = index(c.node * resources);
      if (m.free()[cores] != m.layout().capacity[cores] || idle_.has(c.node)) continue;
      idle_.add(c.node);
      ++idle_planned;
    }
  }
  // Whether the table closes any of a job's nodes during its run. Reservations are compared by
  // their rounded times in the table, windows by the times of the run.
  bool is_taken(std::span<const Cell> cells, i64 time, i64 length) {
    chosen_.list(cells);
    const i64 end = time + length;
    return shuts_some(of_reservations(), rounded(*rules_, time), rounded_end(*rules_, time, end)) ||
           shuts_some(of_windows(), time, end) ||
           std::ranges::any_of(barring_, [&](std::size_t group) {
             return shuts_some(of_needed(group), time, end);
           });
  }
  template <class F>
  bool shuts_some(F layer, i64 begin, i64 end) {
    for (std::size_t p = period_at(begin); p < periods_.size() && periods_[p].begin < end; ++p)
      for (std::size_t w = 0; w < chosen_.words.size(); ++w)
        if ((chosen_.words[w] & ~layer(p).words[w]) != 0) return true;
    return false;
  }

  const NodeSet& usable_by(const Nodes& m, i64 j) {
    const Layout& l = m.layout();
    auto& found = usable_[index(l.kind[index(j)])];
    if (found) return *found;
    found = none_;
    for (i64 node = 0; node < l.n_nodes; ++node)
      if (l.held(l.capacity + node * l.n_resources, l.demand(j), 1) > 0) found->add(node);
    return *found;
  }
  // Note the nodes that are open between two times; return when others open: the end of the first
  // period after which a node is open that was closed before. Of the periods that begin after
  // `until` only the first counts.
  i64 look_ahead(const Nodes& m, i64 j, i64 after, i64 until) {
    barring_.clear();
    for (std::size_t group = 0; group < needed_.size(); ++group)
      if (m.layout().demand(j)[needed_[group]] > 0) barring_.push_back(group);
    return barring_.empty() ? look_ahead_of<false>(m, j, after, until)
                            : look_ahead_of<true>(m, j, after, until);
  }
  template <bool is_barred>
  std::uint64_t open(std::size_t p, std::size_t word) const {
    const Period& period = periods_[p];
    std::uint64_t left = period.by_reservations.words[word] & period.by_windows.words[word];
    if constexpr (is_barred)
      for (const std::size_t group : barring_) left &= by_needed_[group][p].words[word];
    return left;
  }
  template <bool is_barred>
  i64 look_ahead_of(const Nodes& m, i64 j, i64 after, i64 until) {
    const NodeSet& may_have = usable_by(m, j);
    const std::size_t words = may_have.words.size();
    std::size_t before = period_at(after);
    for (std::size_t w = 0; w < words; ++w)
      open_.words[w] = seen_.words[w] = open<is_barred>(before, w);
    i64 opens = never, began = after;
    for (std::size_t q = before + 1; q < periods_.size(); ++q) {
      const Period& period = periods_[q];
      std::uint64_t changed = 0, opened = 0;
      for (std::size_t w = 0; w < words; ++w) {
        const std::uint64_t now = open<is_barred>(q, w);
        changed |= now ^ open<is_barred>(before, w);
        opened |= now & ~seen_.words[w] & may_have.words[w];
      }
      if (changed == 0) continue;
      before = q;
      if (opened != 0 && opens == never) opens = period.begin;
      if (began > until || (opens != never && period.begin > until)) break;
      began = period.begin;
      for (std::size_t w = 0; w < words; ++w) {
        seen_.words[w] &= open<is_barred>(q, w);
        if (began <= until) open_.words[w] &= open<is_barred>(q, w);
      }
    }
    return opens;
  }
  // How many units of a job fit now on the open nodes, or at least enough.
  i64 open_units(const Nodes& m, i64 j) {
    const NodeSet& may_have = usable_by(m, j);
    for (std::size_t w = 0; w < may_have.words.size(); ++w)
      for_job_.words[w] = open_.words[w] & may_have.words[w];
    written_.clear();
    const i64 units = m.layout().units(j);
    i64 found = 0;
    for_job_.each([&](i64 node) {
      if (found < units) found += held(m, m.free(), node, j);
    });
    return found;
  }
  // A node counts at most for all units of the job.
  i64 held(const Nodes& m, const std::vector<i64>& room, i64 node, i64 j) const {
    const Layout& l = m.layout();
    return l.held(&room[index(node * l.n_resources)], l.demand(j), l.units(j));
  }
  // When a job fits on the open nodes: now, or after ends of running jobs. If it does not fit
  // before `stop`, any later time may be returned.
  i64 fits_after_ends(const Nodes& m, i64 j, i64 stop) {
    const i64 units = m.layout().units(j);
    i64 found = open_units(m, j), last = never;
    if (found >= units) return now_;
    later_.resize(m.free().size());
    list_leaving(m);
    JoinedEnds joined(*rules_);
    for (std::size_t i = 0; i < plan_.size(); ++i) {
      if (found < units && plan_[i].time > stop) return plan_[i].time;
      // a job on none of these nodes is skipped, and so is the test after it
      if (!leaving_[i].meets(for_job_)) continue;
      found += leave(m, j, plan_[i].job);
      if (last == never) joined.begins_span(plan_[i].time);
      last = plan_[i].time;
      if (i + 1 < plan_.size() && joined.begins_span(plan_[i + 1].time) && found >= units)
        return last;
    }
    return found >= units ? last : never;
  }
  // Remove a running job from the open nodes; return how many more units of job `j` fit.
  i64 leave(const Nodes& m, i64 j, i64 other) {
    const i64 resources = m.layout().n_resources;
    i64 gained = 0;
    for (const Cell& c : m.cells(other)) {
      if (!for_job_.has(c.node)) continue;
      if (!written_.has(c.node)) {
        written_.add(c.node);
        const auto from = m.free().begin() + c.node * resources;
        std::copy(from, from + resources, later_.begin() + c.node * resources);
      }
      gained -= held(m, later_, c.node, j);
      m.change(later_, {&c, 1}, m.layout().demand(other), 1);
      gained += held(m, later_, c.node, j);
    }
    return gained;
  }
  // Choose the nodes of a job that fits on the open ones. Closed nodes have no room.
  void choose(Nodes& m, i64 j, bool others) {
    const NodeSet& usable = others ? open_ : for_job_;
    const i64 resources = m.layout().n_resources;
    later_.resize(m.free().size());
    for (i64 node = 0; node < m.layout().n_nodes; ++node) {
      if (written_.has(node)) continue;
      const auto from = m.free().begin() + node * resources;
      const auto to = later_.begin() + node * resources;
      if (usable.has(node))
        std::copy(from, from + resources, to);
      else
        std::fill(to, to + resources, 0);
    }
    m.place_at(later_, j);
  }
};

}  // namespace hpc
