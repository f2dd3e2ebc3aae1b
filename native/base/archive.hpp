// The state of a simulation as bytes: written, and read into another simulation of the same model.
//
// Each class with state names the members to save once, in `keep(Archive&)`: not those that follow
// from the model, nor those that are recomputed before use. Bytes are read only by the program that
// wrote them.
#pragma once
#include <array>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace hpc {

class Archive {
 public:
  Archive() : reads_(false) {}
  explicit Archive(std::string_view bytes) : reads_(true), left_(bytes) {}

  template <class... T>
  void operator()(T&... values) {
    (one(values), ...);
  }
  // `size` bytes as they are.
  void raw(void* place, std::size_t size) {
    if (!reads_) return void(written_.append(static_cast<const char*>(place), size));
    if (size > left_.size()) fail();
    std::memcpy(place, left_.data(), size);
    left_.remove_prefix(size);
  }
  // A value that must be the same in both simulations.
  template <class T>
  void same(const T& value) {
    T other = value;
    one(other);
    if (other != value) fail();
  }
  std::string written() const { return written_; }
  void end() const {
    if (!left_.empty()) fail();
  }

 private:
  bool reads_;
  std::string written_;
  std::string_view left_;

  [[noreturn]] static void fail() { throw std::invalid_argument("saved: of another simulation"); }
  template <class T>
  void one(T& value) {
    if constexpr (requires { value.keep(*this); }) {
      value.keep(*this);
    } else {
      static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
      raw(&value, sizeof value);
    }
  }
  template <class T, std::size_t n>
  void one(std::array<T, n>& values) {
    for (T& value : values) one(value);
  }
  template <class T>
  void one(std::optional<T>& value) {
    same(value.has_value());
    if (value) one(*value);
  }
  template <class T>
  void one(std::vector<T>& values) {
    std::size_t size = values.size();
    one(size);
    if (size > left_.size() && reads_) fail();  // each has a byte
    if constexpr (std::is_default_constructible_v<T>) values.resize(size);
    else if (size != values.size()) fail();
    if constexpr (std::is_trivially_copyable_v<T> && !requires(T& v) { v.keep(*this); }) {
      if (size > 0) raw(values.data(), size * sizeof(T));
    } else {
      for (T& value : values) one(value);
    }
  }
};

}  // namespace hpc
