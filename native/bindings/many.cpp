// Bindings of look-ahead, and of many simulations in one call.
#include "../places/many.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "../places/foresight.hpp"
#include "../places/futures.hpp"
#include "../places/measures.hpp"
#include "alone.hpp"
#include "arrays.hpp"
#include "beginning.hpp"
#include "parts.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hpc {
namespace {

using JobClasses =
    nb::ndarray<const i64, nb::numpy, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<const double, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
std::shared_ptr<Foresight> make_foresight(std::shared_ptr<Features> features, Table weights,
                                          JobClasses classes, i64 estimator, double tau) {
  if (features->n_jobs != static_cast<i64>(classes.shape(0)) || weights.shape(0) == 0)
    throw nb::value_error("foresight: needs classes of each job, and a vector");
  for (const i64 place : features->places)
    if (index(place) >= weights.shape(1))
      throw nb::value_error("foresight: one weight for each feature");
  if (estimator < 0 || estimator > 3) throw nb::value_error("foresight: there is no such estimator");
  std::vector<std::vector<double>> vectors;
  for (std::size_t v = 0; v < weights.shape(0); ++v)
    vectors.emplace_back(&weights(v, 0), &weights(v, 0) + weights.shape(1));
  std::vector<Foresight::Classes> rows(classes.shape(0));
  for (std::size_t j = 0; j < rows.size(); ++j)
    for (std::size_t level = 0; level < Foresight::levels; ++level) {
      rows[j][level] = classes(j, level);
      if (rows[j][level] < 0) throw nb::value_error("foresight: classes must be 0 or more");
    }
  return std::make_shared<Foresight>(features, vectors, rows,
                                     static_cast<Foresight::Estimator>(estimator), tau);
}

using Vectors = nb::ndarray<const double, nb::numpy, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<double, nb::numpy, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

void simulate(Many& many, Vectors weights, In<i64> metrics, double tau, i64 first, i64 stop,
              Values values) {
  const auto n_slices = static_cast<std::size_t>(many.size());
  const std::size_t n_vectors = weights.shape(0), own = weights.shape(1), size = weights.shape(2);
  if (own != 1 && own != n_slices)
    throw nb::value_error("weights: one vector for each slice, or one for all");
  if (values.shape(0) != n_vectors || values.shape(1) != n_slices ||
      values.shape(2) != metrics.shape(0))
    throw nb::value_error("values: (n_vectors, n_slices, n_metrics)");
  if (first < 0 || stop > static_cast<i64>(n_vectors * n_slices))
    throw nb::value_error("tasks: there are no such tasks");
  std::vector<Metric> chosen;
  for (std::size_t k = 0; k < metrics.shape(0); ++k) {
    if (metrics(k) < 0 || metrics(k) > static_cast<i64>(Metric::utilization))
      throw nb::value_error("metrics: there is no such metric");
    chosen.push_back(static_cast<Metric>(metrics(k)));
  }
  nb::gil_scoped_release released;
  many.simulate({weights.data(), weights.size()}, static_cast<i64>(size), own > 1, chosen, tau, first,
                stop, values.data());
}

using Starts = nb::ndarray<i64, nb::numpy, nb::ndim<2>, nb::c_contig>;

Starts futures_of(std::shared_ptr<Model> model, Rows run_times, In<i64> first, In<i64> number,
                  In<i64> targets, int threads, i64 time, bool due, In<i64> running, In<i64> start,
                  In<i64> predicted, In<i64> promised, const Maybe& history, const Maybe& reserved,
                  const Maybe& looks, const Maybe& cell_first, const Maybe& node, const Maybe& units,
                  const Maybe& ordered_by, const Maybe& expected, const Maybe& corrections,
                  const std::optional<In<double>>& seen) {
  const Futures futures{
      model,
      beginning_of(time, due, running, start, predicted, promised, history, reserved, looks, cell_first,
                   node, units, ordered_by, expected, corrections, seen),
      {targets.data(), targets.size()},
      {first.data(), first.size()},
      {number.data(), as_many(first, number)},
      {run_times.data(), run_times.size()},
      static_cast<i64>(run_times.shape(1))};
  if (run_times.shape(0) != first.shape(0))
    throw nb::value_error("run_times: of the first jobs in each future");
  if (threads < 1) throw nb::value_error("threads: at least 1");
  auto* starts = new std::vector<i64>(first.size() * targets.size());
  nb::capsule owner(starts, [](void* p) noexcept { delete static_cast<std::vector<i64>*>(p); });
  {
    const nb::gil_scoped_release others;
    if (const char* reason = futures.refusal()) throw std::invalid_argument(reason);
    futures.simulate(threads, starts->data());
  }
  return Starts(starts->data(), {first.size(), targets.size()}, owner);
}

}  // namespace

void bind_many(nb::module_& m) {
  m.def("futures", &futures_of, "model"_a, "run_times"_a, "first"_a, "number"_a, "targets"_a,
        "threads"_a, nb::kw_only(), "time"_a, "due"_a, "running"_a, "start"_a, "predicted"_a,
        "promised"_a, "history"_a = nb::none(), "reserved"_a = nb::none(), "looks"_a = nb::none(),
        "cell_first"_a = nb::none(), "node"_a = nb::none(), "units"_a = nb::none(),
        "ordered_by"_a = nb::none(), "expected"_a = nb::none(), "corrections"_a = nb::none(),
        "seen"_a = nb::none(),
        "Simulate M futures of one state, each until the targets have started; return their first "
        "starts, (M, n_targets) int64 [s], -1: never. `model`: of several blocks of jobs. Each future "
        "has those from row `first` on, `number` of them, (M,): first those of the state and others "
        "that all blocks have, whose run times are `run_times`, (M, n) [s]; then those to come. "
        "`targets`: rows of a block. The others are what `Simulation.begin` takes, with `cell_first` "
        "in place of `first`.");
  nb::class_<Foresight>(m, "Foresight", "What look-ahead knows of run times, and its vectors.")
      .def(nb::new_(&make_foresight), "features"_a, "weights"_a, "classes"_a, "estimator"_a, "tau"_a,
           "`weights`: (n_vectors, n). `classes`: (n_jobs, 3) rows of what is known of run times. "
           "`estimator`: the place among ESTIMATES. `tau`: run times below count as this [s].");

  nb::class_<Many>(m, "Many", "Simulations of slices under weights, in one call, on threads.")
      .def(nb::init<std::vector<std::shared_ptr<AnySimulation>>, int>(), "slices"_a, "threads"_a)
      .def("simulate", alone(&simulate), "weights"_a, "metrics"_a, "tau"_a, "first"_a, "stop"_a, "values"_a,
           "Simulate the tasks from `first` to `stop`, exclusive, each from the state of its slice, "
           "and write their metrics. Task s * n_vectors + v is slice s under vector v. `weights`: "
           "(n_vectors, 1 or n_slices, n). `tau`: run times below count as that in bounded "
           "slowdowns [s]. `values`: (n_vectors, n_slices, n_metrics).");
}

}  // namespace hpc
