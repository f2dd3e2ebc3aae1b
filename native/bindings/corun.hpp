// Reads the arguments for machines on which jobs share nodes.
#pragma once
#include <memory>

#include "../machines/corun/sharing.hpp"

namespace hpc {

class Told;
Belief belief_of(const Told& told);
std::shared_ptr<const Sharing> sharing_of(const Told& told, i64 n_jobs);

}  // namespace hpc
