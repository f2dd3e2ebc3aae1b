// Bindings of models: jobs, orders and rules.
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "../answers/program.hpp"
#include "../envs/records.hpp"
#include "../machines/nodes/layout.hpp"
#include "../places/simulation.hpp"
#include "arrays.hpp"
#include "corun.hpp"
#include "limited.hpp"
#include "parts.hpp"
#include "told.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hpc {
namespace {

using JobRows = nb::ndarray<const i64, nb::numpy, nb::shape<-1, 5>, nb::c_contig, nb::device::cpu>;
using OutageRows =
    nb::ndarray<const i64, nb::numpy, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;
using ScoreRows =
    nb::ndarray<const double, nb::numpy, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

using Parts = nb::ndarray<const double, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Features, and the arrays that they refer to.
struct OwnedFeatures {
  Features features;
  Parts parts;
  In<double> serial;
  In<i64> seconds;
};

std::shared_ptr<Features> make_features(Parts parts, In<i64> formulas, In<i64> places, In<double> serial,
                                        In<i64> seconds, std::array<i64, 2> by_usage) {
  const std::size_t n = parts.shape(0), size = parts.shape(1);
  if (formulas.shape(0) != size || places.shape(0) != size)
    throw nb::value_error("features: one formula and one place for each column of parts");
  if (seconds.shape(0) != n || (serial.shape(0) > 0 && serial.shape(0) != n))
    throw nb::value_error("features: one row of parts, serial and seconds for each job");
  for (std::size_t k = 0; k < size; ++k)
    if (!is_between(formulas(k), 0, n_features - 1) || places(k) < 0)
      throw nb::value_error("features: no such formula, or a place below 0");
  auto owned = std::make_shared<OwnedFeatures>(
      OwnedFeatures{{static_cast<i64>(n), parts.data(), {}, {}, nullptr, seconds.data(), {}, by_usage},
                    parts, serial, seconds});
  if (serial.shape(0) > 0) owned->features.serial = serial.data();
  for (std::size_t k = 0; k < size; ++k) {
    owned->features.formulas.push_back(formulas(k));
    owned->features.waiting.push_back(waiting_of(static_cast<Feature>(formulas(k))));
    owned->features.places.push_back(places(k));
  }
  return {owned, &owned->features};
}

// The nodes of a machine, and the arrays that they refer to.
struct OwnedLayout {
  Layout layout;
  Rows needs, capacity;
  std::optional<Rows> asks;
  std::optional<In<i64>> order;
};

std::shared_ptr<Layout> make_layout(Rows needs, Rows capacity, i64 allocation, i64 random_state,
                                    std::optional<Rows> asks, std::optional<In<i64>> order,
                                    i64 partitions) {
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
    throw nb::value_error("allocation: there is no such allocation");
  l.allocation = static_cast<Allocation>(allocation);
  l.random_state = random_state;
  if (partitions < 0 || partitions >= std::max(l.n_resources, i64{1}))
    throw nb::value_error("partitions: must be fewer than the resources");
  l.n_partitions = partitions;
  if (const char* reason = refusal(l, static_cast<i64>(needs.shape(1))))
    throw nb::value_error(reason);
  if (asks && (asks->shape(0) != needs.shape(0) || asks->shape(1) != capacity.shape(1)))
    throw nb::value_error("asks: (n_rows, R)");
  if (order) {
    std::vector<bool> there(capacity.shape(0));
    for (std::size_t k = 0; k < order->shape(0); ++k)
      if ((*order)(k) >= 0 && (*order)(k) < l.n_nodes) there[index((*order)(k))] = true;
    if (order->shape(0) != there.size() || std::find(there.begin(), there.end(), false) != there.end())
      throw nb::value_error("order: must have each node once");
    l.order = order->data();
  }
  l.complete();
  return {owned, &owned->layout};
}

// A model, and the arrays that it refers to.
struct Owned {
  Model model;
  JobRows jobs;
  std::optional<In<i64>> keys, second_keys, predicted, candidate_times, users;
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
    std::optional<In<i64>> predicted, std::optional<In<double>> held,
    std::optional<In<i64>> candidate_times, std::optional<In<i64>> users, i64 n_users, const std::optional<ByName>& learning, const std::optional<ByName>& accounts,
    const std::vector<ByName>& expressions, const std::optional<ByName>& restrictions,
    const std::optional<ByName>& arrivals, const std::optional<ByName>& preemption,
    std::shared_ptr<Features> features, std::shared_ptr<Layout> nodes,
    std::optional<OutageRows> outages, const std::optional<ByName>& sharing, i64 ticks,
    const std::optional<ByName>& limited, bool several) {
  // the last simulation may be deleted while other Python threads run
  const std::shared_ptr<Owned> owned(new Owned, [](Owned* p) {
    nb::gil_scoped_acquire held;
    delete p;
  });
  owned->jobs = jobs, owned->keys = keys, owned->second_keys = second_keys;
  owned->scores = scores, owned->second_scores = second_scores;
  owned->predicted = predicted, owned->held = held, owned->candidate_times = candidate_times;
  owned->users = users;
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
  m.candidate_times = checked<i64>(candidate_times, m.n_jobs, "candidate_times");
  m.users = checked<i64>(users, m.n_jobs, "users");
  m.n_users = n_users;
  if (features && features->n_jobs != m.n_jobs)
    throw nb::value_error("features: one row for each job");
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
  if (expressions.size() > 2) throw nb::value_error("expressions: at most two");
  for (std::size_t half = 0; half < expressions.size(); ++half)
    m.expressions[half] = expression_of(told(expressions[half]), m.n_jobs);
  if (const char* reason = refusal(m)) throw nb::value_error(reason);
  return {owned, &owned->model};
}

// The names and types of the fields of a record, from its declarations.
std::vector<std::pair<std::string, std::string>> fields_of(const std::string& record) {
  const std::array<std::pair<const char*, std::string_view>, 7> records{
      {{"Job", Job::fields},
       {"Loss", Loss::fields},
       {"Book", Book::fields},
       {"PowerCap", PowerCap::fields},
       {"EnergyBudget", EnergyBudget::fields},
       {"Episode", Episode::fields},
       {"Settings", Settings::fields}}};
  const auto found = std::ranges::find(records, record, [](const auto& each) { return each.first; });
  if (found == records.end()) throw nb::value_error("there is no such record");
  std::vector<std::pair<std::string, std::string>> fields;
  std::string type, word;
  for (const char c : found->second) {
    if (std::isalnum(c) || c == '_') {
      word += c;
      continue;
    }
    if (!word.empty() && type.empty()) type = std::exchange(word, {});
    else if (!word.empty()) fields.emplace_back(std::exchange(word, {}), type == "double" ? "f8" : "i8");
    if (c == ';') type.clear();
  }
  return fields;
}

}  // namespace

void bind_model(nb::module_& m) {
  m.def("fields_of", &fields_of, "record"_a,
        "Return the names of the fields of a record, with their types, of which NumPy makes a dtype.");

  nb::class_<Features>(m, "Features", "Features of all jobs, which weights make scores of.")
      .def(nb::new_(&make_features), "parts"_a, "formulas"_a, "places"_a, "serial"_a, "seconds"_a,
           "by_usage"_a = std::array<i64, 2>{-1, -1},
           "`parts`: (n_jobs, n) what waiting does not change. `formulas`: (n,) their places in the "
           "table of features. `places`: (n,) which weight is theirs. `serial`: patience of unicef "
           "[s], (0,) without. `seconds`: what policies look at [s]. `by_usage`: which weights are of "
           "the priorities of users.");

  nb::class_<Layout>(m, "Layout", "What a machine of nodes has, and what jobs ask of it.")
      .def(nb::new_(&make_layout), "needs"_a, "capacity"_a, "allocation"_a, nb::kw_only(),
           "random_state"_a = 1, "asks"_a = nb::none(), "order"_a = nb::none(), "partitions"_a = 0,
           "`partitions`: so many of the resources, the last ones, are partitions.");

  nb::class_<Model>(m, "Model", "Jobs, orders and rules of a simulation. It never changes.")
      .def(nb::new_(&make_model), "jobs"_a, "capacity"_a, "rules"_a, nb::kw_only(),
           "keys"_a = nb::none(), "second_keys"_a = nb::none(), "scores"_a = nb::none(),
           "second_scores"_a = nb::none(), "predicted"_a = nb::none(), "held"_a = nb::none(),
           "candidate_times"_a = nb::none(),
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
          throw nb::value_error("start: of each job on nodes; by_start, by_end: the same jobs");
        const bool ascends = std::is_sorted(first.data(), first.data() + first.size());
        if (first.size() < 1 || first.size() > by_start.size() + 1 || first(0) != 0 || !ascends ||
            node.size() != units.size() || index(first(first.size() - 1)) != node.size() ||
            !std::all_of(node.data(), node.data() + node.size(),
                         [&](i64 one) { return one >= 0 && one < model.nodes->n_nodes; }))
          throw nb::value_error("first, node, units: not cells of the first jobs to start");
        Columns found;
        {
          const nb::gil_scoped_release released;
          found = assign(model, all(start), all(by_start), all(by_end),
                         {all(first), all(node), all(units), since});
        }
        return as_arrays(std::move(found));
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
        if (const char* reason = Program::refusal(found)) throw nb::value_error(reason);
        std::vector<i64> jobs = listed(rows);
        for (const i64 j : jobs)
          if (j < 0 || j >= n_jobs) throw nb::index_error("no such job");
        if (found.codes.empty() || as_many(rows, waiting) == 0) return owned(std::vector<double>{});
        Program::each_state(found, [](std::size_t) {
          throw nb::value_error("codes: the state is known only in simulations");
        });
        Program program(found);
        program.follow(jobs, found.times);
        program.begin_pass({}, {});
        const std::vector<double> waits(waiting.data(), waiting.data() + jobs.size());
        const double* values =
            program.scores({.jobs = jobs, .waiting = &waits, .times = found.times});
        return owned(std::vector<double>(values, values + jobs.size()));
      },
      "expression"_a, "n_jobs"_a, "rows"_a, "waiting"_a,
      "Return the scores of jobs that have waited so long [s], by an expression as a model takes it.");
}

}  // namespace hpc
