// A simulation whatever its machine: one virtual call for each run, none within.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../core/model.hpp"

namespace hpc {

using Columns = std::vector<std::pair<const char*, std::vector<i64>>>;

class AnySimulation {
 public:
  virtual ~AnySimulation() = default;
  virtual i64 run(i64 until, i64 passes) = 0;
  virtual std::shared_ptr<AnySimulation> copy() const = 0;
  virtual Columns schedule() const = 0;
  virtual Columns idle_seconds() = 0;
  virtual Columns facts() const = 0;
  virtual i64 time() const = 0;
};

std::shared_ptr<AnySimulation> make_simulation(std::shared_ptr<Model> model);

// Set a rule by its name; return whether there is one.
bool set_rule(Rules& rules, const std::string& name, i64 value);

// What a model has need of and lacks; nullptr if nothing.
const char* what_lacks(const Model& model);

}  // namespace hpc
