// A kind of machine that the engine does not have, in one place: islands of processors. A job has
// all its processors on one of them, the first that has room.
#include <algorithm>
#include <vector>

#include "core/simulator.hpp"
#include "strategies/easy.hpp"

namespace {
using namespace hpc;

thread_local std::vector<i64> sizes;  // (n_islands,) processors

class Islands : public AnyMachine {
  const Job* jobs_;
  std::vector<i64> free_ = sizes;   // by island
  std::vector<i64> later_ = sizes;  // the same at the shadow time
  std::vector<i64> place_;          // by job
  i64 head_ = -1, chosen_ = -1;

  i64 first_with_room(i64 j) const {
    for (i64 i = 0; i < static_cast<i64>(free_.size()); ++i)
      if (free_[index(i)] >= width(j)) return i;
    return -1;
  }
  // Whether the head still finds an island then, if a job that runs on has this one.
  bool leaves_room(i64 j, i64 island) const {
    for (i64 i = 0; i < static_cast<i64>(later_.size()); ++i)
      if (later_[index(i)] - (i == island ? width(j) : 0) >= width(head_)) return true;
    return false;
  }

 public:
  static constexpr bool alike = false;
  Islands(const Model& model, i64) : jobs_(model.jobs), place_(index(model.n_jobs), -1) {}

  i64 width(i64 j) const { return jobs_[j].processors; }
  bool fits(i64 j, i64, i64) const { return first_with_room(j) >= 0; }
  bool finds_place(i64 j, i64) {
    chosen_ = first_with_room(j);
    return chosen_ >= 0;
  }
  Span begin(i64 j, i64 now, i64 predicted, i64 run) {
    const i64 island = chosen_ >= 0 ? std::exchange(chosen_, -1) : first_with_room(j);
    place_[index(j)] = island;
    free_[index(island)] -= width(j);
    return {now, now + predicted, now + run};
  }
  void give(i64, i64 j, i64 units) { free_[index(place_[index(j)])] += units; }
  void find_shadow(i64 j, i64 missing, const OrderedList& running, Shadow& shadow) {
    head_ = j;
    later_ = free_;
    const auto has_room = [&] { return std::ranges::max(later_) >= width(j); };
    shadow.time = -1;
    running.each([&](const Entry& e) {
      if (has_room() && e.key != shadow.time) return;  // all that ends at that time counts
      shadow.time = e.key;
      later_[index(place_[index(e.job)])] += e.width;
      missing -= e.width;
    });
    shadow.extra = -missing;
  }
  Bounds bounds(i64 now, i64 room, const Shadow& shadow) const {
    return {room, nothing, shadow.time - now};
  }
  bool passes(i64 j, bool lasts, Shadow&) {
    chosen_ = -1;
    for (i64 i = 0; i < static_cast<i64>(free_.size()) && chosen_ < 0; ++i)
      if (free_[index(i)] >= width(j) && (!lasts || leaves_room(j, i))) chosen_ = i;
    if (chosen_ >= 0 && lasts) later_[index(chosen_)] -= width(j);
    return chosen_ >= 0;
  }
};
static_assert(Machine<Islands>);

}  // namespace

// Simulate jobs (n, 5), of which `keys` say the order, and write (n, 2): start and promise [s].
extern "C" void simulate_on_islands(const i64* jobs, const i64* keys, i64 n, const i64* islands,
                                    i64 n_islands, i64 depth, i64 threshold, i64* out) {
  sizes.assign(islands, islands + n_islands);
  std::vector<i64> predicted;
  Model model;
  model.jobs = reinterpret_cast<const Job*>(jobs), model.n_jobs = n;
  for (i64 j = 0; j < n; ++j) predicted.push_back(model.jobs[j].requested);
  for (const i64 each : sizes) model.capacity += each;
  model.predicted = predicted.data();
  model.keys = keys, model.second_keys = keys;
  model.rules.primary = model.rules.secondary = Order::keyed;
  model.rules.depth = depth, model.rules.threshold = threshold;
  Simulator<Islands> simulator(model);
  while (simulator.next_pass(forever)) Easy<Islands>(simulator).pass();
  for (i64 j = 0; j < n; ++j) {
    out[2 * j] = simulator.of(j).start;
    out[2 * j + 1] = simulator.of(j).promised;
  }
}
