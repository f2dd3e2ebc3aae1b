// Shared nodes: which job starts beside which; rewards and observations.
//
// The window shows W waiting jobs; the list of neighbours has the first M running jobs with a free
// part beside them. An action is the number of a pair: the index of the waiting job times M + 1,
// plus the position of the neighbour from 1 on, or 0 if the rule `partners` chooses the nodes. One
// more number is to wait. hpcgym.envs.co_schedule describes the observation; a time t becomes t /
// (t + 1 h), a speedup s becomes s / (s + 1). Only rewards read true run times.
#pragma once
#include "../core/simulator.hpp"
#include "../machines/corun.hpp"
#include "records.hpp"

namespace hpc {

class Pairs {
  const Table& table;
  const Row& row;
  Simulator<Corun>& s;
  const Corun& machine;
  const Episode& p;
  const double ticks;  // per second

 public:
  Pairs(const Table& t, const Row& r, Simulator<Corun>& sim)
      : table(t),
        row(r),
        s(sim),
        machine(sim.machine),
        p(*r.episode),
        ticks(real(t.settings.ticks)) {}

  static std::size_t n_pairs(i64 window, i64 listed) { return index(window * (listed + 1)); }
  static std::size_t size_of_row(i64 window, i64 listed) {
    return index(of_machine + window * (of_job + listed * of_pair) + listed * of_neighbour) +
           n_pairs(window, listed) + 1;
  }

  // Apply an action; `go_on` simulates until the next question, or to the end.
  template <class F>
  void act(i64 chosen, const double* scores, F go_on) {
    if (table.settings.kind == Kind::pair_scores) return start_by_scores(scores, go_on);
    const i64 n = static_cast<i64>(n_pairs(row.size_of_window, row.size_of_list));
    if (chosen == n && !s.running.empty()) return serve(-1, go_on);
    if (!is_possible(chosen))  // the first possible one
      for (chosen = 0; chosen < n && !is_possible(chosen);) ++chosen;
    serve(chosen < n ? chosen : -1, go_on);
  }

  // Factors from energy and time to rewards: relative to all jobs on full nodes, compact. That
  // takes the time of their processor seconds on all processors, or the time from the first to the
  // last submission if that is longer.
  void set_norms() {
    double work = 0;
    for (i64 j = 0; j < p.jobs; ++j)
      work += real(machine.told().draws->processors[j]) * seconds(s.job(j).run);
    const double all = real(table.settings.processors);
    const double span = seconds(s.job(p.jobs - 1).submit - s.job(0).submit);
    const double bound = std::max(work / all, span);
    row.norms[energy] = -1.0 / std::max(bound * all * table.watts[0], 1.0);
    row.norms[elapsed] = -1.0 / bound;
    row.episode->beside = row.episode->paid = 0;
  }
  // Waits of started jobs, slowdowns of ended jobs, energy and time.
  void pay() {
    for (i64 i = 0; i < p.fresh; ++i) {
      const i64 j = row.fresh[i];
      row.terms[waited] += seconds(s.of(j).start - s.job(j).submit);
    }
    for (i64& paid = row.episode->paid; paid < static_cast<i64>(s.log.size()); ++paid) {
      const i64 j = s.log[index(paid)];
      const double response = seconds(machine.task(j).end - s.job(j).submit);
      row.terms[bsld] += std::max(response / std::max(seconds(s.job(j).run), shortest), 1.0);
    }
    const double passed = seconds(s.time - std::exchange(row.episode->last_time, s.time));
    const double still = table.node_watts.empty() ? table.watts[1] * real(table.settings.processors)
                                                  : table.still_w;
    row.terms[energy] += s.machine.take_joules() + passed * still;
    row.terms[elapsed] += passed;
  }

  // List the neighbours, and write the observation and the mask.
  void show(const Outputs& out) {
    const std::vector<i64> found = machine.neighbours(s.running, s.progress);
    const i64 total = row.episode->beside = static_cast<i64>(found.size()), room = row.size_of_window;
    std::copy_n(found.begin(), listed(), row.beside);
    std::fill_n(out.observation, size_of_row(room, row.size_of_list), 0.0F);
    see_machine(total, out.observation);
    float* place = out.observation + of_machine;
    for (i64 i = 0; i < p.visible; ++i) see_job(row.window[i], place + i * of_job);
    place += room * of_job;
    for (i64 k = 0; k < listed(); ++k) see_neighbour(row.beside[k], place + k * of_neighbour);
    place += row.size_of_list * of_neighbour;
    for (i64 i = 0; i < p.visible; ++i)
      for (i64 k = 0; k < listed(); ++k)
        see_pair(row.window[i], row.beside[k], place + (i * row.size_of_list + k) * of_pair);
    place += room * row.size_of_list * of_pair;
    const std::size_t n = n_pairs(room, row.size_of_list);
    see_possible(out.mask);
    out.mask[n] = !s.running.empty();
    std::copy_n(out.mask, n + 1, place);
  }

 private:
  static constexpr i64 of_machine = 8, of_job = 8, of_neighbour = 5, of_pair = 2;

  static double real(i64 whole) { return static_cast<double>(whole); }
  double seconds(i64 time) const { return real(time) / ticks; }
  const Sharing& told() const { return machine.told(); }
  i64 listed() const { return std::min(row.episode->beside, row.size_of_list); }

  // Whether a waiting job can start, beside the neighbour of the pair if there is one.
  bool is_possible(i64 pair) const {
    const i64 i = pair / (row.size_of_list + 1), k = pair % (row.size_of_list + 1);
    if (i < 0 || i >= p.visible) return false;
    const i64 j = row.window[i];
    if (s.of(j).start >= 0 || !machine.has_room(j)) return false;
    if (k <= 0) return true;
    return told().is_part(j) && k <= listed() && machine.room_beside(row.beside[k - 1]) > 0;
  }
  // Start a pair, -1: none.
  template <class F>
  void serve(i64 pair, F go_on) {
    const i64 i = pair / (row.size_of_list + 1), k = pair % (row.size_of_list + 1);
    s.selected = pair < 0 ? s.none_now : row.window[i];
    s.machine.beside = k > 0 ? row.beside[k - 1] : machine.nobody;
    go_on();
  }
  // Start the possible pair with the highest score, repeatedly while that is above 0. Jobs and
  // neighbours are those shown. If no job runs, one starts in any case.
  template <class F>
  void start_by_scores(const double* scores, F go_on) {
    const i64 n = static_cast<i64>(n_pairs(p.visible, row.size_of_list)), now = s.time;
    for (i64 best = 0; best >= 0 && s.asked == Asked::job && s.time == now;) {
      double highest = -inf;
      best = -1;
      for (i64 pair = 0; pair < n; ++pair)
        if (scores[pair] > highest && is_possible(pair)) highest = scores[pair], best = pair;
      if (highest <= 0 && !s.running.empty()) best = -1;
      serve(best, go_on);
    }
  }

  static float shown(double value) { return static_cast<float>(value); }
  static float ratio(i64 a, i64 b) { return shown(real(a) / real(b)); }
  static float soon(double seconds) { return shown(seconds / (seconds + hour)); }
  static float unit(double speedup) { return shown(speedup / (speedup + 1.0)); }

  void see_machine(i64 total, float* out) const {
    i64 running = 0;
    s.running.each([&](const Entry&) { ++running; });
    const i64 waiting = s.next - s.started, most = row.size_of_list;
    out[0] = ratio(machine.n_idle(), told().n_nodes);
    out[1] = ratio(machine.n_open(), told().n_nodes);
    out[2] = ratio(s.free, told().n_nodes * told().parts);
    out[3] = ratio(waiting, waiting + row.size_of_window);
    out[4] = ratio(waiting - p.visible, std::max(waiting, i64{1}));
    out[5] = ratio(running, running + most);
    out[6] = ratio(std::max(total - most, i64{0}), std::max(total, i64{1}));
    if (p.visible > 0) out[7] = soon(seconds(s.time - s.job(row.window[0]).submit));
  }
  void see_job(i64 j, float* out) const {
    const i64 others = s.next - s.started - 1;
    const std::size_t code = index(told().code[j]);
    out[0] = ratio(told().nodes[j], told().n_nodes);
    out[1] = soon(seconds(s.of(j).predicted));
    out[2] = soon(seconds(s.time - s.job(j).submit));
    out[3] = unit(table.mean_speedup[code]);
    out[4] = unit(machine.belief().alone[code]);
    if (others > 0) out[5] = ratio(machine.friends_of(j), others);
    out[6] = told().is_part(j);
    out[7] = machine.has_room(j);
  }
  void see_neighbour(i64 j, float* out) const {
    const Task& t = machine.task(j);
    out[0] = ratio(machine.room_beside(j), told().n_nodes);
    out[1] = ratio(told().nodes[j], told().n_nodes);
    out[2] = soon(std::max(machine.predicted_left(t, s.time), 0.0) / ticks);
    out[3] = unit(t.rate);
    out[4] = unit(machine.belief().alone[index(told().code[j])]);
  }
  void see_pair(i64 j, i64 beside, float* out) const {
    if (!told().is_part(j)) return;
    const i64 code = told().code[j], other = told().code[beside];
    out[0] = unit(machine.belief().pairs[index(code * told().n_codes + other)]);
    out[1] = unit(machine.belief().pairs[index(other * told().n_codes + code)]);
  }
  // Mark the pairs that can start.
  void see_possible(std::int8_t* mask) const {
    for (i64 i = 0; i < row.size_of_window; ++i) {
      const bool room = i < p.visible && machine.has_room(row.window[i]);
      const bool shares = room && told().is_part(row.window[i]);
      *mask++ = room;
      for (i64 k = 1; k <= row.size_of_list; ++k) *mask++ = shares && k <= listed();
    }
  }
};

}  // namespace hpc
