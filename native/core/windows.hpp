// Windows: times at which units of the machine are closed to jobs, known from the beginning.
//
// A window is in every plan from now, or from its beginning, to its end. As no job runs longer than
// predicted, no running job ever meets it, and nothing has to happen when it begins. When it ends,
// waiting jobs may start.
//
// On nodes a window may be open to some jobs: then its pseudo-job takes no cores, but all of a
// resource that never runs out otherwise, of which each unit of all other jobs needs one.
#pragma once
#include <algorithm>
#include <vector>

#include "../base/archive.hpp"
#include "../base/numbers.hpp"

namespace hpc {

struct Window {
  i64 begin, end;  // [s]
  i64 taken;       // units of a pool; on nodes, their pseudo-job, from the end: -1 is the last
  std::vector<i64> nodes = {};  // on nodes: the nodes taken
};

class Windows {
 public:
  explicit Windows(const std::vector<Window>& by_end) : all_(&by_end) {}

  void keep(Archive& a) {
    a(over_);
    a.check(over_ <= all_->size());
  }
  bool are_left() const { return over_ < all_->size(); }
  i64 next_over() const { return are_left() ? (*all_)[over_].end : forever; }  // [s]
  void forget_over(i64 now) {
    while (next_over() <= now) ++over_;
  }
  // Whether a remaining window begins before a time [s].
  bool meet(i64 end) const {
    return std::any_of(all_->begin() + static_cast<std::ptrdiff_t>(over_), all_->end(),
                       [end](const Window& w) { return w.begin < end; });
  }
  // Call f(window) for each that lasts or is to come.
  template <class F>
  void each_left(F f) const {
    for (std::size_t w = over_; w < all_->size(); ++w) f((*all_)[w]);
  }

 private:
  const std::vector<Window>* all_;
  std::size_t over_ = 0;  // windows that are over
};

}  // namespace hpc
