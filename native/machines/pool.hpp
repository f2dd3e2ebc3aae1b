// A pool of identical processors. Idle ones may be switched off.
#pragma once
#include <vector>

#include "../base/ordered.hpp"
#include "../core/machine.hpp"
#include "../core/model.hpp"
#include "fresh_plan.hpp"
#include "kept_plan.hpp"

namespace hpc {

// Idle processors form a stack of groups, the last to become idle on top. A group is idle until its
// `off_at`, then takes `off_time` to switch off, and is off from then on. A job takes from the top.
// Processors that are off or switching off are switched on first, which takes `on_time`; the job
// starts when the last is ready, and the others wait idle. None of this is an event.
class IdleProcessors {
 public:
  struct Group {
    i64 since;   // [s] up to which it has been counted
    i64 off_at;  // [s] when it begins to switch off
    i64 width;
  };
  std::vector<Group> groups;
  IdleSeconds seconds;

  IdleProcessors() = default;
  IdleProcessors(const Rules& rules, i64 now, i64 width) : rules_(&rules) { rest(now, width); }

  void keep(Archive& a) {
    a.resized(groups);
    a(seconds);
  }
  // Processors have just become idle.
  void rest(i64 now, i64 width) {
    groups.push_back({now, rules_->timeout >= forever ? forever : now + rules_->timeout, width});
  }
  // Take processors for a job; return the seconds until all are ready.
  i64 wake(i64 now, i64 width) {
    i64 delay = 0, ready_sum = 0;
    for (i64 left = width; left > 0;) {
      Group& top = groups.back();
      const i64 taken = std::min(left, top.width);
      left -= taken;
      i64 ready = 0, until = now;
      if (top.off_at < now) {
        until = std::max(now, top.off_at + rules_->off_time);
        ready = until - now + rules_->on_time;
        seconds.switching_on += taken * rules_->on_time;
      }
      spend(top.since, top.off_at, until, taken);
      delay = std::max(delay, ready);
      ready_sum += taken * ready;
      top.width -= taken;
      if (top.width == 0) groups.pop_back();
    }
    seconds.idle += width * delay - ready_sum;
    return delay;
  }
  // Start switching off all idle processors; return whether there were any.
  bool switch_off(i64 now) {
    const bool found = some_idle(now);
    for (Group& g : groups) g.off_at = std::min(g.off_at, now);
    return found;
  }
  // Whether some are idle and not being switched off.
  bool some_idle(i64 now) const {
    return std::any_of(groups.begin(), groups.end(), [&](const Group& g) { return g.off_at > now; });
  }
  // How many are off, or are being switched off.
  i64 switching_off(i64 now) const {
    i64 width = 0;
    for (const Group& g : groups) width += g.off_at < now ? g.width : 0;
    return width;
  }
  // Processor seconds without a job, by state, up to now.
  const IdleSeconds& settle(i64 now) {
    for (Group& g : groups) {
      spend(g.since, g.off_at, now, g.width);
      // processors that a job has just left may already have been counted further
      g.since = std::max(g.since, now);
    }
    return seconds;
  }

 private:
  const Rules* rules_ = nullptr;

  void spend(i64 since, i64 off_at, i64 until, i64 width) {
    const i64 off = std::min(off_at, forever) + rules_->off_time;
    seconds.idle += width * std::max(std::min(until, off_at) - since, i64{0});
    seconds.switching_off += width * std::max(std::min(until, off) - std::max(since, off_at), i64{0});
    seconds.off += width * std::max(until - std::max(since, off), i64{0});
  }
};

class Pool : public AnyMachine {
 public:
  static constexpr bool alike = true;
  using KeptPlan = hpc::KeptPlan;
  using FreshPlan = hpc::FreshPlan;

  Pool(const Model& model, i64 now) : jobs_(model.jobs), managed_(model.rules.managed) {
    if (managed_) idle_ = IdleProcessors(model.rules, now, model.capacity);
  }

  void keep(Archive& a) { a(idle_); }
  i64 width(i64 j) const { return jobs_[j].processors; }
  bool fits(i64, i64 needed, i64 room) const { return needed <= room; }
  bool finds_place(i64 j, i64 room) const { return width(j) <= room; }
  Span begin(i64 j, i64 now, i64 predicted, i64 run) {
    const i64 start = managed_ ? now + idle_.wake(now, width(j)) : now;
    return {start, start + predicted, start + run};
  }
  // Runs that end together may be given back as one.
  void give(i64 now, i64, i64 width) {
    if (managed_) idle_.rest(now, width);
  }
  // With preemption, any units are as good as a job's own.
  void give_all(i64, i64) {}
  void lend(i64, i64) {}
  bool has_room(i64 j, i64 room) const { return width(j) <= room; }
  bool goes_on(i64 j, i64 room) const { return width(j) <= room; }
  bool meets(i64, i64) const { return true; }
  void find_shadow(i64, i64 missing, const OrderedList& running, Shadow& shadow) const {
    shadow = shadow_of_missing(missing, running);
  }
  Bounds bounds(i64 now, i64 room, const Shadow& shadow) const {
    return {room, shadow.extra, shadow.time - now};
  }
  bool passes(i64, bool, Shadow&) const { return true; }  // the bounds suffice

  bool switch_idle_off(i64 now) { return idle_.switch_off(now); }
  bool some_idle(i64 now) const { return idle_.some_idle(now); }
  i64 switching_off(i64 now) const { return idle_.switching_off(now); }
  IdleSeconds idle_seconds(i64 now) { return idle_.settle(now); }

 private:
  const Job* jobs_;
  bool managed_;
  IdleProcessors idle_;
};
static_assert(Machine<Pool>);

}  // namespace hpc
