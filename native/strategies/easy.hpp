// A pass with at most one reservation (EASY).
//
// The head of the queue, first in primary order, starts if it fits. If not, it gets the
// reservation: the shadow time, the earliest at which predicted ends leave it enough units, and the
// extra units, those it leaves free then. Any other job may start now if it fits, and either ends
// by the shadow time or takes only extra units.
//
// Starting such a job moves neither the shadow time nor the head, and time alone makes no other job
// fit. So until a job ends, a prediction expires or the head changes, a pass need only test the
// jobs submitted since the last one. Where backfilling is relaxed, a job that starts may move the
// shadow time: the next pass is a full one, too. If long jobs are held back, more jobs may fit as time passes:
// then each pass is a full one.
//
// An agent may decide within a pass which jobs start: either it picks jobs to start before the
// blocked head, one by one, or ends the pass; or each start is proposed to it, and a job that it
// puts off is barred for the rest of the pass, as if it did not wait, and has no reservation.
#pragma once
#include <utility>

#include "../core/line.hpp"
#include "../core/simulator.hpp"

namespace hpc {

struct NothingPutOff {
  void operator()() const {}
};

// `BeforeHead`: called before the first waiting job is looked for, of several, to work out scores
// that were put off until then.
template <Machine M, class BeforeHead = NothingPutOff>
class Easy {
 protected:
  Simulator<M>& s;
  i64 leaving = 0;  // units of jobs predicted to end now, in passes per event
  BeforeHead before_head;
  i64 first_new_ = 0;  // of the jobs that came since the last pass; 0: of all jobs

 public:
  explicit Easy(Simulator<M>& simulator, BeforeHead before = {})
      : s(simulator), before_head(before) {}

  void pass() {
    const Rules& r = s.rules();
    note_leaving();
    if (r.holds) s.changed = true;
    if (r.proposes && s.selected == s.none_now) {
      s.put_off(s.about);
      s.selected = -1;
    }
    if (s.filling) return fill();
    const i64 arrived = std::exchange(s.arrived, 0);
    first_new_ = s.next - arrived;
    if (arrived == 1 && !r.holds && !selects() && !r.asks_within()) {
      const auto [settled, starts] = settle_arrival(s.next - 1);
      if (starts) {
        s.start(s.next - 1);
      } else {
        s.wait(s.next - 1);
      }
      if (settled) return;
    } else {
      enter(arrived);
    }
    serve();
  }
  // The same when all submitted jobs are in the queue.
  void serve() {
    note_leaving();
    if (!s.queue.empty()) serve_queue();
  }

 protected:
  void note_leaving() {
    if (s.rules().passes != Passes::per_event || s.running.empty() || s.running.front().key > s.time)
      return;
    leaving = s.room() - s.free;
    s.changed = true;
  }
  void enter(i64 arrived) {  // the jobs that came last
    for (i64 j = s.next - arrived; j < s.next; ++j) {
      s.interrupts.count();
      s.wait(j);
    }
  }
  i64 room() const { return s.free + leaving; }
  bool selects() const { return s.rules().primary == Order::selection; }
  i64 needs(i64 j) const { return s.needed_by(j); }

  // Judge a single new job alone, if that settles the pass: (settled, the job starts).
  std::pair<bool, bool> settle_arrival(i64 j) {
    const Rules& r = s.rules();
    if (s.bars_some()) return {false, false};
    const bool fits = s.machine.fits(j, needs(j), room());
    if (s.queue.empty()) return {fits && M::alike, fits && M::alike};
    if (s.changed || s.head < 0 || s.queue.is_scored()) return {false, false};
    if (r.primary != Order::submission && (r.threshold >= 0 || s.queue.comes_before(j, s.head)))
      return {false, false};
    if (r.depth == 0) return {true, false};
    if constexpr (!M::alike) {
      // waiting jobs found no place at the last pass; that may change after other starts, as the
      // bounds of a place depend on what else is free
      return {!s.passed && !s.machine.looks_at_who_waits() && !fits, false};
    }
    if (!fits) return {true, false};
    const Entry e = entry_of(j);
    const Bounds b = bounds();
    const bool starts = may_backfill(e, b);
    if (starts) note_backfilled(e, lasts(e, b));
    return {true, starts};
  }

  // Start heads while they fit, then backfill behind the first head that does not.
  void serve_queue() {
    if (is_over()) return;
    i64 head = -1;
    for (; !s.queue.empty(); head = -1) {
      if (s.queue.jobs.size() > 1) before_head();
      head = first();
      if (head < 0 && selects()) {
        s.asked = Asked::job;
        return;
      }
      if (head < 0) break;
      if (!s.machine.fits(head, needs(head), room()) &&
          !s.machine.fits_without_control(head, room()))
        break;
      if constexpr (!M::alike) s.interrupts.count();
      if (is_proposed(head)) return;
      s.queue.leave(head, s.of(head).predicted);
      s.start(head);
      s.changed = true;
      if (s.selected == head) s.selected = -1;
      if (selects() && is_over()) return;
    }
    if (!s.rules().keeps) s.selected = -1;
    if (head < 0 || s.rules().depth == 0) {
      s.head = head;
      s.changed = false;
      return;
    }
    // if jobs are held back, all passes are full ones: in this one no job could start
    if (M::alike && s.rules().holds && head == s.head && s.queue.least_width() > room()) return;
    const bool only_new = !s.changed && head == s.head && M::alike && s.restricts_by_room_alone();
    if (s.changed || head != s.head) {
      s.changed = false;
      s.head = head;
      find_shadow();
    }
    s.passed = false;
    if (s.rules().asks_within()) return fill();
    s.rules().secondary >= Order::scored ? sweep_scored(only_new ? first_new_ : 0) : sweep();
  }
  // Whether an agent must first approve the start of a job. If it has, the job starts.
  bool is_proposed(i64 j) {
    const Rules& r = s.rules();
    if (!r.proposes || std::exchange(s.selected, -1) == j || s.of(j).put_off >= r.put_offs) return false;
    s.about = j;
    s.asked = Asked::job;
    return true;
  }
  // Start the jobs that the agent picks behind the blocked head; ask as long as some may start.
  void fill() {
    i64 said = std::exchange(s.selected, -1);
    s.filling = false;
    while (said != s.none_now) {
      if (said >= 0) start_behind(said);
      find_candidates();
      if (s.candidates.empty()) return;
      said = s.candidates.front();
      if (!s.rules().picks && !is_proposed(said)) continue;
      s.asked = Asked::job;
      s.filling = true;
      return;
    }
  }
  // Write the jobs that may start before the head, in secondary order.
  void find_candidates() {
    const bool is_scored = s.rules().secondary >= Order::scored;
    const OrderedList& queue = s.queue.jobs;
    const Bounds b = bounds();
    std::vector<InLine> line;
    for (int k = 0; k < queue.size_in_blocks(); ++k) {
      const Block& block = queue.at(k);
      if (none_within(block, b)) continue;
      for (const Entry& e : block)
        if (is_within(e, b)) line.push_back({e.job, is_scored ? s.second_score(e.job) : 0});
    }
    if (is_scored) sort_by_score(s.queue, line.begin(), line.end());
    s.candidates.clear();
    for (const InLine& place : line) s.candidates.push_back(place.job);
  }
  void start_behind(i64 j) {
    const Entry e = entry_of(j);
    const Bounds b = bounds();
    if (!may_backfill(e, b)) return;
    s.queue.leave(j, e.span);
    note_backfilled(e, lasts(e, b));
    s.start(j);
  }
  Entry entry_of(i64 j) const { return {0, s.of(j).predicted, s.machine.width(j), j}; }
  // The first queued job in primary order, -1 if it is not selected yet, or all are barred. A
  // starving job comes before selected jobs.
  i64 first() {
    if (selects()) {
      const i64 starving = s.starving();
      if (starving >= 0) return starving;
      // it may have been backfilled around a starving job
      if (s.selected >= 0 && s.of(s.selected).start >= 0) s.selected = -1;
      return s.selected;
    }
    const bool waits = s.head >= 0 && s.of(s.head).start < 0;
    const i64 first = s.queue.first(s.time, s.progress, waits ? s.head : -1);
    return s.bars_some() && s.bars(first) ? first_allowed() : first;
  }
  // The first queued job in primary order that is not barred, -1 if all are. Most often it is among
  // the first few.
  i64 first_allowed() {
    const i64 queued = s.queue.jobs.size();
    std::vector<InLine> line;
    std::size_t looked = 0;
    for (i64 most = 8; looked < index(queued); most *= 8) {
      s.interrupts.count(s.queue.jobs.size_in_blocks());
      line_up(s, most, line);
      for (; looked < line.size(); ++looked)
        if (!s.bars(line[looked].job)) return line[looked].job;
    }
    return -1;
  }
  // Whether no job can start, so that the order does not matter; it may change until the next pass.
  bool is_over() {
    // under limits, serving the queue is quicker than testing each job at each level
    const bool asks = selects() || s.rules().asks;
    if (s.rules().primary < Order::selection || (s.has_levels && !asks)) return false;
    if (s.rules().keeps || !none_can_start()) return false;
    if (!M::alike || !s.restricts_by_room_alone()) s.changed = true;
    return true;
  }
  bool none_can_start() {
    // neither questions nor promises must depend on bounds, and scores cost more than bounds
    if (s.queue.none_fits(room())) return true;
    if (M::alike && !s.rules().holds && (selects() || !s.bars_some())) return false;
    bool none = true;
    s.queue.jobs.each([&](const Entry& e) { none = none && !s.could_start(e.job, room()); });
    return none;
  }

  void find_shadow() {
    s.machine.find_shadow(s.head, needs(s.head) - s.free, s.running, s.shadow);
    if (s.rules().strict) s.shadow.extra = 0;
    s.promise(s.head, s.shadow.time);
  }
  Bounds bounds() const {
    Bounds b = s.machine.bounds(s.time, room(), s.shadow);
    b.longest -= s.rules().strict;
    if (relaxes()) b.longest = forever, b.is_relaxed = true;
    return b;
  }
  // Whether other run times may be judged than those that make the shadow time, as the head has not
  // waited for long: relaxed backfilling, Ward et al. 2002, up to a wait.
  bool relaxes() const {
    const i64 limit = s.rules().relax;
    return limit > 0 && s.time - s.job(s.head).submit < limit;
  }
  // Whether a job that starts now counts as one that runs past the shadow time.
  bool lasts(const Entry& e, const Bounds& b) const {
    if (!b.is_relaxed) return e.span > b.longest;
    return std::min(e.span, s.candidate_times[e.job]) > s.shadow.time - s.time - s.rules().strict;
  }
  // Whether a job may start now before the head; if so, the machine has chosen its place.
  bool may_backfill(const Entry& e, const Bounds& b) {
    if (!is_within(e, b)) return false;
    if constexpr (!M::alike) s.interrupts.count();
    return s.machine.passes(e.job, lasts(e, b), s.shadow);
  }
  bool is_within(const Entry& e, const Bounds& b) const {
    // as bits, since either is hard to guess
    const bool is_late = (e.width > b.beyond) & (e.span > b.longest);
    if ((e.width > b.room) | is_late) return false;
    if (b.is_relaxed && e.width > b.beyond && lasts(e, b)) return false;
    if (s.bars_some() && s.bars(e.job)) return false;
    return e.job != s.head && (!s.rules().holds || needs(e.job) <= room());
  }
  // Whether the bounds of a block say that none of its jobs may start before the head.
  static bool none_within(const Block& block, const Bounds& b) {
    if (block.least_width > b.room) return true;
    if (block.least_width <= b.beyond) return false;
    return block.least_span > b.longest ||
           (block.narrow_known && block.narrow[index(class_of(b.room))] > b.longest);
  }
  void note_backfilled(const Entry& e, bool takes_extra) {
    if (s.time + e.span > s.shadow.time) {
      if (takes_extra) s.shadow.extra -= e.width;
      else s.changed = true;  // by the run times that make the shadow time, it is later now
    }
    s.of(e.job).backfilled = s.passed = true;
  }

  // Sweep the queue in secondary order, skipping blocks in which no job can start.
  void sweep() {
    OrderedList& queue = s.queue.jobs;
    Bounds b = bounds();
    for (int k = 0; k < queue.size_in_blocks();) {
      Block& block = queue.at(k++);
      if (none_within(block, b)) continue;
      sweep_block(block, b);
      if (queue.size_in_blocks() > 1) {
        if (s.rules().secondary == Order::submission) block.summarise_narrow();
        k = queue.tidy_swept(k);
      }
    }
  }
  // Start the jobs of a block that may start, and recompute the bounds. The head does not fit, and
  // so is passed over.
  void sweep_block(Block& block, Bounds& b) {
    i64 least_span = nothing, least_width = nothing;
    for (int i = 0; i < block.count;) {
      const Entry& entry = block.entries[index(i)];
      if (!may_backfill(entry, b)) {
        least_span = std::min(least_span, entry.span);
        least_width = std::min(least_width, entry.width);
        ++i;
        continue;
      }
      const Entry e = entry;
      block.erase(i);
      s.queue.leave_by_key(e.job);
      note_backfilled(e, lasts(e, b));
      s.start(e.job);
      b = bounds();
    }
    block.least_span = least_span;
    block.least_width = least_width;
  }
  // For an order that changes with time: repeatedly start the best job that may start, of those
  // from `first` on.
  void sweep_scored(i64 first = 0) {
    i64 refused = -1;  // jobs up to this place have been refused at this score
    double limit = inf;
    while (true) {
      s.interrupts.count(s.queue.jobs.size_in_blocks());
      const Bounds b = bounds();
      i64 best = -1;
      double highest = -inf;
      OrderedList& queue = s.queue.jobs;
      for (int k = queue.size_in_blocks(); k-- > 0;) {
        Block& block = queue.at(k);
        if (block.end()[-1].job < first) break;
        if (none_within(block, b)) continue;
        i64 least_span = nothing, least_width = nothing;
        for (const Entry& e : block) {
          least_span = std::min(least_span, e.span);
          least_width = std::min(least_width, e.width);
          if (!is_within(e, b)) continue;
          const double score = s.second_score(e.job);
          const i64 place = s.queue.place(e.job);
          if (score > limit || (score == limit && place <= refused)) continue;
          if (best >= 0 && !(score > highest || (score == highest && place < s.queue.place(best))))
            continue;
          highest = score;
          best = e.job;
        }
        block.least_span = least_span;
        block.least_width = least_width;
        if (!block.narrow_known) block.summarise_narrow();
      }
      if (best < 0) return;
      const Entry e = entry_of(best);
      if (!s.machine.passes(best, lasts(e, b), s.shadow)) {
        refused = s.queue.place(best);
        limit = highest;
        continue;
      }
      s.queue.leave(best, e.span);
      note_backfilled(e, lasts(e, b));
      s.start(best);
    }
  }
};

}  // namespace hpc
