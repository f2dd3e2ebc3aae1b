// A pass with at most one reservation, where jobs share nodes and starts move the ends of others.
//
// The rules are those of strategies/easy.hpp, but each pass after a possible change is a full one:
// a start moves the ends of others, and with them the shadow time. With `fills`, all that fits
// behind the head starts, without a reservation. With `first_come`, the job that came first has the
// reservation, whatever the order in which jobs start.
#pragma once
#include <algorithm>

#include "easy.hpp"

namespace hpc {

template <Shareable M>
class SharedPass : Easy<M> {
  using Easy<M>::s;

 public:
  using Easy<M>::Easy;

  void pass() {
    s.machine.settle(s.time, s.running);
    const i64 arrived = std::exchange(s.arrived, 0);
    this->enter(arrived);
    if (s.queue.empty()) return;
    if (this->selects()) return serve_selected();
    if (!is_settled(arrived)) return serve_queue();
    // all other jobs were refused at the last pass
    if (looks_behind()) start_behind(s.next - 1);
  }

 private:
  bool looks_behind() const { return s.rules().depth > 0 || s.machine.fills(); }
  // Whether only a new job behind the head must be tested. Several would be in the order of
  // backfilling. A job that would delay a neighbour too much now may start when the neighbour has
  // less work left.
  bool is_settled(i64 arrived) const {
    const Rules& r = s.rules();
    if (s.head < 0 || s.changed || arrived != 1 || s.queue.is_scored() || s.bars_some()) return false;
    if (s.machine.delays() || s.machine.weighs() || r.threshold >= 0) return false;
    if (s.machine.first_come() > 0) return false;
    return r.primary != Order::keyed || !s.queue.comes_before(s.next - 1, s.head);
  }
  // Start the selected job if it finds room; ask for another while some job fits.
  void serve_selected() {
    const i64 j = std::exchange(s.selected, -1);
    if (j == s.none_now) return;
    const bool fits = j >= 0 && s.machine.fits(j, 0, 0);
    s.machine.beside = s.machine.nobody;
    if (fits) {
      s.queue.leave(j, s.of(j).predicted);
      s.start(j);
    }
    bool some_fits = false;
    s.queue.jobs.each([&](const Entry& e) {
      s.interrupts.count();
      some_fits = some_fits || s.machine.fits(e.job, 0, 0);
    });
    if (some_fits) s.asked = Asked::job;
  }
  // Start heads while they may start, then backfill behind the first head that may not.
  void serve_queue() {
    i64 head = -1;
    for (; !s.queue.empty(); head = -1) {
      s.interrupts.count(s.queue.jobs.size_in_blocks());
      head = s.machine.weighs() ? best_of(-1) : this->first();
      if (head < 0 || !s.machine.fits(head, s.machine.width(head), s.free)) break;
      s.queue.leave(head, s.of(head).predicted);
      s.start(head);
    }
    s.head = head;
    // reset: a job started behind the head may change which nodes others can take
    s.changed = false;
    if (head < 0 || !looks_behind()) return;
    if (s.machine.first_come() > 0) return start_before_first_come();
    if (!s.machine.fills()) find_shadow();
    if (s.machine.fills() && s.machine.weighs()) fill_by_weights();
    else s.rules().secondary >= Order::scored ? this->sweep_scored() : this->sweep();
  }
  i64 best_of(i64 room) const {
    return s.machine.best_of(s.queue, room, s.head, [&](i64 j) { return s.bars(j); });
  }
  void find_shadow() {
    s.machine.find_shadow(s.head, 0, s.running, s.shadow);
    if (!s.machine.weighs()) s.promise(s.head, s.shadow.time);
  }
  // Give the job that came first a reservation, by requested times alone. Of the next ones, as they
  // came, start those that find room and would be over by then.
  void start_before_first_come() {
    std::vector<i64> line;
    s.queue.jobs.each([&](const Entry& e) {
      if (!s.bars(e.job)) line.push_back(e.job);
    });
    if (line.empty()) return;
    const auto came = [&](i64 j) { return s.queue.place(j); };
    const i64 most = std::min(s.machine.first_come(), static_cast<i64>(line.size()) - 1);
    std::ranges::partial_sort(line, line.begin() + 1 + most, {}, came);
    s.shadow.time = s.machine.room_by(line[0], s.running, s.progress);
    if (!s.machine.weighs()) s.promise(line[0], s.shadow.time);
    for (i64 k = 1; k <= most; ++k) {
      s.interrupts.count();
      const i64 j = line[index(k)], predicted = s.of(j).predicted;
      if (s.time + predicted > s.shadow.time || s.bars(j) || !s.machine.fits(j, 0, 0)) continue;
      s.queue.leave(j, predicted);
      this->note_backfilled(this->entry_of(j), true);
      s.start(j);
    }
  }
  // Start a job before the head if it may.
  void start_behind(i64 j) {
    if (!s.machine.passes(j, true, s.shadow)) return;
    s.queue.leave(j, s.of(j).predicted);
    this->note_backfilled(this->entry_of(j), true);
    s.start(j);
  }
  // Repeatedly start the best job that finds room; jobs like a refused one are passed over from
  // then on.
  void fill_by_weights() {
    for (i64 j; !s.queue.empty() && (j = best_of(s.free)) >= 0;) {
      s.interrupts.count(s.queue.jobs.size_in_blocks());
      start_behind(j);
    }
  }
};

}  // namespace hpc
