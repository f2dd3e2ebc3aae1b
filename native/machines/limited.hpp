// A machine under limits of power and energy: whole nodes are given to jobs, which run at the
// highest level that limits allow, and nodes are switched off and on.
//
// It is built in layers, each on those before it: state, nodes, budgets, caps, starts, reservations
// (limited/*.hpp). It has events of its own: limits begin and end, meters are read, nodes finish
// switching. So it says when passes are due (`next_change`), and applies limits before each pass
// (`begin_pass`). As a switched node or an expired limit may let any job start, all passes are full
// ones.
//
// Levels are fixed while a job runs. Sums are of integers, so that their order does not matter; a
// debug build recomputes both powers after each pass.
#pragma once
#include "limited/controls.hpp"

namespace hpc {

class Limited : public ControlledNodes {
 public:
  static constexpr bool alike = false, has_levels = true;

  Limited(const Model& model, i64 begin)
      : ControlledNodes(model, *model.limited, begin), predicted_(index(model.n_jobs)) {}

  void keep(Archive& a) {
    LimitedState::keep(a);
    a(tried_, left_, predicted_, gone_, in_pass_);
    a.check_jobs(gone_);
  }
  const LimitedLayout& layout() const { return *layout_; }
  // [s] when limits or nodes need a pass without an event of a job; without limits nodes need none,
  // and are switched between passes.
  i64 next_change() const { return layout_->limited ? next_own() : forever; }
  i64 next_idle() const { return layout_->limited ? forever : next_own(); }
  bool fits(i64 j, i64 needed, i64 room) { return needed <= room && find_level(j, false, 0); }
  bool finds_place(i64 j, i64 room) { return fits(j, width(j), room); }
  void note_predicted(i64 j, i64 seconds) { predicted_[index(j)] = seconds; }  // of a waiting job
  // On the nodes, and at the level, that were found for it just before.
  Span begin(i64 j, i64, i64 predicted, i64 run) {
    start(j, predicted, run);
    const LimitedTask& own = task(j);
    return {own.ready, own.ready + at_its_level(j, predicted), own.end};
  }
  // All nodes are on at that time.
  bool resumes(i64 j, i64 since, i64, std::span<const i64>, std::span<const i64>) {
    now = since;
    tried_ = Tried{};
    tried_.level = layout_->highest, tried_.ready = now;
    return layout_->contiguous ? pick_row(j, 0, 0, 0, tried_.all_on) : pick(j, 0, tried_.all_on);
  }
  // Energy drawn before is not counted.
  void begins(i64 time) {
    begin_ = time;
    now = time - 1;
    for (LimitedNode& node : nodes) node.since = time;
  }
  // The run time of a started job, from that at the highest level [s].
  i64 at_its_level(i64 j, i64 seconds) const { return slowed(j, task(j).level, seconds); }
  // The inverse, rounded down; for a job that was cut short.
  i64 unslowed(i64 j, i64 seconds) const {
    const i64 by = slowdown(j, task(j).level);
    return seconds / by * million + seconds % by * million / by;
  }
  void give(i64, i64 j, i64) { gone_.push_back(j); }
  void find_shadow(i64 j, i64 missing, const OrderedList& running, Shadow& shadow) {
    plan_for(j, missing, running, model_->rules.strict);
    shadow = {left_.shadow, 0};
  }
  Bounds bounds(i64, i64 room, const Shadow&) const {
    const i64 seconds = left_.shadow - now;
    if (!layout_->contiguous) return {widest(room), left_.nodes, seconds};
    return {std::min(widest(room), free_.longest_row(0, 0)),
            free_.longest_row(left_.block_from, left_.block_to), seconds};
  }
  bool passes(i64 j, bool, Shadow&) { return find_level(j, true, predicted_[index(j)]); }
  bool looks_at_who_waits() const { return true; }
  bool backfills_more() const { return layout_->use == BudgetUse::energy_bud; }
  Used used(i64 j, i64) const {
    const i64 full = drawn_mw(j, layout_->highest), own = task(j).drawn_mw;
    return {task(j).end, full > 0 ? static_cast<double>(own) / static_cast<double>(full) : 1.0};
  }

  // Processors that a job asks for, and those of the machine.
  i64 processors(i64 j) const { return layout_->processors[j]; }
  i64 processors() const { return layout_->n_processors; }
  // Charged if all nodes are busy [mW].
  i64 greatest_mw() const {
    return n_nodes() * layout_->busy_mw[index(layout_->highest)] + components_mw_;
  }
  // All caps except the control.
  std::span<const Cap> own_caps() const {
    return std::span(caps).first(caps.size() - layout_->controlled);
  }
  // The true energy since the last call, up to a time [s] [J].
  double take_joules(i64 time) {
    count_to(std::max(time, now));
    return static_cast<double>(std::exchange(used_mj, 0)) / 1000.0;
  }
  std::size_t bytes() const {
    return nodes.size() * sizeof(LimitedNode) + tasks.size() * sizeof(LimitedTask) +
           cells_.size() * sizeof(std::int32_t);
  }

  // Switch idle nodes at a time [s] without a pass.
  void idle_up_to(i64 time) {
    catch_up(time);
    switch_off_idle();
  }
  template <class S>
  bool begin_pass(S& s) {
    if (std::exchange(in_pass_, true)) return false;
    catch_up(s.time);
    announce();
    switch_for_control();
    switch_for_caps();
    kill_for_caps(s);
    look();
    if (!s.queue.empty() || s.arrived > 0 || s.arrivals) weigh();
    return s.changed = true;
  }
  void end_pass() {
    in_pass_ = false;
    switch_off_idle();
    assert(charged == recounted(true) && drawn == recounted(false));
  }

 private:
  std::vector<i64> predicted_;  // [s] by waiting job
  std::vector<i64> gone_;       // ended jobs that have not given their nodes back yet
  bool in_pass_ = false;        // the pass has begun, and may stop at a question

  // Do what is due on nodes up to a time [s], and for their jobs.
  void catch_up(i64 time) {
    count_to(time);
    end_switching();
    begin_waiting();
    release_gone();
    wake_late();
  }
  // Free the nodes of the jobs that have ended since the last pass.
  void release_gone() {
    for (const i64 j : gone_) {
      release(j);
      forecast(j, -1);
    }
    gone_.clear();
  }
  // For each killing cap that begins now, or is announced now if that is later, kill the jobs
  // started last until it holds.
  template <class S>
  void kill_for_caps(S& s) {
    for (const Cap& cap : caps) {
      if (!cap.kills || !cap.known || now != std::max(cap.start, cap.announced)) continue;
      while (charged > cap.mw && now < cap.end) {
        const Place last = last_started(s);
        if (last.block < 0) break;
        task(s.running.at(last.block).entries[index(last.entry)].job).end = now;
        s.kill(last);
        ++kills;
        release_gone();
        switch_for_caps();
      }
    }
  }
  // The place of the job that started last, before now.
  template <class S>
  Place last_started(const S& s) const {
    Place found{-1, -1};
    std::int32_t last = -1;
    for (int k = 0; k < s.running.size_in_blocks(); ++k) {
      const Block& block = s.running.at(k);
      for (int i = 0; i < block.count; ++i) {
        const Progress& p = s.of(block.entries[index(i)].job);
        if (p.start < now && p.number > last) last = p.number, found = {k, i};
      }
    }
    return found;
  }
  // The charged or the true power, recomputed from nodes and jobs.
  i64 recounted(bool is_charged) const {
    i64 power = components_mw_ - saved_mw;
    for (const LimitedNode& node : nodes) {
      const bool works = node.job >= 0 && task(node.job).ready <= now;
      if (is_charged ? node.job < 0 : !works)
        power += is_charged ? charged_for(node.state) : drawn_by(node.state);
    }
    for (const i64 j : holders) {
      const bool works = task(j).ready <= now;
      if (is_charged) power += works ? task(j).work_mw : task(j).wait_mw;
      else if (works) power += task(j).drawn_mw;
    }
    return power;
  }
};
static_assert(Machine<Limited>);

}  // namespace hpc
