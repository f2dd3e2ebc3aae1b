// What Python tells of machines on which jobs share nodes, and is told of them.
#pragma once
#include <memory>

#include "../machines/corun.hpp"
#include "../core/simulator.hpp"
#include "../places/simulation.hpp"

namespace hpc {

class Told;
Belief belief_of(const Told& told);
std::shared_ptr<const Sharing> sharing_of(const Told& told, i64 n_jobs);

// What became of jobs: ends, and nodes; from one place on the spells in which they ran at one rate.
void tell(Columns& found, const Corun& machine);
Columns spells_of(const Corun& machine, i64 since);
// Who has room beside, and on how many nodes each; nodes without a job, and open ones.
Columns neighbours_of(const Simulator<Corun>& sim);

}  // namespace hpc
