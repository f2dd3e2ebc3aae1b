// What the simulator and the strategies ask of a machine. A kind of machine derives from
// `AnyMachine`, overrides the functions that it needs, and meets the concept `Machine`. That
// suffices for the loop, the queue, EASY, quotas and arrivals; the concepts below are for further
// abilities. Each kind has its own header in machines/.
#pragma once
#include <concepts>
#include <span>

#include "../base/ordered.hpp"

namespace hpc {

struct Span {  // [s] of a job that begins: its start, predicted end and true end
  i64 start, expected, end;
};
struct Shadow {       // of the reservation of the first waiting job
  i64 time = -1;      // [s] when it can start, by predicted ends
  i64 extra = 0;      // units that it leaves free at that time
};
// The shadow of a job for which `missing` units are missing, where all units are alike.
inline Shadow shadow_of_missing(i64 missing, const OrderedList& running) {
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
    // all units released at the shadow time count
    for (; e < block.end() && e->key == at; ++e) missing -= e->width;
    if (e < block.end()) break;
  }
  return {at, -missing};
}
struct Used {     // by a job that has ended
  i64 end;        // [s]
  double drawn;   // energy drawn, as a share of that at its usual power
};
// Whole blocks of the queue are skipped by these bounds: no job starts that needs more than `room`,
// or more than `beyond` and has a predicted run time above `longest` [s]. `is_relaxed`: other run
// times decide of jobs that need more than `beyond`; see strategies/easy.hpp.
struct Bounds {
  i64 room, beyond, longest;
  bool is_relaxed = false;
};
struct IdleSeconds {  // [processor seconds] of processors without a job, by state
  i64 idle = 0, off = 0, switching_off = 0, switching_on = 0;
};

// Optional abilities of a machine, with their defaults. `j` is a job, `now` the time [s].
struct AnyMachine {
  // Whether `bars` may bar jobs although there is room. Then each run is given back separately, and
  // no reservations are kept.
  static constexpr bool restricts = false;
  bool bars(i64) const { return false; }
  // Whether the length of a run depends on the level at which the job starts.
  static constexpr bool has_levels = false;

  // -- jobs --
  void waits(i64) {}               // a job has been submitted
  void note_predicted(i64, i64) {}  // j, predicted run time [s] of a waiting job
  // j, now, running jobs: j is listed among them; return whether the ends of others have moved.
  bool begun(i64, i64, OrderedList&) { return false; }
  void note_lost(i64) {}  // a job that has given back its units was stopped
  // What a job has used, if its run time says that it ends at `end` [s].
  Used used(i64, i64 end) const { return {end, 1.0}; }
  // Whether a job without a place at the last pass may have one now that another job waits.
  bool looks_at_who_waits() const { return false; }

  // -- passes --
  void settle(i64, OrderedList&) {}  // now, running jobs: a pass begins
  // [s] when the machine itself needs a pass without an event of a job; forever: never.
  i64 next_change() const { return forever; }
  // With levels: limits act before any job starts; false if they have done so in this pass.
  template <class S>
  bool begin_pass(S&) { return true; }
  void end_pass() {}
  // Whether a job may start despite an agent's control, as no job runs: j, room.
  bool fits_without_control(i64, i64) { return false; }
  // Whether a job may start behind the blocked head if it could start as the head.
  bool backfills_more() const { return false; }

  // -- a beginning with jobs that run --
  // Place a running job: j, its start [s], free units, its nodes and the units on each, if known.
  // Return whether it has room.
  bool resumes(i64, i64, i64, std::span<const i64>, std::span<const i64>) { return true; }
  void begins(i64) {}  // all have been placed; events at that time [s] are still to come

  // -- processors that are switched off --
  bool switch_idle_off(i64) { return false; }  // now: all that are idle; were there any?
  bool some_idle(i64) const { return false; }  // now: not being switched off
  i64 switching_off(i64) const { return 0; }   // how many are being switched off, or are off
  // [s] when idle nodes are next switched without a pass; switch them up to a time [s].
  i64 next_idle() const { return forever; }
  void idle_up_to(i64) {}
  IdleSeconds idle_seconds(i64) { return {}; }  // up to now

  std::size_t bytes() const { return 0; }  // of memory, besides the machine object itself
};

// The simulator counts the free units; `room` is that number plus the units of jobs about to end.
// If simulations are saved, a machine also has `keep(Archive&)`.
template <class M>
concept Machine = std::derived_from<M, AnyMachine> &&
                  requires(M m, const M& c, const OrderedList& running, Shadow& shadow, i64 i) {
  requires std::same_as<decltype(M::alike), const bool>;  // units: if so, their number suffices
  { c.width(i) } -> std::same_as<i64>;                   // units that a job takes
  { m.fits(i, i, i) } -> std::same_as<bool>;             // job, units needed, room
  { m.finds_place(i, i) } -> std::same_as<bool>;         // job, room; if so, its place is chosen
  { m.begin(i, i, i, i) } -> std::same_as<Span>;         // job, now, predicted and true run time
  m.give(i, i, i);                                       // now, a run that is over, its units
  m.find_shadow(i, i, running, shadow);                  // job, units missing
  { c.bounds(i, i, shadow) } -> std::same_as<Bounds>;    // now, room
  // a job within the bounds, which may run beyond the shadow time; its place is chosen
  { m.passes(i, true, shadow) } -> std::same_as<bool>;
};

// Jobs may preempt others. A sign of 1 gives units back, -1 takes them again.
template <class M>
concept Stoppable = Machine<M> && requires(M m, const M& c, i64 i) {
  m.give_all(i, i);                                 // all units of a running job; sign
  m.lend(i, i);                                     // units that it gives up when suspended; sign
  { m.has_room(i, i) } -> std::same_as<bool>;       // for a job, within so many free units
  { c.goes_on(i, i) } -> std::same_as<bool>;        // whether a suspended job can resume
  { c.meets(i, i) } -> std::same_as<bool>;          // whether two jobs can use the same units
};
// Several jobs have reservations: `KeptPlan` is the plan of strategies/conservative.hpp,
// `FreshPlan` that of strategies/planned.hpp. Pools have them in kept_plan.hpp and fresh_plan.hpp.
template <class M>
concept Plannable = Stoppable<M> && requires {
  typename M::KeptPlan;
  typename M::FreshPlan;
};
// Nodes may fail. A pseudo-job behind all jobs holds a failed node; return how many units it holds.
template <class M>
concept Failing = Machine<M> && requires(M m, const M& c, i64 i) {
  { m.hold_node(i) } -> std::same_as<i64>;
  { c.is_on(i, i) } -> std::same_as<bool>;  // whether a job has units on a node
};
// Jobs share nodes: see strategies/shared_pass.hpp.
template <class M>
concept Shareable = Machine<M> && requires(M m, const M& c) {
  m.beside = M::nobody;                         // the job whose nodes a selected job takes first
  { c.fills() } -> std::same_as<bool>;          // whether all that fits behind the head starts
  { c.first_come() } -> std::same_as<i64>;      // how many jobs behind the one that came first may
  { c.weighs() } -> std::same_as<bool>;         // the order depends on the state of the machine
  { c.delays() } -> std::same_as<bool>;         // a job left out now may start at a later time
};

}  // namespace hpc
