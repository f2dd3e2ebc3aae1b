// What one may do with an environment, whatever its machine.
#pragma once
#include <memory>
#include <stdexcept>
#include <utility>

#include "../places/simulation.hpp"
#include "limits.hpp"
#include "records.hpp"

namespace hpc {

struct Places {  // of one environment: its action, and where outputs go
  const i64* chosen;
  const double* numbers;
  Outputs out;
};

struct NoEpisode : std::invalid_argument {
  NoEpisode() : std::invalid_argument("no episode has begun, or its last step was interrupted") {}
};

// An environment for any machine: one virtual call for a step, none within.
class AnyEnvironment {
 public:
  const std::shared_ptr<const Table> log;
  const Table& table = *log;  // the caller owns the memory of its columns, and that of the row

  explicit AnyEnvironment(std::shared_ptr<const Table> of) : log(std::move(of)) {}
  AnyEnvironment(const AnyEnvironment&) = delete;
  virtual ~AnyEnvironment() = default;
  virtual std::size_t bytes() const = 0;  // of its simulation
  virtual const Episode& episode() const = 0;
  virtual void limit(const Limits& limits) = 0;  // of the next episode
  virtual void begin_with(std::shared_ptr<const OwnAccounts> accounts) = 0;
  // Whether a task begins the next episode.
  virtual bool is_beginning(Todo task) const = 0;
  // Throw unless the environment can do this task.
  virtual void check(Todo task) const = 0;
  // Do one action, or begin the next episode, or only show; write the outputs.
  virtual void go_on(Todo task, const Places& places) = 0;
  // A simulation of the episode before its first event; the one in progress; replace it by a copy
  // of another.
  virtual std::shared_ptr<AnySimulation> anew(std::shared_ptr<const OwnAccounts> accounts) const = 0;
  virtual std::shared_ptr<AnySimulation> simulation() const = 0;
  virtual void put(const AnySimulation& simulation) = 0;
  virtual void lose_episode() = 0;  // until another begins, or is put there
  // Fill another row for a continuation of the episode with the future hidden.
  virtual void hide(const Row& of_hidden, const AnySimulation& hidden) const = 0;
};

}  // namespace hpc
