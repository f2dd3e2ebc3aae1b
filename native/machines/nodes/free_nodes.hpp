// Free resources of nodes, and the placement of a job that starts.
#pragma once
#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "filling.hpp"
#include "layout.hpp"

namespace hpc {

struct Cell {  // units of a job on a node
  std::int32_t node, units;
};

class FreeNodes {
 public:
  const Layout& layout() const { return *layout_; }
  const std::vector<i64>& free() const { return free_; }  // (N, R)
  const Filling& filling() const { return filling_; }
  i64 version() const { return version_; }  // increases when `free` changes
  const std::vector<std::uint64_t>& open() const { return open_; }  // one bit for each node: 1 if a core is free
  // Whether all units of a job fit now.
  bool has_room(i64 j) {
    const i64 units = layout_->units(j), *demand = layout_->demand(j);
    Known& known = known_[index(layout_->kind[index(j)])];
    if (known.version == version_ && (known.is_all || known.units >= units))
      return known.units >= units;
    i64 found = 0;
    for (i64 node = next_open(0); node < layout_->n_nodes && found < units;
         node = next_open(node + 1))
      found += layout_->held(room(free_, node), demand);
    known = {version_, found, found < units};
    return found >= units;
  }

 protected:
  const Layout* layout_;
  Filling filling_;
  std::vector<i64> free_;
  i64 n_free_ = 0;            // cores
  i64 version_ = 0;
  std::vector<Cell> chosen_;  // the placement of a job that may start

  explicit FreeNodes(const Layout& layout, std::span<const i64> free)
      : layout_(&layout),
        filling_(layout),
        free_(free.begin(), free.end()),
        open_(index(layout.n_nodes / 64 + 1)),
        known_(index(layout.n_kinds)) {
    for (i64 node = 0; node < layout.n_nodes; ++node) {
      note_open(node);
      n_free_ += *room(free_, node);
    }
  }
  void keep(Archive& a) {
    a(filling_, free_, n_free_, version_, chosen_, open_, known_);
    check_cells(a, chosen_);
  }
  void check_cells(const Archive& a, std::span<const Cell> cells) const {
    for (const Cell& c : cells) a.check(is_between(c.node, 0, layout_->n_nodes - 1));
  }

  i64* room(std::vector<i64>& all, i64 node) const {
    return &all[index(node * layout_->n_resources)];
  }
  const i64* room(const std::vector<i64>& all, i64 node) const {
    return &all[index(node * layout_->n_resources)];
  }
  void note_open(i64 node) {
    const std::uint64_t bit = std::uint64_t{1} << (node & 63);
    std::uint64_t& word = open_[index(node >> 6)];
    word = *room(free_, node) > 0 ? word | bit : word & ~bit;
  }
  // Give the resources of cells back to `all`; a `sign` of -1 takes them.
  void change(std::vector<i64>& all, std::span<const Cell> cells, const i64* demand,
              i64 sign) const {
    const i64 resources = layout_->n_resources;
    i64* const first = all.data();
    if (resources == 1) {
      const i64 cores = sign * demand[0];
      for (const Cell& c : cells) first[c.node] += c.units * cores;
      return;
    }
    for (const Cell& c : cells)
      for (i64 r = 0; r < resources; ++r)
        first[c.node * resources + r] += sign * c.units * demand[r];
  }
  // The same for `free_`.
  void move(std::span<const Cell> cells, const i64* demand, i64 sign) {
    ++version_;
    for (const Cell& c : cells) n_free_ += sign * c.units * demand[0];
    change(free_, cells, demand, sign);
    for (const Cell& c : cells) note_open(c.node);
    filling_.note_changed(free_.data(), cells);
  }
  // Choose nodes for a job: `each(f)` calls f(node, free resources there), in the order in which they
  // are filled, for those with a free core, up to the last that is needed, for which it is true.
  // `spared(node, units)`: how many of the units that fit on a node it may take. Return whether all
  // units fit.
  template <class Each, class F>
  bool fill(i64 j, Each each, F spared) {
    const i64* demand = layout_->demand(j);
    const bool single = layout_->is_single(j);
    i64 missing = layout_->units(j);
    chosen_.clear();
    each([&](i64 node, const i64* there) {
      i64 units = single ? std::min(there[0], missing) : layout_->held(there, demand, missing);
      if (units > 0) units = spared(node, units);
      if (units > 0) {
        chosen_.push_back({static_cast<std::int32_t>(node), static_cast<std::int32_t>(units)});
        missing -= units;
      }
      return missing == 0;
    });
    return missing == 0;
  }
  // The same by the free resources `all`, in the order of the allocation.
  template <class F>
  bool place(const std::vector<i64>& all, i64 j, F spared) {
    const bool first_fit = layout_->allocation == Allocation::first_fit;
    if (first_fit && &all == &free_)
      return fill(j, [&](auto f) {
        for (i64 node = next_open(0); node < layout_->n_nodes && !f(node, room(all, node));)
          node = next_open(node + 1);
      }, spared);
    const std::vector<i64>* order = first_fit ? nullptr : &filling_.arrange(all, j);
    return fill(j, [&](auto f) {
      for (i64 i = 0; i < layout_->n_nodes; ++i) {
        const i64 node = order ? (*order)[index(i)] : i;
        if (*room(all, node) > 0 && f(node, room(all, node))) return;
      }
    }, spared);
  }
  bool place(const std::vector<i64>& all, i64 j) { return place(all, j, all_units); }
  static constexpr auto all_units = [](i64, i64 units) { return units; };

 private:
  struct Known {  // how many units of a kind fitted at a version: at least these, or exactly
    i64 version = -1, units = 0;
    bool is_all = false;
  };

  std::vector<std::uint64_t> open_;
  std::vector<Known> known_;         // by kind

  // The first node from `node` on with a free core, or a number that no node has.
  i64 next_open(i64 node) const {
    std::size_t place = index(node >> 6);
    std::uint64_t word = open_[place] >> (node & 63);
    if (word != 0) return node + std::countr_zero(word);
    for (++place; place < open_.size(); ++place)
      if (open_[place] != 0) return static_cast<i64>(place * 64) + std::countr_zero(open_[place]);
    return static_cast<i64>(place * 64);
  }
};

}  // namespace hpc
