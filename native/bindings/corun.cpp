#include "corun.hpp"

#include "told.hpp"

namespace hpc {
namespace {

void expect(bool true_, const char* reason) {
  if (!true_) throw nanobind::value_error(reason);
}
template <class T>
bool all_between(const T* values, std::size_t n, T least, T most) {
  return std::all_of(values, values + n, [=](T v) { return v >= least && v <= most; });
}
bool are_rates(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return v > 0 && v < inf; });
}

}  // namespace

Belief belief_of(const Told& told) {
  const auto n = static_cast<i64>(told.list<double>("believed_alone").size());
  Belief found{told.list<double>("believed", n * n), told.list<double>("believed_alone"),
               told.list<i64>("rank", n * (n + 1)), told.list<i64>("good", n * n),
               told.list<i64>("partner", n * n), *told.column<double>("greatest", 1)};
  expect(all_between(found.rank.data(), found.rank.size(), i64{0}, n),
         "rank: from 0 to the number of codes");
  for (const auto* rates : {&found.alone, &found.pairs})
    expect(are_rates(*rates), "believed: rates must be above 0");
  return found;
}

std::shared_ptr<const Sharing> sharing_of(const Told& told, i64 n_jobs) {
  auto found = std::make_shared<Sharing>();
  Sharing& s = *found;
  const i64* machine = told.column<i64>("machine", 7);
  s.n_nodes = machine[0], s.parts = machine[1];
  expect(s.n_nodes > 0 && s.parts > 0 && machine[2] >= 0 && machine[2] <= 3 && machine[6] >= 0,
         "machine: not valid");
  s.partners = static_cast<Partners>(machine[2]);
  s.fills = machine[3] != 0, s.selective = machine[4] != 0, s.logs_spells = machine[5] != 0;
  s.first_come = machine[6];
  const double* weights = told.column<double>("weights", 3);
  std::copy(weights, weights + 3, s.weights.begin());
  s.alone = told.list<double>("alone");
  s.n_codes = static_cast<i64>(s.alone.size());
  s.speedup = told.list<double>("speedup", s.n_codes * s.n_codes);
  s.belief = belief_of(told);
  expect(s.belief.alone.size() == s.alone.size(), "believed: one value for each code");
  expect(are_rates(s.alone) && are_rates(s.speedup), "speedup, alone: rates must be above 0");
  s.nodes = told.column<i64>("nodes", n_jobs);
  s.placement = told.column<i64>("placement", n_jobs);
  s.code = told.column<i64>("code", n_jobs);
  expect(all_between(s.nodes, index(n_jobs), i64{1}, s.n_nodes),
         "nodes: from 1 to all nodes of the machine");
  expect(all_between(s.placement, index(n_jobs), i64{0}, i64{2}), "placement: not valid");
  expect(all_between(s.code, index(n_jobs), i64{0}, s.n_codes - 1), "code: not valid");
  if (const double bandwidth = *told.column<double>("bandwidth", 1); bandwidth > 0) {
    s.files = {bandwidth, told.list<double>("io_share", s.n_codes),
               told.column<i64>("io_demand", n_jobs)};
    expect(all_between(s.files->share.data(), s.files->share.size(), 0.0, 1.0),
           "io_share: from 0 to 1");
  }
  if (told.has("watts")) {
    const double* watts = told.column<double>("watts", 2);
    const i64* cores = told.column<i64>("cores", 3);
    s.draws = {watts[0] - watts[1], told.list<double>("node_watts"), {cores[0], cores[1], cores[2]},
               told.column<i64>("processors", n_jobs)};
    expect(index(s.n_nodes * 2) * !s.draws->node_w.empty() == s.draws->node_w.size(),
           "node_watts: two values for each node");
  }
  return found;
}

}  // namespace hpc
