// Actions, rewards and observations for a machine under limits.
//
// After the weights of the queue, an action has numbers from -1 to 1 for up to three controls: the
// highest level, the number of nodes that are on, the power in use. 1 is the whole of each.
#pragma once
#include "../machines/limited.hpp"
#include "observe.hpp"

namespace hpc {

inline constexpr i64 n_of_power = 15;  // numbers about power in the observation

// Set the controls from the next second on; until `stop` [s] if the agent may know it: it may not
// know times of submissions. `again`: this action has set them already, and they continue.
inline void control(Limited& machine, const Settings& settings, const double* numbers, i64 time,
                    i64 stop, bool again) {
  const LimitedLayout& l = machine.layout();
  if (!l.controlled) return;
  const bool by_clock = settings.interval == Interval::seconds && stop < forever;
  const i64 end = by_clock ? stop + 1 : forever;
  if (again) return machine.extend_control(end);
  const i64 power_at = settings.act_power;  // -1: not set
  const auto part = [&](i64 at, i64 whole) {
    return std::clamp((numbers[at] + 1.0) / 2.0, 0.0, 1.0) * static_cast<double>(whole);
  };
  const auto rounded = [&](i64 at, i64 whole) {
    return at < 0 ? whole : static_cast<i64>(std::nearbyint(part(at, whole)));
  };
  i64 mw = Limited::plenty;
  if (power_at >= 0 && numbers[power_at] < 1.0) {
    const i64 idle = machine.idle_mw(0);
    mw = idle + static_cast<i64>(part(power_at, machine.greatest_mw() - idle));
  }
  const i64 off = l.n_nodes - rounded(settings.act_nodes, l.n_nodes);
  machine.set_control(time, end, mw, off, rounded(settings.act_frequency, l.highest));
}

// Pay the started jobs, with run times at their levels, and the energy.
inline void pay_under_limits(Simulator<Limited>& s, const Row& row) {
  Episode& p = *row.episode;
  const auto bsld_at_level = [&](i64 j, i64 run) { return bsld_of(s.job(j), s.of(j).start, run); };
  const bool kills = s.rules().correction == Correction::kill;
  for (i64 i = p.noted; i < p.fresh; ++i) {
    const i64 j = row.fresh[i];
    row.terms[bsld] +=
        bsld_at_level(j, kills ? s.machine.unslowed(j, s.job(j).run) : s.model.jobs[j].run);
    row.terms[waited] += static_cast<double>(s.of(j).start - s.job(j).submit);
  }
  if (p.ended == 1 && s.machine.kills > 0) {  // some jobs were cut after their starts
    double total = 0;
    for (i64 j = 0; j < p.jobs; ++j) total += bsld_at_level(j, s.machine.unslowed(j, s.job(j).run));
    row.terms[bsld] += total - (row.totals[bsld] + row.terms[bsld]);
  }
  p.last_time = s.time;
  row.terms[energy] += s.machine.take_joules(s.time);
}

// Write the state of power, limits and nodes, by the names in hpcgym.envs.core.observation.
class PowerObserver {
  const Simulator<Limited>& s;
  const Limited& m;
  const double most;  // [mW]

 public:
  explicit PowerObserver(const Simulator<Limited>& simulator)
      : s(simulator), m(s.machine), most(static_cast<double>(m.greatest_mw())) {}

  void observe(float* out) const {
    *out++ = shown(std::min(real(m.drawn) / most, 1.0));
    *out++ = shown(std::min(real(m.charged) / most, 1.0));
    out = see_caps(out);
    out = see_budgets(out);
    const i64 n = m.layout().n_nodes, highest = m.layout().highest;
    for (const i64 nodes : {m.free_off, static_cast<i64>(m.switching.size()), n - s.free})
      *out++ = shown(real(nodes) / real(n));
    *out = shown(highest > 0 ? real(m.ceiling) / real(highest) : 1.0);
  }

 private:
  static double real(i64 x) { return static_cast<double>(x); }
  static float shown(double x) { return static_cast<float>(x); }
  static float soon(i64 seconds) { return shown(real(seconds) / (real(seconds) + hour)); }

  // The lowest cap in force, and the first to come.
  float* see_caps(float* out) const {
    double lowest = most, following = most;
    i64 over = 0, begin = forever;
    for (const Cap& cap : m.own_caps()) {
      if (cap.announced > s.time || cap.end <= s.time) continue;
      if (cap.start <= s.time && real(cap.mw) < lowest)
        lowest = real(cap.mw), over = cap.end - s.time;
      else if (s.time < cap.start && cap.start < begin)
        following = real(cap.mw), begin = cap.start;
    }
    *out++ = shown(std::min(lowest / most, 1.0));
    *out++ = soon(over);
    *out++ = shown(std::min(following / most, 1.0));
    *out++ = begin == forever ? 1.0F : soon(begin - s.time);
    return out;
  }
  // Of the present budget, or else of the next.
  float* see_budgets(float* out) const {
    const Budget* found = nullptr;
    for (const Budget& b : m.budgets)
      if (b.end > s.time && b.start < (found ? found->start : forever)) found = &b;
    if (!found) return std::copy_n(std::array{1.0F, 0.0F, 1.0F, 0.0F, 1.0F}.begin(), 5, out);
    const double total = std::max(real(found->mj), 1.0), left = real(found->mj - found->spent);
    const double seconds = real(found->end - std::max(s.time, found->start));
    const i64 past = std::max(s.time - found->start, i64{0});
    const double saved = real(found->mean_mw) * real(past) - real(found->spent);
    *out++ = shown(std::max(left / total, 0.0));
    *out++ = shown(std::min(std::max(saved / total, -1.0), 1.0));
    *out++ = shown(std::min(std::max(left / (seconds * most), 0.0), 1.0));
    *out++ = shown(seconds / real(found->end - found->start));
    *out++ = soon(std::max(found->start - s.time, i64{0}));
    return out;
  }
};

inline void show_power(const Simulator<Limited>& s, i64 at, float* out) {
  const LimitedLayout& l = s.machine.layout();
  if (l.limited) return PowerObserver(s).observe(out + at);
  const auto share = static_cast<double>(s.machine.free_on) / static_cast<double>(l.n_nodes);
  out[Observer<Limited>::on_at] = static_cast<float>(share);
}

}  // namespace hpc
