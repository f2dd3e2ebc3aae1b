// The observation of a simulation, one flat row of float32.
//
// hpcgym.envs.core.observation describes its fields. A time t becomes t / (t + 1 h). Nothing here
// reads a true run time, a true end or a job that has not been submitted.
#pragma once
#include <numbers>

#include "../answers/expressed.hpp"
#include "../strategies/scheduled.hpp"
#include "visible_rows.hpp"
#include "moving.hpp"
#include "records.hpp"

namespace hpc {

// What an environment keeps from one observation to the next.
struct Remembered {
  Clock clock{};
  VisibleRows rows;
  Expressed of_now;            // expressions whose values are worked out at each decision
  const float* written = nullptr;  // the last observation, of which rows behind `shown` are 0
  i64 shown = 0;

  Remembered(const Table& table, i64 room) : rows(table, room), of_now(table.expressions_of_now) {}
};

template <Machine M>
class Observer {
  const Table& table;
  const Row& row;
  Simulator<M>& s;
  const Answers& answers;
  Remembered& kept;
  const i64 visible, free;  // units, with those of jobs whose predicted end is now

 public:
  static constexpr std::size_t on_at = 9, queue_at = 12, time_at = 18, jobs_at = 22;

  Observer(const Table& t, const Row& r, Scheduled<M>& scheduled, Remembered& remembered)
      : table(t), row(r), s(scheduled.sim_), answers(scheduled.answers_), kept(remembered),
        visible(r.episode->visible), free(s.free_with_leaving()) {}

  // `is_lent`: others may have written into it since.
  void observe(float* out, bool is_lent) {
    see_machine(out);
    if (kept.clock.time != s.time) kept.clock = read_clock();
    std::copy(kept.clock.shown.begin(), kept.clock.shown.end(), out + time_at);
    see_queue(out + queue_at, see_jobs(out + jobs_at));
    const std::size_t width = table.codes.size();
    float* mask = out + jobs_at + index(row.size_of_window) * width;
    const bool is_known = !is_lent && out == std::exchange(kept.written, out);
    const i64 shown = is_known ? std::max(kept.shown, visible) : row.size_of_window;
    std::fill_n(out + jobs_at + index(visible) * width, index(shown - visible) * width, 0.0F);
    kept.shown = visible;
    std::fill_n(mask, visible, 1.0F);
    std::fill(mask + visible, mask + row.size_of_window, 0.0F);
  }

 private:
  static constexpr std::array<i64, 8> horizons{60, 600, 3600, 14'400, 43'200, 86'400, 259'200, 604'800};

  Clock read_clock() const {
    const double day = turn(86'400), week = turn(604'800);
    const auto shown = [](double x) { return static_cast<float>(x); };
    return {s.time, {shown(elementary::sin(day)), shown(elementary::cos(day)),
                     shown(elementary::sin(week)), shown(elementary::cos(week))}};
  }
  bool fits(i64 j) {
    const bool enough = s.needed_by(j) <= free;
    if constexpr (std::is_same_v<M, Nodes>) return enough && s.machine.has_room(j, s.free);
    return enough;
  }
  double turn(i64 period) const {
    const i64 rest = (s.time + table.settings.clock) % period;
    const i64 since = rest < 0 ? rest + period : rest;
    return 2 * std::numbers::pi * (static_cast<double>(since) / static_cast<double>(period));
  }
  // The free share now and at each horizon, by predicted ends; the share switched on.
  void see_machine(float* out) const {
    const double share = static_cast<float>(1.0 / static_cast<double>(table.settings.processors));
    const auto shown = [&](i64 units) { return static_cast<float>(static_cast<double>(units) * share); };
    out[0] = shown(free);
    std::size_t h = 0;
    i64 then = free;
    s.running.each([&](const Entry& e) {
      const i64 ahead = e.key - s.time;
      if (ahead <= 0) return;
      for (; h < horizons.size() && ahead > horizons[h]; ++h) out[1 + h] = shown(then);
      then += e.width;
    });
    for (; h < horizons.size(); ++h) out[1 + h] = shown(then);
    out[on_at] = shown(free - s.machine.switching_off(s.time));
    const Shadow shadow = visible > 0 ? shadow_of_first() : Shadow{s.time, 0};
    out[on_at + 1] = squashed(shadow.time - s.time);
    out[on_at + 2] = shown(shadow.extra);
  }
  // EASY's reservation of the first visible job: the present one if it is the head, else the one
  // that it would get; now, if there is room.
  Shadow shadow_of_first() const {
    const i64 j = row.window[0], needed = s.needed_by(j);
    if (s.rules().picks) return {std::max(s.shadow.time, s.time), s.shadow.extra};
    Shadow found{s.time, free - needed};
    if (found.extra < 0) found = shadow_of_missing(needed - s.free, s.running);
    found = {std::max(found.time, s.time), std::max(found.extra, i64{0})};
    if (s.rules().strict) found.extra = 0;
    return found;
  }
  VisibleRows::Sums see_jobs(float* out) {
    const InTable at{row.episode->start, answers.learned_times()};
    const std::span<const i64> jobs{row.window, index(visible)};
    VisibleRows& rows = kept.rows;
    rows.renew(s, jobs, at);
    const bool by_processors = !s.rules().holds && !std::is_same_v<M, Nodes>;
    const VisibleRows::Sums sums = rows.add_up(by_processors, free, [&](i64 j) { return fits(j); });
    for (const std::size_t k : table.moving)
      if (!rows.write_of_now(k)) see_feature(static_cast<Shown>(table.codes[k]), rows.column(k));
    if (kept.of_now.size() > 0) kept.of_now.look(s, jobs, at);
    for (const Table::Written& each : table.of_now) see_expression(each, at, rows.column(each.column));
    rows.copy(out);
    return sums;
  }
  void see_queue(float* out, const VisibleRows::Sums& sums) {
    const double machine = static_cast<double>(table.settings.processors);
    const i64 queued = hpc::queued(s), room = row.size_of_window;
    const auto ratio = [](i64 a, i64 b) {
      return static_cast<float>(static_cast<double>(a) / static_cast<double>(b));
    };
    const auto past = static_cast<double>(sums.oldest);
    out[0] = ratio(queued, queued + room);
    out[1] = ratio(queued - visible, std::max(queued, i64{1}));
    out[2] = static_cast<float>(sums.processors / (sums.processors + machine));
    out[3] = static_cast<float>(sums.area / (sums.area + hour * machine));
    out[4] = static_cast<float>(past / (past + hour));
    out[5] = static_cast<float>(sums.fitting / static_cast<double>(std::max(visible, i64{1})));
  }
  // Of each visible job the value of an expression, or the share of the window with less.
  void see_expression(const Table::Written& told, const InTable& at, float* out) {
    const double* values = kept.of_now.values(told.which, at);
    const std::size_t n = index(visible), width = table.codes.size();
    if (!told.is_rank) {
      for (std::size_t i = 0; i < n; ++i) out[i * width] = squashed_number(values[i]);
      return;
    }
    const std::vector<std::size_t>& order = kept.of_now.from_least(values, n);
    const auto room = static_cast<double>(row.size_of_window);
    std::size_t less = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (i > 0 && values[order[i - 1]] < values[order[i]]) less = i;
      out[order[i] * width] = static_cast<float>(static_cast<double>(less) / room);
    }
  }
  // A feature that quotas, the agent or the reservation change.
  void see_feature(Shown code, float* out) {
    const auto each = [&](auto value_of) {
      for (i64 i = 0; i < visible; ++i, out += table.codes.size()) *out = value_of(row.window[i]);
    };
    switch (code) {
      case Shown::quota: return each([&](i64 j) { return static_cast<float>(!s.bars(j)); });
      case Shown::limit_left: return each([&](i64 j) { return static_cast<float>(s.quotas->left_by(j, s.time)); });
      case Shown::put_off: {
        const i64 most = std::max(s.rules().put_offs, i64{1});
        return each([&](i64 j) { return static_cast<float>(s.of(j).put_off) / static_cast<float>(most); });
      }
      default:
        return each([&](i64 j) {
          const i64 past = s.time + s.of(j).predicted - s.shadow.time;
          return s.rules().picks ? squashed(std::max(past, i64{0})) : 0.0F;
        });
    }
  }
};

}  // namespace hpc
