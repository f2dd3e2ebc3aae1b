// How many units are free from each time on, by predicted ends and reservations: a step function.
//
// The steps lie in chunks of at most 64. Of each chunk the least and the most that are free are
// known, so a search passes over it; units that are taken throughout are noted once.
#pragma once
#include <array>
#include <vector>

#include "numbers.hpp"

namespace hpc {

class Profile {
 public:
  // From now on so many units are free.
  void begin(i64 now, i64 free) {
    chunks_.resize(1);
    order_.assign(1, 0);
    spare_.clear();
    first_ = 0;
    chunks_[0] = Chunk();
    chunks_[0].push({now, free});
  }
  // Drop the steps that are over, and let the present one begin now.
  void forget_past(i64 now) {
    while (true) {
      const Chunk& chunk = at(0);
      if (first_ + 1 < chunk.count) {
        if (chunk.steps[first_ + 1].time > now) break;
        ++first_;
      } else {
        if (size() == 1 || at(1).steps[0].time > now) break;
        remove_chunk(0);
        first_ = 0;
      }
    }
    at(0).steps[first_].time = now;
  }
  // Take units in [from, to), or give back if it is negative. What is before now is ignored.
  void take(i64 from, i64 to, i64 width) {
    from = std::max(from, now());
    if (to <= from) return;
    Position begin = step_at(from);
    const std::uint32_t before = layout_;
    const Position end = step_at(to);
    if (layout_ != before) begin = find(from);
    for (std::size_t c = begin.chunk; c <= end.chunk; ++c) {
      Chunk& chunk = at(c);
      if (c > begin.chunk && c < end.chunk) {
        chunk.added -= width;
        continue;
      }
      const std::size_t stop = c == end.chunk ? end.step : chunk.count;
      for (std::size_t k = c == begin.chunk ? begin.step : 0; k < stop; ++k)
        chunk.steps[k].free -= width;
      chunk.changed_by(width);
    }
    const std::uint32_t made = layout_;
    drop_if_same(end);
    drop_if_same(layout_ == made ? begin : find(from));
  }

  // The first time, before `latest`, with `width` units free for `length`; else `latest`. The job
  // may have a reservation of its own at `own` (forever: it has not), where it is tried earlier: if
  // it ends before that does, only what is before `own` can be in its way.
  i64 earliest(i64 width, i64 length, i64 own, i64 latest) const {
    i64 begin = now();
    for (std::size_t c = 0; c < size(); ++c) {
      const Chunk& chunk = at(c);
      std::size_t k = c == 0 ? first_ : 0;
      if (chunk.steps[k].time >= std::min(begin + length, own)) break;
      if (chunk.least + chunk.added >= width) continue;
      if (chunk.most + chunk.added < width) {
        begin = time_after(c);
        if (begin >= latest) return latest;
        continue;
      }
      const i64 least = width - chunk.added;
      for (; k < chunk.count; ++k) {
        if (chunk.steps[k].time >= std::min(begin + length, own)) return std::min(begin, latest);
        if (chunk.steps[k].free >= least) continue;
        begin = k + 1 < chunk.count ? chunk.steps[k + 1].time : time_after(c);
        if (begin >= latest) return latest;
      }
    }
    return std::min(begin, latest);
  }
  // From when on so many units are free up to a time without a break; that time if they are not.
  i64 free_since(i64 time, i64 width) const {
    i64 begin = time;
    each_before(time, [&](i64 from, i64 free) {
      if (free >= width) begin = from;
      return free >= width;
    });
    return begin;
  }
  // Call f(time, free) for each step from that of a time on, in order, until it returns false.
  template <class F>
  void each_from(i64 time, F f) const {
    auto [c, k] = find(std::max(time, now()));
    for (; c < size(); ++c, k = 0)
      for (const Chunk& chunk = at(c); k < chunk.count; ++k)
        if (!f(chunk.steps[k].time, chunk.steps[k].free + chunk.added)) return;
  }
  // The same, for the steps that begin before a time, the last one first.
  template <class F>
  void each_before(i64 time, F f) const {
    if (time <= now()) return;
    auto [c, k] = find(time - 1);
    while (true) {
      const Chunk& chunk = at(c);
      if (!f(chunk.steps[k].time, chunk.steps[k].free + chunk.added)) return;
      if (c == 0 && k == first_) return;
      if (k-- > 0) continue;
      k = at(--c).count - 1;
    }
  }

 private:
  struct Step {
    i64 time;  // [s] from which on
    i64 free;  // but for what its chunk has `added`
  };
  struct Chunk {
    static constexpr std::size_t most_steps = 64;
    std::size_t count = 0;
    i64 added = 0;
    i64 least = forever, most = -forever;  // bounds of `free`
    std::uint32_t changes = 0;
    std::array<Step, most_steps> steps;

    Chunk() {}  // what is behind `count` is never read
    void push(Step s) {
      steps[count++] = s;
      least = std::min(least, s.free);
      most = std::max(most, s.free);
    }
    // Some steps have fewer units free, or more: bounds become loose, and are mended now and then.
    void changed_by(i64 width) {
      (width > 0 ? least : most) -= width;
      if (++changes % 16 == 0) summarise();
    }
    void summarise() {
      least = forever, most = -forever;
      for (std::size_t k = 0; k < count; ++k) {
        least = std::min(least, steps[k].free);
        most = std::max(most, steps[k].free);
      }
    }
    void erase(std::size_t k) {
      --count;
      std::copy(steps.begin() + k + 1, steps.begin() + count + 1, steps.begin() + k);
    }
  };
  struct Position {
    std::size_t chunk, step;
  };

  std::vector<Chunk> chunks_;
  std::vector<std::uint32_t> order_, spare_;  // numbers of chunks: in use, in order, and not
  std::uint32_t layout_ = 0;                  // how often chunks have become others
  std::size_t first_ = 0;                     // the step of the first chunk that lasts now

  std::size_t size() const { return order_.size(); }
  Chunk& at(std::size_t c) { return chunks_[order_[c]]; }
  const Chunk& at(std::size_t c) const { return chunks_[order_[c]]; }
  i64 now() const { return at(0).steps[first_].time; }
  i64 time_after(std::size_t c) const {
    return c + 1 < size() ? at(c + 1).steps[0].time : forever;
  }

  // The step that lasts at a time, now or later.
  Position find(i64 time) const {
    std::size_t low = 0, high = size();
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      (at(middle).steps[0].time <= time ? low : high) = middle;
    }
    const Chunk& chunk = at(low);
    const auto begin = chunk.steps.begin() + static_cast<std::ptrdiff_t>(low == 0 ? first_ : 0);
    const auto end = chunk.steps.begin() + static_cast<std::ptrdiff_t>(chunk.count);
    const auto after = std::upper_bound(begin, end, time, [](i64 t, const Step& s) { return t < s.time; });
    return {low, static_cast<std::size_t>(after - chunk.steps.begin()) - 1};
  }
  // The step that begins at a time, made if there is none.
  Position step_at(i64 time) {
    Position p = find(time);
    if (at(p.chunk).steps[p.step].time == time) return p;
    if (at(p.chunk).count == Chunk::most_steps) {
      split(p.chunk);
      p = find(time);
    }
    Chunk& chunk = at(p.chunk);
    const auto place = chunk.steps.begin() + static_cast<std::ptrdiff_t>(p.step) + 1;
    const auto end = chunk.steps.begin() + static_cast<std::ptrdiff_t>(chunk.count++);
    std::copy_backward(place, end, end + 1);
    *place = {time, chunk.steps[p.step].free};
    return {p.chunk, p.step + 1};
  }
  // Make two chunks of a full one, or drop what is past of the first.
  void split(std::size_t c) {
    ++layout_;
    if (c == 0 && first_ > 0) {
      Chunk& chunk = at(0);
      std::copy(chunk.steps.begin() + first_, chunk.steps.begin() + chunk.count, chunk.steps.begin());
      chunk.count -= first_;
      first_ = 0;
      return;
    }
    const std::uint32_t fresh = fresh_chunk();
    Chunk &full = at(c), &made = chunks_[fresh];
    for (std::size_t k = full.count / 2; k < full.count; ++k) made.push(full.steps[k]);
    full.count /= 2;
    made.added = full.added;
    full.summarise();
    order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(c) + 1, fresh);
  }
  std::uint32_t fresh_chunk() {
    if (spare_.empty()) {
      chunks_.emplace_back();
      return static_cast<std::uint32_t>(chunks_.size() - 1);
    }
    const std::uint32_t fresh = spare_.back();
    spare_.pop_back();
    chunks_[fresh] = Chunk();
    return fresh;
  }
  void remove_chunk(std::size_t c) {
    ++layout_;
    spare_.push_back(order_[c]);
    order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(c));
  }
  // Drop a step if it has as many units free as the one before.
  void drop_if_same(Position p) {
    const auto [c, k] = p;
    Chunk& chunk = at(c);
    if (c == 0 && k == first_) return;
    const Chunk& before = k > 0 ? chunk : at(c - 1);
    const Step& previous = before.steps[k > 0 ? k - 1 : before.count - 1];
    if (previous.free + before.added != chunk.steps[k].free + chunk.added) return;
    chunk.erase(k);
    if (chunk.count == 0) remove_chunk(c);
    else if (c > 0) join(c - 1);
  }
  // Make one chunk of two with few steps.
  void join(std::size_t c) {
    Chunk &chunk = at(c), &next = at(c + 1);
    if (chunk.count + next.count > Chunk::most_steps / 2) return;
    const i64 more = next.added - chunk.added;
    for (std::size_t k = 0; k < next.count; ++k)
      chunk.push({next.steps[k].time, next.steps[k].free + more});
    remove_chunk(c + 1);
  }
};

}  // namespace hpc
