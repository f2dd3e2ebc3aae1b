// The plan of a pool that each pass makes anew: free processors from now on, beside the running
// jobs and the reservations of this pass.
//
// It is a step function in a plain array: if little is kept between passes, that is faster than the
// linked list of base/profile.hpp. What windows take never changes: it is a second step function,
// made once.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "../base/ordered.hpp"
#include "../core/joining.hpp"
#include "../core/windows.hpp"

namespace hpc {

class FreshPlan {
 public:
  explicit FreshPlan(const Model& m) : jobs_(m.jobs), rules_(&m.rules) {
    if (!m.windows.empty()) closed_ = std::make_shared<const Steps>(taken_by(m.windows));
  }

  void keep(Archive& a) {
    a.resized(steps_);
    a.check(!steps_.empty());
  }
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

  // Take the units of the windows. `ended`: how many jobs have ended so far, -1: unknown.
  void close(const auto&, const Windows&, i64 ended) {
    is_empty_ = true;
    ended_ = rules_->every > 0 ? -1 : ended;  // joined ends may become earlier
  }

  // Give back the units of a suspended job from its expected end on.
  void gives_back(const auto&, i64, i64 width, i64 end) {
    for (std::size_t k = step_at(end, 0); k < steps_.size(); ++k) steps_[k].free += width;
  }

  // Reserve the earliest time for a job, with `beside` more units kept free; return that time.
  // Nothing is reserved if it is later than `last`.
  i64 reserve(const auto&, i64 j, i64 length, i64 last, i64, i64 beside) {
    const i64 width = jobs_[j].processors + beside;
    auto [time, step] =
        closed_ ? first_around(j, width, length) : earliest(width, length + ends_before());
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
  // Until when `width` units are free from now on [s]; `note_free` comes before.
  void note_free(const auto&) {}
  i64 free_until(i64 width) const {
    if (closed_) return free_until_window(width);
    for (const Step& s : steps_)
      if (s.free < width) return s.time;
    return forever;
  }

 private:
  struct Step {
    i64 time, free;  // [s] begin; units
  };
  using Steps = std::vector<Step>;
  struct First {  // of a plan without reservations: the first place of a job
    i64 job = -1, time = 0;  // [s]
    i64 ended = -1;          // how many jobs had ended
  };
  const Job* jobs_;
  const Rules* rules_;
  Steps steps_;  // from now on; the last one never ends
  std::shared_ptr<const Steps> closed_;  // less what windows take, at most 0; null: none
  bool is_empty_ = false;   // the plan has running jobs only, and those that start
  i64 ended_ = -1;
  First first_;

  // What windows take together, as negative units, from the beginning of time on.
  static Steps taken_by(const std::vector<Window>& windows) {
    std::map<i64, i64> changes{{-forever, 0}};
    for (const Window& each : windows) changes[each.begin] -= each.taken, changes[each.end] += each.taken;
    Steps found;
    i64 free = 0;
    for (const auto& [time, change] : changes) found.push_back({time, free += change});
    return found;
  }
  // The step that lasts at a time, which is not before the first.
  static std::size_t last_from(const Steps& steps, i64 time) {
    const auto after = std::ranges::upper_bound(steps, time, {}, &Step::time);
    return static_cast<std::size_t>(after - steps.begin()) - 1;
  }
  // A walk along both step functions, from now or a later time on.
  class Walk {
    const Step *step_, *last_, *window_, *last_window_;

    static i64 end(const Step* step, const Step* last) { return step < last ? step[1].time : forever; }

   public:
    i64 time;

    Walk(const FreshPlan& plan, i64 begin)
        : step_(&plan.steps_[last_from(plan.steps_, begin)]), last_(&plan.steps_.back()),
          window_(&(*plan.closed_)[last_from(*plan.closed_, begin)]), last_window_(&plan.closed_->back()),
          time(begin) {}
    i64 free() const { return step_->free + window_->free; }
    // [s] When that may change; forever: never.
    i64 next() const { return std::min(end(step_, last_), end(window_, last_window_)); }
    void go_on() {
      time = next();
      if (end(step_, last_) == time) ++step_;
      if (end(window_, last_window_) == time) ++window_;
    }
  };

  i64 now() const { return steps_[0].time; }
  // Under Slurm a job must also fit in the second of its end.
  i64 ends_before() const { return rules_->every > 0; }
  struct Found {
    i64 time;          // [s]
    std::size_t step;  // that begins, or around windows lasts, then
  };
  // The first time from `begin` on at which so many units are free for a length of time, where there
  // are windows. What is for windows only is kept out of what runs without, which is hot.
  Found earliest_around(i64 width, i64 length, i64 begin) const {
    for (Walk at(*this, begin); at.time < begin + length && at.time < forever; at.go_on())
      if (at.free() < width) begin = at.next();
    return {begin, last_from(steps_, begin)};
  }
  [[gnu::noinline]] i64 free_until_window(i64 width) const {
    for (Walk at(*this, now()); at.time < forever; at.go_on())
      if (at.free() < width) return at.time;
    return forever;
  }
  // The first time from now on at which so many units are free for a length of time.
  Found earliest(i64 width, i64 length) const {
    std::size_t first = 0;
    for (std::size_t k = 0; k < steps_.size() && steps_[k].time < steps_[first].time + length; ++k)
      if (steps_[k].free < width) first = k + 1;
    return {steps_[first].time, first};
  }
  // The same for a job, around windows: between ends of jobs, its first place beside running jobs
  // alone never becomes earlier.
  [[gnu::noinline]] Found first_around(i64 j, i64 width, i64 length) {
    const bool known = is_empty_ && ended_ >= 0 && first_.job == j && first_.ended == ended_;
    const i64 from = known ? std::max(first_.time, now()) : now();
    const Found found = earliest_around(width, length + ends_before(), from);
    if (is_empty_) first_ = {j, found.time, ended_};
    is_empty_ = is_empty_ && found.time == now();
    return {found.time, step_at(found.time, found.step)};
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
