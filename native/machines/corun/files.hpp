// The file system that all jobs of a machine share, if there is one.
//
// The demands of running jobs are summed in whole bytes per second, so that the sum is exact in any
// order. If it exceeds the bandwidth, each wait for files takes longer by their ratio: the
// congestion.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "sharing.hpp"

namespace hpc {

class SharedFiles {
 public:
  std::vector<i64> readers;  // running jobs that ever wait for files, in any order

  SharedFiles(const FileSystem& told, i64 n_jobs) : told_(&told), place_(index(n_jobs)) {}

  void keep(Archive& a) {
    a(readers, place_, asked_, congestion_, told_of_);
    a.check_jobs(readers);
    for (const i64 j : readers) a.check(place_[index(j)] < readers.size());
  }
  // The speed of a job whose rate would be `beside` without congestion. The extra wait for files is
  // added to its time, the inverse of the rate.
  double rate(i64 code, double beside) const {
    return beside / (1.0 + beside * (told_->share[index(code)] * (congestion_ - 1.0)));
  }
  void open(i64 j, i64 code) {
    if (told_->share[index(code)] > 0) {
      place_[index(j)] = readers.size();
      readers.push_back(j);
    }
    ask(told_->demand[j]);
  }
  void close(i64 j, i64 code) {
    if (told_->share[index(code)] > 0) {
      const i64 last = readers.back();
      readers[place_[index(j)]] = last;
      place_[index(last)] = place_[index(j)];
      readers.pop_back();
    }
    ask(-told_->demand[j]);
  }
  // Whether the congestion has changed since the running jobs were last updated; updates the mark.
  bool tells() { return std::exchange(told_of_, congestion_) != congestion_; }

 private:
  const FileSystem* told_;
  std::vector<std::size_t> place_;  // of a running job among the readers
  i64 asked_ = 0;                   // by running jobs [bytes/s]
  double congestion_ = 1, told_of_ = 1;

  void ask(i64 more) {
    asked_ += more;
    congestion_ = std::max(1.0, static_cast<double>(asked_) / told_->bandwidth);
  }
};

}  // namespace hpc
