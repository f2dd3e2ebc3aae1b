// A machine of nodes that jobs share: which of them a job may take, and which it takes.
//
// Jobs speed each other up, or slow each other down, so that ends move as neighbours come and go.
// The head's reservation is a set of nodes at the shadow time. To keep it, a job that starts before
// the head must slow down none that is to end by then so that it ends later; and if it stays beyond
// that time itself, it takes nodes that the head can spare.
#pragma once
#include <array>
#include <stdexcept>
#include <vector>

#include "corun/places.hpp"
#include "corun/rates.hpp"

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
  }
  i64 width(i64 j) const { return model_->jobs[j].processors; }
  bool fits(i64 j, i64, i64) { return choose(j, freely); }
  bool finds_place(i64 j, i64) { return choose(j, freely); }
  void waits(i64 j) { count_waiting(code(j), 1); }
  // On the nodes that were chosen for it last.
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
  // However fast it ran, at its usual power.
  Used used(i64 j, i64) const { return {task(j).end, 1.0}; }
  // Those that have ended leave their nodes, and the ends of others move.
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

  // Find when the head can start, on which nodes, and how many of them it does not need.
  void find_shadow(i64 j, i64, const OrderedList& running, Shadow& shadow) {
    head_ = j;
    plan_ = ++stamp_;
    ++version_;
    delays_ = false;
    const i64 needed = told_->nodes[j];
    i64 found = 0, at = now_;
    later_ = free_;
    for (i64 node = 0; node < told_->n_nodes; ++node) {
      counts_[index(node)] = counts_for_head(node);
      found += counts_[index(node)];
    }
    for (int k = 0; k < running.size_in_blocks(); ++k)
      for (const Entry& e : running.at(k)) {
        // all that leaves at the shadow time counts
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
  // Parts of a job; of one that stays beyond the shadow time; and what runs longer than that though
  // it be as fast as can be.
  Bounds bounds(i64 now, i64 room, const Shadow& shadow) const {
    if (told_->fills || model_->is_scored(1)) return {room, nothing, nothing};
    if (beside_head_ == unknown) beside_head_ = most_beside_head();
    return {room, beside_head_,
            last_up_to(real(shadow.time - now) * belief_.greatest)};
  }
  // Before the head; the bounds say whether it may last, speedups whether it does.
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

  // Where jobs are selected: a running job whose nodes the next one takes first.
  i64 beside = nobody;
  i64 n_idle() const { return idle_.count(); }  // nodes without a job
  i64 n_open() const { return open_.count(); }  // nodes with one, and a part free
  bool has_room(i64 j) const { return with_room(j) >= told_->nodes[j]; }
  // With how many other waiting jobs a waiting one would gain.
  i64 friends_of(i64 j) const {
    return friends_[index(code(j))] - belief_.good[pair(code(j), code(j))];
  }
  // How many nodes of a running job have a part free.
  i64 room_beside(i64 j) const {
    const auto has_part = [&](i64 node) { return free_[index(node)] > 0; };
    return told_->is_part(j) ? std::ranges::count_if(cells(j), has_part) : 0;
  }
  // The running jobs that have a part free beside them, in the order of their starts.
  std::vector<i64> neighbours(const OrderedList& running, const std::vector<Progress>& of) const {
    std::vector<i64> found;
    running.each([&](const Entry& e) {
      if (room_beside(e.job) > 0) found.push_back(e.job);
    });
    std::ranges::sort(found, {}, [&](i64 j) { return of[index(j)].number; });
    return found;
  }
  // What jobs have drawn up to the last pass, beyond an idle machine, since this was last asked.
  double take_joules() { return std::exchange(joules_, 0.0); }

  bool fills() const { return told_->fills; }
  bool weighs() const { return told_->weighs(); }
  // Whether a node was left out, since the shadow was found, for who would end later beside.
  bool delays() const { return delays_; }
  // The job of a queue whose score is highest, -1 if there is none. With `room`, only of those that
  // may find it, but for the head; where it is -1, of all. The score is a sum of
  // - fit: nodes that a job needs, over those that have room for it; -1 if these are too few;
  // - popularity: other waiting jobs with which it would gain, over all others;
  // - shortness: the shortest requested time of all that wait, over its own.
  // Who is barred, `bars(job)`, is passed over, but waits like all others.
  template <class F>
  i64 best_of(const OrderedList& queue, i64 room, i64 head, F bars) const {
    const i64 n_waiting = queue.size();
    i64 shortest = nothing;
    if (told_->weights[2] != 0)
      queue.each([&](const Entry& e) { shortest = std::min(shortest, requested(e.job)); });
    i64 best = -1;
    double highest = -inf;
    queue.each([&](const Entry& e) {
      if (room >= 0 && (e.job == head || e.width > room || was_refused(e.job, freely))) return;
      if (bars(e.job)) return;
      const double score = score_of(e.job, n_waiting, shortest);
      if (!(score > highest || (score == highest && e.job < best))) return;
      highest = score, best = e.job;
    });
    return best;
  }
  // Jobs are to start by another belief from now on.
  void believe(const Belief& belief) {
    if (belief.alone.size() != belief_.alone.size())
      throw std::invalid_argument("believe: of each code");
    belief_ = belief;
    std::fill(friends_.begin(), friends_.end(), 0);
    for (i64 c = 0; c < told_->n_codes; ++c) {
      const i64 n = std::exchange(waiting_[index(c)], 0);
      count_waiting(c, n);
    }
    ++version_;
  }

 private:
  // What a start must leave alone: nothing; neighbours that are to end by the shadow time; and then
  // the head's nodes, too.
  enum Guard : std::size_t { freely, briefly, beside_head };
  struct Refused {  // the least nodes that were refused, at which version
    i64 nodes = 0, version = 0;
  };
  static constexpr i64 unknown = -1;

  i64 now_ = 0;
  std::vector<i64> gone_;         // jobs that have ended since the last pass, in order
  double joules_ = 0;
  i64 busy_ = 0;                  // processors of jobs that run, where energy is counted
  std::vector<i64> friends_;      // (C,) waiting jobs that a code gains with
  std::vector<Refused> refused_;  // (3, C + 1) by guard and by what jobs are like
  i64 head_ = -1, shadow_ = 0, plan_ = 0;
  std::vector<i64> later_, counts_;
  i64 slack_ = 0;         // nodes that count for the head beyond those that it needs
  bool delays_ = false;
  mutable i64 beside_head_ = unknown;  // parts that jobs may take at most and stay
  std::vector<i64> level_;        // (N,) of nodes that may be taken: less is better
  std::vector<i64> found_, ranked_;  // these nodes by number, and by level
  std::vector<i64> bounds_;       // (C + 3,) how many are of each level
  std::vector<i64> waiting_;      // (C,) jobs

  static double real(i64 whole) { return static_cast<double>(whole); }
  // What jobs draw now beyond an idle machine [W]: of nodes by number, there of each as they came.
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
  // How many cores a job has of one of its nodes: the last has what is left over.
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
  // The last whole number that is not above another, as a real number.
  static i64 last_up_to(double most) {
    if (most >= static_cast<double>(nothing)) return nothing;
    auto found = static_cast<i64>(std::floor(most));
    const double spacing = std::nextafter(most, inf) - most;
    // of numbers that are no real ones exactly, some are rounded down to it
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

  // How many nodes there are on which a job may find room, whoever is there.
  i64 with_room(i64 j) const { return idle_.count() + (told_->is_part(j) ? open_.count() : 0); }
  // What jobs like this one were refused: those that may take the same nodes.
  std::size_t like(i64 j, Guard guard) const {
    const i64 kind = told_->is_part(j) ? code(j) : told_->n_codes;
    return guard * index(told_->n_codes + 1) + index(kind);
  }
  bool was_refused(i64 j, Guard guard) const {
    const i64 nodes = told_->nodes[j];
    const Refused& before = refused_[like(j, guard)];
    return with_room(j) < nodes || (before.version == version_ && nodes >= before.nodes);
  }
  // Write the nodes that a job would take into its cells; return whether there are enough.
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
    // what was refused before, if nothing has changed since, was more
    refused_[like(j, guard)] = {told_->nodes[j], version_};
    return false;
  }
  // Idle nodes by number: so many as a job needs, or all if some must be left.
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
  // The nodes that a job with a part of each may take, with their levels.
  void gather(i64 j, Guard guard) {
    const bool by_number = told_->partners == Partners::first;
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
    if (told_->partners == Partners::fill) level = told_->n_codes + 2;
    add_idle(found_, j, guard, level);
    if (told_->partners != Partners::fill)
      std::inplace_merge(found_.begin(), found_.begin() + n_open, found_.end());
  }
  i64 rank(i64 c, i64 beside) const {
    return belief_.rank[index(c * (told_->n_codes + 1) + beside)];
  }
  // How good a node in use is for a job: 0 beside whom it is to be, else from 1 on; -1 if it may
  // not go there.
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
  // Bring the nodes that may be taken into the order of their levels; equal ones stay.
  void rank_found() {
    std::fill(bounds_.begin(), bounds_.end(), 0);
    for (const i64 node : found_) ++bounds_[index(level_[index(node)])];
    i64 before = 0;
    for (i64& bound : bounds_) before += std::exchange(bound, before);
    ranked_.resize(found_.size());
    for (const i64 node : found_) ranked_[index(bounds_[index(level_[index(node)])]++)] = node;
  }

  // Whether a node has room for the head once the jobs that the plan marks have left.
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
  // Let a job have left its nodes; return how many more count for the head then.
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
  // Whether the head would lose a node if a job stayed on it past the shadow time.
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
  // The least rate that is believed of a job on its cells, with the congestion of files before it.
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
