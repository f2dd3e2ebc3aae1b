// Bindings of nodes as dispatchers see them.
#include "../machines/nodes/listing.hpp"

#include <nanobind/stl/shared_ptr.h>

#include <memory>

#include "../places/simulation.hpp"
#include "arrays.hpp"
#include "parts.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hpc {
namespace {

struct OwnedListing {
  std::shared_ptr<Layout> layout;
  Listing listing;

  i64 checked(i64 j) const {
    if (j < 0 || j >= layout->n_rows) throw nb::index_error("no such row");
    return j;
  }
};
std::span<const i64> all(const In<i64>& values) { return {values.data(), values.size()}; }

std::shared_ptr<OwnedListing> make(std::shared_ptr<Layout> layout, Rows free, In<i64> asked, i64 drawn) {
  const auto nodes = static_cast<std::size_t>(layout->n_nodes);
  const auto resources = static_cast<std::size_t>(layout->n_resources);
  if (free.shape(0) != nodes || free.shape(1) != resources || asked.size() != resources)
    throw nb::value_error("free: (N, R); asked: (R,)");
  Listing listing(*layout, {free.data(), free.size()}, all(asked), drawn);
  return std::make_shared<OwnedListing>(std::move(layout), std::move(listing));
}
Out<i64> fits(OwnedListing& o, In<i64> rows) {
  std::vector<i64> fitting;
  for (const i64 j : all(rows))
    if (o.listing.has_room(o.checked(j))) fitting.push_back(j);
  return owned(std::move(fitting));
}
Out<i64> start(OwnedListing& o, In<i64> rows) {
  std::vector<i64> started;
  for (const i64 j : all(rows))
    if (o.listing.cells(o.checked(j)).empty() && o.listing.start(j)) started.push_back(j);
  return owned(std::move(started));
}
void hold(OwnedListing& o, i64 j, In<i64> node, In<i64> units) {
  if (node.size() != units.size()) throw nb::value_error("units: one number for each node");
  for (std::size_t k = 0; k < node.size(); ++k) {
    if (node(k) < 0 || node(k) >= o.layout->n_nodes) throw nb::index_error("no such node");
    o.listing.hold(o.checked(j), {static_cast<std::int32_t>(node(k)), static_cast<std::int32_t>(units(k))});
  }
}
Out<i64> plan(OwnedListing& o, In<i64> order, In<i64> duration, In<i64> end, i64 time) {
  if (duration.size() != order.size() ||
      order.size() + end.size() != static_cast<std::size_t>(o.layout->n_rows))
    throw nb::value_error("duration: one for each row of the order; end: one for each later row");
  for (const i64 j : all(order))
    if (j < 0 || index(j) >= order.size()) throw nb::index_error("no such row");
  std::vector<i64> until(order.size(), forever);
  until.insert(until.end(), end.data(), end.data() + end.size());
  return owned(o.listing.plan(all(order), all(duration), std::move(until), time));
}
nb::typed<nb::dict, nb::str, Out<i64>> cells(const OwnedListing& o, In<i64> rows) {
  std::vector<i64> first{0}, node, units;
  for (const i64 j : all(rows)) {
    for (const Cell& c : o.listing.cells(o.checked(j)))
      node.push_back(c.node), units.push_back(c.units);
    first.push_back(static_cast<i64>(node.size()));
  }
  return as_arrays<i64>({{"first", first}, {"node", node}, {"units", units}});
}

}  // namespace

void bind_listing(nb::module_& m) {
  nb::class_<OwnedListing>(m, "Listing", "Nodes at a pass, and what starts if jobs are taken in an order.")
      .def(nb::new_(&make), "layout"_a, "free"_a, "asked"_a, "drawn"_a = 0,
           "`free`: (N, R) now. `asked`: (R,) what the jobs that wait ask for, where the allocation "
           "goes by that. `drawn`: how many random orders have been drawn since that of the layout.")
      .def("fits", &fits, "rows"_a, "Return those of the jobs of which all units find room now.")
      .def("start", &start, "rows"_a, "Start the jobs that fit, one after the other; return them.")
      .def("hold", &hold, "row"_a, "node"_a, "units"_a, "A job that runs has units there.")
      .def("plan", &plan, "order"_a, "duration"_a, "end"_a, "time"_a,
           "Return the starts [s], from `time` on, of the first rows in that order, -1 of those that "
           "never fit. At each time all that fit start. `duration` [s] of each; `end` [s] of the "
           "rows that follow, which run.")
      .def("cells", &cells, "rows"_a, "Return where the cells of jobs begin, their nodes and units.");
}

}  // namespace hpc
