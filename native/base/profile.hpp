// How many units are free from each time on, by predicted ends and reservations: a step function.
#pragma once
#include <vector>

#include "numbers.hpp"

namespace hpc {

class Profile {
 public:
  struct Step {
    i64 time;  // [s] from which on
    i64 free;
  };

  // From now on all units are free.
  void begin(i64 now, i64 free) {
    steps_.assign(1, {now, free});
    first_ = 0;
  }
  // Steps follow one another in time here: give back units from a time on that no step is after.
  void release_last(i64 time, i64 width) {
    if (time > steps_.back().time) steps_.push_back({time, steps_.back().free});
    steps_.back().free += width;
  }
  // Let the last step begin later, and units be given back by it.
  void delay_last(i64 time, i64 width) {
    steps_.back().time = time;
    steps_.back().free += width;
  }
  // Drop the steps that are over, and let the present one begin now.
  void forget_past(i64 now) {
    while (first_ + 1 < steps_.size() && steps_[first_ + 1].time <= now) ++first_;
    steps_[first_].time = now;
    if (first_ <= dropped_at_once) return;
    steps_.erase(steps_.begin(), iterator(first_));
    first_ = 0;
  }
  // Take units in [from, to), of which the past counts not; give back if it is negative.
  void take(i64 from, i64 to, i64 width) {
    from = std::max(from, steps_[first_].time);
    if (to <= from) return;
    const std::size_t begin = step_at(from), end = step_at(to);
    for (std::size_t k = begin; k < end; ++k) steps_[k].free -= width;
    drop_if_same(end);
    drop_if_same(begin);
  }
  // The first time, before `latest`, with `width` units free for `length`; else `latest`. The job
  // may have a reservation of its own at `own` (forever: it has not), where it is tried earlier: if
  // it ends before that does, only what is before `own` can be in its way.
  i64 earliest(i64 width, i64 length, i64 own, i64 latest) const {
    const Step *step = &steps_[first_], *end = steps_.data() + steps_.size();
    i64 begin = step->time;
    while (step < end && step->time < std::min(begin + length, own)) {
      const bool blocked = step->free < width;
      ++step;
      if (!blocked) continue;
      begin = step < end ? step->time : forever;
      if (begin >= latest) return latest;
    }
    return std::min(begin, latest);
  }
  // Up to when so many units are free from now on.
  i64 free_until(i64 width) const {
    for (std::size_t k = first_; k < steps_.size(); ++k)
      if (steps_[k].free < width) return steps_[k].time;
    return forever;
  }

 private:
  static constexpr std::size_t dropped_at_once = 64;
  std::vector<Step> steps_;
  std::size_t first_ = 0;  // the step that lasts now

  std::vector<Step>::iterator iterator(std::size_t k) {
    return steps_.begin() + static_cast<std::ptrdiff_t>(k);
  }
  // The step that begins at a time, made if there is none.
  std::size_t step_at(i64 time) {
    auto it = std::lower_bound(iterator(first_), steps_.end(), time,
                               [](const Step& s, i64 t) { return s.time < t; });
    if (it == steps_.end() || it->time != time) it = steps_.insert(it, {time, (it - 1)->free});
    return static_cast<std::size_t>(it - steps_.begin());
  }
  void drop_if_same(std::size_t k) {
    const bool inside = k > first_ && k < steps_.size();
    if (inside && steps_[k].free == steps_[k - 1].free) steps_.erase(iterator(k));
  }
};

}  // namespace hpc
