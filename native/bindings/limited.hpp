// Reads the arguments for a machine under limits.
#pragma once
#include "../core/model.hpp"
#include "../machines/limited/layout.hpp"

namespace hpc {

class Told;

std::shared_ptr<const LimitedLayout> limited_of(const Told& told, i64 n_jobs);
Limits limits_of(const Told& told, i64 n_nodes);
// The reason why this cannot be simulated; nullptr if it can.
const char* refusal(const LimitedLayout& layout, const Model& model);

}  // namespace hpc
