// Bindings of environments.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "../base/alone.hpp"
#include "../envs/stepper.hpp"
#include "limited.hpp"
#include "parts.hpp"
#include "told.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hpc {
namespace {

template <class T>
using Grid = nb::ndarray<T, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Line = nb::ndarray<T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Arrays for the actions and outputs of each environment.
struct Seen {
  std::vector<nb::object> arrays{};
  i64* chosen = nullptr;
  std::vector<Places> places{};
};
// A stepper, and the arrays that it refers to.
struct Owned {
  std::size_t booked = 0;  // most nodes that rows count one by one
  std::vector<nb::object> rows{};
  std::unique_ptr<Stepper> stepper{};
  std::vector<Seen> seen{};
  Alone alone{};

  void check(i64 e) const {
    if (e < 0 || e >= stepper->size()) throw std::out_of_range("there is no such environment");
  }
  AnyEnvironment& of(i64 e) const { return check(e), stepper->of(e); }
  AnyEnvironment& coming(i64 e) const { return check(e), stepper->coming(e); }
};

// The beginning of episodes, for the model of all jobs.
Before read_before(const Model& m, const Told& told) {
  const i64* when = told.column<i64>("when", 3);
  Before b;
  b.time = when[0], b.number = when[1], b.due = when[2] != 0;
  b.running = told.list<i64>("running");
  const auto running = static_cast<i64>(b.running.size());
  b.start = told.list<i64>("start", running);
  b.predicted = told.list<i64>("predicted", b.number);
  b.promised = told.list<i64>("promised", b.number);
  b.history = told.list<i64>("history", m.n_users * m.rules.kept());
  for (std::size_t k = 0; k < b.running.size(); ++k)
    if (!is_between(b.running[k], 0, b.number - 1) || b.start[k] >= b.time)
      throw nb::value_error("running: must be among the first jobs, and have started");
  if (m.nodes) {
    b.first = told.list<i64>("first", running + 1);
    b.node = told.list<i64>("node"), b.units = told.list<i64>("units");
    b.drawn = told.list<i64>("drawn");
    const i64 n = m.nodes->n_nodes;
    const auto is_none = [n](i64 node) { return !is_between(node, 0, n - 1); };
    if (!b.drawn.empty() && (static_cast<i64>(b.drawn.size()) != 1 + n ||
                             std::any_of(b.drawn.begin() + 1, b.drawn.end(), is_none)))
      throw nb::value_error("drawn: needs a random state, and each node");
  }
  if (!m.learning) return b;
  const Learning& l = *m.learning;
  b.memory = told.list<double>("memory", static_cast<i64>(l.memory.size()));
  b.ratios = told.list<double>("ratios", static_cast<i64>(l.ratios.size()));
  b.terms = {told.list<double>("terms", static_cast<i64>(l.terms[0].size())),
             told.list<double>("second_terms", static_cast<i64>(l.terms[1].size()))};
  std::copy_n(told.column<double>("sums", 4), 4, b.sums.begin());
  return b;
}

// A table, and the arrays that it refers to. Environments let go of it in any thread.
struct OwnTable : Table {
  ByName arrays;
};
// What environments are told of one log.
struct LogOfEpisodes {
  Stepper::Log table;
};

std::shared_ptr<LogOfEpisodes> log_of(std::shared_ptr<Model> model, const ByName& arrays,
                                      const std::vector<ByName>& expressions, const std::optional<ByName>& before) {
  const std::shared_ptr<OwnTable> table(new OwnTable{{}, arrays}, [](const OwnTable* own) {
    const nb::gil_scoped_acquire held;
    delete own;
  });
  const Told told(arrays);
  if (model->outages) throw nb::value_error("environments: not with failures of nodes");
  Table& t = *table;
  t.model = model;
  t.settings = told.records<Settings>("settings", 1)[0];
  t.codes = told.list<i64>("codes");
  const i64 n = model->n_jobs;
  const auto all = static_cast<i64>(told.list<float>("columns").size());
  t.n_columns = n > 0 ? all / n : 0;
  t.columns = told.column<float>("columns", t.n_columns * n);
  t.ordered_by = told.column<i64>("ordered_by", n);
  for (const ByName& each : expressions) {
    t.expressions.push_back(expression_of(Told(each), n));
    const char* reason = Program::refusal(t.expressions.back());
    if (reason || t.expressions.back().codes.empty())
      throw nb::value_error(reason ? reason : "expressions: need steps");
    if (!Program::is_told(t.expressions.back(), *model))
      throw nb::value_error("expressions: the model lacks what they use of users");
  }
  t.ranks = told.list<i64>("ranks", static_cast<i64>(expressions.size()));
  std::copy_n(told.column<double>("watts", 5), 5, t.watts.begin());
  t.node_watts = told.list<double>("node_watts");
  t.still_w = *told.column<double>("still_w", 1);
  const i64 n_nodes = model->nodes ? model->nodes->n_nodes : model->sharing ? model->sharing->n_nodes : 0;
  if (!t.node_watts.empty() && static_cast<i64>(t.node_watts.size()) != 2 * n_nodes)
    throw nb::value_error("node_watts: two values for each node, or none");
  t.shapes = told.list<i64>("shapes");
  t.reward_weights = told.list<double>("reward_weights", static_cast<i64>(t.shapes.size() * n_terms));
  for (const i64 code : t.codes)
    if (code < 0 || code >= t.first_expression() + static_cast<i64>(expressions.size()))
      throw nb::value_error("codes: there is no such column");
  const bool pairs = t.settings.kind == Kind::pairs || t.settings.kind == Kind::pair_scores;
  if (pairs) t.mean_speedup = told.list<double>("mean_speedup", model->sharing ? model->sharing->n_codes : 0);
  const bool scores = model->features || !model->expressions[0].codes.empty();
  if (t.settings.kind > Kind::shapes || (t.settings.kind == Kind::shapes) != (t.settings.shapes > 0) ||
      pairs != (model->sharing && model->sharing->draws) ||
      t.settings.ticks < 1 || (t.settings.kind == Kind::weights && !scores) ||
      t.settings.selects() != (model->rules.primary == Order::selection) ||
      (t.settings.kind == Kind::candidates) != model->rules.picks ||
      (t.settings.kind == Kind::proposals) != model->rules.proposes)
    throw nb::value_error("settings: do not match the model");
  if (t.settings.kind == Kind::shapes) {
    const bool others_decide = !model->windows.empty() || model->arrivals.moves || model->stops.n_groups() > 0;
    if (model->nodes || model->limited || model->sharing || model->accounts || model->features || others_decide ||
        n % (1 + t.settings.shapes) != 0)
      throw nb::value_error("shapes: on a pool, under rules that look at jobs alone");
    t.users = told.list<i64>("users", t.n_of_episodes());
    t.work = told.list<i64>("work", n);
  }
  if (before) t.before = read_before(*model, Told(*before));
  t.look_at_jobs();
  return std::make_shared<LogOfEpisodes>(table);
}

// Whether the rows and the outputs that environments of one log have are those of the other, too.
bool is_alike(const Table& t, const Table& other) {
  const auto of = [](const Settings& s) {
    return std::tuple(s.kind, s.paid, s.by_action, s.shapes, s.autoreset, s.seen_end, s.seen_power, s.seen_shapes,
                      s.act_frequency, s.act_nodes, s.act_power);
  };
  return of(t.settings) == of(other.settings) && t.codes.size() == other.codes.size() &&
         t.shapes.size() == other.shapes.size() && !t.model->limited == !other.model->limited &&
         !t.model->sharing == !other.model->sharing;
}

// The rows of environments, arrays by name, as hpcgym.envs.core.simulations makes them: wide enough
// for the episodes of all logs.
std::vector<Row> rows_of(const Table& t, std::size_t booked, nb::dict arrays, std::vector<nb::object>& keep) {
  std::size_t n = 0;
  const auto grid = [&]<class T>(const char* name, std::size_t least, T) {
    auto found = nb::cast<Grid<T>>(arrays[name]);
    keep.push_back(nb::cast(found));
    n = n == 0 ? found.shape(0) : n;
    if (found.shape(0) != n || found.shape(1) < least)
      throw nb::value_error((std::string(name) + ": one row for each environment").c_str());
    return found;
  };
  const auto episode = grid("episode_state", sizeof(Episode) / sizeof(i64), i64{});
  const auto window = grid("window", 1, i64{}), fresh = grid("new", 1, i64{});
  const std::size_t late = t.settings.paid == Paid::at_end ? fresh.shape(1) : 0;
  const auto unpaid = grid("unpaid", late, i64{}), gone = grid("gone", late, i64{});
  const auto busy_until = grid("busy_until", booked, i64{});
  const auto gone_bsld = grid("gone_bsld", late, double{});
  const auto terms = grid("terms", n_terms, double{}), totals = grid("totals", n_terms, double{});
  const auto norms = grid("norms", n_terms, double{}), owed = grid("owed", n_terms, double{});
  const auto scales = grid("scales", t.shapes.size(), double{});
  const auto next_scales = grid("next_scales", t.shapes.size(), double{});
  const auto counted_j = grid("counted_j", 1, double{});
  std::vector<Row> rows;
  const auto at = [](const auto& array, std::size_t e) { return array.data() + e * array.shape(1); };
  for (std::size_t e = 0; e < n; ++e)
    rows.push_back({reinterpret_cast<Episode*>(at(episode, e)), at(window, e), at(fresh, e),
                    at(terms, e), at(totals, e), at(norms, e), at(owed, e), at(scales, e),
                    at(next_scales, e), at(unpaid, e), at(gone, e), at(gone_bsld, e),
                    at(busy_until, e), at(counted_j, e), static_cast<i64>(window.shape(1))});
  if (t.settings.kind == Kind::shapes) {
    const auto shapes = grid("shapes", fresh.shape(1), i64{});
    for (std::size_t e = 0; e < n; ++e) rows[e].shapes = at(shapes, e);
  }
  if (!t.model->sharing) return rows;
  const auto beside = grid("neighbours", 1, i64{});
  for (std::size_t e = 0; e < n; ++e) {
    rows[e].beside = at(beside, e), rows[e].size_of_list = static_cast<i64>(beside.shape(1));
  }
  return rows;
}

std::shared_ptr<Owned> make(const std::vector<std::shared_ptr<LogOfEpisodes>>& logs, ByName rows) {
  auto owned = std::make_shared<Owned>();
  std::vector<Stepper::Log> tables;
  for (const auto& log : logs) tables.push_back(log->table);
  if (tables.empty()) throw nb::value_error("logs: at least one");
  const Table& first = *tables.front();
  if (!std::ranges::all_of(tables, [&](const auto& each) { return is_alike(*each, first); }))
    throw nb::value_error("logs: tables differ in their settings");
  for (const auto& each : tables) owned->booked = std::max(owned->booked, each->n_booked());
  std::vector<Row> all = rows_of(first, owned->booked, rows, owned->rows);
  owned->stepper = std::make_unique<Stepper>(std::move(tables), std::move(all));
  return owned;
}

void take(Owned& owned, i64 e, const LogOfEpisodes& log, bool at_once) {
  const Alone::Inside inside(owned.alone);
  owned.check(e);
  if (!is_alike(*log.table, *owned.stepper->logs().front()) || log.table->n_booked() > owned.booked)
    throw nb::value_error("log: its table differs in its settings, or has more nodes");
  owned.stepper->take(e, log.table, at_once);
}

// Whether rows have room for observations of power, and for controls.
bool has_room_for_limits(const Table& t, std::size_t seen, std::size_t numbers) {
  if (!t.model->limited) return true;
  const Settings& s = t.settings;
  const i64 shown = s.seen_power, last = std::max({s.act_frequency, s.act_nodes, s.act_power});
  return shown >= 0 && last < static_cast<i64>(numbers) &&
         (!t.model->limited->limited || shown + n_of_power <= static_cast<i64>(seen));
}

void look_at(Owned& owned, std::size_t which, Line<i64> chosen, Grid<const double> numbers, Grid<float> observations,
             Grid<std::int8_t> masks, Grid<double> rewards, Line<bool> ended, Line<bool> truncated,
             Grid<i64> told, Grid<double> terms, bool is_lent) {
  const Alone::Inside inside(owned.alone);
  const Stepper& stepper = *owned.stepper;
  const Table& t = *stepper.logs().front();
  const auto n = static_cast<std::size_t>(stepper.size());
  const std::size_t room = index(stepper.room());
  const bool shares = t.model->sharing != nullptr;
  const std::size_t pairs = Pairs::n_pairs(stepper.room(), stepper.listed());
  const std::size_t size = shares ? Pairs::size_of_row(stepper.room(), stepper.listed())
                                  : Observer<Pool>::jobs_at + room * (t.codes.size() + 1);
  const std::size_t n_numbers = t.settings.kind == Kind::pair_scores ? pairs
                                : t.settings.kind == Kind::ordering  ? room
                                                                     : 0;
  const auto has_room = [&](const Stepper::Log& log) {
    const Table& each = *log;
    const i64 end = each.settings.seen_end;
    const i64 shapes = each.settings.seen_shapes, shown = n_of_shape * each.settings.shapes + n_of_user;
    if (each.settings.shapes > 0 && (shapes < 0 || shapes + shown > static_cast<i64>(observations.shape(1))))
      return false;
    return end >= 0 && end + n_of_end <= static_cast<i64>(observations.shape(1)) &&
           has_room_for_limits(each, observations.shape(1), numbers.shape(1));
  };
  const bool whole = chosen.shape(0) == n && numbers.shape(0) == n && observations.shape(0) == n &&
                     masks.shape(0) == n && rewards.shape(0) == n && ended.shape(0) == n &&
                     truncated.shape(0) == n && told.shape(0) == n && terms.shape(0) == n;
  const bool wide = observations.shape(1) >= size && rewards.shape(1) == t.shapes.size() &&
                    masks.shape(1) >= (shares ? pairs + 1 : room + (t.settings.by_action == 1)) &&
                    told.shape(1) >= room + 2 && terms.shape(1) >= n_terms &&
                    numbers.shape(1) >= n_numbers &&
                    std::ranges::all_of(stepper.logs(), has_room);
  if (!whole || !wide) throw nb::value_error("outputs: one row for each environment, wide enough");
  if (which > owned.seen.size()) throw nb::value_error("which: must follow the last one");
  if (which == owned.seen.size()) owned.seen.emplace_back();
  Seen& seen = owned.seen[which];
  seen = {{}, chosen.data(), {}};
  for (std::size_t e = 0; e < n; ++e) {
    const auto row = [&](const auto& grid) { return grid.data() + e * grid.shape(1); };
    seen.places.push_back({chosen.data() + e, row(numbers),
                           {is_lent, row(observations), row(masks), row(rewards), ended.data() + e,
                            truncated.data() + e, row(told), row(terms)}});
  }
  const auto keep = [&](const auto&... arrays) { seen.arrays = {nb::cast(arrays)...}; };
  keep(chosen, numbers, observations, masks, rewards, ended, truncated, told, terms);
}

const Seen& seen(const Owned& owned, std::size_t which) {
  if (which >= owned.seen.size()) throw nb::value_error("which: not set by look_at");
  return owned.seen[which];
}
bool choose(const Owned& owned, Line<const i64> actions, i64 number) {
  const Alone::Inside inside(owned.alone);
  const i64 *first = actions.data(), *last = first + actions.shape(0);
  if (last - first != owned.stepper->size())
    throw nb::value_error("actions: one for each environment");
  if (!std::all_of(first, last, [=](i64 one) { return is_between(one, 0, number - 1); })) return false;
  std::copy(first, last, seen(owned, 0).chosen);  // those of all environments
  return true;
}
bool go_on(Owned& owned, i64 task, i64 first, i64 stop, int threads, std::size_t which) {
  const Alone::Inside inside(owned.alone);
  const auto& places = seen(owned, which).places;
  if (first < 0 || first >= stop || stop > owned.stepper->size() || task < 0 || task > 2)
    throw nb::value_error("go_on: there are no such environments, or no such task");
  nb::gil_scoped_release released;
  owned.stepper->go_on(static_cast<Todo>(task), first, stop, threads, places);
  const auto any = [&](const bool* of_first) { return std::count(of_first, of_first + (stop - first), true) > 0; };
  const Outputs& out = places[index(first)].out;
  return task == 0 && (any(out.ended) || any(out.truncated));  // other tasks do not report ends
}

void set_limits(AnyEnvironment& environment, const ByName& limits) {
  const auto& limited = environment.table.model->limited;
  if (!limited) throw nb::value_error("limit: the machine has no limits");
  environment.limit(limits_of(Told(limits), limited->n_nodes));
}
// The usage at the beginning of an episode with n jobs.
std::shared_ptr<const OwnAccounts> own_accounts(const ByName& arrays, i64 n) {
  const Told told(arrays);
  const auto own = std::make_shared<OwnAccounts>(
      OwnAccounts{told.list<i64>("owner", n), told.list<double>("rate", 2 * n), accounts_of(told, n)});
  own->accounts.owner = own->owner.data();
  own->accounts.rate = {own->rate.data(), own->rate.data() + n};
  return own;
}

}  // namespace

void bind_stepper(nb::module_& m) {
  nb::exception<NoEpisode>(m, "NoEpisode", PyExc_ValueError);
  nb::class_<LogOfEpisodes>(m, "LogOfEpisodes", "What environments are told of one log.")
      .def(nb::new_(&log_of), "model"_a, "table"_a, "expressions"_a, "before"_a.none(),
           "The model of the jobs of all episodes; arrays by name, as of hpcgym.envs.core.model; the expressions "
           "that columns show, as a model takes them; and with what episodes begin, if the machine is not empty then: what `Simulation.begin` "
           "takes, `when`: [s], how many jobs run or wait then, and whether a pass is due, and what has been learned.");
  nb::class_<Owned>(m, "Stepper", "Environments stepped in one call.")
      .def(nb::new_(&make), "logs"_a, "rows"_a,
           "`logs`: which environments play in turn. `rows` are as those of hpcgym.envs.core.model.")
      .def("look_at", &look_at, "which"_a, "chosen"_a, "numbers"_a, "observations"_a, "masks"_a, "rewards"_a,
           "ended"_a, "truncated"_a, "told"_a, "terms"_a, "is_lent"_a,
           "Say in which arrays actions stand, and in which to tell what is seen. There may be several "
           "sets of them, with the same actions: number `which`, from 0 on, is new or said anew. `is_lent`: others "
           "may write into observations; else what is 0 there stays so.")
      .def("choose", &choose, "actions"_a, "number"_a,
           "Set the actions of all if each is an index below `number`; return whether they are.")
      .def("go_on", &go_on, "task"_a, "first"_a, "stop"_a, "threads"_a, "which"_a,
           "Step the environments from `first` to `stop`, exclusive, begin their next episodes, or "
           "only show where they are: `task` 0 to 2. All that is told of them is written anew. Return "
           "whether an episode has ended in a step, by itself or by time.")
      .def_prop_ro("nbytes", [](const Owned& owned) { return owned.stepper->bytes(); },
                   "Memory of the simulations [bytes].")
      .def("take", &take, "environment"_a, "log"_a, "at_once"_a,
           "Let an environment play another log from its next episode on; or at once: it has no episode then. The "
           "rows must be wide enough for its episodes.")
      .def("limit", [](Owned& owned, i64 e, const ByName& limits) {
             const Alone::Inside inside(owned.alone);
             set_limits(owned.coming(e), limits);
           }, "environment"_a, "limits"_a,
           "Set the limits of its next episode: `caps` and `budgets`, as a model takes them.")
      .def("begin_with", [](Owned& owned, i64 e, const ByName& accounts) {
             const Alone::Inside inside(owned.alone);
             AnyEnvironment& environment = owned.coming(e);
             environment.begin_with(own_accounts(accounts, environment.episode().next_jobs));
           }, "environment"_a, "accounts"_a,
           "Say what users have used when the next episode of an environment begins.")
      .def("anew", [](const Owned& owned, i64 e, const std::optional<ByName>& accounts,
                      const std::optional<ByName>& limits) {
             const Alone::Inside inside(owned.alone);
             AnyEnvironment& environment = owned.of(e);
             if (limits) set_limits(environment, *limits);
             const i64 n = environment.episode().jobs;
             return environment.anew(accounts ? own_accounts(*accounts, n) : nullptr);
           }, "environment"_a, "accounts"_a = nb::none(), "limits"_a = nb::none(),
           "Return a simulation of the jobs that its row tells of, before its first event; "
           "`accounts`: what users have used before, where that counts; `limits` as of `limit`, also for the next "
           "episode of the same log.")
      .def("simulation", [](const Owned& owned, i64 e) {
             const Alone::Inside inside(owned.alone);
             return owned.of(e).simulation();
           }, "environment"_a,
           "Return the simulation of an episode that has begun. It goes on with the environment, up "
           "to where that begins another.")
      .def("put", [](Owned& owned, i64 e, const AnySimulation& simulation) {
             const Alone::Inside inside(owned.alone), other(simulation);
             owned.of(e).put(simulation);
           }, "environment"_a, "simulation"_a,
           "Let an environment go on from a copy of a simulation of the jobs that its row tells of.")
      .def("hide", [](const Owned& owned, i64 e, const ByName& rows, const AnySimulation& hidden) {
             const Alone::Inside inside(owned.alone), other(hidden);
             std::vector<nb::object> keep;
             owned.of(e).hide(rows_of(owned.of(e).table, owned.of(e).table.n_booked(), rows, keep).at(0), hidden);
           }, "environment"_a, "rows"_a, "hidden"_a,
           "Let rows of one environment, (1, ...) by name, tell of the episode of a copy that hides "
           "the future: it has the jobs that are known, and the rewards up to now are added up anew.");
}

}  // namespace hpc
