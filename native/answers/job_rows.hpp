// Jobs in rows: a job keeps its row as long as it is listed. So what is known of jobs lies in
// columns, over which a pass goes in the order of memory, and a job that came or left costs itself
// alone.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "../base/numbers.hpp"

namespace hpc {

// A copy begins without any.
class JobRows {
 public:
  struct Move {  // the last row has moved in place of one whose job has left
    std::size_t from, to;
  };

  JobRows() = default;
  JobRows(const JobRows&) {}
  JobRows& operator=(const JobRows&) = delete;

  // The jobs by row.
  const std::vector<i64>& jobs() const { return jobs_; }
  // At the last change: rows that moved, in this order; then those of new jobs, and those of new jobs
  // or run times.
  const std::vector<Move>& moves() const { return moves_; }
  const std::vector<std::size_t>& came() const { return came_.rows; }
  const std::vector<std::size_t>& renewed() const { return renewed_.rows; }
  // The row of a job that is listed.
  std::size_t of(i64 j) const { return index(rows_[index(j - first_)]); }
  bool has(i64 j) const {
    return j >= first_ && index(j - first_) < rows_.size() && rows_[index(j - first_)] >= 0;
  }
  // Write how long each job has waited [s], by row. `ticks`: of the clock in a second.
  void waits(i64 now, i64 ticks, std::vector<double>& waiting) const {
    waiting.resize(jobs_.size());
    for (std::size_t row = 0; row < jobs_.size(); ++row)
      waiting[row] = static_cast<double>(now - submits_[row]);
    if (ticks == 1) return;
    for (double& each : waiting) each /= static_cast<double>(ticks);
  }
  double wait(std::size_t row, i64 now, i64 ticks) const {
    return static_cast<double>(now - submits_[row]) / static_cast<double>(ticks);
  }
  // The number of changes; 0: nothing has ever been listed.
  i64 n_changes() const { return change_; }

  void clear() {
    each_column([](auto& column) { column.clear(); });
    rows_.clear();
  }
  // A change begins so and ends by `end`. Either all jobs are listed anew, each by `list`, and the
  // others leave; or jobs come by `list` and leave by `remove`, one by one.
  void begin(bool anew) {
    ++change_;
    n_listed_ = 0;
    anew_ = anew;
    moves_.clear(), came_.clear(), renewed_.clear();
  }
  // `time`: [s] the run time that is seen, 0 if it never changes.
  void list(i64 j, i64 submit, i64 time) {
    std::int32_t& row = row_of(j);
    if (row < 0) {
      row = static_cast<std::int32_t>(jobs_.size());
      each_column([](auto& column) { column.emplace_back(); });
      jobs_.back() = j;
      times_.back() = time - 1;
      came_.jobs.push_back(j);
    }
    const std::size_t at = index(row);
    submits_[at] = submit;
    if (std::exchange(times_[at], time) != time) renewed_.jobs.push_back(j);
    if (std::exchange(changes_[at], change_) != change_) ++n_listed_;
  }
  // The run time of a job is seen anew, if it is listed.
  void renew(i64 j, i64 time) {
    if (has(j)) list(j, submits_[of(j)], time);
  }
  void remove(i64 j) { remove_row(of(j)); }
  void end() {
    for (std::size_t row = jobs_.size(); anew_ && n_listed_ < jobs_.size();)
      if (changes_[--row] != change_) remove_row(row);
    for (Concerned* each : {&came_, &renewed_})
      for (const i64 j : each->jobs)
        if (has(j)) each->rows.push_back(of(j));
  }

 private:
  std::vector<i64> jobs_, submits_, times_, changes_;  // by row; the last: when it was listed last
  std::vector<std::int32_t> rows_;                     // by job, from `first_` on; -1: none
  std::vector<Move> moves_;
  struct Concerned {
    std::vector<i64> jobs;
    std::vector<std::size_t> rows;  // of those that are still listed

    void clear() { jobs.clear(), rows.clear(); }
  };
  Concerned came_, renewed_;
  i64 first_ = 0, change_ = 0;
  std::size_t n_listed_ = 0;
  bool anew_ = false;

  template <class F>
  void each_column(F f) {
    for (auto* column : {&jobs_, &submits_, &times_, &changes_}) f(*column);
  }
  std::int32_t& row_of(i64 j) {
    if (rows_.empty()) first_ = j;
    if (j < first_) {
      rows_.insert(rows_.begin(), index(first_ - j), -1);
      first_ = j;
    }
    const std::size_t place = index(j - first_);
    if (place >= rows_.size()) rows_.resize(place + place / 2 + 1, -1);
    return rows_[place];
  }
  void remove_row(std::size_t row) {
    const std::size_t last = jobs_.size() - 1;
    rows_[index(jobs_[last] - first_)] = static_cast<std::int32_t>(row);
    rows_[index(jobs_[row] - first_)] = -1;
    moves_.push_back({last, row});
    each_column([&](auto& column) { column[row] = column[last], column.pop_back(); });
  }
};

}  // namespace hpc
