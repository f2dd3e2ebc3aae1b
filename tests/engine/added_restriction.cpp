// A restriction that the engine does not have, in one place: at most so many jobs of a user run, on
// whatever machine.
#include <vector>

#include "machines/nodes.hpp"
#include "machines/nodes/fresh_plan.hpp"
#include "machines/nodes/plan.hpp"
#include "machines/pool.hpp"
#include "strategies/scheduled.hpp"

namespace {
using namespace hpc;

thread_local i64 most;  // jobs of a user

template <Machine M>
struct FewOfUser : M {
  static constexpr bool restricts = true;
  const i64* user;
  std::vector<i64> left;  // by user

  FewOfUser(const Model& model, i64 now)
      : M(model, now), user(model.users), left(index(model.n_users), most) {}

  bool bars(i64 j) const { return left[index(user[j])] == 0; }
  Span begin(i64 j, i64 now, i64 predicted, i64 run) {
    --left[index(user[j])];
    return M::begin(j, now, predicted, run);
  }
  void give(i64 now, i64 j, i64 width) {
    ++left[index(user[j])];
    M::give(now, j, width);
  }
};

template <Machine M>
void simulate(const Model& model, i64* out) {
  Scheduled<FewOfUser<M>> simulation(model);
  while (simulation.next_pass(forever)) simulation.pass();
  for (i64 j = 0; j < model.n_jobs; ++j) {
    out[2 * j] = simulation.sim_.of(j).start;
    out[2 * j + 1] = simulation.sim_.of(j).promised;
  }
}
}  // namespace

// Simulate jobs (n, 5), of which `keys` say the order, with reservations for the first `depth`, and
// write (n, 2): start and promise [s]. With `needs` (n, 3), see Layout, they run on
// nodes, of which `cores` (n_nodes,) tell what they have.
extern "C" void simulate_few(const i64* jobs, const i64* keys, const i64* users, i64 n,
                             const i64* needs, const i64* cores, i64 n_nodes, i64 processors,
                             i64 each, i64 depth, i64* out) {
  most = each;
  std::vector<i64> predicted;
  Model model;
  model.jobs = reinterpret_cast<const Job*>(jobs), model.n_jobs = n;
  for (i64 j = 0; j < n; ++j) predicted.push_back(model.jobs[j].requested);
  model.capacity = processors;
  model.predicted = predicted.data();
  model.users = users, model.n_users = n;
  model.keys = keys, model.second_keys = keys;
  model.rules.primary = model.rules.secondary = Order::keyed;
  model.rules.depth = depth, model.rules.tested = depth > 1 ? all_jobs : 0;
  if (n_nodes == 0) return simulate<Pool>(model, out);
  Layout layout;
  layout.n_nodes = n_nodes, layout.n_resources = 1, layout.n_rows = n;
  layout.needs = needs, layout.capacity = cores;
  layout.complete();
  model.nodes = &layout;
  simulate<Nodes>(model, out);
}
