// Arrays from and to Python.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <utility>
#include <vector>

#include "../base/numbers.hpp"

namespace hpc {

template <class T>
using In = nanobind::ndarray<const T, nanobind::numpy, nanobind::ndim<1>, nanobind::c_contig,
                             nanobind::device::cpu>;
template <class T>
using Out = nanobind::ndarray<T, nanobind::numpy, nanobind::ndim<1>, nanobind::c_contig>;
using Rows = nanobind::ndarray<const i64, nanobind::numpy, nanobind::ndim<2>, nanobind::c_contig,
                               nanobind::device::cpu>;

inline std::vector<i64> listed(const In<i64>& rows) {
  return {rows.data(), rows.data() + rows.shape(0)};
}
template <class Rows, class Values>
std::size_t as_many(const Rows& rows, const Values& values) {
  if (rows.shape(0) != values.shape(0)) throw nanobind::value_error("one value for each row");
  return rows.shape(0);
}

// An array that Python owns from now on.
template <class T>
Out<T> owned(std::vector<T> values) {
  auto* kept = new std::vector<T>(std::move(values));
  nanobind::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Out<T>(kept->data(), {kept->size()}, owner);
}
template <class T>
nanobind::typed<nanobind::dict, nanobind::str, Out<T>> as_arrays(
    std::vector<std::pair<const char*, std::vector<T>>> columns) {
  nanobind::typed<nanobind::dict, nanobind::str, Out<T>> found;
  for (auto& [name, values] : columns) found[name] = owned(std::move(values));
  return found;
}

}  // namespace hpc
