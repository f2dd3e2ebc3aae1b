// An ordered list of jobs: sorted blocks of at most 64 entries.
//
// A sorted array costs a scan and a shift of all its entries at each change. Here both touch one
// block, and a summary of each block lets a scan skip it. A list of up to 64 jobs is a sorted
// array. Equal keys are sorted by rank: that of a job is its number, or what a function says that
// is given wherever a job is inserted or found. So a job is found without a search through others
// of its key. A copy of a list is independent.
#pragma once
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "archive.hpp"
#include "numbers.hpp"

namespace hpc {

struct Entry {
  i64 key;
  i64 span;   // [s] predicted run time of a queued job, end of a running one
  i64 width;  // units that it takes: processors of a pool
  i64 job;
};

inline constexpr int block_size = 64;
inline constexpr i64 nothing = i64{1} << 62;  // least value of an empty block
inline constexpr int width_classes = 14;      // up to 1, 2, 4 ... 4096 units, any number

// The first class whose jobs include those of this width.
inline int class_of(i64 width) {
  if (width <= 1) return 0;
  const auto least = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(width - 1)));
  return std::min(width_classes - 1, least);
}

struct Block {
  int count = 0;
  bool narrow_known = false;
  // bounds: a removal may leave them too low, except the least end of running jobs
  i64 least_width = nothing, least_span = nothing;
  i64 sum_width = 0;
  // bounds of the parts of scores that time changes
  i64 first_submit = 0, last_submit = 0;
  double greatest_score = 0, greatest_gain = inf;  // infinite: not known
  std::array<i64, width_classes> narrow;           // [s] least span of the jobs of up to this width
  std::array<Entry, block_size> entries;

  Block() {}  // entries from `count` on are never read
  Block(const Block& other) { *this = other; }
  Block& operator=(const Block& other) {
    const std::size_t used = sizeof(Entry) * index(other.count);
    std::memcpy(static_cast<void*>(this), &other, offsetof(Block, entries) + used);
    return *this;
  }

  void keep(Archive& a) {
    a.raw(this, offsetof(Block, entries));
    if (count < 0 || count > block_size)
      throw std::invalid_argument("saved: no such number of jobs in a block");
    a.raw(entries.data(), sizeof(Entry) * index(count));
  }
  Entry* begin() { return entries.data(); }
  Entry* end() { return entries.data() + count; }
  const Entry* begin() const { return entries.data(); }
  const Entry* end() const { return entries.data() + count; }

  void summarise() {
    least_span = least_width = nothing;
    sum_width = 0;
    for (const Entry& e : *this) {
      least_span = std::min(least_span, e.span);
      least_width = std::min(least_width, e.width);
      sum_width += e.width;
    }
    greatest_gain = inf;
    narrow_known = false;
  }
  void erase(int i) {
    sum_width -= entries[index(i)].width;
    --count;
    std::memmove(begin() + i, begin() + i + 1, sizeof(Entry) * index(count - i));
  }
  void summarise_narrow() {
    narrow.fill(nothing);
    for (const Entry& e : *this) {
      i64& least = narrow[index(class_of(e.width))];
      least = std::min(least, e.span);
    }
    for (std::size_t c = 1; c < narrow.size(); ++c) narrow[c] = std::min(narrow[c], narrow[c - 1]);
    narrow_known = true;
  }
  void widen_narrow(i64 width, i64 span) {
    for (std::size_t c = index(class_of(width)); c < narrow.size(); ++c)
      narrow[c] = std::min(narrow[c], span);
  }
};

struct Place {  // position of a block in its list, and of an entry in the block
  int block, entry;
};

struct ByNumber {  // the rank of a job
  i64 operator()(i64 j) const { return j; }
};

class OrderedList {
  std::vector<Block> blocks_ = std::vector<Block>(1);
  std::vector<std::int32_t> order_{0}, spare_;  // block numbers: in use, by position; and spare

  // Whether a job listed under a key comes before an entry.
  template <class R>
  static bool comes_before(i64 key, i64 job, const Entry& e, R rank) {
    return key != e.key ? key < e.key : rank(job) < rank(e.job);
  }
  [[noreturn, gnu::cold]] static void fail_to_find() {
    throw std::logic_error("a job is not listed");
  }
  template <class R>
  int last_block_from(i64 key, i64 job, R rank) const {
    int low = 0, high = size_in_blocks();
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (comes_before(key, job, at(middle).entries[0], rank) ? high : low) = middle;
    }
    return low;
  }
  // Split the full block at a position; return the block for a job.
  template <class R>
  Block& make_room(int position, i64 key, i64 job, R rank) {
    std::int32_t fresh;
    if (spare_.empty()) {
      fresh = static_cast<std::int32_t>(blocks_.size());
      blocks_.emplace_back();
    } else {
      fresh = spare_.back();
      spare_.pop_back();
      blocks_[index(fresh)] = Block();
    }
    Block &full = at(position), &made = blocks_[index(fresh)];
    // at the end of the list no entry moves: a list that only grows there has full blocks
    const bool last = position == size_in_blocks() - 1;
    const bool grows = last && !comes_before(key, job, full.entries[block_size - 1], rank);
    order_.insert(order_.begin() + position + 1, fresh);
    move_entries(full, grows ? block_size : block_size / 2, made);
    return grows || !comes_before(key, job, made.entries[0], rank) ? made : full;
  }
  static void move_entries(Block& from, int first, Block& to) {
    std::copy(from.begin() + first, from.end(), to.end());
    to.count += from.count - first;
    from.count = first;
    from.summarise();
    to.summarise();
  }
  // Move the entries of the next block to this one if both have few.
  void join(int position) {
    Block &block = at(position), &next = at(position + 1);
    const bool few = block.count + next.count <= block_size / 2;
    if (!few && block.count > 0 && next.count > 0) return;
    move_entries(next, 0, block);
    spare_.push_back(order_[index(position + 1)]);
    order_.erase(order_.begin() + position + 1);
  }

 public:
  int size_in_blocks() const { return static_cast<int>(order_.size()); }
  // The first block never moves, so it is found without `order_`.
  Block& at(int position) { return blocks_[position == 0 ? 0 : index(order_[index(position)])]; }
  const Block& at(int position) const {
    return blocks_[position == 0 ? 0 : index(order_[index(position)])];
  }
  // Only an empty list has an empty block.
  bool empty() const { return at(0).count == 0; }
  const Entry& front() const { return at(0).entries[0]; }
  i64 size() const {
    i64 total = 0;
    for (int k = 0; k < size_in_blocks(); ++k) total += at(k).count;
    return total;
  }
  void clear() {
    blocks_.resize(1);
    blocks_[0] = Block();
    order_.assign(1, 0);
    spare_.clear();
  }

  template <class R = ByNumber>
  Block& insert(const Entry& e, R rank = {}) {
    const int position = size_in_blocks() == 1 ? 0 : last_block_from(e.key, e.job, rank);
    Block* block = &at(position);
    if (block->count == block_size) block = &make_room(position, e.key, e.job, rank);
    Entry* place = block->end();
    for (; place > block->begin() && comes_before(e.key, e.job, place[-1], rank); --place)
      *place = place[-1];
    *place = e;
    ++block->count;
    block->least_span = std::min(block->least_span, e.span);
    block->least_width = std::min(block->least_width, e.width);
    block->sum_width += e.width;
    return *block;
  }
  // The place of a job that is listed under this key.
  template <class R = ByNumber>
  Place find(i64 key, i64 job, R rank = {}) const {
    const int position = size_in_blocks() == 1 ? 0 : last_block_from(key, job, rank);
    const Block& block = at(position);
    for (int i = 0; i < block.count; ++i)
      if (block.entries[index(i)].job == job) return {position, i};
    fail_to_find();
  }
  void remove(Place place) {
    at(place.block).erase(place.entry);
    if (size_in_blocks() > 1) tidy(place.block);
  }
  // Remove an entry and return it; afterwards the bounds of its block are exact.
  Entry take_off(Place place) {
    Block& block = at(place.block);
    const Entry e = block.entries[index(place.entry)];
    block.erase(place.entry);
    block.summarise();
    if (size_in_blocks() > 1) tidy(place.block);
    return e;
  }
  // Give an entry of a list by number a greater key, and move it there. Least spans stay exact.
  void move_back(Place place, i64 key) {
    Block& block = at(place.block);
    Entry e = block.entries[index(place.entry)];
    e.key = key;
    const auto follows = [&](const Entry& other) { return !comes_before(key, e.job, other, ByNumber()); };
    const bool last = place.block + 1 == size_in_blocks();
    if (!last && follows(at(place.block + 1).entries[0])) {
      block.erase(place.entry);
      block.summarise();
      tidy(place.block);
      insert(e);
      return;
    }
    Entry* at_last = block.begin() + place.entry;
    for (; at_last + 1 < block.end() && follows(at_last[1]); ++at_last) *at_last = at_last[1];
    *at_last = e;
  }
  // Join the block at a position with its neighbours if there are few entries in both.
  void tidy(int position) {
    if (position > 0) join(position - 1);
    if (position + 1 < size_in_blocks()) join(position);
  }
  // Tidy the block before `next`, which a sweep has left; return where the sweep continues.
  int tidy_swept(int next) {
    const int before = size_in_blocks();
    if (before == 1) return next;
    if (next < before) {
      join(next - 1);
      // entries that the sweep has not seen yet have moved here
      if (size_in_blocks() < before) return next - 1;
    }
    if (next - 1 > 0) join(next - 2);
    return next - (before - size_in_blocks());
  }
  void keep(Archive& a) {
    a.resized(blocks_, order_, spare_);
    std::vector<bool> seen(blocks_.size());
    a.check(!order_.empty() && order_[0] == 0);
    for (const auto* numbers : {&order_, &spare_})
      for (const std::int32_t k : *numbers) {
        a.check(k >= 0 && index(k) < seen.size() && !seen[index(k)]);
        seen[index(k)] = true;
      }
    for (int k = 0; k < size_in_blocks(); ++k) {
      a.check(at(k).count > 0 || size_in_blocks() == 1);
      for (const Entry& e : at(k)) a.check_row(e.job);
    }
  }
  template <class F>
  void each(F f) const {
    for (int k = 0; k < size_in_blocks(); ++k)
      for (const Entry& e : at(k)) f(e);
  }
  template <class F>
  bool any(F f) const {
    for (int k = 0; k < size_in_blocks(); ++k)
      if (std::any_of(at(k).begin(), at(k).end(), f)) return true;
    return false;
  }
};

}  // namespace hpc
