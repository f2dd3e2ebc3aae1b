// What is shown of users: how many of their jobs run and wait, and what their last runs say. It is
// worked out again when a job of the user has come, started or ended.
#pragma once
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "../answers/expressed.hpp"
#include "records.hpp"

namespace hpc {

class ShownUsers {
  static constexpr i64 unknown = -2;
  struct Facts {
    i64 running = 0, waiting = 0;                     // jobs
    std::array<i64, index(State::most_runs)> runs{};  // [s] its last ones, -1: none
  };
  struct User {
    Facts shown, now;
    std::int32_t version = 0;    // how often it has changed
    std::int32_t of_runs = 0;    // when its last runs had, or whether its columns are the same, last
    i64 look = 0, compared = 0;  // when its jobs were counted, and when it was compared
    // whether its columns are the same for all of its jobs; of others, requested times stand for runs
    bool is_same = false;
  };

  const Table& table_;
  Expressed& expressed_;  // of all that is kept
  std::vector<User> users_;
  std::vector<float> values_;  // (n_users, columns of users)
  i64 look_ = 0;

 public:
  ShownUsers(const Table& table, Expressed& expressed) : table_(table), expressed_(expressed) {}

  std::size_t bytes() const { return users_.size() * sizeof(User); }
  void forget() {
    for (User& each : users_) each.shown.running = each.shown.runs.back() = unknown;
  }
  // The version of what is shown of a user; whether that is the same for all of its jobs, and its columns.
  std::int32_t version(std::size_t user) const { return users_[user].version; }
  // Since which version nothing but how many jobs run and wait has changed.
  std::int32_t version_of_runs(std::size_t user) const { return users_[user].of_runs; }
  bool is_same(std::size_t user) const { return users_[user].is_same; }
  const float* values(std::size_t user) const { return &values_[user * table_.of_users.size()]; }
  i64 running(std::size_t user) const { return users_[user].now.running; }
  i64 waiting(std::size_t user) const { return users_[user].now.waiting; }

  // Count the running and the waiting jobs of users.
  template <class S>
  void count(const S& s) {
    ++look_;
    users_.resize(index(s.model.n_users));
    values_.resize(users_.size() * table_.of_users.size());
    if (users_.size() == 1) {  // of a log that names none; environments have no nodes that fail
      users_[0].now.running = s.running.size();
      users_[0].now.waiting = s.queue.jobs.size() + s.arrived;
      return;
    }
    const auto now_of = [&](i64 j) -> Facts& {
      User& user = users_[index(s.model.users[j])];
      if (std::exchange(user.look, look_) != look_) user.now.running = user.now.waiting = 0;
      return user.now;
    };
    s.each_running_job([&](const Entry& e) { ++now_of(e.job).running; });
    s.queue.jobs.each([&](const Entry& e) { ++now_of(e.job).waiting; });
    for (i64 j = s.next - s.arrived; j < s.next; ++j) ++now_of(j).waiting;
  }
  // See, once a decision, whether the user of a job has changed.
  template <class S>
  void look_at(const S& s, i64 j, std::size_t of) {
    User& user = users_[of];
    if (std::exchange(user.compared, look_) == look_) return;
    const i64 kept = s.rules().kept(), n = std::min(kept, State::most_runs);
    if (n > 0) std::copy_n(s.history(j) + kept - n, n, user.now.runs.end() - n);
    const bool have_run = user.now.runs != user.shown.runs;
    const bool is_counted = user.now.running != user.shown.running || user.now.waiting != user.shown.waiting;
    if (!have_run && !is_counted) return;
    user.shown = user.now;
    ++user.version;
    const bool was_same = std::exchange(user.is_same, n > 0 && user.now.runs.back() >= 0);
    if (have_run || user.is_same != was_same) user.of_runs = user.version;
    if (user.is_same) write(s, j, of, {!was_same || have_run, !was_same || is_counted});
  }

 private:
  struct Changed {
    bool runs, counts;
  };
  template <class S>
  void write(const S& s, i64 j, std::size_t of, Changed changed) {
    const Facts& now = users_[of].now;
    bool is_set = false;  // the user that expressions look at
    float* value = &values_[of * table_.of_users.size()];
    for (const Table::Written& each : table_.of_users) {
      float& shown = *value++;
      if (!(changed.runs && each.sees_runs) && !(changed.counts && each.sees_counts)) continue;
      if (each.alone == State::user_running) {
        shown = squashed_number(static_cast<double>(now.running));
      } else if (each.alone == State::user_waiting) {
        shown = squashed_number(static_cast<double>(now.waiting));
      } else {
        if (!std::exchange(is_set, true)) expressed_.look_at_user(s, j, now.running, now.waiting);
        shown = squashed_number(expressed_.value_of_user(each.which));
      }
    }
  }
};

}  // namespace hpc
