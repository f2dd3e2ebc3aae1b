// The observation of a simulation, one flat row of float32.
//
// hpcgym.envs.core.observation describes its fields. A time t becomes t / (t + 1 h). Nothing here
// reads a true run time, a true end or a job that has not been submitted.
#pragma once
#include <numbers>

#include "../answers/expressed.hpp"
#include "../strategies/scheduled.hpp"
#include "moving.hpp"
#include "records.hpp"

namespace hpc {

template <Machine M>
class Observer {
  const Table& table;
  const Row& row;
  Simulator<M>& s;
  const Answers& answers;
  Clock& clock;
  Expressed& expressed;
  const i64 visible, free;  // units, with those of jobs whose predicted end is now

 public:
  static constexpr std::size_t on_at = 9, queue_at = 12, time_at = 18, jobs_at = 22;

  Observer(const Table& t, const Row& r, Scheduled<M>& scheduled, Clock& c, Expressed& e)
      : table(t), row(r), s(scheduled.sim_), answers(scheduled.answers_), clock(c), expressed(e),
        visible(r.episode->visible), free(s.free_with_leaving()) {}

  void observe(float* out) {
    see_machine(out);
    see_queue(out + queue_at);
    if (clock.time != s.time) clock = read_clock();
    std::copy(clock.shown.begin(), clock.shown.end(), out + time_at);
    const std::size_t width = table.codes.size();
    float* place = out + jobs_at;
    for (i64 i = 0; i < visible; ++i) {  // for few numbers a loop is faster than a call
      const float* still = &table.still[index(row.episode->start + row.window[i]) * width];
      for (std::size_t k = 0; k < width; ++k) *place++ = still[k];
    }
    if (expressed.size() > 0)
      expressed.look(s, {row.window, index(visible)}, row.episode->start, answers.learned_times());
    for (const std::size_t k : table.moving) {
      const i64 code = table.codes[k], which = code - table.first_expression();
      if (which < 0) see_feature(static_cast<Shown>(code), out + jobs_at + k, width);
      else see_expression(index(which), out + jobs_at + k, width);
    }
    float* mask = out + jobs_at + index(row.size_of_window) * table.codes.size();
    std::fill(place, mask, 0.0F);
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
  void see_queue(float* out) {
    const double machine = static_cast<double>(table.settings.processors);
    i64 width = 0, oldest = 0, fitting = 0;
    double area = 0;
    for (i64 i = 0; i < visible; ++i) {
      const Job& job = s.job(row.window[i]);
      width += job.processors;
      area += static_cast<double>(job.processors) * static_cast<double>(job.requested);
      oldest = std::max(oldest, s.time - job.submit);
      fitting += fits(row.window[i]);
    }
    const i64 queued = hpc::queued(s), room = row.size_of_window;
    const auto ratio = [](i64 a, i64 b) {
      return static_cast<float>(static_cast<double>(a) / static_cast<double>(b));
    };
    const auto past = static_cast<double>(oldest);
    out[0] = ratio(queued, queued + room);
    out[1] = ratio(queued - visible, std::max(queued, i64{1}));
    out[2] = ratio(width, width + table.settings.processors);
    out[3] = static_cast<float>(area / (area + hour * machine));
    out[4] = static_cast<float>(past / (past + hour));
    out[5] = ratio(fitting, std::max(visible, i64{1}));
  }
  // Of each visible job the value of an expression, or the share of the window with less.
  void see_expression(std::size_t k, float* out, std::size_t width) {
    const double* values = expressed.values(k, answers.learned_times());
    const std::size_t n = index(visible);
    if (table.ranks[k] == 0) {
      for (std::size_t i = 0; i < n; ++i) out[i * width] = squashed_number(values[i]);
      return;
    }
    const std::vector<std::size_t>& order = expressed.from_least(values, n);
    const auto room = static_cast<double>(row.size_of_window);
    std::size_t less = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (i > 0 && values[order[i - 1]] < values[order[i]]) less = i;
      out[order[i] * width] = static_cast<float>(static_cast<double>(less) / room);
    }
  }
  // A changing feature of each visible job.
  void see_feature(Shown code, float* out, std::size_t width) {
    const auto each = [&](auto value_of) {
      for (i64 i = 0; i < visible; ++i, out += width) *out = value_of(row.window[i]);
    };
    const auto machine = static_cast<double>(table.settings.processors);
    switch (code) {
      case Shown::wait: return each([&](i64 j) { return squashed(s.time - s.job(j).submit); });
      case Shown::predicted: return each([&](i64 j) { return squashed(s.of(j).predicted); });
      case Shown::policy_time: {
        const i64* times = answers.learned_times();
        return each([&](i64 j) {
          return squashed(times ? times[j] : table.ordered_by[row.episode->start + j]);
        });
      }
      case Shown::expansion:
        return each([&](i64 j) {
          const auto waiting = static_cast<float>(s.time - s.job(j).submit);
          return waiting / (waiting + static_cast<float>(s.job(j).requested));
        });
      case Shown::fit: return each([&](i64 j) { return static_cast<float>(fits(j)); });
      case Shown::quota: return each([&](i64 j) { return static_cast<float>(!s.bars(j)); });
      case Shown::limit_left: return each([&](i64 j) { return static_cast<float>(s.quotas->left_by(j, s.time)); });
      case Shown::put_off: {
        const i64 most = std::max(s.rules().put_offs, i64{1});
        return each([&](i64 j) { return static_cast<float>(s.of(j).put_off) / static_cast<float>(most); });
      }
      case Shown::past_shadow:
        return each([&](i64 j) {
          const i64 past = s.time + s.of(j).predicted - s.shadow.time;
          return s.rules().picks ? squashed(std::max(past, i64{0})) : 0.0F;
        });
      default:  // units that the job leaves free
        return each([&](i64 j) {
          const i64 left = std::max(free - s.job(j).processors, i64{0});
          return static_cast<float>(static_cast<double>(left) / machine);
        });
    }
  }
};

}  // namespace hpc
