// Many environments, stepped in one call on several threads.
#pragma once
#include <atomic>
#include <deque>
#include <memory>

#include "../base/threads.hpp"
#include "environment.hpp"

namespace hpc {

// Which thread steps an environment makes no difference.
template <Machine M>
class Stepper {
 public:
  Stepper(Table table, const std::vector<Row>& rows) : table_(std::move(table)) {
    for (const Row& row : rows) environments_.emplace_back(table_, row);
  }
  const Table& table() const { return table_; }
  i64 size() const { return static_cast<i64>(environments_.size()); }
  i64 room() const { return environments_.empty() ? 0 : environments_.front().room(); }
  std::size_t bytes() const {
    std::size_t total = 0;
    for (const auto& each : environments_) total += each.bytes();
    return total;
  }
  Environment<M>& at(i64 e) { return environments_[index(e)]; }

  // Let f(e) be called for the environments from `first` to `stop`, exclusive.
  void each(i64 first, i64 stop, int threads, const std::function<void(i64)>& f) {
    if (threads <= 1) {
      for (i64 e = first; e < stop; ++e) f(e);
      return;
    }
    if (n_threads_ != threads) threads_ = std::make_unique<Threads>(n_threads_ = threads);
    constexpr i64 several = 4;
    std::atomic<i64> next = first;
    threads_->run([&] {
      for (i64 e; (e = next.fetch_add(several)) < stop;)
        for (i64 k = e; k < std::min(stop, e + several); ++k) f(k);
    });
  }

 private:
  Table table_;
  std::deque<Environment<M>> environments_;
  std::unique_ptr<Threads> threads_;
  int n_threads_ = 0;
};

}  // namespace hpc
