// The parts of the module besides simulations, each in its own file.
#pragma once
#include <nanobind/nanobind.h>

namespace hpc {

void bind_elementary(nanobind::module_& m);
void bind_listing(nanobind::module_& m);
void bind_many(nanobind::module_& m);
void bind_model(nanobind::module_& m);
void bind_past(nanobind::module_& m);
void bind_regression(nanobind::module_& m);
void bind_stepper(nanobind::module_& m);
void bind_text(nanobind::module_& m);

}  // namespace hpc
