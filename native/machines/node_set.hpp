// Sets of nodes, one bit for each: whole words without a node are skipped.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "../base/archive.hpp"
#include "../base/numbers.hpp"

namespace hpc {

// How many nodes are in a word of a set: as std::popcount, which is a call where some processors have
// no instruction for it.
inline i64 number_in(std::uint64_t nodes) {
  nodes -= (nodes >> 1) & 0x5555555555555555;
  nodes = (nodes & 0x3333333333333333) + ((nodes >> 2) & 0x3333333333333333);
  nodes = (nodes + (nodes >> 4)) & 0x0f0f0f0f0f0f0f0f;
  return static_cast<i64>((nodes * 0x0101010101010101) >> 56);
}

class NodeSet {
 public:
  explicit NodeSet(i64 n_nodes = 0, bool all = false) : words(index(n_nodes / 64 + 1)) {
    for (i64 node = 0; all && node < n_nodes; ++node) add(node);
  }
  bool operator==(const NodeSet&) const = default;

  std::vector<std::uint64_t> words;  // at least one bit more than there are nodes

  void keep(Archive& a) { a(words); }
  bool has(i64 node) const { return (words[index(node >> 6)] >> (node & 63)) & 1; }
  void add(i64 node) { words[index(node >> 6)] |= std::uint64_t{1} << (node & 63); }
  void remove(i64 node) { words[index(node >> 6)] &= ~(std::uint64_t{1} << (node & 63)); }
  void clear() { std::fill(words.begin(), words.end(), 0); }
  // Make it the set of the nodes of these cells.
  template <class Cells>
  void list(const Cells& cells) {
    clear();
    for (const auto& c : cells) add(c.node);
  }
  bool meets(const NodeSet& other) const {
    std::uint64_t common = 0;
    for (std::size_t w = 0; w < words.size(); ++w) common |= words[w] & other.words[w];
    return common != 0;
  }
  template <class F>
  void each(F f) const {
    for (std::size_t w = 0; w < words.size(); ++w)
      for (std::uint64_t left = words[w]; left != 0; left &= left - 1)
        f(static_cast<i64>(w * 64) + std::countr_zero(left));
  }
  // Whether f(node) holds for any; nodes behind that one are left out.
  template <class F>
  bool any(F f) const {
    for (std::size_t w = 0; w < words.size(); ++w)
      for (std::uint64_t left = words[w]; left != 0; left &= left - 1)
        if (f(static_cast<i64>(w * 64) + std::countr_zero(left))) return true;
    return false;
  }
  // The first node of the set from `node` on, or a number that no node has.
  i64 next(i64 node) const { return next_bit(node, 0); }
  // The first of `width` consecutive nodes of the set from `lowest` on, outside a block; or -1.
  i64 row(i64 lowest, i64 width, i64 block_from, i64 block_to) const {
    for (i64 begin = next(lowest); begin < static_cast<i64>(words.size() * 64);) {
      const i64 end = next_bit(begin, ~std::uint64_t{0});
      if (begin < block_to && end > block_from) {  // what is left of the row beside the block
        if (block_from - begin >= width) return begin;
        begin = std::max(begin, std::min(block_to, end));
      }
      if (end - begin >= width) return begin;
      begin = next(end);
    }
    return -1;
  }
  // The most consecutive nodes of the set that are outside a block.
  i64 longest_row(i64 block_from, i64 block_to) const {
    i64 longest = 0;
    for (i64 begin = next(0); begin < static_cast<i64>(words.size() * 64);) {
      const i64 end = next_bit(begin, ~std::uint64_t{0});
      const bool meets = begin < block_to && end > block_from;
      longest = std::max(longest, meets ? std::max(block_from - begin, end - block_to) : end - begin);
      begin = next(end);
    }
    return longest;
  }

 private:
  // The first position from `node` on with a set bit; with an all-ones mask, with a clear bit.
  i64 next_bit(i64 node, std::uint64_t mask) const {
    std::size_t place = index(node >> 6);
    const std::uint64_t word = (words[place] ^ mask) >> (node & 63);
    if (word != 0) return node + std::countr_zero(word);
    for (++place; place < words.size(); ++place)
      if (words[place] != mask)
        return static_cast<i64>(place * 64) + std::countr_zero(words[place] ^ mask);
    return static_cast<i64>(place * 64);
  }
};

// Sets of nodes one behind the other, as rows of one array.
class NodeSets {
 public:
  explicit NodeSets(i64 n_nodes, std::size_t sets = 1) : width(index(n_nodes / 64 + 1)), n_nodes_(n_nodes) {
    begin(sets);
  }

  std::size_t width;  // words of a set

  // So many sets, each of all nodes.
  void begin(std::size_t sets) {
    words_.assign(sets * width, ~std::uint64_t{0});
    for (std::size_t set = 1; set <= sets; ++set)
      words_[set * width - 1] = (std::uint64_t{1} << (n_nodes_ & 63)) - 1;
  }
  const std::uint64_t* operator[](std::size_t set) const { return &words_[set * width]; }
  std::uint64_t* words(std::size_t set) { return &words_[set * width]; }
  void remove(std::size_t set, i64 node) {
    words_[set * width + index(node >> 6)] &= ~(std::uint64_t{1} << (node & 63));
  }
  // Add a copy of a set behind it.
  void repeat(std::size_t set) {
    const std::size_t behind = (set + 1) * width;
    words_.resize(words_.size() + width);
    std::copy_backward(words_.begin() + static_cast<std::ptrdiff_t>(behind - width),
                       words_.end() - static_cast<std::ptrdiff_t>(width), words_.end());
  }

 private:
  i64 n_nodes_;
  std::vector<std::uint64_t> words_;
};

}  // namespace hpc
