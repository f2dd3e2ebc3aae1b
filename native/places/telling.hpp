// Columns about a simulation: the schedule, the view of an agent, and the state at the end of a
// pass. Each kind of machine adds its own.
#pragma once
#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "../machines/corun.hpp"
#include "../machines/limited.hpp"
#include "../machines/nodes.hpp"
#include "../strategies/scheduled.hpp"
#include "simulation.hpp"

namespace hpc {

// Add the cells of n jobs or runs, one after the other, and where those of each begin.
template <class F>
void add_cells(Columns& found, std::array<const char*, 3> names, std::size_t n, F cells_of) {
  std::vector<i64> first(n + 1);
  for (std::size_t i = 0; i < n; ++i)
    first[i + 1] = first[i] + static_cast<i64>(cells_of(static_cast<i64>(i)).size());
  // there may be many, and the first write to memory takes longest
  std::vector<i64> node(index(first[n])), units(node.size());
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t k = index(first[i]);
    for (const Cell& c : cells_of(static_cast<i64>(i))) node[k] = c.node, units[k++] = c.units;
  }
  found.emplace_back(names[0], std::move(first));
  found.emplace_back(names[1], std::move(node));
  found.emplace_back(names[2], std::move(units));
}
inline constexpr std::array<const char*, 3> of_jobs{"cell_first", "cell_node", "cell_units"};
inline constexpr std::array<const char*, 3> of_lost{"lost_first", "lost_node", "lost_units"};

// -- the schedule --------------------------------------------------------------------------------

template <Machine M>
void tell(Columns&, const Simulator<M>&) {}
// The nodes of each job, and those of lost runs.
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
// Of each job its level, nodes, and predicted run time at the highest level; of nodes their states,
// now and before.
inline void tell(Columns& found, const Simulator<Limited>& s) {
  const Limited& m = s.machine;
  std::vector<i64> level, at_highest, node;
  for (std::size_t j = 0; j < m.tasks.size(); ++j) {
    level.push_back(m.tasks[j].level);
    at_highest.push_back(m.tasks[j].predicted);
    // for waiting jobs, the nodes chosen last
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

template <Machine M>
Columns schedule_of(const Scheduled<M>& of) {
  const Simulator<M>& s = of.sim_;
  Columns found;
  const auto add = [&](const char* name, auto value) {
    std::vector<i64> column(s.progress.size());
    for (std::size_t j = 0; j < column.size(); ++j) column[j] = value(static_cast<i64>(j));
    found.emplace_back(name, std::move(column));
  };
  add("start", [&](i64 j) { return s.of(j).start; });
  add("predicted", [&](i64 j) { return s.of(j).predicted; });
  add("promised", [&](i64 j) { return s.of(j).promised; });
  add("corrections", [&](i64 j) { return i64{s.of(j).corrections}; });
  add("backfilled", [&](i64 j) { return i64{s.of(j).backfilled}; });
  add("number", [&](i64 j) { return i64{s.of(j).number}; });
  if (s.arrivals) add("submit", [&](i64 j) { return s.job(j).submit; });
  if (s.has_levels || (s.stops && s.stops->cancels()))
    add("run", [&](i64 j) { return s.job(j).run; });
  if (s.has_levels) add("requested", [&](i64 j) { return s.job(j).requested; });
  if (of.answers_.learner && of.answers_.learner->predicts_order())
    found.push_back({"ordered_by", of.answers_.learner->ordered_by});
  if (std::is_same_v<M, Nodes> || s.stops) {
    std::vector<i64> lost, since, until;
    for (const LostRun& run : s.lost)
      lost.push_back(run.job), since.push_back(run.start), until.push_back(run.end);
    found.insert(found.end(), {{"lost_job", lost}, {"lost_start", since}, {"lost_end", until}});
  }
  tell(found, s);
  return found;
}

// -- the view of an agent that starts jobs: nodes, and those of running jobs ---------------------

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

template <Machine M>
Columns view_of(const Scheduled<M>& of) {
  const Simulator<M>& s = of.sim_;
  std::vector<i64> queued, duration, running, start, end;
  s.queue.jobs.each([&](const Entry& e) {
    queued.push_back(e.job), duration.push_back(e.span);
  });
  std::vector<Entry> runs;  // those that are to end together in the order of their starts
  s.each_running_job([&](const Entry& e) { runs.push_back(e); });
  std::ranges::sort(runs, {}, [&](const Entry& e) { return std::pair(e.key, s.of(e.job).number); });
  for (const Entry& e : runs)
    running.push_back(e.job), start.push_back(s.of(e.job).start), end.push_back(e.key);
  Columns found{{"queued", queued}, {"duration", duration}, {"running", running},
                {"running_start", start}, {"running_end", end}};
  if (s.arrivals) {  // the schedule decides arrivals
    std::vector<i64> submit;
    for (const i64 j : queued) submit.push_back(s.job(j).submit);
    found.push_back({"submit", submit});
  }
  if (const i64* times = of.answers_.learned_times()) {
    std::vector<i64> ordered_by;
    for (const i64 j : queued) ordered_by.push_back(times[j]);
    found.push_back({"ordered_by", ordered_by});
  }
  tell_view(found, s, running);
  return found;
}

// -- for observers -------------------------------------------------------------------------------

// The state at the end of a pass.
template <Machine M>
Columns moment_of(const Scheduled<M>& of) {
  const Simulator<M>& s = of.sim_;
  Columns found{{"time", {s.time}}, {"submitted", {s.next}}, {"started", {s.started}}, {"free", {s.free}},
                {"head", {s.head}}, {"shadow", {s.shadow.time}}, {"extra", {s.shadow.extra}}};
  if (s.arrivals) found.push_back({"came", s.queue.came});
  if (s.stops) {
    std::vector<i64> jobs;
    for (const Suspended& own : s.stops->suspended) jobs.push_back(own.job);
    found.push_back({"given_up", jobs});
  }
  if constexpr (Scheduled<M>::plans)
    if (of.planned_) {
      const Looks& l = s.looks;
      found.push_back({"looks", {l.due, l.next, l.waited, l.had_planned, l.all_due}});
      found.push_back({"next_look", {l.next}});
    }
  return found;
}
// The reservation of each waiting job, or what the last look has planned; empty if all are to be made
// anew, or not all have been.
template <Machine M>
Columns reserved_of(const Scheduled<M>& of) {
  const Simulator<M>& s = of.sim_;
  Columns found;
  if constexpr (Scheduled<M>::plans) {
    if (of.conservative_ && !s.expired) {
      const auto& plan = of.conservative_->plan;
      std::vector<i64> at;
      for (i64 j = 0; j < s.model.n_jobs; ++j) at.push_back(plan.reserved(j));
      found.push_back({"reserved", at});
      if constexpr (std::is_same_v<M, Nodes>)
        add_cells(found, of_jobs, at.size(), [&](i64 j) {
          return s.of(j).start < 0 ? plan.placed(j) : s.machine.cells(j);
        });
    } else if (of.planned_ && of.planned_->tells_plan(s)) {
      std::vector<i64> at;
      for (i64 j = 0; j < s.model.n_jobs; ++j) at.push_back(of.planned_->planned_start(s, j));
      found.push_back({"planned", at});
      found.push_back({"planned_at", {of.planned_->planned_at()}});
    }
  }
  return found;
}

// -- shared nodes --------------------------------------------------------------------------------

// The spells, from one index on, in which jobs ran at one rate.
inline Columns spells_of(const Corun& m, i64 since) {
  const auto n = static_cast<i64>(m.spells().size());
  std::vector<i64> job, beside, begin, end;
  for (i64 i = std::clamp(since, i64{0}, n); i < n; ++i) {
    const Spell& s = m.spells()[index(i)];
    job.push_back(s.job), beside.push_back(s.beside), begin.push_back(s.begin), end.push_back(s.end);
  }
  return {{"job", job}, {"beside", beside}, {"begin", begin}, {"end", end}};
}
// Jobs with room beside them, and on how many nodes; nodes without a job, and open ones.
inline Columns neighbours_of(const Simulator<Corun>& s) {
  const Corun& m = s.machine;
  const std::vector<i64> job = m.neighbours(s.running, s.progress);
  std::vector<i64> room;
  for (const i64 j : job) room.push_back(m.room_beside(j));
  return {{"job", job}, {"room", room}, {"nodes", {m.n_idle(), m.n_open()}}};
}

}  // namespace hpc
