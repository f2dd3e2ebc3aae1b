// Long calls end if the user interrupts them: they look every 50 ms.
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
inline constexpr Milliseconds between_looks{50};
// Before the first look into work that ends whole, or not at all: shorter work is not lost, even if
// the processors are busy meanwhile.
inline constexpr Milliseconds before_loss{250};

class Interrupts {
  using Clock = std::chrono::steady_clock;
  static constexpr i64 often = 64;  // work between two looks at the clock
  i64 left_ = often;
  Milliseconds first_;
  Clock::time_point due_{};  // of the next look; the clock has not been read: its epoch

 public:
  explicit Interrupts(Milliseconds first = between_looks) : first_(first) {}
  // Other work begins, into which the first look comes after `first`.
  void begin(Milliseconds first = between_looks) { first_ = first, due_ = {}; }
  // Whether the clock has been read since then: this work is not short.
  bool has_read() const { return due_ != Clock::time_point{}; }
  // `work`: in microseconds or so.
  void look(i64 work = 1) {
    if ((left_ -= work) < 0) look_at_clock();
  }
  [[gnu::cold, gnu::noinline]] void look_at_clock() {
    left_ = often;
    const auto now = Clock::now();
    if (has_read() && now < due_) return;
    const bool is_due = has_read();
    due_ = now + (is_due ? between_looks : first_);
    if (is_due) heed();
  }
};

}  // namespace hpc
