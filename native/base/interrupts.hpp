// Long calls end if the user interrupts them: they ask every 50 ms.
//
// Loops that may take long count their work in an `Interrupts`, which costs next to nothing, and
// reads the clock now and then. When it is time, the thread that called the engine asks what the
// bindings have set; other threads see whether their work is still wanted. Both end by exceptions.
#pragma once
#include <atomic>
#include <chrono>
#include <exception>

#include "numbers.hpp"

namespace hpc {

// Ends what a thread does, as another one that shares the work has failed.
struct Abandoned : std::exception {
  const char* what() const noexcept override { return "the work has been abandoned"; }
};

// Throws if the call is to end; set once, before the first call.
inline void (*ask_caller)() = [] {};

struct ThisThread {
  const std::atomic<bool>* is_over = nullptr;  // whether work that it shares has failed
  bool asks = true;                            // it has called the engine
  const std::atomic<bool>* around = nullptr;   // likewise: of the work of which that is a part
};
inline thread_local ThisThread this_thread;

// Throw if what this thread does is to end.
inline void heed() {
  const auto holds = [](const std::atomic<bool>* flag) { return flag && *flag; };
  if (holds(this_thread.is_over) || holds(this_thread.around)) throw Abandoned{};
  if (this_thread.asks) ask_caller();
}

using Milliseconds = std::chrono::milliseconds;
inline constexpr Milliseconds between_asking{50};
// Before the first asking in work that ends whole, or not at all: shorter work is not lost, even if
// the processors are busy meanwhile.
inline constexpr Milliseconds before_loss{250};

class Interrupts {
  using Clock = std::chrono::steady_clock;
  static constexpr i64 often = 64;  // work between two readings of the clock
  i64 left_ = often;
  Milliseconds first_;
  Clock::time_point due_{};  // when it asks next; the clock has not been read: its epoch

 public:
  explicit Interrupts(Milliseconds first = between_asking) : first_(first) {}
  // Other work begins, in which it asks first after `first`.
  void begin(Milliseconds first = between_asking) { first_ = first, due_ = {}; }
  // Whether the clock has been read since then: this work is not short.
  bool has_read() const { return due_ != Clock::time_point{}; }
  // `work`: in microseconds or so.
  void count(i64 work = 1) {
    if ((left_ -= work) < 0) read_clock();
  }
  [[gnu::cold, gnu::noinline]] void read_clock() {
    left_ = often;
    const auto now = Clock::now();
    if (has_read() && now < due_) return;
    const bool is_due = has_read();
    due_ = now + (is_due ? between_asking : first_);
    if (is_due) heed();
  }
};

}  // namespace hpc
