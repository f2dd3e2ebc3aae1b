// The state of a simulation and its next events. It can stop between two passes, or at a question
// before one; a copy is independent.
//
// The two rules for passes differ only in the order of events at equal times:
// - per timestamp: expiries, all ends in the order of the starts, all submissions, then one pass;
// - per event: expiries, then each submission and after them each end, with a pass after each. Jobs
//   that become due by an end come directly after it.
#pragma once
#include <algorithm>
#include <array>
#include <cassert>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "../base/interrupts.hpp"
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

// [s] added to the first prediction, step by step: Glesser 2016, section 7.4.2
inline constexpr std::array<i64, 11> increments{60,    300,   900,   1800,   3600,  7200,
                                                18000, 36000, 72000, 180000, 360000};

inline constexpr i64 work_of_plan = 2;  // for one place in a plan, for Interrupts

template <Machine M>
struct Simulator {
  const Model& model;
  M machine;
  Queue queue;
  OrderedList running;  // by predicted end; the bounds of their true ends are exact
  std::vector<Progress> progress;  // by job
  i64 time;             // [s] of the last event
  i64 begins;           // [s] of the first submission, or of a later beginning
  i64 next = 0;         // the job submitted next
  i64 started = 0;      // jobs started so far
  i64 free;             // units
  i64 arrived = 0;      // jobs submitted since the last pass, not yet in the queue
  bool changed = false; // a job started or ended, or a prediction expired, since the last full pass
  bool expired = false; // a prediction has expired since a strategy reset this
  std::vector<Entry> expiring;  // jobs whose predictions expire now, while corrections are asked for
  std::vector<Entry> ended;  // jobs ended since the last pass, in order, if `notes_ends`
  bool notes_ends = false;
  std::vector<i64> newcomers;  // likewise: jobs that came and have no reservation yet
  bool passed = false;  // at the last pass a job started before the head
  i64 head = -1;        // the job that could not start at the last pass, -1 if none
  Shadow shadow;        // of the reservation of the head
  std::optional<Quotas> quotas;
  std::optional<Windows> windows;
  std::optional<Arrivals> arrivals;
  Column<double> held;  // by job, if long jobs are held back
  Column<i64> candidate_times;  // [s] likewise, if backfilling is relaxed
  std::vector<i64> log; // jobs in the order of their ends, if the rules say so
  i64 logged_at_pass = 0, lost_at_pass = 0;  // sizes of `log` and `lost` as the last pass began
  Asked asked = Asked::nothing;    // why `advance` stopped; the next call takes it as answered
  i64 selected = -1;    // the selected job that is served or starts next; -1: none yet
  static constexpr i64 none_now = -2;  // the answer that no job starts
  i64 about = -1;       // the job whose prediction, correction or start is asked for
  i64 renewed = 0;      // [s] the answer: the corrected run time
  std::optional<Outages> outages;
  std::optional<Stops> stops;
  Looks looks;
  std::vector<LostRun> lost;  // in the order of their ends
  std::vector<i64> past;  // (n_users, kept) run times of each user's last jobs, -1: none
  // where an agent decides within a pass which job starts
  bool filling = false;         // the head is blocked, and the agent picks jobs to backfill
  std::vector<i64> candidates;  // jobs it may pick, in secondary order
  std::vector<i64> passed_over;  // jobs put off in this pass
  i64 again = forever;           // [s] of the next pass, if a job has been put off
  i64 opens = forever;           // [s] when a pass is due, as time alone lets quotas bar a job no more
  Interrupts interrupts{before_loss};  // of the present pass, with the events before it

  static constexpr bool has_levels = M::has_levels, has_alike_units = M::alike;

  explicit Simulator(const Model& m)
      : model(m),
        machine(m, m.first_submission()),
        queue(m),
        progress(index(m.n_jobs)),
        time(m.first_submission()),
        begins(time),
        free(m.capacity),
        held(m.held),
        candidate_times(m.candidate_times),
        past(index(m.n_users * m.rules.kept()), -1) {
    for (i64 j = 0; j < m.n_jobs; ++j) of(j).predicted = m.predicted ? m.predicted[j] : 0;
    if (m.outages) outages.emplace(m);
    if (m.quotas.n > 0) quotas.emplace(m.quotas);
    if (!m.windows.empty()) windows.emplace(m.windows);
    if (m.stops.n_groups() > 0) stops.emplace(m);
    if ((stops && stops->cancels()) || has_levels) queue.known.own(m.n_jobs);
    if (!m.arrivals.moves) return;
    next = m.n_jobs;  // the loop of events takes them all as submitted
    arrivals.emplace(m.arrivals, queue.known, m.n_jobs);
    queue.known.own(m.n_jobs);
    queue.came.assign(index(m.n_jobs), -1);
    for (std::size_t k = 0; k < 2; ++k)
      if (m.arrivals.by_arrival[k]) queue.keys[k].own(m.n_jobs);
  }

  void keep(Archive& a) {
    a(machine, queue, running, progress, time, begins, next, started, free, arrived, changed,
      expired, expiring, ended, newcomers, passed, head, shadow, quotas, windows, arrivals, held, candidate_times, log, logged_at_pass,
      lost_at_pass, asked, selected, about, renewed, outages, stops, looks, lost, past, filling, candidates,
      passed_over, again, opens, due_, amid_);
    for (const auto* jobs : {&newcomers, &log, &candidates, &passed_over}) a.check_jobs(*jobs);
    a.check_jobs(expiring), a.check_jobs(lost);
    for (const Entry& e : ended) a.check_row(e.job);
    a.check_job(head, -1), a.check_job(selected, none_now);
    // it stays past all jobs of a beginning until one is asked for
    const bool is_asked_for = asked == Asked::prediction || asked == Asked::correction ||
                              (asked == Asked::job && rules().proposes);
    a.check(is_between(about, -1, model.n_jobs - is_asked_for));
    a.check(is_between(next, 0, model.n_jobs) && is_between(arrived, 0, next));
    a.check(is_between(logged_at_pass, 0, logged()) && is_between(lost_at_pass, 0, n_lost()));
    a.check(asked <= Asked::starts);
    if (arrivals) a.check(arrivals->is_within(log.size()));
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
  // [s] The run times of the last jobs of a job's user, the latest last; -1 if there are fewer.
  const i64* history(i64 j) const { return &past[index(model.users[j] * rules().kept())]; }
  Used used(i64 j) const { return machine.used(j, of(j).start + run_time(j)); }
  // The job that has waited longest, if beyond the threshold; -1: there is none.
  i64 starving() {
    if (rules().threshold < 0 || queue.empty()) return -1;
    const i64 j = queue.oldest(progress);
    return rules().starves(time - job(j).submit) ? j : -1;
  }
  // Units that must be free for a job to start now: its own, and those that it holds back. The
  // latter start at `held` and decrease as it waits.
  i64 needed_by(i64 j) const { return needed_by(j, time - job(j).submit); }
  i64 needed_by(i64 j, i64 waited) const {
    const Job& own = job(j);
    if (!rules().holds || held[j] == 0) return own.processors;
    double back = held[j];
    if (rules().erode > 0)
      back /= 1.0 + static_cast<double>(waited) / static_cast<double>(rules().erode);
    // half to even
    return std::min(model.capacity, own.processors + static_cast<i64>(std::nearbyint(back)));
  }

  // Call f(entry) for each running job; `running` also lists nodes that are down.
  template <class F>
  void each_running_job(F f) const {
    running.each([&](const Entry& e) {
      if (e.job < model.n_jobs) f(e);
    });
  }
  // Units free now, with those of jobs whose predicted end is now.
  i64 free_with_leaving() const {
    i64 units = free;
    for (int k = 0; k < running.size_in_blocks(); ++k) {
      const Block& block = running.at(k);
      if (block.count == 0 || block.entries[0].key > time) break;
      if (block.end()[-1].key <= time) {
        units += block.sum_width;
        continue;
      }
      for (const Entry* e = block.begin(); e->key <= time; ++e) units += e->width;
      break;
    }
    return units;
  }

  // Units that a pass may assign: per event, with those of jobs that are about to end.
  i64 room() const { return rules().passes == Passes::per_event ? free_with_leaving() : free; }

  // Whether a job may not start now although there is room: by quotas, as it was put off in this
  // pass, as one of a higher level waits for others to leave, or by a restriction of the machine.
  bool bars(i64 j) const {
    return machine.bars(j) || (quotas && quotas->bar(j, time)) || is_passed_over(j) ||
           (stops && stops->holds(j));
  }
  // Whether any job may be barred.
  bool bars_some() const {
    return M::restricts || quotas || !passed_over.empty() || (stops && stops->holds_some());
  }
  bool is_passed_over(i64 j) const { return std::ranges::find(passed_over, j) != passed_over.end(); }
  // Whether a job that may not start behind the head may not do so later either, as long as no job
  // ends and the head stays; and all that came since the last pass come in this one, which nobody
  // is asked about.
  bool restricts_by_room_alone() const {
    const Rules& r = rules();
    const bool asks = r.primary == Order::selection || r.asks || r.asks_within();
    return !asks && !restricted() && !r.holds && !arrivals;
  }
  // Whether anything restricts when jobs start, windows, dependencies and preemption included.
  bool restricted() const { return M::restricts || model.restricted; }
  // Whether a job could start now: as the head or, where budgets allow more there, behind it.
  bool could_start(i64 j, i64 room) {
    interrupts.count();
    if (bars(j)) return false;
    if (machine.backfills_more() && rules().asks) return needed_by(j) <= room;
    return machine.fits(j, needed_by(j), room);
  }
  // Whether no job runs, waits or is to come; each node that is down has an entry in `running`.
  bool is_over() const {
    if (next < model.n_jobs || (arrivals && arrivals->next() < forever)) return false;
    return queue.empty() && running.size() == (outages ? outages->down() : 0);
  }
  bool closes() const { return windows && windows->are_left(); }
  // A pass begins: let jobs come that are due by the schedule; return whether it continues.
  bool come() {
    if (!arrivals) return true;
    const auto enter = [&](i64 j) {
      queue.known.at(j).submit = time;
      note_came(j);
      if (rules().estimate == Estimate::average) of(j).predicted = average(j);
      if (notes_ends) newcomers.push_back(j);
      else wait(j);
    };
    if (rules().passes == Passes::per_timestamp) {
      const bool alone = arrivals->alone, passes = arrivals->come(time, log, enter);
      if (alone && passes) forget_put_offs();
      return passes;
    }
    arrivals->let_one_come(enter);
    return true;
  }

  // Promise a start time to the head, once. Another job may come first later, and break it. Where
  // order and machine both change with time, as under limits or on shared nodes, there is none.
  void promise(i64 j, i64 at) {
    const bool is_known = rules().primary < Order::selection || !(has_levels || Shareable<M>);
    if (of(j).promised < 0 && is_known) of(j).promised = at;
  }
  // The score for backfilling, if time changes that order.
  double second_score(i64 j) const {
    return score_now(rules().secondary, queue.scores[1][j], time - job(j).submit);
  }

  void note_came(i64 j) {  // if the schedule decides arrivals
    for (std::size_t k = 0; k < 2; ++k)
      if (model.arrivals.by_arrival[k]) queue.keys[k].at(j) = job(j).submit;
    queue.note_came(j);
  }
  void forget_put_offs() { passed_over.clear(), again = forever; }
  void put_off(i64 j) {  // a job that could start, until the next pass
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
    // a job that starts late ends later than planned, so the head may be delayed, too
    if (span.start != time) changed = true;
    p.start = span.start;
    p.number = static_cast<std::int32_t>(started++);
    const i64 width = machine.width(j);
    free -= width;
    // per event, a job may take the units of one that is about to end
    assert(free >= 0 || rules().passes == Passes::per_event);
    if (quotas) quotas->begun(j, span.start, time);
    running.insert({span.expected, span.end, width, j});
    if (machine.begun(j, time, running)) changed = true;
  }

  // End a run now, as its job is killed.
  void kill(Place at) {
    Block& block = running.at(at.block);
    Entry& gone = block.entries[index(at.entry)];
    queue.known.at(gone.job).run = time - of(gone.job).start;
    gone.span = block.least_span = time;
    end_first();
  }
  // Stop a run before its end; its job waits again.
  void stop(Place at) {
    const Entry e = running.take_off(at);
    give_back(e.job, e.width);
    if (stops) stops->forget_leaving(e.job);
    if (quotas) quotas->ended(e.job, of(e.job).start, time);
    note_lost(e.job);
    wait_again(e.job);
  }
  void note_lost(i64 j) {  // a job that has given back its units
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

  // Begin with running and waiting jobs; called before anything else. Predictions that expired
  // before are corrected. `answer()` is called for each prediction that is asked for: first for all
  // these jobs, as if they were submitted now. If it returns false, the answer comes from outside,
  // and the next call continues there. Return the first running job that cannot run, as it has
  // ended by then or finds no room; -1 if all can.
  template <class F>
  i64 begin(const Beginning& b, F answer) {
    bool is_known = asked != Asked::nothing;  // the answer to the last question
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
    if (rules().correction != Correction::none && !b.knows) {
      while (next_expected_end() < b.time) {
        time = next_expected_end();
        if (!expire_all(std::exchange(is_known, false), answer)) return -1;
      }
      time = b.time;
      if (b.due && !expire_all(is_known, answer)) return -1;  // before the pass of this second
    }
    line_up(b.time, b.number, b.due);
    if (!b.due && rules().every == 0) note_opening();
    return -1;
  }
  // The same, once the running jobs are on the machine: enter the waiting jobs.
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
      end_all();
  }

  // Take over the state of another simulation, of which this one has the running and waiting jobs:
  // `rows`, in order of submission. `due`: a pass is due at once.
  void stand_as(const Simulator& other, const std::vector<i64>& rows, bool due) {
    begins = time = other.time;
    next = model.n_jobs;
    started = other.started;
    free = other.free;
    changed = expired = true;
    amid_ = due_ = due;
    for (std::size_t k = 0; k < rows.size(); ++k) progress[k] = other.of(rows[k]);
    if (quotas)
      quotas->take(*other.quotas, [&](i64 j) { return other.queue.place_in(rows, j); });
    if (windows) windows->forget_over(time);
    other.running.each([&](const Entry& e) {
      const i64 j = other.queue.place_in(rows, e.job);
      // per event, a job may be about to end as predicted
      const i64 end = e.key > time ? of(j).start + run_time(j) : e.key;
      running.insert({e.key, end, e.width, j});
    });
    for (i64 j = 0; j < next; ++j)
      if (of(j).start < 0) wait(j);
  }

  // --- When the next pass is --------------------------------------------------------------------
  //
  // Each second has these stages, in this order. `go_on` takes the earliest of their next times.
  //
  //   nodes are repaired                                   Outages::next_repair
  //   predictions expire, jobs end, jobs are submitted     next_event
  //   nodes fail                                           Outages::next_due
  //   limits begin or end, meters are read                 machine.next_change
  //   windows end; exempt jobs may be stopped              Windows::next_over, Stops::exempt_until
  //   a look at the queue is due                           Looks::next_due
  //   the wait after a put-off is over                     again
  //   by time alone, quotas bar a job no more              opens
  //   waiting jobs get new predictions or scores           asks_for_renewal
  //   jobs come that are due by the schedule               Arrivals::next
  //   an order of the queue is asked for                   asks_for_order
  //   the pass: limits act, jobs start                     strategies/scheduled.hpp
  //
  // With no other stage due, idle nodes are switched off without a pass: `machine.next_idle`.

  // Go to the next pass, at `stop` [s] or before; return whether there is one. At a question before
  // the pass, return false: the next call continues there.
  bool next_pass(i64 stop) {
    const Asked answered = std::exchange(asked, Asked::nothing);
    const bool amid = std::exchange(amid_, false);
    if (arrivals && answered != Asked::renewal) arrivals->alone = false;
    if (answered == Asked::order || answered == Asked::job || answered == Asked::starts) return true;
    if (answered == Asked::renewal || (amid && rules().passes == Passes::per_event))
      return is_ready();
    bool is_corrected = answered == Asked::correction, is_predicted = answered == Asked::prediction;
    bool is_amid = amid || is_predicted;  // the stages before submissions are done
    for (;; is_corrected = is_predicted = is_amid = false) {
      interrupts.count();
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
  // [s] when a pass is due without an event of a job, other than a look.
  i64 next_due() const {
    i64 at = outages ? outages->next_due(time) : forever;
    at = std::min({at, machine.next_change(), again, std::max(opens, time)});
    if (windows && !queue.empty()) at = std::min(at, windows->next_over());
    return stops ? std::min(at, stops->exempt_until) : at;
  }
  // [s] The same, for jobs that come in that pass.
  i64 next_coming() const {
    return arrivals && rules().passes == Passes::per_timestamp ? arrivals->next() : forever;
  }
  // After a pass: note when the next one is due as time alone lets quotas bar a job no more, or usage
  // counts anew and jobs wait.
  void note_opening() {
    opens = forever;
    if (quotas && quotas->weighs_time() && quotas->may_open(time)) {
      interrupts.count(queue.jobs.size_in_blocks());
      queue.jobs.each([&](const Entry& e) { opens = std::min(opens, quotas->opens(e.job, time, opens)); });
    }
    if (quotas && quotas->has_budgets()) {
      interrupts.count(queue.jobs.size_in_blocks());
      queue.jobs.each([&](const Entry& e) { opens = std::min(opens, quotas->next_change(e.job, time)); });
    }
    if (const i64 period = usage_period(); period > 0 && !queue.empty())
      opens = std::min(opens, (floor_div(time - 1, period) + 1) * period + 1);
    if (rules().every > 0 && opens < forever) looks.note_opening(rules(), std::exchange(opens, forever));
  }
  // At multiples of which usage counts; 0: as jobs end.
  i64 usage_period() const { return model.accounts ? model.accounts->book.period : 0; }
  // Whether priorities by usage change without a new charge.
  bool usage_fades() const {
    const auto& a = model.accounts;
    if (usage_period() > 0) return true;
    return a && !a->book.in_a_tree &&
           (a->kinds[0] == Usage::mixed || a->kinds[1] == Usage::mixed);
  }
  // Whether an agent is asked for an order of the queue before the pass, or for the jobs that start
  // in its place: new jobs enter the queue first. It is not asked if no job can start.
  bool waits_for_order() {
    for (; arrived > 0; --arrived) wait(next - arrived);
    if (arrivals) {  // jobs that come now belong to that order, too
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

  // Whether jobs that wait, or may come now, get new predictions or scores before the pass.
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

  // End the job whose end is now; of several, the one that started first.
  void end_first() {
    interrupts.count(running.size_in_blocks());
    Place found{-1, -1};
    i64 least = nothing;  // of the other jobs in its block
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
    note_gone(gone);
  }
  // End all jobs whose end is now, in the order of their starts if that makes a difference.
  void end_all() {
    const Rules& r = rules();
    const bool ordered =
        !M::alike || bars_some() || stops || r.remembers() || notes_ends || r.logs;
    i64 freed = 0, last = -1;
    gone_.clear();
    for (int k = 0; k < running.size_in_blocks();) {
      Block& block = running.at(k++);
      if (block.least_span != time) continue;
      i64 least = nothing;
      Entry* kept = block.begin();
      for (const Entry& e : block) {
        if (e.span == time) {
          if (ordered) gone_.push_back(e);
          else freed += e.width, last = e.job;
          block.sum_width -= e.width;
          continue;
        }
        least = std::min(least, e.span);
        *kept++ = e;
      }
      block.count = static_cast<int>(kept - block.begin());
      block.least_span = least;
      k = running.tidy_swept(k);
    }
    if (last >= 0) give_back(last, freed);
    std::ranges::sort(gone_, {}, [&](const Entry& e) { return of(e.job).number; });
    for (const Entry& e : gone_) note_gone(e);
  }

 private:
  std::vector<Entry> gone_;   // jobs that end now
  bool due_ = false;          // a pass follows the events of this time
  bool amid_ = false;         // it begins with a pass, after the rest of its first second

  // Take over a given beginning. If run times are learned, ask for predictions of all its jobs.
  void take(const Beginning& b) {
    begins = std::max(begins, b.time);
    std::copy(b.history.begin(), b.history.end(), past.begin());
    for (i64 j = 0; j < b.number; ++j) {
      of(j).predicted = b.predicted[index(j)];
      of(j).promised = b.promised[index(j)];
    }
    if (!model.learning || b.knows) return;
    time = b.time;
    for (std::size_t k = 0; k < b.running.size(); ++k) {
      const i64 j = b.running[k];
      of(j).start = b.start[k];
      running.insert({b.start[k], b.start[k] + job(j).run, machine.width(j), j});
    }
    asked = Asked::prediction, about = 0;
  }
  // Start the running jobs on the given nodes, or on nodes that the machine chooses.
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
    return -1;
  }
  // The same for one job; return whether it finds room.
  bool start_running(const Beginning& b, std::size_t k) {
    const i64 j = b.running[k];
    time = b.start[k];
    machine.waits(j);
    if (!machine.resumes(j, time, free, b.nodes_of(k), b.units_of(k))) return false;
    start(j);
    if (b.knows) {
      of(j).corrections = static_cast<std::uint8_t>(b.corrections[k]);
      running.move_back(running.find(time + of(j).predicted, j), b.expected[k]);
    }
    return true;
  }
  template <class F>
  bool expire_all(bool is_corrected, F answer) {
    for (; !expire(is_corrected); is_corrected = true)
      if (!answer()) return false;
    asked = Asked::nothing;
    return true;
  }
  // Go to the next second, or stay in this one, and do its next stage except submissions; return
  // whether there is one, and nothing is asked for. `is_corrected`: the correction asked for is
  // known.
  bool go_on(i64 stop, bool is_corrected) {
    const bool moves = arrivals && rules().passes == Passes::per_event;
    due_ = false;
    // an end at this time may have let a job come
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
  // A pass is due without an event: note if its only reason is jobs that may come, or a look.
  bool wake(i64 due, i64 coming) {
    if (arrivals) arrivals->alone = coming < std::min(due, looks.next_due());
    looks.note_woken(std::min(due, coming));
    return due_ = true;
  }
  // Do the next events of this second; return whether nothing is asked for.
  bool happen(bool is_corrected) {
    const Rules& r = rules();
    const bool per_event = r.passes == Passes::per_event;
    if (r.correction != Correction::none && next_expected_end() == time && !expire(is_corrected))
      return false;
    if (per_event && arrivals && arrivals->one_comes(time, log)) return due_ = true;
    const bool arriving = next < model.n_jobs && job(next).submit == time;
    if (next_end() != time || (arriving && per_event)) return true;
    due_ = changed = true;
    per_event ? end_first() : end_all();
    return true;
  }
  // Submit the jobs of now, or one if each event has a pass; false if a prediction is asked for
  // first. `is_predicted`: that of the next job is known.
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
      // the original simulator starts a pass only if the new job could start, unless backfilling
      // is not in the order of submission; it holds no jobs back, and has no restrictions
      if (r.secondary == Order::submission && r.depth != all_jobs && !r.holds && !restricted())
        due_ = job(next - 1).processors <= free_with_leaving();
      break;
    }
    return true;
  }
  // With limits or several reservations, the order is asked for within the pass.
  bool asks_for_order() {
    const bool asks = (rules().asks && !rules().plans()) || rules().starts;
    return !has_levels && asks && waits_for_order();
  }

  // Nothing is left before the pass, unless an order is asked for.
  bool is_ready() {
    logged_at_pass = logged(), lost_at_pass = n_lost();
    if (quotas) quotas->count_to(time);
    if (!arrivals || !arrivals->alone) forget_put_offs();  // else there is a pass only if some come
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

  // A job that was running has ended.
  void note_gone(const Entry& gone) {
    give_back(gone.job, gone.width);
    if (stops && stops->cut_short(*this, gone.job)) return;
    if (notes_ends) ended.push_back(gone);
    if (quotas) quotas->ended(gone.job, of(gone.job).start, time);
    if (rules().logs) log.push_back(gone.job);
    if (rules().remembers()) remember(gone.job);
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
    if constexpr (Shareable<M>) end[-1] = time - of(j).start;  // as long as the jobs beside it made it
  }
  // The mean run time of the user's last jobs, at most the requested time; without history, that.
  i64 average(i64 j) {
    const i64 requested = job(j).requested, *past = history(j) + rules().kept() - rules().last;
    if (past[0] < 0) return requested;
    return std::min(mean_of_last(past, rules().last), requested);
  }

  // Correct the predictions that expire now; false if the next correction is asked for.
  bool expire(bool is_corrected) {
    if (expiring.empty()) list_expired();
    for (; !expiring.empty(); expiring.pop_back()) {
      const i64 j = expiring.back().job;
      if (rules().correction == Correction::again && !is_corrected) {
        asked = Asked::correction;
        about = j;
        return false;
      }
      is_corrected = false;
      const i64 end = of(j).start + corrected(j);
      running.move_back(running.find(expiring.back().key, j),
                        stops ? std::min(end, stops->gone_by(j)) : end);
      changed = expired = true;
    }
    return true;
  }
  // List the running jobs whose predictions expire now, the one that started first last.
  void list_expired() {
    for (int k = 0; k < running.size_in_blocks(); ++k) {
      for (const Entry& e : running.at(k)) {
        if (e.key > time) break;
        if (e.span > time) expiring.push_back(e);
      }
      if (running.at(k).end()[-1].key > time) break;
    }
    std::ranges::sort(expiring, std::greater(), [&](const Entry& e) { return of(e.job).number; });
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
    // not bounded by the requested time, as in the published results
    if (rules().correction == Correction::doubling) return 2 * (time - p.start);
    return requested;
  }
};

}  // namespace hpc
