// What the simulator and the strategies ask of a machine. A kind of machine derives from
// `AnyMachine`, whose functions it replaces where they are to do something, and meets `Machine`.
// With that it has the loop, the queue, EASY, quotas and arrivals; the concepts below say what else
// a machine may do. Each kind has a header of its own in machines/.
#pragma once
#include <concepts>
#include <span>

#include "../base/ordered.hpp"

namespace hpc {

struct Span {  // [s] of a job that begins: until its predicted end, and in truth
  i64 start, expected, end;
};
struct Shadow {       // of the reservation of the first job that waits
  i64 time = -1;      // [s] when it can start, by predicted ends
  i64 extra = 0;      // units that it leaves free then
};
// That of a job for which so many units are missing: where any units are as good as others.
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
    // all that is released at the shadow time counts
    for (; e < block.end() && e->key == at; ++e) missing -= e->width;
    if (e < block.end()) break;
  }
  return {at, -missing};
}
struct Used {     // by a job that has ended
  i64 end;        // [s]
  double drawn;   // energy, by what it draws as usual in the time that it ran
};
// Whole blocks of the queue are passed over by these: no job starts that needs more than `room`, or
// more than `beyond` and is predicted to run longer than `longest` [s].
struct Bounds {
  i64 room, beyond, longest;
};
struct IdleSeconds {  // [processor seconds] of processors without a job, by what they did
  i64 idle = 0, off = 0, switching_off = 0, switching_on = 0;
};

// What a machine may do beside. `j` is a job, `now` the time [s].
struct AnyMachine {
  // Whether who starts is barred by more than room: `bars`. Each run is given back by itself then, and
  // no reservations are kept.
  static constexpr bool restricts = false;
  bool bars(i64) const { return false; }
  // Whether jobs are as long as they are at the level at which they start.
  static constexpr bool has_levels = false;

  // -- jobs --
  void waits(i64) {}               // one has come
  void note_predicted(i64, i64) {}  // of one that waits: j, [s]
  // j, now, running jobs: it is listed among them; return whether the ends of others have moved.
  bool begun(i64, i64, OrderedList&) { return false; }
  void note_lost(i64) {}  // the run of a job that has been given back
  // Of a job that has ended. By its run time it ends then [s].
  Used used(i64, i64 end) const { return {end, 1.0}; }
  // Whether who found no place at the last pass may find one now that one more waits.
  bool looks_at_who_waits() const { return false; }

  // -- passes --
  void settle(i64, OrderedList&) {}  // now, running jobs: one begins
  // [s] when the machine itself needs one, at which nothing happens to a job; forever: never.
  i64 next_change() const { return forever; }
  // Where there are levels: what limits do before anybody starts; false if they have in this pass.
  template <class S>
  bool begin_pass(S&) { return true; }
  void end_pass() {}
  // Whether a job may start that is told to wait from outside, where no job runs: j, room.
  bool fits_without_control(i64, i64) { return false; }
  // Whether a job may start behind the first that may not if it were the first.
  bool backfills_more() const { return false; }

  // -- a beginning with jobs that run --
  // Place one: j, since when it runs [s], free units, and its nodes and units of each, if these are
  // known. Return whether it has room.
  bool resumes(i64, i64, i64, std::span<const i64>, std::span<const i64>) { return true; }
  void begins(i64) {}  // all have been placed; what happens at that time [s] is to come

  // -- processors that are switched off --
  bool switch_idle_off(i64) { return false; }  // now: all that are idle; return whether there were any
  bool some_idle(i64) const { return false; }  // now: and not being switched off
  i64 switching_off(i64) const { return 0; }   // how many are, or are off
  // [s] when idle nodes are to be switched without a pass; and do so up to a time [s].
  i64 next_idle() const { return forever; }
  void idle_up_to(i64) {}
  IdleSeconds idle_seconds(i64) { return {}; }  // up to now

  std::size_t bytes() const { return 0; }  // beside the machine itself
};

// How many units are free, the simulator knows: `room` is that, with those of jobs about to end.
// Where simulations are saved a machine has `keep(Archive&)`, too.
template <class M>
concept Machine = std::derived_from<M, AnyMachine> &&
                  requires(M m, const M& c, const OrderedList& running, Shadow& shadow, i64 i) {
  requires std::same_as<decltype(M::alike), const bool>;  // units: their number says all of them
  { c.width(i) } -> std::same_as<i64>;                   // units that a job takes
  { m.fits(i, i, i) } -> std::same_as<bool>;             // job, units needed, room
  { m.finds_place(i, i) } -> std::same_as<bool>;         // the same, and it is chosen
  { m.begin(i, i, i, i) } -> std::same_as<Span>;         // job, now, predicted and true run time
  m.give(i, i, i);                                       // now, a run that is over, its units
  m.find_shadow(i, i, running, shadow);                  // job, units missing
  { c.bounds(i, i, shadow) } -> std::same_as<Bounds>;    // now, room
  // a job within the bounds, which may run on beyond the shadow time; its place is chosen
  { m.passes(i, true, shadow) } -> std::same_as<bool>;
};

// Jobs may stop others. Signs are 1 to give, -1 to take again.
template <class M>
concept Stoppable = Machine<M> && requires(M m, const M& c, i64 i) {
  m.give_all(i, i);                                 // what a running job has; its sign
  m.lend(i, i);                                     // what it gives up when it is suspended
  { m.has_room(i, i) } -> std::same_as<bool>;       // for a job, in so many free units
  { c.goes_on(i, i) } -> std::same_as<bool>;        // a suspended job, where it ran
  { c.meets(i, i) } -> std::same_as<bool>;          // whether jobs can be in each other's way
};
// Several jobs have reservations: `KeptPlan` is what strategies/conservative.hpp asks of a plan,
// `FreshPlan` what strategies/planned.hpp does. For pools, these are kept_plan and fresh_plan.hpp.
template <class M>
concept Plannable = Stoppable<M> && requires {
  typename M::KeptPlan;
  typename M::FreshPlan;
};
// Nodes may fail. One that is down is held by who stands behind the jobs; those are so many units.
template <class M>
concept Failing = Machine<M> && requires(M m, const M& c, i64 i) {
  { m.hold_node(i) } -> std::same_as<i64>;
  { c.is_on(i, i) } -> std::same_as<bool>;  // whether a job has units on a node
};
// Jobs share nodes: see strategies/shared_pass.hpp.
template <class M>
concept Shareable = Machine<M> && requires(M m, const M& c) {
  m.beside = M::nobody;                         // whose nodes a job that is selected takes first
  { c.fills() } -> std::same_as<bool>;          // whatever fits behind the head starts
  { c.weighs() } -> std::same_as<bool>;         // the queue is in an order by what a pass is like
  { c.delays() } -> std::same_as<bool>;         // somebody was left out who may not be at a later time
};

}  // namespace hpc
