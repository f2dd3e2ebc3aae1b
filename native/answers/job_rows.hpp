// Jobs in rows: a job keeps its row as long as it is listed. So what is known of jobs lies in
// columns, over which a pass goes in the order of memory, and a job that came or left costs itself
// alone.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "../core/model.hpp"

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

  // The jobs by row, and their processors.
  const std::vector<i64>& jobs() const { return jobs_; }
  const std::vector<double>& widths() const { return widths_; }
  // At the last change: rows that moved, in this order; then those of new jobs, and those of new jobs,
  // run times or last runs of their users.
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
    const std::size_t n = jobs_.size();
    waiting.resize(n);
    double* each_wait = waiting.data();
    const Known* known = known_.data();
    for (std::size_t row = 0; row < n; ++row)
      each_wait[row] = static_cast<double>(now - known[row].submit);
    if (ticks == 1) return;
    for (double& each : waiting) each /= static_cast<double>(ticks);
  }
  double wait(std::size_t row, i64 now, i64 ticks) const {
    return static_cast<double>(now - known_[row].submit) / static_cast<double>(ticks);
  }
  // The number of changes; 0: nothing has ever been listed.
  i64 n_changes() const { return change_; }

  void clear() {
    jobs_.clear(), widths_.clear(), known_.clear();
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
  void list(i64 j, const Job& job, i64 time) {
    std::int32_t& row = row_of(j);
    if (row < 0) {
      row = static_cast<std::int32_t>(jobs_.size());
      jobs_.push_back(j);
      widths_.push_back(static_cast<double>(job.processors));
      known_.push_back({job.submit, time - 1, 0, 0});
      came_.jobs.push_back(j);
    }
    Known& known = known_[index(row)];
    known.submit = job.submit;
    if (std::exchange(known.change, change_) != change_) ++n_listed_;
    note_time(j, known, time);
  }
  // The run time of a job is seen anew, if it is listed.
  void renew(i64 j, i64 time) {
    if (has(j)) note_time(j, known_[of(j)], time);
  }
  // The last runs of a job's user are known to be as they are since some reading, above 0.
  void note_runs(std::size_t row, i64 since) {
    const i64 before = std::exchange(known_[row].runs, since);
    if (before != 0 && before != since) renewed_.rows.push_back(row);
  }
  void remove(i64 j) { remove_row(of(j)); }
  void end() {
    for (std::size_t row = jobs_.size(); anew_ && n_listed_ < jobs_.size();)
      if (known_[--row].change != change_) remove_row(row);
    for (Concerned* each : {&came_, &renewed_})
      for (const i64 j : each->jobs)
        if (has(j)) each->rows.push_back(of(j));
  }

 private:
  struct Known {
    i64 submit, time, change;  // the last: when it was listed last
    i64 runs;                  // since when its user's last runs are as they are, 0 if not known
  };
  std::vector<i64> jobs_;           // by row
  std::vector<double> widths_;
  std::vector<Known> known_;
  std::vector<std::int32_t> rows_;  // by job, from `first_` on; -1: none
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

  void note_time(i64 j, Known& known, i64 time) {
    if (std::exchange(known.time, time) != time) renewed_.jobs.push_back(j);
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
    const auto move = [&](auto& column) { column[row] = column[last], column.pop_back(); };
    move(jobs_), move(widths_), move(known_);
  }
};

}  // namespace hpc
