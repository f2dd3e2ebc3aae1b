#include "limited.hpp"
#include "told.hpp"

namespace hpc {
namespace {

constexpr i64 most_mw = i64{1} << 61;

bool are_from_zero(const std::vector<i64>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](i64 each) { return each >= 0 && each <= most_mw; });
}
bool is_good(const PowerCap& cap, i64 n_nodes) {
  return cap.start >= 0 && cap.start < cap.end && cap.end <= forever && cap.announced >= -1 &&
         cap.mw >= 0 && cap.mw <= most_mw && cap.off >= 0 && cap.off <= n_nodes;
}
bool is_good(const EnergyBudget& b) {
  return b.start >= 0 && b.start < b.end && b.end <= longest && b.mj >= 0 && b.mj <= most_mw &&
         b.mean_mw >= 0 && b.mean_mw <= most_mw && b.period >= 1 && b.free_mw >= -1 &&
         b.free_mw <= i64{1} << 40;
}

}  // namespace

Limits limits_of(const Told& told, i64 n_nodes) {
  const Limits found{told.records<PowerCap>("caps"), told.records<EnergyBudget>("budgets")};
  for (const PowerCap& cap : found.caps)
    if (!is_good(cap, n_nodes))
      throw nanobind::value_error("caps: not a power limit between two times");
  for (const EnergyBudget& b : found.budgets)
    if (!is_good(b)) throw nanobind::value_error("budgets: not an energy limit between two times");
  return found;
}

std::shared_ptr<const LimitedLayout> limited_of(const Told& told, i64 n_jobs) {
  auto l = std::make_shared<LimitedLayout>();
  const auto one = [&](const char* name) { return *told.column<i64>(name, 1); };
  l->n_nodes = one("n_nodes"), l->n_processors = one("n_processors");
  l->idle_mw = one("idle_mw"), l->off_mw = one("off_mw"), l->rest_mw = one("rest_mw");
  l->shutdown_mw = one("shutdown_mw"), l->boot_mw = one("boot_mw"), l->rise_mw = one("rise_mw");
  l->off_time = one("off_time"), l->on_time = one("on_time"), l->timeout = one("timeout");
  l->lowest = one("lowest"), l->highest = one("highest");
  l->use = static_cast<BudgetUse>(one("rule"));
  l->contiguous = one("contiguous") != 0, l->limited = one("limited") != 0;
  l->busy_mw = told.list<i64>("busy_mw"), l->drawn_mw = told.list<i64>("drawn_mw");
  l->slowdown = told.list<i64>("slowdown");
  l->kind = told.column<i64>("kind", n_jobs), l->processors = told.column<i64>("processors", n_jobs);
  if (!told.list<i64>("measured_mw").empty())
    l->measured_mw = told.column<i64>("measured_mw", n_jobs * l->n_levels());
  l->size = told.list<i64>("size"), l->component_mw = told.list<i64>("component_mw");
  l->controlled = one("controlled") != 0;
  l->limit(limits_of(told, l->n_nodes));
  return l;
}

const char* refusal(const LimitedLayout& l, const Model& m) {
  const i64 n = l.n_levels();
  if (l.n_nodes < 1 || m.capacity != l.n_nodes) return "n_nodes: must equal the capacity";
  if (n < 1 || static_cast<i64>(l.slowdown.size()) % n != 0 || static_cast<i64>(l.drawn_mw.size()) != n)
    return "busy_mw, drawn_mw, slowdown: one value for each level";
  if (l.lowest < 0 || l.lowest > l.highest || l.highest >= n) return "lowest, highest: not levels";
  if (!are_from_zero(l.busy_mw) || !are_from_zero(l.drawn_mw) || !are_from_zero(l.component_mw) ||
      !are_from_zero({l.idle_mw, l.off_mw, l.rest_mw, l.shutdown_mw, l.boot_mw, l.rise_mw}))
    return "mw: powers must be 0 or more";
  if (l.off_time < 0 || l.off_time > longest || l.on_time < 0 || l.on_time > longest ||
      l.timeout < 0 || l.timeout > forever)
    return "off_time, on_time, timeout: must be 0 or more";
  if (l.use < BudgetUse::suffices || l.use > BudgetUse::energy_bud) return "rule: there is no such";
  const auto kinds = static_cast<i64>(l.slowdown.size()) / n;
  for (const i64 each : l.slowdown)
    if (each < 1 || each > i64{1} << 40) return "slowdown: millionths must be above 0";
  for (i64 j = 0; j < m.n_jobs; ++j)
    if (l.kind[j] < 0 || l.kind[j] >= kinds) return "kind: there is no such row of slowdown";
  if (l.component_mw.size() != l.size.size())
    return "size, component_mw: one value for each level of components";
  for (std::size_t k = 0; k < l.size.size(); ++k) {
    const i64 below = k > 0 ? l.size[k - 1] : 1;
    if (l.size[k] < 1 || l.size[k] % below != 0) return "size: must be multiples of the size below";
  }
  return nullptr;
}

}  // namespace hpc
