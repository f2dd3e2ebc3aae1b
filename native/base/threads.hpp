// A few threads that share the work of one call; the caller is one of them.
//
// The caller never waits for a thread that has not begun: on busy processors it does all the work
// alone, and is not slower than without threads. One call often follows another soon, and waking a
// thread takes longer than a short call: so threads poll for a while before they sleep, and yield
// meanwhile.
//
// If one throws, the others end at their next look for interrupts. Only the caller asks for them,
// also while it waits.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "interrupts.hpp"
#include "numbers.hpp"

namespace hpc {

class Threads {
 public:
  explicit Threads(int number) {
    for (int k = 1; k < number; ++k) threads_.emplace_back([this] { serve(); });
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  ~Threads() {
    {
      std::lock_guard lock(mutex_);
      ends_ = true;
    }
    go_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  // Let each thread call `work` once, which takes tasks until none is left. An exception from any
  // thread is thrown again here.
  void run(const std::function<void()>& work) {
    if (threads_.empty()) return work();
    const auto outside =
        std::exchange(this_thread, {&has_failed_, this_thread.asks, this_thread.is_over});
    has_failed_ = false;
    {
      std::lock_guard lock(mutex_);
      work_ = &work;
      ++round_;
    }
    go_.notify_all();
    attempt(work);
    {
      std::lock_guard lock(mutex_);
      work_ = nullptr;
    }
    look_for([this] { return busy_ == 0; });
    std::unique_lock lock(mutex_);
    while (!over_.wait_for(lock, between_asking, [this] { return busy_ == 0; })) {
      lock.unlock();
      attempt(heed);
      lock.lock();
    }
    this_thread = outside;
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  std::mutex mutex_;  // guards all that follows
  std::condition_variable go_, over_;
  const std::function<void()>* work_ = nullptr;
  std::exception_ptr error_;
  std::atomic<bool> has_failed_ = false;
  std::atomic<i64> round_ = 0;
  std::atomic<int> busy_ = 0;
  bool ends_ = false;
  std::vector<std::thread> threads_;

  void serve() {
    i64 seen = 0;
    this_thread = {&has_failed_, false};
    std::unique_lock lock(mutex_);
    while (true) {
      lock.unlock();
      look_for([&] { return round_ != seen; });
      lock.lock();
      go_.wait(lock, [&] { return ends_ || (work_ && round_ != seen); });
      if (ends_) return;
      seen = round_;
      const auto* work = work_;
      ++busy_;
      lock.unlock();
      attempt(*work);
      lock.lock();
      if (--busy_ == 0) over_.notify_one();
    }
  }
  // Poll for a tenth of a millisecond at most.
  template <class F>
  static void look_for(F holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
    while (!holds() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }
  void attempt(const std::function<void()>& work) {
    try {
      work();
    } catch (...) {
      std::lock_guard lock(mutex_);  // so that who sees that one has failed comes behind its error
      has_failed_ = true;
      if (!error_) error_ = std::current_exception();
    }
  }
};

}  // namespace hpc
