// The resources of a machine of nodes, and the demands of jobs. It never changes, and many
// simulations share it.
//
// A job requests units, each with the same demand; a unit lies on one node. A node holds as many
// units as its scarcest resource allows, and at most the job's limit of units on one node. Resource
// 0 is cores: each unit needs one, and the simulator counts free cores as units.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "../../base/numbers.hpp"

namespace hpc {

// The order in which nodes are filled; the values are those of hpcgym.scheduler.allocations.
enum class Allocation : std::uint8_t {
  first_fit,
  best_fit,
  worst_fit,
  random,
  balanced,
  weighted,
  hybrid
};

// A resource of at least this amount never runs out, as partitions; a job with at least this limit
// may have any number of units on a node.
inline constexpr i64 any_number = i64{1} << 40;

// N nodes, R resources. The memory belongs to the caller, and must outlive the layout.
struct Layout {
  i64 n_nodes = 0, n_resources = 0;
  i64 n_partitions = 0;           // the last of the resources
  i64 n_rows = 0;                 // jobs, then pseudo-jobs that hold nodes
  // (n_rows, 2 + R) units, demand of each, and limit of units on one node
  const i64* needs = nullptr;
  const i64* capacity = nullptr;  // (N, R)
  // (n_rows, R) demand of all units times the requested time plus a second; only for allocations
  // that use it
  const i64* asks = nullptr;
  Allocation allocation = Allocation::first_fit;
  i64 random_state = 1;        // at the beginning
  const i64* order = nullptr;  // (N,) initial filling order; nullptr: by number

  std::vector<double> total;       // (R,) of the machine; 0 for resources that never run out
  std::vector<bool> scarce;        // (R,) some nodes have none of it
  std::vector<std::int32_t> kind;  // (n_rows,) jobs of one kind have units of the same demand
  i64 n_kinds = 0;
  std::vector<bool> single;        // (n_kinds,) a unit is one core, and nothing else

  // Compute the members that follow from the others.
  void complete() {
    const std::size_t resources = index(n_resources);
    total.assign(resources, 0), scarce.assign(resources, false);
    for (i64 r = 0; r < n_resources; ++r) {
      i64 sum = 0, most = 0;
      bool lacks = false;
      for (i64 node = 0; node < n_nodes; ++node) {
        const i64 there = capacity[node * n_resources + r];
        sum += there;
        most = std::max(most, there);
        lacks |= there == 0;
      }
      if (most < any_number) total[index(r)] = static_cast<double>(std::max(sum, i64{1}));
      scarce[index(r)] = lacks && total[index(r)] > 0;
    }
    number_kinds();
  }

  // The same for some rows only.
  Layout part(i64 first, i64 n) const {
    Layout some = *this;
    some.n_rows = n;
    some.needs += first * (2 + n_resources);
    if (asks) some.asks += first * n_resources;
    some.kind.assign(kind.begin() + first, kind.begin() + first + n);
    return some;
  }

  std::span<const i64> all() const { return {capacity, index(n_nodes * n_resources)}; }
  i64 units(i64 j) const { return needs[j * (2 + n_resources)]; }
  bool is_single(i64 j) const { return single[index(kind[index(j)])]; }
  // (R + 1,) of a unit; then the limit of units on one node.
  const i64* demand(i64 j) const { return needs + j * (2 + n_resources) + 1; }

  // The resource that stands for the partition of a job, -1 if it may use any node.
  i64 partition(i64 j) const {
    for (i64 r = n_resources - n_partitions; r < n_resources; ++r)
      if (demand(j)[r] > 0) return r;
    return -1;
  }

  // How many units of a demand fit into `room` of a node, at most `most`.
  i64 held(const i64* room, const i64* demand, i64 most) const {
    most = std::min(most, demand[n_resources]);
    for (i64 r = 0; r < n_resources; ++r) {
      const i64 need = demand[r], there = room[r];
      // divisions are slow, and seldom needed
      if (there < need * most) most = there < need ? 0 : need == 1 ? there : there / need;
    }
    return most;
  }
  // The same without a maximum.
  i64 held(const i64* room, const i64* demand) const {
    if (room[0] <= 0) return 0;
    i64 most = std::min(demand[n_resources], demand[0] == 1 ? room[0] : room[0] / demand[0]);
    for (i64 r = 1; r < n_resources; ++r) {
      const i64 need = demand[r], there = room[r];
      if (there < need * most) most = there < need ? 0 : need == 1 ? there : there / need;
    }
    return most;
  }

 private:
  void number_kinds() {
    std::vector<std::int32_t> rows(index(n_rows));
    for (std::size_t j = 0; j < rows.size(); ++j) rows[j] = static_cast<std::int32_t>(j);
    const auto less = [&](std::int32_t a, std::int32_t b) {
      const i64 *first = demand(a), *second = demand(b);
      return std::lexicographical_compare(first, first + n_resources + 1, second,
                                          second + n_resources + 1);
    };
    std::sort(rows.begin(), rows.end(), less);
    kind.resize(rows.size());
    n_kinds = 0;
    single.clear();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i == 0 || less(rows[i - 1], rows[i])) {
        ++n_kinds;
        const i64* of_unit = demand(rows[i]);
        single.push_back(of_unit[0] == 1 && of_unit[n_resources] >= any_number &&
                         std::all_of(of_unit + 1, of_unit + n_resources,
                                     [](i64 need) { return need == 0; }));
      }
      kind[index(rows[i])] = static_cast<std::int32_t>(n_kinds - 1);
    }
  }
};

}  // namespace hpc
