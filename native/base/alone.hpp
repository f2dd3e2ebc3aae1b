// A lock that refuses the second thread instead of letting it wait, and what an exception has left
// between two states.
#pragma once
#include <atomic>
#include <stdexcept>

namespace hpc {

struct HalfDone : std::runtime_error {
  HalfDone()
      : std::runtime_error("interrupted within a pass, after which it cannot go on, or read in part") {}
};

// `run` lets other Python threads run; without this they would find a simulation between two
// states. A copy is never in use.
class Alone {
  mutable std::atomic<bool> is_busy_ = false;

 protected:
  bool is_half_done_ = false;  // between two states; it stays if an exception ends what it does

 public:
  Alone() = default;
  Alone(const Alone& other) : is_half_done_(other.is_half_done_) {}

  class Inside {
    const Alone& what_;

   public:
    explicit Inside(const Alone& what) : what_(what) {
      if (what.is_busy_.exchange(true)) throw std::runtime_error("in use by another thread");
      if (!what.is_half_done_) return;
      what.is_busy_ = false;
      throw HalfDone();
    }
    ~Inside() { what_.is_busy_.store(false, std::memory_order_release); }
    Inside(const Inside&) = delete;
  };
};

}  // namespace hpc
