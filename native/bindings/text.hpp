// Texts, for the module.
#pragma once
#include <nanobind/nanobind.h>

namespace hpc {

void bind_text(nanobind::module_& m);

}  // namespace hpc
