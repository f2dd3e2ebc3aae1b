// A model made from the bytes of a fuzzer, and its simulation to the end.
//
// Models that are refused are not simulated. All others must end, and checks must hold: an invalid
// model must be refused, and must never cause reads of foreign memory.
#pragma once
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../answers/program.hpp"
#include "../base/archive.hpp"
#include "../machines/nodes/layout.hpp"
#include "../places/simulation.hpp"

namespace hpc::fuzz {

inline void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

// Numbers from bytes; zeros once these are used up.
class Bytes {
  const std::uint8_t* data_;
  std::size_t left_;

 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
  bool are_left() const { return left_ > 0; }
  i64 next() { return left_ == 0 ? 0 : (--left_, *data_++); }
  i64 below(i64 n) { return next() % n; }
  bool one_in(i64 n) { return below(n) == n - 1; }
  // Usually a small number, sometimes an edge case.
  i64 any() {
    static constexpr std::array<i64, 10> edges{
        -1, -2, i64{1} << 31, i64{1} << 53, (i64{1} << 53) + 1, i64{1} << 62,
        std::numeric_limits<i64>::max(), std::numeric_limits<i64>::min(), i64{1} << 40, 1'000'000'000};
    return one_in(16) ? edges[index(below(edges.size()))] : below(50);
  }
  double real() {
    static constexpr std::array<double, 6> edges{inf, -inf, std::numeric_limits<double>::quiet_NaN(),
                                                 1e300, 0.0, -1e-300};
    return one_in(16) ? edges[index(below(edges.size()))] : static_cast<double>(below(100)) / 4 - 5;
  }
};

// The columns of a model, and the model.
struct Case {
  Model model;
  Layout layout;
  std::vector<Job> jobs;
  std::vector<i64> keys, predicted, candidate_times, users, groups, counts, asks, classes, needs, capacity, earliest;
  std::vector<Outage> outages;
  std::vector<Score> scores;
  std::vector<double> held;
};

// `wild`: arbitrary columns and rules, mostly refused; otherwise as Python makes them.
inline std::shared_ptr<Case> make_case(Bytes& bytes, bool wild) {
  const auto made = std::make_shared<Case>();
  Case& c = *made;
  Model& m = c.model;
  m.capacity = 1 + bytes.below(16);
  const bool on_nodes = bytes.one_in(3), learns = bytes.one_in(3), quotas = bytes.one_in(4),
             stops = !learns && bytes.one_in(4);
  const i64 n = bytes.below(wild ? 12 : 40), n_users = 1 + bytes.below(3);
  const auto any_of = [&](i64 usual) { return wild && bytes.one_in(8) ? bytes.any() : usual; };
  i64 submit = 0;
  for (i64 j = 0; j < n; ++j) {
    submit += bytes.one_in(3) ? bytes.below(40) : 0;
    const i64 requested = 1 + bytes.below(60), run = 1 + bytes.below(requested);
    const i64 width = 1 + bytes.below(m.capacity);
    c.jobs.push_back({any_of(submit), any_of(run), any_of(requested), any_of(width), submit});
    c.asks.insert(c.asks.end(), {1, c.jobs.back().processors});
    c.keys.push_back(bytes.any());
    c.predicted.push_back(any_of(bytes.one_in(2) ? requested : 1 + bytes.below(60)));
    c.candidate_times.push_back(any_of(1 + bytes.below(60)));
    c.users.push_back(any_of(bytes.below(n_users)));
    c.groups.push_back(bytes.below(3) - 1);
    c.counts.push_back(bytes.below(4) - 1);
    c.classes.push_back(bytes.below(3));
    c.held.push_back(wild ? bytes.real() : static_cast<double>(bytes.below(8)));
    if (wild) c.scores.push_back({bytes.real(), bytes.real()});
    else c.scores.push_back({static_cast<double>(bytes.below(20)), 1.0 + static_cast<double>(bytes.below(9))});
  }
  m.jobs = c.jobs.data(), m.n_jobs = n;
  m.keys = m.second_keys = c.keys.data();
  m.scores = m.second_scores = c.scores.data();
  m.predicted = c.predicted.data(), m.held = c.held.data();
  m.candidate_times = c.candidate_times.data();
  m.users = c.users.data(), m.n_users = n_users;
  if (wild && bytes.one_in(8)) m.users = nullptr;
  if (wild && bytes.one_in(8)) m.predicted = nullptr;
  if (wild && bytes.one_in(8)) m.ticks = bytes.any();
  if (on_nodes) {  // units of one or two cores, on nodes with equal cores
    const i64 nodes = 1 + bytes.below(4), cores = 1 + bytes.below(4);
    m.capacity = nodes * cores;
    c.capacity.assign(index(nodes), cores);
    for (Job& job : c.jobs) {
      const i64 of_unit = cores > 1 && job.processors % 2 == 0 ? 2 : 1;
      const i64 most = nodes * (cores / of_unit);
      const i64 units = std::clamp<i64>(job.processors / of_unit, 1, most);
      job.processors = wild && bytes.one_in(16) ? bytes.any() : units * of_unit;
      // the limit of units on one node lets the machine hold the job
      const i64 least = (units + nodes - 1) / nodes;
      c.needs.insert(c.needs.end(),
                     {units, of_unit, bytes.one_in(4) ? least + bytes.below(2) : any_number});
    }
    for (std::size_t j = 0; j < c.jobs.size(); ++j) c.asks[2 * j + 1] = c.jobs[j].processors;
    for (i64 node = 0; node < nodes; ++node) {
      c.needs.insert(c.needs.end(), {1, cores, any_number});  // of the pseudo-job of a failed node
      i64 time = 0;
      for (i64 left = bytes.one_in(2) ? bytes.below(3) : 0; left > 0; --left) {
        const i64 begin = time + 1 + bytes.below(60);
        time = begin + 1 + bytes.below(30);
        c.outages.insert(c.outages.end(), {{begin, node, time}, {time, node, -1}});
      }
    }
    std::stable_sort(c.outages.begin(), c.outages.end(), [](const Outage& a, const Outage& b) {
      return std::pair(a.time, !a.is_repair()) < std::pair(b.time, !b.is_repair());
    });
    if (!c.outages.empty()) m.outages = c.outages.data(), m.n_outages = static_cast<i64>(c.outages.size());
    Layout& l = c.layout;
    l.n_nodes = nodes, l.n_resources = 1, l.n_rows = n + nodes;
    l.needs = c.needs.data(), l.capacity = c.capacity.data();
    l.allocation = static_cast<Allocation>(bytes.below(5));
    l.complete();
    m.nodes = &l;
  }
  if (quotas) {
    m.restricted = true;
    m.quotas.counts = c.counts.data(), m.quotas.n = 1, m.quotas.amounts = {bytes.below(2)};
    m.quotas.asks = c.asks.data(), m.quotas.n_amounts = 2;
    m.quotas.of_cluster = {bytes.below(2)};
    m.quotas.rates = {bytes.below(3) - 1}, m.quotas.step = 1 + bytes.below(9);
    m.quotas.budgets = {m.quotas.rates[0] < 0 ? Spent::none : static_cast<Spent>(bytes.below(3))};
    m.quotas.use.half_lives = {20, 90, 300}, m.quotas.use.period = 1 + bytes.below(60);
    // each job may run alone
    const bool of_jobs = m.quotas.amounts[0] == 0;
    for (int k = 0; k < 3; ++k) {
      m.quotas.left.push_back(of_jobs ? 1 + bytes.below(4) : m.capacity + bytes.below(9));
      m.quotas.greatest.push_back(forever);
    }
  }
  if (!on_nodes && bytes.one_in(6)) {
    m.restricted = true, m.rules.tested = all_jobs;
    for (i64 end = 0, left = 1 + bytes.below(3); left > 0; --left) {
      const i64 begin = end + bytes.below(40);
      end = begin + 1 + bytes.below(40);
      m.windows.push_back({begin, end, 1 + bytes.below(m.capacity)});
    }
  }
  if (bytes.one_in(6)) {  // each second job may follow the one before
    ArrivalRules& a = m.arrivals;
    a.moves = a.by_arrival[0] = true, m.rules.primary = Order::keyed, m.rules.logs = true;
    a.left.assign(index(n), 0), a.think.assign(index(n), bytes.below(9)), a.first.push_back(0);
    for (i64 j = 0; j < n; ++j) {
      c.earliest.push_back(c.jobs[index(j)].submit);
      if (j % 2 == 0 && j + 1 < n && bytes.one_in(2)) a.followers.push_back(j + 1), a.left[index(j + 1)] = 1;
      a.first.push_back(static_cast<i64>(a.followers.size()));
    }
    a.earliest = c.earliest.data();
    a.places.counts = c.counts.data(), a.places.n = bytes.below(2), a.places.amounts = {0};
    a.places.budgets = {Spent::none};
    a.places.asks = c.asks.data(), a.places.n_amounts = 2;
    for (int k = 0; k < 3; ++k) a.places.left.push_back(1 + bytes.below(4));
  }
  if (stops) {
    m.restricted = true;
    m.rules.tested = all_jobs;
    m.stops.group = c.groups.data(), m.stops.level = {0, 1};
    m.stops.may = {0, 0, 1, 0}, m.stops.exempt = {bytes.below(30), 0};
    m.stops.grace = {bytes.below(30), 0};
    m.stops.become = static_cast<Stopped>(bytes.below(3));
  }
  if (bytes.one_in(6)) {
    m.rules.primary = m.rules.secondary = Order::scored, m.rules.renews = Renews::each_time;
    m.rules.remembered = bytes.below(7);
    Expression& e = m.expressions[index(bytes.below(2))];
    e.columns.assign(2, c.held.data()), e.times = c.predicted.data();
    for (i64 depth = 0, left = 1 + bytes.below(6); left > 0 || depth > 1; --left) {
      const bool takes_two = depth > 1 && (left <= 0 || bytes.one_in(2));
      static constexpr std::array<i64, 5> pushed{Program::number, Program::feature, Program::column,
                                                 Program::state, Program::in_use};
      e.codes.push_back(any_of(takes_two ? Program::add + bytes.below(Program::choice - Program::add)
                                         : pushed[index(bytes.below(pushed.size()))]));
      const i64 most = e.codes.back() == Program::state ? static_cast<i64>(State::n_values) : 2;
      e.numbers.push_back(wild && bytes.one_in(4) ? bytes.real() : static_cast<double>(bytes.below(most)));
      depth += takes_two ? -1 : 1;
    }
    if (bytes.one_in(4)) {  // a network of one input and one unit
      e.codes.push_back(Program::layer), e.numbers.push_back(1);
      for (int k = 0; k < 4; ++k) e.layer.push_back(static_cast<double>(bytes.below(5) - 2));
    }
  }
  if (bytes.one_in(4)) {  // questions within passes
    m.rules.picks = bytes.one_in(2), m.rules.proposes = !m.rules.picks;
    m.rules.put_offs = bytes.below(4), m.rules.put_off_for = 1 + bytes.below(40);
  }
  if (learns) {
    Learning l;
    for (Estimator& each : l.estimators) {
      each.kind = std::array{Predicts::beforehand, Predicts::outside, Predicts::mean_of_last,
                             Predicts::user_ratio, Predicts::typical_ratio}[index(bytes.below(5))];
      each.last = 1 + bytes.below(3);
    }
    l.looks = {bytes.one_in(2), bytes.one_in(2)};
    l.classes = c.classes.data();
    l.memory.assign(index(n_users * 8), 0.0);
    l.ratios.assign(index(2 * (1 + n_users + 3)), 0.0);
    m.learning = l;
  }
  return made;
}

// Set rules by their names. Return whether all values are valid.
inline bool set_rules(Rules& rules, Bytes& bytes, bool wild) {
  static constexpr std::array names{
      "passes", "primary", "secondary", "estimate", "correction", "depth", "threshold", "last", "remembered", "strict",
      "managed", "timeout", "off_time", "on_time", "tested", "tested_of_user", "window", "every",
      "at_events", "all_every", "resolution", "linear", "keeps", "holds", "asks", "starts", "learns",
      "renews", "logs", "erode", "relax"};
  try {
    for (i64 left = bytes.below(wild ? 12 : 6); left > 0; --left) {
      const i64 value = bytes.one_in(4) ? bytes.any() : bytes.below(6);
      const char* name = names[index(bytes.below(names.size()))];
      set_rule(rules, name, std::string(name) == "depth" && value > 2 ? all_jobs : value);
    }
  } catch (const std::invalid_argument&) {
    return false;
  }
  return true;
}

// Answer the question; with `wild`, maybe with an arbitrary answer first.
inline void answer(AnySimulation& s, const Model& m, Bytes& bytes, bool wild) {
  const auto try_anything = [&](auto f) {
    if (!wild || !bytes.one_in(3)) return;
    try {
      f();
    } catch (const std::logic_error&) {  // invalid answers are refused
    }
  };
  std::vector<i64> queued;
  for (const auto& [name, column] : s.view())
    if (std::string(name) == "queued") queued = column;
  const auto any_job = [&] { return bytes.one_in(4) ? bytes.any() : bytes.below(m.n_jobs); };
  const Asked asked = s.asked();
  if (asked == Asked::order) {
    std::vector<double> scores;
    for (std::size_t k = 0; k < queued.size(); ++k) scores.push_back(wild ? bytes.real() : double(k));
    try_anything([&] {
      const i64 j = any_job();
      s.order(&j, scores.data(), scores.empty() ? 0 : 1);
    });
    if (s.asked() == asked) s.order(queued.data(), scores.data(), queued.size());
  } else if (asked == Asked::job) {
    try_anything([&] { s.select(any_job(), wild ? bytes.any() : -1); });
    if (s.asked() == asked) {
      must(!queued.empty(), "a job is asked for where some wait");
      const bool none = m.rules.asks_within() && !bytes.one_in(4);
      const i64 any = queued[index(bytes.below(static_cast<i64>(queued.size())))];
      s.select(none ? -1 : m.rules.proposes ? s.now().about : any, -1);
    }
  } else if (asked == Asked::starts) {
    const std::vector<i64> first{0, 0};
    try_anything([&] {
      const i64 j = any_job(), cell = bytes.any(), units = bytes.any();
      const std::vector<i64> one{0, 1};
      s.launch({&j, 1}, one, {&cell, 1}, &units);
    });
    if (s.asked() == asked) {
      std::vector<i64> chosen;
      for (const i64 j : s.fits(queued).empty() ? std::vector<i64>{} : queued)
        if (chosen.empty()) chosen.push_back(j);
      s.launch(chosen, {first.data(), chosen.size() + 1}, {}, nullptr);
    }
  } else if (asked == Asked::prediction || asked == Asked::correction) {
    must(is_between(s.now().about, 0, m.n_jobs - 1), "a prediction is for a job");
    try_anything([&] { s.predict(bytes.real(), bytes.real()); });
    if (s.asked() == asked) s.predict(1.0 + double(bytes.below(60)), 1.0 + double(bytes.below(60)));
  } else {
    must(asked == Asked::renewal, "it asks for something");
    try_anything([&] {
      const i64 j = any_job();
      const double seconds = bytes.real();
      s.renew(&j, &seconds, 1);
    });
    if (s.asked() == asked) {
      const std::vector<i64> those = s.concerned();
      const std::vector<double> seconds(those.size(), 30.0);
      s.renew(those.data(), seconds.data(), those.size());
    }
  }
}

// Simulate to the end in pieces, continuing with copies.
inline std::shared_ptr<AnySimulation> simulate(const std::shared_ptr<const Model>& model, Bytes& bytes,
                                               bool wild) {
  auto s = make_simulation(std::const_pointer_cast<Model>(model));
  for (i64 pieces = 0;; ++pieces) {
    must(pieces < 200'000, "it ends");
    const i64 until = bytes.one_in(3) ? s->now().time + bytes.below(50) : forever;
    const i64 before = s->now().time, done = s->run(until, bytes.one_in(2) ? 1 + bytes.below(4) : forever);
    // nodes may fail before the first submission
    must(s->now().time >= before || done == 0 || model->outages, "time does not go back");
    if (s->asked() != Asked::nothing) answer(*s, *model, bytes, wild);
    else if (until == forever && done == 0) return s;
    if (bytes.one_in(8)) s = s->copy();
    if (bytes.one_in(16)) {
      const std::string saved = s->saved();
      auto other = make_simulation(std::const_pointer_cast<Model>(model));
      other->load(saved);
      must(other->saved() == saved, "what is saved is the same again");
      s = other;
    }
  }
}

// No job starts before its submission, and used units never exceed the capacity.
inline void check(const AnySimulation& s, const Model& m) {
  std::vector<i64> start;
  for (const auto& [name, column] : s.schedule())
    if (std::string(name) == "start") start = column;
  std::vector<std::pair<i64, i64>> changes;
  for (i64 j = 0; j < m.n_jobs; ++j) {
    if (start[index(j)] < 0) continue;
    must(start[index(j)] >= m.jobs[j].submit || m.arrivals.moves, "no job starts before it comes");
    changes.emplace_back(start[index(j)], m.jobs[j].processors);
    changes.emplace_back(start[index(j)] + s.run_time(j), -m.jobs[j].processors);
  }
  std::sort(changes.begin(), changes.end());  // at equal times, ends first
  i64 used = 0;
  const bool at_once = m.rules.passes == Passes::per_timestamp && m.stops.n_groups() == 0;
  for (const auto& [at, change] : changes) must(!at_once || (used += change) <= m.capacity, "capacity");
}

// Bytes with some of them changed, left out, or added.
inline std::string damaged(std::string right, Bytes& bytes) {
  const auto n = static_cast<i64>(right.size());
  const auto any_place = [&] { return (bytes.next() << 16 | bytes.next() << 8 | bytes.next()) % n; };
  const i64 at = any_place(), kind = bytes.below(6);
  if (kind == 0) return right.substr(0, index(at));
  if (kind == 1) return right + std::string(index(1 + bytes.below(20)), static_cast<char>(bytes.next()));
  if (kind == 2) return right.erase(index(at), index(1 + bytes.below(20)));
  if (kind == 3) std::swap(right[index(at)], right[index(any_place())]);
  const std::string number = [&] {
    const i64 any = bytes.any();
    return std::string(reinterpret_cast<const char*>(&any), sizeof any);
  }();
  if (kind == 4) right.replace(index(at), std::min(number.size(), index(n - at)), number, 0, index(n - at));
  if (kind == 5) right[index(at)] = static_cast<char>(right[index(at)] ^ (1 << bytes.below(8)));
  return right;
}
// Save a simulation somewhere on its way. What is damaged must be refused; with a right seal before
// it, it must be read without harm.
inline int load_damaged(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  const auto made = make_case(bytes, false);
  if (!set_rules(made->model.rules, bytes, false) || refusal(made->model)) return 0;
  const std::shared_ptr<Model> model(made, &made->model);
  const auto s = make_simulation(model);
  try {
    for (i64 left = bytes.below(30); left > 0; --left) {
      s->run(s->now().time + bytes.below(50), 1 + bytes.below(4));
      if (s->asked() != Asked::nothing) answer(*s, *model, bytes, false);
    }
  } catch (const std::invalid_argument& error) {
    must(error.what() == std::string(unexpected), error.what());
    return 0;
  }
  const std::string right = s->saved();
  const auto loads = [&](const std::string& saved) {
    try {
      make_simulation(model)->load(saved);
    } catch (const std::invalid_argument&) {
      return false;
    }
    return true;
  };
  must(loads(right), "what is saved is loaded");
  constexpr std::size_t seal = 16;
  for (i64 left = 1 + bytes.below(16); left > 0; --left) {
    const std::string wrong = damaged(right, bytes);
    must(wrong == right || !loads(wrong), "what is damaged is refused");
    if (wrong.size() >= seal) loads(sealed(wrong.substr(seal), fingerprint(*model)));
  }
  return 0;
}

inline int run(const std::uint8_t* data, std::size_t size, bool wild_columns, bool wild_answers) {
  Bytes bytes(data, size);
  const auto made = make_case(bytes, wild_columns);
  if (!set_rules(made->model.rules, bytes, wild_columns) || refusal(made->model)) return 0;
  const auto takes_years = [](const Job& j) { return std::max({j.submit, j.run, j.requested}) > 100'000; };
  if (made->model.rules.every > 0 && std::any_of(made->jobs.begin(), made->jobs.end(), takes_years))
    return 0;  // a look every few seconds would take too long
  const std::shared_ptr<const Model> model(made, &made->model);
  try {
    check(*simulate(model, bytes, wild_answers), *model);
  } catch (const std::invalid_argument& error) {  // known only after a prediction
    must(error.what() == std::string(unexpected), error.what());
  }
  return 0;
}

}  // namespace hpc::fuzz
