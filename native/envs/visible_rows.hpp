// The rows of visible jobs, kept from one decision to the next.
//
// A row is written when its job comes into the window. Columns of predictions are written again when
// these change, and columns of users when a job of the job's user has come, started or ended. What
// changes with the time or the machine is written by who shows the rows.
#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "../answers/expressed.hpp"
#include "records.hpp"

namespace hpc {

class VisibleRows {
  static constexpr std::size_t at_once = 4;  // numbers that are copied
  static constexpr i64 unknown = -2;
  struct Kept {  // of a row: its user, and of when the user's columns are
    std::int32_t user = 0, version = -1;
  };
  struct Foretold {  // [s]
    i64 predicted = -1, policy_time = -1;
    bool operator==(const Foretold&) const = default;
  };
  struct OfUser {
    i64 running = 0, waiting = 0;                 // jobs
    std::array<i64, index(State::most_runs)> runs{};     // [s] its last ones, -1: none
  };
  struct User {
    OfUser seen, now;
    std::int32_t version = 0;     // how often it has changed
    i64 look = 0, compared = 0;   // when its jobs were counted, and when it was compared
    // whether its columns are the same for all of its jobs; of others, requested times stand for runs
    bool is_same = false;
  };

  const Table& table_;
  const std::size_t width_;
  const bool has_users_, foresees_;
  Expressed expressed_;
  i64 look_ = 0;
  std::vector<i64> jobs_;            // visible at the last decision
  std::vector<std::int32_t> lines_, before_;  // where their rows are, now and then
  std::vector<std::int32_t> spare_;  // rows of no job
  std::vector<Kept> kept_;           // by row
  std::vector<Foretold> foretold_;   // likewise, if predictions change
  std::vector<float> rows_;
  std::vector<User> users_;
  std::vector<float> of_users_;      // (n_users, columns of users)

 public:
  VisibleRows(const Table& table, i64 room)
      : table_(table),
        width_((table.codes.size() + at_once - 1) / at_once * at_once),
        has_users_(!table.of_users.empty() || !table.of_both.empty()),
        foresees_(!table.foretold.empty() || table.model->learning),
        expressed_(table.kept),
        spare_(index(room)),
        kept_(index(room)),
        foretold_(foresees_ ? kept_.size() : 0),
        rows_(index(room) * width_) {
    forget();
  }
  std::size_t bytes() const {
    return kept_.size() * (sizeof(Kept) + width_ * sizeof(float)) + foretold_.size() * sizeof(Foretold) +
           users_.size() * sizeof(User);
  }

  // Another simulation goes on.
  void forget() {
    jobs_.clear(), lines_.clear();
    spare_.resize(kept_.size());
    std::iota(spare_.begin(), spare_.end(), std::int32_t{0});
    for (User& each : users_) each.seen.running = each.seen.runs.back() = unknown;
  }
  // Copy the rows of n visible jobs from the i-th on, and zeros behind them: fewer than `at_once`.
  void copy_rows(std::size_t i, std::size_t n, float* out) const {
    const std::size_t width = table_.codes.size(), n_of_users = table_.of_users.size();
    const Table::Written* of_users = table_.of_users.data();
    for (const std::int32_t *line = &lines_[i], *last = line + n; line < last; ++line, out += width) {
      const float* row = &rows_[index(*line) * width_];
      for (std::size_t k = 0; k < width_; k += at_once) std::memcpy(out + k, row + k, at_once * sizeof(float));
      if (n_of_users == 0) continue;
      const std::size_t user = index(kept_[index(*line)].user);
      if (!users_[user].is_same) continue;
      const float* values = &of_users_[user * n_of_users];
      for (std::size_t k = 0; k < n_of_users; ++k) out[of_users[k].column] = values[k];
    }
  }

  // Bring the rows of the visible jobs up to date; `policy_times`: [s] by job, if learned. The row of
  // the first job of the episode in the table is `first`.
  template <class S>
  void renew(S& s, std::span<const i64> jobs, i64 first, const i64* policy_times) {
    if (s.stops) forget();  // a job may wait again
    ++look_;
    line_up(jobs);
    if (has_users_) count(s);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const i64 j = jobs[i];
      bool is_fresh = lines_[i] < 0;
      if (is_fresh) lines_[i] = take_row(s, j, first);
      Kept& kept = kept_[index(lines_[i])];
      float* row = &rows_[index(lines_[i]) * width_];
      if (foresees_) is_fresh |= foresee(s, j, foretold_[index(lines_[i])], row, first, policy_times);
      if (is_fresh) {
        kept.version = -1;
        write(s, table_.of_jobs, j, row, first, policy_times);
      }
      if (has_users_) look_at_user(s, j, kept, row, first, policy_times);
    }
    jobs_.assign(jobs.begin(), jobs.end());
  }

 private:
  // Find the rows of jobs that were visible before, -1: none. Both are in the order of the log, but
  // for the job in question if an agent follows a rule.
  void line_up(std::span<const i64> jobs) {
    lines_.swap(before_);
    lines_.resize(jobs.size());
    std::size_t i = 0, k = 0;
    const auto gone = [&] { spare_.push_back(before_[k++]); };
    const auto is_next = [&] { return k < jobs_.size() && jobs_[k] == jobs[i]; };
    const auto take = [&] { lines_[i] = is_next() ? before_[k++] : -1; };
    if (table_.settings.follows() && !jobs.empty()) {
      if (!is_next() && !jobs_.empty()) gone();
      take();
      i = 1;
    }
    for (; i < jobs.size(); ++i) {
      while (k < jobs_.size() && jobs_[k] < jobs[i]) gone();
      take();
    }
    while (k < jobs_.size()) gone();
  }
  template <class S>
  std::int32_t take_row(const S& s, i64 j, i64 first) {
    const std::int32_t row = spare_.back();
    spare_.pop_back();
    kept_[index(row)] = {};
    if (foresees_) foretold_[index(row)] = {};
    if (has_users_) kept_[index(row)].user = static_cast<std::int32_t>(s.model.users[j]);
    const std::size_t n = table_.codes.size();
    std::copy_n(&table_.still[index(first + j) * n], n, &rows_[index(row) * width_]);
    return row;
  }
  // Write the columns of predictions if these have changed; return whether they have.
  template <class S>
  bool foresee(const S& s, i64 j, Foretold& foretold, float* row, i64 first, const i64* policy_times) {
    const Foretold now{s.of(j).predicted, policy_times ? policy_times[j] : table_.ordered_by[first + j]};
    if (std::exchange(foretold, now) == now) return false;
    for (const std::size_t column : table_.foretold) {
      const bool is_predicted = static_cast<Shown>(table_.codes[column]) == Shown::predicted;
      row[column] = squashed(is_predicted ? now.predicted : now.policy_time);
    }
    return true;
  }
  // Count the running and the waiting jobs of users.
  template <class S>
  void count(const S& s) {
    users_.resize(index(s.model.n_users));
    of_users_.resize(users_.size() * table_.of_users.size());
    const auto now_of = [&](i64 j) -> OfUser& {
      User& user = users_[index(s.model.users[j])];
      if (std::exchange(user.look, look_) != look_) user.now.running = user.now.waiting = 0;
      return user.now;
    };
    s.each_running_job([&](const Entry& e) { ++now_of(e.job).running; });
    s.queue.jobs.each([&](const Entry& e) { ++now_of(e.job).waiting; });
    for (i64 j = s.next - s.arrived; j < s.next; ++j) ++now_of(j).waiting;
  }
  // Write the columns of the user of a job if they may have changed.
  template <class S>
  void look_at_user(S& s, i64 j, Kept& kept, float* row, i64 first, const i64* policy_times) {
    User& user = users_[index(kept.user)];
    if (user.compared != look_) compare(s, j, user, first, policy_times);
    if (user.is_same && table_.of_both.empty()) return;
    if (std::exchange(kept.version, user.version) == user.version) return;
    if (!user.is_same) write(s, table_.of_users, j, row, first, policy_times);
    write(s, table_.of_both, j, row, first, policy_times);
  }
  // See whether a user has changed, one of whose jobs is j.
  template <class S>
  void compare(S& s, i64 j, User& user, i64 first, const i64* policy_times) {
    user.compared = look_;
    const i64 kept = s.rules().kept(), n = std::min(kept, State::most_runs);
    if (n > 0) std::copy_n(s.history(j) + kept - n, n, user.now.runs.end() - n);
    const bool have_run = user.now.runs != user.seen.runs;
    const bool is_counted = user.now.running != user.seen.running || user.now.waiting != user.seen.waiting;
    if (!have_run && !is_counted) return;
    user.seen = user.now;
    ++user.version;
    const bool was_same = std::exchange(user.is_same, n > 0 && user.now.runs.back() >= 0);
    if (!user.is_same) return;
    look_at(s, j, first, policy_times);
    float* value = of_users_.data() + index(&user - users_.data()) * table_.of_users.size();
    for (const Table::Written& each : table_.of_users) {
      if (!was_same || (have_run && each.sees_runs) || (is_counted && each.sees_counts)) *value = shown(each.which, policy_times);
      ++value;
    }
  }
  // Write some expressions of a job to its row.
  template <class S>
  void write(S& s, const std::vector<Table::Written>& which, i64 j, float* row, i64 first, const i64* policy_times) {
    if (which.empty()) return;
    look_at(s, j, first, policy_times);
    for (const Table::Written& each : which) row[each.column] = shown(each.which, policy_times);
  }
  template <class S>
  void look_at(const S& s, i64 j, i64 first, const i64* policy_times) {
    const OfUser own = has_users_ ? users_[index(s.model.users[j])].now : OfUser();
    expressed_.look_at(s, j, first, own.running, own.waiting, policy_times);
  }
  float shown(std::size_t k, const i64* policy_times) {
    return squashed_number(*expressed_.values(k, policy_times));
  }
};

}  // namespace hpc
