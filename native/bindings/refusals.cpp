// Why something cannot be simulated.
#include <array>
#include <initializer_list>
#include <stdexcept>

#include "../answers/program.hpp"
#include "../machines/corun/sharing.hpp"
#include "../machines/nodes/layout.hpp"
#include "limited.hpp"

namespace hpc {
namespace {

// A rule by its name, and the range of its values.
struct Field {
  const char* name;
  i64 least, most;
  void (*set)(Rules&, i64);
};
template <auto member>
constexpr Field field(const char* name, i64 least, i64 most) {
  return {name, least, most, [](Rules& rules, i64 value) {
            using T = std::remove_reference_t<decltype(rules.*member)>;
            rules.*member = static_cast<T>(value);
          }};
}
constexpr Field fields[] = {
    field<&Rules::passes>("passes", 0, 1),
    field<&Rules::primary>("primary", 0, 5),
    field<&Rules::secondary>("secondary", 0, 5),
    field<&Rules::estimate>("estimate", 0, 1),
    field<&Rules::correction>("correction", 0, 5),
    field<&Rules::depth>("depth", 0, all_jobs),
    field<&Rules::threshold>("threshold", -1, forever),
    field<&Rules::last>("last", 0, 1'000'000),
    field<&Rules::remembered>("remembered", 0, 1'000'000),
    field<&Rules::strict>("strict", 0, 1),
    field<&Rules::managed>("managed", 0, 1),
    field<&Rules::timeout>("timeout", 0, forever),
    field<&Rules::off_time>("off_time", 0, longest),
    field<&Rules::on_time>("on_time", 0, longest),
    field<&Rules::tested>("tested", 0, all_jobs),
    field<&Rules::tested_of_user>("tested_of_user", 0, all_jobs),
    field<&Rules::window>("window", 0, forever),
    field<&Rules::every>("every", 0, longest),
    field<&Rules::at_events>("at_events", 0, all_jobs),
    field<&Rules::all_every>("all_every", 0, longest),
    field<&Rules::resolution>("resolution", 0, longest),
    field<&Rules::linear>("linear", 0, longest),
    field<&Rules::reserves_all>("reserves_all", 0, 1),
    field<&Rules::keeps>("keeps", 0, 1),
    field<&Rules::picks>("picks", 0, 1),
    field<&Rules::proposes>("proposes", 0, 1),
    field<&Rules::put_offs>("put_offs", 0, 255),
    field<&Rules::put_off_for>("put_off_for", 0, longest),
    field<&Rules::holds>("holds", 0, 1),
    field<&Rules::asks>("asks", 0, 1),
    field<&Rules::asks_by_clock>("asks_by_clock", 0, 1),
    field<&Rules::starts>("starts", 0, 1),
    field<&Rules::learns>("learns", 0, 1),
    field<&Rules::renews>("renews", 0, 2),
    field<&Rules::logs>("logs", 0, 1),
    field<&Rules::erode>("erode", 0, longest),
    field<&Rules::relax>("relax", 0, longest),
};

// A condition that must not hold, and its error text.
struct Fault {
  bool is_there;
  const char* reason;
};
const char* first_of(std::initializer_list<Fault> faults) {
  for (const Fault& fault : faults)
    if (fault.is_there) return fault.reason;
  return nullptr;
}

const char* refusal_of_rules(const Model& m) {
  const Rules& r = m.rules;
  const bool learns = m.learning || m.accounts, plans = r.plans();
  return first_of({
      {r.primary == Order::prediction, "primary: the queue cannot be served in this order"},
      {r.secondary == Order::selection, "secondary: backfilling has no selection"},
      {r.primary == Order::keyed && !m.keys, "keys: the order of the queue needs them"},
      {r.secondary == Order::keyed && !m.second_keys, "second_keys: backfilling needs them"},
      {m.is_scored(0) && !m.scores && !m.features, "scores: the order of the queue needs them"},
      {m.is_scored(1) && !m.second_scores, "second_scores: backfilling needs them"},
      {r.asks && !m.is_scored(0), "asks: an agent's order needs an order by scores"},
      {r.asks && m.sharing && m.sharing->fills && !m.is_scored(1),
       "asks: where jobs fill, the secondary order is by scores, too"},
      {r.starts && (m.sharing || r.asks || m.restricted || m.arrivals.moves || plans),
       "starts: not with another rule of which jobs start"},
      {m.n_users < 0, "n_users: 0 or more"},
      {r.estimate == Estimate::average && (!m.users || r.last < 1),
       "users: averages need them"},
      {r.remembered > 0 && !m.users, "users: remembered run times need them"},
      {r.estimate == Estimate::given && !m.predicted, "predicted: run times have no estimate"},
      {r.holds && !m.held, "held: holding jobs back needs them"},
      {r.relax > 0 && !m.candidate_times, "candidate_times: relaxed backfilling needs them"},
      {r.relax > 0 && (r.depth != 1 || r.every > 0 || (plans && r.holds) || m.sharing || m.limited ||
                       !m.windows.empty() || m.stops.n_groups() > 0),
       "relax: needs one reservation, without other plans"},
      {m.learning && !m.users, "users: learning needs them"},
      {r.learns && !learns, "learning: asking for predictions needs it"},
      {r.correction == Correction::again && !m.learning,
       "learning: asking for corrections needs it"},
      {r.tested_of_user > 0 && !m.users, "users: limits of tested jobs need them"},
      {r.asks_within() && (m.nodes || m.sharing || m.limited || plans || r.primary == Order::selection ||
                           r.asks || r.starts || (r.picks && r.proposes)),
       "picks, proposes: only one, on a pool, where a rule orders the queue"},
      {r.picks && r.depth != 1, "picks: needs one reservation"},
      {r.proposes && r.put_off_for < 1, "put_off_for: 1 s or more"},
      {plans && r.primary == Order::selection && (r.depth > 1 || r.every > 0),
       "primary: no selection with several reservations"},
      {r.primary == Order::selection && m.stops.n_groups() > 0,
       "primary: no selection with preemption"},
      {r.every > 0 && r.passes == Passes::per_event, "every: not with a pass for each event"},
      {r.managed && r.passes == Passes::per_event, "managed: not with a pass for each event"},
      {r.managed && r.keeps_reservations(),
       "managed: not with reservations that are kept"},
      {m.arrivals.moves && r.primary == Order::submission,
       "primary: order of arrival must be by keys here"},
      {!m.windows.empty() && !plans, "windows: need rules that plan"},
      {r.every > 0 && r.tested == 0, "every: needs `tested`"},
      {m.quotas.n > 0 && r.keeps_reservations(),
       "quotas: not with reservations that are kept"},
      {r.every > 0 && r.all_every < 1, "all_every: 1 s or more"},
      {r.every > 0 && r.resolution < 1, "resolution: 1 s or more"},
      {m.nodes && (r.managed || r.passes == Passes::per_event),
       "nodes: not with managed processors or a pass for each event"},
      {m.stops.n_groups() > 0 &&
           (!m.restricted || r.tested == 0 || r.managed),
       "preemption: needs `tested`, without managed processors"},
      {m.outages && m.stops.n_groups() > 0 && m.stops.become == Stopped::suspended,
       "outages: not with suspension of jobs"},
      {m.nodes && m.nodes->n_rows < m.n_jobs + (m.outages ? m.nodes->n_nodes : 0),
       "nodes: one row of needs for each job, and each node that may fail"},
      {m.outages && !m.nodes, "outages: only with nodes"},
      {m.sharing && (m.nodes || m.features || !m.windows.empty() || m.stops.n_groups() > 0 ||
                     r.passes == Passes::per_event || r.depth > 1 || r.tested > 0 || r.keeps ||
                     r.holds || r.managed || r.estimate != Estimate::given || m.learning),
       "sharing: not with these rules"},
      {m.sharing && m.capacity != m.sharing->n_nodes * m.sharing->parts,
       "sharing: the capacity must be all parts of all nodes"},
      {!is_between(m.ticks, 1, 1'000'000'000), "ticks: from 1 to 1,000,000,000 in a second"},
      {m.limited && (m.nodes || !m.windows.empty() || m.stops.n_groups() > 0 ||
                     r.passes == Passes::per_event || r.depth > 1 || r.every > 0 || r.managed),
       "limited: not with these rules"},
  });
}
const char* refusal_of_outage(const Model& m, i64 i) {
  const Outage &one = m.outages[i], &before = m.outages[i > 0 ? i - 1 : 0];
  return first_of({
      {!is_between(one.node, 0, m.nodes->n_nodes - 1), "outages: there is no such node"},
      {one.time < before.time ||
           (one.time == before.time && one.is_repair() && !before.is_repair()),
       "outages: must be sorted by time, repairs first"},
  });
}
const char* refusal_of_jobs(const Model& m) {
  const Rules& r = m.rules;
  const auto any = [&](bool is_asked, auto is_wrong) {
    for (i64 j = 0; is_asked && j < m.n_jobs; ++j)
      if (is_wrong(j, m.jobs[j])) return true;
    return false;
  };
  const auto is_good = [](const Score& s) {
    return std::isfinite(s.score) && s.patience != 0 && !std::isnan(s.patience);
  };
  const i64 least = r.learns ? 0 : 1;  // before there is a prediction
  const i64 longest = m.ticks > 1 ? forever / 2 : hpc::longest;  // for all jobs in sequence
  const bool bounded = r.correction == Correction::to_requested ||
                       r.correction == Correction::incremental ||
                       r.correction == Correction::again;
  const bool expires = r.plans() && r.correction == Correction::none;
  return first_of({
      {any(true, [&](i64, const Job& job) { return !is_between(job.processors, 1, m.capacity); }),
       "jobs: processors from 1 to the capacity"},
      {any(m.nodes, [&](i64 j, const Job& job) {
         return job.processors != m.nodes->units(j) * m.nodes->demand(j)[0];
       }), "jobs: processors must equal cores of all units"},
      {any(m.sharing != nullptr, [&](i64 j, const Job& job) {
         return job.processors != m.sharing->nodes[j] * m.sharing->parts_of(j);
       }), "jobs: processors must equal parts of nodes"},
      {any(m.sharing && m.predicted, [&](i64 j, const Job& job) {
         return m.predicted[j] < job.run;
       }), "sharing: predictions must not be below run times"},
      {any(true, [=](i64, const Job& job) { return !is_between(job.submit, 0, longest); }),
       "jobs: submission times from 0 s to 2^53 s"},
      {any(true, [=](i64, const Job& job) {
         return !is_between(job.run, 1, longest) || !is_between(job.requested, 1, longest);
       }), "jobs: run and requested times from 1 s to 2^53 s"},
      {any(!m.several, [&](i64 j, const Job& job) {
         return j > 0 && job.submit < m.jobs[j - 1].submit;
       }), "jobs: must be in the order of submission"},
      {any(m.users, [&](i64 j, const Job&) { return !is_between(m.users[j], 0, m.n_users - 1); }),
       "users: numbers below n_users"},
      {any(m.predicted, [&](i64 j, const Job&) {
         return !is_between(m.predicted[j], least, longest);
       }), "predicted: from 1 s to 2^53 s"},
      {any(bounded, [&](i64 j, const Job& job) {
         // a job with a sufficient given prediction never expires
         const bool known = !m.learning || m.learning->estimators[0].kind == Predicts::beforehand;
         const bool given = r.estimate == Estimate::given && known && m.predicted[j] >= job.run;
         return job.run > job.requested && !given;
       }),
       "correction: a job that runs longer than requested would be corrected for ever"},
      {expires && r.estimate == Estimate::average, unexpected},
      {any(expires && m.predicted, [&](i64 j, const Job& job) { return m.predicted[j] < job.run; }),
       unexpected},
      {any(r.holds && m.held, [&](i64 j, const Job&) {
         return !(m.held[j] >= 0 && m.held[j] < 1e15);
       }), "held: must be 0 or more"},
      {any(r.relax > 0 && m.candidate_times, [&](i64 j, const Job&) {
         return !is_between(m.candidate_times[j], 0, longest);
       }), "candidate_times: from 0 to 2^53 s"},
      {any(m.is_scored(0) && m.scores && !m.features, [&](i64 j, const Job&) {
         return !is_good(m.scores[j]);
       }), "scores: numbers, with a patience other than 0"},
      {any(m.is_scored(1) && m.second_scores, [&](i64 j, const Job&) {
         return !is_good(m.second_scores[j]);
       }), "second_scores: numbers, with a patience other than 0"},
  });
}

}  // namespace

void set_rule(Rules& rules, const std::string& name, i64 value) {
  for (const Field& f : fields) {
    if (name != f.name) continue;
    if (!is_between(value, f.least, f.most))
      throw std::invalid_argument(name + ": from " + std::to_string(f.least) + " to " +
                                  std::to_string(f.most) + ", not " + std::to_string(value));
    return f.set(rules, value);
  }
  throw std::invalid_argument("no rule " + name);
}

const char* refusal(const Model& m) {
  const char* reason = refusal_of_rules(m);
  const std::array<Order, 2> orders{m.rules.primary, m.rules.secondary};
  for (std::size_t half = 0; half < 2 && !reason; ++half) {
    const Expression& each = m.expressions[half];
    reason = Program::refusal(each);
    if (!reason && !each.codes.empty() && orders[half] != Order::scored)
      reason = "expressions: need an order by scores";
    if (!reason && !Program::is_told(each, m))
      reason = "expressions: the model lacks what they use of users";
  }
  if (m.limited && !reason) reason = refusal(*m.limited, m);
  for (i64 i = 0; i < m.n_outages && !reason; ++i) reason = refusal_of_outage(m, i);
  return reason ? reason : refusal_of_jobs(m);
}

const char* refusal(const Layout& l, i64 columns_of_needs) {
  if (l.n_nodes < 1 || l.n_resources < 1) return "capacity: at least one node and one resource";
  if (columns_of_needs != 2 + l.n_resources)
    return "needs: (n_rows, 2 + R)";
  if (l.allocation >= Allocation::weighted && !l.asks) return "asks: the allocation needs them";
  const i64 n = l.n_resources;
  for (i64 j = 0; j < l.n_rows; ++j) {
    const i64* demand = l.demand(j);  // of a window that some jobs may use, no core
    const bool asks = std::any_of(demand, demand + n, [](i64 need) { return need > 0; });
    if (l.units(j) < 1 || !asks || demand[n] < 1)
      return "needs: at least one unit, of some resource, and one on a node";
  }
  if (std::any_of(l.needs, l.needs + l.n_rows * (2 + n), [](i64 each) { return each < 0; }))
    return "needs: 0 or more";
  if (std::any_of(l.capacity, l.capacity + l.n_nodes * n, [](i64 each) { return each < 0; }))
    return "capacity: 0 or more";
  return nullptr;
}

}  // namespace hpc
