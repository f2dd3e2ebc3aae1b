// One environment: actions, simulation between them, and sums for rewards.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../places/one_simulation.hpp"
#include "any_environment.hpp"
#include "moving.hpp"
#include "observe.hpp"
#include "of_episode.hpp"
#include "pairs.hpp"
#include "stopped.hpp"

namespace hpc {

template <Machine M>
class Environment final : public AnyEnvironment {
  Row row;
  std::shared_ptr<OneSimulation<M>> made_;  // of the jobs of the episode
  std::shared_ptr<OneSimulation<M>> before_;  // in whose place that came within this step
  std::shared_ptr<OfShapes> shaped_;  // its model, if jobs get shapes and no copy has it
  std::shared_ptr<const OwnAccounts> next_accounts_;  // of the next episode
  Remembered remembered_;
  static constexpr bool has_nodes = std::is_same_v<M, Nodes>;
  static constexpr bool is_limited = std::is_same_v<M, Limited>;
  static constexpr bool shares = Shareable<M>;  // an action is a pair of jobs
  Limits next_limits_;

 public:
  Environment(std::shared_ptr<const Table> of, const Row& r)
      : AnyEnvironment(std::move(of)), row(r), remembered_(table, r.size_of_window) {}

  std::shared_ptr<AnySimulation> simulation() const override {
    if (!made_) throw NoEpisode();
    return made_;
  }
  void lose_episode() override { made_ = nullptr; }
  void limit(const Limits& limits) override { next_limits_ = limits; }
  std::size_t bytes() const override {
    std::size_t total = sizeof *this;
    if (!made_) return total;
    for (const OrderedList* list : {&sim().running, &sim().queue.jobs, &sim().queue.by_key()})
      total += index(list->size_in_blocks()) * sizeof(Block);
    total += sim().machine.bytes() + remembered_.rows.bytes();
    const bool ordered = settings().orders();
    return total + sim().progress.size() * (sizeof(Progress) + (ordered ? sizeof(Score) : 0)) +
           sim().past.size() * sizeof(i64);
  }
  const Episode& episode() const override { return now(); }
  void begin_with(std::shared_ptr<const OwnAccounts> own) override { next_accounts_ = std::move(own); }
  bool is_beginning(Todo task) const override {
    return task == Todo::begin || (task == Todo::step && now().ended == 1 && settings().autoreset == 1);
  }
  void check(Todo task) const override {
    const Episode& p = now();
    const bool begins = is_beginning(task);
    if (!begins && !made_) throw NoEpisode();
    const i64 n = table.n_of_episodes();
    if (begins && (p.next_jobs < 1 || p.next_start < 0 || p.next_start + p.next_jobs > n))
      throw std::invalid_argument("the next episode has no such jobs");
    if (begins && table.model->accounts &&
        (!next_accounts_ || static_cast<i64>(next_accounts_->owner.size()) != p.next_jobs))
      throw std::invalid_argument("the next episode has no such accounts");
    if (begins && table.before && table.before->number > p.next_jobs)
      throw std::invalid_argument("the next episode has no such beginning");
  }

  void go_on(Todo task, const Places& places) override {
    const Outputs& out = places.out;
    before_ = nullptr;
    std::optional<Alone::Inside> alone;  // of `before_`, if another takes the place
    if (made_) alone.emplace(*made_), made_->begin_call();
    if (task != Todo::show) step(task, *places.chosen, places.numbers, out);
    if (made_) show(out);
  }

  // The simulation must be of the episode of the row.
  void put(const AnySimulation& other) override {
    const auto* own = dynamic_cast<const OneSimulation<M>*>(&other);
    const Model& all = *table.model;
    if (!own || own->model().n_jobs != jobs() || now().start < 0 ||
        now().start + jobs() > table.n_of_episodes() || own->model().rules != all.rules ||
        own->model().capacity != all.capacity ||
        own->model().learning.has_value() != all.learning.has_value())
      throw std::invalid_argument("simulation: of another machine, other rules or other jobs");
    made_ = std::make_shared<OneSimulation<M>>(*own);
    shaped_ = nullptr;
    remembered_.rows.forget();
  }
  void hide(const Row& of_hidden, const AnySimulation& hidden) const override {
    Environment(log, of_hidden).go_on_hidden(hidden);
  }
  std::shared_ptr<AnySimulation> anew(std::shared_ptr<const OwnAccounts> accounts) const override {
    return made_anew(std::move(accounts));
  }

 private:
  i64 jobs() const { return now().jobs; }  // of the episode
  std::shared_ptr<OneSimulation<M>> made_anew(std::shared_ptr<const OwnAccounts> accounts) const {
    if (now().start < 0 || jobs() < 0 || now().start + jobs() > table.n_of_episodes())
      throw std::invalid_argument("the episode has no such jobs");
    if (table.model->accounts && (!accounts || static_cast<i64>(accounts->owner.size()) != jobs()))
      throw std::invalid_argument("the episode has no such accounts");
    if (settings().kind == Kind::shapes) return std::make_shared<OneSimulation<M>>(model_of(shaped()));
    return std::make_shared<OneSimulation<M>>(model_of(std::make_shared<OfEpisode>(
        table.model, std::move(accounts), now().start, jobs(), next_limits_)));
  }
  static std::shared_ptr<const Model> model_of(const std::shared_ptr<OfEpisode>& told) { return {told, &told->model}; }
  // The model of the episode with the shapes that its jobs have been given.
  std::shared_ptr<OfShapes> shaped() const {
    auto told = std::make_shared<OfShapes>(table, now().start, jobs());
    for (i64 j = 0; j < jobs(); ++j)
      if (row.shapes[j] >= 0) told->shape(j, std::min(row.shapes[j], settings().shapes - 1));
    return told;
  }
  // Continue from a simulation that hides the future: the row becomes that of an episode of the
  // known jobs. Rewards are as if one step had led from the beginning to now.
  void go_on_hidden(const AnySimulation& hidden) {
    Episode& p = now();
    p.jobs = hidden.model().n_jobs;
    put(hidden);
    p.hides = 1;
    p.until = forever;  // until the last known job that counts has started
    p.counting = std::min(p.counting, p.jobs);
    p.counts_first = std::min(p.counts_first, p.counting);  // none if all are still to come
    p.open = 0;
    for (i64 j = p.counts_first; j < p.counting; ++j) p.open += waits(j);
    pay_at_once();
  }
  // Whether this task begins another episode.
  // Begin the episode of the row, with an empty machine.
  Simulator<M>& begin_empty() {
    const i64 n = jobs();
    if (settings().kind == Kind::shapes) {
      std::fill_n(row.shapes, n, i64{-1});
      shaped_ = shaped();
      replace(std::make_shared<OneSimulation<M>>(model_of(shaped_)));
    } else {
      replace(made_anew(next_accounts_));
    }
    remembered_.rows.forget();
    if (!settings().orders()) return sim();
    auto& scores = made_->answers_.ranked(sim())[0];
    scores.own(n);
    // jobs outside the window follow those within, by submission
    const double first = table.settings.kind == Kind::ordering ? -inf : 0.0;
    for (i64 j = 0; j < n; ++j) scores.at(j) = {first, inf};
    return sim();
  }
  // Let another simulation go on. A step is inside the one that it begins with, up to its end.
  void replace(std::shared_ptr<OneSimulation<M>> by) {
    if (!before_) before_ = std::move(made_);
    made_ = std::move(by);
  }
  Episode& now() const { return *row.episode; }
  Simulator<M>& sim() { return made_->sim_; }
  const Simulator<M>& sim() const { return made_->sim_; }
  const Settings& settings() const { return table.settings; }
  Pairs pairs() { return {table, row, sim()}; }

  void step(Todo task, i64 chosen, const double* numbers, const Outputs& out) {
    Episode& p = now();
    const bool begins = is_beginning(task);
    // an episode that goes by without a question has one step, which decides nothing
    p.unasked = !begins && p.resets == 1 && asks() && !is_asked();
    p.resets = begins;
    p.noted = p.gone = 0;
    std::fill_n(row.terms, n_terms, 0.0);
    if (begins) begin();
    // without questions, it waits for the weights of the first step
    if (!begins || asks()) act(begins, chosen, numbers);
    else if (table.before) account();  // running and waiting jobs are shown in any case
    if (task == Todo::step) {  // otherwise the last step has reported the episode before
      std::fill_n(out.rewards, table.shapes.size(), 0.0);
      *out.truncated = !begins && p.ended == 1 && p.open > 0;
      *out.ended = !begins && p.ended == 1 && p.open == 0;
    }
    // what has happened before the first decision is no reward
    if (!begins && p.unasked == 0) reward(out);
    for (std::size_t t = 0; t < n_terms; ++t) row.totals[t] += row.terms[t];
  }
  bool asks() const { return !settings().orders() || table.model->rules.asks; }
  bool is_asked() const {
    return settings().kind == Kind::shapes ? now().about >= 0 : sim().asked != Asked::nothing;
  }
  // Whether jobs may start before the first question: those of a rule, or starving ones.
  bool starts_unasked() const {
    const bool serves_who_starves =
        settings().kind == Kind::selection && table.model->rules.threshold >= 0;
    return settings().follows() || settings().kind == Kind::shapes || serves_who_starves;
  }

  void begin() {
    Episode& p = now();
    p.start = p.next_start, p.jobs = p.next_jobs;
    p.counting = p.next_counting, p.open = p.next_open, p.until = p.next_until;
    p.of_slice = p.next_of_slice, p.counts_first = p.next_counts_first;
    p.truncated = p.visible = p.cursor = p.counted = p.fresh = p.ended = 0;
    p.noted = p.unpaid = p.gone = p.hides = p.unasked = 0;
    p.span = p.next_span, p.span_from = p.next_span_from, p.horizon = p.next_horizon;
    p.user = p.next_user, p.about = -1;
    begin_empty();
    p.begin = sim().time;
    if (table.before) {
      const Before& before = *table.before;
      p.begin = std::max(p.begin, before.time);
      if (auto& learner = made_->answers_.learner)
        learner->know(before.memory, before.ratios, before.terms, before.sums);
      if constexpr (has_nodes)
        if (!before.drawn.empty()) sim().machine.draw_on(before.drawn);
      if (before.time >= 0) made_->begin(before.told());
      else sim().past = before.history;
    }
    if (sim().arrivals) p.begin = sim().time = sim().arrivals->next();
    if (sim().stops) stopped_jobs().begin();
    p.last_time = p.stop = p.begin;
    *row.counted_j = 0;
    std::fill_n(row.busy_until, table.n_booked(), i64{0});
    set_norms(counting());
    std::copy_n(row.next_scales, table.shapes.size(), row.scales);
    std::fill_n(row.totals, n_terms, 0.0);
    std::fill_n(row.owed, n_terms, 0.0);
    if constexpr (shares) pairs().set_norms();
  }
  // Whether a job counts in rewards: of the slice and, if an agent submits those of a user, one of these.
  bool counts(i64 j) const {
    const Episode& p = now();
    return p.counts(j) && (settings().kind != Kind::shapes || table.users[index(p.start + j)] == p.user);
  }
  // How many jobs do; those of a user are counted here, and are all that an episode is open for.
  i64 counting() {
    Episode& p = now();
    if (settings().kind != Kind::shapes) return p.of_slice > 0 ? p.of_slice : p.jobs - sim().started;
    i64 own = 0, running = 0;
    for (i64 j = p.counts_first; j < p.counting; ++j) own += counts(j), running += counts(j) && !waits(j);
    p.open -= p.counting - p.counts_first - own;
    return std::max(own - running, i64{1});
  }
  // Factors from sums to rewards, for a number of jobs to be decided about.
  void set_norms(i64 decided) {
    const Episode& p = now();
    const double full = table.watts[0] * static_cast<double>(settings().processors);
    const i64 last = p.jobs > 0 ? sim().job(p.jobs - 1).submit : p.begin;
    const auto number = static_cast<double>(decided), span = static_cast<double>(std::max(last - p.begin, i64{0}) + 1);
    row.norms[bsld] = -1.0 / number;
    row.norms[waited] = -1.0 / (3600.0 * number);
    row.norms[max_wait] = -1.0 / 3600.0;
    row.norms[energy] = -1.0 / std::max(full * span, 1.0);
    if (settings().kind == Kind::shapes) row.norms[elapsed] = row.norms[waited];
  }

  // Apply the action, and go to the next decision; to the first one if the episode begins.
  void act(bool begins, i64 chosen, const double* numbers) {
    Episode& p = now();
    if constexpr (shares) {
      const auto go_on = [&] { simulate(forever); };
      begins ? go_on() : pairs().act(chosen, numbers, go_on);
      return account();
    }
    if (settings().kind == Kind::shapes) {
      if (!begins) submit(chosen);
      return go_to_submission(begins);
    }
    const bool weighs = settings().kind == Kind::weights && !begins;
    if (!begins && settings().kind == Kind::selection) {
      if (chosen == row.size_of_window && sim().machine.switch_idle_off(sim().time)) {
        p.fresh = 0;
        return;
      }
      // an invalid choice serves the first job
      if (p.visible > 0) select(0 <= chosen && chosen < p.visible ? chosen : 0);
    } else if (!begins && settings().follows()) {
      if (sim().asked == Asked::job) sim().selected = said(chosen);
    } else if (!begins && settings().kind == Kind::ordering) {
      order(numbers);
    }
    for (bool goes_on = true, again = false; goes_on; again = true) {
      const i64 last = weighs ? next_stop() : forever;
      const i64 stop = std::min(last, p.until);
      if (weighs) weigh(numbers, stop);
      if constexpr (is_limited)
        if (!begins) control(sim().machine, settings(), numbers, sim().time, stop, again);
      simulate(stop);
      if (stop == p.until && p.until < forever && sim().asked == Asked::nothing) {
        // a reset cannot end an episode: the first step will, whatever its action
        p.truncated = !begins;
        sim().time = std::max(sim().time, p.until);
        goes_on = false;
      } else {
        goes_on = last < forever && !interval_is_over(stop);
      }
      if (goes_on) continue;
      account();
      if (settings().skips == 1 && !begins && is_forced()) {
        goes_on = true;
        if (settings().kind == Kind::selection) select(0);
        if (settings().kind == Kind::ordering) order(std::array{0.0}.data());
      }
    }
  }
  // Submit the job in question with its k-th shape. Copies of the simulation keep the jobs that they know.
  void submit(i64 k) {
    const i64 j = now().about;
    if (j < 0) return;
    row.shapes[j] = std::clamp(k, i64{0}, settings().shapes - 1);
    constexpr i64 here = 2;  // this environment and its simulation
    if (shaped_ && shaped_.use_count() == here) {
      shaped_->shape(j, row.shapes[j]);
    } else {
      shaped_ = shaped();
      replace(made_->with(model_of(shaped_)));
    }
    const Model& model = made_->model();
    if (model.predicted) sim().of(j).predicted = model.predicted[j];
    sim().queue.scores[0].renew(j, model.scores), sim().queue.scores[1].renew(j, model.second_scores);
  }
  // Go to the second before the next job of the user is submitted.
  void go_to_submission(bool begins) {
    Episode& p = now();
    i64 j = std::max({p.counts_first, p.about + 1, sim().next});
    while (j < p.counting && !counts(j)) ++j;
    p.about = j < p.counting && sim().job(j).submit <= p.until ? j : -1;
    const i64 last = p.about < 0 ? p.until : sim().job(p.about).submit - 1;
    simulate(last);
    if (last < forever) sim().time = std::max(sim().time, last);
    p.truncated = p.about < 0 && p.until < forever && !begins;
    account();
  }
  // The job to start: one of the window after the head; or, by action 0, the proposed job.
  i64 said(i64 chosen) const {
    const bool proposed = settings().kind == Kind::proposals;
    const bool starts = proposed ? chosen == 0 : 0 < chosen && chosen < now().visible;
    return starts ? row.window[chosen] : sim().none_now;
  }
  // Let scores order the visible jobs in this pass.
  void order(const double* numbers) {
    if (!in_log_order(sim())) order_as_seen(sim(), row, numbers);
    else
      for (i64 i = 0; i < now().visible; ++i) sim().queue.scores[0].at(row.window[i]).score = numbers[i];
    sim().queue.forget_bounds();
  }
  void select(i64 i) { sim().selected = nearest_allowed(sim(), row, row.window[i]); }
  StoppedJobs<Simulator<M>> stopped_jobs() { return {sim(), row, settings().paid}; }
  void simulate(i64 stop) {
    made_->go_on();
    made_->advance(stop, forever);
  }
  // Whether only one job can be selected or ordered, and there is no other action. Weights may also
  // matter to running jobs that can be stopped, and to jobs that come while they hold.
  bool is_forced() const {
    if (settings().kind == Kind::weights)
      return now().ended == 0 && settings().interval == Interval::passes && !sim().stops && queued(sim()) == 1;
    if (settings().kind == Kind::ordering) return now().ended == 0 && now().visible == 1;
    const bool restricted = table.model->restricted;
    const i64 choices = restricted ? std::max(count_allowed(sim(), row), i64{1}) : now().visible;
    if (now().ended == 1 || choices != 1) return false;
    return settings().by_action == 0 || !some_idle();
  }
  bool some_idle() const { return sim().machine.some_idle(sim().time); }

  // -- weights, and how long they hold -----------------------------------------------------------

  // [s] the last second of the next weights.
  i64 next_stop() {
    Episode& p = now();
    if (all_started(sim())) return forever;
    if (settings().interval == Interval::seconds) return p.stop + settings().interval_length - 1;
    if (settings().interval != Interval::submissions) return forever;
    // before that many more jobs have been submitted
    const i64 behind = sim().next + settings().interval_length;
    p.stop = behind >= p.jobs ? forever
                              : std::max(sim().job(sim().next).submit, sim().job(behind).submit - 1);
    return p.stop;
  }
  // Whether new weights are asked for; otherwise the present ones continue.
  bool interval_is_over(i64 stop) {
    Episode& p = now();
    // once all jobs have started, the weights hold to the end
    if (settings().interval == Interval::submissions) return !all_started(sim());
    p.stop = stop + 1;
    if (all_started(sim())) return false;
    sim().time = std::max(sim().time, stop);  // all events up to this second are done
    if (queued(sim()) > 0) return true;
    // nothing waits: weights would be useless, and the time of the question would reveal the future
    const auto& coming = sim().arrivals;
    const i64 next = coming ? std::max(std::min(coming->next(), sim().next_end()), sim().time)
                            : sim().job(sim().next).submit;
    const i64 length = settings().interval_length;
    p.stop += std::max(floor_div(next - p.stop, length), i64{0}) * length;
    return false;
  }
  // Give scores to the queued jobs and to jobs that come until `stop` [s].
  void weigh(const double* weights, i64 stop) {
    if (!made_->model().features) return made_->answers_.weigh(sim(), weights);
    const Features& features = *made_->model().features;
    std::size_t n = features.waiting.size();
    for (const i64 place : features.by_usage) n += place >= 0;
    double total = 0;
    for (std::size_t k = 0; k < n; ++k) total += std::abs(weights[k]);
    weigh_jobs(*made_, {weights, n}, total, [&](auto weigh_one) {
      const auto listed = [&](const Entry& e) { weigh_one(e.job); };
      sim().queue.jobs.each(listed);
      if (sim().stops) sim().each_running_job(listed);  // running jobs may wait again in this pass
      // if asked at each pass, jobs are weighed once they are queued
      if (settings().interval == Interval::passes) return;
      // if not in the order of the log, any job may come, or come again, at any time
      const bool moves = sim().arrivals.has_value();
      i64 j = in_log_order(sim()) ? sim().next - sim().arrived : 0;
      for (; j < now().jobs && (moves || sim().job(j).submit <= stop); ++j) weigh_one(j);
    });
    if (auto& shares = made_->answers_.shares) shares->begin(sim());
  }

  // -- sums for rewards --------------------------------------------------------------------------

  // Note the jobs started since the last decision, their rewards, and the visible jobs.
  void account() {
    Episode& p = now();
    if (settings().follows()) {
      p.fresh = find_started(sim(), row);
      p.visible = see_question();
    } else if (in_log_order(sim())) {
      look();
    } else {
      if (sim().arrivals) p.fresh = find_started(sim(), row);
      p.visible = see_queue(sim(), row, size_of_head());
    }
    p.counted = sim().started;
    for (i64 i = p.noted; i < p.fresh; ++i) p.open -= counts(row.fresh[i]);
    if (sim().stops) stopped_jobs().count_open();
    p.ended = p.open == 0 || p.truncated == 1;
    if (starts_unasked() && p.resets == 1) p.ended = 0;  // a reset cannot end an episode
    pay();
    p.noted = p.fresh;
  }
  // Add the terms of jobs that have started or ended since then, and the energy.
  void pay() {
    if constexpr (is_limited) {
      pay_under_limits(sim(), row);
    } else if constexpr (shares) {
      pairs().pay();
    } else {
      double seconds = pay_started();
      if (sim().stops) seconds += stopped_jobs().pay();
      else pay_later();
      row.terms[energy] += table.node_watts.empty() ? joules(seconds) : joules_on_nodes();
    }
  }
  // Compute the sums and reward factors of an episode as if one step had led from its beginning to
  // now. What the last step has reported stays.
  void pay_at_once() {
    Episode step = now();
    step.noted = step.unpaid = step.gone = step.resets = 0;
    step.last_time = step.begin;
    std::vector<i64> started, unpaid(index(step.jobs)), gone(index(step.jobs));
    std::vector<double> gone_bsld(index(step.jobs));
    i64 ran = 0;  // at the beginning of the episode
    for (i64 j = 0; j < step.jobs; ++j) {
      if (waits(j)) continue;
      started.push_back(j);
      ran += sim().of(j).start < step.begin;
    }
    step.fresh = static_cast<i64>(started.size());
    set_norms(step.of_slice > 0 ? step.of_slice : std::max(step.jobs - ran, i64{1}));
    std::fill_n(row.totals, n_terms, 0.0);
    std::fill_n(row.owed, n_terms, 0.0);
    *row.counted_j = 0;
    std::array<double, n_terms> terms{};
    Row own = row;
    own.episode = &step, own.fresh = started.data(), own.terms = terms.data();
    own.unpaid = unpaid.data(), own.gone = gone.data(), own.gone_bsld = gone_bsld.data();
    Environment once(log, own);
    once.made_ = made_;
    once.pay();
    std::copy_n(terms.data(), n_terms, row.totals);
  }
  bool waits(i64 j) const { return sim().of(j).start < 0; }
  i64 size_of_head() const {
    return settings().split == 1 ? (row.size_of_window + 1) / 2 : row.size_of_window;
  }
  // Fill the window with the head and the jobs that may start before it, or with the proposed job
  // and other waiting jobs; return their number, 0 if nothing is asked.
  i64 see_question() {
    Episode& p = now();
    while (p.cursor < sim().next && !waits(p.cursor)) ++p.cursor;
    if (sim().asked != Asked::job) return 0;
    const bool proposed = settings().kind == Kind::proposals;
    i64 seen = 0;
    row.window[seen++] = proposed ? sim().about : sim().head;
    const auto note = [&](i64 j) {
      if (seen < row.size_of_window && j != row.window[0]) row.window[seen++] = j;
    };
    if (proposed && in_log_order(sim())) {
      for (i64 j = p.cursor; j < sim().next && seen < row.size_of_window; ++j)
        if (waits(j)) note(j);
    } else {
      std::vector<i64> line = proposed ? as_they_came(sim()) : sim().candidates;
      std::ranges::sort(line, {}, [&](i64 j) { return sim().queue.place(j); });
      std::ranges::for_each(line, note);
    }
    return seen;
  }
  void look() {
    Episode& p = now();
    const i64 room = row.size_of_window, head = size_of_head();
    i64 found = p.noted, seen = 0;
    const i64 missing = sim().started - p.counted + found;
    i64* const tail = std::lower_bound(row.window, row.window + p.visible, p.cursor);  // which is rebuilt below
    const i64* next = row.window;
    for (; next < tail && found < missing; ++next)
      if (waits(*next)) row.window[seen++] = *next;
      else row.fresh[found++] = *next;
    seen = std::copy(next, const_cast<const i64*>(tail), row.window + seen) - row.window;  // all others wait
    for (i64 j = p.cursor; found < missing; ++j)
      if (!waits(j) && sim().of(j).number >= p.counted) row.fresh[found++] = j;
    for (; seen < head && p.cursor < sim().next; ++p.cursor)
      if (waits(p.cursor)) row.window[seen++] = p.cursor;
    if (head < room) {  // then the jobs that came last, in order
      i64 first = room;
      for (i64 j = sim().next - 1; j >= p.cursor && first > seen; --j)
        if (waits(j)) row.window[--first] = j;
      std::copy(row.window + first, row.window + room, row.window + seen);
      seen += room - first;
    }
    p.fresh = found;
    p.visible = seen;
  }
  // Pay started jobs; return their processor seconds.
  double pay_started() {
    Episode& p = now();
    double processor_seconds = 0;
    for (i64 i = p.noted; i < p.fresh; ++i) {
      const i64 j = row.fresh[i], begun = sim().of(j).start;
      const Job job = sim().as_it_runs(j);
      i64 seconds = job.run;
      if (begun < p.begin) {  // it ran before: it counts only for the machine, from then on
        seconds -= p.begin - begun;
      } else if (counts(j)) {
        pay_max_wait(begun - job.submit);
        if (settings().paid == Paid::at_end) row.unpaid[p.unpaid++] = j;
        else pay_job(j, job, begun);
      }
      processor_seconds += static_cast<double>(job.processors) * static_cast<double>(seconds);
    }
    return processor_seconds;
  }
  void pay_job(i64 j, const Job& job, i64 start) {
    row.terms[bsld] += bsld_of(job, start);
    row.terms[waited] += static_cast<double>(start - job.submit);
    if (settings().kind == Kind::shapes) row.terms[elapsed] += static_cast<double>(turnaround(j, job, start));
  }
  // [s] From submission to end. A job that its request ends waits, and runs to its end, once more.
  i64 turnaround(i64 j, const Job& job, i64 start) const {
    const i64 wait = start - job.submit, of_episodes = now().start + j, k = row.shapes[j];
    const i64 work = table.work[index(k < 0 ? of_episodes : table.row_of(of_episodes, k))];
    return wait + job.run + (work > job.run ? wait + work : 0);
  }
  void pay_max_wait(i64 wait) {
    const double longest = row.totals[max_wait] + row.terms[max_wait];
    row.terms[max_wait] += std::max(static_cast<double>(wait) - longest, 0.0);
  }
  // Pay what is not paid at a start: at ends, while jobs wait, at the end of the episode.
  void pay_later() {
    const Episode& p = now();
    if (settings().paid == Paid::at_end) pay_ended();
    if (p.truncated == 1)  // waiting jobs are paid as if they started now
      for (i64 j = p.counts_first; j < std::min(p.counting, sim().next); ++j)
        if (waits(j) && counts(j)) {
          pay_job(j, sim().as_it_runs(j), sim().time);
          pay_max_wait(sim().time - sim().job(j).submit);
        }
    if (settings().paid == Paid::while_waiting) pay_waiting();
  }
  void pay_ended() {
    Episode& p = now();
    i64 kept = 0;
    for (i64 i = 0; i < p.unpaid; ++i) {
      const i64 j = row.unpaid[i], begun = sim().of(j).start;
      const Job job = sim().as_it_runs(j);
      if (p.ended == 1 || begun + job.run <= sim().time) {
        pay_job(j, job, begun);
        row.gone[p.gone] = j;
        row.gone_bsld[p.gone++] = bsld_of(job, begun);
      } else {
        row.unpaid[kept++] = j;
      }
    }
    p.unpaid = kept;
  }
  // The growth of slowdowns and waits so far, as if waiting jobs started now.
  void pay_waiting() {
    double slowdowns = 0, wait = 0, turned = 0;
    if (now().ended == 0)
      sim().queue.jobs.each([&](const Entry& e) {
        if (!counts(e.job)) return;
        const Job job = sim().as_it_runs(e.job);
        slowdowns += bsld_of(job, sim().time);
        wait += static_cast<double>(sim().time - job.submit);
        if (settings().kind == Kind::shapes) turned += static_cast<double>(turnaround(e.job, job, sim().time));
      });
    const auto owe = [&](Term term, double now) { row.terms[term] += now - std::exchange(row.owed[term], now); };
    owe(bsld, slowdowns), owe(waited, wait);
    if (settings().kind == Kind::shapes) owe(elapsed, turned);
  }
  // Energy of the started jobs, and of idle processors meanwhile.
  double joules(double processor_seconds) {
    Episode& p = now();
    const double passed = static_cast<double>(sim().time - p.last_time);
    p.last_time = sim().time;
    const auto& [busy_w, idle_w, off_w, switching_off_w, switching_on_w] = table.watts;
    if (!table.model->rules.managed) {
      const double idle = passed * static_cast<double>(settings().processors) - processor_seconds;
      return idle * idle_w + processor_seconds * busy_w;
    }
    const IdleSeconds spent = sim().machine.idle_seconds(sim().time);
    double total = static_cast<double>(spent.idle) * idle_w + static_cast<double>(spent.off) * off_w;
    total += static_cast<double>(spent.switching_off) * switching_off_w;
    total += static_cast<double>(spent.switching_on) * switching_on_w;
    const double more = total - *row.counted_j + processor_seconds * busy_w;
    *row.counted_j = total;
    return more;
  }
  // The same by nodes: a node is busy as a whole while it has any job, until the last end of its
  // jobs so far: so jobs are counted in the order of their starts.
  double joules_on_nodes() {
    Episode& p = now();
    const i64 before = p.counted - p.fresh;
    const auto place_of = [&](i64 i) { return sim().of(row.fresh[i]).number - before; };
    for (i64 i = 0; i < p.fresh; ++i)
      while (place_of(i) != i) std::swap(row.fresh[i], row.fresh[place_of(i)]);
    double total = static_cast<double>(sim().time - p.last_time) * table.still_w;
    p.last_time = sim().time;
    if constexpr (has_nodes)
      for (i64 i = p.noted; i < p.fresh; ++i) {
        const i64 j = row.fresh[i], start = sim().of(j).start, end = start + sim().run_time(j);
        const i64 begun = std::max(start, p.begin), cores = sim().machine.layout().demand(j)[0];
        for (const Cell& c : sim().machine.cells(j)) {
          const double* watts = &table.node_watts[2 * index(c.node)];
          i64& until = row.busy_until[c.node], seconds = c.units * cores * (end - begun);
          if (watts[1] > 0) {
            seconds = std::max(end - std::max(until, begun), i64{0});
            until = std::max(until, end);
          }
          total += static_cast<double>(seconds) * watts[0];
        }
      }
    return total;
  }
  void reward(const Outputs& out) {
    for (std::size_t k = 0; k < table.shapes.size(); ++k) {
      const double* weights = &table.reward_weights[k * n_terms];
      double value = 0;
      for (std::size_t t = 0; t < n_terms; ++t) value += weights[t] * row.terms[t] * row.norms[t];
      value *= row.scales[k];
      out.rewards[k] = table.shapes[k] == 1 ? step_of_log(weights, value, row.scales[k]) : value;
    }
  }
  // The change, by a step, of minus the logarithm of 1 + the sum of the episode.
  double step_of_log(const double* weights, double value, double scale) const {
    double total = 0;
    for (std::size_t t = 0; t < n_terms; ++t) total -= weights[t] * row.totals[t] * row.norms[t];
    total *= scale;
    return elementary::log1p(total) - elementary::log1p(total - value);
  }

  void show(const Outputs& out) {
    const Episode& p = now();
    const i64 room = row.size_of_window;
    if constexpr (shares) pairs().show(out);
    else show_queue(out);
    out.told[0] = sim().time;
    out.told[1] = p.visible;
    i64* behind = std::copy_n(row.window, p.visible, out.told + 2);
    std::memset(behind, -1, sizeof(i64) * index(room - p.visible));  // sets all bytes to ones
    std::copy_n(row.terms, n_terms, out.terms);
    see_end(out.observation + settings().seen_end);
  }
  // How much of the episode is over, as far as it is known beforehand, and the time up to its horizon.
  void see_end(float* out) const {
    const Episode& p = now();
    const i64 passed = std::min(std::max(sim().time - p.span_from, i64{0}), p.span);
    i64 started = p.counting - p.counts_first - p.open;
    if (settings().kind == Kind::shapes) {  // `open` is of the user's jobs, of which nobody knows how many come
      started = 0;
      for (i64 j = p.counts_first; j < std::min(p.counting, sim().next); ++j) started += !waits(j);
    }
    const i64 done = p.span_from < 0 ? started : passed;
    out[0] = p.span > 0 ? static_cast<float>(static_cast<double>(done) / static_cast<double>(p.span)) : 0.0F;
    out[1] = p.horizon < forever ? squashed(std::max(p.horizon - sim().time, i64{0})) : 1.0F;
  }
  void show_queue(const Outputs& out) {
    const Episode& p = now();
    Observer<M>(table, row, *made_, remembered_).observe(out.observation, out.is_lent);
    if constexpr (is_limited) show_power(sim(), settings().seen_power, out.observation);
    if (settings().kind == Kind::shapes) show_shapes(out.observation);
    const i64 room = row.size_of_window;
    if (settings().by_action == 1)
      out.mask[room] = p.ended == 0 && some_idle();
    std::fill_n(out.mask, p.visible, std::int8_t{1});
    std::fill(out.mask + p.visible, out.mask + room, std::int8_t{0});
    if (table.model->restricted && settings().kind == Kind::selection) {
      mask_barred(sim(), row, out.mask);
      const auto columns = static_cast<i64>(table.codes.size());
      mask_barred(sim(), row, out.observation + Observer<M>::jobs_at + room * columns);
    }
  }
  // What visible jobs ask for that have been given shapes; the shapes of the job in question; the user.
  void show_shapes(float* out) {
    const Episode& p = now();
    const std::size_t width = table.codes.size();
    const auto asked = [&](i64 place, i64 job, i64 k) {
      float* to = out + Observer<M>::jobs_at + index(place) * width;
      const float* from = &table.still[index(table.row_of(p.start + job, k)) * width];
      for (std::size_t c = 0; c < width; ++c)
        if (table.is_still(c)) to[c] = from[c];
    };
    for (i64 i = 0; i < p.visible; ++i)
      if (const i64 j = row.window[i]; row.shapes[j] >= 0) asked(i, j, row.shapes[j]);
    float* to = out + settings().seen_shapes;
    const auto machine = static_cast<float>(settings().processors);
    for (i64 k = 0; k < settings().shapes; ++k) {
      const Job job = p.about < 0 ? Job{} : table.model->jobs[table.row_of(p.start + p.about, k)];
      *to++ = static_cast<float>(job.processors) / machine;
      *to++ = squashed(job.requested);
      *to++ = p.about >= 0 && job.processors <= sim().free;
    }
    see_user(to);
  }
  // How many jobs of the user wait and run, n / (n + 8), and the mean share of their requests that those
  // ran which have ended, 1 if none has.
  void see_user(float* out) const {
    i64 waiting = 0, running = 0, ended = 0;
    double shares = 0;
    for (i64 j = 0; j < sim().next; ++j) {
      if (table.users[index(now().start + j)] != now().user) continue;
      if (waits(j)) {
        ++waiting;
      } else if (const Job job = sim().as_it_runs(j); sim().of(j).start + job.run > sim().time) {
        ++running;
      } else {
        ++ended;
        shares += static_cast<double>(job.run) / static_cast<double>(job.requested);
      }
    }
    const auto some = [](i64 n) { return static_cast<float>(n) / static_cast<float>(n + 8); };
    out[0] = some(waiting), out[1] = some(running);
    out[2] = ended > 0 ? static_cast<float>(shares / static_cast<double>(ended)) : 1.0F;
  }
};

}  // namespace hpc
