// When a job fits on some nodes, as running jobs end.
//
// Most cells of jobs fill their nodes: no unit fits there before the end, and any number that an
// empty node holds after it. Such nodes are counted in sets, 64 at once; on all others free
// resources are added up, cell by cell.
#pragma once
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "../../core/joining.hpp"
#include "../node_set.hpp"
#include "../nodes.hpp"

namespace hpc {

// How many units of one kind empty nodes hold.
class EmptyNodes {
 public:
  NodeSet usable;  // nodes that hold a unit
  bool are_all;    // whether each node does
  i64 most = 1;    // units on a node

  EmptyNodes(const Layout& l, i64 j) : usable(l.n_nodes) {
    for (i64 node = 0; node < l.n_nodes; ++node) {
      const i64 units = l.held(l.capacity + node * l.n_resources, l.demand(j));
      if (units <= 0) continue;
      usable.add(node);
      most = std::max(most, units);
      auto same = std::ranges::find(alike_, units, &Alike::units);
      if (same == alike_.end()) same = alike_.insert(same, {units, NodeSet(l.n_nodes)});
      same->nodes.add(node);
    }
    are_all = usable == NodeSet(l.n_nodes, true);
  }
  // Units on the nodes of a word of a set.
  i64 units(std::size_t word, std::uint64_t nodes) const {
    i64 found = 0;
    for (const Alike& each : alike_)
      found += each.units * number_in(each.nodes.words[word] & nodes);
    return found;
  }
  // The same of all words, on those nodes that are in both sets.
  i64 units(const NodeSet& nodes, const std::uint64_t* also) const {
    i64 found = 0;
    for (std::size_t w = 0; w < nodes.words.size(); ++w) found += units(w, nodes.words[w] & also[w]);
    return found;
  }

 private:
  struct Alike {
    i64 units;
    NodeSet nodes;  // that hold so many
  };
  std::vector<Alike> alike_;
};

class NodeEnds {
 public:
  static constexpr i64 never = -1;

  explicit NodeEnds(const Model& m)
      : rules_(&m.rules),
        by_kind_(index(m.nodes->n_kinds)),
        empty_(m.nodes->n_nodes), shared_(empty_),
        unfilled_(m.nodes->n_nodes),
        emptied_(empty_), written_(empty_) {}

  // Begin with the predicted ends of the running jobs only.
  void begin(i64 now, const OrderedList& running) {
    now_ = now;
    ends_.clear();
    running.each([&](const Entry& e) { note(e.key, e.job); });
  }
  // A job gives back its resources at a time.
  void note(i64 time, i64 j) {
    auto at = ends_.end();
    while (at != ends_.begin() &&
           ((at - 1)->time > time || ((at - 1)->time == time && (at - 1)->job > j)))
      --at;
    ends_.insert(at, {time, j});
    listed_at_ = -1;
  }
  const EmptyNodes& empty_nodes(const Nodes& m, i64 j) {
    auto& known = by_kind_[index(m.layout().kind[index(j)])];
    if (!known) known.emplace(m.layout(), j);
    return *known;
  }
  // The nodes that no job fills which runs beyond a time: any others hold no unit until then.
  const std::uint64_t* unfilled_by(const Nodes& m, i64 time) {
    list(m);
    return unfilled_[ended_by(time)];
  }
  // How many units of a job fit on these nodes now, or at least enough.
  i64 units_now(const Nodes& m, i64 j, const NodeSet& nodes) {
    list(m);
    emptied_.clear(), written_.clear();
    const i64 units = m.layout().units(j);
    i64 found = empty_nodes(m, j).units(nodes, empty_.words.data());
    for (std::size_t w = 0; w < nodes.words.size() && found < units; ++w)
      for (std::uint64_t left = nodes.words[w] & shared_.words[w]; left != 0; left &= left - 1)
        found += m.held(m.free(), static_cast<i64>(w * 64) + std::countr_zero(left), j);
    return found;
  }
  // When a job fits on these nodes, of which enough are unfilled by `stop`: now, or after ends of
  // running jobs. If it does not fit before `stop`, any later time may be returned, or never.
  i64 fits(const Nodes& m, i64 j, const NodeSet& nodes, i64 stop) {
    const EmptyNodes& of_kind = empty_nodes(m, j);
    const i64 units = m.layout().units(j);
    i64 found = units_now(m, j, nodes), last = never;
    if (found >= units) return now_;
    later_.resize(m.free().size());
    JoinedEnds joined(*rules_);
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      if (found < units && ends_[i].time > stop) return ends_[i].time;
      // a job on none of these nodes is skipped, and so is the test after it
      if (!leave(m, j, of_kind, i, nodes, found)) continue;
      if (last == never) joined.begins_span(ends_[i].time);
      last = ends_[i].time;
      if (i + 1 < ends_.size() && joined.begins_span(ends_[i + 1].time) && found >= units)
        return last;
    }
    return found >= units ? last : never;
  }
  // Leave out the nodes without a free core then.
  void keep_free(NodeSet& nodes) const {
    for (std::size_t w = 0; w < nodes.words.size(); ++w)
      nodes.words[w] &= empty_.words[w] | shared_.words[w] | emptied_.words[w] | written_.words[w];
  }
  // (R,) what is free on a node once the jobs have left that had to for the last job to fit.
  const i64* room(const Nodes& m, i64 node) const {
    const i64 at = node * m.layout().n_resources;
    if (emptied_.has(node)) return m.layout().capacity + at;
    return &(written_.has(node) ? later_ : m.free())[index(at)];
  }

 private:
  struct End {  // of a running job
    i64 time, job;
    std::size_t filled_until = 0, cells_until = 0;  // where its part of `filled_` and `cells_` ends
  };
  struct Filled {  // nodes that one job fills
    std::size_t word;
    std::uint64_t nodes;
  };

  const Rules* rules_;
  i64 now_ = 0;
  std::vector<End> ends_;  // by time, then by number
  std::vector<std::optional<EmptyNodes>> by_kind_;
  i64 listed_at_ = -1;     // version of free resources for which these are listed, -1: none
  NodeSet empty_, shared_;      // nodes without jobs; with jobs and a free core
  std::vector<Filled> filled_;  // by end
  std::vector<Cell> cells_;     // all others, by end
  NodeSets unfilled_;           // after so many ends, the nodes that no job fills still
  // Of the last job: nodes that jobs have left which filled them; nodes written in `later_`.
  NodeSet emptied_, written_;
  std::vector<i64> later_;  // (N, R) free resources once some jobs have ended

  void list(const Nodes& m) {
    if (std::exchange(listed_at_, m.version()) == m.version()) return;
    const Layout& l = m.layout();
    empty_.clear(), shared_.clear();
    for (std::size_t w = 0; w < m.open().size(); ++w)
      for (std::uint64_t left = m.open()[w]; left != 0; left &= left - 1) {
        const Cell nothing{static_cast<std::int32_t>(w * 64) + std::countr_zero(left), 0};
        (is_all(m, nothing, l.demand(0)) ? empty_ : shared_).add(nothing.node);
      }
    filled_.clear(), cells_.clear();
    for (End& end : ends_) {
      const std::size_t first = filled_.size();
      for (const Cell& c : m.cells(end.job)) {
        if (!fills(m, end.job, c)) {
          cells_.push_back(c);
          continue;
        }
        const auto word = static_cast<std::size_t>(c.node >> 6);
        if (filled_.size() == first || filled_.back().word != word) filled_.push_back({word, 0});
        filled_.back().nodes |= std::uint64_t{1} << (c.node & 63);
      }
      end.filled_until = filled_.size(), end.cells_until = cells_.size();
    }
    unfilled_.begin(ends_.size() + 1);
    for (std::size_t i = ends_.size(), k = filled_.size(); i-- > 0;) {
      std::copy_n(unfilled_[i + 1], unfilled_.width, unfilled_.words(i));
      for (; k > 0 && (i == 0 || k > ends_[i - 1].filled_until); --k)
        unfilled_.words(i)[filled_[k - 1].word] &= ~filled_[k - 1].nodes;
    }
  }
  // Whether no unit fits on a node before a job ends, and the node is empty then.
  static bool fills(const Nodes& m, i64 j, const Cell& c) {
    return !has_core(m, c.node) && is_all(m, c, m.layout().demand(j));
  }
  static bool has_core(const Nodes& m, i64 node) {
    return m.free()[index(node * m.layout().n_resources)] > 0;
  }
  // Whether nothing is taken of a node but by these units.
  static bool is_all(const Nodes& m, const Cell& c, const i64* demand) {
    const Layout& l = m.layout();
    const i64 first = c.node * l.n_resources;
    for (i64 r = 0; r < l.n_resources; ++r)
      if (m.free()[index(first + r)] + c.units * demand[r] != l.capacity[first + r]) return false;
    return true;
  }
  // How many jobs end up to a time.
  std::size_t ended_by(i64 time) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(ends_, time, {}, &End::time) - ends_.begin());
  }
  // Remove a running job from these nodes, if it has any of them; return whether it has. `found`
  // grows by the units of job `j` that fit then.
  bool leave(const Nodes& m, i64 j, const EmptyNodes& of_kind, std::size_t i, const NodeSet& nodes,
             i64& found) {
    bool meets = false;
    for (std::size_t k = i > 0 ? ends_[i - 1].filled_until : 0; k < ends_[i].filled_until; ++k) {
      const auto [word, all] = filled_[k];
      const std::uint64_t there = all & nodes.words[word];
      if (there == 0) continue;
      meets = true;
      emptied_.words[word] |= there;
      found += of_kind.units(word, there);
    }
    const i64* demand = m.layout().demand(ends_[i].job);
    for (std::size_t k = i > 0 ? ends_[i - 1].cells_until : 0; k < ends_[i].cells_until; ++k) {
      const Cell& c = cells_[k];
      if (!nodes.has(c.node)) continue;
      meets = true;
      if (!written_.has(c.node)) {
        written_.add(c.node);
        const i64 resources = m.layout().n_resources, at = c.node * resources;
        std::copy_n(m.free().begin() + at, resources, later_.begin() + at);
      }
      found -= m.held(later_, c.node, j);
      m.change(later_, {&c, 1}, demand, 1);
      found += m.held(later_, c.node, j);
    }
    return meets;
  }
};

}  // namespace hpc
