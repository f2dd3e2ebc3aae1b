// Placement of jobs as in Slurm: on nodes that no earlier reservation takes.
//
// Reservations and windows take whole nodes for a time: these are in a table. A job is tested on
// the nodes that are open in the table during its run, if it started now: first beside the running
// jobs, then with these removed one by one, or together if they end together (ends.hpp). If that
// gives no place, or one after other nodes have opened, it is tested from that time on; see
// docs/slurm.md.
//
// The table has consecutive periods, and for each the sets of nodes that reservations, and that
// windows leave open: those of all jobs, and those of all but some, by the resource that these do
// not need. Most tests fail as too few nodes are open, which needs only their number.
#pragma once
#include <vector>

#include "../node_set.hpp"
#include "../nodes.hpp"
#include "ends.hpp"

namespace hpc {

class NodeTable {
 public:
  // Whether a job would fit before the time from which it was tested, and the number of reserved
  // nodes without a job: these decide whether looks continue.
  bool put_off = false;
  i64 idle_planned = 0;

  explicit NodeTable(const Model& m)
      : rules_(&m.rules),
        ends_(m),
        by_reservations_(m.nodes->n_nodes), by_windows_(by_reservations_), open_(by_reservations_),
        for_all_(m.nodes->n_nodes), for_job_(for_all_), idle_(for_all_), chosen_(for_all_), closed_(for_all_) {}

  // Each pass begins anew.
  void keep(Archive& a) { a(put_off, idle_planned); }
  // All nodes are open.
  void begin(const Nodes& m, i64 now, const OrderedList& running) {
    now_ = now;
    put_off = false;
    idle_planned = 0;
    idle_.clear();
    ends_.begin(now, running);
    periods_.assign(1, {-forever, m.layout().n_nodes, Change::none});
    by_reservations_.begin(1), by_windows_.begin(1), open_.begin(1);
    needed_.clear(), by_needed_.clear(), barring_.clear();
  }
  // A job gives back its resources at a time.
  void note(i64 time, i64 j) { ends_.note(time, j); }
  void close(const Nodes& m, const Window& window, i64 holder, std::span<const Cell> cells) {
    const i64 from = std::max(window.begin, now_), *demand = m.layout().demand(holder);
    if (demand[0] > 0) return shut(by_windows_, from, window.end, cells);
    const i64 resource = std::find_if(demand, demand + m.layout().n_resources,
                                      [](i64 need) { return need > 0; }) - demand;
    const auto known = std::ranges::find(needed_, resource);
    const auto group = static_cast<std::size_t>(known - needed_.begin());
    if (known == needed_.end()) {
      needed_.push_back(resource);
      by_needed_.emplace_back(m.layout().n_nodes, periods_.size());
    }
    remove(by_needed_[group], from, window.end, cells);
  }
  // Close the nodes of a partition from now on; return whether any node is left open.
  bool shut_partition(const Nodes& m, i64 partition) {
    const Layout& l = m.layout();
    std::vector<Cell> cells;
    for (i64 node = 0; node < l.n_nodes; ++node)
      if (l.capacity[node * l.n_resources + partition] > 0)
        cells.push_back({static_cast<std::int32_t>(node), 1});
    shut(by_windows_, now_, forever, cells);
    const std::uint64_t* open = by_windows_[period_at(now_)];
    return std::any_of(open, open + by_windows_.width, [](std::uint64_t word) { return word != 0; });
  }
  // When a job can start; its place is chosen unless that is later than `last`. Beyond `latest`,
  // any later time is valid.
  i64 reserve(Nodes& m, i64 j, i64 length, i64 last, i64 latest) {
    begin_test(m, j, length);
    i64 after = now_;
    std::size_t first = period_at(after);
    while (go_to_enough(first, after) && after <= latest) {
      const std::size_t behind = next_opening(first, after);
      const i64 opens = behind == none ? latest : periods_[behind].begin;
      const i64 stop = std::min(opens, latest);
      const bool holds = note_open(first, after + length, ends_.unfilled_by(m, stop));
      const i64 found = holds ? ends_.fits(m, j, for_job_, stop) : never;
      if (found != never && found < after) put_off = true;
      if (found == never && behind == none) return forever;
      const i64 time = found != never ? std::max(found, after) : forever;
      if (behind != none && time > opens) {
        after = opens, first = behind;
        continue;
      }
      if (time > last) return time;
      choose(m, j, for_job_);
      if (time == now_) return time;
      if (!is_taken(m.chosen(), time, length)) {
        note_reserved(m, time, length);
        return time;
      }
      after = time, first = period_at(time);
    }
    return forever;
  }
  // Whether a job can start now; its place is chosen. `others`: nodes that can never hold a unit of
  // it keep their free resources, as allocations use those of the whole machine.
  bool starts_now(Nodes& m, i64 j, i64 length, bool others) {
    begin_test(m, j, length);
    if (!note_open(period_at(now_), now_ + length, ends_.unfilled_by(m, now_))) return false;
    if (ends_.units_now(m, j, for_job_) < units_) return false;
    choose(m, j, others ? for_all_ : for_job_);
    return true;
  }
  // Note how many cores are free from now on, on nodes that the table leaves open to all jobs.
  void note_free(const Nodes& m) {
    const i64 resources = m.layout().n_resources;
    std::size_t p = period_at(now_);
    i64 at = now_;
    free_.clear();
    for_all_.words = m.open();
    while (true) {
      std::uint64_t lost = 0;
      for (std::size_t w = 0; w < open_.width; ++w) {
        const std::uint64_t before = for_all_.words[w];
        lost |= before ^ (for_all_.words[w] &= open_[p][w]);
      }
      if (free_.empty() || lost != 0) {
        i64 cores = 0;
        for_all_.each([&](i64 node) { cores += m.free()[index(node * resources)]; });
        if (free_.empty() || free_.back().cores > cores) free_.push_back({at, cores});
        if (cores == 0) return;
      }
      if (++p == periods_.size()) return;
      at = periods_[p].begin;
    }
  }
  // Until when so many are [s]: no job that needs them for longer can start now.
  i64 free_until(i64 cores) const {
    const auto fewer = std::ranges::find_if(free_, [cores](const Free& each) { return each.cores < cores; });
    return fewer == free_.end() ? forever : fewer->time;
  }
  // Whether no further reservation changes whether some node is reserved without a job: one is, or
  // each node has a job.
  bool knows_idle(const Nodes& m) const {
    const Layout& l = m.layout();
    if (idle_planned > 0) return true;
    for (i64 cores = 0; cores < l.n_nodes * l.n_resources; cores += l.n_resources)
      if (l.capacity[cores] > 0 && m.free()[index(cores)] == l.capacity[cores]) return false;
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
  static constexpr i64 never = NodeEnds::never;
  static constexpr std::size_t none = ~std::size_t{0};
  // How the open nodes differ from those of the period before: not, by closed ones only, or some
  // are open that were closed.
  enum class Change : std::uint8_t { none, closes, opens };
  struct Period {
    i64 begin;   // [s]
    i64 n_open;  // nodes
    Change change;
  };

  struct Free {
    i64 time, cores;  // [s] from then on
  };

  const Rules* rules_;
  i64 now_ = 0;
  NodeEnds ends_;
  std::vector<Free> free_;  // from now on, fewer and fewer
  std::vector<Period> periods_;
  NodeSets by_reservations_, by_windows_;  // by period, the nodes that they leave open
  NodeSets open_;                          // and both together
  std::vector<i64> needed_;  // resources that those do not need which some windows are open to
  std::vector<NodeSets> by_needed_;     // the nodes that these leave open in each period
  // Sets of nodes: open during the run of the job tested; of these, those that can hold a unit of
  // it; reserved without a job on them; chosen; closed last.
  NodeSet for_all_, for_job_, idle_, chosen_, closed_;
  // Of the job tested: what empty nodes hold; its length, units, and nodes at least; how many
  // periods have been looked at; which of the resources above bar it.
  const EmptyNodes* tested_ = nullptr;
  i64 length_ = 0, units_ = 0, fewest_ = 0;
  std::size_t looked_ = 0;
  std::vector<std::size_t> barring_;

  // The period that contains a time.
  std::size_t period_at(i64 time) const {
    const auto after = std::ranges::upper_bound(periods_, time, {}, &Period::begin);
    return static_cast<std::size_t>(after - periods_.begin()) - 1;
  }
  // The period that begins at a time, added if there is none.
  std::size_t split(i64 time) {
    const std::size_t before = period_at(time);
    if (periods_[before].begin == time) return before;
    periods_.insert(periods_.begin() + static_cast<std::ptrdiff_t>(before) + 1,
                    {time, periods_[before].n_open, Change::none});
    for (NodeSets* sets : {&by_reservations_, &by_windows_, &open_}) sets->repeat(before);
    for (NodeSets& sets : by_needed_) sets.repeat(before);
    return before + 1;
  }
  // Close nodes for a time in some sets; return the periods from the first to behind the last.
  std::pair<std::size_t, std::size_t> remove(NodeSets& sets, i64 begin, i64 end,
                                             std::span<const Cell> cells) {
    const std::size_t first = split(begin), last = split(end);
    closed_.list(cells);
    for (std::size_t p = first; p < last; ++p)
      for (std::size_t w = 0; w < sets.width; ++w) sets.words(p)[w] &= ~closed_.words[w];
    return {first, last};
  }
  // The same in the sets of reservations or windows of all jobs.
  void shut(NodeSets& sets, i64 begin, i64 end, std::span<const Cell> cells) {
    const auto [first, last] = remove(sets, begin, end, cells);
    for (std::size_t p = first; p <= last; ++p) {
      Period& period = periods_[p];
      std::uint64_t differs = 0, opens = 0;
      period.n_open = 0;
      for (std::size_t w = 0; w < open_.width; ++w) {
        const std::uint64_t before = open_[p - 1][w];
        const std::uint64_t now = open_.words(p)[w] = by_reservations_[p][w] & by_windows_[p][w];
        differs |= now ^ before;
        opens |= now & ~before;
        period.n_open += number_in(now);
      }
      period.change = opens != 0 ? Change::opens : differs != 0 ? Change::closes : Change::none;
    }
  }
  // Enter a reservation from `time` on, with the chosen nodes.
  void note_reserved(const Nodes& m, i64 time, i64 length) {
    const i64 resources = m.layout().n_resources;
    shut(by_reservations_, rounded(*rules_, time), rounded_end(*rules_, time, time + length), m.chosen());
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
    return shuts_some(by_reservations_, rounded(*rules_, time), rounded_end(*rules_, time, end)) ||
           shuts_some(by_windows_, time, end) ||
           std::ranges::any_of(barring_, [&](std::size_t group) {
             return shuts_some(by_needed_[group], time, end);
           });
  }
  bool shuts_some(const NodeSets& layer, i64 begin, i64 end) const {
    for (std::size_t p = period_at(begin); p < periods_.size() && periods_[p].begin < end; ++p)
      for (std::size_t w = 0; w < layer.width; ++w)
        if ((chosen_.words[w] & ~layer[p][w]) != 0) return true;
    return false;
  }

  void begin_test(const Nodes& m, i64 j, i64 length) {
    tested_ = &ends_.empty_nodes(m, j);
    length_ = length;
    units_ = m.layout().units(j);
    fewest_ = (units_ + tested_->most - 1) / tested_->most;
    looked_ = 0;
    barring_.clear();
    for (std::size_t group = 0; group < needed_.size(); ++group)
      if (m.layout().demand(j)[needed_[group]] > 0) barring_.push_back(group);
  }
  // The open nodes of a period, for the job tested.
  std::uint64_t open(std::size_t p, std::size_t word) const {
    std::uint64_t left = open_[p][word];
    for (const std::size_t group : barring_) left &= by_needed_[group][p][word];
    return left;
  }
  // How they differ from those of the period before; `opens`: some that can hold a unit.
  Change change(std::size_t p) const {
    const Change of_all = periods_[p].change;
    if (barring_.empty() && (tested_->are_all || of_all != Change::opens)) return of_all;
    Change found = Change::none;
    for (std::size_t w = 0; w < open_.width; ++w) {
      const std::uint64_t now = open(p, w), before = open(p - 1, w);
      if ((now & ~before & tested_->usable.words[w]) != 0) return Change::opens;
      if (now != before) found = Change::closes;
    }
    return found;
  }
  // The first period behind one that opens a node for the job tested. Of those that begin after the
  // end of a run from `after` on, only the first counts; a period is as long as the same nodes are
  // closed.
  std::size_t next_opening(std::size_t first, i64 after) const {
    bool is_last = false;
    for (std::size_t p = first + 1; p < periods_.size(); ++p) {
      const Change changes = change(p);
      if (changes == Change::opens) return p;
      if (changes == Change::none) continue;
      if (is_last) break;
      is_last = periods_[p].begin > after + length_;
    }
    return none;
  }
  // Go on from a period, and a time in it, to the first from which enough nodes for the job tested are
  // open at each time of a run, if they were empty; return whether there is one.
  bool go_to_enough(std::size_t& first, i64& after) {
    looked_ = std::max(looked_, first);
    while (looked_ < periods_.size() && periods_[looked_].begin <= after + length_) {
      if (periods_[looked_].n_open >= fewest_) {
        ++looked_;
        continue;
      }
      // no run that begins before the end of this period has enough
      std::size_t behind = next_opening(looked_, after);
      if (behind == none) {
        go_to_last_opening(first, after);
        behind = next_opening(looked_, after);
      }
      if (behind == none) return false;
      looked_ = first = behind, after = periods_[behind].begin;
    }
    return true;
  }
  // Go on to the last opening up to the period that is looked at.
  void go_to_last_opening(std::size_t& first, i64& after) const {
    for (std::size_t p = looked_; p > first; --p)
      if (change(p) == Change::opens) {
        first = p, after = periods_[p].begin;
        return;
      }
  }
  // Note the nodes that are open from a period until a time. Return whether the job tested fits on
  // those of them that are among some others; if not, others may be noted.
  bool note_open(std::size_t first, i64 until, const std::uint64_t* among) {
    for (std::size_t w = 0; w < open_.width; ++w) for_all_.words[w] = open(first, w);
    if (tested_->units(for_all_, among) < units_) return false;
    for (std::size_t p = first + 1; p < periods_.size() && periods_[p].begin <= until; ++p) {
      std::uint64_t lost = 0;
      for (std::size_t w = 0; w < open_.width; ++w) {
        const std::uint64_t before = for_all_.words[w];
        lost |= before ^ (for_all_.words[w] &= open(p, w));
      }
      if (lost != 0 && tested_->units(for_all_, among) < units_) return false;
    }
    for (std::size_t w = 0; w < open_.width; ++w)
      for_job_.words[w] = for_all_.words[w] & tested_->usable.words[w];
    return true;
  }
  // Choose the nodes of a job that fits on some nodes. All others have no room.
  void choose(Nodes& m, i64 j, const NodeSet& nodes) {
    chosen_ = nodes;
    // in other orders it matters what else is free on the nodes without a free core
    if (m.layout().allocation == Allocation::first_fit) ends_.keep_free(chosen_);
    m.place_on(chosen_, [&](i64 node) { return ends_.room(m, node); }, j);
  }
};

}  // namespace hpc
