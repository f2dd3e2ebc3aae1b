// The rows of visible jobs as they are shown, kept from one decision to the next.
//
// A row is written when its job comes into the window. Columns of predictions are written again when
// these change, columns of users when a job of the job's user has come, started or ended, waits when
// time has passed. Other columns that change are written by who shows the rows.
#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "../answers/expressed.hpp"
#include "lined_up.hpp"
#include "records.hpp"
#include "shown_users.hpp"

namespace hpc {

class VisibleRows {
  static constexpr std::size_t some = 32;  // values of a column that are worked out before they are written
  struct OfUser {  // of a row: its user, and of when the user's columns are
    std::int32_t user = 0, version = -1;
    bool operator==(const OfUser&) const = default;
  };
  struct Foretold {  // [s]
    i64 predicted = -1, policy_time = -1;
    bool operator==(const Foretold&) const = default;
  };

  const Table& table_;
  const std::size_t width_;
  const bool has_users_, foresees_;
  LinedUp line_;
  // by place in the window
  std::vector<float> rows_;
  std::vector<i64> submits_;                  // [s]
  std::vector<double> requested_, processors_;  // [s], and units
  std::vector<std::uint8_t> fits_;            // if that is not of processors alone
  std::vector<OfUser> of_user_;               // if users are shown
  std::vector<Foretold> foretold_;            // if predictions change
  Expressed expressed_;
  ShownUsers users_;
  i64 time_ = -1, oldest_ = 0;  // [s] now, and the longest wait
  double room_ = 0;             // free units
  std::size_t stale_ = 0;       // from this place on, waits are of other times

 public:
  VisibleRows(const Table& table, i64 room)
      : table_(table),
        width_(table.codes.size()),
        has_users_(!table.of_users.empty() || !table.of_both.empty()),
        foresees_(!table.foretold.empty() || table.model->learning),
        rows_(index(room) * width_),
        submits_(index(room)),
        requested_(index(room)),
        processors_(index(room)),
        of_user_(has_users_ ? index(room) : 0),
        foretold_(foresees_ ? index(room) : 0),
        expressed_(table.kept_expressions),
        users_(table, expressed_) {}

  std::size_t bytes() const {
    std::size_t total = line_.bytes() + users_.bytes();
    const auto add = [&](const auto& column) { total += column.size() * sizeof(column[0]); };
    add(rows_), add(submits_), add(requested_), add(processors_), add(fits_), add(of_user_), add(foretold_);
    return total;
  }
  // Another simulation goes on.
  void forget() {
    line_.clear();
    users_.forget();
    time_ = -1;
  }
  // Bring what is kept up to date with the jobs that are visible now.
  template <class S>
  void renew(S& s, std::span<const i64> jobs, const InTable& at) {
    if (s.stops) forget();  // a job may wait again
    line_up(jobs);
    if (has_users_) users_.count(s);
    for (const std::size_t i : line_.came()) take(s, i, at);
    if (foresees_)
      for (std::size_t i = 0; i < line_.size(); ++i)
        if (foresee(s, i, at)) write_of_job(s, i, at);
    if (has_users_)
      for (std::size_t i = 0; i < line_.size();) i = look_at_user(s, i, at);
    const bool has_passed = std::exchange(time_, s.time) != s.time;
    stale_ = has_passed ? 0 : line_.came().empty() ? line_.size() : line_.came().front();
  }
  // The rows, one after the other.
  void copy(float* out) const { std::memcpy(out, rows_.data(), line_.size() * width_ * sizeof(float)); }
  std::size_t width() const { return width_; }
  float* column(std::size_t k) { return rows_.data() + k; }

  struct Sums {  // over all rows
    double processors, area;
    i64 oldest;      // [s]
    double fitting;  // jobs
  };
  // Add up; `fits(j)` says whether a job could start now, if that is not a matter of its processors and
  // of the free ones alone.
  template <class F>
  Sums add_up(bool by_processors, i64 free, F fits) {
    const std::size_t n = line_.size();
    const double *processors = processors_.data(), *requested = requested_.data();
    const double room = room_ = static_cast<double>(free);
    double width = 0, area = 0, fitting = 0;
#pragma omp simd reduction(+ : width, area, fitting)
    for (std::size_t i = 0; i < n; ++i) {
      width += processors[i], area += processors[i] * requested[i];
      fitting += processors[i] <= room ? 1.0 : 0.0;
    }
    if (constexpr double exact = i64{1} << 53; area >= exact) {  // below it the order of a sum is nothing to it
      area = 0;
      for (std::size_t i = 0; i < n; ++i) area += processors[i] * requested[i];
    }
    fits_.clear();
    if (!by_processors) {
      for (const i64 j : line_.jobs()) fits_.push_back(fits(j));
      fitting = static_cast<double>(std::ranges::count(fits_, 1));
    }
    i64 first = time_;
    for (std::size_t i = 0; i < n; ++i) first = std::min(first, submits_[i]);
    oldest_ = time_ - first;
    return {width, area, oldest_, fitting};
  }
  // Write a column that is of the time, or of the room, if it is such; return whether it is.
  bool write_of_now(std::size_t k) {
    const auto machine = static_cast<double>(table_.settings.processors);
    const double *processors = processors_.data(), *requested = requested_.data(), room = room_;
    const std::uint8_t* is_fit = fits_.data();
    switch (static_cast<Shown>(table_.codes[k])) {
      case Shown::wait:
        with_waits([&](auto waited) {
          write_column(k, stale_, [=](std::size_t i) {
            const float t = waited(i);
            return t / (t + static_cast<float>(hour));
          });
        });
        return true;
      case Shown::expansion:
        with_waits([&](auto waited) {
          write_column(k, stale_, [=](std::size_t i) {
            const float t = waited(i);
            return t / (t + static_cast<float>(requested[i]));
          });
        });
        return true;
      case Shown::fit:
        if (fits_.empty()) write_column(k, 0, [=](std::size_t i) { return processors[i] <= room ? 1.0F : 0.0F; });
        else write_column(k, 0, [=](std::size_t i) { return static_cast<float>(is_fit[i]); });
        return true;
      case Shown::leaves:  // units that the job leaves free
        write_column(k, 0, [=](std::size_t i) {
          const double left = room - processors[i];
          return static_cast<float>((left > 0 ? left : 0.0) / machine);
        });
        return true;
      default: return false;
    }
  }

 private:
  void line_up(std::span<const i64> jobs) {
    line_.set(jobs, table_.settings.follows());
    line_.move(rows_, width_);
    line_.move(submits_), line_.move(requested_), line_.move(processors_);
    if (has_users_) line_.move(of_user_);
    if (foresees_) line_.move(foretold_);
  }
  float* row(std::size_t i) { return rows_.data() + i * width_; }
  // Write what is of a job that came.
  template <class S>
  void take(S& s, std::size_t i, const InTable& at) {
    const i64 j = line_.jobs()[i];
    const Job& job = s.job(j);
    submits_[i] = job.submit;
    requested_[i] = static_cast<double>(job.requested), processors_[i] = static_cast<double>(job.processors);
    if (has_users_) of_user_[i] = {static_cast<std::int32_t>(s.model.users[j]), -1};
    std::copy_n(&table_.still[index(at.first + j) * width_], width_, row(i));
    if (foresees_) foretold_[i] = {}, foresee(s, i, at);
    write_of_job(s, i, at);
  }
  // Write the columns of predictions if these have changed; return whether they have.
  template <class S>
  bool foresee(const S& s, std::size_t i, const InTable& at) {
    const i64 j = line_.jobs()[i];
    const Foretold now{s.of(j).predicted, at.learned ? at.learned[j] : table_.ordered_by[at.first + j]};
    if (std::exchange(foretold_[i], now) == now) return false;
    for (const std::size_t column : table_.foretold) {
      const bool is_predicted = static_cast<Shown>(table_.codes[column]) == Shown::predicted;
      row(i)[column] = squashed(is_predicted ? now.predicted : now.policy_time);
    }
    return true;
  }
  // Write the columns of the user of a job, and of the jobs behind it that have the same user and are
  // as old, if they may have changed; return the place behind these.
  template <class S>
  std::size_t look_at_user(S& s, std::size_t i, const InTable& at) {
    const OfUser shown = of_user_[i];
    const std::size_t user = index(shown.user);
    users_.look_at(s, line_.jobs()[i], user);
    const OfUser now{shown.user, users_.version(user)};
    std::size_t end = i;
    for (; end < line_.size() && of_user_[end] == shown; ++end) of_user_[end] = now;
    if (now == shown) return end;
    const bool is_same = users_.is_same(user);
    if (is_same) {
      const float* value = users_.values(user);
      const bool have_run = shown.version < users_.version_of_runs(user);
      for (const Table::Written& each : table_.of_users) {
        if (have_run || each.sees_counts) fill_column(each.column, i, end, *value);
        ++value;
      }
    }
    if (is_same && table_.of_both.empty()) return end;
    for (; i < end; ++i) {
      if (!is_same) write(s, table_.of_users, i, at);
      write(s, table_.of_both, i, at);
    }
    return end;
  }
  template <class S>
  void write_of_job(S& s, std::size_t i, const InTable& at) {
    if (has_users_) of_user_[i].version = -1;
    write(s, table_.of_jobs, i, at);
  }
  // Write some expressions of a job to its row.
  template <class S>
  void write(S& s, const std::vector<Table::Written>& which, std::size_t i, const InTable& at) {
    if (which.empty()) return;
    const std::size_t user = has_users_ ? index(of_user_[i].user) : 0;
    const i64 running = has_users_ ? users_.running(user) : 0, waiting = has_users_ ? users_.waiting(user) : 0;
    expressed_.look_at(s, line_.jobs()[i], running, waiting, at);
    for (const Table::Written& each : which)
      row(i)[each.column] = squashed_number(*expressed_.values(each.which, at));
  }
  // Call f with a function that returns how long the job of a row has waited [s]; of 32 bits if these
  // are enough, which processors turn into float many at once.
  template <class F>
  void with_waits(F f) const {
    const i64 *submits = submits_.data(), now = time_;
    if (oldest_ <= std::numeric_limits<std::int32_t>::max())
      f([=](std::size_t i) { return static_cast<float>(static_cast<std::int32_t>(now - submits[i])); });
    else
      f([=](std::size_t i) { return static_cast<float>(now - submits[i]); });
  }
  void fill_column(std::size_t k, std::size_t first, std::size_t end, float value) {
    for (float *out = row(first) + k, *behind = row(end) + k; out < behind; out += width_) *out = value;
  }
  // Write a column from a place on. Values are worked out apart, so that compilers do many at once.
  template <class F>
  void write_column(std::size_t k, std::size_t first, F value_of) {
    std::array<float, some> values;
    for (const std::size_t n = line_.size(); first < n; first += some) {
      const std::size_t count = std::min(some, n - first);
      for (std::size_t i = 0; i < count; ++i) values[i] = value_of(first + i);
      float* out = column(k) + first * width_;
      for (std::size_t i = 0; i < count; ++i, out += width_) *out = values[i];
    }
  }
};

}  // namespace hpc
