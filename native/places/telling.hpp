// What is told of a machine as columns: what became of jobs there, and what whoever says who starts
// may know.
#pragma once
#include <array>
#include <span>

#include "../core/simulator.hpp"
#include "../machines/corun.hpp"
#include "../machines/limited.hpp"
#include "../machines/nodes.hpp"
#include "simulation.hpp"

namespace hpc {

// Add the cells of so many jobs or runs, one behind the other, and where those of each begin.
template <class F>
void add_cells(Columns& found, std::array<const char*, 3> names, std::size_t n, F cells_of) {
  std::vector<i64> first{0}, node, units;
  for (std::size_t i = 0; i < n; ++i) {
    const std::span<const Cell> cells = cells_of(static_cast<i64>(i));
    for (const Cell& c : cells) node.push_back(c.node), units.push_back(c.units);
    first.push_back(static_cast<i64>(node.size()));
  }
  found.insert(found.end(), {{names[0], first}, {names[1], node}, {names[2], units}});
}
inline constexpr std::array<const char*, 3> of_jobs{"cell_first", "cell_node", "cell_units"};
inline constexpr std::array<const char*, 3> of_lost{"lost_first", "lost_node", "lost_units"};

// -- what became of jobs ---------------------------------------------------------------------------

template <Machine M>
void tell(Columns&, const Simulator<M>&) {}
// The nodes that each has had, and those of lost runs.
inline void tell(Columns& found, const Simulator<Nodes>& s) {
  add_cells(found, of_jobs, s.progress.size(), [&](i64 j) {
    return s.of(j).start < 0 ? std::span<const Cell>{} : s.machine.cells(j);
  });
  add_cells(found, of_lost, s.lost.size(), [&](i64 i) { return s.machine.lost_cells(i); });
}
// Ends, and nodes.
inline void tell(Columns& found, const Simulator<Corun>& s) {
  const Corun& m = s.machine;
  std::vector<i64> end, node;
  for (i64 j = 0; j < m.n_jobs(); ++j) {
    end.push_back(m.task(j).end);
    node.insert(node.end(), m.cells(j).begin(), m.cells(j).end());
  }
  found.insert(found.end(), {{"end", end}, {"cell_node", node}});
}
// Of each job its level, its nodes, and what was predicted at the highest level; of nodes their
// states, now and before.
inline void tell(Columns& found, const Simulator<Limited>& s) {
  const Limited& m = s.machine;
  std::vector<i64> level, at_highest, node;
  for (std::size_t j = 0; j < m.tasks.size(); ++j) {
    level.push_back(m.tasks[j].level);
    at_highest.push_back(m.tasks[j].predicted);
    // those of a job that waits are the ones that were chosen last
    const auto cells = m.cells(static_cast<i64>(j));
    node.insert(node.end(), cells.begin(), cells.end());
  }
  std::array<std::vector<i64>, 4> log;
  for (const NodeInterval& each : m.log) {
    log[0].push_back(each.node), log[1].push_back(each.state);
    log[2].push_back(each.begin), log[3].push_back(each.end);
  }
  std::vector<i64> state, since;
  for (const LimitedNode& each : m.nodes)
    state.push_back(static_cast<i64>(each.state)), since.push_back(each.since);
  found.insert(found.end(),
               {{"level", level}, {"predicted_at_highest", at_highest}, {"cell_node", node},
                {"log_node", log[0]}, {"log_state", log[1]}, {"log_begin", log[2]},
                {"log_end", log[3]}, {"node_state", state}, {"node_since", since},
                {"kills", {m.kills}}});
}

// -- for whoever says who starts: of nodes, and those of the jobs that run -------------------------

template <Machine M>
void tell_view(Columns&, const Simulator<M>&, const std::vector<i64>&) {}
inline void tell_view(Columns& found, const Simulator<Nodes>& s, const std::vector<i64>& running) {
  const Filling& filling = s.machine.filling();
  std::vector<i64> drawn{filling.random_state()};
  drawn.insert(drawn.end(), filling.order().begin(), filling.order().end());
  found.insert(found.end(),
               {{"free", s.machine.free()}, {"asked", filling.asked()}, {"drawn", drawn}});
  add_cells(found, of_jobs, running.size(),
            [&](i64 k) { return s.machine.cells(running[index(k)]); });
}
inline void tell_view(Columns& found, const Simulator<Limited>& s, const std::vector<i64>& running) {
  const Limited& m = s.machine;
  std::vector<i64> free, first{0}, node;
  for (const LimitedNode& each : m.nodes) free.push_back(each.job < 0);
  for (const i64 j : running) {
    node.insert(node.end(), m.cells(j).begin(), m.cells(j).end());
    first.push_back(static_cast<i64>(node.size()));
  }
  found.insert(found.end(),
               {{"free", free}, {"changes", {m.next_change()}}, {"cell_first", first}, {"cell_node", node}});
}

// -- where jobs share nodes ------------------------------------------------------------------------

// The spells, from one place on, in which jobs ran at one rate.
inline Columns spells_of(const Corun& m, i64 since) {
  const auto n = static_cast<i64>(m.spells().size());
  std::vector<i64> job, beside, begin, end;
  for (i64 i = std::clamp(since, i64{0}, n); i < n; ++i) {
    const Spell& s = m.spells()[index(i)];
    job.push_back(s.job), beside.push_back(s.beside), begin.push_back(s.begin), end.push_back(s.end);
  }
  return {{"job", job}, {"beside", beside}, {"begin", begin}, {"end", end}};
}
// Who has room beside, and on how many nodes each; nodes without a job, and open ones.
inline Columns neighbours_of(const Simulator<Corun>& s) {
  const Corun& m = s.machine;
  const std::vector<i64> job = m.neighbours(s.running, s.progress);
  std::vector<i64> room;
  for (const i64 j : job) room.push_back(m.room_beside(j));
  return {{"job", job}, {"room", room}, {"nodes", {m.n_idle(), m.n_open()}}};
}

}  // namespace hpc
