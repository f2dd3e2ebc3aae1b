// Whether a simulation can begin with given running and waiting jobs.
#pragma once
#include <algorithm>
#include <vector>

#include "../core/simulator.hpp"
#include "../machines/nodes.hpp"

namespace hpc {

inline const char* refusal_of_cells(const Nodes& nodes, const Layout& l, const Beginning& b) {
  if (b.first.empty() && b.reserved.empty()) return nullptr;
  std::vector<i64> jobs{b.running.begin(), b.running.end()};
  for (i64 j = 0; j < b.number && !b.reserved.empty(); ++j)
    if (std::ranges::find(b.running, j) == b.running.end()) jobs.push_back(j);
  if (b.first.size() != jobs.size() + 1 || b.node.size() != b.units.size() ||
      b.first.front() != 0 || b.first.back() != static_cast<i64>(b.node.size()) ||
      !std::is_sorted(b.first.begin(), b.first.end()))
    return "begin: cells of each job that runs or has a reservation";
  std::vector<i64> free = nodes.free();
  for (std::size_t k = 0; k < jobs.size(); ++k) {
    const i64 j = jobs[k];
    i64 units = 0;
    for (std::size_t c = index(b.first[k]); c < index(b.first[k + 1]); ++c) {
      if (!is_between(b.node[c], 0, l.n_nodes - 1) || !is_between(b.units[c], 1, l.units(j)))
        return "begin: no such node, or no such number of units";
      units += b.units[c];
      for (i64 r = 0; k < b.running.size() && r < l.n_resources; ++r)
        free[index(b.node[c] * l.n_resources + r)] -= b.units[c] * l.demand(j)[r];
    }
    if (units != l.units(j)) return "begin: cells with all units of each job";
  }
  const bool fits = std::ranges::all_of(free, [](i64 left) { return left >= 0; });
  return fits ? nullptr : "begin: running jobs exceed the nodes";
}
// The reason why it cannot begin so; nullptr if it can.
template <Machine M>
const char* refusal(const Simulator<M>& s, const Beginning& b, bool again) {
  const bool some_came = s.arrivals ? !s.queue.empty() : s.next > 0;
  if (some_came || (s.started > 0 && !again)) return "begin: the simulation has begun already";
  if (b.number > s.model.n_jobs) return "begin: more jobs than the model has";
  if (!b.history.empty() &&
      static_cast<i64>(b.history.size()) != s.model.n_users * s.model.rules.kept())
    return "begin: history has run times of each user";
  i64 taken = 0;
  std::vector<bool> runs(index(b.number));
  for (const i64 j : b.running) {
    if (runs[index(j)]) return "begin: a job runs twice";
    runs[index(j)] = true;
    taken += s.model.jobs[j].processors;
  }
  if (M::alike && taken > s.model.capacity) return "begin: running jobs exceed the machine";
  if constexpr (std::is_same_v<M, Nodes>)
    if (s.started == 0) return refusal_of_cells(s.machine, *s.model.nodes, b);
  return nullptr;
}

}  // namespace hpc
