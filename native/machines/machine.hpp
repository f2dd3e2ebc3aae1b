// What a strategy asks of a machine. Each machine kind has a header of its own beside this one.
#pragma once
#include <concepts>

#include "../base/ordered.hpp"

namespace hpc {

struct Span {  // [s] of a job that begins: until its predicted end, and in truth
  i64 start, expected, end;
};
struct Shadow {       // of the reservation of the first job that waits
  i64 time = -1;      // [s] when it can start, by predicted ends
  i64 extra = 0;      // units that it leaves free then
};
struct Used {     // by a job that has ended
  i64 end;        // [s]
  double drawn;   // energy, by what it draws as usual in the time that it ran
};
// Whole blocks of the queue are passed over by these: no job starts that needs more than `room`, or
// more than `beyond` and is predicted to run longer than `longest` [s].
struct Bounds {
  i64 room, beyond, longest;
};

// A machine on which ends or power are others than the jobs' own says so by `used(job) -> Used`.
// How many units are free, the simulator knows: `room` is that, with those of jobs about to end.
template <class M>
concept Machine = requires(M m, const M& c, const OrderedList& running, Shadow& shadow, i64 i) {
  requires std::same_as<decltype(M::alike), const bool>;  // units: their number says all of them
  { c.width(i) } -> std::same_as<i64>;                   // units that a job takes
  { m.fits(i, i, i) } -> std::same_as<bool>;             // job, units needed, room
  { m.finds_place(i, i) } -> std::same_as<bool>;         // the same, and it is chosen
  m.waits(i);                                            // a job that has come
  { m.begin(i, i, i, i) } -> std::same_as<Span>;         // job, now, predicted and true run time
  m.give(i, i, i);                                       // now, a run that is over, its units
  m.note_lost(i);                                        // of a run that has been given back
  m.find_shadow(i, i, running, shadow);                  // job, units missing
  { c.bounds(i, i, shadow) } -> std::same_as<Bounds>;    // now, room
  // a job within the bounds, which may run on beyond the shadow time; its place is chosen
  { m.passes(i, true, shadow) } -> std::same_as<bool>;
};

}  // namespace hpc
