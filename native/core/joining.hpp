// How Slurm rounds times when it tests when a job can start.
//
// It joins the ends of running jobs to spans of time. The first span reaches from the first end to
// 30 s after the next multiple of 30 s; each later one is twice as long, or longer by `linear`
// seconds. All jobs of a span end with its last job. Reservations are rounded to `resolution`.
#pragma once
#include "model.hpp"

namespace hpc {

class JoinedEnds {
 public:
  explicit JoinedEnds(const Rules& rules) : linear_(rules.linear) {}

  // Whether a job that ends at `end`, no earlier than the job before, begins another span.
  bool begins_span(i64 end) {
    if (span_ < 0) {
      start_ = end + half_minute - end % half_minute;
      span_ = half_minute;
      return true;
    }
    if (end <= start_ + span_) return false;
    widen(end - start_);
    return true;
  }

 private:
  static constexpr i64 half_minute = 30;  // [s]
  i64 linear_;
  i64 start_ = -1, span_ = -1;  // [s]

  void widen(i64 least) {
    if (linear_ > 0) {
      // rounded up to whole steps
      span_ += (least - span_ + linear_ - 1) / linear_ * linear_;
      return;
    }
    while (span_ < least) span_ *= 2;
  }
};

inline i64 rounded(const Rules& rules, i64 time) { return time - time % rules.resolution; }
// The rounded end of a reservation in plans.
inline i64 rounded_end(const Rules& rules, i64 begin, i64 end) {
  return std::max(rounded(rules, end), rounded(rules, begin) + rules.resolution);
}

}  // namespace hpc
