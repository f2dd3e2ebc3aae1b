// A simulation: what has happened up to now, and what happens next. It can stop anywhere between
// two passes, and a copy goes on alone.
//
// What happens at equal times is the whole difference between the two rules for passes:
// - per timestamp: expiries, all ends in the order of the starts, all submissions, then one pass;
// - per event: expiries, then each submission and after them each end, a pass following each.
#pragma once
#include <array>
#include <vector>

#include "../base/ordered.hpp"
#include "../machines/machine.hpp"
#include "model.hpp"
#include "queue.hpp"

namespace hpc {

// [s] added to the first prediction, one after the other: Glesser 2016, section 7.4.2
inline constexpr std::array<i64, 11> increments{60,    300,   900,   1800,   3600,  7200,
                                                18000, 36000, 72000, 180000, 360000};

template <Machine M>
struct Simulator {
  const Model& model;
  M machine;
  Queue queue;
  OrderedList running;  // by predicted end; the bounds of their true ends are exact
  std::vector<Progress> progress;  // by job
  i64 time;             // [s] of the last event
  i64 next = 0;         // job that is submitted next
  i64 started = 0;      // jobs that have
  i64 free;             // units
  i64 arrived = 0;      // jobs submitted since the last pass, not yet in the queue
  bool changed = false; // a job started or ended, or a prediction expired, since the last full pass
  bool expired = false; // a prediction has, since a strategy that asks set it back
  std::vector<Entry> ended;  // jobs that have since the last pass, in order, where `notes_ends`
  bool notes_ends = false;
  i64 head = -1;        // the job that could not start at the last pass, -1 if none
  Shadow shadow;        // of its reservation

  explicit Simulator(const Model& m)
      : model(m),
        machine(m, m.n_jobs > 0 ? m.jobs[0].submit : 0),
        queue(m),
        progress(index(m.n_jobs)),
        time(m.n_jobs > 0 ? m.jobs[0].submit : 0),
        free(m.capacity),
        history_(index(m.n_users * m.rules.last), -1) {
    for (i64 j = 0; j < m.n_jobs; ++j) of(j).predicted = m.predicted ? m.predicted[j] : 0;
  }

  Progress& of(i64 j) { return progress[index(j)]; }
  const Job& job(i64 j) const { return model.jobs[j]; }
  const Rules& rules() const { return model.rules; }

  // Units free now, with those of jobs that are predicted to end now.
  i64 free_with_leaving() const {
    i64 units = free;
    for (int k = 0; k < running.size_in_blocks(); ++k)
      for (const Entry& e : running.at(k)) {
        if (e.key > time) return units;
        units += e.width;
      }
    return units;
  }

  // Promise a time to the head, if nothing has been promised to it. Where the order changes as jobs
  // wait the next pass may have another head: no promise.
  void promise(i64 j, i64 at) {
    if (of(j).promised < 0 && rules().primary < Order::selection) of(j).promised = at;
  }
  // What back-filling orders a job by, where time changes that.
  double second_score(i64 j) const {
    return score_now(rules().secondary, model.second_scores[j], time - job(j).submit);
  }

  void start(i64 j) {  // a job that is not, or no longer, in the queue
    Progress& p = of(j);
    const Span span = machine.begin(j, time, p.predicted, run_time(j));
    // one that starts late ends later than was planned, and so may the head start
    if (span.start != time) changed = true;
    p.start = span.start;
    p.number = static_cast<std::int32_t>(started++);
    const i64 width = machine.width(j);
    free -= width;
    running.insert({span.expected, span.end, width, j});
  }

  // Go to the next pass, at `stop` [s] or before; return whether there is one.
  bool advance(i64 stop) {
    const Rules& r = rules();
    const bool per_event = r.passes == Passes::per_event;
    const bool expires = r.correction != Correction::none;
    while (true) {
      bool due = false;
      const i64 end = next_end();
      i64 at = next < model.n_jobs ? std::min(end, job(next).submit) : end;
      if (expires) at = std::min(at, next_expected_end());
      if (at > stop || at == forever) return false;
      time = at;
      if (expires && next_expected_end() == at) expire();
      const bool arriving = next < model.n_jobs && job(next).submit == at;
      if (end == at && !(arriving && per_event)) {
        due = changed = true;
        if (per_event) {
          end_first();
        } else if (r.estimate == Estimate::given && !notes_ends) {
          end_all();
        } else {
          while (next_end() == at) end_first();
        }
      }
      while (next < model.n_jobs && job(next).submit == at) {
        submit(next);
        due = true;
        if (!per_event) continue;
        // the original simulator looks at its queue only if the new job could start, unless the
        // order of back-filling is not that of submission; it holds no jobs back
        if (r.secondary == Order::submission && r.depth != all_jobs && !r.holds)
          due = job(next - 1).processors <= free_with_leaving();
        break;
      }
      if (due) return true;
    }
  }

 private:
  std::vector<i64> history_;  // (n_users, last) run times of each user's last jobs, -1 before any

  i64 run_time(i64 j) {
    if (rules().correction == Correction::kill) return std::min(job(j).run, of(j).predicted);
    return job(j).run;
  }

  i64 next_end() const {
    i64 end = running.at(0).least_span;
    for (int k = 1; k < running.size_in_blocks(); ++k) end = std::min(end, running.at(k).least_span);
    return end;
  }
  i64 next_expected_end() const { return running.empty() ? forever : running.front().key; }

  // All jobs whose end is now, where their order makes no difference.
  void end_all() {
    for (int k = 0; k < running.size_in_blocks();) {
      Block& block = running.at(k++);
      if (block.least_span != time) continue;
      i64 least = nothing, freed = 0;
      Entry* kept = block.begin();
      for (const Entry& e : block) {
        if (e.span == time) {
          freed += e.width;
          continue;
        }
        least = std::min(least, e.span);
        *kept++ = e;
      }
      block.count = static_cast<int>(kept - block.begin());
      block.least_span = least;
      block.sum_width -= freed;
      give_back(freed);
      k = running.tidy_swept(k);
    }
  }
  // The job whose end is now; of several the one that started first.
  void end_first() {
    Place found{-1, -1};
    std::int32_t first = std::numeric_limits<std::int32_t>::max();
    for (int k = 0; k < running.size_in_blocks(); ++k) {
      const Block& block = running.at(k);
      if (block.least_span != time) continue;
      for (int i = 0; i < block.count; ++i) {
        const Entry& e = block.entries[index(i)];
        if (e.span != time || of(e.job).number >= first) continue;
        first = of(e.job).number;
        found = {k, i};
      }
    }
    Block& block = running.at(found.block);
    const Entry gone = block.entries[index(found.entry)];
    block.erase(found.entry);
    block.least_span = nothing;
    for (const Entry& e : block) block.least_span = std::min(block.least_span, e.span);
    if (running.size_in_blocks() > 1) running.tidy(found.block);
    give_back(gone.width);
    if (notes_ends) ended.push_back(gone);
    if (rules().estimate == Estimate::average) remember(gone.job);
  }
  void give_back(i64 width) {
    free += width;
    machine.give(time, width);
  }

  void submit(i64 j) {
    next = j + 1;
    ++arrived;
    if (rules().estimate == Estimate::average) of(j).predicted = average(j);
  }
  i64* history(i64 j) { return &history_[index(model.users[j] * rules().last)]; }
  void remember(i64 j) {
    i64* past = history(j);
    std::copy(past + 1, past + rules().last, past);
    past[rules().last - 1] = run_time(j);
  }
  // The mean run time of the user's last jobs, at most the requested time, or that without.
  i64 average(i64 j) {
    const i64 requested = job(j).requested, *past = history(j);
    if (past[0] < 0) return requested;
    i64 total = 0;
    for (i64 k = 0; k < rules().last; ++k) total += past[k];
    return std::min(total / rules().last, requested);
  }

  // Correct the predictions that end now, of jobs that run on.
  void expire() {
    while (true) {
      const Place found = first_expired();
      if (found.block < 0) return;
      const i64 j = running.at(found.block).entries[index(found.entry)].job;
      running.move_back(found, of(j).start + corrected(j));
      changed = expired = true;
    }
  }
  Place first_expired() const {
    for (int k = 0; k < running.size_in_blocks(); ++k) {
      const Block& block = running.at(k);
      for (int i = 0; i < block.count; ++i) {
        const Entry& e = block.entries[index(i)];
        if (e.key > time) return {-1, -1};
        if (e.span > time) return {k, i};
      }
    }
    return {-1, -1};
  }
  i64 corrected(i64 j) {
    const i64 requested = job(j).requested;
    Progress& p = of(j);
    const std::size_t before = p.corrections;
    if (before < 255) ++p.corrections;
    if (rules().correction == Correction::incremental && before < increments.size())
      return std::min(p.predicted + increments[before], requested);
    // not bounded by the requested time: so the published values were obtained
    if (rules().correction == Correction::doubling) return 2 * (time - p.start);
    return requested;
  }
};

}  // namespace hpc
