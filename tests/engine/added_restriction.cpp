// A restriction that the engine does not have, in one place: at most so many jobs of a user run.
#include <vector>

#include "machines/pool.hpp"
#include "strategies/scheduled.hpp"

namespace {
using namespace hpc;

thread_local i64 most;  // jobs of a user

struct FewOfUser : Pool {
  static constexpr bool restricts = true;
  const i64* user;
  std::vector<i64> left;  // by user

  FewOfUser(const Model& model, i64 now)
      : Pool(model, now), user(model.users), left(index(model.n_users), most) {}

  bool bars(i64 j) const { return left[index(user[j])] == 0; }
  Span begin(i64 j, i64 now, i64 predicted, i64 run) {
    --left[index(user[j])];
    return Pool::begin(j, now, predicted, run);
  }
  void give(i64 now, i64 j, i64 width) {
    ++left[index(user[j])];
    Pool::give(now, j, width);
  }
};
static_assert(Machine<FewOfUser>);

}  // namespace

// Simulate jobs (n, 5), of which `keys` say the order, with reservations for the first `depth`, and
// write (n, 2): start and promise [s].
extern "C" void simulate_few(const i64* jobs, const i64* keys, const i64* users, i64 n,
                             i64 processors, i64 each, i64 depth, i64* out) {
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
  model.rules.depth = depth, model.rules.tested = all_jobs;
  model.restricted = true;
  Scheduled<FewOfUser> simulation(model);
  while (simulation.next_pass(forever)) simulation.pass();
  for (i64 j = 0; j < n; ++j) {
    out[2 * j] = simulation.sim_.of(j).start;
    out[2 * j + 1] = simulation.sim_.of(j).promised;
  }
}
