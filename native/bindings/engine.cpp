// What Python sees of the engine: hpcgym._engine.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "../answers/program.hpp"
#include "../core/weights.hpp"
#include "../machines/nodes/layout.hpp"
#include "../places/foresight.hpp"
#include "../places/many.hpp"
#include "../places/measures.hpp"
#include "../places/simulation.hpp"
#include "arrays.hpp"
#include "corun.hpp"
#include "limited.hpp"
#include "parts.hpp"
#include "told.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace hpc;

namespace {

using JobRows = nb::ndarray<const i64, nb::numpy, nb::shape<-1, 5>, nb::c_contig, nb::device::cpu>;
using OutageRows =
    nb::ndarray<const i64, nb::numpy, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;
using ScoreRows =
    nb::ndarray<const double, nb::numpy, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

std::vector<i64> listed(const In<i64>& rows) {
  return {rows.data(), rows.data() + rows.shape(0)};
}
template <class Rows, class Values>
std::size_t as_many(const Rows& rows, const Values& values) {
  if (rows.shape(0) != values.shape(0)) throw nb::value_error("one value for each row");
  return rows.shape(0);
}
const char* name_of(Asked asked) {
  constexpr std::array<const char*, 7> names{
      "", "order", "job", "prediction", "correction", "renewal", "starts"};
  return names[static_cast<std::size_t>(asked)];
}

using ByName = nb::typed<nb::dict, nb::str, nb::any>;

using JobClasses =
    nb::ndarray<const i64, nb::numpy, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<const double, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Features and the arrays that they look at.
struct OwnedFeatures {
  Features features;
  Table parts;
  In<double> serial;
  In<i64> seconds;
};

std::shared_ptr<Features> make_features(Table parts, In<i64> waiting, In<i64> places,
                                        In<double> serial, In<i64> seconds,
                                        const std::optional<In<i64>>& formulas,
                                        std::array<i64, 2> by_usage) {
  const std::size_t n = parts.shape(0), size = parts.shape(1);
  if (waiting.shape(0) != size || places.shape(0) != size)
    throw nb::value_error("features: one row of waiting and of places for each column of parts");
  if (seconds.shape(0) != n || (serial.shape(0) > 0 && serial.shape(0) != n))
    throw nb::value_error("features: parts, serial and seconds of each job");
  for (std::size_t k = 0; k < size; ++k)
    if (waiting(k) < 0 || waiting(k) > 3 || places(k) < 0)
      throw nb::value_error("features: waiting from 0 to 3, and places from 0 on");
  auto owned = std::make_shared<OwnedFeatures>(
      OwnedFeatures{{static_cast<i64>(n), parts.data(), {}, {}, nullptr, seconds.data(), {}, by_usage},
                    parts, serial, seconds});
  if (serial.shape(0) > 0) owned->features.serial = serial.data();
  for (std::size_t k = 0; k < size; ++k) {
    owned->features.waiting.push_back(static_cast<Waiting>(waiting(k)));
    owned->features.places.push_back(places(k));
  }
  for (std::size_t k = 0; formulas && k < size; ++k) {
    if (formulas->shape(0) != size || (*formulas)(k) < 0 ||
        (*formulas)(k) >= static_cast<i64>(n_features))
      throw nb::value_error("formulas: of each feature");
    owned->features.formulas.push_back((*formulas)(k));
  }
  return {owned, &owned->features};
}

// The nodes of a machine and the arrays that they look at.
struct OwnedLayout {
  Layout layout;
  Rows needs, capacity;
  std::optional<Rows> asks;
  std::optional<In<i64>> order;
};

std::shared_ptr<Layout> make_layout(Rows needs, Rows capacity, i64 allocation, i64 random_state,
                                    std::optional<Rows> asks, std::optional<In<i64>> order) {
  auto owned = std::make_shared<OwnedLayout>();
  owned->needs = needs, owned->capacity = capacity, owned->asks = asks;
  owned->order = order;
  Layout& l = owned->layout;
  l.n_nodes = static_cast<i64>(capacity.shape(0));
  l.n_resources = static_cast<i64>(capacity.shape(1));
  l.n_rows = static_cast<i64>(needs.shape(0));
  l.needs = needs.data(), l.capacity = capacity.data();
  l.asks = asks ? asks->data() : nullptr;
  if (allocation < 0 || allocation > static_cast<i64>(Allocation::hybrid))
    throw nb::value_error("allocation: there is no such");
  l.allocation = static_cast<Allocation>(allocation);
  l.random_state = random_state;
  if (const char* reason = refusal(l, static_cast<i64>(needs.shape(1))))
    throw nb::value_error(reason);
  if (asks && (asks->shape(0) != needs.shape(0) || asks->shape(1) != capacity.shape(1)))
    throw nb::value_error("asks: of each job, of each resource");
  if (order) {
    std::vector<bool> there(capacity.shape(0));
    for (std::size_t k = 0; k < order->shape(0); ++k)
      if ((*order)(k) >= 0 && (*order)(k) < l.n_nodes) there[index((*order)(k))] = true;
    if (order->shape(0) != there.size() || std::find(there.begin(), there.end(), false) != there.end())
      throw nb::value_error("order: of each node");
    l.order = order->data();
  }
  l.complete();
  return {owned, &owned->layout};
}

// A model and the arrays that it looks at.
struct Owned {
  Model model;
  JobRows jobs;
  std::optional<In<i64>> keys, second_keys, predicted, users;
  std::optional<ScoreRows> scores, second_scores;
  std::optional<In<double>> held;
  std::vector<Told> told;
  std::shared_ptr<Layout> nodes;
  std::optional<OutageRows> outages;
};

template <class T, class Array>
const T* checked(const std::optional<Array>& array, i64 n, const char* name) {
  if (!array) return nullptr;
  if (static_cast<i64>(array->shape(0)) != n)
    throw nb::value_error((std::string(name) + ": one for each job").c_str());
  return reinterpret_cast<const T*>(array->data());
}

std::shared_ptr<Model> make_model(
    JobRows jobs, i64 capacity, const nb::typed<nb::dict, nb::str, nb::int_>& rules,
    std::optional<In<i64>> keys, std::optional<In<i64>> second_keys,
    std::optional<ScoreRows> scores, std::optional<ScoreRows> second_scores,
    std::optional<In<i64>> predicted, std::optional<In<double>> held, std::optional<In<i64>> users,
    i64 n_users, const std::optional<ByName>& learning, const std::optional<ByName>& accounts,
    const std::vector<ByName>& expressions, const std::optional<ByName>& restrictions,
    const std::optional<ByName>& arrivals, const std::optional<ByName>& preemption,
    std::shared_ptr<Features> features, std::shared_ptr<Layout> nodes,
    std::optional<OutageRows> outages, const std::optional<ByName>& sharing, i64 ticks,
    const std::optional<ByName>& limited, bool several) {
  // whose last simulation may go while other threads of Python run
  const std::shared_ptr<Owned> owned(new Owned, [](Owned* p) {
    nb::gil_scoped_acquire held;
    delete p;
  });
  owned->jobs = jobs, owned->keys = keys, owned->second_keys = second_keys;
  owned->scores = scores, owned->second_scores = second_scores;
  owned->predicted = predicted, owned->held = held, owned->users = users;
  Model& m = owned->model;
  m.jobs = reinterpret_cast<const Job*>(jobs.data());
  m.n_jobs = static_cast<i64>(jobs.shape(0));
  m.capacity = capacity;
  m.several = several;
  m.ticks = ticks;
  m.keys = checked<i64>(keys, m.n_jobs, "keys");
  m.second_keys = checked<i64>(second_keys, m.n_jobs, "second_keys");
  m.scores = checked<Score>(scores, m.n_jobs, "scores");
  m.second_scores = checked<Score>(second_scores, m.n_jobs, "second_scores");
  m.predicted = checked<i64>(predicted, m.n_jobs, "predicted");
  m.held = checked<double>(held, m.n_jobs, "held");
  m.users = checked<i64>(users, m.n_jobs, "users");
  m.n_users = n_users;
  if (features && features->n_jobs != m.n_jobs) throw nb::value_error("features: of each job");
  m.features = features;
  owned->nodes = nodes, m.nodes = nodes.get();
  owned->outages = outages;
  if (outages) {
    m.outages = reinterpret_cast<const Outage*>(outages->data());
    m.n_outages = static_cast<i64>(outages->shape(0));
  }
  for (const auto& [name, value] : rules)
    set_rule(m.rules, nb::cast<std::string>(name), nb::cast<i64>(value));
  const auto told = [&](const ByName& arrays) -> const Told& {
    return owned->told.emplace_back(arrays);
  };
  if (learning) m.learning = learning_of(told(*learning), m.n_jobs, n_users);
  if (accounts) m.accounts = accounts_of(told(*accounts), m.n_jobs);
  if (restrictions) restrict(m, told(*restrictions));
  if (arrivals) let_come(m, told(*arrivals));
  if (preemption) let_stop(m, told(*preemption));
  if (sharing) m.sharing = sharing_of(told(*sharing), m.n_jobs);
  if (limited) m.limited = limited_of(told(*limited), m.n_jobs);
  if (expressions.size() > 2) throw nb::value_error("expressions: of two orders");
  for (std::size_t half = 0; half < expressions.size(); ++half)
    m.expressions[half] = expression_of(told(expressions[half]), m.n_jobs);
  if (const char* reason = refusal(m)) throw nb::value_error(reason);
  return {owned, &owned->model};
}

std::span<const i64> span_of(const std::optional<In<i64>>& array) {
  if (!array) return {};
  return {array->data(), array->shape(0)};
}

i64 begin(AnySimulation& s, i64 time, bool due, In<i64> running, In<i64> start, In<i64> predicted,
           In<i64> promised, const std::optional<In<i64>>& history,
           const std::optional<In<i64>>& reserved, const std::optional<In<i64>>& looks,
           const std::optional<In<i64>>& first, const std::optional<In<i64>>& node,
           const std::optional<In<i64>>& units) {
  const std::size_t number = predicted.shape(0);
  if (promised.shape(0) != number || start.shape(0) != running.shape(0))
    throw nb::value_error("begin: one promise for each prediction, one start for each that runs");
  for (std::size_t k = 0; k < running.shape(0); ++k)
    if (running(k) < 0 || running(k) >= static_cast<i64>(number) || start(k) >= time)
      throw nb::value_error("begin: jobs that run are of those before, and have started");
  if (reserved && reserved->shape(0) < number)
    throw nb::value_error("begin: one reservation for each job before");
  if (looks && looks->shape(0) != 5) throw nb::value_error("begin: looks of five numbers");
  return s.begin({time, static_cast<i64>(predicted.shape(0)), due, span_of(running), span_of(start),
                  span_of(predicted), span_of(promised), span_of(history), span_of(reserved),
                  span_of(first), span_of(node), span_of(units), span_of(looks)});
}
void learn_from(AnySimulation& s, In<i64> past, In<i64> by_start, In<i64> start, i64 time) {
  const auto check = [&](const In<i64>& rows) {
    for (std::size_t k = 0; k < rows.size(); ++k)
      if (rows(k) < 0 || rows(k) >= static_cast<i64>(start.size()))
        throw nb::index_error("learn_from: no such job");
  };
  check(past), check(by_start);
  s.learn_from({past.data(), past.size()}, {by_start.data(), by_start.size()},
               {start.data(), start.size()}, time);
}

// A function, or a method, as one that is inside its simulation alone.
template <class S, class R, class... A, class F>
auto inside(F f) {
  return [f](S& s, A... a) -> R {
    const Alone::Inside alone(s);
    return std::invoke(f, s, a...);
  };
}
template <class S, class R, class... A>
auto alone(R (*f)(S&, A...)) {
  return inside<S, R, A...>(f);
}
template <class S, class R, class... A>
auto alone(R (S::*f)(A...)) {
  return inside<S, R, A...>(f);
}
template <class S, class R, class... A>
auto alone(R (S::*f)(A...) const) {
  return inside<const S, R, A...>(f);
}

std::shared_ptr<Foresight> make_foresight(std::shared_ptr<Features> features, Table weights,
                                          JobClasses classes, i64 estimator, double tau) {
  if (features->n_jobs != static_cast<i64>(classes.shape(0)) || weights.shape(0) == 0)
    throw nb::value_error("foresight: classes of each job, and at least one vector");
  for (const i64 place : features->places)
    if (index(place) >= weights.shape(1)) throw nb::value_error("foresight: one weight a feature");
  if (estimator < 0 || estimator > 3) throw nb::value_error("foresight: there is no such estimator");
  std::vector<std::vector<double>> vectors;
  for (std::size_t v = 0; v < weights.shape(0); ++v)
    vectors.emplace_back(&weights(v, 0), &weights(v, 0) + weights.shape(1));
  std::vector<Foresight::Classes> rows(classes.shape(0));
  for (std::size_t j = 0; j < rows.size(); ++j)
    for (std::size_t level = 0; level < Foresight::levels; ++level) {
      rows[j][level] = classes(j, level);
      if (rows[j][level] < 0) throw nb::value_error("foresight: classes from 0 on");
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
  if (own != 1 && own != n_slices) throw nb::value_error("weights: of each slice, or of all");
  if (values.shape(0) != n_vectors || values.shape(1) != n_slices ||
      values.shape(2) != metrics.shape(0))
    throw nb::value_error("values: (n_vectors, n_slices, n_metrics)");
  if (first < 0 || stop > static_cast<i64>(n_vectors * n_slices))
    throw nb::value_error("tasks: a slice under a vector each");
  std::vector<Metric> chosen;
  for (std::size_t k = 0; k < metrics.shape(0); ++k) {
    if (metrics(k) < 0 || metrics(k) > static_cast<i64>(Metric::utilization))
      throw nb::value_error("metrics: there is no such");
    chosen.push_back(static_cast<Metric>(metrics(k)));
  }
  nb::gil_scoped_release released;
  many.simulate({weights.data(), weights.size()}, static_cast<i64>(size), own > 1, chosen, tau, first,
                stop, values.data());
}

}  // namespace

NB_MODULE(_engine, m) {
#ifdef NDEBUG
  nb::set_leak_warnings(false);
#endif
  m.doc() = "The native engine: simulations that run to a time, and go on.";
  m.attr("FOREVER") = forever;
  m.attr("SOURCES") = HPCGYM_SOURCES;  // a hash

  nb::class_<Features>(m, "Features", "Features of all jobs, which weights make scores of.")
      .def(nb::new_(&make_features), "parts"_a, "waiting"_a, "places"_a, "serial"_a, "seconds"_a,
           "formulas"_a = nb::none(), "by_usage"_a = std::array<i64, 2>{-1, -1},
           "`parts`: (n_jobs, n) what waiting does not change. `waiting`: (n,) not at all, or as the "
           "features wait, expansion, unicef do: 0 to 3. `places`: (n,) which weight is theirs. "
           "`serial`: patience of unicef [s], (0,) without. `seconds`: what policies look at [s]. "
           "`formulas`: their places in the table of features, where run times are learned. "
           "`by_usage`: which weights are of the priorities of users.");

  nb::class_<Layout>(m, "Layout", "What a machine of nodes has, and what jobs ask of it.")
      .def(nb::new_(&make_layout), "needs"_a, "capacity"_a, "allocation"_a, nb::kw_only(),
           "random_state"_a = 1, "asks"_a = nb::none(), "order"_a = nb::none());

  nb::class_<Model>(m, "Model", "Jobs, orders and rules of a simulation. It never changes.")
      .def(nb::new_(&make_model), "jobs"_a, "capacity"_a, "rules"_a, nb::kw_only(),
           "keys"_a = nb::none(), "second_keys"_a = nb::none(), "scores"_a = nb::none(),
           "second_scores"_a = nb::none(), "predicted"_a = nb::none(), "held"_a = nb::none(),
           "users"_a = nb::none(), "n_users"_a = 0, "learning"_a = nb::none(),
           "accounts"_a = nb::none(), "expressions"_a = std::vector<ByName>{},
           "restrictions"_a = nb::none(), "arrivals"_a = nb::none(),
           "preemption"_a = nb::none(), "features"_a = nb::none(), "nodes"_a = nb::none(),
           "outages"_a = nb::none(), "sharing"_a = nb::none(), "ticks"_a = 1,
           "limited"_a = nb::none(), "several"_a = false);

  m.def(
      "assign",
      [](const Model& model, In<i64> start, In<i64> by_start, In<i64> by_end, In<i64> first,
         In<i64> node, In<i64> units, i64 since) {
        const auto all = [](const In<i64>& a) { return std::span<const i64>(a.data(), a.size()); };
        if (!model.nodes || static_cast<i64>(start.size()) != model.n_jobs ||
            by_start.size() != by_end.size())
          throw nb::value_error("start: of each job, on nodes; by_start, by_end: the same jobs");
        const bool ascends = std::is_sorted(first.data(), first.data() + first.size());
        if (first.size() < 1 || first.size() > by_start.size() + 1 || first(0) != 0 || !ascends ||
            node.size() != units.size() || index(first(first.size() - 1)) != node.size() ||
            !std::all_of(node.data(), node.data() + node.size(),
                         [&](i64 one) { return one >= 0 && one < model.nodes->n_nodes; }))
          throw nb::value_error("first, node, units: cells of the first that start");
        return as_arrays(assign(model, all(start), all(by_start), all(by_end),
                                {all(first), all(node), all(units), since}));
      },
      "model"_a, "start"_a, "by_start"_a, "by_end"_a, "first"_a, "node"_a, "units"_a, "since"_a,
      "Return the nodes of jobs that have run on a pool of as many cores, and whose units all fit "
      "wherever enough cores are free, as cells of `Simulation.schedule`. `start` [s] of each job; "
      "the jobs that have started in the order of their starts, and of their ends. `first`, `node`, "
      "`units`: the cells of so many of those that start first. Nobody waits before `since` [s].");

  m.def(
      "values_of",
      [](const ByName& expression, i64 n_jobs, In<i64> rows, In<double> waiting) {
        const Told told(expression);
        const Expression found = expression_of(told, n_jobs);
        std::vector<i64> jobs = listed(rows);
        for (const i64 j : jobs)
          if (j < 0 || j >= n_jobs) throw nb::index_error("no such job");
        if (found.codes.empty() || as_many(rows, waiting) == 0) return owned(std::vector<double>{});
        Program program(found);
        const double* values =
            program.values_of(jobs, {waiting.data(), waiting.data() + jobs.size()}, found.times);
        return owned(std::vector<double>(values, values + jobs.size()));
      },
      "expression"_a, "n_jobs"_a, "rows"_a, "waiting"_a,
      "Return the scores of jobs that have waited so long [s], by an expression as a model takes it.");

  nb::class_<AnySimulation>(m, "Simulation", "A machine and a queue, from empty to empty.")
      .def(nb::new_(&make_simulation), "model"_a)
      .def("begin", alone(&begin), nb::kw_only(), "time"_a, "due"_a, "running"_a, "start"_a, "predicted"_a,
           "promised"_a, "history"_a = nb::none(), "reserved"_a = nb::none(),
           "looks"_a = nb::none(), "first"_a = nb::none(), "node"_a = nb::none(),
           "units"_a = nb::none(),
           "Begin with jobs that run and jobs that wait, just before `time` [s]: the first ones, as "
           "many as `predicted` [s] and `promised` [s], -1, tell of. `running`: in the order of "
           "their starts, `start` [s]. `due`: a pass is then. `history`: (n_users * last,) run "
           "times of users' last jobs [s], -1. `reserved`: [s] of jobs that wait, where each has a "
           "reservation. `looks`: where passes come by the clock, as it keeps them. `first`, "
           "`node`, `units`: on nodes the cells of each that runs, then of each that waits if that "
           "has a reservation; the allocation places those that run where none are known. Return "
           "the first of those that cannot run, as it has ended by then or finds no room, -1 if all "
           "can. Where something is asked for, answer, and call it again.")
      .def("learn_from", alone(&learn_from), "past"_a, "by_start"_a, "start"_a, "time"_a,
           "Learn from jobs of the past, which have ended by `time` [s], each as it was seen at its "
           "submission. `by_start`: all jobs, others run on. `start`: (n_jobs,) [s].")
      .def("run", alone(&AnySimulation::run), "until"_a = forever, "passes"_a = forever,
           nb::call_guard<nb::gil_scoped_release>(),
           "Simulate up to `until` [s], inclusive, or so many passes, or to what is asked for; return "
           "the passes done.")
      .def_prop_ro("asked", alone(+[](const AnySimulation& s) { return name_of(s.asked()); }),
           "What it waits for: order, job, prediction, correction, renewal or starts; an empty text: "
           "nothing.")
      .def_prop_ro("job", alone(+[](const AnySimulation& s) { return s.now().about; }),
                   "The job that a prediction or correction is for.")
      .def("predict", alone(&AnySimulation::predict), "backfilling"_a, "ordering"_a = nb::none(),
           "Say how long the job in question runs [s], by the two estimates.")
      .def("renew", alone(+[](AnySimulation& s, In<i64> rows, In<double> seconds) {
             s.renew(rows.data(), seconds.data(), as_many(rows, seconds));
           }), "rows"_a, "seconds"_a, "Say how long jobs that wait run [s], for the ordering.")
      .def("order", alone(+[](AnySimulation& s, In<i64> rows, In<double> scores) {
             s.order(rows.data(), scores.data(), as_many(rows, scores));
           }), "rows"_a, "scores"_a, "Give jobs that wait the scores of this pass.")
      .def("select", alone(&AnySimulation::select), "job"_a, "beside"_a = -1,
           "Say which of the jobs that wait is served next. Where jobs share nodes, -1: none now; "
           "`beside`: a job that runs, whose nodes it takes first, -1.")
      .def("launch", alone(+[](AnySimulation& s, In<i64> rows, In<i64> first, In<i64> node,
                               In<i64> units) {
             if (first.shape(0) != rows.shape(0) + 1) throw nb::value_error("first: of each row");
             return s.launch({rows.data(), rows.shape(0)}, {first.data(), first.shape(0)},
                             {node.data(), as_many(node, units)}, units.data());
           }), "rows"_a, "first"_a, "node"_a, "units"_a,
           "Start jobs that wait, one after the other, up to the first that does not fit; return how "
           "many started. Each gets the nodes of its cells, ascending; one that has none those that "
           "the allocation chooses.")
      .def("pass_time", alone(&AnySimulation::pass_time), "time"_a,
           "Let time pass, to one before the next event; to start jobs then.")
      .def("view", alone(+[](const AnySimulation& s) { return as_arrays(s.view()); }),
           "Return the rows of the jobs that are queued, and their predicted run times; of those that "
           "run, their starts and predicted ends [s]. On nodes free, (N * R,); those of each that runs, "
           "as of a schedule; drawn, a random state and the order of the nodes; asked, of all that "
           "wait. Under limits free, (N,) 1 where a node has no job; changes, when they may let others "
           "start, though no job comes or ends [s].")
      .def("fits", alone(+[](AnySimulation& s, const std::vector<i64>& jobs) {
             return owned(s.fits(jobs));
           }), "rows"_a, "Return which of these jobs that wait could start now, each alone.")
      .def("ended", alone(+[](const AnySimulation& s, i64 since) { return owned(s.ended(since)); }),
           "since"_a = 0, "Return the jobs in the order of their ends, from one place on.")
      .def("concerned", alone(+[](const AnySimulation& s) { return owned(s.concerned()); }),
           "Return the jobs whose predictions are to be renewed.")
      .def("run_time", alone(&AnySimulation::run_time), "job"_a, "Return how long a job runs [s].")
      .def("start", alone(+[](const AnySimulation& s, i64 j) { return s.of(j).start; }), "job"_a,
           "Return when a job started [s], -1: not yet.")
      .def("features", alone(&AnySimulation::features), "job"_a, "now"_a = false,
           "Return the features of a job, as it was submitted or now.")
      .def("moment", alone(+[](const AnySimulation& s) { return as_arrays(s.moment()); }),
           "Return what stands at the end of a pass. now: time, jobs that have come, and started, free, "
           "arrived, changed, head; shadow: [s], extra; looks: due, all_due, next, waited, had_planned. "
           "came: how many had come before each job, -1; given_up: the jobs that others have suspended.")
      .def("reserved", alone(+[](const AnySimulation& s) { return as_arrays(s.reserved()); }),
           "Return the starts that are reserved for jobs that wait, where all have reservations, (n_jobs,) "
           "[s], and on nodes the cells of those that run or wait; nothing elsewhere, nor where they "
           "are to be made anew.")
      .def("progress", alone(+[](const AnySimulation& s, In<i64> rows) {
             std::vector<i64> start, backfilled;
             for (const i64 j : listed(rows))
               start.push_back(s.of(j).start), backfilled.push_back(s.of(j).backfilled);
             return as_arrays<i64>({{"start", start}, {"backfilled", backfilled}});
           }), "rows"_a, "Return the starts of jobs [s], -1, and whether they were back-filled.")
      .def("in_order", alone(+[](const AnySimulation& s, In<i64> rows) {
             return owned(s.in_order(listed(rows)));
           }), "rows"_a, "Return jobs in primary order, as it is now, be they queued or not.")
      .def("exceeded", alone(+[](const AnySimulation& s, In<i64> rows) {
             return owned(s.exceeded(listed(rows)));
           }), "rows"_a, "Return which quotas each job would exceed if it started now, one by one.")
      .def("learned", alone(+[](AnySimulation& s) { return as_arrays(s.learned()); }),
           "Return what has been learned of the jobs that have ended.")
      .def("scores", alone(+[](const AnySimulation& s) { return owned(s.scores()); }),
           "Return the score and the patience of each job in primary order, (2 * n_jobs,), where "
           "scores order it.")
      .def("weigh", alone(+[](AnySimulation& s, In<double> weights, double total) {
             s.weigh({weights.data(), weights.size()}, total);
           }),
           "weights"_a, "total"_a = 1.0, "Let weights, divided by `total`, order the queue.")
      .def("look_ahead", alone(&AnySimulation::look_ahead), "foresight"_a,
           nb::call_guard<nb::gil_scoped_release>(),
           "Simulate to the end, and let look-ahead order the queue at each pass.")
      .def("choose", alone(&AnySimulation::choose), "foresight"_a,
           "Return the vector to follow at the pass before which an order is asked for. What it has "
           "learned is of the passes before.")
      .def("believe", alone(+[](AnySimulation& s, const ByName& arrays) {
             s.believe(belief_of(Told(arrays)));
           }), "belief"_a, "Where jobs share nodes: let jobs start by another belief of speedups.")
      .def("spells", alone(+[](const AnySimulation& s, i64 since) { return as_arrays(s.spells(since)); }),
           "since"_a = 0, "Return in which spells jobs ran at one rate, from one place on, by the "
           "clock: job, beside, which is the code that limited it or -1, begin, end.")
      .def("neighbours", alone(+[](const AnySimulation& s) { return as_arrays(s.neighbours()); }),
           "Return the running jobs beside which others find room, in the order of their starts: "
           "job; room, on how many nodes; nodes, how many have no job, or one and a part free.")
      .def("saved", alone(+[](AnySimulation& s) {
             const std::string bytes = s.saved();
             return nb::bytes(bytes.data(), bytes.size());
           }), "Return what it knows, for `load`.")
      .def("load", alone(+[](AnySimulation& s, nb::bytes bytes) {
             s.load({bytes.c_str(), bytes.size()});
           }), "saved"_a, "Go on from there, as one of the same model that has not begun.")
      .def("hidden", alone(&AnySimulation::hidden),
           "Return one that goes on with what is known: jobs that have not ended run for their "
           "predicted times, and those that have not been submitted are no more.")
      .def("anew", alone(+[](const AnySimulation& s, In<i64> run_times) {
             return s.anew({run_times.data(), run_times.shape(0)});
           }), "run_times"_a,
           "Return one of the first jobs alone, before its first event; each runs for so long [s].")
      .def("run_times", alone(+[](const AnySimulation& s) {
             std::vector<i64> found;
             for (i64 j = 0; j < s.model().n_jobs; ++j) found.push_back(s.model().jobs[j].run);
             return owned(found);
           }),
           "Return the run times [s] that it was told, (n_jobs,).")
      .def("copy", alone(&AnySimulation::copy), "Return one that goes on alone.")
      .def("schedule", alone(+[](const AnySimulation& s) { return as_arrays(s.schedule()); }),
           "Return what became of each job, (n_jobs,) int64 each: start [s], -1 before; predicted "
           "[s]; promised [s], -1 if nothing was; corrections; backfilled; number, of those that "
           "started before. On nodes those that each has had: cell_first, (n_jobs + 1,); "
           "cell_node; cell_units. Of runs that were lost, in the order of their ends: lost_job; "
           "lost_start; lost_end [s]; lost_first; lost_node; lost_units.")
      .def("idle_seconds", alone(+[](AnySimulation& s) { return as_arrays(s.idle_seconds()); }),
           "Return what processors without a job have done, (1,) [processor seconds] each.")
      .def_prop_ro("time", alone(+[](const AnySimulation& s) { return s.now().time; }),
                    "[s] of the last event.")
      .def_prop_ro("coming", alone(+[](const AnySimulation& s) { return s.now().coming; }),
                    "How many jobs have not been submitted.")
      .def_prop_ro("free", alone(+[](const AnySimulation& s) { return s.now().free; }),
                    "Units that no job has.");

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
  bind_stepper(m);
  bind_listing(m);
  bind_past(m);
  bind_regression(m);
  bind_text(m);
}
