// The file system that jobs of a machine share, where it has one.
//
// What running jobs ask of it is added up, in whole bytes a second, so that the sum is exact in
// whatever order they come and go. Where it is more than the bandwidth, all that waits for files
// takes so many times as long: the congestion.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "sharing.hpp"

namespace hpc {

class SharedFiles {
 public:
  std::vector<i64> readers;  // the running jobs that ever wait for files, in any order

  SharedFiles(const FileSystem& told, i64 n_jobs) : told_(&told), place_(index(n_jobs)) {}

  void keep(Archive& a) { a(readers, place_, asked_, congestion_, told_of_); }
  // How fast a job is that would have this rate if there was no congestion. What it waits for files
  // is added to its time, which the rate is the inverse of.
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
  // Whether there is another congestion than running jobs have been told of; they are from now on.
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
