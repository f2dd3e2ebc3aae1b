// The waiting jobs of each user: those whose predictions the ends of its jobs change.
//
// A job is listed at the first look after it has come, and leaves at the first look at its user after
// it has started. So a look costs the jobs of users that have had ends, not the queue.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "../base/ordered.hpp"

namespace hpc {

// Where jobs come in the order of submission, and wait once. A copy begins without knowing any.
class WaitingOfUsers {
 public:
  WaitingOfUsers() = default;
  WaitingOfUsers(const WaitingOfUsers&) {}
  WaitingOfUsers& operator=(const WaitingOfUsers&) = delete;

  bool knows() const { return knows_; }
  void forget() { knows_ = false; }
  // List the jobs that wait, of which no prediction is behind.
  template <class S>
  void begin(const S& s) {
    first_.assign(index(s.model.n_users), -1), has_ends_.assign(index(s.model.n_users), false);
    listed_.clear(), with_ends_.clear();
    spare_ = -1;
    s.queue.jobs.each([&](const Entry& e) { list(e.job, s.model.users[e.job]); });
    known_to_ = s.next - s.arrived;
    knows_ = true;
  }
  // A job of this user has ended.
  void note_end(i64 user) {
    if (!knows_ || has_ends_[index(user)]) return;
    has_ends_[index(user)] = true;
    with_ends_.push_back(user);
  }
  // Call f(job) for those whose users have had ends since the last look.
  template <class S, class F>
  void look(const S& s, F f) {
    for (; known_to_ < s.next; ++known_to_)
      if (s.of(known_to_).start < 0) list(known_to_, s.model.users[known_to_]);
    for (const i64 user : with_ends_) {
      has_ends_[index(user)] = false;
      for (std::int32_t* at = &first_[index(user)]; *at >= 0;) {
        Listed& each = listed_[index(*at)];
        if (s.of(each.job).start < 0) {
          f(each.job);
          at = &each.next;
        } else {
          spare_ = std::exchange(*at, std::exchange(each.next, spare_));
        }
      }
    }
    with_ends_.clear();
  }

 private:
  struct Listed {
    i64 job;
    std::int32_t next;  // of its user; -1: none
  };
  std::vector<Listed> listed_;
  std::vector<std::int32_t> first_;  // by user, in `listed_`; -1: none
  std::int32_t spare_ = -1;          // the first for reuse
  std::vector<bool> has_ends_;       // by user, since the last look
  std::vector<i64> with_ends_;       // these users
  i64 known_to_ = 0;                 // jobs before this one have been listed
  bool knows_ = false;

  void list(i64 j, i64 user) {
    std::int32_t at = spare_;
    if (at < 0) {
      at = static_cast<std::int32_t>(listed_.size());
      listed_.emplace_back();
    } else {
      spare_ = listed_[index(at)].next;
    }
    listed_[index(at)] = {j, std::exchange(first_[index(user)], at)};
  }
};

}  // namespace hpc
