// What Python tells of a machine under limits, and what it is told of one.
#pragma once
#include "../machines/limited/layout.hpp"
#include "../places/simulation.hpp"

namespace hpc {

class Told;
class Limited;

std::shared_ptr<const LimitedLayout> limited_of(const Told& told, i64 n_jobs);
Limits limits_of(const Told& told, i64 n_nodes);
// Why nothing can be simulated so; nullptr if it can.
const char* refusal(const LimitedLayout& layout, const Model& model);
// Of each job its level, its nodes, and what was predicted at the highest level; of nodes their
// states, now and before.
void tell(Columns& found, const Limited& machine);
// What whoever says who starts may know: of nodes, and those of the jobs that run.
void tell_view(Columns& found, const Limited& machine, const std::vector<i64>& running);

}  // namespace hpc
