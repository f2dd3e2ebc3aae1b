// A machine of processors that are all alike. Idle ones may be switched off.
#pragma once
#include <vector>

#include "../base/ordered.hpp"
#include "../base/profile.hpp"
#include "../core/model.hpp"
#include "machine.hpp"

namespace hpc {

// Idle processors lie in a stack of groups, those that became idle last on top. A group is idle up
// to its `off_at`, then takes `off_time` to switch off, and is off from then on. A job takes from
// the top. Those that are off, or about to be, are switched on first, which takes `on_time`; the
// job starts when the last of them is ready, and the others wait idle. Nothing of this is an event.
class IdleProcessors {
 public:
  struct Seconds {  // [processor seconds] of processors without a job, by what they did
    i64 idle = 0, off = 0, switching_off = 0, switching_on = 0;
  };

  IdleProcessors() = default;
  IdleProcessors(const Rules& rules, i64 now, i64 width) : rules_(&rules) { rest(now, width); }

  // Processors that have just become idle.
  void rest(i64 now, i64 width) {
    groups_.push_back({now, rules_->timeout >= forever ? forever : now + rules_->timeout, width});
  }
  // Take processors for a job; return the seconds until all are ready.
  i64 wake(i64 now, i64 width) {
    i64 delay = 0, ready_sum = 0;
    for (i64 left = width; left > 0;) {
      Group& top = groups_.back();
      const i64 taken = std::min(left, top.width);
      left -= taken;
      i64 ready = 0, until = now;
      if (top.off_at < now) {
        until = std::max(now, top.off_at + rules_->off_time);
        ready = until - now + rules_->on_time;
        seconds_.switching_on += taken * rules_->on_time;
      }
      spend(top.since, top.off_at, until, taken);
      delay = std::max(delay, ready);
      ready_sum += taken * ready;
      top.width -= taken;
      if (top.width == 0) groups_.pop_back();
    }
    seconds_.idle += width * delay - ready_sum;
    return delay;
  }
  // What processors without a job have done up to now.
  const Seconds& settle(i64 now) {
    for (Group& g : groups_) {
      spend(g.since, g.off_at, now, g.width);
      // those that a job has just left for good may already have been counted further
      g.since = std::max(g.since, now);
    }
    return seconds_;
  }

 private:
  struct Group {
    i64 since;   // [s] up to which it has been counted
    i64 off_at;  // [s] when it begins to switch off
    i64 width;
  };
  const Rules* rules_ = nullptr;
  std::vector<Group> groups_;
  Seconds seconds_;

  void spend(i64 since, i64 off_at, i64 until, i64 width) {
    const i64 off = std::min(off_at, forever) + rules_->off_time;
    seconds_.idle += width * std::max(std::min(until, off_at) - since, i64{0});
    seconds_.switching_off += width * std::max(std::min(until, off) - std::max(since, off_at), i64{0});
    seconds_.off += width * std::max(until - std::max(since, off), i64{0});
  }
};

// The holes in a plan where processors have been given back, for jobs of up to 1, 2, 4 ... 4096 and
// any number of processors. What is given back while reservations are tried in order helps later
// jobs at once; earlier ones see it the next time.
class Holes {
  struct Known {
    std::array<i64, width_classes> length;  // [s] no hole is longer
    std::array<i64, width_classes> begin;   // [s] none begins earlier
    void forget(i64 longest, i64 earliest) { length.fill(longest), begin.fill(earliest); }
    void add(std::size_t c, i64 from, i64 to) {
      length[c] = std::max(length[c], to - from);
      begin[c] = std::min(begin[c], from);
    }
  };
  Known now_, later_;
  bool looks_ = false;

  // How many classes, from the narrowest on, have a job for which so many processors are enough.
  static int classes_of(i64 free) {
    if (free < 1) return 0;
    const auto more = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(free - 1)));
    return std::min(width_classes, more + 1);
  }

 public:
  Holes() { forget(); }
  // There may be any.
  void forget() { now_.forget(forever, -forever), later_ = now_; }
  // Reservations are about to be tried in order; where there are few, nothing is noted.
  void next(bool many) {
    if (!many || !looks_) {
      forget();
    } else {
      now_ = later_;
      later_.forget(0, forever);
    }
    looks_ = many;
  }
  // In [from, to) processors have been given back; `longest` [s]: no job runs longer.
  void widen(const Profile& profile, i64 from, i64 to, i64 longest) {
    if (!looks_) return;
    std::array<i64, width_classes> begin;
    begin.fill(from);
    int open = 0;  // classes that are in a hole: the narrow ones
    profile.each_from(from, [&](i64, i64 free) {
      open = classes_of(free);
      return false;
    });
    int left = open;
    profile.each_before(from, [&](i64 time, i64 free) {
      left = std::min(left, classes_of(free));
      for (int c = 0; c < left; ++c) begin[index(c)] = time;
      return left > 0 && time > from - longest;
    });
    const auto close = [&](int classes, i64 time) {
      while (open > classes) {
        const std::size_t c = index(--open);
        now_.add(c, begin[c], time);
        later_.add(c, begin[c], time);
      }
    };
    profile.each_from(from, [&](i64 time, i64 free) {
      if (time >= to + longest) return false;
      const int fit = classes_of(free);
      close(fit, time);
      while (open < fit && time < to) begin[index(open++)] = time;
      return time < to || open > 0;
    });
    close(0, forever);
  }
  // Whether a job may have found one that lies before its reservation.
  bool has_one_for(i64 width, i64 length, i64 due) const {
    const std::size_t c = index(class_of(width));
    return length <= now_.length[c] && now_.begin[c] <= due - length;
  }
  // The same for some job of a block.
  bool have_one_for(const Block& block) const {
    if (!block.narrow_known) return true;
    for (std::size_t c = 0; c < now_.length.size(); ++c)
      if (block.narrow[c] <= now_.length[c]) return true;
    return false;
  }
};

class Pool {
 public:
  Pool(const Model& model, i64 now) : jobs_(model.jobs), managed_(model.rules.managed) {
    if (managed_) idle_ = IdleProcessors(model.rules, now, model.capacity);
  }

  i64 width(i64 j) const { return jobs_[j].processors; }
  bool fits(i64, i64 needed, i64 room) const { return needed <= room; }
  Span begin(i64 j, i64 now, i64 predicted, i64 run) {
    const i64 start = managed_ ? now + idle_.wake(now, width(j)) : now;
    return {start, start + predicted, start + run};
  }
  void give(i64 now, i64 width) {
    if (managed_) idle_.rest(now, width);
  }
  void find_shadow(i64, i64 missing, const OrderedList& running, Shadow& shadow) const {
    const bool several = running.size_in_blocks() > 1;
    i64 at = -1;
    for (int k = 0; k < running.size_in_blocks(); ++k) {
      const Block& block = running.at(k);
      if (several && at < 0 && block.sum_width < missing) {
        missing -= block.sum_width;
        continue;
      }
      const Entry* e = block.begin();
      for (; e < block.end() && missing > 0; ++e) missing -= e->width, at = e->key;
      // all that is released at the shadow time counts
      for (; e < block.end() && e->key == at; ++e) missing -= e->width;
      if (e < block.end()) break;
    }
    shadow.time = at;
    shadow.extra = -missing;
  }
  Bounds bounds(i64 now, i64 room, const Shadow& shadow) const {
    return {room, shadow.extra, shadow.time - now};
  }
  bool passes(i64, bool, Shadow&) const { return true; }  // its bounds say all

  // What is planned: processors that are free over time, by predicted ends and reservations; and,
  // where each job has one, whose may be earlier since processors have been given back. A job begins
  // earlier either in a hole that is long enough, or by what is free right before its reservation.
  class Plan {
    Profile profile_;
    OrderedList by_due_;         // reservations by their beginnings
    std::vector<char> noted_;    // by job: processors have been given back right before it begins
    std::vector<i64> news_;      // jobs that have been noted since somebody asked
    Holes holes_;
    i64 longest_ = 0;            // [s] no job runs longer, as predicted

    void given_back(i64 from, i64 to) {
      holes_.widen(profile_, from, to, longest_);
      by_due_.each_between(from + 1, to + 1, [&](const Entry& e) {
        if (noted_[index(e.job)]) return;
        noted_[index(e.job)] = true;
        news_.push_back(e.job);
      });
    }

   public:
    void begin(i64 now, i64 capacity) {
      profile_.begin(now, capacity);
      by_due_.clear();
      holes_.forget();
    }
    void forget_past(i64 now) { profile_.forget_past(now); }
    void runs(i64 width, i64 now, i64 end) { profile_.take(now, end, width); }
    // The earliest time for a job that has none.
    i64 place(const Pool& m, i64 j, i64 length) const {
      return profile_.earliest(m.width(j), length, forever, forever);
    }
    void commit(const Pool& m, i64 j, i64 from, i64 length) {
      profile_.take(from, from + length, m.width(j));
      by_due_.insert({from, length, m.width(j), j});
      longest_ = std::max(longest_, length);
      if (noted_.size() <= index(j)) noted_.resize(index(j) + 1);
      noted_[index(j)] = false;
    }
    // Of a reservation that has begun without its job.
    void withdraw(const Pool& m, i64 j, i64 from, i64 length, i64 now) {
      profile_.take(from, from + length, -m.width(j));
      by_due_.remove(by_due_.find(from, j));
      if (from + length > now) given_back(now, from + length);
    }
    // Of a job that starts: its reservation is its predicted run.
    void begun(i64 j, i64 now) { by_due_.remove(by_due_.find(now, j)); }
    void ended(i64 width, i64 now, i64 end) {
      profile_.take(now, end, -width);
      given_back(now, end);
    }

    // Before the reservations are tried, some of which may begin earlier; whether they are many.
    void next(bool many) { holes_.next(many); }
    // Whether some job of a block may find a hole.
    bool may_advance(const Block& block) const { return holes_.have_one_for(block); }
    // Begin earlier than at `due`, if possible, and before `latest`; return when.
    i64 advance(const Pool& m, i64 j, i64 length, i64 due, i64 latest) {
      const i64 width = m.width(j);
      i64 at = due;
      if (holes_.has_one_for(width, length, due)) at = profile_.earliest(width, length, due, latest);
      else if (noted_[index(j)]) at = profile_.free_since(due, width);
      noted_[index(j)] = false;
      if (at >= latest) return due;
      profile_.take(at, std::min(at + length, due), width);
      const i64 freed = std::max(at + length, due);
      profile_.take(freed, due + length, -width);
      by_due_.remove(by_due_.find(due, j));
      by_due_.insert({at, length, width, j});
      given_back(freed, due + length);
      return at;
    }
    // Call f(job) for each that has been noted since the last call.
    template <class F>
    void tell_news(F f) {
      for (const i64 j : news_) f(j);
      news_.clear();
    }
    bool is_noted(i64 j) const { return noted_[index(j)]; }
  };

  const IdleProcessors::Seconds& idle_seconds(i64 now) { return idle_.settle(now); }

 private:
  const Job* jobs_;
  bool managed_;
  IdleProcessors idle_;
};
static_assert(Machine<Pool>);

}  // namespace hpc
