// The queue in the order in which it is served, as one array.
#pragma once
#include <tuple>
#include <vector>

#include "queue.hpp"

namespace hpc {

struct InLine {
  i64 job;
  double score;  // if the order is by scores
};

// Equal scores stand in the order of submission.
inline void sort_by_score(const Queue& queue, std::vector<InLine>::iterator begin,
                          std::vector<InLine>::iterator end) {
  std::sort(begin, end, [&](const InLine& a, const InLine& b) {
    return a.score != b.score ? a.score > b.score : queue.place(a.job) < queue.place(b.job);
  });
}

// Write at least the first `most` queued jobs in primary order.
inline void line_up(const Model& model, const Queue& queue, i64 now, i64 most,
                    std::vector<InLine>& line) {
  const Rules& rules = model.rules;
  const auto starves = [&](i64 j) { return rules.starves(now - queue.known[j].submit); };
  const bool by_submission = queue.is_listed_by_submission();
  const bool keyed = rules.primary == Order::keyed;
  line.clear();
  // jobs that have waited beyond the threshold come first, in the order of submission
  if (rules.threshold >= 0 && rules.primary != Order::submission) {
    queue.jobs.each([&](const Entry& e) {
      if (starves(e.job)) line.push_back({e.job, -static_cast<double>(queue.place(e.job))});
    });
    sort_by_score(queue, line.begin(), line.end());
  }
  const auto starved = static_cast<std::ptrdiff_t>(line.size());
  const OrderedList& list = keyed ? queue.by_key() : queue.jobs;
  const bool sorts = queue.is_scored() || (!keyed && !by_submission);
  for (int k = 0; k < list.size_in_blocks(); ++k)
    for (const Entry& e : list.at(k)) {
      if (!sorts && static_cast<i64>(line.size()) >= most) return;
      if (starved > 0 && starves(e.job)) continue;
      double score = 0;
      if (queue.is_scored())
        score = score_now(rules.primary, queue.scores[0][e.job], now - queue.known[e.job].submit);
      line.push_back({e.job, score});
    }
  if (sorts) sort_by_score(queue, line.begin() + starved, line.end());
}

// The same for a simulation; where jobs are selected, the line is the selected job alone.
template <class S>
void line_up(const S& s, i64 most, std::vector<InLine>& line) {
  if (s.rules().primary == Order::selection) return line.assign(1, {s.selected, 0});
  line_up(s.model, s.queue, s.time, most, line);
}

// Put jobs in primary order, whether queued or not.
inline void sort_in_order(const Model& model, const Queue& queue, i64 now, std::vector<i64>& jobs) {
  const Rules& rules = model.rules;
  const auto place = [&](i64 j) {  // less comes first
    const i64 waiting = now - queue.known[j].submit;
    const bool starves = rules.starves(waiting);
    const bool keyed = rules.primary == Order::keyed && !starves;
    const bool scored = queue.is_scored() && !starves;
    return std::tuple(!starves, keyed ? queue.keys[0][j] : 0,
                      scored ? -score_now(rules.primary, queue.scores[0][j], waiting) : 0.0,
                      queue.place(j), j);  // no job that is still to come has a place
  };
  std::sort(jobs.begin(), jobs.end(), [&](i64 a, i64 b) { return place(a) < place(b); });
}

}  // namespace hpc
