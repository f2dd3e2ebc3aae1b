#include "told.hpp"

#include <algorithm>

#include "../answers/regression.hpp"
#include "../machines/nodes/layout.hpp"

namespace hpc {
namespace {

// Read two rows of values, one after the other.
template <class T>
std::array<std::vector<T>, 2> halves(const Told& told, const char* name) {
  const std::vector<T> both = told.list<T>(name);
  const auto middle = both.begin() + static_cast<std::ptrdiff_t>(both.size() / 2);
  return {std::vector<T>(both.begin(), middle), std::vector<T>(middle, both.end())};
}
void expect(bool true_, const char* reason) {
  if (!true_) throw nanobind::value_error(reason);
}

}  // namespace

Learning learning_of(const Told& told, i64 n_jobs, i64 n_users) {
  Learning found;
  const i64 *kinds = told.column<i64>("kinds", 2), *last = told.column<i64>("last", 2);
  const i64* looks = told.column<i64>("looks", 2);
  const std::vector<Loss> loss = told.records<Loss>("loss", 2);
  const i64* chosen = told.column<i64>("chosen", 2 * n_seen);
  const double* weights = told.column<double>("weights", 2 * n_features);
  const double* sums = told.column<double>("sums", 4);
  std::copy(sums, sums + 4, found.sums.begin());
  found.memory = told.list<double>("memory");
  found.ratios = told.list<double>("ratios");
  found.terms = {told.list<double>("terms"), told.list<double>("second_terms")};
  found.hold = told.list<double>("hold");
  for (std::size_t k = 0; k < 2; ++k, chosen += n_seen, weights += n_features) {
    expect(kinds[k] >= 0 && kinds[k] < static_cast<i64>(Predicts::unknown),
           "kinds: there is no such kind");
    found.estimators[k] = {static_cast<Predicts>(kinds[k]), last[k], loss[k], {}};
    for (std::size_t i = 0; i < n_seen && chosen[i] >= 0; ++i) {
      expect(index(chosen[i]) < n_seen, "chosen: there is no such feature");
      found.estimators[k].features.push_back(index(chosen[i]));
    }
    expect(found.terms[k].size() == 3 * Regression::n_terms(found.estimators[k]),
           "terms: three for each product of features");
    expect(found.estimators[k].kind != Predicts::typical_ratio || !found.ratios.empty() || n_jobs == 0,
           "ratios: one row for each user and class");
    found.looks[k] = looks[k] != 0;
    std::copy(weights, weights + n_features, found.weights[k].begin());
  }
  const i64* is_of = told.column<i64>("is_of", 2);
  found.of_orders = is_of[0] != 0, found.of_candidates = is_of[1] != 0;
  expect(found.hold.empty() || found.hold.size() == 4, "hold: four numbers, if any");
  const i64 columns = n_users > 0 ? static_cast<i64>(found.memory.size()) / n_users : 8;
  expect(columns - 5 >= std::max({i64{3}, last[0], last[1]}), "memory: too small");
  if (!found.ratios.empty()) {
    found.classes = told.column<i64>("classes", n_jobs);
    const i64 n = static_cast<i64>(found.ratios.size() / 2) - 1 - n_users;
    expect(std::all_of(found.classes, found.classes + n_jobs,
                       [n](i64 c) { return c >= 0 && c < n; }), "classes: too large");
  }
  if (told.list<i64>("asked").size() > 0) found.asked = told.column<i64>("asked", n_jobs);
  return found;
}

Accounts accounts_of(const Told& told, i64 n_jobs) {
  Accounts found;
  found.owner = told.column<i64>("owner", n_jobs);
  const double* rate = told.column<double>("rate", 2 * n_jobs);
  found.rate = {rate, rate + n_jobs};
  found.parent = told.list<i64>("parent");
  const auto n = static_cast<i64>(found.parent.size());
  found.share = told.list<double>("share", n);
  found.part = told.list<double>("part", n);
  const i64* kinds = told.column<i64>("kinds", 2);
  const double* weights = told.column<double>("weights", 4);
  const double* capacity = told.column<double>("capacity", 2);
  for (std::size_t k = 0; k < 2; ++k) {
    expect(kinds[k] >= 0 && kinds[k] <= static_cast<i64>(Usage::mixed), "kinds: no such usage");
    found.kinds[k] = static_cast<Usage>(kinds[k]);
    found.weights[k] = {weights[2 * k], weights[2 * k + 1]};
    found.capacity[k] = capacity[k];
  }
  found.damping = *told.column<double>("damping", 1);
  found.used = halves<double>(told, "used");
  found.recent = halves<double>(told, "recent");
  found.book = told.records<Book>("book", 1)[0];
  const i64 period = found.book.period;
  expect(period == 0 || (is_between(period, 1, forever) && found.book.counted % period == 0),
         "book: a period of 1 or more, counted up to a multiple of it");
  expect(static_cast<i64>(found.used[0].size()) == n && found.recent[0].size() == found.used[0].size(),
         "used, recent: one for each account");
  expect(std::all_of(found.parent.begin(), found.parent.end(), [n](i64 a) { return a >= -1 && a < n; }),
         "parent: an account, or -1");
  expect(std::all_of(found.owner, found.owner + n_jobs, [&](i64 a) {
           return a >= 0 && a < std::min(n, found.book.leaves);
         }), "owner: a leaf");
  return found;
}

Expression expression_of(const Told& told, i64 n_jobs) {
  Expression found;
  found.codes = told.list<i64>("codes");
  if (found.codes.empty()) return found;
  found.numbers = told.list<double>("numbers", static_cast<i64>(found.codes.size()));
  const i64 columns = *told.column<i64>("n_columns", 1);
  expect(is_between(columns, 2, 2 + static_cast<i64>(found.codes.size())),
         "n_columns: two, and at most one more for each step");
  const double* first = told.column<double>("columns", columns * n_jobs);
  for (i64 k = 0; k < columns; ++k) found.columns.push_back(first + k * n_jobs);
  found.times = told.column<i64>("times", n_jobs);
  found.clock = *told.column<i64>("clock", 1);
  expect(is_between(found.clock, 0, 604'799), "clock: a time of the week");
  if (told.has("layer")) found.layer = told.list<double>("layer");
  return found;
}

namespace {

QuotaRules quotas_of(const Told& told, i64 n_jobs) {
  QuotaRules found;
  const std::vector<i64> of_jobs = told.list<i64>("counts"), asks = told.list<i64>("asks");
  found.left = told.list<i64>("left"), found.amounts = told.list<i64>("amounts");
  found.n = static_cast<i64>(found.amounts.size());
  found.rates = told.list<i64>("rates", found.n);
  found.of_cluster = told.list<i64>("of_cluster", found.n);
  found.step = *told.column<i64>("step", 1);
  expect(found.step > 0, "quotas: time counts in steps of 1 s or more");
  for (const i64 budget : told.list<i64>("budgets", found.n)) {
    expect(is_between(budget, 0, 2), "quotas: what of use a budget bounds is 0, 1 or 2");
    found.budgets.push_back(static_cast<Spent>(budget));
  }
  found.use.half_lives = told.list<i64>("half_lives", static_cast<i64>(found.left.size()));
  found.use.period = *told.column<i64>("period", 1), found.use.before_at = *told.column<i64>("used_at", 1);
  found.use.before = told.list<double>("used");
  expect(found.use.period > 0 && found.use.before_at % found.use.period == 0 &&
             (found.use.before.empty() || found.use.before.size() == found.left.size()) &&
             std::ranges::all_of(found.use.before, [](double used) { return used >= 0; }) &&
             std::ranges::all_of(found.use.half_lives, [](i64 s) { return is_between(s, 0, forever); }),
         "quotas: use has half-lives, and counts at multiples of a period");
  if (n_jobs > 0) found.n_amounts = static_cast<i64>(asks.size()) / n_jobs;
  found.counts = told.column<i64>("counts", n_jobs * found.n);
  found.asks = told.column<i64>("asks", n_jobs * found.n_amounts);
  const auto are_asked_for = [&](const std::vector<i64>& amounts, i64 least) {
    return std::ranges::all_of(amounts, [&](i64 amount) {
      return n_jobs == 0 || is_between(amount, least, found.n_amounts - 1);
    });
  };
  expect(are_asked_for(found.amounts, 0) && are_asked_for(found.rates, -1),
         "quotas: amounts must be among those that jobs ask for");
  for (std::size_t k = 0; k < found.budgets.size(); ++k)
    expect(found.budgets[k] == Spent::none || found.rates[k] >= 0, "quotas: budgets have a rate");
  std::vector<i64> together(index(found.n_amounts));
  for (std::size_t k = 0; k < asks.size(); ++k) {
    i64& of_all = together[k % together.size()];
    expect(is_between(asks[k], 0, forever - of_all),
           "quotas: jobs may ask for so much together as can be counted");
    of_all += asks[k];
  }
  expect(std::all_of(found.left.begin(), found.left.end(),
                     [](i64 left) { return is_between(left, -forever, forever); }),
         "quotas: what is left is between -2^62 and 2^62");
  expect(std::all_of(of_jobs.begin(), of_jobs.end(), [&](i64 c) {
           const auto size = static_cast<i64>(found.left.size());
           return c >= -1 - size && c < size;
         }), "quotas: counts must exist, be -1, or -2 - count");
  found.greatest.resize(found.left.size());
  for (std::size_t k = 0; k < of_jobs.size(); ++k) {
    const std::size_t n = index(found.n), job = k / n;
    if (of_jobs[k] < 0 || found.rates[k % n] < 0) continue;  // bars no job, or for no time
    i64& greatest = found.greatest[index(of_jobs[k])];
    greatest = std::max(greatest, asks[job * index(found.n_amounts) + index(found.amounts[k % n])]);
  }
  return found;
}

}  // namespace

void restrict(Model& m, const Told& told) {
  m.restricted = true;
  m.quotas = quotas_of(told, m.n_jobs);
  const std::vector<i64> windows = told.list<i64>("windows");
  for (std::size_t k = 0; k + 2 < windows.size(); k += 3)
    m.windows.push_back({windows[k], windows[k + 1], windows[k + 2]});
  if (m.nodes && !m.windows.empty()) {
    const std::vector<i64> nodes = told.list<i64>("window_nodes");
    auto left = nodes.begin();
    for (Window& w : m.windows) {
      expect(w.taken < 0 && w.taken >= m.n_jobs - m.nodes->n_rows, "windows: no such row of needs");
      const i64 units = m.nodes->units(m.nodes->n_rows + w.taken);
      expect(nodes.end() - left >= units, "window_nodes: must have all units of the windows");
      w.nodes.assign(left, left + units);
      left += units;
    }
    expect(std::all_of(nodes.begin(), nodes.end(),
                       [&](i64 node) { return node >= 0 && node < m.nodes->n_nodes; }),
           "window_nodes: not of the machine");
  }
  expect(std::is_sorted(m.windows.begin(), m.windows.end(),
                        [](const Window& a, const Window& b) { return a.end < b.end; }),
         "windows: must be sorted by their ends");
}

void let_stop(Model& m, const Told& told) {
  StopRules& rules = m.stops;
  rules.group = told.column<i64>("group", m.n_jobs);
  rules.level = told.list<i64>("level");
  const auto n = static_cast<i64>(rules.level.size());
  rules.may = told.list<i64>("may", n * n);
  rules.exempt = told.list<i64>("exempt", n), rules.grace = told.list<i64>("grace", n);
  const i64 mode = *told.column<i64>("mode", 1);
  expect(n > 0 && mode >= 0 && mode <= static_cast<i64>(Stopped::suspended),
         "level, mode: not valid");
  rules.become = static_cast<Stopped>(mode);
  expect(std::all_of(rules.group, rules.group + m.n_jobs, [n](i64 g) { return g >= -1 && g < n; }),
         "group: there is no such group");
  for (i64 a = 0; a < n; ++a)
    for (i64 b = 0; b < n; ++b)
      expect(!rules.may_stop(a, b) || rules.level[index(a)] > rules.level[index(b)],
             "may: a group may stop only groups of lower levels");
}

void let_come(Model& m, const Told& told) {
  ArrivalRules& rules = m.arrivals;
  const auto are_below = [](const std::vector<i64>& values, i64 end) {
    return std::all_of(values.begin(), values.end(), [&](i64 v) { return v >= 0 && v < end; });
  };
  rules.moves = true;
  const auto first = told.list<i64>("first"), followers = told.list<i64>("followers");
  const auto n = static_cast<i64>(followers.size());
  expect(((first.empty() && !m.several) || static_cast<i64>(first.size()) == m.n_jobs + 1) &&
             are_below(followers, m.n_jobs) && are_below(first, n + 1) &&
             std::is_sorted(first.begin(), first.end()),
         "first, followers: not the followers of each job");
  if (m.several) {
    rules.links = std::make_shared<Links>(Links{first, followers, told.column<i64>("think", m.n_jobs),
                                                told.column<i64>("log_end", m.n_jobs)});
  } else {
    rules.first = first, rules.followers = followers;
    rules.left = told.list<i64>("awaits", m.n_jobs), rules.think = told.list<i64>("think", m.n_jobs);
  }
  rules.second = m.ticks;
  rules.earliest = told.column<i64>("earliest", m.n_jobs);
  const i64* by_arrival = told.column<i64>("by_arrival", 2);
  rules.by_arrival = {by_arrival[0] != 0, by_arrival[1] != 0};
  rules.places = quotas_of(told, m.n_jobs);
}

}  // namespace hpc
