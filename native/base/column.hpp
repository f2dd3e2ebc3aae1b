// A column of values by job that many simulations share.
#pragma once
#include <vector>

#include "archive.hpp"
#include "numbers.hpp"

namespace hpc {

// A simulation that has to write to it makes its own copy; a copy of that simulation does, too.
template <class T>
class Column {
  const T* data_ = nullptr;
  std::vector<T> own_;

 public:
  Column(const T* shared) : data_(shared) {}
  Column(const Column& other) : data_(other.data_), own_(other.own_) {
    if (!own_.empty()) data_ = own_.data();
  }
  Column& operator=(const Column&) = delete;

  const T& operator[](i64 j) const { return data_[j]; }
  void own(i64 n) {
    if (!own_.empty()) return;
    if (data_) own_.assign(data_, data_ + n);
    else own_.resize(index(n));
    data_ = own_.data();
  }
  void keep(Archive& a) {
    a(own_);
    a.check_size(own_);
    if (!own_.empty()) data_ = own_.data();
  }
  // The shared value of a job has changed before anybody wrote to it.
  void renew(i64 j, const T* shared) {
    if (shared && !own_.empty()) own_[index(j)] = shared[j];
  }
  // For writing; only after `own`.
  T& at(i64 j) { return own_[index(j)]; }
};

}  // namespace hpc
