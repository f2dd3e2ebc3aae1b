// The plan of a pool that each pass makes anew: free processors from now on, beside the running
// jobs and the reservations of this pass.
//
// It is a step function in a plain array: if little is kept between passes, that is faster than the
// linked list of base/profile.hpp.
#pragma once
#include <vector>

#include "../base/ordered.hpp"
#include "../core/joining.hpp"

namespace hpc {

class FreshPlan {
 public:
  explicit FreshPlan(const Model& m) : jobs_(m.jobs), rules_(&m.rules) {}

  void keep(Archive& a) { a(steps_); }
  // Begin with the predicted ends of the running jobs; under Slurm ends are joined.
  void begin(const auto&, i64 now, i64 free, const OrderedList& running) {
    steps_.assign(1, {now, free});
    JoinedEnds joined(*rules_);
    running.each([&](const Entry& e) {
      if (e.key <= now) return;
      if (rules_->every > 0 ? joined.begins_span(e.key) : e.key > steps_.back().time)
        steps_.push_back(steps_.back());
      steps_.back().time = e.key;
      steps_.back().free += e.width;
    });
  }
  void forget_past(i64 now) {
    std::size_t past = 0;
    while (past + 1 < steps_.size() && steps_[past + 1].time <= now) ++past;
    steps_.erase(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(past));
    steps_[0].time = now;
  }

  // Take the units of a window.
  void close(const auto&, const Window& window) {
    const i64 begin = std::max(window.begin, now());
    if (begin < window.end) take(step_at(begin, 0), window.end, window.taken);
  }

  // Give back the units of a suspended job from its expected end on.
  void gives_back(const auto&, i64, i64 width, i64 end) {
    for (std::size_t k = step_at(end, 0); k < steps_.size(); ++k) steps_[k].free += width;
  }

  // Reserve the earliest time for a job, with `beside` more units kept free; return that time.
  // Nothing is reserved if it is later than `last`.
  i64 reserve(const auto&, i64 j, i64 length, i64 last, i64, i64 beside) {
    const i64 width = jobs_[j].processors + beside;
    std::size_t step = earliest(width, length + ends_before());
    const i64 time = steps_[step].time;
    if (time > last) return time;
    i64 end = time + length;
    if (rules_->every > 0 && step > 0) {
      end = rounded_end(*rules_, time, end);
      const i64 begin = std::max(rounded(*rules_, time), now());
      while (steps_[step].time > begin) --step;
      step = step_at(begin, step);
    }
    take(step, end, width);
    return time;
  }
  // Plan a job from now on, if it fits now; return whether it does.
  bool place_now(const auto&, i64 j, i64 length, i64 free, bool) {
    const i64 width = jobs_[j].processors;
    if (width > free || now() + length + ends_before() > free_until(width)) return false;
    take(0, now() + length, width);
    return true;
  }
  // A job starts, as planned.
  void begun(const auto&, i64, i64) {}
  // A job that has just started begins late, and keeps its units for as much longer.
  void lasts(i64 j, i64 length, i64 late) {
    take(step_at(now() + length, 0), now() + length + late, jobs_[j].processors);
  }
  // Until when `width` units are free from now on [s].
  i64 free_until(i64 width) const {
    for (const Step& s : steps_)
      if (s.free < width) return s.time;
    return forever;
  }

 private:
  struct Step {
    i64 time, free;  // [s] begin; units
  };
  const Job* jobs_;
  const Rules* rules_;
  std::vector<Step> steps_;  // from now on; the last one never ends

  i64 now() const { return steps_[0].time; }
  // Under Slurm a job must also fit in the second of its end.
  i64 ends_before() const { return rules_->every > 0; }
  std::size_t earliest(i64 width, i64 length) const {
    std::size_t begin = 0;
    for (std::size_t k = 0; k < steps_.size() && steps_[k].time < steps_[begin].time + length; ++k)
      if (steps_[k].free < width) begin = k + 1;
    return begin;
  }
  // The step that begins at a time, added if there is none; `from` is not later.
  std::size_t step_at(i64 time, std::size_t from) {
    while (from + 1 < steps_.size() && steps_[from + 1].time <= time) ++from;
    if (steps_[from].time == time) return from;
    steps_.insert(steps_.begin() + static_cast<std::ptrdiff_t>(from) + 1,
                  {time, steps_[from].free});
    return from + 1;
  }
  // Take units from a step on until `end`.
  void take(std::size_t from, i64 end, i64 width) {
    const std::size_t to = step_at(end, from);
    for (std::size_t k = from; k < to; ++k) steps_[k].free -= width;
  }
};

}  // namespace hpc
