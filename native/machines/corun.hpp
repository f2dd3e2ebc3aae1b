// A machine of nodes that jobs share: which nodes a job may take, and which it takes.
//
// Jobs on a node speed each other up or slow each other down, so ends move as neighbours come and
// go. The head's reservation is a set of nodes at the shadow time. A job that starts before the
// head must not delay a job that is to end by then beyond that time; if it runs past the shadow
// time itself, it takes only nodes that the head can spare.
#pragma once
#include <array>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "corun/places.hpp"
#include "corun/rates.hpp"
#include "../core/queue.hpp"

namespace hpc {

class Corun : public SharedRates {
 public:
  static constexpr bool alike = false;

  Corun(const Model& model, i64)
      : SharedRates(model),
        friends_(index(told_->n_codes)),
        refused_(3 * index(told_->n_codes + 1)),
        later_(index(told_->n_nodes)),
        counts_(later_.size()),
        level_(later_.size()),
        bounds_(index(told_->n_codes + 3)),
        waiting_(friends_.size()) {}

  void keep(Archive& a) {
    SharedRates::keep(a);
    a(beside, now_, gone_, joules_, busy_, friends_, refused_, head_, shadow_, plan_, later_, counts_,
      slack_, delays_, beside_head_, waiting_);
    a.check_jobs(gone_), a.check_job(beside, nobody), a.check_job(head_, -1);
  }
  i64 width(i64 j) const { return model_->jobs[j].processors; }
  bool fits(i64 j, i64, i64) { return choose(j, freely); }
  bool finds_place(i64 j, i64) { return choose(j, freely); }
  void waits(i64 j) { count_waiting(code(j), 1); }
  // The job takes the nodes that were chosen for it last.
  Span begin(i64 j, i64 now, i64 predicted, i64 run) {
    take(j);
    if (told_->draws) busy_ += told_->draws->processors[j];
    begin_at_rate(j, now, predicted, run);
    count_waiting(code(j), -1);
    beside_head_ = unknown;
    return {now, task(j).predicted_end, task(j).end};
  }
  bool begun(i64 j, i64 now, OrderedList& running) {
    renew_neighbours(j, now, running);
    renew_readers(now, running);
    return true;
  }
  void give(i64, i64 j, i64) { gone_.push_back(j); }
  // With its usual power, whatever its speed.
  Used used(i64 j, i64) const { return {task(j).end, 1.0}; }
  // Ended jobs leave their nodes, and the ends of others move.
  void settle(i64 now, OrderedList& running) {
    const i64 passed = now - std::exchange(now_, now);
    if (told_->draws) joules_ += real(passed) / real(model_->ticks) * drawn_w();
    for (const i64 j : gone_) {
      if (told_->draws) busy_ -= told_->draws->processors[j];
      end_at_rate(j);
    }
    for (const i64 j : gone_) renew_neighbours(j, now, running);
    renew_readers(now, running);
    gone_.clear();
  }

  // Find when the head can start, on which nodes, and how many of them it can spare.
  void find_shadow(i64 j, i64, const OrderedList& running, Shadow& shadow) {
    ++version_;
    delays_ = false;
    const i64 needed = told_->nodes[j];
    i64 found = begin_plan(j), at = now_;
    for (int k = 0; k < running.size_in_blocks(); ++k)
      for (const Entry& e : running.at(k)) {
        // all jobs that leave at the shadow time count
        if (found >= needed && e.key > at) {
          k = running.size_in_blocks();
          break;
        }
        at = e.key;
        found += leave(e.job);
      }
    shadow.time = shadow_ = at;
    slack_ = found - needed;
    beside_head_ = unknown;
  }
  // When a job finds room if each running job takes as long as predicted, whatever its speed: at the
  // earliest when the first of them ends.
  i64 room_by(i64 j, const OrderedList& running, const std::vector<Progress>& of) {
    i64 found = begin_plan(j);
    std::vector<std::pair<i64, i64>> ends;
    running.each([&](const Entry& e) {
      const Progress& p = of[index(e.job)];
      ends.emplace_back(p.start + p.predicted, e.job);
    });
    std::ranges::sort(ends);
    for (const auto& [end, job] : ends) {
      found += leave(job);
      if (found >= told_->nodes[j]) return std::max(end, now_);
    }
    return now_;
  }
  // Parts of a job; parts of a job that runs past the shadow time; the longest run time that can
  // end by then at the highest speed.
  Bounds bounds(i64 now, i64 room, const Shadow& shadow) const {
    if (told_->fills || model_->is_scored(1)) return {room, nothing, nothing};
    if (beside_head_ == unknown) beside_head_ = most_beside_head();
    return {room, beside_head_,
            last_up_to(real(shadow.time - now) * belief_.greatest)};
  }
  // Before the head; bounds tell if a job may run past the shadow time, speedups if it does.
  bool passes(i64 j, bool, Shadow& shadow) {
    if (told_->fills) return choose(j, freely);
    const double predicted = real(model_->predicted[j]);
    const double most = with_files(j, told_->is_compact(j) ? 1.0 : believed_alone(j));
    const bool strict = model_->rules.strict;
    const i64 last = shadow.time - strict;
    if (now_ + ticks_for(predicted, most) <= last) {
      if (!choose(j, briefly)) return false;
      if (now_ + ticks_for(predicted, rate_there(j)) <= last) return true;
    }
    if (strict || !choose(j, beside_head)) return false;
    reserve_beside(j);
    return true;
  }

  // If jobs are selected: the running job whose nodes the next one takes first.
  i64 beside = nobody;
  i64 n_idle() const { return idle_.count(); }  // nodes without a job
  i64 n_open() const { return open_.count(); }  // nodes with a job and a free part
  bool has_room(i64 j) const { return with_room(j) >= told_->nodes[j]; }
  // The number of other waiting jobs with which a waiting job would gain.
  i64 friends_of(i64 j) const {
    return friends_[index(code(j))] - belief_.good[pair(code(j), code(j))];
  }
  // The number of nodes of a running job with a free part.
  i64 room_beside(i64 j) const {
    const auto has_part = [&](i64 node) { return free_[index(node)] > 0; };
    return told_->is_part(j) ? std::ranges::count_if(cells(j), has_part) : 0;
  }
  // The running jobs with a free part beside them, in the order of their starts.
  std::vector<i64> neighbours(const OrderedList& running, const std::vector<Progress>& of) const {
    std::vector<i64> found;
    running.each([&](const Entry& e) {
      if (room_beside(e.job) > 0) found.push_back(e.job);
    });
    std::ranges::sort(found, {}, [&](i64 j) { return of[index(j)].number; });
    return found;
  }
  // Energy that jobs have drawn beyond an idle machine, from the last call to the last pass.
  double take_joules() { return std::exchange(joules_, 0.0); }

  bool fills() const { return told_->fills; }
  i64 first_come() const { return told_->first_come; }
  bool weighs() const { return told_->weighs(); }
  // Whether a node was excluded since the shadow was found, as a job on it would end too late.
  bool delays() const { return delays_; }
  // The job of a queue with the highest score, -1 if there is none. With `room`, only jobs that may
  // find room, without the head; if `room` is -1, all jobs. The score is a sum of
  // - fit: nodes that a job needs, over nodes with room for it; -1 if these are too few;
  // - popularity: other waiting jobs with which it would gain, over all others;
  // - shortness: the shortest requested time of all waiting jobs, over its own.
  // Jobs for which `bars(job)` holds are passed over, but count as waiting.
  template <class F>
  i64 best_of(const Queue& queue, i64 room, i64 head, F bars) const {
    const i64 n_waiting = queue.jobs.size();
    i64 shortest = nothing;
    if (told_->weights[2] != 0)
      queue.jobs.each([&](const Entry& e) { shortest = std::min(shortest, requested(e.job)); });
    i64 best = -1;
    double highest = -inf;
    queue.jobs.each([&](const Entry& e) {
      if (room >= 0 && (e.job == head || e.width > room || was_refused(e.job, freely))) return;
      if (bars(e.job)) return;
      const double score = score_of(e.job, n_waiting, shortest);
      const bool ties = score == highest && best >= 0;
      if (!(score > highest || (ties && queue.place(e.job) < queue.place(best)))) return;
      highest = score, best = e.job;
    });
    return best;
  }
  // Start jobs by another belief from now on.
  void believe(const Belief& belief) {
    if (belief.alone.size() != belief_.alone.size())
      throw std::invalid_argument("believe: one value for each code");
    belief_ = belief;
    std::fill(friends_.begin(), friends_.end(), 0);
    for (i64 c = 0; c < told_->n_codes; ++c) {
      const i64 n = std::exchange(waiting_[index(c)], 0);
      count_waiting(c, n);
    }
    ++version_;
  }

 private:
  // What a start must not disturb: nothing; neighbours that are to end by the shadow time; these
  // and the head's nodes.
  enum Guard : std::size_t { freely, briefly, beside_head };
  struct Refused {  // the least number of nodes that was refused, and the version
    i64 nodes = 0, version = 0;
  };
  static constexpr i64 unknown = -1;

  i64 now_ = 0;
  std::vector<i64> gone_;         // jobs that have ended since the last pass, in order
  double joules_ = 0;
  i64 busy_ = 0;                  // processors of running jobs, if energy is counted
  std::vector<i64> friends_;      // (C,) waiting jobs that a code gains with
  std::vector<Refused> refused_;  // (3, C + 1) by guard and by code, C: whole nodes
  i64 head_ = -1, shadow_ = 0, plan_ = 0;
  std::vector<i64> later_, counts_;
  i64 slack_ = 0;         // nodes available for the head beyond its need
  bool delays_ = false;
  mutable i64 beside_head_ = unknown;  // most parts for a job that runs past the shadow time
  std::vector<i64> level_;        // (N,) of available nodes: less is better
  std::vector<i64> found_, ranked_;  // available nodes by number, and by level
  std::vector<i64> bounds_;       // (C + 3,) nodes of each level
  std::vector<i64> waiting_;      // (C,) jobs

  static double real(i64 whole) { return static_cast<double>(whole); }
  // Power of jobs beyond an idle machine [W]; nodes by number, jobs on each in order of arrival.
  double drawn_w() const {
    const Draws& draws = *told_->draws;
    if (draws.node_w.empty()) return real(busy_) * draws.processor_w;
    double total = 0;
    for (i64 node = 0; node < told_->n_nodes; ++node) {
      const double* of_node = &draws.node_w[index(2 * node)];
      for (const i64 j : on(node)) {
        if (of_node[1] == 0) total += real(cores_on(j, node)) * of_node[0];
        else if (j == on(node).front()) total += of_node[0];
      }
    }
    return total;
  }
  // The number of cores that a job has on one of its nodes: the rest, on the last node.
  i64 cores_on(i64 j, i64 node) const {
    const i64 each = told_->draws->cores[index(told_->placement[j])];
    if (cells(j).back() != node) return each;
    return told_->draws->processors[j] - (told_->nodes[j] - 1) * each;
  }
  i64 requested(i64 j) const { return model_->jobs[j].requested; }
  void count_waiting(i64 c, i64 change) {
    waiting_[index(c)] += change;
    for (i64 other = 0; other < told_->n_codes; ++other)
      friends_[index(other)] += change * belief_.good[pair(other, c)];
  }
  // The greatest whole number that is not above `most` as a double.
  static i64 last_up_to(double most) {
    if (most >= static_cast<double>(nothing)) return nothing;
    auto found = static_cast<i64>(std::floor(most));
    const double spacing = std::nextafter(most, inf) - most;
    // some whole numbers that are no doubles are rounded down to it
    const auto half = static_cast<i64>(std::max(spacing, 0.0) / 2);
    if (half > 0) found += static_cast<double>(found + half) <= most ? half : half - 1;
    return found;
  }
  double score_of(i64 j, i64 n_waiting, i64 shortest) const {
    const auto [fit, popularity, shortness] = told_->weights;
    double score = 0;
    if (fit != 0) {
      const i64 room = with_room(j), nodes = told_->nodes[j];
      score += fit * (nodes <= room ? real(nodes) / real(room) : -1.0);
    }
    if (popularity != 0 && n_waiting > 1)
      score += popularity * (real(friends_of(j)) / real(n_waiting - 1));
    if (shortness != 0) score += shortness * (real(shortest) / real(requested(j)));
    return score;
  }

  // The number of nodes where a job may find room, whichever jobs are there.
  i64 with_room(i64 j) const { return idle_.count() + (told_->is_part(j) ? open_.count() : 0); }
  // The index of jobs like this one in `refused_`: those that may take the same nodes.
  std::size_t like(i64 j, Guard guard) const {
    const i64 kind = told_->is_part(j) ? code(j) : told_->n_codes;
    return guard * index(told_->n_codes + 1) + index(kind);
  }
  bool was_refused(i64 j, Guard guard) const {
    const i64 nodes = told_->nodes[j];
    const Refused& before = refused_[like(j, guard)];
    return with_room(j) < nodes || (before.version == version_ && nodes >= before.nodes);
  }
  // Write the nodes that a job would take into its cells; return whether they suffice.
  bool choose(i64 j, Guard guard) {
    if (was_refused(j, guard)) return false;
    if (told_->is_part(j)) {
      gather(j, guard);
      rank_found();
    } else {
      gather_idle(j, guard);
    }
    i64 slack = slack_, left = told_->nodes[j];
    std::int32_t* cell = &cells_[index(task(j).first)];
    for (const i64 node : ranked_) {
      if (guard == beside_head && costs_head(j, node)) {
        if (slack == 0) continue;
        --slack;
      }
      *cell++ = static_cast<std::int32_t>(node);
      if (--left == 0) return true;
    }
    // an earlier refusal at this version was for more nodes
    refused_[like(j, guard)] = {told_->nodes[j], version_};
    return false;
  }
  // Add idle nodes by number: as many as a job needs, or all if it must leave some to the head.
  void add_idle(std::vector<i64>& nodes, i64 j, Guard guard, i64 level) {
    i64 most = guard == beside_head ? told_->n_nodes : told_->nodes[j];
    for (i64 node = idle_.next(0); node < told_->n_nodes && most > 0; node = idle_.next(node + 1)) {
      level_[index(node)] = level;
      nodes.push_back(node);
      --most;
    }
  }
  void gather_idle(i64 j, Guard guard) {
    ranked_.clear();
    add_idle(ranked_, j, guard, 0);
  }
  // The nodes, with levels, that a job with one part of each may take.
  void gather(i64 j, Guard guard) {
    const Partners by = told_->partners;
    const bool by_number = by == Partners::first || by == Partners::used;
    const bool in_use_first = by == Partners::fill || by == Partners::used;
    found_.clear();
    for (i64 node = open_.next(0); node < told_->n_nodes; node = open_.next(node + 1)) {
      const i64 level = level_of(j, node, guard);
      if (level < 0) continue;
      level_[index(node)] = by_number ? std::min(level, i64{1}) : level;
      found_.push_back(node);
    }
    const auto n_open = static_cast<std::ptrdiff_t>(found_.size());
    i64 level = 1 + rank(code(j), told_->n_codes);
    if (by_number) level = 1;
    if (in_use_first) level = told_->n_codes + 2;
    add_idle(found_, j, guard, level);
    if (!in_use_first)
      std::inplace_merge(found_.begin(), found_.begin() + n_open, found_.end());
  }
  i64 rank(i64 c, i64 beside) const {
    return belief_.rank[index(c * (told_->n_codes + 1) + beside)];
  }
  // The level of a node in use for a job: 0 if it is to be beside a job there, otherwise from 1; -1
  // if it may not go there.
  i64 level_of(i64 j, i64 node, Guard guard) {
    i64 worst = 0;
    for (const i64 other : on(node)) {
      if (other == beside) return 0;
      if (told_->selective && !belief_.partner[pair(code(j), code(other))]) return -1;
      if (guard >= briefly && is_delayed(other, code(j), now_, shadow_)) {
        delays_ = true;
        return -1;
      }
      worst = std::max(worst, rank(code(j), code(other)));
    }
    return 1 + worst;
  }
  // Sort available nodes by level; the sort is stable.
  void rank_found() {
    std::fill(bounds_.begin(), bounds_.end(), 0);
    for (const i64 node : found_) ++bounds_[index(level_[index(node)])];
    i64 before = 0;
    for (i64& bound : bounds_) before += std::exchange(bound, before);
    ranked_.resize(found_.size());
    for (const i64 node : found_) ranked_[index(bounds_[index(level_[index(node)])]++)] = node;
  }

  // Look for room for a job when others have left; return how many nodes have it now.
  i64 begin_plan(i64 head) {
    head_ = head;
    plan_ = ++stamp_;
    later_ = free_;
    for (i64 node = 0; node < told_->n_nodes; ++node) counts_[index(node)] = counts_for_head(node);
    return std::accumulate(counts_.begin(), counts_.end(), i64{0});
  }
  // Whether a node has room for the head once the jobs marked by the plan have left.
  bool counts_for_head(i64 node) const {
    const i64 later = later_[index(node)];
    if (!told_->is_part(head_)) return later == told_->parts;
    if (later == 0) return false;
    if (told_->selective)
      for (const i64 other : on(node))
        if (task(other).stamp != plan_ && !belief_.partner[pair(code(head_), code(other))])
          return false;
    return true;
  }
  // Mark a job as having left; return how many more nodes the head can use.
  i64 leave(i64 j) {
    i64 more = 0;
    task(j).stamp = plan_;
    for (const i64 node : cells(j)) {
      later_[index(node)] += told_->parts_of(j);
      const i64 before = std::exchange(counts_[index(node)], counts_for_head(node));
      more += counts_[index(node)] - before;
    }
    return more;
  }
  // Whether the head loses a node if a job stays on it past the shadow time.
  bool costs_head(i64 j, i64 node) const {
    if (!counts_[index(node)]) return false;
    if (!told_->is_part(head_) || !told_->is_part(j) || later_[index(node)] == 1) return true;
    return told_->selective && !belief_.partner[pair(code(head_), code(j))];
  }
  // A job stays on its nodes past the shadow time.
  void reserve_beside(i64 j) {
    for (const i64 node : cells(j)) {
      if (costs_head(j, node)) counts_[index(node)] = 0, --slack_;
      later_[index(node)] -= told_->parts_of(j);
    }
  }
  i64 most_beside_head() const {
    i64 shared = 0, whole = 0;
    for (i64 node = 0; node < told_->n_nodes; ++node) {
      if (free_[index(node)] == 0) continue;
      const bool spared = !counts_[index(node)];
      shared += spared || (later_[index(node)] > 1 && told_->is_part(head_));
      whole += spared && free_[index(node)] == told_->parts;
    }
    return std::max(shared + slack_, (whole + slack_) * told_->parts);
  }
  // The lowest rate that is believed of a job on its cells, under the congestion before its start.
  double rate_there(i64 j) const {
    if (told_->is_compact(j)) return with_files(j, 1.0);
    double rate = believed_alone(j);
    for (const i64 node : cells(j))
      for (const i64 other : on(node))
        rate = std::min(rate, belief_.pairs[pair(code(j), code(other))]);
    return with_files(j, rate);
  }
};
static_assert(Shareable<Corun>);

}  // namespace hpc
