// Sets of nodes, a bit for each: whole words without a node are passed over.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "../base/numbers.hpp"

namespace hpc {

class NodeBits {
  std::vector<std::uint64_t> words_;  // one more bit than there are nodes, or more
  i64 n_nodes_;

 public:
  explicit NodeBits(i64 n_nodes) : words_(index(n_nodes / 64 + 1)), n_nodes_(n_nodes) {}

  void set(i64 node, bool is_in) {
    const std::uint64_t bit = std::uint64_t{1} << (node & 63);
    std::uint64_t& word = words_[index(node >> 6)];
    word = is_in ? word | bit : word & ~bit;
  }
  // The first node from this one on that is in the set, or one that there is not.
  i64 next(i64 node) const {
    std::size_t place = index(node >> 6);
    std::uint64_t word = words_[place] >> (node & 63);
    if (word != 0) return node + std::countr_zero(word);
    for (++place; place < words_.size(); ++place)
      if (words_[place] != 0) return static_cast<i64>(place * 64) + std::countr_zero(words_[place]);
    return static_cast<i64>(place * 64);
  }
  // The first node from this one on that is not.
  i64 next_outside(i64 node) const {
    for (; index(node >> 6) < words_.size(); node = ((node >> 6) + 1) << 6) {
      const std::uint64_t word = ~words_[index(node >> 6)] >> (node & 63);
      if (word != 0) return node + std::countr_zero(word);
    }
    return node;
  }
  // The first of `width` consecutive nodes of the set from `lowest` on, outside a block; or -1.
  i64 row(i64 lowest, i64 width, i64 block_from, i64 block_to) const {
    for (i64 begin = next(lowest); begin < n_nodes_;) {
      const i64 end = next_outside(begin);
      if (begin < block_to && end > block_from) {  // what is left of the row beside the block
        if (block_from - begin >= width) return begin;
        begin = std::max(begin, std::min(block_to, end));
      }
      if (end - begin >= width) return begin;
      begin = next(end);
    }
    return -1;
  }
};

}  // namespace hpc
