// What Python sees of the engine: hpcgym._engine.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>

#include "simulation.hpp"
#include "told.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace hpc;

namespace {

template <class T>
using In = nb::ndarray<const T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::numpy, nb::ndim<1>, nb::c_contig>;
using JobRows = nb::ndarray<const i64, nb::numpy, nb::shape<-1, 5>, nb::c_contig, nb::device::cpu>;
using ScoreRows =
    nb::ndarray<const double, nb::numpy, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

// An array that Python owns from now on.
template <class T>
Out<T> owned(const std::vector<T>& values) {
  T* data = new T[values.size()];
  std::copy(values.begin(), values.end(), data);
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return Out<T>(data, {values.size()}, owner);
}
template <class T>
nb::typed<nb::dict, nb::str, Out<T>> as_arrays(
    const std::vector<std::pair<const char*, std::vector<T>>>& columns) {
  nb::typed<nb::dict, nb::str, Out<T>> found;
  for (const auto& [name, values] : columns) found[name] = owned(values);
  return found;
}

template <class Rows, class Values>
std::size_t as_many(const Rows& rows, const Values& values) {
  if (rows.shape(0) != values.shape(0)) throw nb::value_error("one value for each row");
  return rows.shape(0);
}
const char* name_of(Asked asked) {
  constexpr std::array<const char*, 5> names{"", "order", "prediction", "correction", "renewal"};
  return names[static_cast<std::size_t>(asked)];
}

using ByName = nb::typed<nb::dict, nb::str, nb::any>;

// A model and the arrays that it looks at.
struct Owned {
  Model model;
  JobRows jobs;
  std::optional<In<i64>> keys, second_keys, predicted, users;
  std::optional<ScoreRows> scores, second_scores;
  std::optional<In<double>> held;
  std::vector<Told> told;
};

template <class T, class Array>
const T* checked(const std::optional<Array>& array, i64 n, const char* name) {
  if (!array) return nullptr;
  if (static_cast<i64>(array->shape(0)) != n)
    throw nb::value_error((std::string(name) + ": one for each job").c_str());
  return reinterpret_cast<const T*>(array->data());
}

std::shared_ptr<Model> make_model(
    JobRows jobs, i64 capacity, const nb::typed<nb::dict, nb::str, nb::int_>& rules, std::optional<In<i64>> keys,
    std::optional<In<i64>> second_keys, std::optional<ScoreRows> scores,
    std::optional<ScoreRows> second_scores, std::optional<In<i64>> predicted,
    std::optional<In<double>> held, std::optional<In<i64>> users, i64 n_users,
    const std::optional<ByName>& learning, const std::optional<ByName>& accounts,
    const std::vector<ByName>& expressions) {
  auto owned = std::make_shared<Owned>();
  owned->jobs = jobs, owned->keys = keys, owned->second_keys = second_keys;
  owned->scores = scores, owned->second_scores = second_scores;
  owned->predicted = predicted, owned->held = held, owned->users = users;
  Model& m = owned->model;
  m.jobs = reinterpret_cast<const Job*>(jobs.data());
  m.n_jobs = static_cast<i64>(jobs.shape(0));
  m.capacity = capacity;
  m.keys = checked<i64>(keys, m.n_jobs, "keys");
  m.second_keys = checked<i64>(second_keys, m.n_jobs, "second_keys");
  m.scores = checked<Score>(scores, m.n_jobs, "scores");
  m.second_scores = checked<Score>(second_scores, m.n_jobs, "second_scores");
  m.predicted = checked<i64>(predicted, m.n_jobs, "predicted");
  m.held = checked<double>(held, m.n_jobs, "held");
  m.users = checked<i64>(users, m.n_jobs, "users");
  m.n_users = n_users;
  for (const auto& [name, value] : rules)
    if (!set_rule(m.rules, nb::cast<std::string>(name), nb::cast<i64>(value)))
      throw nb::value_error(("no rule " + nb::cast<std::string>(name)).c_str());
  const auto told = [&](const ByName& arrays) -> const Told& {
    return owned->told.emplace_back(arrays);
  };
  if (learning) m.learning = learning_of(told(*learning), m.n_jobs, n_users);
  if (accounts) m.accounts = accounts_of(told(*accounts), m.n_jobs);
  if (expressions.size() > 2) throw nb::value_error("expressions: of two orders");
  for (std::size_t half = 0; half < expressions.size(); ++half)
    m.expressions[half] = expression_of(told(expressions[half]), m.n_jobs);
  if (const char* reason = what_lacks(m)) throw nb::value_error(reason);
  return {owned, &owned->model};
}

std::span<const i64> span_of(const std::optional<In<i64>>& array) {
  if (!array) return {};
  return {array->data(), array->shape(0)};
}

void begin(AnySimulation& s, i64 time, bool due, In<i64> running, In<i64> start, In<i64> predicted,
           In<i64> promised, const std::optional<In<i64>>& history,
           const std::optional<In<i64>>& reserved, const std::optional<In<i64>>& looks) {
  const std::size_t number = predicted.shape(0);
  if (promised.shape(0) != number || start.shape(0) != running.shape(0))
    throw nb::value_error("begin: one promise for each prediction, one start for each that runs");
  for (std::size_t k = 0; k < running.shape(0); ++k)
    if (running(k) < 0 || running(k) >= static_cast<i64>(number) || start(k) >= time)
      throw nb::value_error("begin: jobs that run are of those before, and have started");
  if (reserved && reserved->shape(0) < number)
    throw nb::value_error("begin: one reservation for each job before");
  if (looks && looks->shape(0) != 5) throw nb::value_error("begin: looks of five numbers");
  s.begin({time, static_cast<i64>(predicted.shape(0)), due, span_of(running), span_of(start),
           span_of(predicted), span_of(promised), span_of(history), span_of(reserved), span_of(looks)});
}

}  // namespace

NB_MODULE(_engine, m) {
  m.doc() = "The native engine: simulations that run to a time, and go on.";
  m.attr("FOREVER") = forever;

  nb::class_<Model>(m, "Model", "Jobs, orders and rules of a simulation. It never changes.")
      .def(nb::new_(&make_model), "jobs"_a, "capacity"_a, "rules"_a, nb::kw_only(),
           "keys"_a = nb::none(), "second_keys"_a = nb::none(), "scores"_a = nb::none(),
           "second_scores"_a = nb::none(), "predicted"_a = nb::none(), "held"_a = nb::none(),
           "users"_a = nb::none(), "n_users"_a = 0, "learning"_a = nb::none(),
           "accounts"_a = nb::none(), "expressions"_a = std::vector<ByName>{})
      .def_prop_ro("n_jobs", [](const Model& model) { return model.n_jobs; });

  nb::class_<AnySimulation>(m, "Simulation", "A machine and a queue, from empty to empty.")
      .def(nb::new_(&make_simulation), "model"_a)
      .def("begin", &begin, nb::kw_only(), "time"_a, "due"_a, "running"_a, "start"_a, "predicted"_a,
           "promised"_a, "history"_a = nb::none(), "reserved"_a = nb::none(),
           "looks"_a = nb::none(),
           "Begin with jobs that run and jobs that wait, just before `time` [s]: the first ones, as "
           "many as `predicted` [s] and `promised` [s], -1, tell of. `running`: in the order of "
           "their starts, `start` [s]. `due`: a pass is then. `history`: (n_users * last,) run "
           "times of users' last jobs [s], -1. `reserved`: [s] of jobs that wait, where each has a "
           "reservation. `looks`: where passes come by the clock, as the kernels keep it.")
      .def("run", &AnySimulation::run, "until"_a = forever, "passes"_a = forever,
           nb::call_guard<nb::gil_scoped_release>(),
           "Simulate up to `until` [s], inclusive, or so many passes, or to what is asked for; return "
           "the passes done.")
      .def_prop_ro("asked", [](const AnySimulation& s) { return name_of(s.asked()); },
           "What it waits for: order, prediction, correction or renewal; an empty text: nothing.")
      .def_prop_ro("job", &AnySimulation::about, "The job that a prediction or correction is for.")
      .def("predict", &AnySimulation::predict, "backfilling"_a, "ordering"_a = nb::none(),
           "Say how long the job in question runs [s], by the two estimates.")
      .def("renew", [](AnySimulation& s, In<i64> rows, In<double> seconds) {
             s.renew(rows.data(), seconds.data(), as_many(rows, seconds));
           }, "rows"_a, "seconds"_a, "Say how long jobs that wait run [s], for the ordering.")
      .def("order", [](AnySimulation& s, In<i64> rows, In<double> scores) {
             s.order(rows.data(), scores.data(), as_many(rows, scores));
           }, "rows"_a, "scores"_a, "Give jobs that wait the scores of this pass.")
      .def("view", [](const AnySimulation& s) { return as_arrays(s.view()); },
           "Return the rows of the jobs that are queued, and their predicted run times; of those that "
           "run, their starts and predicted ends [s].")
      .def("ended", [](const AnySimulation& s, i64 since) { return owned(s.ended(since)); },
           "since"_a = 0, "Return the jobs in the order of their ends, from one place on.")
      .def("concerned", [](const AnySimulation& s) { return owned(s.concerned()); },
           "Return the jobs whose predictions are to be renewed.")
      .def("run_time", &AnySimulation::run_time, "job"_a, "Return how long a job runs [s].")
      .def("start", &AnySimulation::start, "job"_a, "Return when a job started [s], -1: not yet.")
      .def("features", &AnySimulation::features, "job"_a, "now"_a = false,
           "Return the features of a job, as it was submitted or now.")
      .def("learned", [](AnySimulation& s) { return as_arrays(s.learned()); },
           "Return what has been learned of the jobs that have ended.")
      .def("numbers", [](const AnySimulation& s) { return as_arrays(s.numbers()); },
           "Return what is known that are no whole numbers, for tests.")
      .def("copy", &AnySimulation::copy, "Return one that goes on alone.")
      .def("schedule", [](const AnySimulation& s) { return as_arrays(s.schedule()); },
           "Return what became of each job, (n_jobs,) int64 each: start [s], -1 before; predicted "
           "[s]; promised [s], -1 if nothing was; corrections; backfilled; number, of those that "
           "started before.")
      .def("idle_seconds", [](AnySimulation& s) { return as_arrays(s.idle_seconds()); },
           "Return what processors without a job have done, (1,) [processor seconds] each.")
      .def("facts", [](const AnySimulation& s) { return as_arrays(s.facts()); },
           "Return what is known between two passes, for tests.")
      .def_prop_ro("time", &AnySimulation::time, "[s] of the last event.")
      .def_prop_ro("free", &AnySimulation::free, "Units that no job has.");
}
