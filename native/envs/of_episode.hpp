// The models of episodes: of some of the jobs of a log, also with shapes that an agent gives them.
#pragma once
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "../places/part_of_model.hpp"
#include "limits.hpp"
#include "records.hpp"

namespace hpc {

// The model of an episode: of some of the jobs of all episodes.
struct OfEpisode : PartOfModel {
  std::shared_ptr<const OwnAccounts> accounts;

  OfEpisode(std::shared_ptr<const Model> all, std::shared_ptr<const OwnAccounts> own, i64 first, i64 n,
            const Limits& limits)
      : PartOfModel(std::move(all), first, n), accounts(std::move(own)) {
    if (model.accounts) model.accounts = accounts->accounts;
    if (model.limited) model.limited = model.limited->part(first, limits);
  }
};

// The same of jobs that an agent gives their shapes, before they are submitted.
class OfShapes : public OfEpisode {
  struct OwnColumn {
    std::vector<std::byte> values;  // of the jobs of the episode
    const std::byte* all;           // of all rows of the table
    std::size_t size;               // bytes of each job
  };
  const Table& table_;
  const i64 first_;
  std::vector<OwnColumn> columns_;

 public:
  OfShapes(const Table& table, i64 first, i64 n)
      : OfEpisode(table.model, nullptr, first, n, {}), table_(table), first_(first) {
    model.each_column([&]<class T>(const T*& column, i64 width) {
      static_assert(std::is_trivially_copyable_v<T>);
      const std::size_t size = sizeof(T) * index(width);
      const auto* begin = reinterpret_cast<const std::byte*>(column);
      columns_.push_back({{begin, begin + size * index(n)}, begin - size * index(first), size});
      column = reinterpret_cast<const T*>(columns_.back().values.data());
    });
  }
  // Let a job have its k-th shape.
  void shape(i64 j, i64 k) {
    const std::size_t row = index(table_.row_of(first_ + j, k));
    for (OwnColumn& each : columns_)
      std::copy_n(each.all + row * each.size, each.size, each.values.data() + index(j) * each.size);
  }
};

}  // namespace hpc
