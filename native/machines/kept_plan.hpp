// The plan of a pool in which each waiting job has a reservation, and keeps it.
//
// Each reservation was at the earliest time when it was made or last tested. Since then it can
// become earlier only where units were given back between two steps of the profile, in one of two
// ways:
// - It slides: the second before its begin lies there, and now has room for the job.
// - It finds a hole: an earlier stretch of time that now has room for the job, and had none before.
//   Holes are kept until all jobs that could begin in them have been tested; jobs are tested
//   nowhere else.
// Each job that can move is noted, and maybe some that cannot, as another job takes a hole first.
// Jobs whose reservations have begun are noted, too.
#pragma once
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "../base/ordered.hpp"
#include "../base/profile.hpp"
#include "../core/model.hpp"

namespace hpc {

class KeptPlan {
 public:
  explicit KeptPlan(const Model& m)
      : kept_(index(m.n_jobs)), noted_(index(m.n_jobs / 64 + 1)) {
    for (i64 j = 0; j < m.n_jobs; ++j) of(j).width = m.jobs[j].processors;
  }

  void keep(Archive& a) {
    a(profile_, kept_, noted_, waiting_);
    for (const Kept& kept : kept_) a.check_job(kept.next, -1), a.check_job(kept.before, -1);
    for (const Waiting& some : waiting_)  // the steps of others may be of an earlier plan
      for (const i64 j : some.jobs) a.check(profile_.has(of(j).begins) && profile_.has(of(j).ends));
  }
  i64 reserved(i64 j) const { return kept_[index(j)].time; }
  // Whether a reservation may become earlier.
  bool may_be_earlier(i64 j) const {
    return kept_[index(j)].loose != 0 || kept_[index(j)].time < profile_.now();
  }

  // Begin with the predicted ends of the running jobs only.
  void begin(const auto&, i64 now, i64 free, const OrderedList& running) {
    profile_.begin(now, free);
    StepNo step = profile_.first();
    running.each([&](const Entry& e) {
      if (e.key <= now) return;
      if (e.key > profile_[step].time) step = profile_.add(step, e.key);
      profile_[step].free += e.width;
      ++profile_[step].uses;
    });
    for (Waiting& some : waiting_) some.clear();
  }
  // Take the units of the windows.
  void close(const auto&, const Windows& windows) {
    StepNo near = profile_.first();  // where the last one began: the next is mostly behind
    windows.each_left([&](const Window& window) {
      const i64 from = std::max(window.begin, profile_.now());
      if (from >= window.end) return;
      if (profile_[near].time > from) near = profile_.first();
      const StepNo begin = near = profile_.at(from, near);
      const StepNo end = profile_.at(window.end, begin);
      profile_.take(begin, end, window.taken);
      ++profile_[begin].uses;
      ++profile_[end].uses;
    });
  }
  void forget_past(i64 now) {
    for (StepNo s = profile_[profile_.first()].next; profile_.time_of(s) <= now;
         s = profile_[s].next)
      for (std::int32_t j = profile_[s].job; j >= 0; j = of(j).next) note(j);
    profile_.forget_past(now);
  }
  // A job has ended; `has_left`: before its predicted end.
  void ended(const Entry& e, bool has_left) {
    if (!has_left) return;
    const StepNo end = profile_.at(e.key, profile_.first());
    give_back(profile_.first(), end, e.width);
    let_go(end);
  }
  // All jobs noted before have been tested, and some of those noted since.
  void all_tried() {
    for (Waiting& some : waiting_) some.forget_holes();
  }
  // List a waiting job.
  void list(i64 j, i64 length) { waiting_of(j).add(j, length, width(j)); }
  // Reserve the earliest time for a job; return it. `is_new`: the job is not listed yet, and all
  // listed jobs have reservations.
  i64 reserve(const auto&, i64 j, i64 length, bool is_new) {
    const StepNo from = is_new ? step_for_new(width(j), length) : profile_.first();
    reserve_from(j, length, from);
    if (reserved(j) == profile_.now()) note(j);
    return reserved(j);
  }
  // List a waiting job with the reservation that it has had before.
  void hold(i64 j, i64 time, i64 length) {
    list(j, length);
    Kept& kept = of(j);
    kept.time = time;
    const i64 now = profile_.now(), until = time + length;
    if (until > now) {  // it is not over
      const StepNo begin = profile_.at(std::max(time, now), profile_.first());
      const StepNo end = profile_.at(until, begin);
      profile_.take(begin, end, width(j));
      join(j, begin, end);
    }
    // units given back since its last test are unknown
    kept.loose = slides | finds_a_hole;
    Waiting& some = waiting_of(j);
    some.holes.push_back({now, forever, profile_.first()});
    some.find_hole(some.find(j, length));
    note(j);
  }
  // Renew the reservation of a job if it can be earlier, or if its time was missed; return whether
  // it has moved.
  bool advance(const auto&, i64 j, i64 length) {
    Kept& kept = of(j);
    if (kept.time < profile_.now()) {
      lift_missed(j, length);
      reserve_from(j, length, profile_.first());
      waiting_of(j).latest_of(j, length) = forever;
      return true;
    }
    if (kept.loose == 0) return false;
    const StepNo step = earlier_step(j, length);
    kept.loose = 0;
    if (step == kept.begins) return false;
    move(j, length, step);
    return true;
  }
  // A job with a reservation for now starts; the plan keeps its predicted run.
  void begun(const auto&, i64 j, i64 length) { waiting_of(j).remove(j, length); }

  // Remove and return the first noted job in [from, to), -1 if there is none.
  i64 next_noted(i64 from, i64 to) {
    std::uint64_t passed = (std::uint64_t{1} << (from & 63)) - 1;
    for (i64 place = from >> 6; place * 64 < to; ++place, passed = 0) {
      std::uint64_t& bits = noted_[index(place)];
      const std::uint64_t left = bits & ~passed;
      if (left == 0) continue;
      const int bit = std::countr_zero(left);
      bits ^= std::uint64_t{1} << bit;
      return place * 64 + bit;
    }
    return -1;
  }

 private:
  enum Loose : std::uint8_t { slides = 1, finds_a_hole = 2 };
  struct Kept {     // the reservation of a job
    i64 time = -1;  // [s] at which it begins
    i64 width = 0;
    StepNo begins = 0, ends = 0;          // its steps
    std::int32_t next = -1, before = -1;  // jobs whose reservations begin at the same step
    std::uint8_t loose = 0;               // in which ways it may become earlier
  };
  struct Hole {
    i64 time, end;  // [s]
    StepNo step;    // the step at which it began when found
  };
  // The waiting jobs of a class, by length: arrays, as most jobs are skipped by one number.
  struct Waiting {
    std::vector<i64> length;         // [s]
    std::vector<i64> latest;         // [s] upper bound of the reservation
    std::vector<i64> widths;
    std::vector<std::int32_t> jobs;
    // Holes for jobs that are still to be tested; `latest` of such a job is negative, and encodes
    // the first hole that it found.
    std::vector<Hole> holes;
    std::size_t n_old = 0;  // holes found before all jobs were last tested
    i64 n_forgotten = 0;

    void keep(Archive& a) {
      a(length, latest, widths, jobs, holes, n_old, n_forgotten);
      each([&](const auto& column) { a.check(column.size() == jobs.size()); });
      a.check_jobs(jobs);
      a.check(n_old <= holes.size());
    }
    void each(auto f) { f(length), f(latest), f(widths), f(jobs); }
    void clear() {
      each([](auto& column) { column.clear(); });
      holes.clear(), n_old = 0;
    }
    void forget_holes() {
      holes.erase(holes.begin(), holes.begin() + static_cast<std::ptrdiff_t>(n_old));
      n_forgotten += static_cast<i64>(n_old);
      n_old = holes.size();
    }
    // Test a job from the last hole on.
    void find_hole(std::size_t k) { latest[k] = -n_forgotten - static_cast<i64>(holes.size()); }
    std::size_t first_hole(i64 mark) const { return index(-mark - 1 - n_forgotten); }
    i64& latest_of(i64 j, i64 of_length) { return latest[find(j, of_length)]; }
    // The number of jobs with length up to `most`.
    std::size_t up_to(i64 most) const {
      return static_cast<std::size_t>(std::upper_bound(length.begin(), length.end(), most) -
                                      length.begin());
    }
    // The position of a job, listed or not; equal lengths are sorted by number.
    std::size_t find(i64 j, i64 of_length) const {
      const auto begin = jobs.begin() + static_cast<std::ptrdiff_t>(up_to(of_length - 1));
      const auto end = jobs.begin() + static_cast<std::ptrdiff_t>(up_to(of_length));
      return static_cast<std::size_t>(std::lower_bound(begin, end, j) - jobs.begin());
    }
    void add(i64 j, i64 of_length, i64 of_width) {
      const std::size_t k = find(j, of_length);
      each([k](auto& column) { column.emplace(column.begin() + static_cast<std::ptrdiff_t>(k)); });
      length[k] = of_length, latest[k] = forever, widths[k] = of_width;
      jobs[k] = static_cast<std::int32_t>(j);
    }
    void remove(i64 j, i64 of_length) {
      const auto k = static_cast<std::ptrdiff_t>(find(j, of_length));
      each([k](auto& column) { column.erase(column.begin() + k); });
    }
  };

  Profile profile_;
  std::vector<Kept> kept_;            // by job
  std::vector<std::uint64_t> noted_;  // one bit for each job
  // By class of width: 1, 2 and 3, 4 to 7, and so on; the last class has all wider jobs. A hole
  // must fit the narrowest job of a class; widths are mostly powers of two.
  std::array<Waiting, width_classes> waiting_;

  Kept& of(i64 j) { return kept_[index(j)]; }
  i64 width(i64 j) const { return kept_[index(j)].width; }
  Waiting& waiting_of(i64 j) { return waiting_[class_of_hole(width(j))]; }
  void note(i64 j) { noted_[index(j >> 6)] |= std::uint64_t{1} << (j & 63); }

  static std::size_t class_of_hole(i64 width) {
    const auto bits = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(width)));
    return std::min<std::size_t>(width_classes, bits) - 1;
  }

  void reserve_from(i64 j, i64 length, StepNo from) {
    const StepNo begin = profile_.earliest(from, width(j), length);
    const StepNo end = profile_.at(profile_[begin].time + length, begin);
    profile_.take(begin, end, width(j));
    join(j, begin, end);
    of(j).time = profile_[begin].time;
  }
  // A reservation begins and ends at these steps.
  void join(i64 j, StepNo begin, StepNo end) {
    Kept& kept = of(j);
    kept.begins = begin, kept.ends = end;
    ++profile_[begin].uses;
    ++profile_[end].uses;
    kept.next = profile_[begin].job, kept.before = -1;
    if (kept.next >= 0) of(kept.next).before = static_cast<std::int32_t>(j);
    profile_[begin].job = static_cast<std::int32_t>(j);
    kept.loose = 0;
  }
  void leave(i64 j) {
    const Kept& kept = of(j);
    if (kept.next >= 0) of(kept.next).before = kept.before;
    (kept.before >= 0 ? of(kept.before).next : profile_[kept.begins].job) = kept.next;
  }
  // A step has one use less; without uses it is dropped.
  void let_go(StepNo s) {
    if (--profile_[s].uses == 0 && s != profile_.first()) profile_.drop(s);
  }
  // Remove the rest of a reservation that has begun without its job.
  void lift_missed(i64 j, i64 length) {
    if (reserved(j) + length <= profile_.now()) return;
    const StepNo end = of(j).ends;  // the step where it begins is already dropped
    give_back(profile_.first(), end, width(j));
    let_go(end);
  }
  // The first step at which a job can begin, among those that may be earlier; else its present one.
  StepNo earlier_step(i64 j, i64 length) {
    const Kept& kept = of(j);
    StepNo step = kept.begins;
    if (kept.loose & slides) step = profile_.stretch_before(step, width(j));
    if (!(kept.loose & finds_a_hole)) return step;
    const std::size_t c = class_of_hole(width(j));
    Waiting& some = waiting_[c];
    i64& latest = some.latest_of(j, length);
    const std::size_t found_first = some.first_hole(std::exchange(latest, kept.time));
    for (std::size_t k = found_first; k < some.holes.size(); ++k) {
      Hole& hole = some.holes[k];
      const i64 time = profile_[step].time;
      if (hole.time >= time || hole.end - hole.time < length || !is_left(hole, i64{1} << c, step)) continue;
      const StepNo found =
          profile_.earliest(hole.step, width(j), length, kept.time, hole.end - length);
      if (found != no_step && profile_[found].time < time) step = found;
    }
    return step;
  }
  // Whether part of a hole has `room` units left; the hole then begins there.
  bool is_left(Hole& hole, i64 room, StepNo later) {
    StepNo step = hole.step;
    if (profile_[step].time != hole.time) {  // that step has been dropped
      step = later;
      while (step != profile_.first() && profile_[step].time > hole.time) step = profile_[step].before;
    }
    while (profile_.time_of(step) < hole.end && profile_[step].free < room) step = profile_[step].next;
    hole.time = std::min(profile_.time_of(step), hole.end);
    hole.step = step;
    return hole.time < hole.end;
  }
  void move(i64 j, i64 length, StepNo step) {
    const StepNo begin = of(j).begins, end = of(j).ends;
    const i64 time = profile_[step].time, until = time + length;
    StepNo new_end = end;
    while (profile_[profile_[new_end].before].time >= until) new_end = profile_[new_end].before;
    if (profile_[new_end].time > until) new_end = profile_.add(profile_[new_end].before, until);
    leave(j);
    join(j, step, new_end);
    of(j).time = time;
    // keep the overlap of both places
    const bool overlaps = until > profile_[begin].time;
    profile_.take(step, overlaps ? begin : new_end, width(j));
    give_back(overlaps ? new_end : begin, end, width(j));
    // the units that it has given back do not help the job itself
    if (of(j).loose & finds_a_hole) waiting_of(j).latest_of(j, length) = time;
    of(j).loose = 0;
    let_go(begin);
    let_go(end);
  }

  // The latest begin of a reservation at its earliest time, among jobs neither wider nor longer
  // than a new job of this width and length: the new job begins no earlier.
  StepNo step_for_new(i64 width, i64 length) {
    i64 latest = profile_.now();
    StepNo step = profile_.first();
    for (std::size_t c = 0; c <= class_of_hole(width); ++c) {
      Waiting& some = waiting_[c];
      const std::size_t n = some.up_to(length);
      for (std::size_t k = 0; k < n; ++k) {
        if (some.latest[k] <= latest) continue;
        const i64 j = some.jobs[k];
        const Kept& kept = of(j);
        some.latest[k] = kept.time;
        if (kept.time > latest && kept.loose == 0 && this->width(j) <= width)
          latest = kept.time, step = kept.begins;
      }
    }
    return step;
  }

  void give_back(StepNo begin, StepNo end, i64 width) {
    profile_.take(begin, end, -width);
    note_given_back(begin, end, width);
  }
  // Units have been given back between two steps: note the jobs that may begin earlier.
  void note_given_back(StepNo begin, StepNo end, i64 width) {
    i64 least = forever, most = 0;
    for (StepNo s = begin; s != end;) {
      const i64 free = profile_[s].free;
      least = std::min(least, free), most = std::max(most, free);
      s = profile_[s].next;
      for (std::int32_t j = profile_[s].job; j >= 0; j = of(j).next) {
        if (this->width(j) > free) continue;
        of(j).loose |= slides;
        note(j);
      }
    }
    // for narrower jobs all of this was free before
    least = std::max(least - width + 1, i64{1});
    if (most < least) return;
    const bool lone = profile_[begin].next == end;
    StepNo first = begin, after = end;
    // from the widest class down, so that the stretch around a single step only grows
    for (std::size_t c = class_of_hole(most) + 1; c-- > class_of_hole(least);) {
      if (waiting_[c].jobs.empty()) continue;
      const i64 narrowest = std::max(i64{1} << c, least);
      const i64 widest = c < width_classes - 1 ? std::min(most, (i64{2} << c) - 1) : most;
      if (lone) {
        first = profile_.stretch_before(first, narrowest);
        after = profile_.stretch_after(after, narrowest);
        offer_hole(c, narrowest, widest, first, after);
      } else {
        find_holes(c, narrowest, widest, begin, end, width);
      }
    }
  }
  // Offer each hole that includes steps from `begin` to `end`: free for the narrowest job, with a
  // step there that was not free for the widest one before.
  void find_holes(std::size_t c, i64 narrowest, i64 widest, StepNo begin, StepNo end, i64 width) {
    for (StepNo s = begin; s != end;) {
      if (profile_[s].free < narrowest) {
        s = profile_[s].next;
        continue;
      }
      const StepNo first = s == begin ? profile_.stretch_before(s, narrowest) : s;
      bool is_new = false;
      for (; s != end && profile_[s].free >= narrowest; s = profile_[s].next)
        is_new |= profile_[s].free - width < widest;
      if (is_new) offer_hole(c, narrowest, widest, first, profile_.stretch_after(s, narrowest));
    }
  }
  // Note the jobs of a class for which the hole between two steps is long enough.
  void offer_hole(std::size_t c, i64 narrowest, i64 widest, StepNo first, StepNo after) {
    const i64 time = profile_[first].time, end = profile_.time_of(after);
    Waiting& some = waiting_[c];
    if (some.length[0] > end - time) return;
    const bool grows = some.holes.size() > some.n_old && some.holes.back().time == time;
    if (grows) some.holes.back() = {time, std::max(some.holes.back().end, end), first};
    else some.holes.push_back({time, end, first});
    const std::size_t n = some.up_to(end - time);
    for (std::size_t k = 0; k < n; ++k) {
      if (some.latest[k] <= time || !is_between(some.widths[k], narrowest, widest)) continue;
      const i64 j = some.jobs[k];
      some.latest[k] = of(j).time;
      if (of(j).time <= time) continue;
      some.find_hole(k);
      of(j).loose |= finds_a_hole;
      note(j);
    }
  }
};

}  // namespace hpc
