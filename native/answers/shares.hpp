// Orders of the queue by decayed usage, and priorities from it.
//
// When a job ends, it is charged to its account, and to all accounts above. Before each submission,
// and before a pass after ends, the ended jobs are charged, and changed scores of waiting jobs are
// rewritten.
//
// Usage does not decay step by step: a charge at time t is multiplied by 2^((t - epoch) /
// half-life), so that all usage keeps its proportions over time. The epoch moves by whole
// half-lives before numbers become too large; that changes no digit, but usage older than a
// thousand half-lives is lost. Charges of the present second are kept apart and unscaled: sums of
// whole processor seconds are exact, and so are ties.
//
// With a period, as in Slurm, jobs are charged at its multiples, those that run too, and scores change
// only then: at the end of that second, so that who comes in it sees those of before. Usage is that of
// the last multiple, and decays from each to the next: see `charge_periods`.
#pragma once
#include <vector>

#include "../base/elementary.hpp"
#include "../core/queue.hpp"
#include "fair_tree.hpp"

namespace hpc {

class Shares {
 public:
  std::array<Column<Score>, 2> base;            // scores without usage
  std::array<std::vector<double>, 2> used;      // by account, times 2^((time - epoch) / half-life)
  std::array<std::vector<double>, 2> recent;    // charged at `book.open_at`
  std::array<std::vector<double>, 2> terms;     // by leaf, added to scores in the two orders
  std::array<Usage, 2> kinds;                   // how the two orders use usage
  std::array<std::array<double, 2>, 2> weights; // of the two priorities, in the two orders
  Book book;

  Shares(const Model& model)
      : base{model.scores, model.second_scores},
        used(model.accounts->used),
        recent(model.accounts->recent),
        kinds(model.accounts->kinds),
        weights(model.accounts->weights),
        book(model.accounts->book),
        model_(&model),
        stamp_(index(book.leaves)) {
    if (book.half_life > 0) {
      // of a second, as Slurm has it: 1 - 0.693 / half-life, about 2^(-1 / half-life)
      const double half_life = static_cast<double>(book.half_life) / static_cast<double>(book.ticks);
      log2_of_second_ = elementary::log2(1.0 - 0.693 / half_life);
    }
    for (std::size_t k = 0; k < 2; ++k) {
      terms[k].resize(index(book.leaves));
      places_[k].resize(index(book.leaves));
    }
  }

  void keep(Archive& a) {
    a(base, used, recent, terms, kinds, weights, book, greatest_, places_, stamp_);
    first_.clear(), n_pieces_ = 0;
  }
  // Whether it has charged no more runs than have ended, and were lost.
  bool is_within(i64 n_ended, i64 n_lost) const {
    return is_between(book.charged, 0, n_ended) && is_between(book.open, 0, book.charged) &&
           is_between(book.stopped, 0, n_lost) && book.period == told().book.period &&
           (book.period == 0 || book.counted % book.period == 0) && book.leaves == static_cast<i64>(stamp_.size());
  }
  // Charge the jobs of the model, which ended before a simulation, one after the other.
  void charge_past(const i64* run, const i64* end) {  // [s] by job; ends ascend
    for (i64 j = 0; j < model_->n_jobs; ++j) {
      if (by_period()) charge_past_by_period(j, end[j] - run[j], end[j]);
      else charge_run(j, end[j], static_cast<double>(run[j]));
    }
    if (!by_period()) settle_all();
  }
  // Before the first event: by period, charge what the jobs have run that run already.
  template <class S>
  void charge_running(S& s) {
    if (!by_period()) return;
    s.each_running_job([&](const Entry& e) {
      charge_between(e.job, {s.of(e.job).start, forever}, s.used(e.job).drawn, {before_all, book.counted});
    });
  }
  // Give the waiting jobs their scores when a simulation begins.
  template <class S>
  void begin(S& s) {
    write_all(s);
  }
  // Before the first event: let weights decide how the first order uses usage, like a fixed policy.
  // `others`: there are weights of other features.
  void weigh(double by_cpu, double by_energy, bool others) {
    weights[0] = {by_cpu, by_energy};
    if (by_cpu == 0 && by_energy == 0) kinds[0] = Usage::unaware;
    else if (others || (by_cpu != 0 && by_energy != 0)) kinds[0] = Usage::mixed;
    else kinds[0] = by_cpu != 0 ? Usage::by_cpu : Usage::by_energy;
    if (kinds[0] == Usage::unaware) std::fill(terms[0].begin(), terms[0].end(), 0.0);
  }
  // Charge ended jobs, and rewrite scores. `learns`: learned run times may have changed scores
  // without usage.
  template <class S>
  void count(S& s, bool learns) {
    if (by_period()) charge_periods(s);
    else charge_ends(s);
    bool mixed = kinds[0] == Usage::mixed || kinds[1] == Usage::mixed;
    mixed = mixed && !book.in_a_tree && !by_period();  // ranks change only with a charge
    const bool renewed = learns && s.asked == Asked::renewal;
    if (renewed || book.version != book.written || (mixed && book.written_at != s.time))
      write_all(s);
    if (s.arrivals)
      for (const i64 j : s.arrivals->line_up(s.time, s.log)) write(s, j, of_recent());
    // the next job to be submitted: its prediction is known by now
    if (s.asked == Asked::prediction) write(s, s.about, of_recent());
  }

 private:
  static constexpr std::size_t kinds_of_usage = 2;  // processors, energy
  static constexpr i64 most_half_lives = 256;       // between the epoch and now

  const Model* model_;
  std::array<double, 2> greatest_{};  // the present maximum of usage / share, if needed
  std::array<std::vector<double>, 2> places_;  // by leaf, in a tree
  std::vector<i64> stamp_;                     // by leaf, when its terms were computed
  std::vector<i64> first_;  // by job that was suspended: its first start, else -1; of so many pieces
  i64 n_pieces_ = 0;
  double log2_of_second_ = 0;                  // of what is left of usage after a second, by period
  FairTree tree_;
  std::vector<double> usage_;  // by account, for the tree

  const Accounts& told() const { return *model_->accounts; }
  template <class F>
  void each_above(i64 j, F f) const {
    for (i64 a = told().owner[j]; a >= 0; a = told().parent[index(a)]) f(index(a));
  }

  // Charge the jobs that have ended.
  template <class S>
  void charge_ends(const S& s) {
    const auto n = static_cast<i64>(s.log.size());
    if (book.charged < n) {
      charge_lost(s, s.used(s.log[index(book.charged)]).end);
      move_epoch(s.time);
      for (; book.charged < n; ++book.charged) {
        charge_lost(s, s.used(s.log[index(book.charged)]).end);
        charge(s, book.charged);
      }
      ++book.version;
    }
    charge_lost(s, forever);
  }

  // -- by period --
  // Times of a run, or from one multiple of the period to another.
  struct Between {
    i64 begin, end;
  };
  static constexpr i64 before_all = -forever;

  bool by_period() const { return book.period > 0; }
  i64 multiple_before(i64 time) const { return floor_div(time, book.period) * book.period; }
  double in_seconds(i64 span) const {
    return static_cast<double>(span) / static_cast<double>(book.ticks);
  }
  // What is left of 1 after a time.
  double left_after(i64 span) const { return elementary::exp2(in_seconds(span) * log2_of_second_); }
  // What a time adds that is charged at its end, or where a job ends, at the multiple before.
  double weighed(i64 span) const { return in_seconds(span) * left_after(span); }

  // Charge all runs up to the last multiple.
  template <class S>
  void charge_periods(S& s) {
    const Between times{book.counted, multiple_before(s.time - 1)};
    if (times.end <= times.begin) return;
    const double left = left_after(times.end - times.begin);
    for (std::size_t what = 0; what < kinds_of_usage; ++what)
      for (std::size_t a = 0; a < used[what].size(); ++a) {
        used[what][a] = (used[what][a] + recent[what][a]) * left;
        recent[what][a] = 0;
      }
    const bool suspends = s.stops && !s.stops->charges_at_once();
    if (suspends) note_first(s);
    const auto n = static_cast<i64>(s.log.size()), n_lost = static_cast<i64>(s.lost.size());
    for (i64 k = book.charged; k < n; ++k) {
      const i64 j = s.log[index(k)];
      const auto [end, drawn] = s.used(j);
      charge_between(j, {first_start(s, j), end}, drawn, times);
      if (end <= times.end && k == book.charged) ++book.charged;
    }
    for (i64 k = book.stopped; k < n_lost && !suspends; ++k) {
      const LostRun& run = s.lost[index(k)];
      charge_between(run.job, {run.start, run.end}, 1.0, times);
      if (run.end <= times.end && k == book.stopped) ++book.stopped;
    }
    const auto charge_held = [&](i64 j) {
      charge_between(j, {first_start(s, j), forever}, s.used(j).drawn, times);
    };
    s.each_running_job([&](const Entry& e) { charge_held(e.job); });
    if (suspends)
      for (const auto& each : s.stops->suspended) charge_held(each.job);
    book.counted = times.end;
    ++book.version;
  }
  // As in Slurm, a job that is suspended is charged as if it ran.
  template <class S>
  void note_first(const S& s) {
    first_.resize(index(model_->n_jobs), -1);
    for (; n_pieces_ < static_cast<i64>(s.lost.size()); ++n_pieces_) {
      const LostRun& piece = s.lost[index(n_pieces_)];
      if (i64& first = first_[index(piece.job)]; first < 0) first = piece.start;
    }
  }
  template <class S>
  i64 first_start(const S& s, i64 j) const {
    return first_.empty() || first_[index(j)] < 0 ? s.of(j).start : first_[index(j)];
  }
  // Charge what a run adds between two multiples. At each after whose second it runs, its seconds since
  // the one before, or since its start, with the decay of so long a time. As it ends, its last seconds
  // likewise, and they then decay as if they had been charged at the multiple before.
  void charge_between(i64 j, Between run, double drawn, Between times) {
    const i64 period = book.period, begin = std::max(run.begin, times.begin), end = std::min(run.end, times.end);
    if (begin >= end) return;
    const i64 first = multiple_before(begin) + period, goes_on = run.end > end ? 1 : 0;
    double seconds = 0;
    if (end < first + 1 - goes_on) {
      seconds = weighed(end - begin) * left_after(times.end - first + period);
    } else {
      const i64 whole = (end - 1 + goes_on - first) / period, last = first + whole * period;
      seconds = weighed(first - begin) * left_after(times.end - first);
      seconds += weighed(period) * left_after(times.end - last) * sum_of_powers(whole);
      seconds += weighed(end - last) * left_after(times.end - last);
    }
    add(used, j, seconds, drawn);
  }
  // 1 + x + x^2 + ..., n terms, of what is left after a period.
  double sum_of_powers(i64 n) const {
    const double log = in_seconds(book.period) * log2_of_second_ * std::numbers::ln2;
    if (log == 0) return static_cast<double>(n);
    return elementary::expm1(static_cast<double>(n) * log) / elementary::expm1(log);
  }
  // The same of a run before the simulation. What it had run since the last multiple comes at the next.
  void charge_past_by_period(i64 j, i64 start, i64 end) {
    charge_between(j, {start, end}, 1.0, {before_all, book.counted});
    const i64 begin = std::max(start, book.counted);
    if (begin < end) add(recent, j, weighed(end - begin), 1.0);
  }
  void add(std::array<std::vector<double>, 2>& to, i64 j, double seconds, double drawn) {
    each_above(j, [&](std::size_t a) {
      to[0][a] += told().rate[0][j] * seconds;
      to[1][a] += told().rate[1][j] * seconds * drawn;
    });
  }

  // -- as jobs end --
  // Charge the k-th ended job to its accounts.
  template <class S>
  void charge(const S& s, i64 k) {
    const i64 j = s.log[index(k)];
    const auto [end, drawn] = s.used(j);
    if (end != book.open_at) {
      settle(s, k);
      book.open = k, book.open_at = end;
    }
    // whole seconds stay whole: their sums are exact
    const double seconds = static_cast<double>(end - s.of(j).start) / static_cast<double>(book.ticks);
    each_above(j, [&](std::size_t a) {
      recent[0][a] += told().rate[0][j] * seconds;
      recent[1][a] += told().rate[1][j] * seconds * drawn;
    });
  }
  // Charge a run that is not in the list of ended jobs.
  void charge_run(i64 j, i64 end, double seconds) {
    if (end != book.open_at) {
      settle_all();
      move_epoch(end);
      book.open_at = end;
    }
    each_above(j, [&](std::size_t a) {
      for (std::size_t what = 0; what < kinds_of_usage; ++what)
        recent[what][a] += told().rate[what][j] * seconds;
    });
  }
  // Charge the lost runs that ended before a time, and are not charged yet: runs preempted in a
  // pass come before all jobs that have ended since.
  template <class S>
  void charge_lost(const S& s, i64 before) {
    if (s.stops && !s.stops->charges_at_once()) return;
    const auto n = static_cast<i64>(s.lost.size());
    const auto is_due = [&] {
      return book.stopped < n && s.lost[index(book.stopped)].end < before;
    };
    if (!is_due()) return;
    settle(s, book.charged);
    for (; is_due(); ++book.stopped) {
      const LostRun& run = s.lost[index(book.stopped)];
      charge_run(run.job, run.end,
                 static_cast<double>(run.end - run.start) / static_cast<double>(book.ticks));
    }
    settle_all();
    book.open = book.charged;
    ++book.version;
  }
  // Add the charges at `open_at` to the earlier ones.
  void settle_all() {
    const double factor = growth(book.open_at);
    for (std::size_t what = 0; what < kinds_of_usage; ++what)
      for (std::size_t a = 0; a < used[what].size(); ++a) {
        used[what][a] += recent[what][a] * factor;
        recent[what][a] = 0;
      }
  }
  // Add the charges at `open_at`, of the jobs before `end`, to the earlier ones.
  template <class S>
  void settle(const S& s, i64 end) {
    const double factor = growth(book.open_at);
    for (i64 k = book.open; k < end; ++k)
      each_above(s.log[index(k)], [&](std::size_t a) {
        for (std::size_t what = 0; what < kinds_of_usage; ++what) {
          used[what][a] += recent[what][a] * factor;
          recent[what][a] = 0;
        }
      });
  }
  // The factor of recent charges beside earlier ones; by period they are seen at the next multiple.
  double of_recent() const { return by_period() ? 0 : growth(book.open_at); }
  // 2^((time - epoch) / half-life)
  double growth(i64 time) const {
    if (book.half_life == 0 || by_period()) return 1;
    const i64 whole = floor_div(time - book.epoch, book.half_life);
    const i64 rest = time - book.epoch - whole * book.half_life;
    const double part = static_cast<double>(rest) / static_cast<double>(book.half_life);
    return times_two_to(elementary::exp2(part), whole);
  }
  // Before the first end, and after millions of half-lives, exponents are unbounded.
  static double times_two_to(double number, i64 exponent) {
    return std::ldexp(number, static_cast<int>(std::clamp(exponent, i64{-4'000}, i64{1'000})));
  }
  // Move the epoch to at most `most_half_lives` before a time.
  void move_epoch(i64 time) {
    if (book.half_life == 0) return;
    const i64 whole = floor_div(time - book.epoch, book.half_life);
    if (whole <= most_half_lives) return;
    const double factor = times_two_to(1.0, -whole);
    for (auto& kind : used)
      for (double& usage : kind) usage *= factor;
    book.epoch += whole * book.half_life;
  }

  // Give all waiting jobs their present scores.
  template <class S>
  void write_all(S& s) {
    s.interrupts.count(s.queue.jobs.size_in_blocks());
    ++book.stamp;
    book.written = book.version, book.written_at = s.time;
    const double factor = of_recent();
    if (kinds[0] == Usage::by_both || kinds[1] == Usage::by_both)
      for (std::size_t what = 0; what < kinds_of_usage; ++what) {
        greatest_[what] = 0;
        for (std::size_t leaf = 0; leaf < stamp_.size(); ++leaf)
          greatest_[what] = std::max(greatest_[what], usage_for_share(what, leaf, factor));
      }
    if (book.in_a_tree) place_all(factor);
    s.queue.jobs.each([&](const Entry& e) { write(s, e.job, factor); });
    // running jobs may wait again: stopped in the next pass, or when their node fails
    if (s.stops || s.outages) s.each_running_job([&](const Entry& e) { write(s, e.job, factor); });
    for (i64 j = s.next - s.arrived; j < s.next; ++j) write(s, j, factor);
    s.queue.forget_bounds();
  }
  // Rank users by each kind of usage that an order uses.
  void place_all(double factor) {
    for (std::size_t what = 0; what < kinds_of_usage; ++what) {
      if (weights[0][what] == 0 && weights[1][what] == 0) continue;
      usage_.resize(told().parent.size());
      for (std::size_t a = 0; a < usage_.size(); ++a)
        usage_[a] = used[what][a] + recent[what][a] * factor;
      tree_.rank(told().parent, told().part, usage_, places_[what]);
    }
  }
  // Give a job its present score; `factor`: of recent charges.
  template <class S>
  void write(S& s, i64 j, double factor) {
    const std::size_t leaf = index(told().owner[j]);
    if (stamp_[leaf] != book.stamp) {
      stamp_[leaf] = book.stamp;
      for (std::size_t half = 0; half < 2; ++half)
        if (kinds[half] != Usage::unaware) terms[half][leaf] = term(half, leaf, by_period() ? book.counted : s.time, factor);
    }
    // for an order without usage the terms are 0
    for (std::size_t half = 0; half < 2; ++half)
      if (model_->is_scored(half))
        s.queue.scores[half].at(j) = {base[half][j].score + terms[half][leaf], base[half][j].patience};
  }
  // What an account's usage adds to the scores of its jobs in an order.
  double term(std::size_t half, std::size_t leaf, i64 time, double factor) const {
    const Usage kind = kinds[half];
    double total = 0;
    for (std::size_t what = 0; what < kinds_of_usage; ++what) {
      const double weight = weights[half][what];
      if (weight == 0) continue;
      const double sign = weight > 0 ? 1 : -1;
      if (book.in_a_tree) {
        total += places_[what][leaf] * (kind == Usage::mixed ? weight : sign);
        continue;
      }
      const double usage = usage_for_share(what, leaf, factor);
      if (kind == Usage::mixed)
        total += weight * priority(what, usage, time);
      else if (kind != Usage::by_both)
        total -= sign * usage;
      else if (greatest_[what] > 0)
        total -= usage / greatest_[what];
    }
    return rounded(total);
  }
  // The usage of a leaf, including its part of the usage above, divided by its share. For an
  // account with the part p of its parent: its own usage x (1 - p) + that of the parent x p; at the
  // top, its own usage.
  double usage_for_share(std::size_t what, std::size_t leaf, double factor) const {
    double total = 0, weight = 1;
    for (std::size_t a = leaf;; a = index(told().parent[a])) {
      const double own = used[what][a] + recent[what][a] * factor;
      if (told().parent[a] < 0) return (total + weight * own) / told().share[leaf];
      total += weight * (1.0 - told().part[a]) * own;
      weight *= told().part[a];
    }
  }
  // 2^(-U / S / damping) of an account whose usage U is divided by its share S.
  double priority(std::size_t what, double usage, i64 time) const {
    if (usage == 0) return 1;
    const auto ticks = static_cast<double>(book.ticks);
    double passed = static_cast<double>(time - book.begin) / ticks;
    if (book.half_life > 0) {
      // the available usage, decayed in the same way
      const double in_half_life = static_cast<double>(book.half_life) / ticks / std::numbers::ln2;
      passed = -in_half_life * elementary::expm1(-passed / in_half_life);
    }
    const double normalised = usage / growth(time) / (told().capacity[what] * passed);
    return elementary::exp2(-normalised / told().damping);
  }
};

}  // namespace hpc
