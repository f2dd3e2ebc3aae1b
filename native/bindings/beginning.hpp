// How simulations begin, as Python tells it by name.
#pragma once
#include <nanobind/stl/optional.h>

#include "../core/beginning.hpp"
#include "arrays.hpp"

namespace hpc {

using Maybe = std::optional<In<i64>>;

inline std::span<const i64> span_of(const Maybe& array) {
  if (!array) return {};
  return {array->data(), array->shape(0)};
}

// The arrays must outlive what is returned.
inline Beginning beginning_of(i64 time, bool due, const In<i64>& running, const In<i64>& start,
                              const In<i64>& predicted, const In<i64>& promised, const Maybe& history,
                              const Maybe& reserved, const Maybe& looks, const Maybe& first,
                              const Maybe& node, const Maybe& units, const Maybe& ordered_by,
                              const Maybe& expected, const Maybe& corrections, const std::optional<In<double>>& seen) {
  const std::size_t number = predicted.shape(0), n_running = running.shape(0);
  const auto has = [](const auto& array, std::size_t n) { return !array || array->shape(0) == n; };
  if (promised.shape(0) != number || start.shape(0) != n_running)
    throw nanobind::value_error("begin: one promise for each prediction, one start for each running job");
  for (std::size_t k = 0; k < n_running; ++k)
    if (running(k) < 0 || running(k) >= static_cast<i64>(number) || start(k) >= time)
      throw nanobind::value_error("begin: running jobs are among the first jobs, and have started");
  if (reserved && reserved->shape(0) < number)
    throw nanobind::value_error("begin: one reservation for each of the first jobs");
  if (looks && looks->shape(0) != 5) throw nanobind::value_error("begin: looks has five numbers");
  if (!has(ordered_by, number) || !has(seen, number * n_seen))
    throw nanobind::value_error("begin: what was learned of each of the first jobs");
  if (!has(expected, n_running) || !has(corrections, n_running) ||
      (ordered_by && !(expected && corrections)))
    throw nanobind::value_error("begin: a predicted end, and corrections, of each running job");
  Beginning b{time, static_cast<i64>(number), due, span_of(running), span_of(start),
          span_of(predicted), span_of(promised), span_of(history), span_of(reserved),
          span_of(first), span_of(node), span_of(units), span_of(looks)};
  b.knows = ordered_by.has_value(), b.ordered_by = span_of(ordered_by);
  b.expected = span_of(expected), b.corrections = span_of(corrections);
  if (seen) b.seen = {seen->data(), seen->shape(0)};
  return b;
}

}  // namespace hpc
