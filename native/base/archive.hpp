// The state of a simulation as bytes: written, and read into another simulation of the same model.
//
// Each class with state names the members to save once, in `keep(Archive&)`: not those that follow
// from the model, nor those that are recomputed before use. Bytes are read only by the program that
// wrote them, for the model they were written for, and whole: a seal before them tells. So what is
// damaged is refused before any of it is used. A forger can seal what he likes; therefore job numbers
// and sizes are checked, too, but not whether all that is read makes sense together.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hpc {

// A number that differs if a part of up to eight bytes does, and nearly always if more do: each step
// is a bijection of what came before, and of the next eight bytes.
inline std::uint64_t digest(std::string_view bytes, std::uint64_t from = 0) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
  std::uint64_t sum = std::rotl((from ^ bytes.size()) * odd, 29);
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t n = std::min(bytes.size(), sizeof word);
    std::memcpy(&word, bytes.data(), n);
    sum = std::rotl((sum ^ word) * odd, 29);
    bytes.remove_prefix(n);
  }
  return (sum ^ (sum >> 32)) * odd;
}
// What the bytes of an array are, as part of such a number.
template <class T>
std::uint64_t digest_of(const T* values, std::size_t n, std::uint64_t from) {
  // no bytes between members, which may be anything
  static_assert(std::has_unique_object_representations_v<T> || std::is_floating_point_v<T>);
  return digest({reinterpret_cast<const char*>(values), n * sizeof(T)}, from);
}

// Before the bytes stand what they were written for, and their digest.
inline std::string sealed(const std::string& bytes, std::uint64_t owner) {
  const std::array<std::uint64_t, 2> seal{owner, digest(bytes, owner)};
  return std::string(reinterpret_cast<const char*>(seal.data()), sizeof seal) + bytes;
}
inline std::string_view unsealed(std::string_view bytes, std::uint64_t owner) {
  std::array<std::uint64_t, 2> seal{};
  if (bytes.size() < sizeof seal) throw std::invalid_argument("saved: damaged, as it is too short");
  std::memcpy(seal.data(), bytes.data(), sizeof seal);
  bytes.remove_prefix(sizeof seal);
  if (seal[1] != digest(bytes, seal[0])) throw std::invalid_argument("saved: damaged");
  if (seal[0] != owner)
    throw std::invalid_argument("saved: of another simulation, or by another version of hpcgym");
  return bytes;
}

class Archive {
 public:
  Archive() : reads_(false) {}
  // Bytes from this process, of a simulation that may have more jobs.
  explicit Archive(std::string_view bytes) : reads_(true), left_(bytes) {}
  // Bytes from anywhere, of a simulation of so many jobs, and pseudo-jobs that hold nodes.
  Archive(std::string_view bytes, std::int64_t n_jobs, std::int64_t n_rows)
      : reads_(true), checks_(true), n_jobs_(n_jobs), n_rows_(n_rows), left_(bytes) {}

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
  // Values of which vectors have a size before the first event, and another later.
  template <class... T>
  void resized(T&... values) {
    const bool before = std::exchange(resizes_, true);
    (*this)(values...);
    resizes_ = before;
  }
  // A value that must be the same in both simulations.
  template <class T>
  void same(const T& value) {
    T other = reads_ ? T{} : value;  // so that a member that `keep` forgets differs, unless it is usual
    one(other);
    if (other != value) fail();
  }
  // Check what has just been read.
  void check(bool holds) const {
    if (checks_ && !holds) throw std::invalid_argument("saved: no state of a simulation");
  }
  // A job, or less than 0 for something else, down to `least`.
  void check_job(std::int64_t job, std::int64_t least = 0) const {
    check(job >= least && job < n_jobs_);
  }
  void check_row(std::int64_t row, std::int64_t least = 0) const {
    check(row >= least && row < n_rows_);
  }
  // Numbers of jobs, or records with a member `job`.
  template <class Items>
  void check_jobs(const Items& items) const {
    for (const auto& item : items) {
      if constexpr (requires { item.job; }) check_job(item.job);
      else check_job(item);
    }
  }
  // Values by job, or none.
  template <class T>
  void check_size(const std::vector<T>& values) const {
    check(values.empty() || static_cast<std::int64_t>(values.size()) == n_jobs_);
  }
  std::string written() const { return written_; }
  void end() const {
    if (!left_.empty()) fail();
  }

 private:
  bool reads_, checks_ = false;
  bool resizes_ = false;  // vectors that have a size may be read with another
  std::int64_t n_jobs_ = 0, n_rows_ = 0;
  std::string written_;
  std::string_view left_;

  [[noreturn]] static void fail() { throw std::invalid_argument("saved: of another simulation"); }
  template <class T>
  void one(T& value) {
    if constexpr (requires { value.keep(*this); }) {
      value.keep(*this);
    } else if constexpr (std::is_same_v<T, bool>) {
      std::uint8_t is = value;
      raw(&is, 1);
      if (is > 1) fail();
      value = is == 1;
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
    constexpr bool plain = std::is_trivially_copyable_v<T> && !requires(T& v) { v.keep(*this); };
    constexpr std::size_t least = plain ? sizeof(T) : 1;  // bytes of each
    if (reads_ && size > left_.size() / least) fail();
    check(values.empty() || size == values.size() || resizes_);
    if constexpr (std::is_default_constructible_v<T>) values.resize(size);
    else if (size != values.size()) fail();
    if constexpr (plain) {
      if (size > 0) raw(values.data(), size * sizeof(T));
    } else {
      for (T& value : values) one(value);
    }
  }
};

}  // namespace hpc
