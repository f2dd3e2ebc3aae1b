// A simulation: what has happened up to now, and what happens next. It can stop anywhere between
// two passes, or at a question before one, and a copy goes on alone.
//
// What happens at equal times is the whole difference between the two rules for passes:
// - per timestamp: expiries, all ends in the order of the starts, all submissions, then one pass;
// - per event: expiries, then each submission and after them each end, a pass following each. Where
//   an end lets jobs come, each of these is next.
#pragma once
#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <utility>
#include <vector>

#include "../base/ordered.hpp"
#include "beginning.hpp"
#include "arrivals.hpp"
#include "looks.hpp"
#include "machine.hpp"
#include "model.hpp"
#include "outages.hpp"
#include "queue.hpp"
#include "quotas.hpp"
#include "stops.hpp"
#include "windows.hpp"

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
  i64 begins;           // [s] of the first submission, or of a later beginning
  i64 next = 0;         // job that is submitted next
  i64 started = 0;      // jobs that have
  i64 free;             // units
  i64 arrived = 0;      // jobs submitted since the last pass, not yet in the queue
  bool changed = false; // a job started or ended, or a prediction expired, since the last full pass
  bool expired = false; // a prediction has, since a strategy that asks set it back
  std::vector<Entry> ended;  // jobs that have since the last pass, in order, where `notes_ends`
  bool notes_ends = false;
  std::vector<i64> newcomers;  // likewise: jobs that have come, and have no reservation yet
  bool passed = false;  // at the last pass a job started before the head
  i64 head = -1;        // the job that could not start at the last pass, -1 if none
  Shadow shadow;        // of its reservation
  std::optional<Quotas> quotas;
  std::optional<Windows> windows;
  std::optional<Arrivals> arrivals;
  Column<double> held;  // by job, where long ones are held back
  std::vector<i64> log; // jobs in the order of their ends, where the rules say so
  i64 logged_at_pass = 0, lost_at_pass = 0;  // how many there were as the last pass began, and in `lost`
  Asked asked = Asked::nothing;    // why `advance` stopped; it goes on as if that was answered
  i64 selected = -1;    // the job to serve next, or to start, where that is asked for; -1: none yet
  static constexpr i64 none_now = -2;  // that is the answer
  i64 about = -1;       // the job of a prediction or a correction that is asked for, or that is to start
  i64 renewed = 0;      // [s] that correction
  std::optional<Outages> outages;
  std::optional<Stops> stops;
  Looks looks;
  std::vector<LostRun> lost;  // in the order of their ends
  std::vector<i64> past;  // (n_users, kept) run times of each user's last jobs, -1 before any
  // where somebody says within a pass who starts
  bool filling = false;         // the head waits, and it is asked who starts before it
  std::vector<i64> candidates;  // who may, in secondary order
  std::vector<i64> passed_over;  // who has been put off in this pass
  i64 again = forever;           // [s] when there is to be another, as somebody has

  static constexpr bool has_levels = M::has_levels;

  explicit Simulator(const Model& m)
      : model(m),
        machine(m, m.first_submission()),
        queue(m),
        progress(index(m.n_jobs)),
        time(m.first_submission()),
        begins(time),
        free(m.capacity),
        held(m.held),
        past(index(m.n_users * m.rules.kept()), -1) {
    for (i64 j = 0; j < m.n_jobs; ++j) of(j).predicted = m.predicted ? m.predicted[j] : 0;
    if (m.outages) outages.emplace(m);
    if (m.quotas.n > 0) quotas.emplace(m.quotas);
    if (!m.windows.empty()) windows.emplace(m.windows);
    if (m.stops.n_groups() > 0) stops.emplace(m);
    if ((stops && stops->cancels()) || has_levels) queue.known.own(m.n_jobs);
    if (!m.arrivals.moves) return;
    next = m.n_jobs;  // for the loop of events they have all been submitted
    arrivals.emplace(m.arrivals, queue.known, m.n_jobs);
    queue.known.own(m.n_jobs);
    queue.came.assign(index(m.n_jobs), -1);
    for (std::size_t k = 0; k < 2; ++k)
      if (m.arrivals.by_arrival[k]) queue.keys[k].own(m.n_jobs);
  }

  void keep(Archive& a) {
    a(machine, queue, running, progress, time, begins, next, started, free, arrived, changed,
      expired, ended, newcomers, passed, head, shadow, quotas, windows, arrivals, held, log, logged_at_pass,
      lost_at_pass, asked, selected, about, renewed, outages, stops, looks, lost, past, filling, candidates,
      passed_over, again, due_, amid_);
  }

  Progress& of(i64 j) { return progress[index(j)]; }
  const Progress& of(i64 j) const { return progress[index(j)]; }
  const Job& job(i64 j) const { return queue.known[j]; }
  const Rules& rules() const { return model.rules; }

  i64 run_time(i64 j) const {
    if (rules().correction == Correction::kill) return std::min(job(j).run, of(j).predicted);
    return job(j).run;
  }
  Job as_it_runs(i64 j) const {
    Job own = job(j);
    own.run = run_time(j);
    return own;
  }
  // [s] The run times of the last jobs of a job's user, the last one last; -1 before there are any.
  const i64* history(i64 j) const { return &past[index(model.users[j] * rules().kept())]; }
  Used used(i64 j) const { return machine.used(j, of(j).start + run_time(j)); }
  // Who waits the longest of all, if that is longer than the threshold; -1: nobody does.
  i64 starving() {
    if (rules().threshold < 0 || queue.empty()) return -1;
    const i64 j = queue.oldest(progress);
    return rules().starves(time - job(j).submit) ? j : -1;
  }
  // Units that must be free for a job to start now: what it takes, and what it holds back, which
  // becomes less as it waits: `held` before it has.
  i64 needed_by(i64 j) const { return needed_by(j, time - job(j).submit); }
  i64 needed_by(i64 j, i64 waited) const {
    const Job& own = job(j);
    if (!rules().holds || held[j] == 0) return own.processors;
    double back = held[j];
    if (rules().erode > 0)
      back /= 1.0 + static_cast<double>(waited) / static_cast<double>(rules().erode);
    // to the nearest, of two the even one
    return std::min(model.capacity, own.processors + static_cast<i64>(std::nearbyint(back)));
  }

  // Call f(entry) for each job that runs; in `running` stand nodes that are down, too.
  template <class F>
  void each_running_job(F f) const {
    running.each([&](const Entry& e) {
      if (e.job < model.n_jobs) f(e);
    });
  }
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

  // Those that a pass may give: where each event has one, with those of jobs that are about to end.
  i64 room() const { return rules().passes == Passes::per_event ? free_with_leaving() : free; }

  // Whether a job may not start now, whatever is free: by quotas, as it was put off in this pass, or by
  // what a machine adds.
  bool bars(i64 j) const {
    return machine.bars(j) || (quotas && quotas->bar(j)) || is_passed_over(j);
  }
  // Whether it bars anybody at all.
  bool bars_some() const { return M::restricts || quotas || !passed_over.empty(); }
  bool is_passed_over(i64 j) const { return std::ranges::find(passed_over, j) != passed_over.end(); }
  // Whether anything restricts who may start when, windows, dependencies and preemption too.
  bool restricted() const { return M::restricts || model.restricted; }
  // Whether a job could start now: as the first or, where budgets allow more there, behind it.
  bool could_start(i64 j, i64 room) {
    if (bars(j)) return false;
    if (machine.backfills_more() && rules().asks) return needed_by(j) <= room;
    return machine.fits(j, needed_by(j), room);
  }
  // Whether no job runs, waits or is to come; each node that is down has a running entry.
  bool is_over() const {
    if (next < model.n_jobs || (arrivals && arrivals->next() < forever)) return false;
    return queue.empty() && running.size() == (outages ? outages->down() : 0);
  }
  bool closes() const { return windows && windows->are_left(); }
  // A pass begins: let those jobs come whose submissions the schedule makes; return whether it goes on.
  bool come() {
    if (!arrivals) return true;
    const auto enter = [&](i64 j) {
      queue.known.at(j).submit = time;
      note_came(j);
      if (rules().estimate == Estimate::average) of(j).predicted = average(j);
      if (notes_ends) newcomers.push_back(j);
      else wait(j);
    };
    if (rules().passes == Passes::per_timestamp) return arrivals->come(time, log, enter);
    arrivals->let_one_come(enter);
    return true;
  }

  // Promise a time to the head, if nothing has been promised to it. Where the order changes as jobs
  // wait the next pass may have another head, and where some are put off it may: no promise.
  void promise(i64 j, i64 at) {
    const bool keeps = rules().primary < Order::selection && !rules().proposes;
    if (of(j).promised < 0 && keeps) of(j).promised = at;
  }
  // What back-filling orders a job by, where time changes that.
  double second_score(i64 j) const {
    return score_now(rules().secondary, queue.scores[1][j], time - job(j).submit);
  }

  void note_came(i64 j) {  // where the schedule says when jobs come
    for (std::size_t k = 0; k < 2; ++k)
      if (model.arrivals.by_arrival[k]) queue.keys[k].at(j) = job(j).submit;
    queue.note_came(j);
  }
  void put_off(i64 j) {  // a job that was to start, up to the next pass
    ++of(j).put_off;
    passed_over.push_back(j);
    again = time + rules().put_off_for;
  }
  void wait(i64 j) {  // a job that has arrived
    machine.waits(j);
    machine.note_predicted(j, of(j).predicted);
    queue.enter(j, of(j).predicted);
  }
  void start(i64 j) {  // a job that is not, or no longer, in the queue
    Progress& p = of(j);
    const Span span = machine.begin(j, time, p.predicted, run_time(j));
    if constexpr (has_levels) {
      Job& own = queue.known.at(j);
      own.run = machine.at_its_level(j, run_time(j));
      own.requested = machine.at_its_level(j, own.requested);
      p.predicted = machine.at_its_level(j, p.predicted);
    }
    // one that starts late ends later than was planned, and so may the head start
    if (span.start != time) changed = true;
    p.start = span.start;
    p.number = static_cast<std::int32_t>(started++);
    const i64 width = machine.width(j);
    free -= width;
    // where events are handled one by one, a job may have the units of one that is about to end
    assert(free >= 0 || rules().passes == Passes::per_event);
    if (quotas) quotas->begun(j);
    running.insert({span.expected, span.end, width, j});
    if (machine.begun(j, time, running)) changed = true;
  }

  // A run that is over now, as its job is killed.
  void kill(Place at) {
    Block& block = running.at(at.block);
    Entry& gone = block.entries[index(at.entry)];
    queue.known.at(gone.job).run = time - of(gone.job).start;
    gone.span = block.least_span = time;
    end_first();
  }
  // A run that ends before it is over; its job waits again.
  void stop(Place at) {
    const Entry e = running.take_off(at);
    give_back(e.job, e.width);
    if (stops) stops->forget_leaving(e.job);
    if (quotas) quotas->ended(e.job);
    note_lost(e.job);
    wait_again(e.job);
  }
  void note_lost(i64 j) {  // of a job that has given back what it had
    lost.push_back({j, of(j).start, time});
    machine.note_lost(j);
  }
  void wait_again(i64 j) {  // as if it had never started
    Progress& p = of(j);
    p.start = -1, p.number = 0, p.corrections = 0, p.backfilled = false;
    machine.waits(j);
    queue.enter_again(j, p.predicted);
  }
  void give_back(i64 j, i64 width) {
    free += width;
    machine.give(time, j, width);
  }

  // Begin with jobs that run and jobs that wait; called before anything else. What has expired of
  // predictions before is corrected as it would have been. `answer()` is called for each prediction
  // that is asked for: first of all these jobs, as if they were submitted now. Where it returns false
  // the answer comes from outside: called again, it goes on from there. Return the first of those
  // that run that cannot, as it has ended by then, or finds no room; -1 if all do.
  template <class F>
  i64 begin(const Beginning& b, F answer) {
    bool is_known = asked != Asked::nothing;  // what was asked for
    if (!is_known) take(b);
    if (asked == Asked::prediction) {
      for (; about < b.number; ++about)
        if (!std::exchange(is_known, false) && !answer()) return -1;
      asked = Asked::nothing;
      running.clear();
    }
    if (asked == Asked::nothing) {
      const i64 stuck = start_running(b);
      if (stuck >= 0) return stuck;
    }
    if (rules().correction != Correction::none) {
      while (next_expected_end() < b.time) {
        time = next_expected_end();
        if (!expire_all(std::exchange(is_known, false), answer)) return -1;
      }
      time = b.time;
      if (b.due && !expire_all(is_known, answer)) return -1;  // before the pass of this second
    }
    line_up(b.time, b.number, b.due);
    return -1;
  }
  // The same, where those that run are on the machine: let those wait that do.
  void line_up(i64 at, i64 number, bool due) {
    time = due ? at : at - 1;
    if (arrivals) arrivals->begin(number);
    else next = number;
    for (i64 j = 0; j < number; ++j) {
      if (arrivals) note_came(j);
      if (of(j).start < 0) wait(j);
    }
    changed = expired = true;
    amid_ = due_ = due;
    if (due && rules().passes != Passes::per_event)
      while (next_end() == time) end_first();
  }

  // Stand where another simulation does, of which this one has the jobs that run and wait: `rows`,
  // ascending. `due`: a pass is due at once.
  void stand_as(const Simulator& other, const std::vector<i64>& rows, bool due) {
    const auto place_of = [&](i64 row) {
      return std::lower_bound(rows.begin(), rows.end(), row) - rows.begin();
    };
    begins = time = other.time;
    next = model.n_jobs;
    started = other.started;
    free = other.free;
    changed = expired = true;
    amid_ = due_ = due;
    for (std::size_t k = 0; k < rows.size(); ++k) progress[k] = other.of(rows[k]);
    if (quotas) quotas->left = other.quotas->left;
    if (windows) windows->forget_over(time);
    other.running.each([&](const Entry& e) {
      const i64 j = place_of(e.job);
      // where events are handled one by one, a job may be about to end as predicted
      const i64 end = e.key > time ? of(j).start + run_time(j) : e.key;
      running.insert({e.key, end, e.width, j});
    });
    for (i64 j = 0; j < next; ++j)
      if (of(j).start < 0) wait(j);
  }

  // --- When the next pass is --------------------------------------------------------------------
  //
  // A second is made of these, in this order. `go_on` asks all that have times of their own when
  // they are next.
  //
  //   nodes are repaired                                   Outages::next_repair
  //   predictions expire, jobs end, jobs are submitted     next_event
  //   nodes fail                                           Outages::next_due
  //   limits begin or end, meters are looked at            machine.next_change
  //   windows end; exempt jobs may be stopped              Windows::next_over, Stops::exempt_until
  //   it is time for a look at the queue                   Looks::next_due
  //   who was put off has waited for so long               again
  //   who waits has new predictions or scores              asks_for_renewal
  //   jobs come that the schedule lets come                Arrivals::next
  //   the queue is put in order                            asks_for_order
  //   the pass: limits do what they have to, jobs start    strategies/scheduled.hpp
  //
  // Where nothing else is to be done, idle nodes are switched off without a pass: `machine.next_idle`.

  // Go to the next pass, at `stop` [s] or before; return whether there is one. If something is
  // asked for before, return false: called again, it goes on from there.
  bool next_pass(i64 stop) {
    const Asked answered = std::exchange(asked, Asked::nothing);
    const bool amid = std::exchange(amid_, false);
    if (arrivals && answered != Asked::renewal) arrivals->alone = false;
    if (answered == Asked::order || answered == Asked::job || answered == Asked::starts) return true;
    if (answered == Asked::renewal || (amid && rules().passes == Passes::per_event))
      return is_ready();
    bool is_corrected = answered == Asked::correction, is_predicted = answered == Asked::prediction;
    bool is_amid = amid || is_predicted;  // what comes before submissions in this second is done
    for (;; is_corrected = is_predicted = is_amid = false) {
      if (!is_amid && !go_on(stop, is_corrected)) return false;
      if (!submit_all(is_predicted)) return false;
      if (!due_) continue;
      fail_nodes();
      return !asks_for_renewal() && is_ready();
    }
  }
  i64 next_end() const {  // [s]
    i64 end = running.at(0).least_span;
    for (int k = 1; k < running.size_in_blocks(); ++k) end = std::min(end, running.at(k).least_span);
    return end;
  }
  // [s] of the next submission, end or expiry.
  i64 next_event() const {
    const i64 at = next < model.n_jobs ? std::min(next_end(), job(next).submit) : next_end();
    return rules().correction != Correction::none ? std::min(at, next_expected_end()) : at;
  }
  // [s] when a pass is due though nothing happens to a job, and not for a look.
  i64 next_due() const {
    i64 at = outages ? outages->next_due(time) : forever;
    at = std::min({at, machine.next_change(), again});
    if (windows && !queue.empty()) at = std::min(at, windows->next_over());
    return stops ? std::min(at, stops->exempt_until) : at;
  }
  // [s] The same, for jobs that come in that pass.
  i64 next_coming() const {
    return arrivals && rules().passes == Passes::per_timestamp ? arrivals->next() : forever;
  }
  // Whether priorities by usage change though nobody is charged.
  bool usage_fades() const {
    const auto& a = model.accounts;
    return a && !a->book.in_a_tree &&
           (a->kinds[0] == Usage::mixed || a->kinds[1] == Usage::mixed);
  }
  // Whether somebody is to put the queue in order before the pass, or to say who starts in its
  // place: new jobs wait from then on. Where no job can start that makes no difference.
  bool waits_for_order() {
    for (; arrived > 0; --arrived) wait(next - arrived);
    if (arrivals) {  // who comes now is to be in that order, too
      if (!come()) return false;
      arrivals->alone = false;
    }
    if (queue.empty()) return false;
    machine.settle(time, running);
    if (rules().asks) changed = true;
    const i64 units = room();
    if (queue.none_fits(units)) return false;
    bool some_fits = false;
    queue.jobs.each([&](const Entry& e) {
      some_fits = some_fits || could_start(e.job, units);
    });
    if (some_fits) asked = rules().asks ? Asked::order : Asked::starts;
    return some_fits;
  }

  // Whether jobs that wait, or may come now, are to have new predictions or scores before the pass.
  bool asks_for_renewal() {
    if (rules().renews == Renews::never) return false;
    // since the last pass began
    const bool some_ended = logged() > logged_at_pass || n_lost() > lost_at_pass;
    const bool news = rules().renews == Renews::each_time || some_ended || usage_fades();
    const bool waits = (news && !(queue.empty() && arrived == 0)) ||
                       (arrivals && arrivals->may_come(time, log));
    if (!waits) return false;
    asked = Asked::renewal;
    return true;
  }
  i64 logged() const { return static_cast<i64>(log.size()); }
  i64 n_lost() const { return static_cast<i64>(lost.size()); }

  // The job whose end is now; of several the one that started first.
  void end_first() {
    Place found{-1, -1};
    i64 least = nothing;  // of the others in its block
    std::int32_t first = std::numeric_limits<std::int32_t>::max();
    for (int k = 0; k < running.size_in_blocks(); ++k) {
      const Block& block = running.at(k);
      if (block.least_span != time) continue;
      i64 other = nothing;
      for (int i = 0; i < block.count; ++i) {
        const Entry& e = block.entries[index(i)];
        if (e.span != time) {
          other = std::min(other, e.span);
        } else if (of(e.job).number < first) {
          if (found.block == k) other = time;
          first = of(e.job).number;
          found = {k, i};
        } else {
          other = time;
        }
      }
      if (found.block == k) least = other;
    }
    Block& block = running.at(found.block);
    const Entry gone = block.entries[index(found.entry)];
    block.erase(found.entry);
    block.least_span = least;
    if (running.size_in_blocks() > 1) running.tidy(found.block);
    give_back(gone.job, gone.width);
    if (stops && stops->cut_short(*this, gone.job)) return;
    if (notes_ends) ended.push_back(gone);
    if (quotas) quotas->ended(gone.job);
    if (rules().logs) log.push_back(gone.job);
    if (rules().remembers()) remember(gone.job);
  }

 private:
  bool due_ = false;          // a pass follows what has happened at this time
  bool amid_ = false;         // it begins with a pass, after what is left of its first second

  // Know what is told of a beginning. Where run times are learned, ask for those of all its jobs.
  void take(const Beginning& b) {
    begins = std::max(begins, b.time);
    std::copy(b.history.begin(), b.history.end(), past.begin());
    for (i64 j = 0; j < b.number; ++j) {
      of(j).predicted = b.predicted[index(j)];
      of(j).promised = b.promised[index(j)];
    }
    if (!model.learning) return;
    time = b.time;
    for (std::size_t k = 0; k < b.running.size(); ++k) {
      const i64 j = b.running[k];
      of(j).start = b.start[k];
      running.insert({b.start[k], b.start[k] + job(j).run, machine.width(j), j});
    }
    asked = Asked::prediction, about = 0;
  }
  // Start those that run, where they are said to, or on nodes that the machine chooses.
  i64 start_running(const Beginning& b) {
    for (std::size_t k = 0; k < b.running.size(); ++k)
      if (b.start[k] + run_time(b.running[k]) < b.time) return b.running[k];
    const auto place = [&](std::size_t k) { return start_running(b, k); };
    if constexpr (Failing<M>) {
      if (outages) {
        const i64 stuck = outages->begin(*this, b, place);
        if (stuck >= 0) return stuck;
      }
    }
    if (!outages)
      for (std::size_t k = 0; k < b.running.size(); ++k)
        if (!place(k)) return b.running[k];
    machine.begins(b.time);
    if (quotas && model.quotas.spent) quotas.emplace(model.quotas);
    return -1;
  }
  // The same of one of them; return whether it finds room.
  bool start_running(const Beginning& b, std::size_t k) {
    const i64 j = b.running[k];
    time = b.start[k];
    machine.waits(j);
    if (!machine.resumes(j, time, free, b.nodes_of(k), b.units_of(k))) return false;
    start(j);
    return true;
  }
  template <class F>
  bool expire_all(bool is_corrected, F answer) {
    for (; !expire(is_corrected); is_corrected = true)
      if (!answer()) return false;
    asked = Asked::nothing;
    return true;
  }
  // Go to the next second, or stay in this one, and do all that is next but submissions; return
  // whether there is anything, and nothing is asked for. `is_corrected`: the correction that was
  // asked for is known.
  bool go_on(i64 stop, bool is_corrected) {
    const bool moves = arrivals && rules().passes == Passes::per_event;
    due_ = false;
    // an end of this time may have let a job come
    if (moves && !is_corrected && time <= stop && arrivals->one_comes(time, log)) return due_ = true;
    while (true) {
      const i64 repair = outages ? outages->next_repair() : forever;
      const i64 event = std::min(next_event(), moves ? arrivals->next() : forever);
      const i64 due = next_due(), coming = next_coming();
      const i64 pass = std::min({due, coming, looks.next_due()});
      const i64 at = std::min({repair, event, pass, machine.next_idle()});
      if (at > stop || at == forever || is_over()) return false;
      time = at;
      if (repair == at) repair_nodes();
      else if (event == at) return happen(is_corrected);
      else if (pass == at) return wake(due, coming);
      else machine.idle_up_to(at);
    }
  }
  // A pass is due though nothing happens: note where all of that is jobs that may come, or a look.
  bool wake(i64 due, i64 coming) {
    if (arrivals) arrivals->alone = coming < std::min(due, looks.next_due());
    looks.note_woken(std::min(due, coming));
    return due_ = true;
  }
  // Do what is next of this second; return whether nothing is asked for.
  bool happen(bool is_corrected) {
    const Rules& r = rules();
    const bool per_event = r.passes == Passes::per_event;
    if (r.correction != Correction::none && next_expected_end() == time && !expire(is_corrected))
      return false;
    if (per_event && arrivals && arrivals->one_comes(time, log)) return due_ = true;
    const bool arriving = next < model.n_jobs && job(next).submit == time;
    if (next_end() != time || (arriving && per_event)) return true;
    due_ = changed = true;
    if (per_event) {
      end_first();
    } else if (M::alike && !bars_some() && !stops && !r.remembers() && !notes_ends && !r.logs) {
      end_all();
    } else {
      while (next_end() == time) end_first();
    }
    return true;
  }
  // Submit the jobs of now, one where each event has a pass; false if a prediction is asked for
  // first. `is_predicted`: that of the next one is known.
  bool submit_all(bool is_predicted) {
    const Rules& r = rules();
    for (; next < model.n_jobs && job(next).submit == time; is_predicted = false) {
      if (r.learns && !is_predicted) {
        asked = Asked::prediction;
        about = next;
        return false;
      }
      submit(next);
      due_ = true;
      if (r.passes == Passes::per_timestamp) continue;
      // the original simulator looks at its queue only if the new job could start, unless the
      // order of back-filling is not that of submission; it holds no jobs back, and restricts none
      if (r.secondary == Order::submission && r.depth != all_jobs && !r.holds && !restricted())
        due_ = job(next - 1).processors <= free_with_leaving();
      break;
    }
    return true;
  }
  // Under limits, and where several jobs have reservations, it is asked for within the pass.
  bool asks_for_order() {
    const bool asks = (rules().asks && !rules().plans()) || rules().starts;
    return !has_levels && asks && waits_for_order();
  }

  // Of the pass nothing is left but what it does itself, unless an order is asked for.
  bool is_ready() {
    logged_at_pass = logged(), lost_at_pass = n_lost();
    passed_over.clear(), again = forever;
    return !asks_for_order();
  }
  void fail_nodes() {
    if constexpr (Failing<M>)
      if (outages) outages->fail(*this);
  }
  void repair_nodes() {
    if constexpr (Failing<M>) outages->repair(*this);
  }
  i64 next_expected_end() const { return running.empty() ? forever : running.front().key; }

  // All jobs whose end is now, where their order makes no difference.
  void end_all() {
    for (int k = 0; k < running.size_in_blocks();) {
      Block& block = running.at(k++);
      if (block.least_span != time) continue;
      i64 least = nothing, freed = 0, gone = -1;
      Entry* kept = block.begin();
      for (const Entry& e : block) {
        if (e.span == time) {
          freed += e.width;
          gone = e.job;
          continue;
        }
        least = std::min(least, e.span);
        *kept++ = e;
      }
      block.count = static_cast<int>(kept - block.begin());
      block.least_span = least;
      block.sum_width -= freed;
      give_back(gone, freed);
      k = running.tidy_swept(k);
    }
  }
  void submit(i64 j) {
    next = j + 1;
    ++arrived;
    if (rules().estimate == Estimate::average) of(j).predicted = average(j);
  }
  void remember(i64 j) {
    const auto begin = past.begin() + (history(j) - past.data()), end = begin + rules().kept();
    std::copy(begin + 1, end, begin);
    end[-1] = run_time(j);
  }
  // The mean run time of the user's last jobs, at most the requested time, or that without.
  i64 average(i64 j) {
    const i64 requested = job(j).requested, *past = history(j) + rules().kept() - rules().last;
    if (past[0] < 0) return requested;
    return std::min(mean_of_last(past, rules().last), requested);
  }

  // Correct the predictions that end now, of jobs that run on; false if the next is asked for.
  bool expire(bool is_corrected) {
    while (true) {
      const Place found = first_expired();
      if (found.block < 0) return true;
      const i64 j = running.at(found.block).entries[index(found.entry)].job;
      if (rules().correction == Correction::again && !is_corrected) {
        asked = Asked::correction;
        about = j;
        return false;
      }
      is_corrected = false;
      const i64 end = of(j).start + corrected(j);
      running.move_back(found, stops ? std::min(end, stops->gone_by(j)) : end);
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
    if (rules().correction == Correction::again && renewed > time - p.start)
      return std::min(renewed, requested);
    if (rules().correction == Correction::incremental && before < increments.size())
      return std::min(p.predicted + increments[before], requested);
    // not bounded by the requested time: so the published values were obtained
    if (rules().correction == Correction::doubling) return 2 * (time - p.start);
    return requested;
  }
};

}  // namespace hpc
