// Visible and served jobs if the order of arrival is not that of the log, or if quotas bar jobs.
//
// Jobs come when the schedule says, or again after a preemption.
#pragma once
#include <algorithm>
#include <vector>

#include "../core/line.hpp"
#include "records.hpp"

namespace hpc {

template <class S>
bool in_log_order(const S& s) {
  return !s.arrivals && !s.stops;
}
// The number of waiting jobs, in the queue or about to enter it.
template <class S>
i64 queued(const S& s) {
  return in_log_order(s) ? s.next - s.started : s.queue.jobs.size();
}
// Whether no job is still to start or to be stopped; with preemption a job may start several times.
template <class S>
bool all_started(const S& s) {
  if (!s.stops) return s.started == s.model.n_jobs;
  return s.next == s.model.n_jobs && s.queue.empty() && s.stops->leaving.empty();
}

// The queued jobs in order of arrival.
template <class S>
std::vector<i64> as_they_came(const S& s) {
  std::vector<i64> line;
  s.queue.jobs.each([&](const Entry& e) { line.push_back(e.job); });
  const auto place = [&](i64 j) { return s.queue.place(j); };
  std::sort(line.begin(), line.end(), [&](i64 a, i64 b) { return place(a) < place(b); });
  return line;
}
// Fill the window with queued jobs: up to `head` of the first ones, then the last ones; return
// their number.
template <class S>
i64 see_queue(const S& s, const Row& row, i64 head) {
  const std::vector<i64> line = as_they_came(s);
  const auto count = static_cast<i64>(line.size()), seen = std::min(count, row.size_of_window);
  if (seen == count) head = count;
  for (i64 i = 0; i < seen; ++i) row.window[i] = line[index(i < head ? i : count - seen + i)];
  return seen;
}
// Note, after those already noted, the jobs started since the last decision; return how many are
// noted then.
template <class S>
i64 find_started(const S& s, const Row& row) {
  const Episode& p = *row.episode;
  i64 found = p.noted;
  const i64 missing = s.started - p.counted + found;
  for (i64 j = p.cursor; found < missing; ++j)
    if (s.of(j).start >= 0 && s.of(j).number >= p.counted) row.fresh[found++] = j;
  return found;
}
// Let scores order the jobs of the window, ties by arrival; the other jobs follow by arrival.
// Running jobs come last, in case others stop them in this pass.
template <class S>
void order_as_seen(S& s, const Row& row, const double* numbers) {
  auto& scores = s.queue.scores[0];
  s.each_running_job([&](const Entry& e) { scores.at(e.job).score = -inf; });
  auto place = static_cast<double>(row.size_of_window);
  for (const i64 j : as_they_came(s)) scores.at(j).score = -place++;
  std::vector<InLine> line;
  for (i64 i = 0; i < row.episode->visible; ++i) line.push_back({row.window[i], numbers[i]});
  sort_by_score(s.queue, line.begin(), line.end());
  place = 0;
  for (const InLine& seen : line) scores.at(seen.job).score = -place++;
}

// A waiting job if quotas do not bar it, else the first in order of arrival that is not barred,
// even from outside the window; if all are barred, the job itself.
template <class S>
i64 nearest_allowed(const S& s, const Row& row, i64 j) {
  if (!s.bars(j)) return j;
  if (in_log_order(s)) {
    for (i64 other = row.window[0]; other < s.next; ++other)
      if (s.of(other).start < 0 && !s.bars(other)) return other;
    return j;
  }
  for (const i64 other : as_they_came(s))
    if (!s.bars(other)) return other;
  return j;
}
// How many of the visible jobs are not barred.
template <class S>
i64 count_allowed(const S& s, const Row& row) {
  return std::count_if(row.window, row.window + row.episode->visible, [&](i64 j) { return !s.bars(j); });
}
// Mask the visible jobs that are barred. If all are, the first place stands for the first job
// outside the window that is not.
template <class S, class T>
void mask_barred(const S& s, const Row& row, T* mask) {
  const i64 visible = row.episode->visible;
  for (i64 i = 0; i < visible; ++i) mask[i] = !s.bars(row.window[i]);
  if (visible > 0 && std::all_of(mask, mask + visible, [](T allowed) { return allowed == 0; }))
    mask[0] = 1;
}

}  // namespace hpc
