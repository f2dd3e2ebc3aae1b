// The state of machine, queue and users at a pass, as expressions name it. It is read once, after
// all earlier events of that second, and before any job starts. Run times are those of ended jobs.
#pragma once
#include <array>
#include <vector>

#include "../base/wide.hpp"
#include "../core/queue.hpp"
#include "job_rows.hpp"

namespace hpc {

class State {
 public:
  // In the order of hpcgym.scheduler.policies.features.STATE.
  enum Name : std::size_t {
    free, free_1h, queued, behind, hour, weekday, machine_size,  // the same for all jobs
    fits, leaves, user_running, user_waiting, last_run, mean_run, spread_run, known_runs,
    running,  // the jobs, not a value: expressions add up what these ask for, and do not name it
    n_names,
    n_values = running,
  };
  static bool is_of_users(std::size_t name) { return name >= user_running && name < n_values; }
  // Whether it follows from the last runs of the job's user.
  static bool is_of_runs(std::size_t name) { return name >= last_run && name < n_values; }
  // The number of last run times of each user that it uses.
  static i64 looks_back(std::size_t name) {
    return name < last_run || name == running ? 0 : name == last_run ? 1 : most_runs;
  }
  static constexpr i64 most_runs = 5;

  void name(std::size_t which) { named_[which] = true; }
  // Let what is named of last runs be told by `of_runs` alone.
  void keep_runs() { keeps_runs_ = true; }
  bool sees_runs() const { return named_[last_run] || named_[mean_run] || named_[spread_run] || named_[known_runs]; }
  i64 room() const { return free_; }  // [units]
  bool sees_room() const { return named_[fits] || named_[leaves]; }
  // A value for each job that it was read for, or one for all.
  const std::vector<double>& values(std::size_t which) const { return values_[which]; }
  // What all running jobs have together, of a column.
  double in_use(const double* column) const {
    double sum = 0;
    for (const i64 j : in_use_) sum += column[j];
    return sum;
  }

  // Read what is the same for all jobs at a pass. `coming`: jobs that wait besides those of the queue
  // and the last submissions. `clock`: time of the week at time 0 [s].
  template <class S>
  void read_pass(S& s, const std::vector<i64>& coming, i64 clock) {
    free_ = s.free_with_leaving();
    read_machine(s, s.queue.jobs.size() + s.arrived + static_cast<i64>(coming.size()), clock);
    if (named_[behind]) values_[behind] = {work_behind(s, coming)};
    in_use_.clear();
    if (named_[running]) s.each_running_job([&](const Entry& e) { in_use_.push_back(e.job); });
    if (s.model.users) count_users(s, coming);
  }
  // Then what is of each of some jobs, with their waits [s]. `widths`: their processors.
  template <class S>
  void read_jobs(S& s, const std::vector<i64>& jobs, const std::vector<double>& waiting,
                 const std::vector<double>& widths) {
    if constexpr (S::has_alike_units) {
      if (s.rules().holds) read_fits(s, jobs, waiting);
      else read_fits(static_cast<double>(s.model.capacity), widths);
    } else {
      read_fits(s, jobs, waiting);
    }
    if (s.model.users) read_users(s, jobs);
  }
  // Note rows of jobs whose users' last runs are others than when this was last called.
  template <class S>
  void note_runs(const S& s, JobRows& rows) {
    users_.resize(index(s.model.n_users));
    for (std::size_t row = 0; row < rows.jobs().size(); ++row) {
      const i64 j = rows.jobs()[row];
      User& user = users_[index(s.model.users[j])];
      if (user.look != look_) {
        const i64 since = user.since;
        const User now = user_of(s, j);
        const bool is_same = now.known == user.known && now.last == user.last && now.mean == user.mean &&
                             now.spread == user.spread && since > 0;
        user = now;
        user.since = is_same ? since : look_;
      }
      rows.note_runs(row, user.since);
    }
  }
  // What a name is of the last runs of a job's user.
  template <class S>
  double of_runs(const S& s, std::size_t which, i64 j) const {
    const User& user = users_[index(s.model.users[j])];
    if (user.known == 0 && which <= mean_run) return seconds(s, s.job(j).requested);
    return which == last_run ? user.last : which == mean_run ? user.mean : which == spread_run ? user.spread : user.known;
  }
  // Read what is of users for one job, of whose user so many jobs run and wait.
  template <class S>
  void read_user(const S& s, const std::vector<i64>& job, i64 n_running, i64 n_waiting) {
    const std::size_t user = index(s.model.users[job.front()]);
    running_.resize(index(s.model.n_users)), waiting_.resize(index(s.model.n_users));
    running_[user] = n_running, waiting_[user] = n_waiting;
    ++look_;
    read_users(s, job);
  }

 private:
  std::array<bool, n_names> named_{};
  bool keeps_runs_ = false;
  std::array<std::vector<double>, n_values> values_;
  i64 free_ = 0;  // units
  std::vector<i64> in_use_;  // running jobs
  std::vector<i64> running_, waiting_;  // jobs by user
  struct User {  // its last runs [s], at this reading
    i64 look = 0;
    double known = 0, last = 0, mean = 0, spread = 0;
    i64 since = 0;  // the reading from which on they have been so
  };
  std::vector<User> users_;
  i64 look_ = 0;

  template <class F>
  void set(Name which, const std::vector<i64>& jobs, F value_of) {
    if (!named_[which]) return;
    values_[which].resize(jobs.size());
    double* value = values_[which].data();
    for (const i64 j : jobs) *value++ = value_of(j);
  }
  // Call f(j) for each job that waits.
  template <class S, class F>
  static void each_waiting_job(const S& s, const std::vector<i64>& coming, F f) {
    s.queue.jobs.each([&](const Entry& e) { f(e.job); });
    for (i64 j = s.next - s.arrived; j < s.next; ++j) f(j);
    for (const i64 j : coming) f(j);
  }
  // For how long all waiting jobs together would occupy the machine, by their requested times [s].
  template <class S>
  static double work_behind(const S& s, const std::vector<i64>& coming) {
    double work = 0;  // of whole numbers: exact up to 2^53
    each_waiting_job(s, coming, [&](i64 j) {
      work += static_cast<double>(s.job(j).requested) * static_cast<double>(s.machine.width(j));
    });
    return work / (static_cast<double>(s.model.capacity) * static_cast<double>(s.model.ticks));
  }
  template <class S>
  void read_machine(const S& s, i64 n_waiting, i64 clock) {
    const Model& m = s.model;
    const auto units = static_cast<double>(m.capacity), second = static_cast<double>(m.ticks);
    i64 then = free_;  // in one hour
    if (named_[free_1h])
      s.running.each([&](const Entry& e) {
        if (e.key > s.time && e.key - s.time <= 3600 * m.ticks) then += e.width;
      });
    const i64 week = 604'800 * m.ticks, now = (s.time + clock * m.ticks) % week, day = week / 7;
    values_[free] = {static_cast<double>(free_) / units};
    values_[free_1h] = {static_cast<double>(then) / units};
    values_[queued] = {static_cast<double>(n_waiting)};
    values_[hour] = {static_cast<double>(now % day) / (3600.0 * second)};
    values_[weekday] = {static_cast<double>(now / day)};
    values_[machine_size] = {units};
  }
  template <class S>
  void read_fits(S& s, const std::vector<i64>& jobs, const std::vector<double>& waiting) {
    if (!named_[fits] && !named_[leaves]) return;
    const auto units = static_cast<double>(s.model.capacity);
    values_[fits].resize(jobs.size()), values_[leaves].resize(jobs.size());
    double *is_fit = values_[fits].data(), *left = values_[leaves].data();
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const i64 j = jobs[i];
      i64 needed = s.job(j).processors;
      if (s.rules().holds) needed = s.needed_by(j, static_cast<i64>(waiting[i]) * s.model.ticks);
      bool has_room = needed <= free_;
      if constexpr (requires { s.machine.has_room(j, free_); })
        has_room = has_room && s.machine.has_room(j, free_);
      is_fit[i] = has_room ? 1.0 : 0.0;
      left[i] = static_cast<double>(has_room ? free_ - s.machine.width(j) : 0) / units;
    }
  }
  // The same where units are alike, and none are held back.
  void read_fits(double units, const std::vector<double>& widths) {
    const auto room = static_cast<double>(free_);
    const auto write = [&](Name which, auto of) {
      if (!named_[which]) return;
      values_[which].resize(widths.size());
      widely([of, n = widths.size(), width = widths.data(), value = values_[which].data()] {
#pragma omp simd
        for (std::size_t i = 0; i < n; ++i) value[i] = of(width[i]);
      });
    };
    write(fits, [room](double width) { return width <= room ? 1.0 : 0.0; });
    write(leaves, [room, units](double width) {
      const double left = room - width;
      return (left > 0 ? left : 0.0) / units;
    });
  }
  template <class S>
  void count_users(const S& s, const std::vector<i64>& coming) {
    const auto user = [&](i64 j) { return index(s.model.users[j]); };
    ++look_;
    if (named_[user_running]) {
      running_.assign(index(s.model.n_users), 0);
      s.each_running_job([&](const Entry& e) { ++running_[user(e.job)]; });
    }
    if (!named_[user_waiting]) return;
    waiting_.assign(index(s.model.n_users), 0);
    each_waiting_job(s, coming, [&](i64 j) { ++waiting_[user(j)]; });
  }
  template <class S>
  void read_users(const S& s, const std::vector<i64>& jobs) {
    const auto user = [&](i64 j) { return index(s.model.users[j]); };
    set(user_running, jobs, [&](i64 j) { return static_cast<double>(running_[user(j)]); });
    set(user_waiting, jobs, [&](i64 j) { return static_cast<double>(waiting_[user(j)]); });
    if (keeps_runs_ || !sees_runs()) return;
    users_.resize(index(s.model.n_users));
    for (const i64 j : jobs)
      if (users_[user(j)].look != look_) users_[user(j)] = user_of(s, j);
    for (const Name which : {last_run, mean_run, spread_run, known_runs})
      set(which, jobs, [&](i64 j) { return of_runs(s, which, j); });
  }
  template <class S>
  User user_of(const S& s, i64 j) const {
    const Runs runs = runs_of(s, j);
    User of{look_, static_cast<double>(runs.n), 0, 0, 0, 0};
    if (runs.n == 0) return of;
    of.last = seconds(s, runs.first[runs.n - 1]);
    const i64 all = std::accumulate(runs.first, runs.first + runs.n, i64{0});
    of.mean = seconds(s, all) / of.known;
    double sum = 0;
    for (i64 k = 0; k < runs.n; ++k) {
      const double off = seconds(s, runs.first[k]) - of.mean;
      sum += off * off;
    }
    of.spread = std::sqrt(sum / of.known);
    return of;
  }
  struct Runs {  // the last runs of a user, oldest first
    const i64* first;
    i64 n;
  };
  template <class S>
  static Runs runs_of(const S& s, i64 j) {
    const i64 most = std::min(most_runs, s.rules().kept()), *end = s.history(j) + s.rules().kept();
    i64 n = 0;
    while (n < most && end[-1 - n] >= 0) ++n;
    return {end - n, n};
  }
  template <class S>
  static double seconds(const S& s, i64 time) {
    return static_cast<double>(time) / static_cast<double>(s.model.ticks);
  }
};

}  // namespace hpc
