// How many units are free from each time on, by predicted ends and reservations: a step function.
//
// The steps are a linked list, from the one that lasts now to the one that lasts for ever. So a
// step is added or dropped without moving others, and a job that knows its steps changes the
// profile without a search. Dropped steps are reused.
#pragma once
#include <cassert>
#include <vector>

#include "archive.hpp"
#include "numbers.hpp"

namespace hpc {

using StepNo = std::uint32_t;
inline constexpr StepNo no_step = ~StepNo{0};

class Profile {
 public:
  struct Step {
    i64 time;  // [s] when it begins
    i64 free;  // units
    StepNo next, before;
    // Where reservations are kept: how many of them, and of predicted runs, begin or end here. A
    // step without uses has as many units free as the one before it.
    std::int32_t uses;
    std::int32_t job;  // the first of the queued jobs whose reservations begin here, -1 if none
  };

  // Start with `free` units from now on.
  void begin(i64 now, i64 free) {
    steps_.assign(1, {now, free, no_step, no_step, 1, -1});
    first_ = 0;
    spare_ = no_step;
  }
  void keep(Archive& a) {
    a.resized(steps_);
    a(first_, spare_);
    a.check(has(first_) && (has(spare_) || spare_ == no_step));
    for (const Step& s : steps_) {
      a.check((has(s.next) || s.next == no_step) && (has(s.before) || s.before == no_step));
      a.check_job(s.job, -1);
    }
  }
  bool has(StepNo s) const { return s < steps_.size(); }
  StepNo first() const { return first_; }
  Step& operator[](StepNo s) { return steps_[s]; }
  const Step& operator[](StepNo s) const { return steps_[s]; }
  i64 now() const { return steps_[first_].time; }
  // [s] when a step begins; forever for no_step.
  i64 time_of(StepNo s) const { return s == no_step ? forever : steps_[s].time; }

  // Add a step that begins at `time`, within the step `during`.
  StepNo add(StepNo during, i64 time) {
    StepNo made = spare_;
    if (made == no_step) {
      made = static_cast<StepNo>(steps_.size());
      steps_.emplace_back();
    } else {
      spare_ = steps_[made].next;
    }
    Step& before = steps_[during];
    steps_[made] = {time, before.free, before.next, during, 0, -1};
    if (before.next != no_step) steps_[before.next].before = made;
    before.next = made;
    return made;
  }
  // The step that begins at a time, added if there is none; `from` is not later.
  StepNo at(i64 time, StepNo from) {
    for (StepNo next; (next = steps_[from].next) != no_step && steps_[next].time <= time;)
      from = next;
    return steps_[from].time == time ? from : add(from, time);
  }
  void drop(StepNo s) {
    assert(s != first_);
    const Step gone = steps_[s];
    steps_[gone.before].next = gone.next;
    if (gone.next != no_step) steps_[gone.next].before = gone.before;
    lay_aside(s);
  }
  // Drop the steps that are over; the present step begins now.
  void forget_past(i64 now) {
    for (StepNo next; (next = steps_[first_].next) != no_step && steps_[next].time <= now;) {
      lay_aside(first_);
      first_ = next;
    }
    Step& present = steps_[first_];
    present.before = no_step;
    present.job = -1;
    present.time = now;
  }
  // Take units from step `from` up to `to`; a negative width gives units back.
  void take(StepNo from, StepNo to, i64 width) {
    for (StepNo s = from; s != to; s = steps_[s].next) {
      assert(s != no_step && steps_[s].time >= 0);  // not a dropped step
      steps_[s].free -= width;
    }
  }
  // The first step from `from` on at which `width` units are free for `length` [s]; none if that is
  // not before `latest`, or after `last`. If the job already has a reservation of that size at
  // `latest`, the search ends there.
  StepNo earliest(StepNo from, i64 width, i64 length, i64 latest = forever,
                  i64 last = forever) const {
    StepNo begin = from;
    i64 until = std::min(steps_[begin].time + length, latest);
    for (StepNo s = from; s != no_step && steps_[s].time < until;) {
      const bool blocked = steps_[s].free < width;
      s = steps_[s].next;
      if (!blocked) continue;
      if (s == no_step || steps_[s].time >= latest || steps_[s].time > last) return no_step;
      begin = s;
      until = std::min(steps_[begin].time + length, latest);
    }
    return begin;
  }
  // The first of the steps up to `s` that all have `width` units free.
  StepNo stretch_before(StepNo s, i64 width) const {
    while (s != first_ && steps_[steps_[s].before].free >= width) s = steps_[s].before;
    return s;
  }
  // The first step from `s` on with fewer units free; none if there is no such step.
  StepNo stretch_after(StepNo s, i64 width) const {
    while (s != no_step && steps_[s].free >= width) s = steps_[s].next;
    return s;
  }

 private:
  std::vector<Step> steps_;
  StepNo first_ = 0;
  StepNo spare_ = no_step;  // a step for reuse; its `next` is another one

  void lay_aside(StepNo s) {
    steps_[s].time = -1;  // marks a dropped step
    steps_[s].next = spare_;
    spare_ = s;
  }
};

}  // namespace hpc
