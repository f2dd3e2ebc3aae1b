// What Python tells of machines on which jobs share nodes, and is told of them.
#pragma once
#include <memory>

#include "../machines/corun.hpp"
#include "simulation.hpp"

namespace hpc {

class Told;
std::shared_ptr<const Sharing> sharing_of(const Told& told, i64 n_jobs);

// What became of jobs: ends, nodes, how fast they ran beside whom.
void tell(Columns& found, const Corun& machine);
// What is known between two passes, for tests.
void tell_facts(Columns& found, const Corun& machine);
void tell_numbers(Numbers& found, const Corun& machine);

}  // namespace hpc
