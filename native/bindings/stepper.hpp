// Environments, for the module.
#pragma once
#include <nanobind/nanobind.h>

namespace hpc {

void bind_stepper(nanobind::module_& m);

}  // namespace hpc
