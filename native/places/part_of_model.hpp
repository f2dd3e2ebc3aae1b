// The model of some of the jobs of another, which it keeps alive.
#pragma once
#include <memory>
#include <optional>

#include "../core/features.hpp"
#include "../core/model.hpp"
#include "../machines/corun/sharing.hpp"
#include "../machines/nodes/layout.hpp"

namespace hpc {

struct PartOfModel {
  std::shared_ptr<const Model> whole;
  Model model;
  std::optional<Layout> layout;

  PartOfModel(std::shared_ptr<const Model> all, i64 first, i64 n)
      : whole(std::move(all)), model(whole->part(first, n)) {
    model.several = false;
    if (model.features) model.features = std::make_shared<Features>(model.features->part(first, n));
    if (model.sharing) model.sharing = std::make_shared<Sharing>(model.sharing->part(first));
    if (!model.nodes) return;
    // pseudo-jobs that hold nodes in windows stand behind all jobs
    const i64 rows = model.windows.empty() ? n : model.nodes->n_rows - first;
    model.nodes = &layout.emplace(model.nodes->part(first, rows));
  }
  PartOfModel(const PartOfModel&) = delete;
};

}  // namespace hpc
