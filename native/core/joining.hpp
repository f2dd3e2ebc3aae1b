// How Slurm rounds times when it asks when a job can start.
//
// It lets running jobs end in spans of time. The first reaches from the first end to 30 s after the
// next multiple of 30 s, and those behind it twice as far each time, or by `linear` seconds
// further. Who ends in a span ends with the last who does. Reservations are rounded to
// `resolution`.
#pragma once
#include "model.hpp"

namespace hpc {

class JoinedEnds {
 public:
  explicit JoinedEnds(const Rules& rules) : linear_(rules.linear) {}

  // Whether a job that ends then, no earlier than the last, is the first of another span.
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
      // rounded down, as it is negative: up to a whole number of steps
      span_ += (least - span_ + linear_ - 1) / linear_ * linear_;
      return;
    }
    while (span_ < least) span_ *= 2;
  }
};

inline i64 rounded(const Rules& rules, i64 time) { return time - time % rules.resolution; }
// When a reservation is over in plans.
inline i64 rounded_end(const Rules& rules, i64 begin, i64 end) {
  return std::max(rounded(rules, end), rounded(rules, begin) + rules.resolution);
}

}  // namespace hpc
