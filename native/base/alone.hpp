// A lock that refuses the second thread instead of letting it wait.
#pragma once
#include <atomic>
#include <stdexcept>

namespace hpc {

// `run` lets other Python threads run; without this they would find a simulation between two
// states. A copy is never in use.
class Alone {
  mutable std::atomic<bool> is_busy_ = false;

 public:
  Alone() = default;
  Alone(const Alone&) {}

  class Inside {
    const Alone& what_;

   public:
    explicit Inside(const Alone& what) : what_(what) {
      if (what.is_busy_.exchange(true)) throw std::runtime_error("in use by another thread");
    }
    ~Inside() { what_.is_busy_ = false; }
    Inside(const Inside&) = delete;
  };
};

}  // namespace hpc
