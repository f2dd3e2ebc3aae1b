// The waiting jobs that may come first, where scores change with time.
//
// For a stretch of time, and while the state of the machine stays near, no job's score exceeds its
// bound. So a pass works out the score of the greatest bound, and then those whose bounds are not
// below the best score. How long a stretch is follows from what bounds save; in a stretch without
// any all bounds are infinite, and all scores are worked out.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "../base/wide.hpp"
#include "ceilings.hpp"

namespace hpc {

struct Room {  // free units, and all of the machine, where each job that needs at most these fits
  double units, size;
  bool is_plain;
};

// A copy begins without any.
class Contenders {
 public:
  Contenders() = default;
  Contenders(const Contenders&) {}
  Contenders& operator=(const Contenders&) = delete;

  // A pass begins. `program` knows of the jobs in their rows, and what is alike for all of them.
  void begin(const JobRows& rows, i64 now, i64 ticks, const Program& program, const i64* times, const Room& room) {
    const std::size_t n = rows.jobs().size();
    taken_from_.reset();
    n_ = n;
    if (n < few) return void(length_ = 0);
    learn(now, program.of_pass(), room.units);
    ceilings_.size = room.is_plain ? room.size : 0;
    ++n_passes_, n_jobs_ += n;
    if (length_ == 0 && n_passes_ < rest_) return;
    const i64 known = std::exchange(change_, rows.n_changes());
    const bool knows = known + 1 == change_;
    const bool holds =
        knows && length_ > 0 && n_scored_ <= 4 * bounds() && ceilings_.hold(now, state_);
    if (!holds) begin_stretch(now);
    if (length_ == 0) return;
    if (holds) {
      for (const auto& [row, bound] : taken_) most_[row] = bound;
      for (const auto& [from, to] : rows.moves()) {
        if (most_.size() <= from) most_.resize(from + 1);
        most_[to] = most_[from];
      }
    }
    taken_.clear();
    most_.resize(n);
    const std::vector<std::size_t>& unbounded = holds ? rows.renewed() : first_rows(n);
    ceilings_.write(program, rows, unbounded, times, ticks, most_);
    n_bounded_ += unbounded.size();
  }
  // Without bounds all rows are taken, at once.
  bool is_bounded() const { return length_ > 0; }
  // The rows that may hold the best job, if the best score known is `best`, minus infinity if none
  // is; each row is told once in a pass. `guess`: a row to begin with, or none.
  const std::vector<std::size_t>& take(double best, std::optional<std::size_t> guess) {
    const double least = std::max(best, Ceilings::last);
    took_.clear();
    if (taken_from_ && least >= *taken_from_) return took_;
    if (best == -inf && n_ > 0) {
      const bool is_new = guess && most_[*guess] > -inf;
      const auto first = is_new ? *guess : place_of_greatest(most_.data(), n_);
      if (most_[first] > -inf) took_.push_back(first);
    }
    if (took_.empty()) take_from(least);
    for (const std::size_t row : took_) taken_.push_back({row, std::exchange(most_[row], -inf)});
    n_scored_ += took_.size();
    return took_;
  }

 private:
  static constexpr std::size_t few = 64;  // of so few jobs all scores are worked out
  static constexpr double longest = 1024;
  static constexpr std::size_t longest_rest = 1'000;

  Ceilings ceilings_;
  std::vector<double> most_;       // by row, the bounds
  std::vector<std::size_t> took_;
  std::vector<std::pair<std::size_t, double>> taken_;
  std::optional<double> taken_from_;  // all rows of this bound or greater ones are taken, if any
  double length_ = 0;              // of a stretch, in passes; 0: without bounds
  std::size_t rest_ = 0;           // passes until bounds are tried again
  std::size_t n_passes_ = 0, n_scored_ = 0, n_bounded_ = 0;  // in the stretch
  std::size_t n_jobs_ = 0;         // in its passes
  std::size_t n_ = 0;              // jobs of the pass
  i64 change_ = 0;                 // the number of changes of rows that it knows of
  i64 last_ = -1;                  // the last pass
  double gap_ = 0;                 // means: between passes, and of changes of the state
  std::vector<double> state_, changes_;  // of the pass: the values of parts, and the room

  const std::vector<std::size_t>& first_rows(std::size_t n) {
    took_.resize(n);
    std::iota(took_.begin(), took_.end(), std::size_t{0});
    return took_;
  }
  // Take the rows of these bounds or greater ones.
  void take_from(double least) {
    taken_from_ = least;
    const double* most = most_.data();
    for (std::size_t row = 0, n = n_; row < n; ++row)
      if (most[row] >= least) took_.push_back(row);
  }
  void learn(i64 now, std::vector<double> state, double room) {
    state.push_back(room);
    static constexpr double share = 1.0 / 16;
    if (last_ >= 0) {
      gap_ += share * (static_cast<double>(now - last_) - gap_);
      changes_.resize(state.size());
      for (std::size_t k = 0; k < state.size(); ++k)
        if (const double change = std::abs(state[k] - state_[k]); std::isfinite(change))
          changes_[k] += share * (change - changes_[k]);
    }
    last_ = now;
    state_ = std::move(state);
  }
  void begin_stretch(i64 now) {
    choose_length();
    n_passes_ = n_scored_ = n_bounded_ = n_jobs_ = 0;
    ceilings_.from = now;
    ceilings_.to = now + static_cast<i64>(gap_ * length_);
    ceilings_.of_pass.resize(state_.size());
    for (std::size_t k = 0; k < state_.size(); ++k) {
      const double change = changes_.empty() ? 0 : std::sqrt(length_) * changes_[k];
      ceilings_.of_pass[k] = Range::of(state_[k] - change, state_[k] + change);
    }
  }
  // By what the last stretch cost beside what it would have cost without bounds, in scores.
  void choose_length() {
    if (length_ == 0) {
      length_ = 8;
    } else if (4 * (n_scored_ + bounds()) > 3 * n_jobs_) {
      length_ = length_ > 4 ? length_ / 2 : 0;
      if (length_ == 0) rest_ = std::min(2 * rest_ + 64, longest_rest);
    } else {
      rest_ = 0;
      if (n_scored_ > 2 * bounds()) length_ = std::max(length_ / 2, 2.0);
      if (2 * n_scored_ < bounds()) length_ = std::min(length_ * 2, longest);
    }
  }
  std::size_t bounds() const { return 2 * n_bounded_; }  // what they cost, in scores
};

}  // namespace hpc
