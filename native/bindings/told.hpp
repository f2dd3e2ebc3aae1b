// Arrays by name, from which parts of a model are read.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "../core/model.hpp"

namespace hpc {

using ByName = nanobind::typed<nanobind::dict, nanobind::str, nanobind::any>;

class Told {
  // keeps the memory of the arrays
  nanobind::dict arrays_;

  using Array = nanobind::ndarray<nanobind::ro, nanobind::c_contig, nanobind::device::cpu>;
  Array get(const char* name) const {
    if (!arrays_.contains(name)) throw nanobind::value_error((std::string(name) + ": missing").c_str());
    return nanobind::cast<Array>(arrays_[name]);
  }

 public:
  Told(nanobind::dict arrays) : arrays_(std::move(arrays)) {}

  bool has(const char* name) const { return arrays_.contains(name); }
  // An array of n values; any number if `n` is -1.
  template <class T>
  const T* column(const char* name, i64 n) const {
    const Array found = get(name);
    const bool fits = n < 0 || static_cast<i64>(found.size()) == n;
    if (found.dtype() != nanobind::dtype<T>() || !fits)
      throw nanobind::value_error((std::string(name) + ": another type or number").c_str());
    return static_cast<const T*>(found.data());
  }
  template <class T>
  std::vector<T> list(const char* name, i64 n = -1) const {
    const T* first = column<T>(name, n);
    return {first, first + get(name).size()};
  }
  // The same for records.
  template <class T>
  std::vector<T> records(const char* name, i64 n = -1) const {
    constexpr i64 width = sizeof(T) / sizeof(i64);
    const i64 *first = column<i64>(name, n < 0 ? n : n * width), size = static_cast<i64>(get(name).size());
    if (size % width != 0)
      throw nanobind::value_error((std::string(name) + ": not whole records").c_str());
    std::vector<T> found(index(size / width));
    std::copy_n(first, size, reinterpret_cast<i64*>(found.data()));
    return found;
  }
};

Learning learning_of(const Told& told, i64 n_jobs, i64 n_users);
Accounts accounts_of(const Told& told, i64 n_jobs);
Expression expression_of(const Told& told, i64 n_jobs);
// Quotas and windows; preemption; submissions that the schedule decides.
void restrict(Model& model, const Told& told);
void let_stop(Model& model, const Told& told);
void let_come(Model& model, const Told& told);

}  // namespace hpc
