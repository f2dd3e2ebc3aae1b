// What one thread at a time may be in: whoever comes second is refused.
#pragma once
#include <atomic>
#include <stdexcept>

namespace hpc {

// `run` lets other threads of Python go on, which would find a simulation halfway between two
// states. Nobody is in a copy.
class Alone {
  mutable std::atomic<bool> is_busy_ = false;

 public:
  Alone() = default;
  Alone(const Alone&) {}

  class Inside {
    const Alone& what_;

   public:
    explicit Inside(const Alone& what) : what_(what) {
      if (what.is_busy_.exchange(true)) throw std::runtime_error("another thread is in it");
    }
    ~Inside() { what_.is_busy_ = false; }
    Inside(const Inside&) = delete;
  };
};

}  // namespace hpc
