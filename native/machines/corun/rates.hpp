// The speeds and ends of jobs that share nodes.
//
// The rate of a job is the least of its speedups beside the jobs on any of its nodes. It changes as
// these come and go, and the end of the job with it; on a shared file system also with congestion.
// The work done by a job is updated only at these changes, in the order in which the sums must be
// made.
#pragma once
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "../../base/ordered.hpp"
#include "files.hpp"
#include "places.hpp"

namespace hpc {

struct Spell {  // time in which a job ran at one rate
  i64 job;
  i64 beside;  // the code that limited its rate; -1: none
  i64 begin, end;
};

class SharedRates : public SharedPlaces {
 public:
  explicit SharedRates(const Model& model) : SharedPlaces(model), belief_(told_->belief) {
    if (told_->files) files_.emplace(*told_->files, model.n_jobs);
  }

  void keep(Archive& a) {
    SharedPlaces::keep(a);
    a(belief_, files_, spells_, stamp_);
    a.check_jobs(spells_);
  }
  const std::vector<Spell>& spells() const { return spells_; }
  const Belief& belief() const { return belief_; }
  // [ticks] of remaining work of a running job, as believed.
  double predicted_left(const Task& t, i64 now) const {
    return left_at(t, now) + static_cast<double>(t.more);
  }

 protected:
  Belief belief_;
  std::optional<SharedFiles> files_;
  std::vector<Spell> spells_;
  i64 stamp_ = 0;  // increases with each set of jobs that is marked

  static i64 ticks_for(double work, double rate) {
    return std::max(i64{1}, static_cast<i64>(std::ceil(work / rate)));
  }
  double believed_alone(i64 j) const { return belief_.alone[index(code(j))]; }
  // The rate of a job whose rate without congestion is `beside`.
  double with_files(i64 j, double beside) const {
    return files_ ? files_->rate(code(j), beside) : beside;
  }
  double left_at(const Task& t, i64 now) const {
    return t.left - t.rate * static_cast<double>(now - t.since);
  }
  // The lowest rate of a job if it loses neighbours and gains none, with the scheduler's belief for
  // running alone; at the present congestion, which departures do not increase.
  double lasting_rate(i64 j, double beside) const {
    if (!told_->is_compact(j)) beside = std::min(beside, believed_alone(j));
    return with_files(j, beside);
  }

  void begin_at_rate(i64 j, i64 now, i64 predicted, i64 run) {
    Task& t = task(j);
    if (files_) files_->open(j, code(j));
    const auto [beside, limit] = rate_of(j);
    t.beside = beside, t.limit = limit;
    t.rate = with_files(j, beside);
    t.left = static_cast<double>(run);
    t.more = predicted - run;
    t.since = t.begun = now;
    t.end = now + ticks_for(t.left, t.rate);
    t.least = lasting_rate(j, beside);
    t.predicted_end = now + ticks_for(static_cast<double>(predicted), t.least);
  }
  void end_at_rate(i64 j) {
    if (told_->logs_spells) note_spell(j, task(j).end);
    give_back(j);
    if (files_) files_->close(j, code(j));
  }
  // Update the rates of the neighbours of a job on its nodes.
  void renew_neighbours(i64 j, i64 now, OrderedList& running) {
    if (!told_->is_part(j)) return;
    task(j).stamp = ++stamp_;
    for (const i64 node : cells(j))
      for (const i64 other : on(node)) {
        if (std::exchange(task(other).stamp, stamp_) == stamp_) continue;
        const auto [beside, limit] = rate_of(other);
        follow(other, now, running, beside, limit);
      }
  }
  // The same for all jobs that wait for files, if the congestion has changed.
  void renew_readers(i64 now, OrderedList& running) {
    if (!files_ || !files_->tells()) return;
    for (const i64 j : files_->readers) follow(j, now, running, task(j).beside, task(j).limit);
  }
  // Whether a running job would end by `until`, but not with a job of code `by` beside it.
  bool is_delayed(i64 j, i64 by, i64 now, i64 until) const {
    const Task& t = task(j);
    if (t.predicted_end > until || !told_->is_part(j)) return false;
    const double speedup = belief_.pairs[pair(code(j), by)];
    const double beside = t.neighbours == 0 ? speedup : std::min(t.beside, speedup);
    return now + ticks_for(predicted_left(t, now), lasting_rate(j, beside)) > until;
  }

 private:
  struct Limited {
    double rate;
    i64 by;  // a code, -1: none
  };

  // The rate of a running job beside its present neighbours, without congestion of files.
  Limited rate_of(i64 j) const {
    if (told_->is_compact(j)) return {1.0, -1};
    if (task(j).neighbours == 0) return {told_->alone[index(code(j))], -1};
    Limited least{inf, -1};
    for (const i64 node : cells(j))
      for (const i64 other : on(node)) {
        if (other == j) continue;
        const double speedup = told_->speedup[pair(code(j), code(other))];
        if (speedup < least.rate) least = {speedup, code(other)};
      }
    return least;
  }
  void follow(i64 j, i64 now, OrderedList& running, double beside, i64 limit) {
    Task& t = task(j);
    if (beside == t.beside && with_files(j, beside) == t.rate) {
      if (limit == t.limit) return;
      if (told_->logs_spells) note_spell(j, now);
      t.limit = limit;
      return;
    }
    const i64 key = t.predicted_end;
    set_rate(j, now, beside, limit);
    relist(running, key, j);
  }
  void set_rate(i64 j, i64 now, double beside, i64 limit) {
    Task& t = task(j);
    const i64 predicted_before = t.predicted_end;
    const double least_before = t.least;
    t.left = left_at(t, now);
    t.since = now;
    if (told_->logs_spells) note_spell(j, now);
    t.rate = with_files(j, beside);
    t.beside = beside, t.limit = limit;
    t.least = lasting_rate(j, beside);
    t.predicted_end = now + ticks_for(t.left + static_cast<double>(t.more), t.least);
    // not later than before: remaining work is rounded, and promises depend on the end
    if (t.least >= least_before) t.predicted_end = std::min(t.predicted_end, predicted_before);
    t.end = std::min(now + ticks_for(t.left, t.rate), t.predicted_end);
  }
  // Move a running job, listed under `key`, to its new predicted end; the ends of blocks stay
  // exact.
  void relist(OrderedList& running, i64 key, i64 j) {
    const Task& t = task(j);
    const Place place = running.find(key, j);
    Block& block = running.at(place.block);
    Entry& e = block.entries[index(place.entry)];
    const bool first = place.entry == 0, last = place.entry + 1 == block.count;
    const bool stays = (first || (&e)[-1].key < t.predicted_end) &&
                       (last || t.predicted_end < (&e)[1].key);
    // the first and the last of a block have neighbours in other blocks
    if (stays && (running.size_in_blocks() == 1 || !(first || last))) {
      e.key = t.predicted_end, e.span = t.end;
      block.summarise();
      return;
    }
    const Entry taken = running.take_off(place);
    running.insert({t.predicted_end, t.end, taken.width, j});
  }
  void note_spell(i64 j, i64 now) {
    Task& t = task(j);
    if (now > t.begun) spells_.push_back({j, t.limit, t.begun, now});
    t.begun = now;
  }
};

}  // namespace hpc
