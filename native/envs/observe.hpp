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
  Expressed anew;              // expressions whose values are worked out at each decision
  const float* written = nullptr;  // the last observation, of which rows behind `shown` are 0
  i64 shown = 0;

  Remembered(const Table& table, i64 room) : rows(table, room), anew(table.anew) {}
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
  // Some visible jobs from a place of the window on, and sums over all up to these.
  struct Part {
    static constexpr i64 most = 64;
    i64 first = 0, n = 0;
    std::array<i64, index(most)> waited, requested, processors;
    std::array<bool, index(most)> fits;
  };
  struct Sums {
    i64 width = 0, oldest = 0, fitting = 0;
    double area = 0;
  };
  Sums see_jobs(float* out) {
    const std::size_t width = table.codes.size();
    kept.rows.renew(s, {row.window, index(visible)}, row.episode->start, answers.learned_times());
    Sums sums;
    Part part;
    for (; part.first < visible; part.first += Part::most) {
      look_at(part, sums);
      float* rows = out + index(part.first) * width;
      kept.rows.copy_rows(index(part.first), index(part.n), rows);
      for (const std::size_t k : table.moving)
        see_feature(static_cast<Shown>(table.codes[k]), part, rows + k, width);
    }
    if (kept.anew.size() > 0)
      kept.anew.look(s, {row.window, index(visible)}, row.episode->start, answers.learned_times());
    for (const Table::Written& each : table.of_now) see_expression(each, out + each.column, width);
    return sums;
  }
  void look_at(Part& part, Sums& sums) {
    part.n = std::min(visible - part.first, Part::most);
    for (i64 i = 0; i < part.n; ++i) {
      const i64 j = row.window[part.first + i];
      const std::size_t at = index(i);
      const Job& job = s.job(j);
      part.waited[at] = s.time - job.submit, part.requested[at] = job.requested;
      part.processors[at] = job.processors, part.fits[at] = fits(j);
      sums.width += job.processors;
      sums.area += static_cast<double>(job.processors) * static_cast<double>(job.requested);
      sums.oldest = std::max(sums.oldest, part.waited[at]);
      sums.fitting += part.fits[at];
    }
  }
  void see_queue(float* out, const Sums& sums) {
    const double machine = static_cast<double>(table.settings.processors);
    const i64 queued = hpc::queued(s), room = row.size_of_window;
    const auto ratio = [](i64 a, i64 b) {
      return static_cast<float>(static_cast<double>(a) / static_cast<double>(b));
    };
    const auto past = static_cast<double>(sums.oldest);
    out[0] = ratio(queued, queued + room);
    out[1] = ratio(queued - visible, std::max(queued, i64{1}));
    out[2] = ratio(sums.width, sums.width + table.settings.processors);
    out[3] = static_cast<float>(sums.area / (sums.area + hour * machine));
    out[4] = static_cast<float>(past / (past + hour));
    out[5] = ratio(sums.fitting, std::max(visible, i64{1}));
  }
  // Of each visible job the value of an expression, or the share of the window with less.
  void see_expression(const Table::Written& told, float* out, std::size_t width) {
    const double* values = kept.anew.values(told.which, answers.learned_times());
    const std::size_t n = index(visible);
    if (!told.is_rank) {
      for (std::size_t i = 0; i < n; ++i) out[i * width] = squashed_number(values[i]);
      return;
    }
    const std::vector<std::size_t>& order = kept.anew.from_least(values, n);
    const auto room = static_cast<double>(row.size_of_window);
    std::size_t less = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (i > 0 && values[order[i - 1]] < values[order[i]]) less = i;
      out[order[i] * width] = static_cast<float>(static_cast<double>(less) / room);
    }
  }
  // A changing feature of some visible jobs.
  void see_feature(Shown code, const Part& part, float* out, std::size_t width) {
    const i64* jobs = row.window + part.first;
    const auto each = [&](auto value_of) {
      for (i64 i = 0; i < part.n; ++i, out += width) *out = value_of(index(i));
    };
    const auto each_job = [&](auto value_of) { each([&](std::size_t i) { return value_of(jobs[i]); }); };
    const auto machine = static_cast<double>(table.settings.processors);
    switch (code) {
      case Shown::wait: return each([&](std::size_t i) { return squashed(part.waited[i]); });
      case Shown::expansion:
        return each([&](std::size_t i) {
          const auto waiting = static_cast<float>(part.waited[i]);
          return waiting / (waiting + static_cast<float>(part.requested[i]));
        });
      case Shown::fit: return each([&](std::size_t i) { return static_cast<float>(part.fits[i]); });
      case Shown::quota: return each_job([&](i64 j) { return static_cast<float>(!s.bars(j)); });
      case Shown::limit_left: return each_job([&](i64 j) { return static_cast<float>(s.quotas->left_by(j, s.time)); });
      case Shown::put_off: {
        const i64 most = std::max(s.rules().put_offs, i64{1});
        return each_job([&](i64 j) { return static_cast<float>(s.of(j).put_off) / static_cast<float>(most); });
      }
      case Shown::past_shadow:
        return each_job([&](i64 j) {
          const i64 past = s.time + s.of(j).predicted - s.shadow.time;
          return s.rules().picks ? squashed(std::max(past, i64{0})) : 0.0F;
        });
      default:  // units that the job leaves free
        return each([&](std::size_t i) {
          const i64 left = std::max(free - part.processors[i], i64{0});
          return static_cast<float>(static_cast<double>(left) / machine);
        });
    }
  }
};

}  // namespace hpc
