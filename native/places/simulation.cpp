#include "one_simulation.hpp"

namespace hpc {

template class OneSimulation<Pool>;
template class OneSimulation<Nodes>;
template class OneSimulation<Corun>;
template class OneSimulation<Limited>;

Columns assign(const Model& m, std::span<const i64> start, std::span<const i64> by_start,
               std::span<const i64> by_end, const Given& given) {
  Nodes nodes(m, 0);
  std::size_t ended = 0;
  i64 come = 0;
  Interrupts interrupts;
  for (std::size_t i = 0; i < by_start.size(); ++i) {
    interrupts.count(16);
    const i64 now = start[index(by_start[i])];
    for (; ended < i && start[index(by_end[ended])] + m.jobs[by_end[ended]].run <= now; ++ended)
      nodes.give(now, by_end[ended], 0);
    for (; come < m.n_jobs && std::max(m.jobs[come].submit, given.since) <= now; ++come)
      nodes.waits(come);
    if (i + 1 < given.first.size()) {
      const std::size_t first = index(given.first[i]), n = index(given.first[i + 1]) - first;
      nodes.choose(by_start[i], given.node.subspan(first, n), given.units.subspan(first, n));
    }
    nodes.begin(by_start[i], now, 0, 0);
  }
  Columns found;
  add_cells(found, of_jobs, index(m.n_jobs), [&](i64 j) { return nodes.cells(j); });
  return found;
}

std::uint64_t fingerprint(const Model& m) {
  std::uint64_t found = digest_of(m.jobs, index(m.n_jobs), digest(HPCGYM_SOURCES));
  if (const Layout* l = m.nodes) {
    found = digest_of(l->needs, index(l->n_rows * (2 + l->n_resources)), found);
    found = digest_of(l->capacity, index(l->n_nodes * l->n_resources), found);
  }
  if (const auto& s = m.sharing) {
    const std::array<i64, 3> sizes{s->n_nodes, s->parts, s->n_codes};
    for (const i64* column : {s->nodes, s->placement, s->code})
      found = digest_of(column, index(m.n_jobs), found);
    found = digest_of(sizes.data(), sizes.size(), found);
  }
  if (const auto& l = m.limited) {
    const std::array<i64, 3> sizes{l->n_nodes, l->n_levels(), static_cast<i64>(l->use)};
    found = digest_of(sizes.data(), sizes.size(), found);
    found = digest_of(l->caps.data(), l->caps.size(), found);
    found = digest_of(l->budgets.data(), l->budgets.size(), found);
  }
  return found;
}

std::shared_ptr<AnySimulation> make_simulation(std::shared_ptr<Model> model) {
  if (model->several) throw std::invalid_argument("several: a simulation has one episode");
  if (model->nodes) return std::make_shared<OneSimulation<Nodes>>(std::move(model));
  if (model->sharing) return std::make_shared<OneSimulation<Corun>>(std::move(model));
  if (model->limited) return std::make_shared<OneSimulation<Limited>>(std::move(model));
  return std::make_shared<OneSimulation<Pool>>(std::move(model));
}

}  // namespace hpc
