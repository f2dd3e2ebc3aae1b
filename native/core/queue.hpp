// The queue: the waiting jobs, in the orders of backfilling and of serving.
#pragma once
#include <algorithm>
#include <array>
#include <utility>

#include "../base/column.hpp"
#include "../base/ordered.hpp"
#include "../base/wide.hpp"
#include "model.hpp"

namespace hpc {

inline double score_now(Order order, Score s, i64 waiting) {
  const double x = static_cast<double>(waiting) / s.patience;
  return order == Order::cubed ? s.score * (x * x * x) : s.score + x;
}

// Jobs that may come first, with their scores, in one pass.
class Listed {
  std::vector<i64> jobs_;
  std::vector<double> scores_;

 public:
  bool empty() const { return jobs_.empty(); }
  void clear() { jobs_.clear(), scores_.clear(); }
  void add(const std::vector<i64>& jobs, const double* scores) {
    if (empty()) {
      jobs_ = jobs, scores_.assign(scores, scores + jobs.size());
      return;
    }
    jobs_.insert(jobs_.end(), jobs.begin(), jobs.end());
    scores_.insert(scores_.end(), scores, scores + jobs.size());
  }
  // The greatest score of a job that still waits, minus infinity if there is none; jobs that have
  // started and score more go.
  double drop_to_highest(const std::vector<Progress>& progress) {
    const std::size_t best = place_of_best(progress, [](i64) { return i64{0}; });
    return best < jobs_.size() ? scores_[best] : -inf;
  }
  // The same, but the job; of several, the first by place; -1 if none waits.
  template <class F>
  i64 drop_to_best(const std::vector<Progress>& progress, F place) {
    const std::size_t best = place_of_best(progress, place);
    return best < jobs_.size() ? jobs_[best] : -1;
  }

 private:
  // Jobs that do not wait any more go when they are the best.
  template <class F>
  std::size_t place_of_best(const std::vector<Progress>& progress, F place) {
    while (!jobs_.empty()) {
      std::size_t best = place_of_greatest(scores_.data(), jobs_.size());
      const double highest = scores_[best];
      for (std::size_t k = best + 1; k < jobs_.size(); ++k)
        if (scores_[k] == highest && place(jobs_[k]) < place(jobs_[best])) best = k;
      if (progress[index(jobs_[best])].start < 0) return best;
      jobs_[best] = jobs_.back(), jobs_.pop_back();
      scores_[best] = scores_.back(), scores_.pop_back();
    }
    return 0;
  }
};

// Jobs that came and left, or that changed, since somebody looked: known from the first look on.
struct Changes {
  bool known = false;
  std::vector<i64> steps;  // in order: a job, or ~job of one that left

  void note(i64 step) {
    if (!known) return;
    if (steps.size() == most) return forget();
    steps.push_back(step);
  }
  void look() { known = true, steps.clear(); }
  void forget() { known = false, steps.clear(); }

 private:
  static constexpr std::size_t most = 1024;
};

class Queue {
 public:
  OrderedList jobs;  // in secondary order
  std::array<Column<Score>, 2> scores;  // by job, primary and secondary, if orders use them
  Listed listed;                        // in place of primary scores, if nobody else looks at them
  Changes changes;                      // of the waiting jobs

  Column<Job> known;                   // with submission times that the schedule decides
  std::array<Column<i64>, 2> keys;     // by job, primary and secondary, ascending
  std::vector<i64> came;  // by job, if the schedule decides arrivals: its rank among them, or -1

  Queue(const Model& model)
      : scores{model.scores, model.second_scores},
        known(model.jobs),
        keys{model.keys, model.second_keys},
        model_(&model) {}

  void keep(Archive& a) {
    a(jobs, scores, known, keys, came, n_came_, by_key_, oldest_);
    changes.forget();
    for (const OrderedList* list : {&jobs, &by_key_})
      list->each([&](const Entry& e) { a.check_job(e.job); });
    a.check(oldest_ >= 0 && n_came_ <= model_->n_jobs);
  }
  bool empty() const { return jobs.empty(); }
  bool is_scored() const { return model_->rules.primary >= Order::scored; }
  bool is_listed_by_submission() const {
    return model_->rules.secondary != Order::prediction && model_->rules.secondary != Order::keyed;
  }
  // In primary order, if that is by keys.
  const OrderedList& by_key() const { return by_key_; }
  void note_came(i64 j) { came[index(j)] = n_came_++; }
  // The position of a job in the order of submission, in which equal keys stand, too.
  i64 place(i64 j) const { return came.empty() ? j : came[index(j)]; }
  auto by_place() const {
    return [this](i64 j) { return place(j); };
  }
  void enter(i64 j, i64 predicted) {
    const Job& job = known[j];
    changes.note(j);
    Block& block = jobs.insert({key_of(j, predicted), predicted, job.processors, j}, by_place());
    if (block.narrow_known) block.widen_narrow(job.processors, predicted);
    if (is_scored() && block.greatest_gain != inf) {
      block.first_submit = std::min(block.first_submit, job.submit);
      block.last_submit = std::max(block.last_submit, job.submit);
      block.greatest_score = std::max(block.greatest_score, scores[0][j].score);
      block.greatest_gain = std::max(block.greatest_gain, 1.0 / scores[0][j].patience);
    }
    if (!is_keyed()) return;
    Block& keyed = by_key_.insert({keys[0][j], predicted, job.processors, j}, by_place());
    if (keyed.narrow_known) keyed.widen_narrow(job.processors, predicted);
  }
  // The position of a job among some jobs in that order.
  i64 place_in(const std::vector<i64>& jobs_in_order, i64 j) const {
    const auto of = [&](i64 other) { return place(other); };
    return std::ranges::lower_bound(jobs_in_order, place(j), {}, of) - jobs_in_order.begin();
  }
  // A job that has started before.
  void enter_again(i64 j, i64 predicted) {
    enter(j, predicted);
    oldest_ = std::min(oldest_, j);
  }
  void leave(i64 j, i64 predicted) {
    jobs.remove(jobs.find(key_of(j, predicted), j, by_place()));
    leave_by_key(j);
  }
  // A job has been taken out of `jobs`.
  void leave_by_key(i64 j) {
    changes.note(~j);
    if (is_keyed()) by_key_.remove(by_key_.find(keys[0][j], j, by_place()));
  }

  // The first job in primary order; the queue is not empty. `head` is a first guess for orders by
  // scores, -1 if there is none.
  i64 first(i64 now, const std::vector<Progress>& progress, i64 head) {
    const Rules& rules = model_->rules;
    const bool by_submission = rules.primary == Order::submission;
    if (by_submission && rules.secondary == Order::submission) return jobs.front().job;
    if (by_submission || rules.threshold >= 0) {
      const i64 j = oldest(progress);
      if (by_submission || rules.starves(now - known[j].submit)) return j;
    }
    if (const i64 j = listed.drop_to_best(progress, by_place()); j >= 0) return j;
    return is_scored() ? best_scored(now, head) : by_key_.front().job;
  }
  // The queued job that was submitted first; the queue is not empty.
  i64 oldest(const std::vector<Progress>& progress) {
    if (!came.empty()) {
      i64 first = -1;
      jobs.each([&](const Entry& e) {
        if (first < 0 || place(e.job) < place(first)) first = e.job;
      });
      return first;
    }
    while (progress[index(oldest_)].start >= 0) ++oldest_;
    return oldest_;
  }
  // Whether a job comes before another in the order by keys.
  bool comes_before(i64 j, i64 other) const { return keys[0][j] < keys[0][other]; }

  // Scores have changed: their bounds no longer hold.
  void forget_bounds() {
    for (int k = 0; k < jobs.size_in_blocks(); ++k) jobs.at(k).greatest_gain = inf;
  }

  // No job needs fewer units than this.
  i64 least_width() const {
    i64 least = nothing;
    for (int k = 0; k < jobs.size_in_blocks(); ++k) least = std::min(least, jobs.at(k).least_width);
    return least;
  }
  // Whether all jobs need more than `room`; repairs the bounds.
  bool none_fits(i64 room) {
    for (int k = 0; k < jobs.size_in_blocks(); ++k) {
      Block& block = jobs.at(k);
      if (block.least_width > room) continue;
      i64 least = nothing;
      for (const Entry& e : block) least = std::min(least, e.width);
      block.least_width = least;
      if (least <= room) return false;
    }
    return true;
  }

 private:
  const Model* model_;
  OrderedList by_key_;  // in primary order, if that is by keys
  i64 oldest_ = 0;      // no job before this one waits
  i64 n_came_ = 0;

  bool is_keyed() const { return model_->rules.primary == Order::keyed; }
  i64 key_of(i64 j, i64 predicted) const {
    if (model_->rules.secondary == Order::prediction) return predicted;
    if (model_->rules.secondary == Order::keyed) return keys[1][j];
    return j;
  }

  // For an order that changes with waiting: search the queue, block by block.
  i64 best_scored(i64 now, i64 head) {
    const Order order = model_->rules.primary;
    i64 best = head;
    double highest = -inf;
    if (head >= 0) highest = score_now(order, scores[0][head], now - known[head].submit);
    const auto look_at = [&](i64 j) {
      const double score = score_now(order, scores[0][j], now - known[j].submit);
      if (best >= 0 && !(score > highest) && (score != highest || place(j) > place(best))) return;
      highest = score;
      best = j;
    };
    if (jobs.size_in_blocks() == 1) {  // the block of the head is never skipped
      for (const Entry& e : jobs.at(0)) look_at(e.job);
      jobs.at(0).greatest_gain = inf;
      return best;
    }
    for (int k = 0; k < jobs.size_in_blocks(); ++k) {
      Block& block = jobs.at(k);
      // a NaN bound does not exclude the block
      if (block.greatest_gain != inf && bound(order, block, now) < highest) continue;
      i64 first_submit = forever, last_submit = 0;
      double greatest_score = -inf, greatest_gain = -inf;
      for (const Entry& e : block) {
        const Score s = scores[0][e.job];
        const i64 submit = known[e.job].submit;
        look_at(e.job);
        first_submit = std::min(first_submit, submit);
        last_submit = std::max(last_submit, submit);
        greatest_score = std::max(greatest_score, s.score);
        greatest_gain = std::max(greatest_gain, 1.0 / s.patience);
      }
      block.first_submit = first_submit, block.last_submit = last_submit;
      block.greatest_score = greatest_score, block.greatest_gain = greatest_gain;
    }
    return best;
  }
  // No score in a block exceeds this; the bounds of its parts must be known.
  static double bound(Order order, const Block& block, i64 now) {
    const double gain = block.greatest_gain;
    const i64 submit = gain >= 0 ? block.first_submit : block.last_submit;
    const double x = static_cast<double>(now - submit) * gain;
    const double limit =
        order == Order::cubed ? block.greatest_score * (x * x * x) : block.greatest_score + x;
    // gains are rounded, and scores divide where this multiplies
    return limit + std::abs(limit) * 1e-9 + std::abs(x) * 1e-9;
  }
};

}  // namespace hpc
