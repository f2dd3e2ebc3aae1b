// A reservation for every queued job: conservative backfilling.
//
// A job gets its reservation when it comes: the earliest time at which enough units are free over
// its whole predicted run time, beside the running jobs and all other reservations. When jobs end
// early the reservations are compressed: in primary order each is lifted and made anew, at the
// earliest time, which is never later than it was; a job whose reservation is now starts. When a
// prediction expires, reservations may no longer hold: all are made anew, in primary order.
#pragma once
#include <utility>
#include <vector>

#include "../core/line.hpp"
#include "../core/simulator.hpp"

namespace hpc {

template <Machine M>
class Conservative {
 public:
  explicit Conservative(const Simulator<M>& s) : reserved(index(s.model.n_jobs), -1) {
    plan_.begin(s.time, s.model.capacity);
  }

  std::vector<i64> reserved;  // [s] by job, -1 before it comes

  void pass(Simulator<M>& s) {
    plan_.forget_past(s.time);
    for (const Entry& e : s.ended) release(s, e);
    s.ended.clear();
    const bool made_anew = std::exchange(s.expired, false);
    if (made_anew) replan(s);
    const i64 arrived = std::exchange(s.arrived, 0);
    for (i64 j = s.next - arrived; j < s.next; ++j) {
      reserve(s, j);
      s.queue.enter(j, s.of(j).predicted);
    }
    const bool one = s.rules().passes == Passes::per_event && arrived == 1;
    if (one && s.machine.width(s.next - 1) > s.free_with_leaving()) {
      may_advance_ |= made_anew;  // what was planned for now will have to be planned again
      return;
    }
    compress(s);
  }

 private:
  // In a queue of so many blocks it is worth while to know who may move.
  static constexpr int many_blocks = 3;

  typename M::Plan plan_;
  std::vector<InLine> line_;
  std::vector<i64> starting_;     // jobs that leave the queue at the end of a pass
  bool may_advance_ = false;      // some reservations may be earlier than they are
  i64 first_reserved_ = forever;  // [s] no reservation is before
  // [s] up to when units have been given back since the last compression: whoever begins earlier
  // than it was to must do so before that. `left_`: of those that have moved during it.
  i64 gained_ = 0, left_ = 0;

  // What a job that ended early was to use still.
  void release(Simulator<M>& s, const Entry& e) {
    if (s.expired || e.key <= s.time) return;  // the plan is made anew
    plan_.ended(e.width, s.time, e.key);
    gained_ = std::max(gained_, e.key);
    may_advance_ = true;
  }
  void reserve(Simulator<M>& s, i64 j) {
    const i64 length = s.of(j).predicted;
    const i64 at = plan_.place(s.machine, j, length);
    plan_.commit(s.machine, j, at, length);
    reserved[index(j)] = at;
    first_reserved_ = std::min(first_reserved_, at);
    if (s.of(j).promised < 0) s.of(j).promised = at;
  }
  void replan(Simulator<M>& s) {
    may_advance_ = false;
    gained_ = 0;
    first_reserved_ = forever;
    plan_.begin(s.time, s.model.capacity);
    s.running.each([&](const Entry& e) { plan_.runs(e.width, s.time, e.key); });
    line_up(s.model, s.queue, s.time, forever, line_);
    for (const InLine& place : line_) {
      reserve(s, place.job);
      s.queue.mark(place.job);
    }
  }

  // Make reservations earlier where that is possible, and start the jobs that are due.
  void compress(Simulator<M>& s) {
    const bool loose = may_advance_;
    if (!loose && first_reserved_ > s.time) return;
    may_advance_ = false;
    first_reserved_ = forever;
    bool waits = false;
    if (loose) plan_.next(s.queue.jobs.size_in_blocks() >= many_blocks);
    tell_news(s);
    if (OrderedList* list = s.queue.in_primary_order()) {
      for (int k = 0; k < list->size_in_blocks(); ++k) {
        Block& block = list->at(k);
        if (block.least_due <= s.time || (loose && plan_.may_advance(block)))
          serve_block(s, block, loose, waits);
        else
          waits = true;
        first_reserved_ = std::min(first_reserved_, block.least_due);
      }
    } else {
      line_up(s.model, s.queue, s.time, forever, line_);
      for (const InLine& place : line_) {
        serve(s, place.job, loose, waits);
        if (s.of(place.job).start < 0)
          first_reserved_ = std::min(first_reserved_, reserved[index(place.job)]);
      }
    }
    for (const i64 j : starting_) s.queue.leave(j, s.of(j).predicted);
    starting_.clear();
    if (loose) gained_ = std::exchange(left_, 0);
  }
  void tell_news(Simulator<M>& s) {
    plan_.tell_news([&](i64 j) {
      if (s.of(j).start < 0) s.queue.mark(j);
    });
  }
  void serve_block(Simulator<M>& s, Block& block, bool loose, bool& waits) {
    for (const Entry& e : block) serve(s, e.job, loose, waits);
    tell_news(s);
    block.least_due = forever;
    bool again = false;
    for (const Entry& e : block) {
      if (s.of(e.job).start >= 0) continue;
      block.least_due = std::min(block.least_due, reserved[index(e.job)]);
      again |= plan_.is_noted(e.job);
    }
    if (again) block.least_due = -forever;
    if (!block.narrow_known) block.summarise_narrow();
  }
  void serve(Simulator<M>& s, i64 j, bool loose, bool& waits) {
    if (loose && reserved[index(j)] != s.time) advance(s, j);
    if (reserved[index(j)] > s.time) {
      waits = true;
      return;
    }
    s.of(j).backfilled = waits;
    plan_.begun(j, s.time);
    starting_.push_back(j);
    s.start(j);
  }
  // Make the reservation of a job anew if it can be earlier, or if its time was missed.
  void advance(Simulator<M>& s, i64 j) {
    const i64 length = s.of(j).predicted, before = reserved[index(j)];
    i64 at;
    if (before < s.time) {
      plan_.withdraw(s.machine, j, before, length, s.time);
      at = plan_.place(s.machine, j, length);
      plan_.commit(s.machine, j, at, length);
    } else {
      at = plan_.advance(s.machine, j, length, before, std::min(before, gained_));
      if (at == before) return;
    }
    reserved[index(j)] = at;
    left_ = std::max(left_, before + length);
    gained_ = std::max(gained_, before + length);
    may_advance_ = true;
  }
};

}  // namespace hpc
